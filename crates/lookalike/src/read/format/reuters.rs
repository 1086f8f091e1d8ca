//! Stories in the SGML of Reuters-21578: `<REUTERS … NEWID="1"> … <BODY>…</BODY></REUTERS>`.

use std::borrow::Cow;
use std::ops::ControlFlow;

use memchr::{memchr, memmem};

use crate::page::{Body, Markup, RawPage};
use crate::read::WantedRecord;
use crate::read::fields::FieldNames;
use crate::read::format::documents::{self, Documents, NextDocument};
use crate::read::format::reader::{Description, Input, Keeping, Likeness, Reader, Unusable, text_start};
use crate::read::format::tagged::{Tags, element, text_of};
use crate::read::split::batch::BatchSender;

/// Stories in the SGML of Reuters-21578.
pub(super) struct Reuters;

const TAGS: Tags = Tags { open: b"<REUTERS", close: b"</REUTERS>" };

impl Reader for Reuters {
    fn description(&self) -> Description {
        Description { name: "reuters", endings: &["sgm", "sgml"], what: "stories in SGML, <REUTERS NEWID=…>" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        let start = text_start(head);
        let is_reuters = start.starts_with(b"<REUTERS") || start.starts_with(b"<!DOCTYPE lewis");
        Ok(is_reuters.then_some(Likeness::Signature))
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        documents::split(&Reuters, input, batches)
    }

    fn seek(&self, _: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        documents::seek(&Reuters, records, batches)
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::AllButDropped
    }
}

impl Documents for Reuters {
    fn next(&self, bytes: &[u8], from: usize, _: bool) -> NextDocument {
        TAGS.next(bytes, from)
    }

    fn end(&self, bytes: &[u8]) -> Option<usize> {
        TAGS.end(bytes)
    }

    /// The story in a document.
    fn page<'a>(&self, bytes: &'a [u8], names: &FieldNames) -> Result<RawPage<'a>, Unusable> {
        let head = &bytes[..memchr(b'>', bytes).unwrap_or(bytes.len())];
        let body = element(bytes, "BODY").or_else(|| element(bytes, "TEXT")).unwrap_or_default();
        let rank = if names.rank_is_date { Some("DATE") } else { names.rank_field() };
        let ranked = names.ranked(rank.and_then(|field| text_of(bytes, field)));
        Ok(RawPage {
            id: attribute(head, b"NEWID=\""),
            title: text_of(bytes, "TITLE"),
            rank_value: ranked.value,
            rank_unread: ranked.unread,
            ..RawPage::new(Body::Bytes(Cow::Borrowed(body)), Markup::Html)
        })
    }
}

fn attribute<'a>(tag: &'a [u8], name: &[u8]) -> Option<Cow<'a, str>> {
    let value = &tag[memmem::find(tag, name)? + name.len()..];
    Some(String::from_utf8_lossy(&value[..memchr(b'"', value)?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::fields::{Fields, RankField};

    #[test]
    fn stories_have_their_number_title_and_body() {
        let names = FieldNames::new(&Fields::default(), RankField::None);
        let story = b"<REUTERS TOPICS=\"YES\" OLDID=\"5544\" NEWID=\"1\">\n<DATE>26-FEB-1987</DATE>\n<TEXT>&#2;\n<TITLE>BAHIA COCOA</TITLE>\n<BODY>Showers continued.\n&#3;</BODY></TEXT>\n</REUTERS>";
        let found = Reuters.page(story, &names).ok().unwrap();
        assert_eq!((found.id.as_deref(), found.title.as_deref()), (Some("1"), Some("BAHIA COCOA")));
        assert!(matches!(&found.body, Body::Bytes(body) if body.as_ref() == b"Showers continued.\n&#3;"));
    }
}
