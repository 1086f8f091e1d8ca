//! The text of a JSON string.
//!
//! In: a string as it stands in JSON. Out: what it says, borrowed if it has no escapes, else copied as it is looked through; nothing
//! if it is not a string, or one of its escapes means no character.

use std::borrow::Cow;

use crate::kernel::{plain_json_end, text_of_utf8};

/// Characters of the number of a character.
const HEX_DIGITS: usize = 4;

/// What a string says, quotes and all of which are given.
pub(super) fn text_of(string: &str) -> Option<Cow<'_, str>> {
    let (text, end) = text_from(string.strip_prefix('"')?.as_bytes(), 0)?;
    (end + 1 == string.len()).then_some(text)
}

/// What the string says that goes on at `start`, behind its first quote, and where its last one is followed.
pub(super) fn text_from(bytes: &[u8], start: usize) -> Option<(Cow<'_, str>, usize)> {
    let mut end = plain_json_end(bytes, start);
    if *bytes.get(end)? == b'"' {
        return Some((Cow::Borrowed(simdutf8::basic::from_utf8(&bytes[start..end]).ok()?), end + 1));
    }
    // What it says is not longer than what stands there.
    let (mut text, mut from) = (Vec::with_capacity(bytes.len() - start), start);
    loop {
        text.extend_from_slice(&bytes[from..end]);
        match *bytes.get(end)? {
            b'"' => return Some((Cow::Owned(text_of_utf8(text)?), end + 1)),
            b'\\' => {
                let (character, length) = unescaped(&bytes[end..])?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                from = end + length;
            }
            _ => return None,
        }
        end = plain_json_end(bytes, from);
    }
}

/// The character that an escape stands for, and how many bytes the escape has.
fn unescaped(escape: &[u8]) -> Option<(char, usize)> {
    let character = match escape.get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        &quoted @ (b'"' | b'\\' | b'/') => char::from(quoted),
        b'u' => return numbered(escape),
        _ => return None,
    };
    Some((character, 2))
}

/// A character by its number, or by two that make one.
fn numbered(escape: &[u8]) -> Option<(char, usize)> {
    const LENGTH: usize = 2 + HEX_DIGITS;
    let number = |escape: &[u8]| {
        let digits = escape.strip_prefix(b"\\u")?.get(..HEX_DIGITS)?;
        digits.iter().try_fold(0, |number, &digit| Some(number << 4 | char::from(digit).to_digit(16)?))
    };
    let first = number(escape)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, LENGTH));
    }
    let second = number(escape.get(LENGTH..)?).filter(|second| (0xdc00..0xe000).contains(second))?;
    Some((char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, 2 * LENGTH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What serde_json takes it for, if it is a string at all.
    fn check(string: &str) {
        assert_eq!(text_of(string).map(Cow::into_owned), serde_json::from_str::<String>(string).ok(), "{string}");
    }

    #[test]
    fn escapes_mean_what_they_mean_in_json() {
        for string in [
            r#""""#,
            r#""plain""#,
            r#""a\nb\t\r\b\f\"\\\/""#,
            r#""\u00e9t\u00E9 \ud83d\ude00!""#,
            r#""\\u00e9""#,
            r#""\ud83d""#,
            r#""\ud83d\n""#,
            r#""\ud83dx\ude00""#,
            r#""\ude00""#,
            r#""\ud83d\ud83d""#,
            r#""\u+0e9""#,
            r#""\u00g9""#,
            r#""\u00""#,
            r#""\x""#,
            r#""é\n漢字""#,
        ] {
            check(string);
        }
        assert!(matches!(text_of(r#""plain""#), Some(Cow::Borrowed("plain"))));
    }

    proptest! {
        #[test]
        fn equals_serde_json(text in any::<String>(), pieces in prop::collection::vec(r#"\\u[dD][89a-fA-F][0-9a-f]{2}|\\[nrtbf/]|[a-zé]{0,3}"#, 0..12)) {
            check(&serde_json::to_string(&text).unwrap());
            check(&format!("\"{}\"", pieces.concat()));
        }
    }
}
