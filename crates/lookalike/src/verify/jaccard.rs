//! What two sorted sets have in common.

use crate::kernel::shared_at_least;

/// Members of both; each set ascending without duplicates.
#[must_use]
pub fn shared(left: &[u64], right: &[u64]) -> usize {
    shared_at_least(left, right, 0).unwrap_or(0)
}

/// Jaccard similarity from the sizes; two empty sets have nothing in common.
#[must_use]
pub fn jaccard(shared: usize, left: usize, right: usize) -> f64 {
    share(shared, left + right - shared)
}

/// `part` divided by `whole`; 0 if `whole` is 0.
#[must_use]
pub fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_the_definition(left in prop::collection::btree_set(0u64..60, 0..40), right in prop::collection::btree_set(0u64..60, 0..40)) {
            let (a, b): (Vec<u64>, Vec<u64>) = (left.iter().copied().collect(), right.iter().copied().collect());
            let both = left.intersection(&right).count();
            let any = left.union(&right).collect::<BTreeSet<_>>().len();
            prop_assert_eq!(shared(&a, &b), both);
            let expected = if any == 0 { 0.0 } else { both as f64 / any as f64 };
            prop_assert!((jaccard(both, a.len(), b.len()) - expected).abs() < 1e-15);
        }
    }
}
