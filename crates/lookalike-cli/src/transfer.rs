//! `lookalike transfer`

use std::io::{self, Write};

use anyhow::Result;
use lookalike::result::files;
use lookalike::transfer;
use lookalike::transfer::{Report, TransferOptions};
use serde_json::json;

use crate::Ending;
use crate::json;
use crate::method::read_as;
use crate::progress::Progress;
use crate::search_args::TransferArguments;
use crate::table::{counted, thousands};

pub(crate) fn run(arguments: &TransferArguments) -> Result<Ending> {
    let paths = (arguments.qrels.clone(), arguments.output.clone());
    let mut options = TransferOptions::new(paths.0, arguments.from.clone(), arguments.to.clone(), paths.1);
    options.config.method.set("radius", &arguments.radius.to_string())?;
    read_as(&mut options.config, &arguments.reading)?;
    options.threshold = arguments.threshold;
    options.allow_missing = arguments.allow_missing;
    options.verified_only = arguments.verified_only;
    options.all_near = arguments.all_near;
    options.on_conflict = arguments.on_conflict;
    options.domains = arguments.domains.clone();
    options.force = arguments.force;
    options.replace = arguments.replace;
    options.threads = arguments.threads.map_or(options.threads, usize::from);
    let report = transfer(&options, &Progress::new(&arguments.talking)?)?;
    if !arguments.talking.quiet {
        print(&mut io::stderr().lock(), &report, arguments)?;
    }
    if arguments.talking.json {
        let mut document = serde_json::to_value(&report)?;
        document["output"] = json!(arguments.output);
        json::print(&document)?;
    }
    if report.skipped > 0 {
        writeln!(io::stderr(), "{} skipped (--log lists them)", counted(report.skipped, "record was", "records were"))?;
        return Ok(Ending::Skipped);
    }
    Ok(Ending::Done)
}

fn print(out: &mut impl Write, report: &Report, arguments: &TransferArguments) -> io::Result<()> {
    let share = |part: u64, whole: u64| format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64);
    let judged = report.judged_pages_found;
    let missing = match report.judged_pages - judged {
        0 => String::new(),
        missing => format!(", {} of them not in A", thousands(missing)),
    };
    writeln!(
        out,
        "{} of {}{missing}; A has {}, B {}",
        counted(report.judgments, "judgment", "judgments"),
        counted(report.judged_pages, "page", "pages"),
        counted(report.from_pages, "page", "pages"),
        thousands(report.to_pages)
    )?;
    let mut row = |what: &str, count: u64, note: String| writeln!(out, "  {what:<44} {:>9}  {note}", thousands(count));
    row("judged pages with the same URL in B", report.with_url, share(report.with_url, judged))?;
    row(
        "  … where the page in B is a near-duplicate",
        report.with_url_near,
        format!(
            "{} of those, {} of all",
            share(report.with_url_near, report.with_url),
            share(report.with_url_near, judged)
        ),
    )?;
    row("found by content only", report.by_content_only, share(report.by_content_only, judged))?;
    row("judged pages carried over", report.carried_pages, share(report.carried_pages, judged))?;
    row("judgments of pages of B", report.carried_judgments, String::new())?;
    if report.conflicts > 0 {
        row("pages with conflicting judgments", report.conflicts, report.conflict_rule.to_owned())?;
    }
    if report.contradictions > 0 {
        let note = format!("near-duplicates with different grades, in {}", files::CONTRADICTIONS);
        row("pairs of judged pages that contradict", report.contradictions, note)?;
    }
    let on_url_alone = report.with_url - report.with_url_near;
    if on_url_alone > 0 && !arguments.verified_only {
        writeln!(
            out,
            "{} carried over by URL alone, because the page has changed or has too few words; --verified-only leaves these out",
            counted(on_url_alone, "judged page was", "judged pages were")
        )?;
    }
    if !report.ngrams.is_empty() {
        writeln!(
            out,
            "\n{:>7}  {:>14} {:>8} {:>9}  {:>14} {:>8} {:>9}",
            "n-grams", "SimHash: pages", "of URLs", "verified", "MinHash: pages", "of URLs", "verified"
        )?;
        for row in &report.ngrams {
            writeln!(
                out,
                "{:>7}  {:>14} {:>8.3} {:>9.3}  {:>14} {:>8.3} {:>9.3}",
                row.ngram,
                thousands(row.simhash.pages),
                row.simhash.share_of_urls,
                row.simhash.verified,
                thousands(row.minhash.pages),
                row.minhash.share_of_urls,
                row.minhash.verified
            )?;
        }
    }
    let (judgments, mapping, page) = (files::QRELS, files::MAPPING.parquet, files::REPORT);
    writeln!(out, "\nresult in {}: {judgments}, {mapping}, {page}", arguments.output.display())
}
