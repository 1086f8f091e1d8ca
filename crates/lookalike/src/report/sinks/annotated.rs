//! `annotated/`: the input with what became of each page added to its record.

use std::path::Path;

use crate::error::Result;
use crate::report::sinks::{Sink, SinkContext, records};
use crate::report::{Findings, OutputOptions, files};

pub(super) struct Annotated;

impl Sink for Annotated {
    fn files(&self) -> &'static [&'static str] {
        &[files::ANNOTATED]
    }

    fn applies(&self, _: &Findings<'_>, options: OutputOptions) -> bool {
        options.annotate
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        records::write_annotated(findings, &directory.join(files::ANNOTATED), context.options, context.observer)
    }
}
