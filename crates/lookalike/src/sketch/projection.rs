//! Random projection: a page's tokens, summed as random ±1 vectors, and the signs of the sum.
//!
//! In: the token *sequence*: frequency counts, order does not. Out: `bits` bits (384 by default), as
//! 32-bit words. The number of equal bits estimates the angle between the term-frequency vectors.
//! Charikar; Alg. C of Henzinger 2006, §2.

use crate::kernel::{Mixer, majority_mixed};
use crate::random::next_random;

/// The ±1 vectors, as functions of a token.
#[derive(Debug, Clone)]
pub struct Projection {
    mixers: Vec<Mixer>,
    bits: u32,
}

impl Projection {
    /// `bits` dimensions drawn from `seed`.
    #[must_use]
    pub fn new(bits: u32, seed: u64) -> Projection {
        let mut state = seed ^ 0x70_726f_6a65_6374;
        let mut draw = || next_random(&mut state);
        let mixers = (0..bits.div_ceil(64))
            .map(|_| Mixer { low: halves(draw())[1] | 1, high: halves(draw())[1] | 1, offset: draw() })
            .collect();
        Projection { mixers, bits }
    }

    /// Dimensions.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// 32-bit words a sketch has; always an even number.
    #[must_use]
    pub fn words(&self) -> usize {
        self.mixers.len() * 2
    }

    /// Appends the sketch of `tokens` to `sketch`.
    pub fn project(&self, tokens: &[u64], sketch: &mut Vec<u32>) {
        let mut left = self.bits;
        for &mixer in &self.mixers {
            let word = majority_mixed(tokens, mixer);
            let word = if left >= 64 { word } else { word & ((1 << left) - 1) };
            left = left.saturating_sub(64);
            sketch.extend(halves(word));
        }
    }
}

/// The low and the high half.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // both halves are given
pub fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// In how many bits two sketches differ.
#[must_use]
pub fn distance(left: &[u32], right: &[u32]) -> u32 {
    left.iter().zip(right).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::simhash::distance_of_cosine;
    use crate::text::term::term_token;

    fn sketch(projection: &Projection, tokens: &[u64]) -> Vec<u32> {
        let mut words = Vec::new();
        projection.project(tokens, &mut words);
        words
    }

    #[test]
    fn golden_sketches() {
        let tokens: Vec<u64> = "a rose is a rose is a rose".split(' ').map(|w| term_token(w.as_bytes())).collect();
        assert_eq!(sketch(&Projection::new(384, 1), &tokens), GOLDEN);
        assert_eq!(sketch(&Projection::new(100, 9), &tokens), GOLDEN_100, "fewer bits than whole words");
    }

    const GOLDEN: [u32; 12] = [
        0x4cf4_8758,
        0xff89_b45c,
        0xc331_d8c0,
        0x391e_c403,
        0xdb51_27a3,
        0x01a1_b157,
        0xca45_9a89,
        0x85e1_39c6,
        0x6bbe_4a8b,
        0x7498_8dd5,
        0x2b2b_8ac8,
        0xf631_81b6,
    ];
    const GOLDEN_100: [u32; 4] = [0xa487_bbf3, 0xf837_eff7, 0x7269_4832, 0x0000_0006];

    #[test]
    fn frequency_counts_and_order_does_not() {
        let projection = Projection::new(384, 5);
        let tokens: Vec<u64> = (0..50).map(|n| term_token(format!("{n}").as_bytes())).collect();
        let reversed: Vec<u64> = tokens.iter().rev().copied().collect();
        assert_eq!(sketch(&projection, &tokens), sketch(&projection, &reversed));
        let mut heavier = tokens.clone();
        heavier.extend(std::iter::repeat_n(tokens[0], 20));
        assert!(distance(&sketch(&projection, &tokens), &sketch(&projection, &heavier)) > 20);
    }

    #[test]
    fn every_bit_is_fair_and_no_two_go_together() {
        let projection = Projection::new(384, 3);
        let count = 20_000u32;
        let sketches: Vec<Vec<u32>> =
            (0..count).map(|n| sketch(&projection, &[term_token(format!("w{n}").as_bytes())])).collect();
        let bit = |sketch: &[u32], at: usize| sketch[at / 32] >> (at % 32) & 1;
        let columns: Vec<Vec<u64>> = (0..384)
            .map(|at| {
                let mut column = vec![0u64; sketches.len().div_ceil(64)];
                for (n, sketch) in sketches.iter().enumerate() {
                    column[n / 64] |= u64::from(bit(sketch, at)) << (n % 64);
                }
                column
            })
            .collect();
        let allowed = 6.0 * (f64::from(count) * 0.25).sqrt();
        let far = |ones: u32| (f64::from(ones) - f64::from(count) / 2.0).abs() > allowed;
        for (at, column) in columns.iter().enumerate() {
            assert!(!far(column.iter().map(|word| word.count_ones()).sum()), "bit {at} is not fair");
            for (other, second) in columns[..at].iter().enumerate() {
                let differ = column.iter().zip(second).map(|(a, b)| (a ^ b).count_ones()).sum();
                assert!(!far(differ), "bits {at} and {other} go together: {differ}");
            }
        }
    }

    #[test]
    fn equal_bits_estimate_the_angle_of_the_frequencies() {
        let pairs = 60u32;
        for shared in [60usize, 90, 99] {
            let mut sum = 0;
            for pair in 0..pairs {
                let projection = Projection::new(384, u64::from(pair));
                let token = |side: &str, n: usize| term_token(format!("{pair} {side} {n}").as_bytes());
                let page = |side: &str| -> Vec<u64> {
                    (0..100).map(|n| if n < shared { token("", n) } else { token(side, n) }).collect()
                };
                sum += distance(&sketch(&projection, &page("l")), &sketch(&projection, &page("r")));
            }
            let mean = f64::from(sum) / f64::from(pairs);
            let expected = distance_of_cosine(shared as f64 / 100.0, 384);
            // Ties in the sum of an even number of tokens bring a small bias.
            assert!((mean - expected).abs() < 0.06 * 384.0f64.min(expected) + 2.0, "{mean} instead of {expected}");
        }
    }
}
