//! ARC, the Internet Archive's format before WARC: a line a record, then what the server sent.
//!
//! `URL IP-address Archive-date Content-type Archive-length`, the length in bytes last; version 2 has
//! more columns in between. The first record (`filedesc:`) describes the file.

use std::ops::ControlFlow;

use memchr::memchr;

use crate::read::WantedRecord;
use crate::read::crawl::{ArchiveKind, split};
use crate::read::format::reader::{Description, Input, Keeping, Likeness, Members, Reader};
use crate::read::split::batch::BatchSender;

/// Web archive, ARC.
pub(super) struct Arc;

impl Reader for Arc {
    fn description(&self) -> Description {
        Description { name: "arc", endings: &["arc"], what: "web archive, ARC version 1" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok(head.starts_with(b"filedesc://").then_some(Likeness::Signature))
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        split::split(ArchiveKind::Arc, input, batches)
    }

    fn seek(&self, _: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        split::seek(ArchiveKind::Arc, records, batches)
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::Captures
    }

    fn members(&self) -> Option<&dyn Members> {
        Some(&ArchiveKind::Arc)
    }
}

/// What the line of a record says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArcHead<'a> {
    /// Bytes of the line, with its end.
    pub(crate) length: usize,
    /// Bytes behind it.
    pub(crate) content_length: u64,
    pub(crate) url: &'a [u8],
    /// Fourteen digits.
    pub(crate) date: &'a [u8],
    pub(crate) content_type: &'a [u8],
}

/// The longest line of a record that is believed.
pub(crate) const LONGEST_LINE: usize = 64 << 10;

/// Parses the line at the start of `bytes`; nothing if it is none.
pub(crate) fn head(bytes: &[u8]) -> Option<ArcHead<'_>> {
    let end = memchr(b'\n', &bytes[..bytes.len().min(LONGEST_LINE)])?;
    let line = bytes[..end].trim_ascii_end();
    // From the right: URLs of old crawls have spaces in them.
    let mut words = line.rsplit(|&byte| byte == b' ');
    let content_length = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let mut rest: Vec<&[u8]> = words.collect();
    rest.reverse();
    // The date is the last word of fourteen digits (twelve in some) behind an address.
    let date_at = rest.iter().rposition(|word| matches!(word.len(), 8..=14) && word.iter().all(u8::is_ascii_digit))?;
    if date_at < 2 {
        return None;
    }
    let address = rest[date_at - 1];
    if address.is_empty() || !address.iter().all(|byte| byte.is_ascii_hexdigit() || b".:".contains(byte)) {
        return None;
    }
    let url_length = rest[..date_at - 1].iter().map(|word| word.len() + 1).sum::<usize>() - 1;
    let url = &line[..url_length];
    let scheme = memchr(b':', url)?;
    let is_url = scheme > 1 && url[..scheme].iter().all(u8::is_ascii_alphanumeric);
    is_url.then(|| ArcHead {
        length: end + 1,
        content_length,
        url,
        date: rest[date_at],
        content_type: rest.get(date_at + 1).copied().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_from_the_right() {
        let line = b"http://a.org/x y.html 10.0.0.1 20080430204825 text/html 1300\nHTTP/1.1 200 OK";
        let head = head(line).unwrap();
        assert_eq!((head.url, head.date), (&b"http://a.org/x y.html"[..], &b"20080430204825"[..]));
        assert_eq!((head.content_type, head.content_length, head.length), (&b"text/html"[..], 1300, 61));
    }

    #[test]
    fn version_two_has_more_columns() {
        let line = b"http://a.org/ 1.2.3.4 20010101000000 text/html 200 - - 42 a.arc 99\n";
        let head = head(line).unwrap();
        assert_eq!((head.url, head.content_type, head.content_length), (&b"http://a.org/"[..], &b"text/html"[..], 99));
        assert_eq!(super::head(b"dns:a.org 1.2.3.4 20010101000000 text/dns 9\n").unwrap().url, b"dns:a.org");
    }

    #[test]
    fn other_lines_are_no_heads() {
        for line in
            [&b"HTTP/1.1 200 OK\n"[..], b"\n", b"1 1 InternetArchive\n", b"see http://a.org 12\n", b"no line end"]
        {
            assert_eq!(head(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
