//! Min-values: the smallest value of each of `m` functions over a page's shingles.
//!
//! In: shingles; duplicates change nothing. Out: `m` 32-bit values. The share of equal min-values
//! of two pages is an unbiased estimate of the Jaccard similarity of their shingle sets.
//! Broder et al.; Henzinger 2006, §2.

use crate::kernel::min_values;
use crate::random::next_random;

/// The functions, the same for all pages of a run.
#[derive(Debug, Clone)]
pub struct MinHasher {
    multipliers: Vec<u32>,
    offsets: Vec<u32>,
}

impl MinHasher {
    /// `functions` functions drawn from `seed`.
    #[must_use]
    pub fn new(functions: usize, seed: u64) -> MinHasher {
        let mut state = seed;
        let mut draw = || {
            let [high, low] = split(next_random(&mut state));
            (high | 1, low) // odd multipliers: each function is a permutation
        };
        let (multipliers, offsets) = (0..functions).map(|_| draw()).unzip();
        MinHasher { multipliers, offsets }
    }

    /// How many functions there are.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.multipliers.len()
    }

    /// Writes the min-values of `shingles` into `minima`; `narrow` is scratch space.
    pub fn min_values(&self, shingles: &[u64], narrow: &mut Vec<u32>, minima: &mut Vec<u32>) {
        narrow.clear();
        narrow.extend(shingles.iter().map(|&shingle| split(shingle)[0]));
        minima.clear();
        minima.resize(self.functions(), u32::MAX);
        min_values(narrow, &self.multipliers, &self.offsets, minima);
    }
}

/// The share of equal min-values.
#[must_use]
pub fn agreement(left: &[u32], right: &[u32]) -> f64 {
    let equal = left.iter().zip(right).filter(|(a, b)| a == b).count();
    equal as f64 / left.len().max(1) as f64
}

/// The high and the low half.
#[inline]
#[allow(clippy::cast_possible_truncation)] // both halves are given
fn split(value: u64) -> [u32; 2] {
    [(value >> 32) as u32, value as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(hasher: &MinHasher, shingles: &[u64]) -> Vec<u32> {
        let (mut narrow, mut minima) = (Vec::new(), Vec::new());
        hasher.min_values(shingles, &mut narrow, &mut minima);
        minima
    }

    /// Two sets of random shingles with the given numbers of shared and own members.
    fn pair_of_sets(shared: usize, own: usize, state: &mut u64) -> (Vec<u64>, Vec<u64>) {
        let common: Vec<u64> = (0..shared).map(|_| next_random(state)).collect();
        let mut grow = || common.iter().copied().chain((0..own).map(|_| next_random(state))).collect();
        (grow(), grow())
    }

    #[test]
    fn golden_min_values() {
        let shingles: Vec<u64> = (1..=40u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        assert_eq!(sketch(&MinHasher::new(5, 7), &shingles), GOLDEN);
    }

    const GOLDEN: [u32; 5] = [0x01e7_7d87, 0x022e_0c64, 0x0125_6c7d, 0x087e_161e, 0x181a_8f5d];

    #[test]
    fn order_and_repetition_do_not_matter() {
        let hasher = MinHasher::new(84, 1);
        let (set, _) = pair_of_sets(100, 10, &mut 5);
        let mut other: Vec<u64> = set.iter().rev().copied().collect();
        other.extend_from_slice(&set[..50]);
        assert_eq!(sketch(&hasher, &set), sketch(&hasher, &other));
    }

    #[test]
    fn agreement_estimates_jaccard_without_bias_and_within_the_binomial_bound() {
        let hasher = MinHasher::new(84, 42);
        let pairs = 400;
        let mut state = 11;
        for (shared, own) in [(30, 135), (100, 100), (150, 75), (240, 30), (285, 7)] {
            let jaccard = shared as f64 / (shared + 2 * own) as f64;
            let estimates: Vec<f64> = (0..pairs)
                .map(|_| {
                    let (left, right) = pair_of_sets(shared, own, &mut state);
                    agreement(&sketch(&hasher, &left), &sketch(&hasher, &right))
                })
                .collect();
            let mean = estimates.iter().sum::<f64>() / f64::from(pairs);
            let variance = estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / f64::from(pairs - 1);
            let binomial = jaccard * (1.0 - jaccard) / 84.0;
            let bound = 5.0 * (binomial / f64::from(pairs)).sqrt();
            assert!((mean - jaccard).abs() < bound, "mean {mean} for Jaccard {jaccard}");
            assert!(variance < 1.4 * binomial, "variance {variance} against {binomial} at {jaccard}");
        }
    }
}
