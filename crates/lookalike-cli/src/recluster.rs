//! `lookalike recluster`

use anyhow::Result;
use lookalike::job::RunOptions;
use lookalike::job::recluster::recluster;

use crate::Ending;
use crate::args::ReclusterArguments;
use crate::dedup::{available_threads, default_memory};
use crate::progress::Progress;
use crate::table;

pub(crate) fn run(arguments: &ReclusterArguments) -> Result<Ending> {
    let input = arguments.directory.to_string_lossy().into_owned();
    let output = arguments.output.clone().unwrap_or_else(|| arguments.directory.clone());
    let options = RunOptions {
        memory_bytes: default_memory(),
        threads: available_threads(),
        force: arguments.force,
        copy_kept: arguments.copy_kept,
        revisit: arguments.revisit,
        ..RunOptions::new(vec![input], output)
    };
    let progress = Progress::new(&arguments.talking)?;
    let cluster = arguments.cluster;
    let outcome = recluster(&arguments.directory, arguments.threshold, cluster, &options, &progress)?;
    table::print(&outcome, &arguments.talking)?;
    Ok(Ending::Done)
}
