//! `lookalike transfer`

use std::io::{self, Write};

use anyhow::Result;
use lookalike::config::Config;
use lookalike::method::Simhash;
use lookalike::report::files;
use lookalike::transfer::{Report, TransferOptions, transfer};

use crate::Ending;
use crate::dedup::available_threads;
use crate::method::read_as;
use crate::progress::Progress;
use crate::search_args::TransferArguments;
use crate::table::thousands;

pub(crate) fn run(arguments: &TransferArguments) -> Result<Ending> {
    let mut config = Config::new(Simhash::default());
    config.method.set("radius", &arguments.radius.to_string())?;
    read_as(&mut config, &arguments.reading);
    let options = TransferOptions {
        qrels: arguments.qrels.clone(),
        from: arguments.from.clone(),
        to: arguments.to.clone(),
        output: arguments.output.clone(),
        config,
        threshold: arguments.threshold,
        allow_missing: arguments.allow_missing,
        verified_only: arguments.verified_only,
        all_near: arguments.all_near,
        on_conflict: arguments.on_conflict,
        force: arguments.force,
        threads: arguments.threads.map_or_else(available_threads, usize::from),
    };
    let report = transfer(&options, &Progress::new(&arguments.talking)?)?;
    if !arguments.talking.quiet {
        print(&mut io::stdout().lock(), &report, arguments)?;
    }
    if report.skipped > 0 {
        writeln!(
            io::stderr(),
            "{} records could not be used and were passed over (--log lists them)",
            thousands(report.skipped)
        )?;
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
        "{} judgments of {} pages{missing}; A has {} pages, B {}",
        thousands(report.judgments),
        thousands(report.judged_pages),
        thousands(report.from_pages),
        thousands(report.to_pages)
    )?;
    let mut row = |what: &str, count: u64, note: String| writeln!(out, "  {what:<44} {:>9}  {note}", thousands(count));
    row("judged pages whose URL B has", report.with_url, share(report.with_url, judged))?;
    row(
        "  … and whose page there is a near-duplicate",
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
        row("pages that judgments disagree about", report.conflicts, report.conflict_rule.to_owned())?;
    }
    let on_url_alone = report.with_url - report.with_url_near;
    if on_url_alone > 0 && !arguments.verified_only {
        writeln!(
            out,
            "{} judged pages were carried over on their URL alone, though the page has changed or has too few words; --verified-only leaves them out",
            thousands(on_url_alone)
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
    writeln!(out, "\n{} holds {judgments}, {mapping} and {page}", arguments.output.display())
}
