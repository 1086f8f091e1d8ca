//! How many pages have a feature, in bounded memory, and prefixes in the order of rarity.
//!
//! In: the feature sets of pages. Out: counts, and an order of all features from rare to frequent.
//! Features share counters by their hash, so that a count is never too small; an order that is not
//! quite that of rarity costs time and changes no result.

/// Counters; a power of two.
const COUNTERS: usize = 1 << 20;

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
    /// Counts a page's features, each of which it has once in `features`.
    pub fn add(&mut self, features: &[u64]) {
        self.pages += 1;
        for &feature in features {
            let count = &mut self.counts[counter(feature)];
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
        self.counts[counter(feature)]
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

    /// A feature's place in the order: rare before frequent.
    #[must_use]
    pub fn key(&self, feature: u64) -> (u32, u64) {
        (self.count(feature), feature)
    }
}

#[allow(clippy::cast_possible_truncation)] // masked
fn counter(feature: u64) -> usize {
    feature as usize & (COUNTERS - 1)
}

/// A page's features from rare to frequent, as far as two pages must share one of them.
#[derive(Debug, Default)]
pub struct Prefix {
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
        let weight = |at: usize| weights.get(at).copied().unwrap_or(1);
        self.ranked.clear();
        self.ranked.extend(features.iter().enumerate().map(|(at, &feature)| (rarity.key(feature), weight(at))));
        self.ranked.sort_unstable();
        self.total = self.ranked.iter().map(|row| u64::from(row.1)).sum();
        // A hair less than needed, so that rounding never cuts a prefix short.
        let needed = threshold * self.total as f64 * (1.0 - 1e-9);
        self.rest = self.total;
        self.length = 0;
        while self.length < self.ranked.len() && self.rest as f64 >= needed {
            self.rest -= u64::from(self.ranked[self.length].1);
            self.length += 1;
        }
    }

    /// All features: the order's key and the weight.
    #[must_use]
    pub fn ranked(&self) -> &[((u32, u64), u32)] {
        &self.ranked
    }
}
