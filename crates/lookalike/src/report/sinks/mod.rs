//! Findings → files: one [`Sink`] per output, all of them in [`SINKS`].
//!
//! A new output is one file here that implements [`Sink`], and one line in [`SINKS`].

mod against;
mod annotated;
mod captures;
mod card;
mod clusters;
mod configurations;
mod frames;
mod kept;
mod kept_dataset;
mod page;
mod pages;
mod pairs;
mod records;
mod removed;
mod summary;

use std::fs;
use std::path::Path;

use rayon::prelude::*;

pub(crate) use records::has_copies;

use crate::error::{Error, Result};
use crate::observe::{Observer, check_cancelled};
use crate::report::summary::Summary;
use crate::report::{Findings, OutputOptions, files};

/// One output of a result, made from its findings.
pub(crate) trait Sink: Sync {
    /// The files and directories that it may write, by their names in the result directory.
    fn files(&self) -> &'static [&'static str];

    /// Whether this run has this output.
    fn applies(&self, _findings: &Findings<'_>, _options: OutputOptions) -> bool {
        true
    }

    /// Whether it changes when the same pairs are clustered again. If not, it is copied then, not written.
    fn depends_on_clusters(&self) -> bool {
        true
    }

    /// Writes it into `directory`.
    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()>;
}

/// What sinks need besides the findings.
pub(crate) struct SinkContext<'a> {
    /// The counts.
    pub(crate) summary: &'a Summary,
    /// Where the result will be found.
    pub(crate) output: &'a Path,
    pub(crate) options: OutputOptions,
    /// Learns of the progress.
    pub(crate) observer: &'a dyn Observer,
}

/// Rows between two looks at whether the run is to stop.
const ROWS_BETWEEN_CHECKS: usize = 4096;

impl SinkContext<'_> {
    /// Fails if the run is to stop; to be called for each row.
    fn check_at(&self, row: usize) -> Result<()> {
        if row.is_multiple_of(ROWS_BETWEEN_CHECKS) { check_cancelled(self.observer) } else { Ok(()) }
    }
}

/// All outputs, in lists that are written at the same time, each in its order: tables, which are made from findings alone, the page
/// for people, and copies of records of the input; and, when these are there, what comes last.
static SINKS: [&[&dyn Sink]; 5] = [
    &[&pages::Pages],
    &[
        &frames::Frames,
        &pairs::ACCEPTED,
        &pairs::NEAR_MISSES,
        &clusters::Clusters,
        &against::Against,
        &captures::Captures,
    ],
    &[&page::ReportPage],
    &[&kept::Kept, &removed::Removed, &annotated::Annotated],
    // The card says which of the others were written; the summary marks a result as complete.
    &[&card::Card, &summary::SummaryFile],
];

/// Outputs that are not made from findings: the one is written while records are read, the other when the time
/// that writing took is known.
const LOGS: [&str; 2] = [files::SKIPPED, files::RUN];

/// Everything that a result may consist of, in the order in which it is put into place; the last one makes it
/// complete.
pub(crate) fn result_files() -> Vec<&'static str> {
    LOGS.into_iter().chain(SINKS.concat().into_iter().flat_map(Sink::files).copied()).collect()
}

/// Writes all outputs into `directory`.
pub(super) fn write(findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
    if context.options.no_kept {
        kept::forget(directory)?;
    }
    in_order(
        |sink| match sink.applies(findings, context.options) {
            true => sink.write(findings, directory, context),
            false => Ok(()),
        },
        context,
    )
}

/// Does something with every output, in the order of the lists.
fn in_order(write: impl Fn(&dyn Sink) -> Result<()> + Sync, context: &SinkContext<'_>) -> Result<()> {
    let write_all = |sinks: &[&dyn Sink]| {
        sinks.iter().try_for_each(|&sink| {
            check_cancelled(context.observer)?;
            write(sink)
        })
    };
    let [side_by_side @ .., last] = SINKS;
    let written: Vec<Result<()>> = side_by_side.par_iter().with_max_len(1).map(|sinks| write_all(sinks)).collect();
    written.into_iter().collect::<Result<()>>()?;
    write_all(last)
}

/// Writes what depends on clusters into `directory`, and copies everything else from the result in `earlier`.
pub(super) fn write_again(
    findings: &Findings<'_>,
    earlier: &Path,
    directory: &Path,
    context: &SinkContext<'_>,
) -> Result<()> {
    copy(files::SKIPPED, earlier, directory)?;
    in_order(
        |sink| {
            if !sink.depends_on_clusters() {
                sink.files().iter().try_for_each(|name| copy(name, earlier, directory))
            } else if sink.applies(findings, context.options) {
                sink.write(findings, directory, context)
            } else {
                Ok(())
            }
        },
        context,
    )
}

fn copy(name: &str, from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (from.join(name), to.join(name));
    if from.exists() {
        fs::copy(&from, &to).map_err(Error::io(&to, "write"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_one_writer_and_the_summary_comes_last() {
        let files = result_files();
        assert_eq!(files.last(), Some(&"summary.json"));
        let mut names = files.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), files.len(), "{files:?}");
    }
}
