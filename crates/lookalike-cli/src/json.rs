//! What commands print with `--json`: one document on standard output, for programs.

use std::io::{self, Write};

use anyhow::{Context, Result};
use lookalike::RunOptions;
use lookalike::result::files::RUN;
use lookalike::result::{Estimate, Outcome};
use serde::Serialize;
use serde_json::{Value, json};

/// Prints a document.
pub(crate) fn print(document: &impl Serialize) -> Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// A run: `summary.json`, with the directory as `output` and `run.json` as `run`.
pub(crate) fn of_run(outcome: &Outcome) -> Result<Value> {
    let path = outcome.output.join(RUN);
    let bytes = std::fs::read(&path).with_context(|| format!("{}: cannot read", path.display()))?;
    let mut document = serde_json::to_value(&outcome.summary)?;
    document["output"] = json!(outcome.output);
    document["run"] = serde_json::from_slice(&bytes).with_context(|| format!("{}: cannot read", path.display()))?;
    Ok(document)
}

/// A dry run.
pub(crate) fn of_estimate(estimate: &Estimate, options: &RunOptions) -> Value {
    let corpus = &estimate.corpus;
    let sources = corpus
        .sources
        .iter()
        .map(|source| json!({"source": source.display, "format": source.format.name(), "bytes": source.bytes}));
    json!({
        "output": options.output,
        "sources": sources.collect::<Vec<_>>(),
        "bytes": estimate.bytes,
        "ignored_files": corpus.ignored_files,
        "pages": estimate.pages,
        "exact": estimate.exact,
        "words_per_page": estimate.tokens_per_page,
        "skipped_in_sample": estimate.skipped,
        "seconds": estimate.seconds,
        "packing_seconds": estimate.packing_seconds,
        "threads": options.threads,
        "memory_bytes": estimate.memory_bytes,
        "memory_floor_bytes": estimate.memory_floor_bytes,
        "memory_limit_bytes": options.memory_limit(),
        "disk_bytes": estimate.disk_bytes,
    })
}
