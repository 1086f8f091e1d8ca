//! TREC documents: `<DOC><DOCNO>…</DOCNO>…</DOC>`, news with `<TEXT>` or web pages behind `<DOCHDR>`.

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

/// TREC documents, news or web pages.
pub(super) struct Trec;

const TAGS: Tags = Tags { open: b"<DOC", close: b"</DOC>" };

impl Reader for Trec {
    fn description(&self) -> Description {
        Description { name: "trec", endings: &["trec", "trectext", "trecweb"], what: "TREC documents, <DOC><DOCNO>…" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        let start = text_start(head);
        let has_number = || memmem::find(start, b"<DOCNO>").is_some();
        let is_trec = start.starts_with(b"<DOC>") || (start.starts_with(b"<DOC") && has_number());
        Ok(is_trec.then_some(Likeness::Signature))
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        documents::split(&Trec, input, batches)
    }

    fn seek(&self, _: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        documents::seek(&Trec, records, batches)
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::AllButDropped
    }
}

impl Documents for Trec {
    fn next(&self, bytes: &[u8], from: usize, _: bool) -> NextDocument {
        TAGS.next(bytes, from)
    }

    fn end(&self, bytes: &[u8]) -> Option<usize> {
        TAGS.end(bytes)
    }

    /// The page in a document.
    fn page<'a>(&self, bytes: &'a [u8], names: &FieldNames) -> Result<RawPage<'a>, Unusable> {
        let after = |tag: &[u8]| memmem::find(bytes, tag).map(|at| &bytes[at + tag.len()..]);
        let without_end = |body: &'a [u8]| body.strip_suffix(TAGS.close).unwrap_or(body);
        // A web page has its URL and the server's answer in a header of its own.
        let (body, url) = match after(b"</DOCHDR>") {
            Some(body) => {
                let header = String::from_utf8_lossy(element(bytes, "DOCHDR").unwrap_or_default().trim_ascii_start());
                let url = header.split_whitespace().next().map(str::to_owned);
                (Cow::Borrowed(without_end(body)), url)
            }
            None => {
                (texts(bytes).unwrap_or_else(|| Cow::Borrowed(without_end(after(b"</DOCNO>").unwrap_or(bytes)))), None)
            }
        };
        let title = ["HEADLINE", "TITLE", "HL", "HEAD"].iter().find_map(|name| text_of(bytes, name));
        let rank = names.rank_field().filter(|_| !names.rank_is_date);
        let rank = rank.map_or_else(|| text_of(bytes, "DATE"), |field| text_of(bytes, field));
        let ranked = names.ranked(rank);
        Ok(RawPage {
            id: text_of(bytes, "DOCNO"),
            url: url.map(Cow::Owned),
            title: title.filter(|_| memmem::find(bytes, b"</DOCHDR>").is_none()),
            rank_value: ranked.value,
            rank_unread: ranked.unread,
            ..RawPage::new(Body::Bytes(body), Markup::Html)
        })
    }
}

/// All `<TEXT>` parts.
fn texts(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    let first = element(bytes, "TEXT")?;
    let mut rest = &bytes[memmem::find(bytes, b"</TEXT>")? + 7..];
    let mut all = Cow::Borrowed(first);
    while let Some(more) = element(rest, "TEXT") {
        let joined = all.to_mut();
        joined.extend_from_slice(b"\n<p>");
        joined.extend_from_slice(more);
        rest = &rest[memmem::find(rest, b"</TEXT>")? + 7..];
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::fields::{Fields, RankField};

    #[test]
    fn news_and_web_pages_are_told_apart() {
        let names = FieldNames::new(&Fields::default(), RankField::None);
        let news = b"<DOC>\n<DOCNO> AP880212-0001 </DOCNO>\n<HEADLINE>Fish &amp; chips</HEADLINE>\n<TEXT>\nOne.\n</TEXT>\n<TEXT>Two.</TEXT></DOC>";
        let found = Trec.page(news, &names).ok().unwrap();
        assert_eq!((found.id.as_deref(), found.title.as_deref()), (Some("AP880212-0001"), Some("Fish & chips")));
        assert!(matches!(&found.body, Body::Bytes(body) if body.as_ref() == b"\nOne.\n\n<p>Two."));
        let web = b"<DOC>\n<DOCNO>WTX001</DOCNO>\n<DOCHDR>\nhttp://a.org/x 1.2.3.4 19970101 text/html 99\nHTTP/1.0 200 OK\n</DOCHDR>\n<html><title>T</title>Hello</html>\n</DOC>";
        let found = Trec.page(web, &names).ok().unwrap();
        assert_eq!((found.url.as_deref(), found.title), (Some("http://a.org/x"), None));
        assert!(matches!(&found.body, Body::Bytes(body) if body.as_ref() == b"\n<html><title>T</title>Hello</html>\n"));
    }
}
