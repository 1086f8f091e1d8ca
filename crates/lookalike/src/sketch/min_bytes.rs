//! Features → 128 bytes that estimate the similarity of two sets.
//!
//! In: features, repetitions do not matter. Out: one byte for each of 128 parts of the space of hashes: 0 where the set
//! has nothing in that part, else a byte of the least hash there (one permutation hashing, Li, Owen and Zhang 2012;
//! few bits of each minimum, Li and König 2010). Two hashes and a comparison per feature, whatever the number of parts.
//! The standard error of the estimate is at most 0.045, for sets smaller than the number of parts less. It is persisted.

use crate::kernel::mix;

/// Parts, of one byte each.
pub const PARTS: usize = 128;

/// What a set is estimated by.
pub type MinBytes = [u8; PARTS];

/// Bits that say the part.
const PART_BITS: u32 = PARTS.ilog2();

/// The bytes of a set of features.
#[must_use]
pub fn min_bytes(features: &[u64]) -> MinBytes {
    let mut least = [u64::MAX; PARTS];
    for &feature in features {
        let hash = mix(feature);
        let part = usize::try_from(hash >> (64 - PART_BITS)).expect("a part is numbered by a few bits");
        least[part] = least[part].min(hash << PART_BITS);
    }
    let byte = |least: u64| match least {
        u64::MAX => 0,
        // 1 to 255; the least hashes are small numbers, so that their high bits say nothing.
        least => u8::try_from(1 + mix(least) % 255).expect("a number from 1 to 255"),
    };
    least.map(byte)
}

/// The estimated share of the features of both that they have in common.
#[must_use]
pub fn similarity(left: &MinBytes, right: &MinBytes) -> f64 {
    let (mut equal, mut both, mut either) = (0u32, 0u32, 0u32);
    for (&left, &right) in left.iter().zip(right) {
        equal += u32::from(left == right && left > 0);
        both += u32::from(left > 0 && right > 0);
        either += u32::from(left > 0 || right > 0);
    }
    if either == 0 {
        return 0.0;
    }
    // Of the parts that both have, one in 255 is equal by chance.
    let chance = f64::from(both) / 255.0;
    ((f64::from(equal) - chance) / (f64::from(either) - chance)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(range: std::ops::Range<u64>, seed: u64) -> Vec<u64> {
        range.map(|at| mix(at ^ seed << 32)).collect()
    }

    #[test]
    fn the_bytes_are_the_same_on_every_machine() {
        let bytes = min_bytes(&features(0..300, 1));
        assert_eq!(xxhash_rust::xxh3::xxh3_64(&bytes), 0x2aa3_8b73_2634_47fd, "stored with every page; never changes");
    }

    #[test]
    fn the_estimate_is_unbiased_and_its_error_is_what_it_should_be() {
        for (size, shared) in
            [(20u64, 15u64), (100, 30), (100, 80), (1000, 100), (1000, 500), (1000, 900), (5000, 4500)]
        {
            let exact = shared as f64 / (2 * size - shared) as f64;
            let errors: Vec<f64> = (0..300)
                .map(|seed| {
                    let left = min_bytes(&features(0..size, seed));
                    let right = min_bytes(&features(size - shared..2 * size - shared, seed));
                    similarity(&left, &right) - exact
                })
                .collect();
            let mean = errors.iter().sum::<f64>() / 300.0;
            let deviation = (errors.iter().map(|error| error * error).sum::<f64>() / 300.0).sqrt();
            assert!(mean.abs() < 0.012, "{size} {shared}: {mean}");
            assert!(deviation < 0.05, "{size} {shared}: {deviation}");
        }
    }

    #[test]
    fn sets_with_nothing_in_common_and_empty_ones() {
        let (left, right) = (min_bytes(&features(0..1000, 1)), min_bytes(&features(0..1000, 2)));
        assert!(similarity(&left, &right) < 0.03);
        assert!((similarity(&left, &left) - 1.0).abs() < 1e-12);
        assert!(similarity(&min_bytes(&[]), &min_bytes(&[])).abs() < 1e-12, "nothing is not like nothing");
        assert!(similarity(&min_bytes(&[]), &left).abs() < 1e-12);
    }
}
