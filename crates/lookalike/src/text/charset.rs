//! Bytes → Unicode.
//!
//! In: the bytes of a page, and what the server said of them, if it did. Out: text. The order is
//! the browsers': byte order mark, HTTP header, `<meta charset>` or XML declaration; where nothing
//! is declared, UTF-8 if the bytes are valid, else detection. Declarations that the bytes belie do
//! not count: Latin-1 where the bytes are UTF-8 (servers say it of everything), or a charset in which the
//! bytes make no sense while they do in another one.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How far into a page a declaration may stand. The standard says 1024 bytes; real pages are less
/// tidy.
const DECLARATION_BYTES: usize = 4096;

/// Text and the charset it was in.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The page as Unicode.
    pub text: Cow<'a, str>,
    /// The charset that was used.
    pub charset: &'static str,
}

/// Decodes a page; `declared` is the charset of the HTTP header, if there is one.
#[must_use]
pub fn decode<'a>(bytes: &'a [u8], declared: Option<&str>) -> Decoded<'a> {
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(bytes) {
        return decode_as(&bytes[mark_bytes..], encoding);
    }
    let declared = declared
        .and_then(|label| Encoding::for_label(label.trim().as_bytes()))
        .or_else(|| declared_in_page(&bytes[..bytes.len().min(DECLARATION_BYTES)]));
    let Some(encoding) = declared.filter(|&encoding| encoding != UTF_8) else {
        return match std::str::from_utf8(bytes) {
            Ok(text) => Decoded { text: Cow::Borrowed(text), charset: UTF_8.name() },
            Err(_) => decode_as(bytes, detect(bytes)),
        };
    };
    if encoding == WINDOWS_1252
        && !bytes.is_ascii()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Decoded { text: Cow::Borrowed(text), charset: UTF_8.name() };
    }
    let (text, has_errors) = encoding.decode_without_bom_handling(bytes);
    if has_errors {
        let guess = detect(bytes);
        let (other, has_errors) = guess.decode_without_bom_handling(bytes);
        if !has_errors {
            return Decoded { text: other, charset: guess.name() };
        }
    }
    Decoded { text, charset: encoding.name() }
}

fn decode_as<'a>(bytes: &'a [u8], encoding: &'static Encoding) -> Decoded<'a> {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    Decoded { text, charset: encoding.name() }
}

fn detect(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

/// The charset in a `<meta>` tag or an XML declaration near the start.
fn declared_in_page(head: &[u8]) -> Option<&'static Encoding> {
    let lower = head.to_ascii_lowercase();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &lower[at..]) {
        let start = at + found;
        let rest = &lower[start..];
        let end = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        let label = if rest.starts_with(b"<!--") {
            at = start + memchr::memmem::find(rest, b"-->").unwrap_or(rest.len());
            continue;
        } else if rest.starts_with(b"<meta") {
            label_after(&rest[..end], b"charset")
        } else if rest.starts_with(b"<?xml") {
            label_after(&rest[..end], b"encoding")
        } else {
            None
        };
        if let Some(encoding) = label.and_then(Encoding::for_label) {
            // A page whose declaration we could read is not in UTF-16, whatever it says.
            return Some(if encoding == UTF_16LE || encoding == UTF_16BE {
                UTF_8
            } else if encoding.name() == "x-user-defined" {
                WINDOWS_1252
            } else {
                encoding
            });
        }
        at = start + 1;
    }
    None
}

/// The value that follows `name =` in a tag, quotes and all that ends it removed.
fn label_after<'t>(tag: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    for found in memchr::memmem::find_iter(tag, name) {
        let rest = tag[found + name.len()..].trim_ascii_start();
        let Some(value) = rest.strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
        let end = value.iter().position(|b| b"\"'; />\t\r\n".contains(b)).unwrap_or(value.len());
        return Some(&value[..end]);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_wins() {
        let decoded = decode(b"\xff\xfeh\x00i\x00", Some("iso-8859-1"));
        assert_eq!((decoded.text.as_ref(), decoded.charset), ("hi", "UTF-16LE"));
    }

    #[test]
    fn the_http_header_comes_before_the_page() {
        let page = b"<meta charset=utf-8>\xe9";
        assert_eq!(decode(page, Some("iso-8859-1")).text, "<meta charset=utf-8>é");
    }

    #[test]
    fn a_page_declares_its_charset_in_many_ways() {
        let (korean, _, _) = encoding_rs::EUC_KR.encode("안녕하세요");
        for head in [
            "<META http-equiv=Content-Type content=\"text/html; charset=EUC-KR\">",
            "<meta charset='euc-kr'>",
            "<html><!-- <meta charset=utf-8> --><meta charset = \"euc-kr\" />",
            "<?xml version=\"1.0\" encoding=\"euc-kr\"?>",
        ] {
            let page = [head.as_bytes(), &korean].concat();
            let decoded = decode(&page, None);
            assert!(decoded.text.ends_with("안녕하세요"), "{head}: {}", decoded.text);
        }
    }

    #[test]
    fn undeclared_pages_are_detected() {
        let (page, _, _) = encoding_rs::WINDOWS_1251.encode("Съешь же ещё этих мягких французских булок, да выпей чаю");
        let decoded = decode(&page, None);
        assert_eq!(decoded.charset, "windows-1251");
        assert!(decoded.text.starts_with("Съешь"));
        assert_eq!(decode("größer".as_bytes(), None).text, "größer");
    }

    #[test]
    fn a_declaration_that_the_bytes_belie_does_not_count() {
        assert_eq!(decode("größer, 中文".as_bytes(), Some("ISO-8859-1")).text, "größer, 中文");
        // No byte of this is one of the declared charset, and all make sense in another.
        let text = "日本語の文章をもう少し長く書いておきます。それで十分でしょう。";
        let (japanese, _, _) = encoding_rs::EUC_JP.encode(text);
        let decoded = decode(&japanese, Some("iso-2022-jp"));
        assert_eq!((decoded.text.as_ref(), decoded.charset), (text, "EUC-JP"));
    }

    #[test]
    fn a_page_that_claims_utf8_and_is_not_is_detected() {
        let decoded = decode(b"<meta charset=utf-8>Stra\xdfe und gr\xfc\xdfe", None);
        assert!(decoded.text.contains("Straße"), "{}", decoded.text);
    }
}
