//! `lookalike recluster`

use anyhow::Result;
use lookalike::result::Thresholds;
use lookalike::{Regrouping, RunOptions, recluster};

use crate::Ending;
use crate::args::ReclusterArguments;
use crate::progress::Progress;

pub(crate) fn run(arguments: ReclusterArguments) -> Result<Ending> {
    let input = arguments.directory.to_string_lossy().into_owned();
    let output = arguments.output.clone().unwrap_or_else(|| arguments.directory.clone());
    let mut options = RunOptions::new([input], output);
    options.force = arguments.force;
    options.replace = arguments.replace;
    options.outputs = arguments.outputs.options();
    let progress = Progress::new(&arguments.talking)?;
    let mut regrouping = Regrouping::from(Thresholds {
        threshold: arguments.threshold,
        within_site: arguments.within_site,
        between_sites: arguments.between_sites,
    });
    (regrouping.cluster, regrouping.keep) = (arguments.cluster, arguments.keep);
    regrouping.prefer = Some(arguments.prefer).filter(|patterns| !patterns.is_empty());
    let outcome = recluster(&arguments.directory, regrouping, &options, &progress)?;
    progress.report(&outcome, &arguments.talking)?;
    Ok(Ending::Done)
}
