//! Records with fields: what JSON lines, tables and Parquet files have in common.

use std::borrow::Cow;

use crate::error::Result;
use crate::page::{Body, Markup, RawPage, looks_like_html};
use crate::read::NotAPage;
use crate::read::fields::{Ranked, ReadAs};
use crate::read::format::reader::{Input, Problem};
use crate::read::split::batch::{Place, Visit};

/// The fields of a record that have a role.
#[derive(Debug)]
pub(crate) struct FieldedRecord<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) url: Option<Cow<'a, str>>,
    pub(crate) title: Option<Cow<'a, str>>,
    pub(crate) rank: Ranked<'a>,
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
            rank_value: fields.rank.value,
            rank_unread: fields.rank.unread,
            ..RawPage::new(Body::Text(fields.text), fields.markup)
        })),
        Err(problem) => {
            let skipped = input.skipped(Some(place.record), place.offset, problem, place.bytes);
            visit(Err(NotAPage::Skipped(skipped)))
        }
    }
}

/// The texts of a record as one: paragraphs, or pieces of markup if one of them is markup. Each comes with whether its
/// field says that it is HTML.
pub(crate) fn join<'a>(mut texts: Vec<(Cow<'a, str>, bool)>, read_as: Option<ReadAs>) -> (Cow<'a, str>, Markup) {
    if texts.len() <= 1 {
        let (text, is_html) = texts.pop().unwrap_or_default();
        return (text, if is_html { Markup::Html } else { Markup::Unknown });
    }
    let is_markup = |(text, is_html): &(Cow<'_, str>, bool)| match read_as {
        Some(read_as) => read_as == ReadAs::Html,
        None => *is_html || looks_like_html(text.as_bytes()),
    };
    if !texts.iter().any(is_markup) {
        let paragraphs: Vec<&str> = texts.iter().map(|(text, _)| text.as_ref()).collect();
        return (Cow::Owned(paragraphs.join("\n\n")), Markup::Text);
    }
    let mut joined = String::new();
    for part in &texts {
        joined.push_str("<p>");
        if is_markup(part) {
            joined.push_str(&part.0);
        } else {
            joined.push_str(&htmlize::escape_text(part.0.as_ref()));
        }
        joined.push_str("</p>\n");
    }
    (Cow::Owned(joined), Markup::Html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_paragraphs_and_beside_markup_they_are_markup() {
        let of = |texts: &[(&'static str, bool)], read_as| {
            join(texts.iter().map(|&(text, is_html)| (Cow::Borrowed(text), is_html)).collect(), read_as)
        };
        assert_eq!(of(&[("a", false)], None), ("a".into(), Markup::Unknown));
        assert_eq!(of(&[("a", true)], None), ("a".into(), Markup::Html));
        assert_eq!(of(&[("a < b", false), ("c", false)], None), ("a < b\n\nc".into(), Markup::Text));
        let both = "<p>a &lt; b</p>\n<p><div>c</div></p>\n";
        assert_eq!(of(&[("a < b", false), ("<div>c</div>", false)], None), (both.into(), Markup::Html));
        let as_text = of(&[("a", false), ("<div>c</div>", true)], Some(ReadAs::Text));
        assert_eq!(as_text, ("a\n\n<div>c</div>".into(), Markup::Text));
    }
}
