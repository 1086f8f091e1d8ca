//! `lookalike recluster`

use anyhow::Result;
use lookalike::config::RunOptions;
use lookalike::recluster::recluster;

use crate::Ending;
use crate::args::ReclusterArguments;
use crate::dedup::{available_threads, cluster_mode, default_memory};
use crate::progress::Progress;
use crate::table;

pub(crate) fn run(arguments: &ReclusterArguments) -> Result<Ending> {
    let options = RunOptions {
        inputs: vec![arguments.directory.to_string_lossy().into_owned()],
        output: arguments.output.clone().unwrap_or_else(|| arguments.directory.clone()),
        memory_bytes: default_memory(),
        threads: available_threads(),
        strict: false,
        force: arguments.force,
        jsonl: false,
        copy_kept: arguments.copy_kept,
        seeds: Vec::new(),
    };
    let progress = Progress::new(&arguments.talking)?;
    let cluster = arguments.cluster.map(cluster_mode);
    let outcome = recluster(&arguments.directory, arguments.threshold, cluster, &options, &progress)?;
    table::print(&outcome, &arguments.talking)?;
    Ok(Ending::Done)
}
