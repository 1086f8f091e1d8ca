//! The combined algorithm as its paper judges it: a threshold chosen on one half of the labels and tested on the other
//! (Henzinger 2006, §3.5, Figure 7, Tables 11 and 12).

use serde::Serialize;

use crate::evaluate::RunPair;
use crate::evaluate::judge::{Judge, JudgedPair, count};
use crate::evaluate::metrics::Counts;

/// Thresholds of Table 11, as equal bits of 384.
const PAPER_THRESHOLDS: std::ops::RangeInclusive<u32> = 351..=359;
const PAPER_BITS: u32 = 384;

/// The tables.
#[derive(Debug, Clone, Serialize)]
pub struct CombinedTables {
    /// On the first half, by threshold: the share of Algorithm B's correct pairs that stay (R), and precision.
    pub chosen_on: Vec<CombinedPoint>,
    /// The same for every threshold that changes anything.
    pub curve: Vec<CombinedPoint>,
    /// The threshold of the method.
    pub threshold: u32,
    /// On the second half: all pairs, those of one site, those of two.
    pub tested_on: Vec<CombinedRow>,
}

/// A threshold, and what it gives.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CombinedPoint {
    /// Equal bits.
    pub threshold: u32,
    /// Correct pairs, as a share of those of Algorithm B.
    pub stay: f64,
    /// Precision.
    pub precision: f64,
}

/// A row of Table 12.
#[derive(Debug, Clone, Serialize)]
pub struct CombinedRow {
    /// Which pairs.
    pub name: &'static str,
    /// What was found; `gold` are the correct pairs of Algorithm B.
    pub counts: Counts,
}

/// From the runs of `shingle` and `combined`.
pub(super) fn combined_tables(judge: &Judge<'_>, b: &RunPair, combined: &RunPair) -> CombinedTables {
    let of_b: Vec<JudgedPair> = judge.judged(&b.run).into_iter().filter(|pair| pair.is_correct).collect();
    let found = judge.judged(&combined.loose);
    let at = |half: usize, threshold: u32, site: Option<bool>| {
        let is_here = |pair: &&JudgedPair| pair.facts.half == half && (site.is_none() || pair.facts.same_site == site);
        let correct_of_b = of_b.iter().filter(is_here).count() as u64;
        count(found.iter().filter(is_here).filter(|pair| pair.value >= f64::from(threshold)), correct_of_b)
    };
    let point = |threshold: u32| {
        let counts = at(0, threshold, None);
        CombinedPoint { threshold, stay: counts.recall(), precision: counts.precision() }
    };
    let bits = combined.run.plan.sketch.compared_bits();
    let mut levels: Vec<u32> = found.iter().map(|pair| whole(pair.value, bits)).collect();
    levels.sort_unstable();
    levels.dedup();
    let threshold = whole(combined.run.config.method.threshold(), bits);
    CombinedTables {
        chosen_on: PAPER_THRESHOLDS.map(|paper| point(bits - (PAPER_BITS - paper) * bits / PAPER_BITS)).collect(),
        curve: levels.into_iter().map(point).collect(),
        threshold,
        tested_on: [("all", None), ("same site", Some(true)), ("different site", Some(false))]
            .map(|(name, site)| CombinedRow { name, counts: at(1, threshold, site) })
            .into_iter()
            .filter(|row| row.name == "all" || row.counts.correct + row.counts.wrong + row.counts.gold > 0)
            .collect(),
    }
}

/// A number of bits; exact copies have all of them.
fn whole(value: f64, bits: u32) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and the number of bits
    let whole = value.clamp(0.0, f64::from(bits)) as u32;
    whole
}
