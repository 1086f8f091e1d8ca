//! The table `clusters`: what became of each page.

use std::path::Path;

use crate::error::Result;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::report::{Findings, files};
use crate::spill::Scratch;

const COLUMNS: [(&str, ColumnType); 8] = [
    ("id", ColumnType::Text),
    ("cluster", ColumnType::Text),
    ("kept", ColumnType::Truth),
    ("kept_id", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("page_similarity?", ColumnType::Real),
    ("kind", ColumnType::Text),
    ("component", ColumnType::Text),
];

/// Pages between two reports of progress.
const PROGRESS_PAGES: usize = 4096;

pub(super) struct Clusters;

impl Sink for Clusters {
    fn files(&self) -> &'static [&'static str] {
        &[files::CLUSTERS.parquet, files::CLUSTERS.jsonl]
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let pages = findings.pages;
        let mut table = TableWriter::create(directory, files::CLUSTERS, &COLUMNS, context.options.jsonl)?;
        let (mut own, mut other, mut third) = (Scratch::default(), Scratch::default(), Scratch::default());
        for (page, fate) in findings.fates.by_page().filter(|(page, _)| pages.is_page(*page)) {
            context.check_at(page.index())?;
            let kept = pages.strings(fate.kept, &mut other)?.id;
            table.push(&[
                Cell::Text(Some(pages.strings(page, &mut own)?.id)),
                Cell::Text(Some(kept)),
                Cell::Truth(Some(fate.keeps(page))),
                Cell::Text(Some(kept)),
                Cell::Real(Some(fate.similarity)),
                Cell::Real(fate.page_similarity),
                Cell::Text(Some(fate.kind.name())),
                Cell::Text(Some(pages.strings(findings.component[page], &mut third)?.id)),
            ])?;
            if page.index().is_multiple_of(PROGRESS_PAGES) && page.index() > 0 {
                context.observer.advance(PROGRESS_PAGES as u64, PROGRESS_PAGES as u64);
            }
        }
        table.finish()
    }
}
