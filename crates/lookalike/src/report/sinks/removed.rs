//! `removed/`: the dropped records, byte for byte, and the table `removed`: what each of them was dropped for.

use std::path::Path;

use crate::error::Result;
use crate::report::sinks::records;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::report::{Findings, OutputOptions, files};
use crate::spill::Scratch;

const COLUMNS: [(&str, ColumnType); 9] = [
    ("id", ColumnType::Text),
    ("source", ColumnType::Text),
    ("record", ColumnType::Whole),
    ("kept_id", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("page_similarity?", ColumnType::Real),
    ("kind", ColumnType::Text),
    ("removed_file?", ColumnType::Text),
    ("removed_record?", ColumnType::Whole),
];

pub(super) struct Removed;

impl Sink for Removed {
    fn files(&self) -> &'static [&'static str] {
        &[files::REMOVED, files::REMOVED_RECORDS.parquet, files::REMOVED_RECORDS.jsonl]
    }

    fn applies(&self, _: &Findings<'_>, options: OutputOptions) -> bool {
        options.removed
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let pages = findings.pages;
        let mut table = TableWriter::create(directory, files::REMOVED_RECORDS, &COLUMNS, context.options.jsonl)?;
        let (mut own, mut other) = (Scratch::default(), Scratch::default());
        let removed = directory.join(files::REMOVED);
        records::write_removed(findings, &removed, context.options, context.observer, |page, written| {
            let fate = findings.fates.of(page);
            table.push(&[
                Cell::Text(Some(pages.strings(page, &mut own)?.id)),
                Cell::Text(Some(&findings.source_path(page))),
                Cell::Whole(Some(pages.place(page).record)),
                Cell::Text(Some(pages.strings(fate.kept, &mut other)?.id)),
                Cell::Real(Some(fate.similarity)),
                Cell::Real(fate.page_similarity),
                Cell::Text(Some(fate.kind.name())),
                Cell::Text(written.map(|(file, _)| file)),
                Cell::Whole(written.map(|(_, record)| record)),
            ])
        })?;
        table.finish()
    }
}
