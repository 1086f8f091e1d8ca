//! Bands and rows for a threshold and a wanted recall.
//!
//! Among the layouts whose expected recall *at* the threshold reaches the wanted one, the one with
//! the least expected cost a page: one unit a min-value, and [`FALSE_CANDIDATE_COST`] units for
//! every candidate pair that verification will reject. How many of those there are depends on the
//! corpus; the stated model is that pairs thin out exponentially with similarity.

use std::sync::{Mutex, PoisonError};

use crate::sketch::supershingle::Bands;

/// Most min-values a layout may use.
pub const MOST_FUNCTIONS: usize = 256;

/// What reading and comparing a page once more costs, in min-values of one page. Measured on pages
/// of 450 words: about 20 µs against 60 ns.
pub const FALSE_CANDIDATE_COST: f64 = 300.0;

/// The model: a page has `PAIRS · RATE · e^(−RATE·s) ds` others at similarity `s`.
const PAIRS: f64 = 20.0;
const RATE: f64 = 12.0;

/// A layout and what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Layout {
    /// The bands.
    pub bands: Bands,
    /// Expected share of the pairs exactly at the threshold that become candidates.
    pub recall_at_threshold: f64,
    /// Expected rejected candidates per page, under the model.
    pub false_candidates_per_page: f64,
}

impl Layout {
    /// What is expected of bands at a threshold.
    #[must_use]
    pub fn new(bands: Bands, threshold: f64) -> Layout {
        const STEPS: u32 = 400;
        let step = threshold / f64::from(STEPS);
        let false_candidates_per_page = (0..STEPS)
            .map(|i| {
                let s = (f64::from(i) + 0.5) * step;
                PAIRS * RATE * (-RATE * s).exp() * bands.probability(s, 1) * step
            })
            .sum();
        Layout { bands, recall_at_threshold: bands.probability(threshold, 1), false_candidates_per_page }
    }

    /// Expected cost per page, in min-values.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.bands.functions() as f64 + FALSE_CANDIDATE_COST * self.false_candidates_per_page
    }
}

/// The layouts that were chosen last, by the bits of threshold and recall: a choice takes some milliseconds, and plans are
/// made again and again.
static CHOSEN: Mutex<Vec<([u64; 2], Layout)>> = Mutex::new(Vec::new());
const REMEMBERED: usize = 16;

/// The cheapest layout that reaches `recall` at `threshold`; the one of highest recall if none does.
#[must_use]
pub fn choose(threshold: f64, recall: f64) -> Layout {
    let key = [threshold.to_bits(), recall.to_bits()];
    let chosen = || CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, layout)) = chosen().iter().find(|(known, _)| *known == key) {
        return *layout;
    }
    let layout = search(threshold, recall);
    let mut chosen = chosen();
    chosen.truncate(REMEMBERED - 1);
    chosen.insert(0, (key, layout));
    layout
}

fn search(threshold: f64, recall: f64) -> Layout {
    let with_rows = |rows: usize| (1..=MOST_FUNCTIONS / rows).map(move |bands| Bands { bands, rows });
    let recall_of = |bands: &Bands| bands.probability(threshold, 1);
    // Of bands of the same length, more of them cost more, and find more false candidates.
    let enough = (1..=MOST_FUNCTIONS).filter_map(|rows| with_rows(rows).find(|bands| recall_of(bands) >= recall));
    let cheapest = enough.map(|bands| Layout::new(bands, threshold)).min_by(|a, b| a.cost().total_cmp(&b.cost()));
    cheapest.unwrap_or_else(|| {
        // The first of those that find most.
        let all = (1..=MOST_FUNCTIONS).rev().flat_map(|rows| with_rows(rows).rev());
        let best = all.max_by(|a, b| recall_of(a).total_cmp(&recall_of(b)));
        Layout::new(best.unwrap_or(Bands { bands: MOST_FUNCTIONS, rows: 1 }), threshold)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_one_of_the_known_layouts() {
        let chosen = choose(0.7, 0.99);
        assert_eq!(chosen.bands, Bands { bands: 17, rows: 4 }, "{chosen:?}");
    }

    #[test]
    fn nothing_that_reaches_the_recall_is_cheaper() {
        for (threshold, recall) in [(0.5, 0.9), (0.7, 0.99), (0.85, 0.999), (0.95, 0.99), (0.2, 0.99), (0.05, 0.999)] {
            let chosen = choose(threshold, recall);
            let all = (1..=MOST_FUNCTIONS).flat_map(|rows| (1..=MOST_FUNCTIONS / rows).map(move |bands| (bands, rows)));
            for (bands, rows) in all {
                let other = Layout::new(Bands { bands, rows }, threshold);
                let reaches = |layout: &Layout| layout.recall_at_threshold >= recall;
                match (reaches(&chosen), reaches(&other)) {
                    (true, true) => assert!(chosen.cost() <= other.cost(), "{chosen:?} {other:?}"),
                    (false, false) => assert!(chosen.recall_at_threshold >= other.recall_at_threshold),
                    (chosen_reaches, _) => assert!(chosen_reaches, "{chosen:?} {other:?}"),
                }
            }
        }
    }

    #[test]
    fn the_wanted_recall_is_reached_with_at_most_256_functions() {
        for threshold in [0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0] {
            for recall in [0.8, 0.95, 0.99, 0.999] {
                let chosen = choose(threshold, recall);
                assert!(chosen.recall_at_threshold >= recall, "{threshold} {recall} {chosen:?}");
                assert!(chosen.bands.functions() <= MOST_FUNCTIONS);
            }
        }
    }

    #[test]
    fn higher_thresholds_need_longer_bands_and_fewer_false_candidates() {
        let (low, high) = (choose(0.5, 0.99), choose(0.9, 0.99));
        assert!(high.bands.rows > low.bands.rows);
        assert!(high.false_candidates_per_page < low.false_candidates_per_page);
    }

    #[test]
    fn an_unreachable_recall_gives_the_best_there_is() {
        let chosen = choose(0.01, 0.999_999);
        assert_eq!(chosen.bands, Bands { bands: 256, rows: 1 });
    }
}
