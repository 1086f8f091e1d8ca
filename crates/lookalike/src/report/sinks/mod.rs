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

/// All outputs, in the order in which they are written. The last one marks a result as complete.
static SINKS: [&dyn Sink; 13] = [
    &pages::Pages,
    &frames::Frames,
    &pairs::ACCEPTED,
    &pairs::NEAR_MISSES,
    &clusters::Clusters,
    &against::Against,
    &captures::Captures,
    &kept::Kept,
    &removed::Removed,
    &annotated::Annotated,
    &card::Card,
    &page::ReportPage,
    &summary::SummaryFile,
];

/// Outputs that are not made from findings: the one is written while records are read, the other when the time
/// that writing took is known.
const LOGS: [&str; 2] = [files::SKIPPED, files::RUN];

/// Everything that a result may consist of, in the order in which it is put into place; the last one makes it
/// complete.
pub(crate) fn result_files() -> Vec<&'static str> {
    LOGS.into_iter().chain(SINKS.iter().flat_map(|sink| sink.files()).copied()).collect()
}

/// Writes all outputs into `directory`.
pub(super) fn write(findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
    if context.options.no_kept {
        kept::forget(directory)?;
    }
    let applying = SINKS.iter().filter(|sink| sink.applies(findings, context.options));
    { applying }.try_for_each(|sink| {
        check_cancelled(context.observer)?;
        sink.write(findings, directory, context)
    })
}

/// Writes what depends on clusters into `directory`, and copies everything else from the result in `earlier`.
pub(super) fn write_again(
    findings: &Findings<'_>,
    earlier: &Path,
    directory: &Path,
    context: &SinkContext<'_>,
) -> Result<()> {
    copy(files::SKIPPED, earlier, directory)?;
    for sink in SINKS {
        if !sink.depends_on_clusters() {
            sink.files().iter().try_for_each(|name| copy(name, earlier, directory))?;
        } else if sink.applies(findings, context.options) {
            check_cancelled(context.observer)?;
            sink.write(findings, directory, context)?;
        }
    }
    Ok(())
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
