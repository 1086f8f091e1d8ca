//! SimHash: a fingerprint of 64 bits in which pages with similar features differ in few places.
//!
//! In: features, each a 64-bit hash, with weights. Out: bit i is 1 iff the weight of the features
//! whose hash has bit i exceeds the weight of the others. The share of differing bits estimates the
//! angle between the feature vectors. Charikar; Manku et al. 2007, §2.

use std::borrow::Cow;

use crate::kernel::majority;
use crate::sketch::projection::halves;

/// Bits of a fingerprint, unless something else is asked for.
pub const FINGERPRINT_BITS: u32 = 64;

/// The fingerprint of features that count once each; repeat a feature to weigh it.
#[must_use]
pub fn fingerprint(features: &[u64]) -> u64 {
    majority(features)
}

/// The fingerprint of features with weights.
#[must_use]
pub fn weighted_fingerprint(features: &[u64], weights: &[u32]) -> u64 {
    let mut counts = [0u64; 64];
    let mut total = 0;
    for (&feature, &weight) in features.iter().zip(weights) {
        total += u64::from(weight);
        for (bit, count) in counts.iter_mut().enumerate() {
            *count += u64::from(weight) * (feature >> bit & 1);
        }
    }
    counts.iter().enumerate().fold(0, |bits, (bit, &count)| bits | u64::from(2 * count > total) << bit)
}

/// Appends the fingerprint of features, with weights or without, of any number of bits, as pairs of 32-bit words. The first
/// 64 bits are those of the fingerprint of that size; the features are hashed once more for every 64 bits that follow.
pub fn long_fingerprint(features: &[u64], weights: Option<&[u32]>, bits: u32, sketch: &mut Vec<u32>) {
    for word in 0..u64::from(bits.div_ceil(64)) {
        let hashed: Cow<'_, [u64]> = match word {
            0 => features.into(),
            _ => features.iter().map(|&feature| hash_again(feature, word)).collect(),
        };
        let found = match weights {
            None => fingerprint(&hashed),
            Some(weights) => weighted_fingerprint(&hashed, weights),
        };
        let left = u64::from(bits) - word * 64;
        sketch.extend(halves(if left >= 64 { found } else { found & ((1 << left) - 1) }));
    }
}

/// Another hash of a hash: the finaliser of SplitMix64, a step of its generator away for each word.
fn hash_again(hash: u64, word: u64) -> u64 {
    let hash = hash.wrapping_add(word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// The cosine that a distance between two fingerprints of `bits` bits stands for.
#[must_use]
pub fn cosine_of_distance(distance: u32, bits: u32) -> f64 {
    (std::f64::consts::PI * f64::from(distance) / f64::from(bits.max(1))).cos()
}

/// The distance that is expected between fingerprints of `bits` bits at a cosine.
#[must_use]
pub fn distance_of_cosine(cosine: f64, bits: u32) -> f64 {
    cosine.clamp(-1.0, 1.0).acos() / std::f64::consts::PI * f64::from(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_random;
    use crate::sketch::projection::distance;
    use crate::text::term::term_token;
    use proptest::prelude::*;

    #[test]
    fn the_known_answer_of_the_slides() {
        assert_eq!(weighted_fingerprint(&[0b1101, 0b0011, 0b1000], &[3, 2, 3]), 0b1001);
        let repeated = [0b1101, 0b1101, 0b1101, 0b0011, 0b0011, 0b1000, 0b1000, 0b1000];
        assert_eq!(fingerprint(&repeated), 0b1001);
    }

    #[test]
    fn a_rose_is_a_rose() {
        // Hashes 1101, 0011, 1000 for rose, is, a: three roses, two "is", three "a" make 1001, and so
        // does the question, which has two roses, one "is" and two "a".
        let (rose, is, a) = (0b1101, 0b0011, 0b1000);
        assert_eq!(fingerprint(&[a, rose, is, a, rose, is, a, rose]), 0b1001);
        assert_eq!(fingerprint(&[is, a, rose, a, rose]), 0b1001);
    }

    #[test]
    fn golden_fingerprints() {
        let tokens: Vec<u64> = "a rose is a rose is a rose".split(' ').map(|w| term_token(w.as_bytes())).collect();
        assert_eq!(fingerprint(&tokens), GOLDEN);
        let distinct: Vec<u64> = (0..9u32).map(|n| term_token(&n.to_le_bytes())).collect();
        assert_eq!(weighted_fingerprint(&distinct, &[2, 1, 9, 2, 4, 1, 1, 1, 7]), GOLDEN_WEIGHTED);
    }

    const GOLDEN: u64 = 0x716a_671a_235f_ec48;
    const GOLDEN_WEIGHTED: u64 = 0x9ac4_ad70_f072_6e1d;

    #[test]
    fn the_known_angles() {
        let near = |found: f64, known: f64| assert!((found - known).abs() < 5e-5, "{found} instead of {known}");
        near(cosine_of_distance(12, 384), 0.9952);
        near(cosine_of_distance(29, 384), 0.9720);
        near(cosine_of_distance(3, 64), 0.9892);
        assert_eq!((384.0 - distance_of_cosine(0.6, 384)).round(), 271.0);
    }

    #[test]
    fn the_distance_estimates_the_angle() {
        // Two pages that share `shared` of 200 distinct features: cosine shared / 200.
        let (pages, size) = (300, 200usize);
        let mut state = 77;
        for shared in [100usize, 160, 190] {
            let mut sum = 0;
            for _ in 0..pages {
                let common: Vec<u64> = (0..shared).map(|_| next_random(&mut state)).collect();
                let mut page = || {
                    let own = (shared..size).map(|_| next_random(&mut state));
                    fingerprint(&common.iter().copied().chain(own).collect::<Vec<_>>())
                };
                sum += (page() ^ page()).count_ones();
            }
            let mean = f64::from(sum) / f64::from(pages);
            let expected = distance_of_cosine(shared as f64 / size as f64, 64);
            let bound = 5.0 * (expected * (1.0 - expected / 64.0) / f64::from(pages)).sqrt() + 0.3;
            assert!((mean - expected).abs() < bound, "{mean} instead of {expected}");
        }
    }

    #[test]
    fn a_longer_fingerprint_begins_with_the_shorter_one_and_estimates_the_same_angle() {
        let features: Vec<u64> = (0..40u32).map(|n| term_token(&n.to_le_bytes())).collect();
        let of = |bits: u32, features: &[u64]| {
            let mut sketch = Vec::new();
            long_fingerprint(features, None, bits, &mut sketch);
            sketch
        };
        let (short, whole, long) = (of(40, &features), of(64, &features), of(256, &features));
        assert_eq!(whole, halves(fingerprint(&features)));
        assert_eq!((short[0], short[1]), (whole[0], whole[1] & 0xff));
        assert_eq!((&long[..2], long.len()), (&whole[..], 8));
        assert_eq!(of(256, &features)[2..], LONG_GOLDEN, "{:08x?}", &long[2..]);
        let mut weighted = Vec::new();
        long_fingerprint(&features, Some(&[1; 40]), 256, &mut weighted);
        assert_eq!(weighted, long);
        // 100 of 200 features in common: an angle of 60 degrees, a third of the bits.
        let mut state = 5;
        let mut differing = 0;
        for _ in 0..100 {
            let common: Vec<u64> = (0..100).map(|_| next_random(&mut state)).collect();
            let mut page = || {
                let own = (0..100).map(|_| next_random(&mut state));
                of(256, &common.iter().copied().chain(own).collect::<Vec<_>>())
            };
            differing += distance(&page(), &page());
        }
        let mean = f64::from(differing) / 100.0;
        assert!((mean - 256.0 / 3.0).abs() < 5.0, "{mean}");
    }

    const LONG_GOLDEN: [u32; 6] = [0x3815_cd42, 0x8c25_28b7, 0x6e57_2a41, 0x9d5a_0f8e, 0xbf85_1ec4, 0x41a5_2052];

    proptest! {
        #[test]
        fn weights_are_repetitions(rows in prop::collection::vec((any::<u64>(), 0u32..6), 0..40)) {
            let (features, weights): (Vec<u64>, Vec<u32>) = rows.iter().copied().unzip();
            let repeated: Vec<u64> =
                rows.iter().flat_map(|&(feature, weight)| std::iter::repeat_n(feature, weight as usize)).collect();
            prop_assert_eq!(weighted_fingerprint(&features, &weights), fingerprint(&repeated));
        }
    }
}
