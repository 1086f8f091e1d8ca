//! An HTTP response as crawlers store it → status, type, charset, body.
//!
//! Archives are not tidy: bodies are stored with or without the transfer and content encodings that
//! their headers name. What the bytes themselves say wins: a body that is said to be gzip and is
//! not is taken as it is. Decoding stops at the limit for pages.

use std::borrow::Cow;
use std::io::Read;

use memchr::{memchr, memmem};

/// What a header says of the body behind it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseHead<'a> {
    pub(crate) status: Option<u16>,
    pub(crate) content_type: Option<&'a [u8]>,
    content_encoding: Option<&'a [u8]>,
    is_chunked: bool,
}

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyProblem {
    /// It is larger than the limit.
    TooLarge,
    /// It cannot be decoded.
    Damaged(String),
}

/// Splits a response into head and body. Nothing if it is not a response.
pub(crate) fn split(response: &[u8]) -> Option<(ResponseHead<'_>, &[u8])> {
    if !response.starts_with(b"HTTP/") {
        return None;
    }
    let (head, body) = split_head(response);
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let status_line = lines.next().unwrap_or_default();
    let status = status_line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).nth(1);
    let mut parsed = ResponseHead {
        status: status.and_then(|word| std::str::from_utf8(word).ok()).and_then(|word| word.parse().ok()),
        ..ResponseHead::default()
    };
    for line in lines {
        let Some((name, value)) = field(line) else { continue };
        if name.eq_ignore_ascii_case(b"content-type") {
            parsed.content_type = Some(value);
        } else if name.eq_ignore_ascii_case(b"content-encoding") {
            parsed.content_encoding = Some(value);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            parsed.is_chunked = value.to_ascii_lowercase().ends_with(b"chunked");
        }
    }
    Some((parsed, body))
}

/// Cuts behind the first blank line, whatever the line ends are.
pub(crate) fn split_head(bytes: &[u8]) -> (&[u8], &[u8]) {
    match head_length(bytes) {
        Some(length) => bytes.split_at(length),
        None => (bytes, &[]),
    }
}

/// The length of a head with the blank line that ends it.
pub(crate) fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = memchr(b'\n', &bytes[at..]) {
        let line_end = at + found + 1;
        match &bytes[line_end..] {
            [b'\n', ..] => return Some(line_end + 1),
            [b'\r', b'\n', ..] => return Some(line_end + 2),
            _ => at = line_end,
        }
    }
    None
}

/// A header line's name and value.
pub(crate) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
}

impl ResponseHead<'_> {
    /// The body as the server meant it, at most `limit` bytes.
    pub(crate) fn body<'b>(&self, body: &'b [u8], limit: u64) -> Result<Cow<'b, [u8]>, BodyProblem> {
        let body = match self.is_chunked.then(|| unchunk(body, limit)) {
            Some(Some(unchunked)) => Cow::Owned(unchunked),
            _ => Cow::Borrowed(body),
        };
        let mut decoded = body;
        // The last encoding was applied last.
        let encodings = self.content_encoding.unwrap_or_default().rsplit(|&byte| byte == b',');
        for encoding in encodings.map(|name| name.trim_ascii().to_ascii_lowercase()) {
            if let Some(unpacked) = decode(&encoding, &decoded, limit)? {
                decoded = Cow::Owned(unpacked);
            }
        }
        if decoded.len() as u64 > limit { Err(BodyProblem::TooLarge) } else { Ok(decoded) }
    }
}

/// How long the body of a response is, decoded; 0 if there is none.
pub(crate) fn response_body_bytes(response: &[u8], limit: u64) -> usize {
    split(response).and_then(|(head, body)| head.body(body, limit).ok()).map_or(0, |body| body.len())
}

/// Undoes one content encoding; nothing if the body is not encoded so.
fn decode(encoding: &[u8], body: &[u8], limit: u64) -> Result<Option<Vec<u8>>, BodyProblem> {
    let (name, reader): (&str, Box<dyn Read + '_>) = match encoding {
        b"gzip" | b"x-gzip" if body.starts_with(&[0x1f, 0x8b]) => {
            ("gzip", Box::new(flate2::bufread::MultiGzDecoder::new(body)))
        }
        b"deflate" if is_zlib(body) => ("deflate", Box::new(flate2::bufread::ZlibDecoder::new(body))),
        b"deflate" if !looks_plain(body) => ("deflate", Box::new(flate2::bufread::DeflateDecoder::new(body))),
        b"br" if !looks_plain(body) => ("br", Box::new(brotli_decompressor::Decompressor::new(body, 4096))),
        b"zstd" if body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => match zstd::stream::read::Decoder::new(body) {
            Ok(decoder) => ("zstd", Box::new(decoder)),
            Err(error) => return Err(BodyProblem::Damaged(format!("zstd: {error}"))),
        },
        _ => return Ok(None),
    };
    let mut unpacked = Vec::new();
    match reader.take(limit.saturating_add(1)).read_to_end(&mut unpacked) {
        _ if unpacked.len() as u64 > limit => Err(BodyProblem::TooLarge),
        // Servers and crawlers cut bodies off; what came before is the page as it was seen.
        Ok(_) => Ok(Some(unpacked)),
        Err(_) if !unpacked.is_empty() => Ok(Some(unpacked)),
        Err(error) => {
            Err(BodyProblem::Damaged(format!("the body is said to be {name} and cannot be unpacked: {error}")))
        }
    }
}

fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && (u32::from(*first) << 8 | u32::from(*second)).is_multiple_of(31))
}

/// Whether a body that is said to be packed is markup or text all the same.
fn looks_plain(body: &[u8]) -> bool {
    let head = &body[..body.len().min(256)];
    head.trim_ascii_start().first() == Some(&b'<') || head.iter().all(|&byte| byte >= 32 || byte.is_ascii_whitespace())
}

/// A body without its chunk sizes; nothing if it does not begin with one. A body that breaks off, or
/// goes over the limit, ends there.
fn unchunk(body: &[u8], limit: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = body;
    let mut is_first = true;
    loop {
        let size = chunk_size(rest);
        let Some((size, start)) = size else {
            return if is_first { None } else { Some(out) };
        };
        is_first = false;
        rest = &rest[start..];
        if size == 0 || out.len() as u64 > limit {
            return Some(out);
        }
        let taken = usize::try_from(size).unwrap_or(usize::MAX).min(rest.len());
        out.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
        rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
    }
}

/// The size of a chunk, and where its data starts.
fn chunk_size(bytes: &[u8]) -> Option<(u64, usize)> {
    const LONGEST_LINE: usize = 256;
    let window = &bytes[..bytes.len().min(LONGEST_LINE)];
    let line_end = memchr(b'\n', window)?;
    let line = window[..line_end].trim_ascii();
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii_end();
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let size = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some((size, line_end + 1))
}

/// The type alone, in lower case: `text/html`.
pub(crate) fn mime(content_type: &[u8]) -> String {
    let end = content_type.iter().position(|byte| b";, \t".contains(byte)).unwrap_or(content_type.len());
    String::from_utf8_lossy(&content_type[..end]).to_ascii_lowercase()
}

/// The charset that a type names.
pub(crate) fn charset(content_type: &[u8]) -> Option<&str> {
    let lower = content_type.to_ascii_lowercase();
    let at = memmem::find(&lower, b"charset")? + b"charset".len();
    let value = content_type[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let end = value.iter().position(|byte| b"\"'; ,\t".contains(byte)).unwrap_or(value.len());
    std::str::from_utf8(&value[..end]).ok().filter(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn body_of(response: &[u8], limit: u64) -> Result<Vec<u8>, BodyProblem> {
        let (head, body) = split(response).unwrap();
        head.body(body, limit).map(Cow::into_owned)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn heads_are_read_with_any_line_ends() {
        for response in [
            &b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html; charset=\"EUC-JP\"\r\n\r\nbody"[..],
            b"HTTP/1.0  404\ncontent-type:text/html;Charset = EUC-JP\n\nbody",
        ] {
            let (head, body) = split(response).unwrap();
            assert_eq!((head.status, body), (Some(404), &b"body"[..]));
            assert_eq!(mime(head.content_type.unwrap()), "text/html");
            assert_eq!(charset(head.content_type.unwrap()), Some("EUC-JP"));
        }
        assert_eq!(split(b"<html>"), None);
        assert_eq!(split(b"HTTP/1.1 200 OK\r\nX: y").unwrap().1, b"");
    }

    #[test]
    fn chunked_bodies_are_joined_and_bodies_that_are_not_chunked_are_left_alone() {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let whole = [&head[..], b"4;x=y\r\nWiki\r\n5 \r\npedia\r\n0\r\n\r\n"].concat();
        assert_eq!(body_of(&whole, 99).unwrap(), b"Wikipedia");
        let cut = [&head[..], b"4\r\nWiki\r\n5\r\nped"].concat();
        assert_eq!(body_of(&cut, 99).unwrap(), b"Wikiped");
        let plain = [&head[..], b"<html>not chunked"].concat();
        assert_eq!(body_of(&plain, 99).unwrap(), b"<html>not chunked");
    }

    #[test]
    fn encodings_are_undone_where_they_are_there() {
        let response = |encoding: &str, body: &[u8]| {
            [format!("HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\r\n").as_bytes(), body].concat()
        };
        let text = b"hello hello hello hello";
        assert_eq!(body_of(&response("gzip", &gzip(text)), 99).unwrap(), text);
        assert_eq!(body_of(&response("gzip", text), 99).unwrap(), text);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(text).unwrap();
        assert_eq!(body_of(&response("deflate", &zlib.finish().unwrap()), 99).unwrap(), text);
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        raw.write_all(text).unwrap();
        assert_eq!(body_of(&response("deflate", &raw.finish().unwrap()), 99).unwrap(), text);
        let brotli = b"\x0b\x02\x80hello\x03"; // "hello" in one stored block
        assert_eq!(body_of(&response("br", brotli), 99).unwrap(), b"hello");
        assert_eq!(body_of(&response("gzip, gzip", &gzip(&gzip(text))), 99).unwrap(), text);
    }

    #[test]
    fn what_unpacks_to_more_than_the_limit_is_refused() {
        let bomb = gzip(&vec![b'x'; 1 << 20]);
        let response = [&b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"[..], &bomb].concat();
        assert_eq!(body_of(&response, 1000), Err(BodyProblem::TooLarge));
        let chunks = b"5\r\nabcde\r\n".repeat(1000);
        let endless = [&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..], &chunks].concat();
        assert_eq!(body_of(&endless, 1000), Err(BodyProblem::TooLarge));
    }

    #[test]
    fn a_body_that_breaks_off_is_the_page_as_far_as_it_goes() {
        let text: Vec<u8> = (0..20_000u32).flat_map(|n| n.to_string().into_bytes()).collect();
        let packed = gzip(&text);
        let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
        let cut = [&head[..], &packed[..packed.len() / 2]].concat();
        let body = body_of(&cut, 1 << 20).unwrap();
        assert!(body.len() > 1000 && text.starts_with(&body));
        let nothing = [&head[..], &[0x1f, 0x8b, 0xff][..]].concat();
        assert!(matches!(body_of(&nothing, 99), Err(BodyProblem::Damaged(_))));
    }
}
