//! `lookalike dedup`

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use lookalike::config::format_bytes;
use lookalike::result::Estimate;
use lookalike::result::files::can_resume;
use lookalike::{Error, RunOptions, dedup, estimate};

use crate::Ending;
use crate::args::{DedupArguments, RunningArguments};
use crate::progress::Progress;
use crate::{interrupt, json, method, table};

/// How standard input is named.
const STDIN: &str = "-";
/// Sources that a dry run lists by name.
const LISTED_SOURCES: usize = 10;

pub(crate) fn run(arguments: DedupArguments) -> Result<Ending> {
    let config = method::config(&arguments)?;
    let mut inputs = arguments.inputs;
    if let Some(list) = &arguments.files_from {
        inputs.extend(listed(list, &inputs)?);
    }
    let mut options = RunOptions::new(inputs, arguments.output);
    set_resources(&mut options, &arguments.running);
    options.strict = arguments.reading.strict;
    options.force = arguments.running.force;
    options.replace = arguments.running.replace;
    options.resume = arguments.running.resume;
    options.outputs = arguments.outputs.options();
    options.against = arguments.groups.against;
    options.seeds = arguments.seeds;
    if arguments.running.dry_run {
        let estimate = estimate(&config, &options)?;
        match arguments.talking.json {
            true => json::print(&json::of_estimate(&estimate, &options))?,
            false => print_estimate(&estimate, &options)?,
        }
        return Ok(Ending::Done);
    }
    let progress = Progress::new(&arguments.talking)?;
    interrupt::explain(&options.output)?;
    let outcome = match dedup(&config, &options, &progress) {
        Err(complete @ Error::Complete { .. }) => {
            if !arguments.talking.quiet {
                writeln!(io::stderr(), "{complete}")?;
            }
            return Ok(Ending::Done);
        }
        outcome => outcome.inspect_err(|error| {
            // The same command would fail in the same way again.
            let fails_again = error.is_usage()
                || matches!(error, Error::Locked { .. } | Error::MemoryFloor { .. } | Error::NoPages { .. });
            if can_resume(&options.output) && !fails_again {
                // The error itself is printed after this.
                let _ = writeln!(io::stderr(), "{}", interrupt::how_to_go_on(&options.output));
            }
        })?,
    };
    progress.report(&outcome, &arguments.talking)?;
    Ok(if outcome.summary.skipped.is_empty() { Ending::Done } else { Ending::Skipped })
}

/// The paths in a list, one per line.
fn listed(list: &Path, inputs: &[String]) -> Result<Vec<String>> {
    let is_stdin = list == Path::new(STDIN);
    if is_stdin && inputs.iter().any(|input| input == STDIN) {
        return Err(Error::conflict("files_from", "standard input is either the list of files or a file").into());
    }
    let text = if is_stdin { io::read_to_string(io::stdin()) } else { fs::read_to_string(list) };
    let text = text.map_err(|error| Error::bad_input(list, format!("cannot be read as a list of files: {error}")))?;
    let paths: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if paths.is_empty() && inputs.is_empty() {
        return Err(Error::bad_input(list, "names no file").into());
    }
    Ok(paths)
}

fn set_resources(options: &mut RunOptions, running: &RunningArguments) {
    options.memory_bytes = running.memory;
    options.threads = running.threads.map_or(options.threads, usize::from);
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
    if let Some(bands) = estimate.bands {
        writeln!(out, "bands    {} of {} min-values", bands.bands, bands.rows)?;
    }
    let threads = table::counted(options.threads as u64, "thread", "threads");
    writeln!(out, "time     about {} on {threads}", table::duration(estimate.seconds))?;
    if estimate.packing_seconds > 0.0 {
        let seconds = table::duration(estimate.packing_seconds);
        writeln!(
            out,
            "packing  about {seconds} of that: xz, on one thread, and bzip2; --kept-compression zstd is faster"
        )?;
    }
    writeln!(
        out,
        "memory   about {} of {} allowed (--memory); at least {}",
        format_bytes(estimate.memory_bytes),
        format_bytes(options.memory_limit()),
        format_bytes(estimate.memory_floor_bytes)
    )?;
    writeln!(out, "disk     up to {} in {}", format_bytes(estimate.disk_bytes), options.output.display())?;
    if estimate.memory_floor_bytes > options.memory_limit() {
        writeln!(out, "\nthis would be refused: --memory is less than the pages need")?;
    }
    Ok(())
}
