//! Two clusterings, or ranked pairs → numbers.
//!
//! Definitions, for pages 0..n with a gold cluster and a found cluster each: a *pair* is two pages of one
//! cluster. Pair precision: the share of found pairs that are gold; recall: the share of gold pairs that are
//! found. Cluster precision and recall are B³ (Bagga and Baldwin 1998): for each page the share of its found
//! cluster that is of its gold cluster, and the other way, averaged over pages. The Rand index is adjusted
//! for chance (Hubert and Arabie 1985).

use std::collections::HashMap;
use std::hash::Hash;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

pub use crate::report::numbers::shown_share;

/// Found against true.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// Found, and right.
    pub correct: u64,
    /// Found, and wrong.
    pub wrong: u64,
    /// Right, whether found or not.
    pub gold: u64,
}

impl Counts {
    /// Share of the found that are right; 1 where nothing was found, as nothing found is wrong.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.correct as f64, (self.correct + self.wrong) as f64)
    }

    /// Share of the right that were found; 1 where there is nothing to find.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.correct as f64, self.gold as f64)
    }

    /// The harmonic mean of both: 2 · correct / (found + gold).
    #[must_use]
    pub fn f1(&self) -> f64 {
        share(2.0 * self.correct as f64, (self.correct + self.wrong + self.gold) as f64)
    }
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("Counts", 6)?;
        // Precision of nothing is not a number.
        row.serialize_field("precision", &(self.correct + self.wrong > 0).then(|| self.precision()))?;
        row.serialize_field("recall", &(self.gold > 0).then(|| self.recall()))?;
        row.serialize_field("f1", &self.f1())?;
        row.serialize_field("correct", &self.correct)?;
        row.serialize_field("wrong", &self.wrong)?;
        row.serialize_field("gold", &self.gold)?;
        row.end()
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// Two clusterings of the same pages, compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusterScores {
    /// Pairs of pages in one cluster.
    pub pairs: Counts,
    /// B³ precision.
    pub cluster_precision: f64,
    /// B³ recall.
    pub cluster_recall: f64,
    /// Their harmonic mean.
    pub cluster_f1: f64,
    /// The Rand index, adjusted for chance.
    pub adjusted_rand: f64,
    /// Share of the gold clusters, single pages included, that were found page for page.
    pub exact_sets: f64,
}

fn pairs_of(size: u64) -> u64 {
    size * size.saturating_sub(1) / 2
}

fn sizes<K: Eq + Hash>(keys: impl Iterator<Item = K>) -> HashMap<K, u64> {
    let mut sizes = HashMap::new();
    keys.for_each(|key| *sizes.entry(key).or_default() += 1);
    sizes
}

/// Compares two clusterings: for each page its cluster in one and in the other.
#[must_use]
pub fn compare_clusters(gold: &[u32], found: &[u32]) -> ClusterScores {
    let pages = gold.len() as f64;
    let (of_gold, of_found) = (sizes(gold.iter()), sizes(found.iter()));
    let mut both: Vec<((&u32, &u32), u64)> = sizes(gold.iter().zip(found)).into_iter().collect();
    both.sort_unstable(); // sums of fractions depend on the order of the terms
    let correct: u64 = both.iter().map(|row| pairs_of(row.1)).sum();
    let gold_pairs: u64 = of_gold.values().map(|&size| pairs_of(size)).sum();
    let found_pairs: u64 = of_found.values().map(|&size| pairs_of(size)).sum();
    let pairs = Counts { correct, wrong: found_pairs - correct, gold: gold_pairs };
    let (mut precision, mut recall, mut exact) = (0.0, 0.0, 0u64);
    for ((g, f), common) in both {
        let (g, f) = (of_gold[g], of_found[f]);
        precision += (common * common) as f64 / f as f64;
        recall += (common * common) as f64 / g as f64;
        exact += u64::from(common == g && common == f);
    }
    let (precision, recall) = (share(precision, pages), share(recall, pages));
    ClusterScores {
        pairs,
        cluster_precision: precision,
        cluster_recall: recall,
        cluster_f1: share(2.0 * precision * recall, precision + recall),
        adjusted_rand: adjusted_rand(&pairs, pairs_of(gold.len() as u64)),
        exact_sets: share(exact as f64, of_gold.len() as f64),
    }
}

fn adjusted_rand(pairs: &Counts, all: u64) -> f64 {
    let (correct, wrong) = (pairs.correct as f64, pairs.wrong as f64);
    let missed = (pairs.gold - pairs.correct) as f64;
    let apart = all as f64 - correct - wrong - missed;
    if wrong == 0.0 && missed == 0.0 {
        return 1.0;
    }
    let whole = (correct + missed) * (missed + apart) + (correct + wrong) * (wrong + apart);
    2.0 * (correct * apart - missed * wrong) / whole
}

/// What became of duplicates, in the strict sense of the paper on spot signatures (§3.2): a dropped page
/// counts only if the page it was dropped for is of its own cluster.
#[must_use]
pub fn strict(gold: &[u32], kept: &[u32]) -> Counts {
    let duplicates: u64 = sizes(gold.iter()).values().map(|size| size - 1).sum();
    let mut counts = Counts { gold: duplicates, ..Counts::default() };
    for (page, &kept) in (0u32..).zip(kept) {
        if kept != page {
            let is_correct = gold[page as usize] == gold[kept as usize];
            counts.correct += u64::from(is_correct);
            counts.wrong += u64::from(!is_correct);
        }
    }
    counts
}

/// Pairs in the order of a score, judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankedScores {
    /// The chance that a right pair has a higher score than a wrong one; a tie is half a chance.
    pub area: f64,
    /// Average precision: precision at each distinct score, weighted by the recall that it adds.
    pub average_precision: f64,
    /// The best F1 over all thresholds.
    pub best_f1: f64,
    /// The threshold that gives it: the lowest score that is accepted.
    pub best_at: f64,
    /// Precision there.
    pub best_precision: f64,
    /// Recall there.
    pub best_recall: f64,
}

/// Scores (higher is nearer) with verdicts. Nothing where all verdicts are the same.
#[must_use]
pub fn ranked(scores: &[(f64, bool)]) -> Option<RankedScores> {
    let right = scores.iter().filter(|row| row.1).count() as u64;
    let wrong = scores.len() as u64 - right;
    if right == 0 || wrong == 0 {
        return None;
    }
    let mut sorted = scores.to_vec();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut counts = Counts { gold: right, ..Counts::default() };
    let (mut wins, mut average, mut best, mut best_at) = (0.0, 0.0, counts, f64::INFINITY);
    for same in sorted.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let here = same.iter().filter(|row| row.1).count() as u64;
        let not = same.len() as u64 - here;
        // Right ones here win against the wrong ones below, and half against those beside them.
        wins += here as f64 * ((wrong - counts.wrong - not) as f64 + not as f64 / 2.0);
        counts.correct += here;
        counts.wrong += not;
        average += counts.precision() * here as f64 / right as f64;
        if counts.f1() > best.f1() {
            (best, best_at) = (counts, same[0].0);
        }
    }
    Some(RankedScores {
        area: wins / (right as f64 * wrong as f64),
        average_precision: average,
        best_f1: best.f1(),
        best_at,
        best_precision: best.precision(),
        best_recall: best.recall(),
    })
}

/// Wilson's interval for a share of `hits` in `tries`, at 95 %.
#[must_use]
pub fn wilson(hits: u64, tries: u64) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    if tries == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (tries as f64, hits as f64 / tries as f64);
    let centre = p + Z * Z / (2.0 * n);
    let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((centre - reach) / scale).max(0.0), ((centre + reach) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        // Values of the literature: two clusterings of six things, adjusted Rand index 0.24242…
        let scores = compare_clusters(&[0, 0, 0, 1, 1, 1], &[0, 0, 1, 1, 2, 2]);
        assert!((scores.adjusted_rand - 0.242_424_242_424_242_4).abs() < 1e-12, "{scores:?}");
        assert_eq!(scores.pairs, Counts { correct: 2, wrong: 1, gold: 6 });
        assert_eq!(compare_clusters(&[0, 1, 2], &[5, 6, 7]).adjusted_rand, 1.0);
        assert_eq!(compare_clusters(&[0, 1, 2], &[5, 6, 7]).exact_sets, 1.0);
        assert_eq!(compare_clusters(&[0, 0, 0, 0], &[0, 1, 2, 3]).adjusted_rand, 0.0);
        // A page dropped for one of another cluster is not a duplicate that was found.
        assert_eq!(strict(&[0, 0, 1, 1, 2], &[0, 0, 0, 3, 4]), Counts { correct: 1, wrong: 1, gold: 2 });
        let (low, high) = wilson(8, 10);
        assert!((low - 0.490_162).abs() < 1e-5 && (high - 0.943_318).abs() < 1e-5, "{low} {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }

    #[test]
    fn nothing_found_is_nothing_wrong() {
        let none = Counts { correct: 0, wrong: 0, gold: 5 };
        assert_eq!((none.precision(), none.recall(), none.f1()), (1.0, 0.0, 0.0));
        assert_eq!(ranked(&[(0.3, true), (0.9, true)]), None);
    }

    fn pair_count(labels: &[u32], test: impl Fn(usize, usize) -> bool) -> u64 {
        let pages = labels.len();
        (0..pages).flat_map(|b| (0..b).map(move |a| (a, b))).filter(|&(a, b)| test(a, b)).count() as u64
    }

    proptest! {
        #[test]
        fn counts_are_those_of_all_pairs(rows in prop::collection::vec((0u32..5, 0u32..5), 1..40)) {
            let (gold, found): (Vec<u32>, Vec<u32>) = rows.into_iter().unzip();
            let scores = compare_clusters(&gold, &found);
            let counts = Counts {
                correct: pair_count(&gold, |a, b| gold[a] == gold[b] && found[a] == found[b]),
                wrong: pair_count(&gold, |a, b| gold[a] != gold[b] && found[a] == found[b]),
                gold: pair_count(&gold, |a, b| gold[a] == gold[b]),
            };
            prop_assert_eq!(scores.pairs, counts);
            let each = |of: &[u32], by: &[u32]| -> f64 {
                let pages = of.len();
                (0..pages).map(|page| {
                    let mates: Vec<usize> = (0..pages).filter(|&other| by[other] == by[page]).collect();
                    mates.iter().filter(|&&other| of[other] == of[page]).count() as f64 / mates.len() as f64
                }).sum::<f64>() / pages as f64
            };
            prop_assert!((scores.cluster_precision - each(&gold, &found)).abs() < 1e-12);
            prop_assert!((scores.cluster_recall - each(&found, &gold)).abs() < 1e-12);
        }

        #[test]
        fn the_area_is_the_chance_to_win(rows in prop::collection::vec((0u8..6, any::<bool>()), 2..40)) {
            let scores: Vec<(f64, bool)> = rows.iter().map(|row| (f64::from(row.0), row.1)).collect();
            let of = |wanted: bool| -> Vec<(f64, bool)> { scores.iter().filter(|row| row.1 == wanted).copied().collect() };
            let (right, wrong) = (of(true), of(false));
            let win = |a: f64, b: f64| if a > b { 1.0 } else if a == b { 0.5 } else { 0.0 };
            let wins: f64 = right.iter().flat_map(|a| wrong.iter().map(move |b| win(a.0, b.0))).sum();
            match ranked(&scores) {
                None => prop_assert!(right.is_empty() || wrong.is_empty()),
                Some(found) => {
                    prop_assert!((found.area - wins / (right.len() * wrong.len()) as f64).abs() < 1e-12);
                    let f1_at = |t: f64| {
                        let correct = right.iter().filter(|row| row.0 >= t).count() as u64;
                        let wrong = wrong.iter().filter(|row| row.0 >= t).count() as u64;
                        Counts { correct, wrong, gold: right.len() as u64 }.f1()
                    };
                    prop_assert!((f1_at(found.best_at) - found.best_f1).abs() < 1e-12);
                    prop_assert!((0..6u8).all(|t| f1_at(f64::from(t)) <= found.best_f1 + 1e-12));
                }
            }
        }
    }
}
