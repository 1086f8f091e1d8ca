//! Which bits are set in more than half of many 64-bit words.
//!
//! In: words, each first sent through a [`Mixer`] or taken as it is. Out: one word. The counters
//! are bit-sliced: a carry-save adder adds eight vectors at a time, and the 64 sums are compared
//! with half the number of words without ever being spelled out.
#![allow(unsafe_code)]

mod vectors;

use super::vector_unit::{Level, VectorUnit};

/// Words added side by side.
const WIDE: usize = 4;
/// Vectors added at once.
const TALL: usize = 8;
/// Digits of a counter: enough for 2^32 words.
const DIGITS: usize = 32;

type Vector = [u64; WIDE];

/// A fixed random function on words: two 32-bit multiplications, an addition, a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mixer {
    /// Multiplies the low half; odd.
    pub low: u32,
    /// Multiplies the high half; odd.
    pub high: u32,
    /// Is added.
    pub offset: u64,
}

impl Mixer {
    /// The function's value.
    #[inline(always)]
    #[must_use]
    pub fn mix(self, word: u64) -> u64 {
        let low = (word & 0xffff_ffff).wrapping_mul(u64::from(self.low));
        let high = (word >> 32).wrapping_mul(u64::from(self.high));
        let sum = low.wrapping_add(high).wrapping_add(self.offset);
        // The low bits of a sum of products know little; the high ones much. Folding shares it out.
        let folded = sum ^ (sum >> 32);
        folded ^ (folded << 17)
    }
}

/// Bits that are set in more than half of `words`, on the widest vector unit of this machine.
#[must_use]
pub fn majority(words: &[u64]) -> u64 {
    majority_on(VectorUnit::widest(), words, None)
}

/// As [`majority`], of the words' images under `mixer`.
#[must_use]
pub fn majority_mixed(words: &[u64], mixer: Mixer) -> u64 {
    majority_on(VectorUnit::widest(), words, Some(mixer))
}

/// As [`majority`] or [`majority_mixed`], on the given unit.
#[must_use]
pub fn majority_on(unit: VectorUnit, words: &[u64], mixer: Option<Mixer>) -> u64 {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512 | Level::Avx512Popcnt => unsafe { vectors::avx512(words, mixer) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { vectors::avx2(words, mixer) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { vectors::neon(words, mixer) },
        _ => portable(words, mixer),
    }
}

fn portable(words: &[u64], mixer: Option<Mixer>) -> u64 {
    match mixer {
        None => counted(words, |word| word),
        Some(mixer) => counted(words, |word| mixer.mix(word)),
    }
}

/// The definition, in plain Rust for any machine.
#[must_use]
pub fn majority_scalar(words: &[u64], mixer: Option<Mixer>) -> u64 {
    let mut counts = [0usize; 64];
    for &word in words {
        let word = mixer.map_or(word, |mixer| mixer.mix(word));
        for (bit, count) in counts.iter_mut().enumerate() {
            *count += usize::from(word >> bit & 1 == 1);
        }
    }
    counts.iter().enumerate().fold(0, |set, (bit, &count)| set | u64::from(2 * count > words.len()) << bit)
}

#[inline(always)]
fn counted(words: &[u64], mix: impl Fn(u64) -> u64) -> u64 {
    let mut digits = [[0u64; WIDE]; DIGITS];
    let blocks = words.chunks_exact(WIDE * TALL);
    let rest = blocks.remainder();
    for block in blocks {
        let mut vectors = [[0u64; WIDE]; TALL];
        for (vector, words) in vectors.iter_mut().zip(block.chunks_exact(WIDE)) {
            for lane in 0..WIDE {
                vector[lane] = mix(words[lane]);
            }
        }
        add(&mut digits, &vectors);
    }
    if !rest.is_empty() {
        // What is left is filled up with zeros, which count for nothing.
        let mut vectors = [[0u64; WIDE]; TALL];
        for (at, &word) in rest.iter().enumerate() {
            vectors[at / WIDE][at % WIDE] = mix(word);
        }
        add(&mut digits, &vectors);
    }
    above_half(&digits, words.len() as u64)
}

/// Adds eight vectors of bits to the counters.
#[inline(always)]
fn add(digits: &mut [Vector; DIGITS], vectors: &[Vector; TALL]) {
    let (ones, twos_a) = full_adder(digits[0], vectors[0], vectors[1]);
    let (ones, twos_b) = full_adder(ones, vectors[2], vectors[3]);
    let (twos, fours_a) = full_adder(digits[1], twos_a, twos_b);
    let (ones, twos_a) = full_adder(ones, vectors[4], vectors[5]);
    let (ones, twos_b) = full_adder(ones, vectors[6], vectors[7]);
    let (twos, fours_b) = full_adder(twos, twos_a, twos_b);
    let (fours, mut carry) = full_adder(digits[2], fours_a, fours_b);
    digits[0] = ones;
    digits[1] = twos;
    digits[2] = fours;
    for digit in &mut digits[3..] {
        let mut any = 0;
        for lane in 0..WIDE {
            let both = digit[lane] & carry[lane];
            digit[lane] ^= carry[lane];
            carry[lane] = both;
            any |= both;
        }
        if any == 0 {
            break;
        }
    }
}

/// Three bits in each place → sum and carry.
#[inline(always)]
fn full_adder(a: Vector, b: Vector, c: Vector) -> (Vector, Vector) {
    let (mut sum, mut carry) = ([0; WIDE], [0; WIDE]);
    for lane in 0..WIDE {
        let partial = a[lane] ^ b[lane];
        sum[lane] = partial ^ c[lane];
        carry[lane] = (a[lane] & b[lane]) | (partial & c[lane]);
    }
    (sum, carry)
}

/// Adds the lanes up and compares each of the 64 sums with half of `total`.
#[inline]
#[allow(clippy::needless_range_loop)] // a lane is a column, not a row
fn above_half<const LANES: usize>(digits: &[[u64; LANES]; DIGITS], total: u64) -> u64 {
    let used = digits_for(total);
    let mut sums = [0u64; DIGITS];
    for lane in 0..LANES {
        let mut carry = 0;
        for (sum, digit) in sums.iter_mut().zip(&digits[..used]) {
            let (a, b) = (*sum, digit[lane]);
            let partial = a ^ b;
            *sum = partial ^ carry;
            carry = (a & b) | (partial & carry);
        }
    }
    let half = total / 2;
    let (mut above, mut equal) = (0u64, u64::MAX);
    for digit in (0..used).rev() {
        if half >> digit & 1 == 1 {
            equal &= sums[digit];
        } else {
            above |= equal & sums[digit];
            equal &= !sums[digit];
        }
    }
    above
}

/// Binary digits that can hold `count`.
#[inline]
fn digits_for(count: u64) -> usize {
    ((u64::BITS - count.leading_zeros()) as usize).min(DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIXER: Mixer = Mixer { low: 0x9e37_79b1, high: 0x85eb_ca77, offset: 0x1656_67b1_9e37_79f9 };

    fn check(words: &[u64]) {
        for mixer in [None, Some(MIXER)] {
            let expected = majority_scalar(words, mixer);
            for unit in VectorUnit::available() {
                assert_eq!(majority_on(unit, words, mixer), expected, "{unit}, {} words, {mixer:?}", words.len());
            }
        }
    }

    #[test]
    fn every_number_of_words_on_every_unit_from_any_address() {
        let words: Vec<u64> = (0..2000u64).map(|n| MIXER.mix(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        for length in (0..=200).chain([255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 1900]) {
            let start = length % 9;
            check(&words[start..start + length]);
            // Counters that are full, and ones that are just above or at half.
            check(&vec![u64::MAX; length]);
            let halves: Vec<u64> = (0..length as u64).map(|n| [0xf0f0, 0xff00][usize::from(n % 2 == 0)]).collect();
            check(&halves);
        }
    }

    proptest! {
        #[test]
        fn every_unit_equals_the_definition(words in prop::collection::vec(any::<u64>(), 0..1200)) {
            check(&words);
        }
    }

    #[test]
    fn many_equal_words_and_ties() {
        for unit in VectorUnit::available() {
            assert_eq!(majority_on(unit, &[], None), 0);
            assert_eq!(majority_on(unit, &vec![u64::MAX; 100_000], None), u64::MAX);
            // A tie is not a majority.
            assert_eq!(majority_on(unit, &[0b11, 0b01], None), 0b01);
        }
    }
}
