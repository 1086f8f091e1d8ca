//! Bands of min-values, each one 64-bit key: the supershingles of Alg. B, the buckets of LSH.
//!
//! In: min-values. Out: `bands` keys of `rows` consecutive min-values each. Two pages share a key at
//! a position iff they agree on all its min-values (up to 64-bit collisions), which happens with
//! probability s^rows for Jaccard similarity s. Henzinger 2006, §2.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::spill::Fixed;

/// How min-values are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Bands {
    /// Keys a page has.
    pub bands: usize,
    /// Min-values a key stands for.
    pub rows: usize,
}

impl Bands {
    /// Min-values in all.
    #[must_use]
    pub fn functions(self) -> usize {
        self.bands * self.rows
    }

    /// The keys of a page, in order; `bytes` is scratch space.
    pub fn keys<'a>(self, min_values: &'a [u32], bytes: &'a mut Vec<u8>) -> impl Iterator<Item = u64> + 'a {
        bytes.clear();
        u32::encode(&min_values[..self.functions()], bytes);
        bytes.chunks_exact(self.rows * 4).zip(0u64..).map(|(band, position)| xxh3_64_with_seed(band, position))
    }

    /// In how many bands two pages agree.
    #[must_use]
    pub fn agreeing(self, left: &[u32], right: &[u32]) -> u32 {
        let bands = left.chunks_exact(self.rows).zip(right.chunks_exact(self.rows)).take(self.bands);
        bands.map(|(a, b)| u32::from(a == b)).sum()
    }

    /// The chance that pages of Jaccard similarity `s` agree in at least `agree` bands.
    #[must_use]
    pub fn probability(self, s: f64, agree: u32) -> f64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // at most 256
        let (bands, rows) = (self.bands as i32, self.rows as i32);
        let p = s.powi(rows);
        let fewer: f64 = (0..agree.min(256))
            .map(|equal| {
                #[allow(clippy::cast_possible_wrap)] // at most 256
                let equal = equal as i32;
                choose(bands, equal) * p.powi(equal) * (1.0 - p).powi(bands - equal)
            })
            .sum();
        1.0 - fewer
    }
}

fn choose(n: i32, k: i32) -> f64 {
    (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_random;

    const ALGORITHM_B: Bands = Bands { bands: 6, rows: 14 };

    #[test]
    fn golden_keys() {
        let min_values: Vec<u32> = (0..10).map(|n| n * 1_000_003).collect();
        let mut bytes = Vec::new();
        assert_eq!(Bands { bands: 3, rows: 3 }.keys(&min_values, &mut bytes).collect::<Vec<_>>(), GOLDEN);
    }

    const GOLDEN: [u64; 3] = [0x354b_f7aa_cd9d_364b, 0x88ff_7c7a_a94f_a658, 0xc040_c072_8399_f376];

    #[test]
    fn the_chance_to_be_similar_follows_the_known_curve() {
        for (s, expected, precision) in [
            (0.7, 6.78e-4, 5e-7),
            (0.8, 0.0258, 5e-5),
            (0.85, 0.1198, 5e-5),
            (0.9, 0.4151, 5e-5),
            (0.95, 0.8786, 5e-5),
            (0.98, 0.9957, 5e-5),
            (0.9094, 0.5, 5e-4),
        ] {
            let found = ALGORITHM_B.probability(s, 2);
            assert!((found - expected).abs() < precision, "{s}: {found} instead of {expected}");
        }
    }

    #[test]
    fn drawn_sketches_follow_the_same_curve() {
        // Min-values of two pages agree independently with probability s.
        let mut state = 3;
        let draws = 20_000u32;
        for s in [0.85, 0.9, 0.95] {
            let mut similar = 0;
            for _ in 0..draws {
                let left: Vec<u32> = (0..84).collect();
                let right: Vec<u32> = left
                    .iter()
                    .map(|&v| if (next_random(&mut state) as f64) < s * 2f64.powi(64) { v } else { v + 1000 })
                    .collect();
                similar += u32::from(ALGORITHM_B.agreeing(&left, &right) >= 2);
            }
            let (found, expected) = (f64::from(similar) / f64::from(draws), ALGORITHM_B.probability(s, 2));
            let bound = 5.0 * (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            assert!((found - expected).abs() < bound, "{s}: {found} instead of {expected}");
        }
    }

    #[test]
    fn equal_keys_and_equal_bands_are_the_same_thing() {
        let left: Vec<u32> = (0..84).collect();
        let mut right = left.clone();
        right[20] = 999;
        right[83] = 999;
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let equal =
            ALGORITHM_B.keys(&left, &mut a).zip(ALGORITHM_B.keys(&right, &mut b)).filter(|(x, y)| x == y).count();
        assert_eq!(equal, 4);
        assert_eq!(ALGORITHM_B.agreeing(&left, &right), 4);
    }
}
