//! The text of a JSON string.
//!
//! In: a string as it stands in JSON, with its quotes, of which it is known that it ends where it should. Out: what it says,
//! borrowed if it has no escapes, else copied once; nothing if one of its escapes means no character.

use std::borrow::Cow;

use memchr::memchr;

/// Characters of the number of a character.
const HEX_DIGITS: usize = 4;

/// What a string says.
pub(super) fn text_of(string: &str) -> Option<Cow<'_, str>> {
    let inner = string.strip_prefix('"')?.strip_suffix('"')?;
    let Some(mut at) = memchr(b'\\', inner.as_bytes()) else { return Some(Cow::Borrowed(inner)) };
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    loop {
        text.push_str(rest.get(..at)?);
        let (character, length) = unescaped(rest.get(at..)?)?;
        text.push(character);
        rest = rest.get(at + length..)?;
        match memchr(b'\\', rest.as_bytes()) {
            Some(next) => at = next,
            None => break,
        }
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// The character that an escape stands for, and how many bytes the escape has.
fn unescaped(escape: &str) -> Option<(char, usize)> {
    let character = match escape.as_bytes().get(1)? {
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
fn numbered(escape: &str) -> Option<(char, usize)> {
    const LENGTH: usize = 2 + HEX_DIGITS;
    let number = |escape: &str| {
        let digits = escape.strip_prefix("\\u")?.get(..HEX_DIGITS)?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_number { u32::from_str_radix(digits, 16).ok() } else { None }
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
