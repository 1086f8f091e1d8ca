//! Multisets as sets: the i-th copy of a feature is made a feature of its own.
//!
//! In: features, with repetitions. Out: as many features, ascending, all different. Two pages then
//! share min(a, b) copies of a feature that they have a and b times, so that the Jaccard similarity
//! of the sets is the one weighted by frequency. Jain et al. 2005, §2.3.

/// Numbers the copies of each feature and sorts.
pub fn number_copies(features: &mut [u64]) {
    features.sort_unstable();
    let mut at = 0;
    while at < features.len() {
        let feature = features[at];
        let mut copy = 0u64;
        while at < features.len() && features[at] == feature {
            // The first copy stays what it is.
            features[at] = if copy == 0 { feature } else { numbered(feature, copy) };
            copy += 1;
            at += 1;
        }
    }
    features.sort_unstable();
}

fn numbered(feature: u64, copy: u64) -> u64 {
    let mut state = feature ^ copy.wrapping_mul(0xd6e8_feb8_6659_fd93);
    crate::random::next_random(&mut state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::jaccard::shared;
    use proptest::prelude::*;

    fn numbered_set(features: &[u64]) -> Vec<u64> {
        let mut set = features.to_vec();
        number_copies(&mut set);
        set
    }

    #[test]
    fn golden_copies() {
        assert_eq!(numbered_set(&[7, 7, 9, 7]), GOLDEN);
    }

    const GOLDEN: [u64; 4] = [7, 9, 0x7434_ecc8_f954_f150, 0x7c9f_4370_4bad_1ca0];

    proptest! {
        #[test]
        fn shared_copies_are_the_smaller_count(left in prop::collection::vec(0u64..6, 0..30), right in prop::collection::vec(0u64..6, 0..30)) {
            let count = |side: &[u64], feature| side.iter().filter(|&&f| f == feature).count();
            let expected: usize = (0..6).map(|feature| count(&left, feature).min(count(&right, feature))).sum();
            prop_assert_eq!(shared(&numbered_set(&left), &numbered_set(&right)), expected);
            let mut set = numbered_set(&left);
            set.dedup();
            prop_assert_eq!(set.len(), left.len());
        }
    }
}
