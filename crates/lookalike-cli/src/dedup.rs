//! `lookalike dedup`

use std::io::{self, Write};

use anyhow::Result;
use lookalike::error::Error;
use lookalike::job::RunOptions;
use lookalike::job::dedup::dedup;
use lookalike::job::estimate::{Estimate, estimate};
use lookalike::machine;
use lookalike::size::format_bytes;
use lookalike::work_dir::WORK;

use crate::Ending;
use crate::args::{DedupArguments, RunningArguments};
use crate::progress::Progress;
use crate::{method, table};

/// Sources that a dry run lists by name.
const LISTED_SOURCES: usize = 10;

pub(crate) fn run(arguments: DedupArguments) -> Result<Ending> {
    let config = method::config(&arguments)?;
    let options = RunOptions {
        memory_bytes: arguments.running.memory.unwrap_or_else(default_memory),
        threads: threads(&arguments.running),
        strict: arguments.reading.strict,
        force: arguments.running.force,
        jsonl: arguments.groups.jsonl,
        copy_kept: arguments.groups.copy_kept,
        revisit: arguments.groups.revisit,
        resume: arguments.running.resume,
        seeds: arguments.seeds,
        against: arguments.groups.against,
        output: arguments.output,
        inputs: arguments.inputs,
    };
    if arguments.running.dry_run {
        print_estimate(&estimate(&config, &options)?, &options)?;
        return Ok(Ending::Done);
    }
    let progress = Progress::new(&arguments.talking)?;
    let outcome = dedup(&config, &options, &progress).inspect_err(|error| {
        let work = options.output.join(WORK);
        if work.exists() && !error.is_usage() && !matches!(error, Error::Locked { .. }) {
            // The error itself is printed after this.
            let _ = writeln!(
                io::stderr(),
                "what was read so far is in {}; run the same command with --resume to continue",
                work.display()
            );
        }
    })?;
    table::print(&outcome, &arguments.talking)?;
    Ok(if outcome.summary.skipped.is_empty() { Ending::Done } else { Ending::Skipped })
}

/// Half of the memory of the machine or container, or 2 GiB if the system does not report it.
pub(crate) fn default_memory() -> u64 {
    machine::memory_bytes().map_or(2 << 30, |bytes| bytes / 2)
}

fn threads(running: &RunningArguments) -> usize {
    running.threads.map_or_else(available_threads, usize::from)
}

pub(crate) fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn print_estimate(estimate: &Estimate, options: &RunOptions) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let corpus = &estimate.corpus;
    let files = if corpus.sources.len() == 1 { "file" } else { "files" };
    writeln!(out, "would read {} {files}, {}:", corpus.sources.len(), format_bytes(estimate.bytes))?;
    for source in corpus.sources.iter().take(LISTED_SOURCES) {
        writeln!(out, "  {:<8} {:>9}  {}", source.format.name(), format_bytes(source.bytes), source.display)?;
    }
    if corpus.sources.len() > LISTED_SOURCES {
        writeln!(out, "  … and {} more", corpus.sources.len() - LISTED_SOURCES)?;
    }
    if corpus.ignored_files > 0 {
        let files = table::counted(corpus.ignored_files, "file that is not a page", "files that are not pages");
        writeln!(out, "would ignore {files} (images, style sheets, …)")?;
    }
    let about = if estimate.exact { "" } else { "about " };
    writeln!(out)?;
    writeln!(out, "pages    {about}{} of {:.0} words", table::thousands(estimate.pages), estimate.tokens_per_page)?;
    if estimate.skipped > 0 {
        let records = table::counted(estimate.skipped, "record", "records");
        writeln!(out, "skipped  {records} of the sample cannot be used")?;
    }
    if let Some(bands) = estimate.plan.sketch.bands() {
        writeln!(out, "bands    {} of {} min-values", bands.bands, bands.rows)?;
    }
    let threads = table::counted(options.threads as u64, "thread", "threads");
    writeln!(out, "time     about {} on {threads}", table::duration(estimate.seconds))?;
    writeln!(
        out,
        "memory   about {} of {} allowed (--memory); at least {}",
        format_bytes(estimate.memory_bytes),
        format_bytes(options.memory_bytes),
        format_bytes(estimate.memory_floor_bytes)
    )?;
    writeln!(out, "disk     up to {} in {}", format_bytes(estimate.disk_bytes), options.output.display())?;
    if estimate.memory_floor_bytes > options.memory_bytes {
        writeln!(out, "\nthis would be refused: --memory is less than the pages need")?;
    }
    Ok(())
}
