//! MediaWiki dumps: `<page>…</page>` in XML, the text of the last revision in it. Articles only: pages of
//! other name spaces and redirects are skipped. Wiki markup is text.

use std::borrow::Cow;
use std::ops::ControlFlow;

use memchr::memmem;

use crate::page::{Body, Markup, RawPage};
use crate::read::WantedRecord;
use crate::read::fields::FieldNames;
use crate::read::format::documents::{self, Documents, NextDocument};
use crate::read::format::reader::{Description, Input, Keeping, Likeness, Reader, Unusable, text_start};
use crate::read::format::tagged::{Tags, element, text_of};
use crate::read::split::batch::BatchSender;

/// A dump of a MediaWiki.
pub(super) struct MediaWiki;

const TAGS: Tags = Tags { open: b"<page", close: b"</page>" };

impl Reader for MediaWiki {
    fn description(&self) -> Description {
        Description { name: "mediawiki", endings: &["mediawiki"], what: "XML dump of a wiki, its articles" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok(text_start(head).starts_with(b"<mediawiki").then_some(Likeness::Signature))
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        documents::split(&MediaWiki, input, batches)
    }

    fn seek(&self, _: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        documents::seek(&MediaWiki, records, batches)
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::AllButDropped
    }
}

impl Documents for MediaWiki {
    fn next(&self, bytes: &[u8], from: usize, _: bool) -> NextDocument {
        TAGS.next(bytes, from)
    }

    fn end(&self, bytes: &[u8]) -> Option<usize> {
        TAGS.end(bytes)
    }

    /// The article in a page.
    fn page<'a>(&self, bytes: &'a [u8], names: &FieldNames) -> Result<RawPage<'a>, Unusable> {
        if text_of(bytes, "ns").is_some_and(|space| space != "0") {
            return Err(Unusable::Other("other_namespace"));
        }
        let revision = memmem::rfind(bytes, b"<revision").map_or(bytes, |at| &bytes[at..]);
        if memmem::find(&bytes[..bytes.len() - revision.len()], b"<redirect").is_some() {
            return Err(Unusable::Other("redirect"));
        }
        let text = String::from_utf8_lossy(element(revision, "text").unwrap_or_default());
        let text = if text.contains('&') { Cow::Owned(htmlize::unescape(text).into_owned()) } else { text };
        let rank = if names.rank_is_date { Some("timestamp") } else { names.rank_field() };
        Ok(RawPage {
            id: text_of(bytes, "id"),
            title: text_of(bytes, "title"),
            rank_value: rank.and_then(|field| text_of(revision, field)).and_then(|value| names.rank_value(&value)),
            ..RawPage::new(Body::Text(text), Markup::Text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::fields::{Fields, RankField};

    #[test]
    fn articles_are_pages_and_talk_is_not() {
        let names = FieldNames::new(&Fields::default(), RankField::Date);
        let article = "<page>\n<title>Fish &amp; chips</title><ns>0</ns><id>12</id><revision><id>99</id><timestamp>2024-01-02T00:00:00Z</timestamp><text bytes=\"9\" xml:space=\"preserve\">A ''dish'' &lt;ref&gt;x&lt;/ref&gt;</text></revision></page>";
        let found = MediaWiki.page(article.as_bytes(), &names).ok().unwrap();
        assert_eq!((found.id.as_deref(), found.title.as_deref()), (Some("12"), Some("Fish & chips")));
        assert!(matches!(&found.body, Body::Text(text) if text == "A ''dish'' <ref>x</ref>"));
        assert!(found.rank_value.is_some());
        assert!(matches!(MediaWiki.page(b"<page><ns>1</ns></page>", &names), Err(Unusable::Other("other_namespace"))));
        assert!(matches!(
            MediaWiki.page(b"<page><redirect title=\"x\"/><revision></revision></page>", &names),
            Err(Unusable::Other("redirect"))
        ));
        assert!(MediaWiki.page(b"<page></page>", &names).is_ok());
    }
}
