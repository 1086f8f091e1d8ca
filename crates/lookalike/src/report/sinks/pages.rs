//! The table `pages`: every page, where it is, and the first page with the same text.

use std::path::Path;

use crate::error::Result;
use crate::names::Named;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::report::{Findings, files};
use crate::spill::Scratch;
use crate::text::Scope;

const COLUMNS: [(&str, ColumnType); 12] = [
    ("id", ColumnType::Text),
    ("source", ColumnType::Text),
    ("record", ColumnType::Whole),
    ("offset?", ColumnType::Whole),
    ("length", ColumnType::Whole),
    ("url?", ColumnType::Text),
    ("title?", ColumnType::Text),
    ("tokens", ColumnType::Whole),
    ("identity", ColumnType::Text),
    ("revisit_of?", ColumnType::Text),
    ("content?", ColumnType::Text),
    ("text_hash?", ColumnType::Text),
];

pub(super) struct Pages;

impl Sink for Pages {
    fn files(&self) -> &'static [&'static str] {
        &[files::PAGES.parquet, files::PAGES.jsonl]
    }

    fn depends_on_clusters(&self) -> bool {
        false
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let pages = findings.pages;
        let mut table = TableWriter::create(directory, files::PAGES, &COLUMNS, context.options.jsonl)?;
        let (mut own, mut other, mut third) = (Scratch::default(), Scratch::default(), Scratch::default());
        for (page, &first) in findings.sets.first.by_page().filter(|(page, _)| pages.is_page(*page)) {
            context.check_at(page.index())?;
            let strings = pages.strings(page, &mut own)?;
            let place = pages.place(page);
            let text_hash = Some(pages.text_hash(page)).filter(|&hash| hash != 0).map(|hash| format!("{hash:016x}"));
            table.push(&[
                Cell::Text(Some(strings.id)),
                Cell::Text(Some(&findings.source_path(page))),
                Cell::Whole(Some(place.record)),
                Cell::Whole(place.offset),
                Cell::Whole(Some(place.length)),
                Cell::Text(strings.url),
                Cell::Text(strings.title),
                Cell::Whole(Some(u64::from(pages.tokens[page]))),
                Cell::Text(Some(pages.strings(first, &mut other)?.id)),
                Cell::Text(match pages.original(page) {
                    Some(original) => Some(pages.strings(original, &mut third)?.id),
                    None => None,
                }),
                Cell::Text(pages.scope[page].map(Scope::name)),
                Cell::Text(text_hash.as_deref()),
            ])?;
        }
        table.finish()
    }
}
