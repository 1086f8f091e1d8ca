//! Where the words of an ASCII text are.
//!
//! In: bytes. Out: every maximal run of ASCII letters and digits, in order, as far as the text is ASCII. 64 bytes are classified at
//! once; the loop over their words is compiled together with what is done with each, for the processor at hand.
#![allow(unsafe_code)]

use super::byte_class::{ByteClasses, LANES, byte_classes_on};
#[cfg(target_arch = "x86_64")]
use super::byte_class::{avx2, avx512};
use super::vector_unit::{Level, VectorUnit};

/// What is done with words.
pub trait WordSink {
    /// A word, by where it starts and ends. Should be `inline(always)`.
    fn word(&mut self, start: usize, end: usize);
}

/// Shows the words of `bytes` from `from` on, where no word is under way, to `words`. Returns how far it came: to a place where no word is
/// under way, 64 bytes from which are not there, or are not all ASCII, or are one word.
#[inline]
pub fn ascii_words(bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    ascii_words_on(VectorUnit::widest(), bytes, from, words)
}

/// The same on the given unit.
#[inline]
pub fn ascii_words_on(unit: VectorUnit, bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512 | Level::Avx512Popcnt => unsafe { on_avx512(bytes, from, words) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { on_avx2(bytes, from, words) },
        _ => visit_blocks(bytes, from, |block| byte_classes_on(unit, block), words),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi1,bmi2")]
fn on_avx512(bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    visit_blocks(bytes, from, |block| avx512(block), words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn on_avx2(bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    visit_blocks(bytes, from, |block| avx2(block), words)
}

#[inline(always)]
fn visit_blocks(
    bytes: &[u8],
    from: usize,
    classes_of: impl Fn(&[u8; LANES]) -> ByteClasses,
    words: &mut impl WordSink,
) -> usize {
    let mut at = from;
    while let Some(block) = bytes.get(at..at + LANES).and_then(|block| block.try_into().ok()) {
        let ByteClasses { word, wide } = classes_of(block);
        if wide != 0 {
            return at;
        }
        let mut starts = word & !(word << 1);
        let mut ends = !word & (word << 1);
        while ends != 0 {
            words.word(at + starts.trailing_zeros() as usize, at + ends.trailing_zeros() as usize);
            starts &= starts - 1;
            ends &= ends - 1;
        }
        // The last word may go on in the next block.
        match starts.trailing_zeros() as usize {
            0 => return at,
            length => at += length,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Found(Vec<(usize, usize)>);

    impl WordSink for Found {
        #[inline(always)]
        fn word(&mut self, start: usize, end: usize) {
            self.0.push((start, end));
        }
    }

    /// The words that end before `until`, by the definition.
    fn words(bytes: &[u8], from: usize, until: usize) -> Vec<(usize, usize)> {
        let (mut found, mut start) = (Vec::new(), None);
        for (at, byte) in bytes.iter().enumerate().take(until).skip(from) {
            match (byte.is_ascii_alphanumeric(), start) {
                (true, None) => start = Some(at),
                (false, Some(from)) => {
                    found.push((from, at));
                    start = None;
                }
                _ => {}
            }
        }
        found
    }

    fn check(bytes: &[u8], from: usize) {
        for unit in VectorUnit::available() {
            let mut found = Found(Vec::new());
            let end = ascii_words_on(unit, bytes, from, &mut found);
            assert_eq!(found.0, words(bytes, from, end), "{unit}");
            let is_under_way = end > from && bytes[end - 1].is_ascii_alphanumeric();
            assert!(!is_under_way, "{unit} stopped in a word");
            let is_done = match bytes.get(end..end + LANES) {
                None => true,
                Some(block) => !block.is_ascii() || block.iter().all(u8::is_ascii_alphanumeric),
            };
            assert!(is_done, "{unit} stopped at {end} of {}", bytes.len());
        }
    }

    #[test]
    fn words_that_fill_a_block_or_end_with_it_are_whole() {
        for length in 60..70 {
            let text = format!("a {} b {}", "x".repeat(length), " .".repeat(40));
            (0..text.len())
                .filter(|&from| from == 0 || !text.as_bytes()[from - 1].is_ascii_alphanumeric())
                .for_each(|from| check(text.as_bytes(), from));
        }
    }

    proptest! {
        #[test]
        fn every_unit_finds_the_words_of_the_definition(text in "([a-zA-Z0-9]{1,90}|[ .,\\n]{1,20}|[é中ß“]{0,2}){0,40}") {
            check(text.as_bytes(), 0);
        }
    }
}
