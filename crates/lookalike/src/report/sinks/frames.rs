//! The table `frames`: what was learnt to be frame, group by group of pages with like markup.

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::report::{Findings, files};
use crate::text::frames::Frames as LearntFrames;

const COLUMNS: [(&str, ColumnType); 8] = [
    ("site", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("group", ColumnType::Whole),
    ("markup?", ColumnType::Text),
    ("block?", ColumnType::Text),
    ("pages", ColumnType::Whole),
    ("contexts", ColumnType::Whole),
    ("example", ColumnType::Text),
];

pub(super) struct Frames;

fn learnt<'f>(findings: &'f Findings<'_>) -> Option<&'f Arc<LearntFrames>> {
    findings.plan.corpus.as_ref()?.frames.as_ref()
}

impl Sink for Frames {
    fn files(&self) -> &'static [&'static str] {
        &[files::FRAMES.parquet, files::FRAMES.jsonl]
    }

    fn applies(&self, findings: &Findings<'_>) -> bool {
        learnt(findings).is_some()
    }

    fn depends_on_clusters(&self) -> bool {
        false
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let Some(frames) = learnt(findings) else { return Ok(()) };
        let mut table = TableWriter::create(directory, files::FRAMES, &COLUMNS, context.options.jsonl)?;
        for row in frames.rows() {
            let block = row.block.map(|block| format!("{block:016x}"));
            table.push(&[
                Cell::Text(Some(&row.site)),
                Cell::Real(Some(row.similarity)),
                Cell::Whole(Some(row.group)),
                Cell::Text(row.markup.as_deref()),
                Cell::Text(block.as_deref()),
                Cell::Whole(Some(row.pages)),
                Cell::Whole(Some(row.contexts)),
                Cell::Text(Some(&row.example)),
            ])?;
        }
        table.finish()
    }
}
