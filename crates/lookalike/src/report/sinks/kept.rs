//! `kept/`: the input without what was dropped. For page files the list `kept.txt`, and copies on request.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::report::outputs::KeptFormat;
use crate::report::sinks::records::{self, WholeFiles};
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
        let mut whole = WholeFiles::open(&directory.join(files::KEPT_WHOLE), &kept, options)?;
        records::write_kept(findings, &kept, options, &mut whole, context.observer)?;
        if options.kept_format == KeptFormat::Same { kept_dataset::write(findings, &kept) } else { Ok(()) }
    }
}

/// Removes what a run with other options has left.
pub(super) fn forget(directory: &Path) -> Result<()> {
    let kept = directory.join(files::KEPT);
    if kept.exists() { fs::remove_dir_all(&kept).map_err(Error::io(&kept, "remove")) } else { Ok(()) }
}
