//! `lookalike evaluate`

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use lookalike::evaluate::gold::{Gold, GoldColumns};
use lookalike::evaluate::metrics::{ClusterScores, Counts, shown_share};
use lookalike::evaluate::pairs::{PairEvaluation, PairFields};
use lookalike::evaluate::{EvaluateOptions, Evaluation, Grid, evaluate_found, found_clusters, pairs, write_report};
use lookalike::method::GridAxis;
use lookalike::{Config, Error, evaluate};
use serde_json::json;

use crate::Ending;
use crate::evaluate_args::{ClustersArguments, ColumnArguments, EvaluateCommand, PairsArguments};
use crate::method::read_as;
use crate::table::{TextTable, counted, not_an_input, thousands};
use crate::values::EvaluatedMethods;

pub(crate) fn run(command: &EvaluateCommand) -> Result<Ending> {
    match command {
        EvaluateCommand::Clusters(arguments) => match &arguments.found {
            Some(found) => of_found(arguments, found),
            None => of_methods(arguments),
        },
        EvaluateCommand::Pairs(arguments) => of_pairs(arguments),
        EvaluateCommand::Page(arguments) => crate::one_page::run(arguments),
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
    let points = GridAxis::points(&arguments.grid, &EvaluatedMethods::all(&arguments.method))?;
    let configs = points.iter().map(|point| {
        let mut config = Config::new(point.method.clone());
        read_as(&mut config, &arguments.reading)?;
        config.pairs.site = arguments.site;
        Ok(config)
    });
    let mut options = EvaluateOptions::new(&arguments.inputs, configs.collect::<Result<_>>()?);
    options.threads = arguments.threads.map_or(options.threads, usize::from);
    options.memory_bytes = arguments.memory;
    options.allow_missing = arguments.allow_missing;
    options.equal_recall.clone_from(&arguments.equal_recall);
    options.bit_ranges.clone_from(&arguments.bit_ranges);
    if !arguments.grid.is_empty() {
        options.grid = Some(Grid { axes: arguments.grid.clone(), points });
    }
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
    if arguments.talking.json {
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

fn share(value: f64) -> String {
    shown_share(value, 3)
}

/// What methods were run with.
fn settings(found: &Evaluation) -> &'static str {
    if found.is_at_defaults() { "default settings" } else { "the settings in the first column" }
}

/// A number in a table, or a dash if there is none.
fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), share)
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
    writeln!(out, "\nWith {}", settings(found))?;
    let mut table = TextTable::new([
        "method",
        "at",
        "precision",
        "recall",
        "F1",
        "B³ prec.",
        "B³ recall",
        "B³ F1",
        "Rand",
        "sets",
        "strict",
        "CPU-s",
        "bytes/page",
        "candidates",
        "compared",
    ]);
    for row in &found.methods {
        let clusters = |share: fn(&ClusterScores) -> f64| cell(row.clusters.as_ref().map(share));
        table.row([
            row.method.clone(),
            number(row.threshold),
            precision(&row.pairs),
            share(row.pairs.recall()),
            share(row.pairs.f1()),
            clusters(|scores| scores.cluster_precision),
            clusters(|scores| scores.cluster_recall),
            clusters(|scores| scores.cluster_f1),
            clusters(|scores| scores.adjusted_rand),
            clusters(|scores| scores.exact_sets),
            cell(row.strict.as_ref().map(Counts::recall)),
            format!("{:.2}", row.cost.cpu_seconds),
            format!("{:.0}", row.cost.bytes_per_page),
            thousands(row.cost.candidates),
            thousands(row.cost.compared),
        ]);
    }
    table.print(out)?;
    writeln!(out, "\nOver all thresholds; chosen on one half of the labels, tested on the other")?;
    let mut table = TextTable::new([
        "method",
        "best at",
        "precision",
        "recall",
        "F1",
        "half: at",
        "F1",
        "precision",
        "recall",
        "F1",
        "unit",
    ]);
    for (name, row) in found.sweeps() {
        let (best, half) = (&row.best, &row.halves);
        table.row([
            name.to_owned(),
            number(best.threshold),
            precision(&best.pairs),
            share(best.pairs.recall()),
            share(best.pairs.f1()),
            number(half.threshold),
            share(half.chosen_on.f1()),
            precision(&half.tested_on),
            share(half.tested_on.recall()),
            share(half.tested_on.f1()),
            row.unit.to_owned(),
        ]);
    }
    table.print(out)?;
    print_splits(out, found)?;
    print_equal_recall(out, found)?;
    print_contradictions(out, found)
}

fn print_splits(out: &mut impl Write, found: &Evaluation) -> io::Result<()> {
    let mut table = TextTable::new(["method", "pairs of", "precision", "recall", "F1", "found", "to find"]);
    let mut is_split = false;
    for row in &found.methods {
        for (name, counts) in row.splits() {
            is_split = true;
            table.row([
                row.method.clone(),
                name.to_owned(),
                precision(&counts),
                cell((counts.gold > 0).then(|| counts.recall())),
                share(counts.f1()),
                thousands(counts.correct + counts.wrong),
                thousands(counts.gold),
            ]);
        }
    }
    if !is_split {
        return Ok(());
    }
    writeln!(out, "\nBy site and kind, with {}", settings(found))?;
    table.print(out)
}

/// Contradictions that are printed; all are in the JSON.
const SHOWN_CONTRADICTIONS: usize = 10;

fn print_contradictions(out: &mut impl Write, found: &Evaluation) -> io::Result<()> {
    let all = &found.contradictions;
    if all.is_empty() {
        return Ok(());
    }
    let pairs = counted(all.len() as u64, "pair is", "pairs are");
    writeln!(out, "\n{pairs} judged to be different pages, against other evidence")?;
    for row in all.iter().take(SHOWN_CONTRADICTIONS) {
        writeln!(out, "  {}  {}: {}", row.left, row.right, row.reason())?;
    }
    if all.len() > SHOWN_CONTRADICTIONS {
        let more = thousands((all.len() - SHOWN_CONTRADICTIONS) as u64);
        writeln!(out, "  … and {more} more; --json has all of them")?;
    }
    Ok(())
}

fn print_equal_recall(out: &mut impl Write, found: &Evaluation) -> io::Result<()> {
    let Some(with) = found.methods.iter().find_map(|row| row.equal_recall.as_ref()) else { return Ok(()) };
    writeln!(out, "\nAt the recall of {}", with.with)?;
    let mut table = TextTable::new(["method", "at", "precision", "recall"]);
    for (name, row) in found.sweeps() {
        let at = row.equal_recall.as_ref().and_then(|equal| equal.at);
        table.row([
            name.to_owned(),
            at.map_or_else(|| "–".to_owned(), |at| number(at.threshold)),
            at.map_or_else(|| "–".to_owned(), |at| precision(&at.pairs)),
            at.map_or_else(|| "not reached".to_owned(), |at| share(at.pairs.recall())),
        ]);
    }
    table.print(out)
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
    let four = |value: f64| shown_share(value, 4);
    let mut out = io::stdout().lock();
    if arguments.talking.json {
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
        "pairs      precision {}  recall {}  F1 {}",
        precision(&scores.pairs),
        four(scores.pairs.recall()),
        four(scores.pairs.f1())
    )?;
    writeln!(
        out,
        "clusters   precision {}  recall {}  F1 {}   (B³)",
        four(scores.cluster_precision),
        four(scores.cluster_recall),
        four(scores.cluster_f1)
    )?;
    writeln!(out, "adjusted Rand index   {}", four(scores.adjusted_rand))?;
    writeln!(out, "clusters found exactly   {}", four(scores.exact_sets))?;
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
    let points = GridAxis::points(&arguments.grid, &EvaluatedMethods::all(&arguments.method))?;
    let configs: Vec<Config> = points.into_iter().map(|point| Config::new(point.method)).collect();
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
    let is_default = found.methods.iter().all(|row| !row.method.contains('='));
    let own = if is_default { "default" } else { "given" };
    let mut table =
        TextTable::new(["method", "AUC", "AP", "best F1", "at", own, "F1", "precision", "recall", "measure"]);
    for row in &found.methods {
        let default = row.at_default.as_ref();
        table.row([
            row.method.clone(),
            share(row.ranked.area),
            share(row.ranked.average_precision),
            share(row.ranked.best_f1),
            number(row.ranked.best_at),
            row.threshold.map_or_else(|| "–".to_owned(), number),
            cell(default.map(Counts::f1)),
            default.map_or_else(|| "–".to_owned(), precision),
            cell(default.map(Counts::recall)),
            row.measure.to_owned(),
        ]);
    }
    table.print(out)
}
