//! `lookalike recluster`

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use lookalike::result::files::DECISIONS;
use lookalike::result::{GroupDecision, Thresholds, read_decisions};
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
    regrouping.decisions = decisions(arguments.decisions, &arguments.directory)?;
    let outcome = recluster(&arguments.directory, regrouping, &options, &progress)?;
    progress.report(&outcome, &arguments.talking)?;
    Ok(Ending::Done)
}

/// The decisions that are to be followed; without a file's name, those of the result.
fn decisions(asked: Option<Option<PathBuf>>, directory: &Path) -> Result<Option<Vec<GroupDecision>>> {
    let Some(path) = asked else { return Ok(None) };
    let is_own = path.is_none();
    let path = path.unwrap_or_else(|| directory.join(DECISIONS));
    if is_own && !path.exists() {
        bail!(
            "{}: there are no decisions yet; make them in lookalike view {}, or name a file: --decisions=FILE",
            path.display(),
            directory.display()
        );
    }
    let decisions = read_decisions(&path)?;
    let is_empty = |decision: &&GroupDecision| !decision.keep && decision.apart_from.is_none();
    if let Some(decision) = decisions.iter().find(is_empty) {
        bail!(
            "{}: nothing is decided about '{}': expected \"keep\": true, or \"apart_from\" with an id",
            path.display(),
            decision.page
        );
    }
    Ok(Some(decisions))
}
