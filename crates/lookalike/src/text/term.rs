//! The fingerprint of a term: 64 bits over its folded UTF-8 bytes.
//!
//! In: the bytes of one term. Out: a [`Token`]. Guaranteed: the same on every machine and in every
//! version (golden values below); a term of ASCII letters and digits gives the same token whether
//! it is folded here or beforehand. Henzinger (2006) uses Rabin fingerprints; what the methods
//! need of them is that different terms collide with probability about 2^-64, which holds here too.

use std::hash::Hasher;
use std::hint::select_unpredictable;

use crate::page::Token;

const LENGTH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const WORD_MULTIPLIER: u64 = 0xa076_1d64_78bd_642f;
const FINAL_MULTIPLIER: u64 = 0xe703_7ed1_a0b4_28db;
const START: u64 = 0x8ebc_6af0_9c88_c6e3;

/// Lower-cases ASCII letters and leaves digits as they are, eight bytes at once.
const FOLD: u64 = 0x2020_2020_2020_2020;

/// The fingerprint of a term that is already folded.
#[must_use]
pub fn term_token(term: &[u8]) -> Token {
    hash::<false>(term, 0, term.len())
}

/// The fingerprint of the ASCII letters and digits in `text[start..end]`, case folded.
///
/// The bytes behind `end` may be read, never used: it saves copying short words.
#[inline(always)]
pub(crate) fn ascii_token(text: &[u8], start: usize, end: usize) -> Token {
    hash::<true>(text, start, end)
}

/// The fingerprint of the term in `text[start..end]`, which is already folded or is not to be; else as [`ascii_token`].
#[inline(always)]
pub(crate) fn folded_token(text: &[u8], start: usize, end: usize) -> Token {
    hash::<false>(text, start, end)
}

#[inline(always)]
fn hash<const FOLD_CASE: bool>(text: &[u8], start: usize, end: usize) -> Token {
    // Most words are short and do not stand at the very end of the text: no loop, no copy, and no branch on whether they are
    // longer than eight bytes, which nobody can foresee.
    if let (Some(word), Some(bytes)) = (SHORT_WORDS.get(end - start), text.get(start..start + 2 * WORD_BYTES)) {
        let (low, high) = (load(bytes, 0), load(bytes, WORD_BYTES));
        let (low, high) = if FOLD_CASE { (low | FOLD, high | FOLD) } else { (low, high) };
        let first = folded_multiply(word.initial ^ (low & word.low), WORD_MULTIPLIER);
        let second = folded_multiply(first ^ (high & word.high), WORD_MULTIPLIER);
        return finish(select_unpredictable(end - start <= WORD_BYTES, first, second));
    }
    hash_any::<FOLD_CASE>(text, start, end)
}

/// Bytes that are taken in at once.
const WORD_BYTES: usize = 8;

/// What counts in a short word.
#[derive(Clone, Copy)]
struct ShortWord {
    initial: u64,
    low: u64,
    high: u64,
}

/// Words of up to 16 bytes, by their length.
static SHORT_WORDS: [ShortWord; 2 * WORD_BYTES + 1] = {
    let mut words = [ShortWord { initial: 0, low: 0, high: 0 }; 2 * WORD_BYTES + 1];
    let mut length = 0;
    while length < words.len() {
        let in_high = length.saturating_sub(WORD_BYTES);
        words[length] =
            ShortWord { initial: initial(length), low: LOW_BYTES[length - in_high], high: LOW_BYTES[in_high] };
        length += 1;
    }
    words
};

/// Ones in the lowest bytes, by their number.
const LOW_BYTES: [u64; WORD_BYTES + 1] =
    [0, 0xff, 0xffff, 0xff_ffff, 0xffff_ffff, 0xff_ffff_ffff, 0xffff_ffff_ffff, 0xff_ffff_ffff_ffff, u64::MAX];

#[inline]
const fn initial(length: usize) -> u64 {
    START ^ (length as u64).wrapping_mul(LENGTH_MULTIPLIER)
}

#[cold]
fn hash_any<const FOLD_CASE: bool>(text: &[u8], start: usize, end: usize) -> Token {
    let mut state = initial(end - start);
    let mut at = start;
    loop {
        let mut word = load(text, at);
        if FOLD_CASE {
            word |= FOLD;
        }
        let left = end - at;
        if left <= WORD_BYTES {
            return finish(folded_multiply(state ^ (word & LOW_BYTES[left]), WORD_MULTIPLIER));
        }
        state = folded_multiply(state ^ word, WORD_MULTIPLIER);
        at += WORD_BYTES;
    }
}

/// Eight bytes from `at`, little-endian; zeros past the end.
#[inline]
fn load(text: &[u8], at: usize) -> u64 {
    if let Some(bytes) = text.get(at..at + 8).and_then(|slice| <[u8; 8]>::try_from(slice).ok()) {
        return u64::from_le_bytes(bytes);
    }
    let mut bytes = [0u8; 8];
    let rest = text.get(at..).unwrap_or(&[]);
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(bytes)
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // both halves of the product are used
fn folded_multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn finish(state: u64) -> u64 {
    let mixed = (state ^ (state >> 32)).wrapping_mul(FINAL_MULTIPLIER);
    mixed ^ (mixed >> 29)
}

/// Tokens are hashes already.
#[derive(Default)]
pub struct TokenHasher(u64);

impl Hasher for TokenHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 ^ u64::from(byte));
    }

    fn write_u64(&mut self, token: u64) {
        self.0 = token;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn golden_tokens() {
        // Persisted indirectly in every sketch: these never change.
        let terms = ["a", "rose", "12345678", "größe", "internationalisation"];
        assert_eq!(terms.map(|term| term_token(term.as_bytes())), GOLDEN);
    }

    const GOLDEN: [u64; 5] = [
        0x75fa_d710_0b5f_845b,
        0x516a_2c5b_235c_f848,
        0x9521_6876_d0ff_248d,
        0x0890_b713_288a_6c5a,
        0x3711_e4b9_993f_5c72,
    ];

    #[test]
    fn folding_here_equals_folding_beforehand() {
        let text = b"..The Quick BROWN Fox2Jumps overInternationalisation";
        for (start, end) in [(2, 5), (6, 11), (12, 17), (18, 27), (28, 52)] {
            let folded = text[start..end].to_ascii_lowercase();
            assert_eq!(ascii_token(text, start, end), term_token(&folded));
            assert_eq!(folded_token(text, start, end), term_token(&text[start..end]));
        }
    }

    #[test]
    fn what_stands_behind_a_word_does_not_matter() {
        assert_eq!(ascii_token(b"cat and dog", 0, 3), ascii_token(b"cat", 0, 3));
    }

    #[test]
    fn a_million_terms_have_a_million_tokens() {
        let tokens: HashSet<u64> = (0..1_000_000u32).map(|n| term_token(format!("w{n}").as_bytes())).collect();
        assert_eq!(tokens.len(), 1_000_000);
    }

    #[test]
    fn every_bit_is_set_in_about_half_of_the_tokens() {
        let count = 20_000;
        let mut ones = [0u32; 64];
        for n in 0..count {
            let token = term_token(format!("{n}").as_bytes());
            for (bit, one) in ones.iter_mut().enumerate() {
                *one += u32::from((token >> bit) & 1 == 1);
            }
        }
        // Six standard deviations of a fair coin.
        let allowed = 6.0 * (f64::from(count) * 0.25).sqrt();
        for (bit, one) in ones.iter().enumerate() {
            let off = (f64::from(*one) - f64::from(count) / 2.0).abs();
            assert!(off < allowed, "bit {bit}: {one} of {count}");
        }
    }
}
