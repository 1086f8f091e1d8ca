//! Records with fields: what JSON lines, tables and Parquet files have in common.

use std::borrow::Cow;

use crate::error::Result;
use crate::page::{Body, Markup, RawPage};
use crate::read::NotAPage;
use crate::read::format::reader::{Input, Problem};
use crate::read::split::batch::{Place, Visit};

/// The fields of a record that have a role.
#[derive(Debug)]
pub(crate) struct FieldedRecord<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) url: Option<Cow<'a, str>>,
    pub(crate) title: Option<Cow<'a, str>>,
    pub(crate) rank_value: Option<f64>,
    pub(crate) text: Cow<'a, str>,
    pub(crate) markup: Markup,
}

/// Shows a record of `length` bytes as a page, or as skipped.
pub(crate) fn emit<'l>(
    input: &Input<'_>,
    place: &Place<'_>,
    length: u64,
    parse: impl FnOnce() -> Result<FieldedRecord<'l>, Problem>,
    visit: Visit<'_>,
) -> Result<()> {
    let parsed = if length > input.corpus.max_page_bytes { Err(input.too_large(length)) } else { parse() };
    match parsed {
        Ok(fields) => visit(Ok(RawPage {
            source: input.id,
            record: place.record,
            offset: place.offset,
            length,
            id: fields.id.filter(|id| !id.is_empty()),
            url: fields.url.filter(|url| !url.is_empty()),
            title: fields.title.filter(|title| !title.is_empty()),
            rank_value: fields.rank_value,
            ..RawPage::new(Body::Text(fields.text), fields.markup)
        })),
        Err(problem) => {
            let skipped = input.skipped(Some(place.record), place.offset, problem, place.bytes);
            visit(Err(NotAPage::Skipped(skipped)))
        }
    }
}
