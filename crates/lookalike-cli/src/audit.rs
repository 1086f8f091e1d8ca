//! `lookalike evaluate audit`

use std::io::{self, Write};

use anyhow::{Context, Result};
use lookalike::evaluate::audit;
use lookalike::evaluate::audit::{Audit, SampleOptions, TableRow, Verdicts};
use lookalike::evaluate::metrics::shown_share;
use serde_json::json;

use crate::Ending;
use crate::evaluate_args::AuditArguments;
use crate::json;
use crate::table::{TextTable, counted, not_an_input, thousands};

fn share(value: f64) -> String {
    shown_share(value, 3)
}

pub(crate) fn run(arguments: &AuditArguments) -> Result<Ending> {
    if let Some(judgments) = &arguments.judgments {
        let found = audit::judge(&arguments.directory, judgments, arguments.target, arguments.by)?;
        if let Some(report) = &arguments.report {
            not_an_input(&[report, &report.with_extension("csv")], &[judgments])?;
            audit::write_report(&found, report)?;
        }
        if arguments.json {
            json::print(&found)?;
        } else {
            print(&mut io::stdout().lock(), &found, arguments)?;
        }
        return Ok(Ending::Done);
    }
    let mut options = SampleOptions::default();
    (options.pairs, options.seed, options.by) = (arguments.sample as usize, arguments.seed, arguments.by);
    if let Some(path) = &arguments.rubric {
        let rubric = std::fs::read_to_string(path).with_context(|| format!("{}: cannot read", path.display()))?;
        options.rubric = Some(rubric);
    }
    let (html, pairs) = audit::page(&arguments.directory, &options)?;
    let path = arguments.page.clone().unwrap_or_else(|| arguments.directory.join("audit.html"));
    std::fs::write(&path, html).with_context(|| format!("{}: cannot write", path.display()))?;
    if arguments.json {
        json::print(&json!({"page": path, "pairs": pairs}))?;
        return Ok(Ending::Done);
    }
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} has {} to judge: open it in a browser, judge with the keys 1, 2 and 3, save with s, then run\n  lookalike evaluate audit {} --judgments judgments.jsonl",
        path.display(),
        counted(pairs as u64, "pair", "pairs"),
        arguments.directory.display()
    )?;
    Ok(Ending::Done)
}

fn print(out: &mut impl Write, found: &Audit, arguments: &AuditArguments) -> io::Result<()> {
    let mut table =
        TextTable::new(["stratum", "pairs", "judged", "correct", "incorrect", "undecided", "precision", "95 %"]);
    for row in &found.strata {
        table.row([
            row.stratum.name(),
            thousands(row.pairs),
            (row.correct + row.incorrect + row.undecided).to_string(),
            row.correct.to_string(),
            row.incorrect.to_string(),
            row.undecided.to_string(),
            share(row.precision),
            format!("[{}, {}]", share(row.interval.0), share(row.interval.1)),
        ]);
    }
    table.print(out)?;
    print_tables(out, found)?;
    writeln!(out)?;
    match found.precision {
        Some((mean, low, high)) => {
            writeln!(
                out,
                "precision of the near-duplicates: {mean:.3}, between {low:.3} and {high:.3} with 95 % confidence"
            )?;
        }
        None => writeln!(out, "no near-duplicates were judged, so their precision is unknown")?,
    }
    if found.covered < 1.0 && found.precision.is_some() {
        writeln!(
            out,
            "  {:.1} % of them are in strata without judgments, which this does not cover",
            (1.0 - found.covered) * 100.0
        )?;
    }
    if let Some(recall) = found.recall_of_near_misses {
        writeln!(out, "of all correct pairs down to the near misses, {:.1} % were found", recall * 100.0)?;
    }
    match found.suggestion {
        Some(suggestion) => {
            writeln!(
                out,
                "for a precision of {}: --threshold {:.3} ({:.3} on the judgments used to choose it; on the {} held out {:.3}, between {:.3} and {:.3})",
                found.target,
                suggestion.threshold,
                suggestion.chosen_on,
                suggestion.tested.0,
                suggestion.tested_on,
                suggestion.interval.0,
                suggestion.interval.1
            )?;
            if suggestion.is_looser {
                return writeln!(
                    out,
                    "  this is lower than the threshold of the result: run lookalike dedup again with it"
                );
            }
            writeln!(
                out,
                "  lookalike recluster {} --threshold {:.3}",
                arguments.directory.display(),
                suggestion.threshold
            )
        }
        None => {
            let reason = found.withheld.as_deref().unwrap_or("nothing was judged");
            writeln!(out, "no threshold is suggested: {reason}; judge more pairs, or lower --target")
        }
    }
}

/// The tables of the study, as far as they have rows.
fn print_tables(out: &mut impl Write, found: &Audit) -> io::Result<()> {
    let tables = &found.tables;
    writeln!(out, "\nNear-duplicates; unsure ones that are forms with other values in parentheses")?;
    let mut table = TextTable::new(["pairs", "judged", "same", "different", "unsure", "same with forms"]);
    for (name, verdicts) in &tables.near_duplicates {
        let share = |count: u64| format!("{:.2}", count as f64 / verdicts.judged().max(1) as f64);
        table.row([
            name.clone(),
            verdicts.judged().to_string(),
            share(verdicts.correct),
            share(verdicts.incorrect),
            format!("{} ({})", share(verdicts.undecided), share(verdicts.forms)),
            share(verdicts.correct + verdicts.forms),
        ]);
    }
    if tables.large.judged() > 0 {
        let Verdicts { correct, incorrect, undecided, .. } = tables.large;
        table.row([
            "more than 200 words differ".to_owned(),
            tables.large.judged().to_string(),
            correct.to_string(),
            incorrect.to_string(),
            undecided.to_string(),
            String::new(),
        ]);
    }
    table.print(out)?;
    print_rows(
        out,
        "What they differ in, as far as the program can tell: same / different / unsure",
        &tables.differences,
    )?;
    print_rows(out, "Why they are unsure", &tables.reasons)
}

fn print_rows(out: &mut impl Write, title: &str, rows: &[TableRow]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    let counts = |of: &Verdicts| format!("{} / {} / {}", of.correct, of.incorrect, of.undecided);
    let mut table = TextTable::new(["", "all", "of one site"]);
    rows.iter().for_each(|row| table.row([row.name.clone(), counts(&row.all), counts(&row.same_site)]));
    table.print(out)
}
