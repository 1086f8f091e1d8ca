//! WARC records of every version from 0.17 on: a version line, named fields, a blank line, content.

use std::ops::ControlFlow;

use crate::read::WantedRecord;
use crate::read::crawl::http::{field, head_length};
use crate::read::crawl::{ArchiveKind, split};
use crate::read::format::reader::{Description, Input, Keeping, Likeness, Members, Reader, text_start};
use crate::read::split::batch::BatchSender;

/// Web archive, WARC 0.17 to 1.1, and the texts of Common Crawl (WET).
pub(super) struct Warc;

impl Reader for Warc {
    fn description(&self) -> Description {
        Description { name: "warc", endings: &["warc", "wet"], what: "web archive, WARC 0.17 to 1.1; also WET" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok(text_start(head).starts_with(b"WARC/").then_some(Likeness::Signature))
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        split::split(ArchiveKind::Warc, input, batches)
    }

    fn seek(&self, _: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        split::seek(ArchiveKind::Warc, records, batches)
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::Captures
    }

    fn members(&self) -> Option<&dyn Members> {
        Some(&ArchiveKind::Warc)
    }
}

/// The longest head that is believed.
pub(crate) const LONGEST_HEAD: usize = 1 << 20;

/// The fields of a record that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WarcHead<'a> {
    /// Bytes of the head, with the blank line.
    pub(crate) length: usize,
    pub(crate) content_length: Option<u64>,
    pub(crate) kind: &'a [u8],
    pub(crate) id: Option<&'a [u8]>,
    pub(crate) trec_id: Option<&'a [u8]>,
    pub(crate) url: Option<&'a [u8]>,
    pub(crate) date: Option<&'a [u8]>,
    pub(crate) content_type: Option<&'a [u8]>,
    pub(crate) payload_digest: Option<&'a [u8]>,
    pub(crate) refers_to: Option<&'a [u8]>,
    pub(crate) refers_to_url: Option<&'a [u8]>,
    pub(crate) refers_to_date: Option<&'a [u8]>,
    pub(crate) concurrent_to: Option<&'a [u8]>,
    fields: &'a [u8],
}

/// Whether a record begins here.
pub(crate) fn is_start(bytes: &[u8]) -> bool {
    bytes.starts_with(b"WARC/") && bytes.get(5).is_some_and(u8::is_ascii_digit)
}

/// Parses the head at the start of `bytes`; nothing if none begins there, or it has no end.
pub(crate) fn head(bytes: &[u8]) -> Option<WarcHead<'_>> {
    if !is_start(bytes) {
        return None;
    }
    let length = head_length(&bytes[..bytes.len().min(LONGEST_HEAD)])?;
    let first_line = memchr::memchr(b'\n', bytes)? + 1;
    let fields = bytes.get(first_line..length).unwrap_or_default();
    let mut head = WarcHead { length, fields, ..WarcHead::default() };
    for (name, value) in head.fields() {
        let lower = name.to_ascii_lowercase();
        let slot = match lower.as_slice() {
            b"warc-type" => {
                head.kind = value;
                continue;
            }
            b"content-length" => {
                head.content_length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                continue;
            }
            b"warc-record-id" => &mut head.id,
            b"warc-trec-id" => &mut head.trec_id,
            b"warc-target-uri" => &mut head.url,
            b"warc-date" => &mut head.date,
            b"content-type" => &mut head.content_type,
            b"warc-payload-digest" => &mut head.payload_digest,
            b"warc-refers-to" => &mut head.refers_to,
            b"warc-refers-to-target-uri" => &mut head.refers_to_url,
            b"warc-refers-to-date" => &mut head.refers_to_date,
            b"warc-concurrent-to" => &mut head.concurrent_to,
            _ => continue,
        };
        *slot = Some(without_brackets(value)).filter(|value| !value.is_empty());
    }
    Some(head)
}

impl<'a> WarcHead<'a> {
    /// All fields, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.fields.split(|&byte| byte == b'\n').filter_map(field)
    }

    /// The value of any field.
    pub(crate) fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields().find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }
}

/// `<urn:uuid:…>` → `urn:uuid:…`; wget writes URLs so, too.
pub(crate) fn without_brackets(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"<").and_then(|value| value.strip_suffix(b">")).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_whatever_the_version_and_the_line_ends() {
        let record = b"WARC/0.18\nWARC-Type: response\nWARC-TREC-ID: clueweb09-en0000-00-00000\nWARC-Record-ID: <urn:uuid:1>\ncontent-length: 12\n\nHTTP/1.1 200";
        let found = head(record).unwrap();
        assert_eq!((found.kind, found.id), (&b"response"[..], Some(&b"urn:uuid:1"[..])));
        assert_eq!((found.content_length, found.length), (Some(12), record.len() - 12));
        assert_eq!(found.trec_id, Some(&b"clueweb09-en0000-00-00000"[..]));
        let record = b"WARC/1.1\r\nWARC-Target-URI: <http://a.org/>\r\nX-Score: 3\r\n\r\n";
        let found = head(record).unwrap();
        assert_eq!((found.url, found.length), (Some(&b"http://a.org/"[..]), record.len()));
        assert_eq!(found.field("x-score"), Some(&b"3"[..]));
    }

    #[test]
    fn what_is_no_head_is_none() {
        assert_eq!(head(b"WARC-Type: response\n\n"), None);
        assert_eq!(head(b"WARC/1.0\nWARC-Type: response\n"), None, "it has no end");
        assert_eq!(head(b""), None);
    }
}
