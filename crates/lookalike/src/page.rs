//! What one stage hands to the next: pages, their numbers, and pairs of them.

mod id;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub(crate) use id::PageVec;
pub use id::{PageId, PageRange, SourceId};

/// A term's 64-bit fingerprint.
pub type Token = u64;

/// How to read a page's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// HTML: tags are not text.
    Html,
    /// Plain text: everything is text.
    Text,
    /// Not said; decided by looking at the body.
    Unknown,
}

/// Elements that the markup of a body begins with.
const FIRST_ELEMENTS: [&[u8]; 9] = [b"html", b"head", b"body", b"div", b"p", b"title", b"meta", b"table", b"article"];

/// Bytes that a body is told by.
const FIRST_BYTES: usize = 128;

/// Whether a body without a declared type is markup: it begins with a declaration, a comment, or an element that begins
/// pages. A sentence in angle brackets is none, even if its first word is the name of one.
#[must_use]
pub(crate) fn looks_like_html(text: &[u8]) -> bool {
    let start = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    let head = start[..start.len().min(FIRST_BYTES)].to_ascii_lowercase();
    if [&b"<!doctype"[..], b"<?xml", b"<!--"].iter().any(|prefix| head.starts_with(prefix)) {
        return true;
    }
    let Some(tag) = head.strip_prefix(b"<") else { return false };
    let name = tag.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if !FIRST_ELEMENTS.contains(&&tag[..name]) {
        return false;
    }
    match &tag[name..] {
        [b'>' | b'/', ..] | [] => true,
        [byte, rest @ ..] if byte.is_ascii_whitespace() => has_attribute(rest) || &tag[..name] == b"html",
        _ => false,
    }
}

/// Whether an attribute with a value begins a tag, or nothing more stands in it.
fn has_attribute(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    let name = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_:@.".contains(byte)).count();
    match rest[name..].trim_ascii_start() {
        [b'=', ..] => name > 0,
        [b'>' | b'/', ..] => name == 0,
        _ => false,
    }
}

/// A page's body as the reader found it.
#[derive(Debug, Clone)]
pub enum Body<'a> {
    /// Already Unicode, as in JSON or Parquet.
    Text(Cow<'a, str>),
    /// Bytes of a charset that is yet to be detected.
    Bytes(Cow<'a, [u8]>),
}

/// Names of a capture as numbers, 0 where it has none: its record id, its URL and time, the digest of
/// its payload.
pub type CaptureKeys = [u64; 3];

/// Which capture a page of a crawl is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Its own names.
    pub own: CaptureKeys,
    /// For a revisit, which has no text, the names of the capture that has it.
    pub refers_to: Option<CaptureKeys>,
    /// When it was taken, in seconds since 1970.
    pub taken: Option<u64>,
}

impl Capture {
    /// What is remembered of it once revisits have found their originals.
    pub(crate) fn captured(&self) -> Captured {
        Captured { seconds: self.taken, payload: self.own[2] }
    }
}

/// When a page was captured, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Captured {
    /// Seconds since 1970.
    pub(crate) seconds: Option<u64>,
    /// The digest of its payload as a number, 0 where it has none.
    pub(crate) payload: u64,
}

/// Where a page comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOrigin {
    /// The input: what is cleaned.
    Input,
    /// The examples that seeded matching starts from.
    Example,
    /// Another corpus, which the input is held against.
    OtherCorpus,
    /// A row of an index, which has an id and a fingerprint, and no text.
    IndexRow,
}

/// One page, as a reader hands it on.
///
/// ```
/// use lookalike::RawPage;
///
/// let mut page = RawPage::html("<p>Once upon a time");
/// page.url = Some("https://example.org/".into());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RawPage<'a> {
    /// Index into the list of sources.
    pub source: SourceId,
    /// Number of the record in its source, from 1.
    pub record: u64,
    /// Where the record starts in the decompressed source, if it has such a place.
    pub offset: Option<u64>,
    /// Length of the record in bytes.
    pub length: u64,
    /// The page's own id, if it has one.
    pub id: Option<Cow<'a, str>>,
    /// The page's URL, if it has one.
    pub url: Option<Cow<'a, str>>,
    /// The page's title, if a field gives it.
    pub title: Option<Cow<'a, str>>,
    /// The value of the field that the keep policy asks for.
    pub rank_value: Option<f64>,
    /// What that field has instead, if it is not understood.
    pub rank_unread: Option<Cow<'a, str>>,
    /// The charset that the server named.
    pub charset: Option<Cow<'a, str>>,
    /// Which capture of a crawl it is.
    pub capture: Option<Capture>,
    /// The text or markup itself.
    pub body: Body<'a>,
    /// How to read the body.
    pub markup: Markup,
}

impl<'a> RawPage<'a> {
    /// A page by itself: nothing but a body.
    #[must_use]
    pub fn new(body: Body<'a>, markup: Markup) -> RawPage<'a> {
        let length = match &body {
            Body::Text(text) => text.len(),
            Body::Bytes(bytes) => bytes.len(),
        };
        RawPage {
            source: SourceId::from_index(0),
            record: 1,
            offset: None,
            length: length as u64,
            id: None,
            url: None,
            title: None,
            rank_value: None,
            rank_unread: None,
            charset: None,
            capture: None,
            body,
            markup,
        }
    }

    /// A page of markup.
    #[must_use]
    pub fn html(markup: impl Into<Cow<'a, str>>) -> RawPage<'a> {
        RawPage::new(Body::Text(markup.into()), Markup::Html)
    }

    /// A page of plain text.
    #[must_use]
    pub fn text(text: impl Into<Cow<'a, str>>) -> RawPage<'a> {
        RawPage::new(Body::Text(text.into()), Markup::Text)
    }

    /// A page as a server sent it: its charset, and whether it is HTML, are detected.
    #[must_use]
    pub fn bytes(bytes: impl Into<Cow<'a, [u8]>>) -> RawPage<'a> {
        RawPage::new(Body::Bytes(bytes.into()), Markup::Unknown)
    }

    /// Whether it is a revisit: a capture that was the same as another one, which has the text.
    #[must_use]
    pub fn is_revisit(&self) -> bool {
        self.capture.is_some_and(|capture| capture.refers_to.is_some())
    }

    /// The page with everything it borrows made its own.
    #[must_use]
    pub fn into_owned(self) -> RawPage<'static> {
        let own = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        RawPage {
            source: self.source,
            record: self.record,
            offset: self.offset,
            length: self.length,
            id: own(self.id),
            url: own(self.url),
            title: own(self.title),
            rank_value: self.rank_value,
            rank_unread: own(self.rank_unread),
            charset: own(self.charset),
            capture: self.capture,
            body: match self.body {
                Body::Text(text) => Body::Text(Cow::Owned(text.into_owned())),
                Body::Bytes(bytes) => Body::Bytes(Cow::Owned(bytes.into_owned())),
            },
            markup: self.markup,
        }
    }
}

/// Two pages and what was found about them. `left < right`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoredPair {
    /// The page that comes first in the input.
    pub left: PageId,
    /// The page that comes later.
    pub right: PageId,
    /// Exact similarity, 0..1.
    pub similarity: f64,
    /// Share of the left page's features that the right one has too.
    pub left_in_right: f64,
    /// Share of the right page's features that the left one has too.
    pub right_in_left: f64,
    /// What the method decides by, in its own unit.
    pub score: f64,
    /// What the sketches alone would have said, 0..1.
    pub estimate: f64,
    /// Similarity of the whole pages, whatever of them was compared; nothing while it is not known.
    pub page_similarity: Option<f64>,
    /// Whether both are on the same site, as far as that decided; nothing where it did not.
    pub same_site: Option<bool>,
    /// Whether one of them is short, as far as that decided.
    pub is_short: bool,
}

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Kept; nothing is like it.
    Unique,
    /// Kept; stands for others.
    Representative,
    /// Dropped; the kept page has the same text.
    Exact,
    /// Dropped; of the kept page the same is compared, and the rest differs.
    SameCore,
    /// Dropped; verified near-duplicate of the kept page.
    Near,
    /// Dropped; most of it, or all, is in the kept page, which has more besides.
    Contained,
    /// Kept; too short to be compared other than exactly.
    Short,
    /// Kept; has no token at all.
    Empty,
}

impl Kind {
    /// All kinds, in the order in which they are reported.
    pub const ALL: [Kind; 8] = [
        Kind::Unique,
        Kind::Representative,
        Kind::Exact,
        Kind::SameCore,
        Kind::Near,
        Kind::Contained,
        Kind::Short,
        Kind::Empty,
    ];

    /// The name used in the output files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Unique => "unique",
            Kind::Representative => "representative",
            Kind::Exact => "exact",
            Kind::SameCore => "same_core",
            Kind::Near => "near",
            Kind::Contained => "contained",
            Kind::Short => "short",
            Kind::Empty => "empty",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_begins_with_an_element_not_with_a_word_in_angle_brackets() {
        for markup in [
            "<!DOCTYPE html>",
            "\u{feff}\n <HTML>",
            "<html amp lang=en>",
            "<?xml version=\"1.0\"?>",
            "<!-- x -->",
            "<div class=\"a\">x",
            "<p>One",
            "<P\nALIGN = center>One",
            "<p >One",
            "<meta charset=utf-8>",
            "<body/>",
            "<title",
        ] {
            assert!(looks_like_html(markup.as_bytes()), "{markup}");
        }
        for text in [
            "<Metal Traders Ltd> said",
            "<Head of state> resigns",
            "<Table for two>",
            "<title deeds and more",
            "<Divers> found",
            "<P & L account>",
            "Once <p>",
            "< p>",
            "",
        ] {
            assert!(!looks_like_html(text.as_bytes()), "{text}");
        }
    }
}
