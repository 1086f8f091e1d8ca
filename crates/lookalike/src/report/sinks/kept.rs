//! `kept/`: the input without what was dropped. For page files the list `kept.txt`, and copies on request.

use std::path::Path;

use crate::error::Result;
use crate::report::outputs::KeptFormat;
use crate::report::sinks::records::{self, Selection};
use crate::report::sinks::{Sink, SinkContext, kept_dataset};
use crate::report::{Findings, OutputOptions, files};

pub(super) struct Kept;

impl Sink for Kept {
    fn files(&self) -> &'static [&'static str] {
        &[files::KEPT]
    }

    fn applies(&self, _: &Findings<'_>, options: OutputOptions) -> bool {
        !options.no_kept
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let (kept, options) = (directory.join(files::KEPT), context.options);
        records::write(findings, &kept, Selection::Kept, options, |_, _| Ok(()))?;
        if options.kept_format == KeptFormat::Same { kept_dataset::write(findings, &kept) } else { Ok(()) }
    }
}
