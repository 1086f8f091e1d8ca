//! Spot signatures with other antecedents, distances, thresholds and ways to match (Figures 5 to 25 of the paper
//! on them). Precision and recall are the paper's: of dropped pages, and strict.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::candidate::matching::seeded_order_key;
use crate::config::{Config, Guess, Matching};
use crate::error::Result;
use crate::evaluate::method_run::{MethodRun, Runner};
use crate::evaluate::metrics::Counts;
use crate::evaluate::{Judge, RunPair};
use crate::names::Named;
use crate::page::{PageId, PageVec, ScoredPair};

/// Spot signatures, varied.
#[derive(Debug, Clone, Serialize)]
pub struct SpotExperiments {
    /// By the number of antecedents, of [`ANTECEDENTS`], at distance 3 (Figure 21).
    pub antecedents: Vec<(usize, Counts)>,
    /// By spot distance, with the first three antecedents (Figure 22).
    pub distances: Vec<(u32, Counts)>,
    /// By threshold, for every way to match (Figures 5, 6, 9 to 12).
    pub matching: Vec<MatchingCurve>,
    /// How the index of incremental matching grows, and its errors (Figures 23 to 25).
    pub growth: Vec<Growth>,
}

/// The antecedents of Figure 21, in the order in which they are added.
pub const ANTECEDENTS: [&str; 7] = ["is", "the", "said", "that", "was", "a", "there"];
const DISTANCES: [u32; 8] = [1, 2, 3, 5, 10, 20, 50, 100];
const THRESHOLDS: [f64; 6] = [0.1, 0.25, 0.4, 0.55, 0.7, 0.85];
/// Pages between two looks at the index.
const BATCH: usize = 100;

/// One way to match.
#[derive(Debug, Clone, Serialize)]
pub struct MatchingCurve {
    /// `full` or `incremental`, with the `first` or the `best` guess.
    pub name: String,
    /// Thresholds with what they give.
    pub points: Vec<(f64, Counts)>,
}

/// Incremental matching, batch by batch.
#[derive(Debug, Clone, Serialize)]
pub struct Growth {
    /// The threshold.
    pub threshold: f64,
    /// Pages that were matched so far, pages in the index, and mistakes in the last batch: false positives, and
    /// pages whose own cluster was there already and that were taken for new.
    pub batches: Vec<(usize, usize, usize, usize)>,
}

pub(super) fn spot_experiments(
    runner: &Runner<'_>,
    pair: &RunPair,
    judge: &Judge<'_>,
    announce: &dyn Fn(&str),
) -> Result<SpotExperiments> {
    let base = &pair.run.config;
    let scores = |kept: &PageVec<PageId>| judge.clusters(kept).1.unwrap_or_default();
    // The parameters as they are, but for those named here.
    let varied = |values: &[(&str, String)]| -> Result<Config> {
        let mut config = base.clone();
        config.method.set_all(values.iter().map(|(name, value)| (*name, value.as_str())))?;
        Ok(config)
    };
    let with = |words: &[&str], distance: u32| {
        let list: Vec<String> = words.iter().map(|word| format!("{word}:{distance}")).collect();
        varied(&[("antecedents", list.join(",")), ("matching", Matching::Incremental.to_string())])
    };
    let mut antecedents = Vec::new();
    for count in 1..=ANTECEDENTS.len() {
        announce(&format!("spotsigs with {count} antecedents"));
        let run = runner.run(&with(&ANTECEDENTS[..count], 3)?)?;
        antecedents.push((count, scores(&run.kept)));
    }
    let mut distances = Vec::new();
    for distance in DISTANCES {
        announce(&format!("spotsigs at distance {distance}"));
        distances.push((distance, scores(&runner.run(&with(&ANTECEDENTS[..3], distance)?)?.kept)));
    }
    let mut matching = Vec::new();
    let mut growth = Vec::new();
    for guess in [Guess::First, Guess::Best] {
        let name = guess.name();
        let full = THRESHOLDS.map(|threshold| (threshold, scores(&full_match(&pair.loose, threshold, guess))));
        matching.push(MatchingCurve { name: format!("full, {name} guess"), points: full.to_vec() });
        let mut points = Vec::new();
        for threshold in THRESHOLDS {
            announce(&format!("spotsigs, incremental, {name} guess, {threshold}"));
            let run = runner.run(&varied(&[
                ("threshold", threshold.to_string()),
                ("matching", Matching::Incremental.to_string()),
                ("guess", guess.to_string()),
            ])?)?;
            points.push((threshold, scores(&run.kept)));
            if guess == Guess::Best && [0.25, 0.55].contains(&threshold) {
                growth.push(Growth { threshold, batches: batches(&run, judge)? });
            }
        }
        matching.push(MatchingCurve { name: format!("incremental, {name} guess"), points });
    }
    Ok(SpotExperiments { antecedents, distances, matching, growth })
}

/// Full matching at a threshold, from the pairs of the loosest run.
fn full_match(loose: &MethodRun, threshold: f64, guess: Guess) -> PageVec<PageId> {
    let pairs: Vec<ScoredPair> =
        loose.pairs.iter().filter(|pair| loose.plan.decision.reaches(pair.similarity, threshold)).copied().collect();
    loose.stars(&pairs, threshold, guess)
}

/// Goes through the pages in the order in which they were matched: an identity set is one page there, in the place of
/// its earliest.
fn batches(run: &MethodRun, judge: &Judge<'_>) -> Result<Vec<(usize, usize, usize, usize)>> {
    let cluster: HashMap<PageId, u32> = judge.clustered.iter().copied().collect();
    let mut keys: HashMap<PageId, u64> = HashMap::new();
    for (page, &first) in run.stored.first.by_page() {
        let key = seeded_order_key(&run.stored.pages.id(page)?, run.plan.seed);
        keys.entry(first).and_modify(|earliest| *earliest = key.min(*earliest)).or_insert(key);
    }
    let mut order: Vec<(u64, PageId)> = keys.into_iter().map(|(page, key)| (key, page)).collect();
    order.sort_unstable();
    let mut seen = HashSet::new();
    let (mut rows, mut indexed, mut wrong, mut missed) = (Vec::new(), 0, 0, 0);
    for (at, (_, page)) in order.iter().enumerate() {
        let kept = run.kept[*page];
        let is_new = run.stored.first[kept] == *page;
        if let Some(own) = cluster.get(page) {
            if is_new {
                missed += usize::from(seen.contains(own));
            } else {
                wrong += usize::from(cluster.get(&kept) != Some(own));
            }
            seen.insert(*own);
        }
        indexed += usize::from(is_new);
        if (at + 1) % BATCH == 0 || at + 1 == order.len() {
            rows.push((at + 1, indexed, wrong, missed));
            (wrong, missed) = (0, 0);
        }
    }
    Ok(rows)
}
