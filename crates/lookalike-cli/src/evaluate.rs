//! `lookalike evaluate`

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use lookalike::Config;
use lookalike::Error;
use lookalike::evaluate;
use lookalike::evaluate::EvaluateOptions;
use lookalike::evaluate::Evaluation;
use lookalike::evaluate::evaluate_found;
use lookalike::evaluate::found_clusters;
use lookalike::evaluate::gold::Gold;
use lookalike::evaluate::gold::GoldColumns;
use lookalike::evaluate::metrics::Counts;
use lookalike::evaluate::pairs;
use lookalike::evaluate::pairs::PairEvaluation;
use lookalike::evaluate::pairs::PairFields;
use lookalike::evaluate::write_report;
use serde_json::json;

use crate::Ending;
use crate::evaluate_args::{ClustersArguments, ColumnArguments, EvaluateCommand, PairsArguments};
use crate::method::read_as;
use crate::table::{counted, not_an_input, thousands};

pub(crate) fn run(command: &EvaluateCommand) -> Result<Ending> {
    match command {
        EvaluateCommand::Clusters(arguments) => match &arguments.found {
            Some(found) => of_found(arguments, found),
            None => of_methods(arguments),
        },
        EvaluateCommand::Pairs(arguments) => of_pairs(arguments),
        EvaluateCommand::Audit(arguments) => crate::audit::run(arguments),
    }
}

fn columns(arguments: &ColumnArguments) -> GoldColumns {
    GoldColumns {
        page: arguments.page_column.clone(),
        cluster: arguments.cluster_column.clone(),
        kind: arguments.kind_column.clone(),
        site: arguments.site_column.clone(),
    }
}

fn of_methods(arguments: &ClustersArguments) -> Result<Ending> {
    let gold = Gold::read(&arguments.gold, &columns(&arguments.columns), arguments.positive)?;
    let configs = arguments.method.0.iter().map(|method| {
        let mut config = Config::new(method.clone());
        read_as(&mut config, &arguments.reading);
        config.pairs.site = arguments.site;
        config
    });
    let mut options = EvaluateOptions::new(&arguments.inputs, configs.collect());
    options.threads = arguments.threads.map_or(options.threads, usize::from);
    options.memory_bytes = arguments.memory.unwrap_or(options.memory_bytes);
    options.allow_missing = arguments.allow_missing;
    options.equal_recall.clone_from(&arguments.equal_recall);
    let is_shown = !arguments.talking.quiet && io::stderr().is_terminal();
    let progress = |what: &str| {
        if is_shown {
            // Progress that cannot be shown does not stop the work.
            let _ = writeln!(io::stderr(), "{what} …");
        }
    };
    if let Some(report) = &arguments.output.report {
        not_an_input(&[report, &report.with_extension("json")], &[&arguments.gold])?;
    }
    let evaluation = match &arguments.output.report {
        Some(path) => write_report(&gold, &options, path, &progress),
        None => evaluate(&gold, &options, &progress),
    }
    .with_context(|| arguments.gold.display().to_string())?;
    let mut out = io::stdout().lock();
    if arguments.output.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&evaluation)?)?;
    } else {
        print_evaluation(&mut out, &evaluation)?;
    }
    if evaluation.skipped > 0 {
        let records = counted(evaluation.skipped, "record of the input was", "records of the input were");
        writeln!(io::stderr(), "{records} skipped")?;
        return Ok(Ending::Skipped);
    }
    Ok(Ending::Done)
}

/// A number in a table, or a dash if there is none.
fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
}

fn precision(counts: &Counts) -> String {
    cell((counts.correct + counts.wrong > 0).then(|| counts.precision()))
}

/// A threshold, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn print_evaluation(out: &mut impl Write, found: &Evaluation) -> io::Result<()> {
    writeln!(
        out,
        "{}, {} judged, {} of two or more, {} that belong together{}",
        counted(found.pages as u64, "page", "pages"),
        thousands(found.judged_pages as u64),
        counted(found.gold_clusters as u64, "cluster", "clusters"),
        counted(found.gold_pairs, "pair", "pairs"),
        match found.missing_pages {
            0 => String::new(),
            missing => format!("; {} not in the input", counted(missing as u64, "judged page is", "judged pages are")),
        }
    )?;
    writeln!(out, "\nWith default settings")?;
    writeln!(
        out,
        "{:<11} {:>6}  {:>6} {:>6} {:>6}  {:>6} {:>6} {:>6}  {:>6} {:>6} {:>7}  {:>7} {:>7} {:>9} {:>9}",
        "", "", "pairs", "", "", "clusters", "", "", "Rand", "exact", "strict", "", "bytes", "", ""
    )?;
    writeln!(
        out,
        "{:<11} {:>6}  {:>6} {:>6} {:>6}  {:>6} {:>6} {:>6}  {:>6} {:>6} {:>7}  {:>7} {:>7} {:>9} {:>9}",
        "method",
        "at",
        "prec.",
        "recall",
        "F1",
        "prec.",
        "recall",
        "F1",
        "index",
        "sets",
        "recall",
        "CPU-s",
        "/page",
        "candid.",
        "compared"
    )?;
    for row in &found.methods {
        let clusters = row.clusters.as_ref();
        writeln!(
            out,
            "{:<11} {:>6}  {:>6} {:>6.3} {:>6.3}  {:>6} {:>6} {:>6}  {:>6} {:>6} {:>7}  {:>7.2} {:>7.0} {:>9} {:>9}",
            row.method,
            number(row.threshold),
            precision(&row.pairs),
            row.pairs.recall(),
            row.pairs.f1(),
            cell(clusters.map(|scores| scores.cluster_precision)),
            cell(clusters.map(|scores| scores.cluster_recall)),
            cell(clusters.map(|scores| scores.cluster_f1)),
            cell(clusters.map(|scores| scores.adjusted_rand)),
            cell(clusters.map(|scores| scores.exact_sets)),
            cell(row.strict.as_ref().map(Counts::recall)),
            row.cost.cpu_seconds,
            row.cost.bytes_a_page,
            thousands(row.cost.candidates),
            thousands(row.cost.compared)
        )?;
    }
    writeln!(out, "\nOver all thresholds; chosen on one half of the labels, tested on the other")?;
    writeln!(
        out,
        "{:<11} {:>8} {:>6} {:>6} {:>6}   {:>8} {:>6}  {:>6} {:>6} {:>6}   unit",
        "method", "best at", "prec.", "recall", "F1", "half: at", "F1", "prec.", "recall", "F1"
    )?;
    for row in &found.methods {
        let (best, half) = (&row.best, &row.halves);
        writeln!(
            out,
            "{:<11} {:>8} {:>6} {:>6.3} {:>6.3}   {:>8} {:>6.3}  {:>6} {:>6.3} {:>6.3}   {}",
            row.method,
            number(best.threshold),
            precision(&best.pairs),
            best.pairs.recall(),
            best.pairs.f1(),
            number(half.threshold),
            half.chosen_on.f1(),
            precision(&half.tested_on),
            half.tested_on.recall(),
            half.tested_on.f1(),
            row.unit
        )?;
    }
    print_splits(out, found)?;
    print_equal_recall(out, found)
}

fn print_splits(out: &mut impl Write, found: &Evaluation) -> io::Result<()> {
    let mut splits: Vec<String> = Vec::new();
    for row in &found.methods {
        for (name, counts) in row.splits() {
            splits.push(format!(
                "{:<11} {:<20} {:>6} {:>6} {:>6.3}  {:>9} found, {:>9} to find",
                row.method,
                name,
                precision(&counts),
                cell((counts.gold > 0).then(|| counts.recall())),
                counts.f1(),
                thousands(counts.correct + counts.wrong),
                thousands(counts.gold)
            ));
        }
    }
    if splits.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nBy site and kind, with default settings")?;
    writeln!(out, "{:<11} {:<20} {:>6} {:>6} {:>6}", "method", "pairs of", "prec.", "recall", "F1")?;
    splits.iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn print_equal_recall(out: &mut impl Write, found: &Evaluation) -> io::Result<()> {
    let Some(with) = found.methods.iter().find_map(|row| row.equal_recall.as_ref()) else { return Ok(()) };
    writeln!(out, "\nAt the recall of {}", with.with)?;
    writeln!(out, "{:<11} {:>8} {:>6} {:>6}", "method", "at", "prec.", "recall")?;
    for row in &found.methods {
        match row.equal_recall.as_ref().and_then(|equal| equal.at) {
            Some(at) => writeln!(
                out,
                "{:<11} {:>8} {:>6} {:>6.3}",
                row.method,
                number(at.threshold),
                precision(&at.pairs),
                at.pairs.recall()
            )?,
            None => writeln!(out, "{:<11} never reaches that recall", row.method)?,
        }
    }
    Ok(())
}

fn of_found(arguments: &ClustersArguments, path: &Path) -> Result<Ending> {
    if arguments.output.report.is_some() {
        return Err(
            Error::conflict("report", "needs methods to run, and `found` runs none; leave out one of the two").into()
        );
    }
    let columns = columns(&arguments.columns);
    let gold = Gold::read(&arguments.gold, &columns, arguments.positive)?;
    let found = found_clusters(path, &GoldColumns { kind: None, site: None, ..columns })?;
    let (scores, missing) = evaluate_found(&gold, &found, arguments.allow_missing)?;
    let mut out = io::stdout().lock();
    if arguments.output.json {
        let value = json!({"missing_pages": missing, "clusters": scores});
        writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?;
        return Ok(Ending::Done);
    }
    if missing > 0 {
        let pages = counted(missing as u64, "judged page is in none of the", "judged pages are in none of the");
        writeln!(out, "{pages} found clusters and not counted\n")?;
    }
    writeln!(
        out,
        "pairs      precision {}  recall {:.4}  F1 {:.4}",
        precision(&scores.pairs),
        scores.pairs.recall(),
        scores.pairs.f1()
    )?;
    writeln!(
        out,
        "clusters   precision {:.4}  recall {:.4}  F1 {:.4}   (B³)",
        scores.cluster_precision, scores.cluster_recall, scores.cluster_f1
    )?;
    writeln!(out, "adjusted Rand index   {:.4}", scores.adjusted_rand)?;
    writeln!(out, "clusters found exactly   {:.4}", scores.exact_sets)?;
    Ok(Ending::Done)
}

fn of_pairs(arguments: &PairsArguments) -> Result<Ending> {
    let fields = PairFields {
        left: arguments.left_field.clone(),
        right: arguments.right_field.clone(),
        label: arguments.label_field.clone(),
        score: arguments.score_field.clone(),
    };
    let read = pairs::read(&arguments.file, &fields)?;
    let configs: Vec<Config> = arguments.method.0.iter().cloned().map(Config::new).collect();
    let found = pairs::evaluate_pairs(&read, arguments.positive, &configs, arguments.score_field.as_deref())?;
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
    } else {
        print_pairs(&mut out, &found)?;
    }
    Ok(Ending::Done)
}

fn print_pairs(out: &mut impl Write, found: &PairEvaluation) -> io::Result<()> {
    writeln!(
        out,
        "{}, {} of them near-duplicates (label {} or more)\n",
        counted(found.pairs as u64, "pair", "pairs"),
        found.positive,
        found.positive_from
    )?;
    writeln!(
        out,
        "{:<11} {:>6} {:>6}  {:>7} {:>8}  {:>6} {:>8} {:>6} {:>6}   measure",
        "method", "AUC", "AP", "best F1", "at", "F1", "default", "prec.", "recall"
    )?;
    for row in &found.methods {
        let come = row.as_it_comes.as_ref();
        writeln!(
            out,
            "{:<11} {:>6.3} {:>6.3}  {:>7.3} {:>8}  {:>6} {:>8} {:>6} {:>6}   {}",
            row.method,
            row.ranked.area,
            row.ranked.average_precision,
            row.ranked.best_f1,
            number(row.ranked.best_at),
            cell(come.map(Counts::f1)),
            row.threshold.map_or_else(|| "–".to_owned(), number),
            come.map_or_else(|| "–".to_owned(), precision),
            cell(come.map(Counts::recall)),
            row.measure
        )?;
    }
    Ok(())
}
