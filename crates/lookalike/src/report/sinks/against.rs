//! The table `against`: what was dropped because another corpus has it, with both ids.

use std::path::Path;

use crate::error::Result;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::report::{Findings, OutputOptions, files};
use crate::spill::Scratch;

const COLUMNS: [(&str, ColumnType); 4] = [
    ("id", ColumnType::Text),
    ("against_id", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("kind", ColumnType::Text),
];

pub(super) struct Against;

impl Sink for Against {
    fn files(&self) -> &'static [&'static str] {
        &[files::AGAINST.parquet, files::AGAINST.jsonl]
    }

    fn applies(&self, findings: &Findings<'_>, _: OutputOptions) -> bool {
        findings.against.is_some()
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let Some((_, names)) = findings.against else { return Ok(()) };
        let mut table = TableWriter::create(directory, files::AGAINST, &COLUMNS, context.options.jsonl)?;
        let mut scratch = Scratch::default();
        for (page, fate) in findings.fates.by_page().filter(|(page, fate)| !fate.keeps(*page)) {
            if let Some(theirs) = names.get(&fate.kept).filter(|_| !names.contains_key(&page)) {
                table.push(&[
                    Cell::Text(Some(findings.pages.strings(page, &mut scratch)?.id)),
                    Cell::Text(Some(theirs)),
                    Cell::Real(Some(fate.similarity)),
                    Cell::Text(Some(fate.kind.name())),
                ])?;
            }
        }
        table.finish()
    }
}
