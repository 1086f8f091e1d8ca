//! The name of an element, as a few numbers that are quick to compare.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

/// A byte in every place of a word.
pub(super) const fn everywhere(byte: u8) -> u64 {
    0x0101_0101_0101_0101 * byte as u64
}

/// Eight bytes from `at` on, the first of them lowest; nothing where fewer are left.
#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The highest bit of each byte that is `byte`. Bits above the lowest one that is set may be wrong.
#[inline]
pub(super) fn equal_bytes(word: u64, byte: u8) -> u64 {
    let zeros = word ^ everywhere(byte);
    zeros.wrapping_sub(everywhere(1)) & !zeros & everywhere(0x80)
}

/// The number of the byte that the lowest bit is in.
#[inline]
pub(super) fn first_byte(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}

/// A name in lower case: its first bytes and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TagName {
    /// The first eight bytes, and the next eight; zeros behind the name.
    words: [u64; 2],
    length: usize,
}

impl TagName {
    /// The name that begins at `start`, and where it ends.
    #[inline(always)] // a name that is handed on in memory is waited for when it is looked at
    pub(super) fn read(bytes: &[u8], start: usize) -> (TagName, usize) {
        if let Some(word) = word_at(bytes, start) {
            // Also bytes below the blank, most of which end nothing: looked at once more.
            let below = word.wrapping_sub(everywhere(b' ' + 1)) & !word & everywhere(0x80);
            let ends = equal_bytes(word, b'>') | equal_bytes(word, b'/') | below;
            let length = first_byte(ends);
            if ends != 0 && bytes.get(start + length).is_some_and(|&byte| ends_name(byte)) {
                let word = word & !(u64::MAX << (8 * length));
                return (TagName { words: [lower(word), 0], length }, start + length);
            }
        }
        TagName::read_long(bytes, start)
    }

    /// The same of a name that is long, or stands near the end.
    #[cold]
    fn read_long(bytes: &[u8], start: usize) -> (TagName, usize) {
        let length = bytes[start..].iter().position(|&byte| ends_name(byte)).unwrap_or(bytes.len() - start);
        (TagName::of(&bytes[start..start + length]), start + length)
    }

    /// Of its bytes.
    pub(super) const fn of(name: &[u8]) -> TagName {
        let (mut words, mut at) = ([0; 2], 0);
        while at < name.len() && at < 16 {
            words[at / 8] |= (name[at].to_ascii_lowercase() as u64) << (8 * (at % 8));
            at += 1;
        }
        TagName { words, length: name.len() }
    }

    /// The name as one number; nothing if it is too long, or ends with a zero, which the number would not show.
    #[inline]
    pub(super) const fn short(self) -> Option<u64> {
        match self.length {
            1..=8 if self.words[0] >> (8 * (self.length - 1)) != 0 => Some(self.words[0]),
            _ => None,
        }
    }

    /// A hash of its first bytes.
    pub(super) fn hash(self) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&self.words[1].to_le_bytes());
        xxh3_64(&bytes[..self.length.min(16)])
    }
}

fn ends_name(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'/' || byte == b'>'
}

/// Eight bytes with ASCII letters in lower case.
#[inline]
const fn lower(word: u64) -> u64 {
    let low_bits = word & everywhere(0x7f);
    let from_a = low_bits + everywhere(0x80 - b'A');
    let behind_z = low_bits + everywhere(0x7f - b'Z');
    let is_upper = (from_a ^ behind_z) & !word & everywhere(0x80);
    word | is_upper >> 2
}

/// Where `byte` stands in a range of `bytes`.
#[inline]
pub(super) fn find_byte(bytes: &[u8], range: Range<usize>, byte: u8) -> Option<usize> {
    let mut at = range.start;
    // Most is near, where calling a search would take longer than the search.
    for _ in 0..3 {
        let Some(word) = word_at(bytes, at).filter(|_| at + 8 <= range.end) else { break };
        let found = equal_bytes(word, byte);
        if found != 0 {
            return Some(at + first_byte(found));
        }
        at += 8;
    }
    memchr::memchr(byte, &bytes[at..range.end]).map(|found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_are_read_as_they_are_defined(markup in "[a-zA-Z][ -~\\x00-\\x20éÀ>/ ]{0,30}") {
            let bytes = markup.as_bytes();
            let end = bytes.iter().position(|&byte| ends_name(byte)).unwrap_or(bytes.len());
            let (name, found) = TagName::read(bytes, 0);
            prop_assert_eq!(found, end);
            prop_assert_eq!(name, TagName::of(&bytes[..end]));
            let lower = bytes[..end].to_ascii_lowercase();
            prop_assert_eq!(name.hash(), xxh3_64(&lower[..end.min(16)]));
            prop_assert_eq!(name == TagName::of(b"div"), lower == b"div");
            prop_assert_eq!(name.short() == TagName::of(b"p").short(), lower == b"p");
        }

        #[test]
        fn bytes_are_found_where_they_are(text in "[ab\\x00]{0,60}", from in 0usize..60, byte in 0u8..100) {
            let bytes = text.as_bytes();
            let from = from.min(bytes.len());
            let expected = bytes[from..].iter().position(|&found| found == byte).map(|found| from + found);
            prop_assert_eq!(find_byte(bytes, from..bytes.len(), byte), expected);
        }
    }
}
