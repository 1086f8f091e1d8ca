//! `lookalike evaluate audit`

use std::io::{self, Write};

use anyhow::{Context, Result};
use lookalike::evaluate::audit;
use lookalike::evaluate::audit::Audit;

use crate::Ending;
use crate::evaluate_args::AuditArguments;
use crate::table::{TextTable, counted, thousands};

pub(crate) fn run(arguments: &AuditArguments) -> Result<Ending> {
    let mut out = io::stdout().lock();
    if let Some(judgments) = &arguments.judgments {
        let found = audit::judge(&arguments.directory, judgments, arguments.target)?;
        if arguments.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
        } else {
            print(&mut out, &found, arguments)?;
        }
        return Ok(Ending::Done);
    }
    let (html, pairs) = audit::page(&arguments.directory, arguments.sample as usize, arguments.seed)?;
    let path = arguments.page.clone().unwrap_or_else(|| arguments.directory.join("audit.html"));
    std::fs::write(&path, html).with_context(|| format!("{}: cannot write", path.display()))?;
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
            format!("{:.3}", row.precision),
            format!("[{:.3}, {:.3}]", row.interval.0, row.interval.1),
        ]);
    }
    table.print(out)?;
    if !found.reasons.is_empty() {
        let reasons: Vec<String> = found.reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        writeln!(out, "reasons for undecided: {}", reasons.join(", "))?;
    }
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
        None => writeln!(
            out,
            "no threshold reaches a precision of {} on these judgments; judge more pairs, or lower --target",
            found.target
        ),
    }
}
