//! A record of a crawl → a page, a revisit of one, or neither.
//!
//! Pages are responses with a wanted status and a wanted type, texts that were extracted from them
//! (WET), and resources fetched without HTTP. A revisit says that a page was the same as before; it has no
//! text, only the names of the record it refers to.

use std::borrow::Cow;
use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::SkipKind;
use crate::page::{Body, Capture, Markup, RawPage, looks_like_html};
use crate::read::crawl::http::{self, BodyProblem, ResponseHead};
use crate::read::crawl::{ArchiveKind, line_ends};
use crate::read::fields::FieldNames;
use crate::read::format::reader::{Input, Unusable};
use crate::read::format::warc::WarcHead;
use crate::read::format::{arc, warc};
use crate::read::split::batch::Cut;
use crate::read::split::unpack::Unpacker;
use crate::read::{Record, Source, WantedRecord};

/// Which responses are pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureFilter {
    /// Wanted status codes.
    pub statuses: Statuses,
    /// Wanted types.
    pub types: MimeTypes,
}

/// Status codes, as ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses(pub Vec<(u16, u16)>);

/// Types, in lower case; `text/*` and `any` stand for many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MimeTypes(pub Vec<String>);

impl Default for CaptureFilter {
    fn default() -> CaptureFilter {
        let types = ["text/html", "application/xhtml+xml", "text/plain"].map(str::to_owned);
        CaptureFilter { statuses: Statuses(vec![(200, 200)]), types: MimeTypes(types.into()) }
    }
}

/// `200`, `2xx`, `200-299`, `any`, several with commas.
impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Statuses, String> {
        let range = |part: &str| -> Option<(u16, u16)> {
            if part == "any" {
                return Some((0, u16::MAX));
            }
            if let Some(class) = part.strip_suffix("xx") {
                let class: u16 = class.parse().ok().filter(|class| (1..=9).contains(class))?;
                return Some((class * 100, class * 100 + 99));
            }
            match part.split_once('-') {
                Some((from, to)) => Some((from.parse().ok()?, to.parse().ok()?)).filter(|(from, to)| from <= to),
                None => part.parse().ok().map(|status| (status, status)),
            }
        };
        let ranges: Option<Vec<(u16, u16)>> = text.split(',').map(|part| range(part.trim())).collect();
        ranges.map(Statuses).ok_or_else(|| "status codes such as 200, 200,404, 2xx, 200-299 or any".to_owned())
    }
}

/// `text/html`, `text/*`, `any`, several with commas.
impl FromStr for MimeTypes {
    type Err = String;

    fn from_str(text: &str) -> Result<MimeTypes, String> {
        let types: Vec<String> = text.split(',').map(|part| part.trim().to_ascii_lowercase()).collect();
        let is_type =
            |part: &String| part == "any" || part.split_once('/').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
        if types.iter().all(is_type) {
            Ok(MimeTypes(types))
        } else {
            Err("content types such as text/html, text/* or any, with commas between them".to_owned())
        }
    }
}

impl CaptureFilter {
    fn takes_status(&self, status: Option<u16>) -> bool {
        status.is_none_or(|status| self.statuses.0.iter().any(|&(from, to)| (from..=to).contains(&status)))
    }

    fn takes_type(&self, mime: &str) -> bool {
        self.types.0.iter().any(|known| match known.strip_suffix("/*") {
            Some(family) => mime.split('/').next() == Some(family),
            None => known == "any" || known == mime,
        })
    }
}

/// The profile of revisits that stand for pages with another payload.
pub(crate) const NEAR_PROFILE: &str = "urn:lookalike:revisit:near-duplicate";

/// What a record is called.
pub(crate) struct RecordNames {
    pub(crate) id: Option<Vec<u8>>,
    pub(crate) url: Option<Vec<u8>>,
    pub(crate) date: Option<Vec<u8>>,
    pub(crate) payload_digest: Option<Vec<u8>>,
}

/// The names of a record, read from its place, if it has one.
pub(crate) fn record_names(source: &Source, place: &WantedRecord) -> Option<RecordNames> {
    const HEAD_BYTES: usize = 64 << 10;
    let offset = place.offset.filter(|_| source.is_seekable())?;
    let file = source.location.open().ok()?;
    let mut unpacker = Unpacker::new(file, source.compression, ArchiveKind::of(source).start_test()).ok()?;
    unpacker.seek(offset).ok()?;
    let mut bytes = Vec::new();
    unpacker.step(&mut bytes, HEAD_BYTES);
    let head = warc::head(&bytes[line_ends(&bytes)..])?;
    let own = |name: Option<&[u8]>| name.map(<[u8]>::to_vec);
    Some(RecordNames {
        id: own(head.id),
        url: own(head.url),
        date: own(head.date),
        payload_digest: own(head.payload_digest),
    })
}

/// Why a record is not a page although nothing is wrong with it; the names are those in `summary.json`.
const OTHER_STATUS: &str = "other_status";
const OTHER_TYPE: &str = "other_type";
const OTHER_RECORD: &str = "other_record";

/// What a record holds.
struct Payload<'a> {
    response: ResponseHead<'a>,
    body: &'a [u8],
    content_type: &'a [u8],
}

impl<'a> Payload<'a> {
    /// The block of a record of a type.
    fn new(block: &'a [u8], record_type: &'a [u8]) -> Payload<'a> {
        match http::split(block) {
            Some((response, body)) => {
                let content_type = response.content_type.unwrap_or_default();
                Payload { response, body, content_type }
            }
            None => Payload { response: ResponseHead::default(), body: block, content_type: record_type },
        }
    }
}

/// What one record of a batch is.
pub(super) fn record<'a>(kind: ArchiveKind, input: &Input<'_>, cut: &Cut, bytes: &'a [u8]) -> Record<'a> {
    let page = match kind {
        ArchiveKind::Warc => warc_page(input, cut, bytes),
        ArchiveKind::Arc => arc_page(input, cut, bytes),
    };
    input.record(cut, bytes, page)
}

fn warc_page<'a>(input: &Input<'_>, cut: &Cut, bytes: &'a [u8]) -> Result<RawPage<'a>, Unusable> {
    let Some(head) = warc::head(bytes) else {
        return Err((SkipKind::BadRecord, "the head of this WARC record has no end".to_owned()).into());
    };
    let block = content(bytes, head.length, head.content_length);
    let is_text = |head: &WarcHead<'_>| matches!(head.kind, b"conversion");
    let page = match head.kind {
        b"response" | b"conversion" => {
            page_of(input, cut, block, head.content_type.unwrap_or_default(), is_text(&head))?
        }
        b"resource" if head.url.is_some_and(is_fetched) => {
            page_of(input, cut, block, head.content_type.unwrap_or_default(), false)?
        }
        b"revisit" if head.field("WARC-Profile") == Some(NEAR_PROFILE.as_bytes()) => {
            return Err(Unusable::Other("near_duplicate"));
        }
        b"revisit" => revisit(input, block)?,
        b"request" => return Err(Unusable::Other("request")),
        b"metadata" => return Err(Unusable::Other("metadata")),
        b"warcinfo" => return Err(Unusable::Other("warcinfo")),
        _ => return Err(Unusable::Other(OTHER_RECORD)),
    };
    let is_revisit = head.kind == b"revisit";
    let text = |value: Option<&'a [u8]>| value.map(String::from_utf8_lossy);
    let own = [key(head.id), place_key(head.url, head.date), key(head.payload_digest)];
    let refers_to = [key(head.refers_to), place_key(head.refers_to_url, head.refers_to_date), own[2]];
    Ok(RawPage {
        id: text(head.trec_id.or(head.id)),
        url: text(head.url),
        rank_value: rank_value(input.names(), &head),
        capture: Some(Capture { own, refers_to: is_revisit.then_some(refers_to), taken: head.date.and_then(seconds) }),
        ..page
    })
}

fn arc_page<'a>(input: &Input<'_>, cut: &Cut, bytes: &'a [u8]) -> Result<RawPage<'a>, Unusable> {
    let Some(head) = arc::head(bytes) else {
        return Err((SkipKind::BadRecord, "the first line of this ARC record is not one".to_owned()).into());
    };
    if head.url.starts_with(b"filedesc:") {
        return Err(Unusable::Other("filedesc"));
    }
    if !is_fetched(head.url) {
        return Err(Unusable::Other(OTHER_RECORD));
    }
    let block = content(bytes, head.length, Some(head.content_length));
    let page = page_of(input, cut, block, head.content_type, false)?;
    let date = std::str::from_utf8(head.date).ok().filter(|_| input.names().rank_is_date);
    Ok(RawPage {
        url: Some(String::from_utf8_lossy(head.url)),
        capture: Some(Capture { own: [0; 3], refers_to: None, taken: seconds(head.date) }),
        rank_value: date.and_then(|date| input.names().rank_value(date)),
        ..page
    })
}

/// The content of a record: as long as it says, if nothing but line ends follows.
fn content(bytes: &[u8], head: usize, length: Option<u64>) -> &[u8] {
    let rest = bytes.get(head..).unwrap_or_default();
    let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(rest.len());
    match rest.split_at_checked(length) {
        Some((content, behind)) if line_ends(behind) == behind.len() => content,
        _ => rest,
    }
}

/// What was fetched from somewhere, not noted down by the crawler.
fn is_fetched(url: &[u8]) -> bool {
    let lower = url[..url.len().min(8)].to_ascii_lowercase();
    [&b"http:"[..], b"https:", b"ftp:", b"ftps:", b"gopher:", b"gemini:", b"file:"]
        .iter()
        .any(|scheme| lower.starts_with(scheme))
}

/// Makes a page of a block, if it is one.
fn page_of<'a>(
    input: &Input<'_>,
    cut: &Cut,
    block: &'a [u8],
    record_type: &'a [u8],
    is_text: bool,
) -> Result<RawPage<'a>, Unusable> {
    let payload = Payload::new(block, record_type);
    let filter = &input.corpus.captures;
    if !filter.takes_status(payload.response.status) {
        return Err(Unusable::Other(OTHER_STATUS));
    }
    let mime = http::mime(payload.content_type);
    let is_vague =
        !mime.contains('/') || mime == "application/octet-stream" || mime == "application/http" || mime.contains('*');
    if !is_vague && !filter.takes_type(&mime) {
        return Err(Unusable::Other(OTHER_TYPE));
    }
    if let Some(total) = cut.cut_short {
        return Err(input.too_large(total).into());
    }
    let body = payload.response.body(payload.body, input.corpus.max_page_bytes).map_err(|problem| match problem {
        BodyProblem::TooLarge => input.too_large(input.corpus.max_page_bytes + 1),
        BodyProblem::Damaged(reason) => (SkipKind::Damaged, reason),
    })?;
    let is_html = looks_like_html(&body);
    if (is_vague && !is_html) || (mime == "text/plain" && is_binary(&body)) {
        return Err(Unusable::Other(OTHER_TYPE));
    }
    let markup = match mime.as_str() {
        _ if is_text => Markup::Text,
        "text/html" | "application/xhtml+xml" => Markup::Html,
        _ if is_html => Markup::Html,
        _ => Markup::Text,
    };
    let charset = http::charset(payload.content_type).map(Cow::Borrowed);
    Ok(RawPage { charset, ..RawPage::new(Body::Bytes(body), markup) })
}

/// Whether bytes that are said to be text are not.
fn is_binary(body: &[u8]) -> bool {
    let head = &body[..body.len().min(1024)];
    !matches!(head, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) && head.contains(&0)
}

/// A revisit of something that may be a page.
fn revisit<'a>(input: &Input<'_>, block: &'a [u8]) -> Result<RawPage<'a>, Unusable> {
    if let Some((response, _)) = http::split(block) {
        if !input.corpus.captures.takes_status(response.status.filter(|&status| status != 304)) {
            return Err(Unusable::Other(OTHER_STATUS));
        }
        let mime = http::mime(response.content_type.unwrap_or_default());
        if mime.contains('/') && !input.corpus.captures.takes_type(&mime) {
            return Err(Unusable::Other(OTHER_TYPE));
        }
    }
    Ok(RawPage::new(Body::Bytes(Cow::Borrowed(&[])), Markup::Text))
}

fn rank_value(names: &FieldNames, head: &WarcHead<'_>) -> Option<f64> {
    let value = if names.rank_is_date { head.date } else { head.field(names.rank_field()?) };
    names.rank_value(std::str::from_utf8(value?).ok()?)
}

/// Seconds since 1970 of a date such as `2008-04-30T20:48:25Z` or `20080430204825`.
fn seconds(date: &[u8]) -> Option<u64> {
    let date = std::str::from_utf8(date).ok()?;
    let seconds = match DateTime::parse_from_rfc3339(date) {
        Ok(time) => time.timestamp(),
        Err(_) => NaiveDateTime::parse_from_str(date, "%Y%m%d%H%M%S").ok()?.and_utc().timestamp(),
    };
    u64::try_from(seconds).ok()
}

/// A name as a number; 0 for none.
pub(crate) fn key(name: Option<&[u8]>) -> u64 {
    name.map_or(0, |name| xxh3_64(name).max(1))
}

/// A URL at a time as a number; 0 if either is missing.
fn place_key(url: Option<&[u8]>, date: Option<&[u8]>) -> u64 {
    match (url, date) {
        (Some(url), Some(date)) => xxh3_64(&[url, b" ", date].concat()).max(1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_of_dates_are_read() {
        assert_eq!(seconds(b"1970-01-01T00:01:00Z"), Some(60));
        assert_eq!(seconds(b"2008-04-30T20:48:25.123456Z"), seconds(b"20080430204825"));
        assert_eq!((seconds(b"2008"), seconds(b"soon"), seconds(b"\xff")), (None, None, None));
    }

    #[test]
    fn filters_are_read_as_people_write_them() {
        let statuses = |text: &str| text.parse::<Statuses>();
        assert_eq!(statuses("200, 3xx,404-410"), Ok(Statuses(vec![(200, 200), (300, 399), (404, 410)])));
        assert!(statuses("ok").is_err() && statuses("300-200").is_err() && statuses("").is_err());
        assert!("html".parse::<MimeTypes>().is_err());
        let filter =
            CaptureFilter { statuses: statuses("2xx").unwrap(), types: "Text/*,application/json".parse().unwrap() };
        assert!(filter.takes_status(Some(204)) && !filter.takes_status(Some(404)) && filter.takes_status(None));
        assert!(
            filter.takes_type("text/css") && filter.takes_type("application/json") && !filter.takes_type("image/png")
        );
        let any = CaptureFilter { types: MimeTypes(vec!["any".to_owned()]), ..filter };
        assert!(any.takes_type("image/png"));
    }
}
