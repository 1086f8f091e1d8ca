//! The experiments of the paper on spot signatures (Figures 3, 5, 6, 9 to 25 and Table 1), on the pages at hand: by
//! threshold, by the way of matching, by antecedents, distances and chains; what they cost; how the index grows.
//!
//! Precision and recall are the paper's: of pages that are taken for duplicates, and strict. Whatever depends on the order
//! of the pages is the mean of three random orders.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::config::Guess;
use crate::error::Result;
use crate::evaluate::judge::Judge;
use crate::evaluate::metrics::Counts;
use crate::evaluate::spot_study::{Signatures, SpotMatching, SpotStep, SpotStudy};
use crate::evaluate::{EvaluateOptions, RunPair};
use crate::feature::spot::Antecedent;
use crate::method::{Antecedents, Spotsigs};
use crate::names::Named;
use crate::page::PageId;

/// Spot signatures, varied.
#[derive(Debug, Clone, Serialize)]
pub struct SpotExperiments {
    /// The antecedents of all that does not vary them, and the same with two words behind each.
    pub chains: [String; 2],
    /// The mean cosine of the pages of a cluster, for every cluster of two or more (Figure 3).
    pub cosines: Vec<f64>,
    /// By threshold, for every way to match (Figures 5, 6, 9 to 12; §3.3.4, §3.3.5).
    pub matching: Vec<SpotCurve>,
    /// By threshold, with one word behind an antecedent or two (Figures 13 and 14).
    pub by_chain: Vec<SpotCurve>,
    /// Collisions of a page and the microseconds that it took, in the mean of pages with like numbers (Figure 15).
    pub collisions: Vec<(f64, f64)>,
    /// What matching costs, by threshold (Figures 16 to 20, Table 1).
    pub costs: Vec<SpotCost>,
    /// By the number of antecedents, of [`ANTECEDENTS`], at distance 3 (Figure 21).
    pub antecedents: Vec<SpotCurve>,
    /// By spot distance, with the first three antecedents (Figure 22).
    pub distances: Vec<SpotCurve>,
    /// How the index of incremental matching grows, and its errors (Figures 23 to 25).
    pub growth: Vec<Growth>,
}

/// The antecedents of Figure 21, in the order in which they are added.
pub const ANTECEDENTS: [&str; 7] = ["is", "the", "said", "that", "was", "a", "there"];
/// The distances of Figure 22: a dozen below 100, and from there to 400.
const DISTANCES: [u16; 16] = [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 80, 100, 200, 300, 400];
const THRESHOLDS: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
/// The threshold of Figures 21 and 22, and one that fits pages whose frames are left out.
const FIXED_THRESHOLDS: [f64; 2] = [0.7, 0.25];
/// The thresholds of Figure 23.
const GROWTH_THRESHOLDS: [f64; 2] = [0.9, 0.6];
/// The distances of a chain: a(m, n) of §3.1.
const CHAIN: [u16; 2] = [3, 4];
/// Random orders.
const ORDERS: [u64; 3] = [1, 2, 3];
/// Pages between two looks at the index.
const BATCH: usize = 100;
/// Pairs of a cluster whose cosine is looked at.
const COSINE_PAIRS: usize = 1000;

/// One setting.
#[derive(Debug, Clone, Serialize)]
pub struct SpotCurve {
    /// What it is.
    pub name: String,
    /// What is varied, and what it gives: the sum over all orders.
    pub points: Vec<(f64, Counts)>,
}

/// What a way of matching costs.
#[derive(Debug, Clone, Serialize)]
pub struct SpotCost {
    /// What it is.
    pub name: String,
    /// Thresholds, with the mean over all orders.
    pub points: Vec<SpotCostPoint>,
}

/// What matching costs at a threshold.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SpotCostPoint {
    /// The threshold.
    pub threshold: f64,
    /// Seconds of matching all pages, reading left out.
    pub seconds: f64,
    /// Pages that shared a signature with another when its turn came.
    pub collisions: f64,
    /// Those that were compared.
    pub compared: f64,
}

/// Incremental matching, batch by batch, in the mean of all orders.
#[derive(Debug, Clone, Serialize)]
pub struct Growth {
    /// The threshold.
    pub threshold: f64,
    /// Pages that were matched so far, pages in the index, and mistakes in the last batch: false positives, and
    /// pages whose own cluster was there already and that were taken for new.
    pub batches: Vec<(usize, f64, f64, f64)>,
}

/// Some antecedents at some distances.
fn list(words: &[&str], distances: &[u16]) -> Vec<Antecedent> {
    words.iter().map(|&word| Antecedent { word: word.to_owned(), distances: distances.to_vec() }).collect()
}

fn written(antecedents: &[Antecedent]) -> String {
    antecedents.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// What all experiments need.
struct Experimenter<'a> {
    study: SpotStudy,
    orders: [Vec<PageId>; 3],
    announce: &'a dyn Fn(&str),
}

pub(super) fn spot_experiments(
    options: &EvaluateOptions,
    pair: &RunPair,
    judge: &Judge<'_>,
    announce: &dyn Fn(&str),
) -> Result<SpotExperiments> {
    announce("spotsigs: reading the pages once more");
    let base = &pair.run.config;
    let study = SpotStudy::read(base, &options.inputs, options.threads, &pair.run.stored, &judge.clustered)?;
    let orders = ORDERS.map(|seed| study.shuffled(seed));
    let this = Experimenter { study, orders, announce };
    // What was asked for, or what the paper has.
    let single = match Spotsigs::of(&base.method).map(|method| &method.antecedents) {
        Some(Antecedents::List(list)) => list.clone(),
        _ => list(&ANTECEDENTS[..3], &CHAIN[..1]),
    };
    let words: Vec<&str> = single.iter().map(|antecedent| antecedent.word.as_str()).collect();
    let multi = list(&words, &CHAIN);
    let signatures = [&single, &multi].map(|list| this.study.signatures(list));
    Ok(SpotExperiments {
        chains: [written(&single), written(&multi)],
        cosines: this.cosines(),
        matching: this.matching(&signatures[0]),
        by_chain: [("single chain", 0), ("multi-chain", 1)]
            .map(|(name, chain)| this.by_threshold(name, &signatures[chain], SpotMatching::incremental))
            .into(),
        collisions: this.collisions(&signatures[0]),
        costs: this.costs(&signatures),
        antecedents: this.varied("antecedents", 1..=ANTECEDENTS.len(), |count| list(&ANTECEDENTS[..count], &[3])),
        distances: this.varied("distance", DISTANCES.map(usize::from), |distance| {
            list(&ANTECEDENTS[..3], &[u16::try_from(distance).unwrap_or(u16::MAX)])
        }),
        growth: GROWTH_THRESHOLDS.map(|threshold| this.growth(&signatures[0], threshold)).into(),
    })
}

impl Experimenter<'_> {
    /// The scores of all orders together.
    fn scores(&self, signatures: &Signatures, how: SpotMatching) -> Counts {
        let mut sum = Counts::default();
        for order in &self.orders {
            let found = self.study.scores(&self.study.matched(signatures, order, how), how);
            (sum.correct, sum.wrong, sum.gold) =
                (sum.correct + found.correct, sum.wrong + found.wrong, sum.gold + found.gold);
        }
        sum
    }

    fn by_threshold(&self, name: &str, signatures: &Signatures, how: impl Fn(f64) -> SpotMatching) -> SpotCurve {
        (self.announce)(&format!("spotsigs: {name}"));
        let points = THRESHOLDS.map(|threshold| (threshold, self.scores(signatures, how(threshold)))).to_vec();
        SpotCurve { name: name.to_owned(), points }
    }

    /// All ways to match.
    fn matching(&self, signatures: &Signatures) -> Vec<SpotCurve> {
        let mut curves = Vec::new();
        for is_full in [true, false] {
            for guess in [Guess::First, Guess::Best] {
                let name = format!("{}, {} guess", if is_full { "full" } else { "incremental" }, guess.name());
                let how = |threshold| SpotMatching { guess, is_full, ..SpotMatching::incremental(threshold) };
                curves.push(self.by_threshold(&name, signatures, how));
            }
        }
        let seeded = |threshold| SpotMatching { is_seeded: true, ..SpotMatching::incremental(threshold) };
        curves.push(self.by_threshold("seeded, best guess", signatures, seeded));
        let with_duplicates =
            |threshold| SpotMatching { index_duplicates: true, ..SpotMatching::incremental(threshold) };
        curves.push(self.by_threshold("incremental, best guess, duplicates indexed", signatures, with_duplicates));
        curves
    }

    /// Other antecedents, at the paper's threshold and at one for pages without their frames.
    fn varied(
        &self,
        what: &str,
        values: impl IntoIterator<Item = usize>,
        antecedents: impl Fn(usize) -> Vec<Antecedent>,
    ) -> Vec<SpotCurve> {
        let mut curves =
            FIXED_THRESHOLDS.map(|threshold| SpotCurve { name: format!("threshold {threshold}"), points: Vec::new() });
        for value in values {
            (self.announce)(&format!("spotsigs: {what} {value}"));
            let signatures = self.study.signatures(&antecedents(value));
            for (curve, threshold) in curves.iter_mut().zip(FIXED_THRESHOLDS) {
                curve.points.push((value as f64, self.scores(&signatures, SpotMatching::incremental(threshold))));
            }
        }
        curves.into()
    }

    /// What all pages cost, with the size filter and without it, with one word behind an antecedent and with two.
    fn costs(&self, signatures: &[Signatures; 2]) -> Vec<SpotCost> {
        let mut costs = Vec::new();
        for (chain, chain_name) in [(0, "single chain"), (1, "multi-chain")] {
            for is_full in [false, true] {
                for guess in [Guess::First, Guess::Best] {
                    for size_filter in [false, true] {
                        // Full matching of chains is not in the paper, and nobody misses it.
                        if chain == 1 && (is_full || guess == Guess::First || !size_filter) {
                            continue;
                        }
                        let name = format!(
                            "{}, {} guess, {chain_name}{}",
                            if is_full { "full" } else { "incremental" },
                            guess.name(),
                            if size_filter { ", size filter" } else { "" }
                        );
                        (self.announce)(&format!("spotsigs: {name}"));
                        let how = |threshold| SpotMatching {
                            guess,
                            is_full,
                            size_filter,
                            ..SpotMatching::incremental(threshold)
                        };
                        let points = THRESHOLDS.map(|threshold| self.cost(&signatures[chain], how(threshold))).to_vec();
                        costs.push(SpotCost { name, points });
                    }
                }
            }
        }
        costs
    }

    fn cost(&self, signatures: &Signatures, how: SpotMatching) -> SpotCostPoint {
        let mut point = SpotCostPoint { threshold: how.threshold, seconds: 0.0, collisions: 0.0, compared: 0.0 };
        let share = 1.0 / self.orders.len() as f64;
        for order in &self.orders {
            for step in self.study.matched(signatures, order, how) {
                point.seconds += step.seconds * share;
                point.collisions += step.collisions as f64 * share;
                point.compared += step.compared as f64 * share;
            }
        }
        point
    }

    /// Collisions and time of single pages, of which pages with like numbers of collisions are one point.
    fn collisions(&self, signatures: &Signatures) -> Vec<(f64, f64)> {
        let mut steps: Vec<SpotStep> = Vec::new();
        for order in &self.orders {
            let how = SpotMatching { size_filter: false, ..SpotMatching::incremental(0.9) };
            steps.extend(self.study.matched(signatures, order, how));
        }
        steps.sort_by_key(|step| step.collisions);
        let points = steps.chunks(BATCH).map(|batch| {
            let mean = |of: &dyn Fn(&SpotStep) -> f64| batch.iter().map(of).sum::<f64>() / batch.len() as f64;
            (mean(&|step| step.collisions as f64), mean(&|step| step.seconds * 1e6))
        });
        points.collect()
    }

    fn growth(&self, signatures: &Signatures, threshold: f64) -> Growth {
        let mut batches: BTreeMap<usize, (f64, f64, f64)> = BTreeMap::new();
        let share = 1.0 / self.orders.len() as f64;
        for order in &self.orders {
            let steps = self.study.matched(signatures, order, SpotMatching::incremental(threshold));
            let mut seen = std::collections::HashSet::new();
            let mut matched = 0;
            for batch in steps.chunks(BATCH) {
                matched += batch.len();
                let row = batches.entry(matched).or_default();
                row.0 += batch.last().map_or(0.0, |step| step.indexed as f64) * share;
                for step in batch {
                    let Some(own) = self.study.clusters.get(&step.page) else { continue };
                    match self.study.verdict(step) {
                        Some(true) => {}
                        Some(false) => row.1 += share,
                        None => row.2 += if seen.contains(own) { share } else { 0.0 },
                    }
                    seen.insert(*own);
                }
            }
        }
        let batches = batches.into_iter().map(|(matched, row)| (matched, row.0, row.1, row.2));
        Growth { threshold, batches: batches.collect() }
    }

    /// The mean cosine of the words of the pages of each cluster, from low to high.
    fn cosines(&self) -> Vec<f64> {
        let mut clusters: BTreeMap<u32, Vec<PageId>> = BTreeMap::new();
        for (&page, &cluster) in &self.study.clusters {
            clusters.entry(cluster).or_default().push(page);
        }
        let mut means = Vec::new();
        for mut pages in clusters.into_values().filter(|pages| pages.len() > 1) {
            pages.sort_unstable();
            let vectors: Vec<HashMap<u64, f64>> =
                pages.iter().map(|&page| frequencies(self.study.tokens(page))).collect();
            let pairs = (0..pages.len()).flat_map(|right| (0..right).map(move |left| (left, right)));
            let cosines: Vec<f64> =
                pairs.take(COSINE_PAIRS).map(|(left, right)| cosine(&vectors[left], &vectors[right])).collect();
            means.push(cosines.iter().sum::<f64>() / cosines.len() as f64);
        }
        means.sort_by(f64::total_cmp);
        means
    }
}

fn frequencies(tokens: &[u64]) -> HashMap<u64, f64> {
    let mut counts = HashMap::new();
    tokens.iter().for_each(|&token| *counts.entry(token).or_default() += 1.0);
    counts
}

fn cosine(left: &HashMap<u64, f64>, right: &HashMap<u64, f64>) -> f64 {
    let dot: f64 = left.iter().filter_map(|(token, count)| Some(count * right.get(token)?)).sum();
    let length = |of: &HashMap<u64, f64>| of.values().map(|count| count * count).sum::<f64>().sqrt();
    let lengths = length(left) * length(right);
    if lengths > 0.0 { dot / lengths } else { 0.0 }
}
