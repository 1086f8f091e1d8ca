//! The table `frames`: what was learnt to be frame, group by group of pages with like markup.

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::names::Named;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::report::{Findings, OutputOptions, files};
use crate::text::frames::Frames as LearntFrames;

const COLUMNS: [(&str, ColumnType); 10] = [
    ("site", ColumnType::Text),
    ("grouped_by", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("group", ColumnType::Whole),
    ("markup?", ColumnType::Text),
    ("believes_markup?", ColumnType::Truth),
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

    fn applies(&self, findings: &Findings<'_>, _: OutputOptions) -> bool {
        findings.config.leaves_out_frames()
    }

    fn depends_on_clusters(&self) -> bool {
        false
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let mut table = TableWriter::create(directory, files::FRAMES, &COLUMNS, context.options.jsonl)?;
        // There is nothing to learn from plain text.
        for row in learnt(findings).into_iter().flat_map(|frames| frames.rows()) {
            let block = row.block.map(|block| format!("{block:016x}"));
            table.push(&[
                Cell::Text(Some(&row.site)),
                Cell::Text(Some(row.grouped_by.name())),
                Cell::Real(Some(row.similarity)),
                Cell::Whole(Some(row.group)),
                Cell::Text(row.markup.as_deref()),
                Cell::Truth(row.believes_markup),
                Cell::Text(block.as_deref()),
                Cell::Whole(Some(row.pages)),
                Cell::Whole(Some(row.contexts)),
                Cell::Text(Some(&row.example)),
            ])?;
        }
        table.finish()
    }
}
