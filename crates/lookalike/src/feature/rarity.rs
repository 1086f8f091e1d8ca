//! How many pages have a feature, in bounded memory, and prefixes in the order of rarity.
//!
//! In: the feature sets of pages. Out: counts, and an order of all features from rare to frequent.
//! Features share counters by their hash, so that a count is never too small; an order that is not
//! quite that of rarity costs time and changes no result.

/// Counters, unless there are many features; a power of two.
const COUNTERS: usize = 1 << 20;
/// Features per counter from which on there are more of them: where too many share a counter, rare features look like frequent
/// ones, and pages meet at features that nearly all of them have.
const FEATURES_PER_COUNTER: u64 = 8;

/// Pages that have each feature.
#[derive(Debug, Clone)]
pub struct Rarity {
    counts: Vec<u32>,
    pages: u64,
}

impl Default for Rarity {
    fn default() -> Rarity {
        Rarity { counts: vec![0; COUNTERS], pages: 0 }
    }
}

impl Rarity {
    /// With as many counters as suit so many features: their number decides what meets, so it does not depend on memory.
    pub(crate) fn for_features(features: u64) -> Rarity {
        let wanted = usize::try_from(features / FEATURES_PER_COUNTER).unwrap_or(usize::MAX / 2);
        Rarity { counts: vec![0; wanted.next_power_of_two().max(COUNTERS)], pages: 0 }
    }

    /// Counts a page's features, each of which it has once in `features`.
    pub fn add(&mut self, features: &[u64]) {
        self.pages += 1;
        for &feature in features {
            let at = self.counter(feature);
            let count = &mut self.counts[at];
            *count = count.saturating_add(1);
        }
    }

    /// From counters that were counted elsewhere.
    pub(crate) fn of_counts(counts: impl IntoIterator<Item = (usize, u32)>) -> Rarity {
        let mut rarity = Rarity::default();
        for (counter, count) in counts {
            rarity.counts[counter & (COUNTERS - 1)] = count;
        }
        rarity
    }

    /// The counters that counted something.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.counts.iter().copied().enumerate().filter(|row| row.1 > 0)
    }

    /// Pages that have a feature, or a few more.
    #[must_use]
    pub fn count(&self, feature: u64) -> u32 {
        self.counts[self.counter(feature)]
    }

    #[allow(clippy::cast_possible_truncation)] // masked
    fn counter(&self, feature: u64) -> usize {
        feature as usize & (self.counts.len() - 1)
    }

    /// The weight of a feature: 16 · ln(pages / count), at least 1. Whole numbers, so that sums do not
    /// depend on their order.
    #[must_use]
    pub fn weight(&self, feature: u64) -> u32 {
        let idf = (self.pages.max(1) as f64 / f64::from(self.count(feature).max(1))).ln();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 1 and 16 · 44
        let weight = (16.0 * idf).round().max(1.0) as u32;
        weight
    }
}

/// A page's features from rare to frequent, as far as two pages must share one of them.
#[derive(Debug, Default)]
pub struct Prefix {
    /// The count of each feature and its number on the page.
    keys: Vec<u64>,
    /// The order's key and the weight of each feature of the page.
    ranked: Vec<((u32, u64), u32)>,
    /// How many of them are in the prefix.
    pub length: usize,
    /// The weight of all.
    pub total: u64,
    /// The weight of those behind the prefix.
    pub rest: u64,
}

impl Prefix {
    /// For a page that another must share at least `threshold` of the weight of. Without `weights`
    /// every feature weighs 1.
    pub fn fill(&mut self, features: &[u64], weights: &[u32], rarity: &Rarity, threshold: f64) {
        debug_assert!(features.is_sorted(), "features come in ascending order");
        let weight = |at: usize| weights.get(at).copied().unwrap_or(1);
        // Numbers stand for features, which are ascending as they are.
        self.keys.clear();
        self.keys.extend((0u64..).zip(features).map(|(at, &feature)| u64::from(rarity.count(feature)) << 32 | at));
        // A hair less than needed, so that rounding never cuts a prefix short.
        let needed = |total: u64| threshold * total as f64 * (1.0 - 1e-9);
        if weights.is_empty() {
            // Where all weigh the same it is known beforehand how many there are, and their order does not matter.
            (self.total, self.rest, self.length) = (features.len() as u64, features.len() as u64, 0);
            while self.rest > 0 && self.rest as f64 >= needed(self.total) {
                self.rest -= 1;
                self.length += 1;
            }
            if self.length > 0 {
                self.keys.select_nth_unstable(self.length - 1);
            }
        } else {
            self.keys.sort_unstable();
        }
        self.ranked.clear();
        self.ranked.extend(self.keys.iter().map(|&key| {
            #[allow(clippy::cast_possible_truncation)] // both halves are given
            let (count, at) = ((key >> 32) as u32, key as u32 as usize);
            ((count, features[at]), weight(at))
        }));
        if weights.is_empty() {
            return;
        }
        self.total = self.ranked.iter().map(|row| u64::from(row.1)).sum();
        self.rest = self.total;
        self.length = 0;
        while self.length < self.ranked.len() && self.rest as f64 >= needed(self.total) {
            self.rest -= u64::from(self.ranked[self.length].1);
            self.length += 1;
        }
    }

    /// All features, those of the prefix first and its last one last of them: the order's key and the weight.
    #[must_use]
    pub fn ranked(&self) -> &[((u32, u64), u32)] {
        &self.ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_features_have_more_counters() {
        assert_eq!(Rarity::for_features(1000).counts.len(), COUNTERS);
        assert_eq!(Rarity::for_features(64 << 20).counts.len(), 8 << 20);
    }

    #[test]
    fn a_prefix_is_ordered_by_count_and_feature() {
        let features = [2, 3, 5, 7, 11];
        let mut rarity = Rarity::default();
        for others in [&[5, 7][..], &[5], &features] {
            rarity.add(others);
        }
        let mut prefix = Prefix::default();
        prefix.fill(&features, &[1, 2, 3, 4, 5], &rarity, 0.3);
        let expected = [((1, 2), 1), ((1, 3), 2), ((1, 11), 5), ((2, 7), 4), ((3, 5), 3)];
        assert_eq!(prefix.ranked(), expected);
        // 15 in all, of which 4.5 must be shared: behind the prefix there is less.
        assert_eq!((prefix.total, prefix.length, prefix.rest), (15, 4, 3));
        prefix.fill(&features, &[], &rarity, 0.5);
        assert_eq!((prefix.total, prefix.length, prefix.rest), (5, 3, 2));
        let mut rarest: Vec<u64> = prefix.ranked()[..3].iter().map(|row| row.0.1).collect();
        assert_eq!((rarest.pop(), prefix.ranked().len()), (Some(11), 5));
        rarest.sort_unstable();
        assert_eq!(rarest, [2, 3]);
    }
}
