//! What comparing the core of a page, or its main content, does to every method: its best F1 over all
//! thresholds, its F1 with default settings, and how many of the wrong pairs are two stories in one frame.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::Result;
use lookalike::config::Scope;
use lookalike::{Config, Method};

use crate::labelled::{Labelled, PairCounts, found_pairs};

/// One method on one set with one scope.
#[derive(Debug, Clone, Copy)]
pub struct ScopeResult {
    /// With default settings.
    pub default: PairCounts,
    /// At the threshold that is best for F1.
    pub best: PairCounts,
    /// That threshold, in the method's unit.
    pub best_at: f64,
    /// Wrong pairs, with default settings, whose pages have the same frame.
    pub same_frame: u64,
    /// Pages of which the whole was compared, for lack of a core or main content.
    pub whole: u64,
    /// Seconds for the run with default settings.
    pub seconds: f64,
}

impl ScopeResult {
    /// Share of the reported pairs, with default settings, that are two stories in one frame.
    #[must_use]
    pub fn same_frame_share(&self) -> f64 {
        self.same_frame as f64 / (self.default.correct + self.default.wrong).max(1) as f64
    }
}

/// The methods that are compared: the issue is the same for the others.
pub const METHODS: [&str; 5] = ["minhash", "shingle", "combined", "simhash", "spotsigs"];

/// The config of a method for a part of pages.
fn config(method: Method, scope: Scope) -> Config {
    let mut config = Config::new(method);
    config.content.scope = scope;
    config
}

/// Runs a method with its defaults and at its loosest.
///
/// # Errors
/// When a run fails.
pub fn measure(set: &Labelled, method: &str, scope: Scope) -> Result<ScopeResult> {
    let method: Method = method.parse()?;
    let started = Instant::now();
    let (as_is, whole) = found(set, &config(method.clone(), scope))?;
    let seconds = started.elapsed().as_secs_f64();
    let (mut default, gold) = (PairCounts::default(), gold(set));
    default.gold = gold;
    let mut same_frame = 0;
    for pair in &as_is {
        default.correct += u64::from(pair.is_correct);
        default.wrong += u64::from(!pair.is_correct);
        same_frame += u64::from(!pair.is_correct && pair.is_same_frame);
    }
    let (mut pairs, _) = found(set, &config(method.loosest(), scope))?;
    pairs.sort_by(|a, b| b.value.total_cmp(&a.value));
    let mut counts = PairCounts { gold, ..PairCounts::default() };
    let (mut best, mut best_at) = (counts, f64::INFINITY);
    for group in pairs.chunk_by(|a, b| a.value.total_cmp(&b.value).is_eq()) {
        counts.correct += group.iter().filter(|pair| pair.is_correct).count() as u64;
        counts.wrong += group.iter().filter(|pair| !pair.is_correct).count() as u64;
        if counts.f1() > best.f1() {
            (best, best_at) = (counts, group[0].value.abs());
        }
    }
    Ok(ScopeResult { default, best, best_at, same_frame, whole, seconds })
}

struct JudgedPair {
    /// Higher is more alike.
    value: f64,
    is_correct: bool,
    is_same_frame: bool,
}

/// The pairs that a run reports, copies included.
fn found(set: &Labelled, config: &Config) -> Result<(Vec<JudgedPair>, u64)> {
    let found = found_pairs(&set.directory, config)?;
    let judged = found.pairs.iter().filter_map(|pair| {
        let (a, b) = (set.cluster_of.get(&pair.left)?, set.cluster_of.get(&pair.right)?);
        let frames = (set.frame_of.get(&pair.left), set.frame_of.get(&pair.right));
        let is_same_frame = frames.0.is_some() && frames.0 == frames.1;
        Some(JudgedPair { value: pair.nearness, is_correct: a == b, is_same_frame })
    });
    Ok((judged.collect(), found.whole_pages))
}

fn gold(set: &Labelled) -> u64 {
    let mut sizes: HashMap<&str, u64> = HashMap::new();
    for cluster in set.cluster_of.values() {
        *sizes.entry(cluster).or_default() += 1;
    }
    sizes.values().map(|size| size * (size - 1) / 2).sum()
}
