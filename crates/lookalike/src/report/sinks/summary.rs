//! `summary.json`: the counts of a run, see [`Summary`](crate::report::summary::Summary).

use std::path::Path;

use crate::error::Result;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::{Findings, files, render};

pub(super) struct SummaryFile;

impl Sink for SummaryFile {
    fn files(&self) -> &'static [&'static str] {
        &[files::SUMMARY]
    }

    fn write(&self, _findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        render::write(&directory.join(files::SUMMARY), render::json(context.summary)?)
    }
}
