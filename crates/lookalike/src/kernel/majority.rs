//! Which bits are set in more than half of many 64-bit words.
//!
//! In: words, each first sent through a [`Mixer`] or taken as it is. Out: one word. The counters
//! are bit-sliced: a carry-save adder adds eight vectors at a time, and the 64 sums are compared
//! with half the number of words without ever being spelled out. The same loop is compiled for
//! AVX-512, AVX2 and the baseline.
#![allow(unsafe_code)]

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
    /// Multiplies the low half; odd, below 2^32.
    pub low: u64,
    /// Multiplies the high half; odd, below 2^32.
    pub high: u64,
    /// Is added.
    pub offset: u64,
}

impl Mixer {
    /// The function's value.
    #[inline(always)]
    #[must_use]
    pub fn mix(self, word: u64) -> u64 {
        let low = (word & 0xffff_ffff).wrapping_mul(self.low);
        let high = (word >> 32).wrapping_mul(self.high);
        let sum = low.wrapping_add(high).wrapping_add(self.offset);
        // The low bits of a sum of products know little; the high ones much. Folding shares it out.
        let folded = sum ^ (sum >> 32);
        folded ^ (folded << 17)
    }
}

/// Bits that are set in more than half of `words`, on the widest vector unit of this machine.
#[must_use]
pub fn majority(words: &[u64]) -> u64 {
    dispatch(words, None)
}

/// As [`majority`], of the words' images under `mixer`.
#[must_use]
pub fn majority_mixed(words: &[u64], mixer: Mixer) -> u64 {
    dispatch(words, Some(mixer))
}

fn dispatch(words: &[u64], mixer: Option<Mixer>) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vl") {
            // SAFETY: the CPU has the features the function is compiled for.
            return unsafe { avx512(words, mixer) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(words, mixer) };
        }
    }
    plain(words, mixer)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn avx512(words: &[u64], mixer: Option<Mixer>) -> u64 {
    plain(words, mixer)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(words: &[u64], mixer: Option<Mixer>) -> u64 {
    plain(words, mixer)
}

#[inline(always)]
fn plain(words: &[u64], mixer: Option<Mixer>) -> u64 {
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
        let mut room = [[0u64; WIDE]; TALL];
        for (vector, words) in room.iter_mut().zip(block.chunks_exact(WIDE)) {
            for lane in 0..WIDE {
                vector[lane] = mix(words[lane]);
            }
        }
        add(&mut digits, &room);
    }
    if !rest.is_empty() {
        // What is left is filled up with zeros, which count for nothing.
        let mut room = [[0u64; WIDE]; TALL];
        for (at, &word) in rest.iter().enumerate() {
            room[at / WIDE][at % WIDE] = mix(word);
        }
        add(&mut digits, &room);
    }
    above_half(&digits, words.len() as u64)
}

/// Adds eight vectors of bits to the counters.
#[inline(always)]
fn add(digits: &mut [Vector; DIGITS], room: &[Vector; TALL]) {
    let (ones, twos_a) = full_adder(digits[0], room[0], room[1]);
    let (ones, twos_b) = full_adder(ones, room[2], room[3]);
    let (twos, fours_a) = full_adder(digits[1], twos_a, twos_b);
    let (ones, twos_a) = full_adder(ones, room[4], room[5]);
    let (ones, twos_b) = full_adder(ones, room[6], room[7]);
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
#[inline(always)]
#[allow(clippy::needless_range_loop)] // a lane is a column, not a row
fn above_half(digits: &[Vector; DIGITS], total: u64) -> u64 {
    let used = 64 - (total.leading_zeros() as usize).min(63);
    let mut sums = [0u64; DIGITS + 2];
    for lane in 0..WIDE {
        let mut carry = 0;
        for (sum, digit) in sums.iter_mut().zip(&digits[..used.min(DIGITS)]) {
            let (a, b) = (*sum, digit[lane]);
            let partial = a ^ b;
            *sum = partial ^ carry;
            carry = (a & b) | (partial & carry);
        }
    }
    let half = total / 2;
    let (mut above, mut equal) = (0u64, u64::MAX);
    for digit in (0..used.min(DIGITS)).rev() {
        if half >> digit & 1 == 1 {
            equal &= sums[digit];
        } else {
            above |= equal & sums[digit];
            equal &= !sums[digit];
        }
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIXER: Mixer = Mixer { low: 0x9e37_79b1, high: 0x85eb_ca77, offset: 0x1656_67b1_9e37_79f9 };

    proptest! {
        #[test]
        fn every_width_equals_the_definition(words in prop::collection::vec(any::<u64>(), 0..200)) {
            for mixer in [None, Some(MIXER)] {
                let expected = majority_scalar(&words, mixer);
                prop_assert_eq!(dispatch(&words, mixer), expected);
                prop_assert_eq!(plain(&words, mixer), expected);
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the CPU has AVX2.
                    prop_assert_eq!(unsafe { avx2(&words, mixer) }, expected);
                }
            }
        }
    }

    #[test]
    fn many_equal_words_and_ties() {
        assert_eq!(majority(&[]), 0);
        assert_eq!(majority(&vec![u64::MAX; 100_000]), u64::MAX);
        // A tie is no majority.
        assert_eq!(majority(&[0b11, 0b01]), 0b01);
    }
}
