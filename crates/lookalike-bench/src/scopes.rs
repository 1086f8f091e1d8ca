//! What comparing the core of a page, or its main content, does to every method: its best F1 over all
//! thresholds, its F1 with default settings, and how many of the wrong pairs are two stories in one frame.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::Result;
use lookalike::config::Scope;
use lookalike::method::Unit;
use lookalike::result::files;
use lookalike::{Config, Method, RunOptions, Silent, dedup};

use crate::labelled::{Labelled, PairCounts};
use crate::quality::columns;

/// One method on one set with one scope.
#[derive(Debug, Clone, Copy)]
pub struct ScopeResult {
    /// As it comes.
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

struct FoundPair {
    /// Higher is more alike.
    value: f64,
    is_correct: bool,
    is_same_frame: bool,
}

/// The pairs that a run reports, copies included.
fn found(set: &Labelled, config: &Config) -> Result<(Vec<FoundPair>, u64)> {
    let output = tempfile::tempdir()?;
    let input = set.directory.to_string_lossy().into_owned();
    let mut options = RunOptions::new([input], output.path().join("out"));
    options.threads = 2;
    let summary = dedup(config, &options, &Silent)?.summary;
    let mut members: HashMap<String, Vec<String>> = HashMap::new();
    for mut row in columns(&options.output.join(files::PAGES.parquet), &["id", "identity"])? {
        let identity = row.swap_remove(1);
        members.entry(identity).or_default().push(row.swap_remove(0));
    }
    let mut pairs = Vec::new();
    let mut add = |left: &str, right: &str, value: f64| {
        let (Some(a), Some(b)) = (set.cluster_of.get(left), set.cluster_of.get(right)) else { return };
        let frames = (set.frame_of.get(left), set.frame_of.get(right));
        pairs.push(FoundPair { value, is_correct: a == b, is_same_frame: frames.0.is_some() && frames.0 == frames.1 });
    };
    for same in members.values() {
        for (at, left) in same.iter().enumerate() {
            same[at + 1..].iter().for_each(|right| add(left, right, f64::MAX));
        }
    }
    let unit = config.method.unit();
    let column = if unit == Unit::Similarity { "similarity" } else { "score" };
    for row in columns(&options.output.join(files::PAIRS.parquet), &["left", "right", column])? {
        let value = unit.nearness(row[2].parse()?);
        for left in &members[&row[0]] {
            members[&row[1]].iter().for_each(|right| add(left, right, value));
        }
    }
    Ok((pairs, summary.compared.get("page").copied().unwrap_or_default()))
}

fn gold(set: &Labelled) -> u64 {
    let mut sizes: HashMap<&str, u64> = HashMap::new();
    for cluster in set.cluster_of.values() {
        *sizes.entry(cluster).or_default() += 1;
    }
    sizes.values().map(|size| size * (size - 1) / 2).sum()
}
