//! One method on the pages, as it comes or at its loosest: a whole `dedup` into a directory that goes away.

use std::time::Instant;

use serde::Serialize;
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::covering::coverers_first;
use crate::cluster::{Direction, Neighbours, star};
use crate::config::{Config, Guess, Method, PROJECTION_BITS, SHINGLE_BANDS};
use crate::error::{Error, Result};
use crate::evaluate::EvaluateOptions;
use crate::job::RunOptions;
use crate::job::dedup::dedup;
use crate::method::Plan;
use crate::observe::Silent;
use crate::page::{PageId, ScoredPair};
use crate::report::files;
use crate::report::run::cpu_seconds;
use crate::report::stored::{self, StoredPages, StoredSummary};
use crate::spill::Scratch;

/// What a method takes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    /// CPU time of the whole job, reading and writing included.
    pub cpu_seconds: f64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Bytes that stand for a page while candidates are looked for: its sketch, or its features where those are.
    pub bytes_a_page: f64,
    /// Candidate pairs.
    pub candidates: u64,
    /// Pairs that were compared exactly.
    pub compared: u64,
    /// Pairs that were accepted.
    pub accepted: u64,
}

/// What a run left.
pub(super) struct MethodRun {
    pub(super) config: Config,
    pub(super) stored: StoredPages,
    /// Accepted pairs between identity sets, ascending.
    pub(super) pairs: Vec<ScoredPair>,
    /// For each page the page that is kept in its place.
    pub(super) kept: Vec<PageId>,
    pub(super) cost: Cost,
    /// Records that could not be used.
    pub(super) skipped: u64,
    /// Sites by the URLs of pages, as hashes, where the method looks at them.
    sites: Vec<Option<u64>>,
    /// Whether crowded buckets were compared by leaders, so that pairs may be missing.
    pub(super) is_capped: bool,
    /// The result's own account of it, with which its pages are found again.
    pub(super) summary: StoredSummary,
}

/// Where and with what the runs are made.
pub(super) struct Runner<'a> {
    inputs: &'a [String],
    threads: usize,
    memory_bytes: u64,
}

/// A directory that is removed when it is dropped.
pub(super) fn temporary_directory() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("lookalike-")
        .tempdir()
        .map_err(Error::io(&std::env::temp_dir(), "create a directory in"))
}

impl<'a> Runner<'a> {
    pub(super) fn new(options: &'a EvaluateOptions) -> Runner<'a> {
        Runner { inputs: &options.inputs, threads: options.threads, memory_bytes: options.memory_bytes }
    }

    /// Runs a config.
    pub(super) fn run(&self, config: &Config) -> Result<MethodRun> {
        let directory = temporary_directory()?;
        let output = directory.path().join("out");
        let options = RunOptions {
            threads: self.threads,
            memory_bytes: self.memory_bytes,
            ..RunOptions::new(self.inputs.to_vec(), output.clone())
        };
        let (started, cpu) = (Instant::now(), cpu_seconds());
        let outcome = dedup(config, &options, &Silent)?;
        let summary = &outcome.summary;
        let seconds = started.elapsed().as_secs_f64();
        let cpu = cpu_seconds().zip(cpu).map_or(seconds, |(now, then)| now - then);
        let stored = stored::pages(&output, directory.path(), usize::MAX / 2)?;
        let pairs = stored.ids.pairs(&output, files::PAIRS)?;
        let kept = stored.ids.kept(&output)?;
        let mut sites = Vec::new();
        if config.method == Method::Routed {
            let mut room = Scratch::default();
            for page in (0..).take(stored.pages.len()) {
                let site = stored.pages.strings(page, &mut room)?.url.and_then(|url| config.site.site(url));
                sites.push(site.map(|site| xxh3_64(site.as_bytes())));
            }
        }
        Ok(MethodRun {
            config: config.clone(),
            stored,
            pairs,
            kept,
            cost: Cost {
                cpu_seconds: cpu,
                seconds,
                bytes_a_page: bytes_a_page(config, outcome.features_a_page),
                candidates: summary.candidate_pairs,
                compared: summary.compared_pairs,
                accepted: summary.pairs,
            },
            skipped: summary.skipped.values().sum(),
            sites,
            is_capped: summary.capped_buckets > 0,
            summary: stored::summary(&output)?,
        })
    }
}

fn bytes_a_page(config: &Config, features_a_page: Option<f64>) -> f64 {
    let plan = Plan::new(config);
    match features_a_page {
        Some(features) => 8.0 * features + 4.0 * plan.sketch.words() as f64,
        None => 8.0 * plan.columns(config.within).columns() as f64,
    }
}

/// The buckets of the loosest runs may be this full before leaders stand for their members.
const LOOSE_BUCKETS: usize = 4096;

/// A config that accepts whatever any sensible threshold would.
pub(super) fn loosest(config: &Config) -> Config {
    let mut config = Config { bucket_limit: LOOSE_BUCKETS, ..config.clone() };
    match config.method {
        Method::Minhash | Method::Bloom | Method::Spotsigs => config.threshold = config.threshold.min(0.1),
        Method::Shingle => config.agree = 1,
        Method::Projection | Method::Combined | Method::Routed => {
            let loose = config.sketch_bits - config.sketch_bits * 54 / 384;
            config.set_bits(loose.min(config.bits));
            // As far below as by default, so that both thresholds can be moved together.
            let shift = Config::for_method(Method::Routed);
            let same_site = loose.saturating_sub(shift.bits - shift.same_site_bits);
            config.same_site_bits = same_site.min(config.same_site_bits).max(1);
        }
        Method::Simhash => config.radius = config.radius.max(12),
    }
    config
}

/// Thresholds that are looked at, from loose to strict, in the method's unit.
pub(super) fn grid(config: &Config) -> Vec<f64> {
    let config = loosest(config);
    match config.method {
        Method::Minhash | Method::Bloom | Method::Spotsigs => (2..=20).map(|step| f64::from(step) / 20.0).collect(),
        Method::Shingle => (1..=6).map(f64::from).collect(),
        Method::Projection | Method::Combined | Method::Routed => {
            (config.bits..=config.sketch_bits).step_by(3).map(f64::from).collect()
        }
        Method::Simhash => (0..=config.radius).rev().map(f64::from).collect(),
    }
}

/// The threshold of a config, in the method's unit.
pub(super) fn threshold(config: &Config) -> f64 {
    match config.method {
        Method::Minhash | Method::Bloom | Method::Spotsigs => config.threshold,
        Method::Shingle => f64::from(config.agree),
        Method::Projection | Method::Combined | Method::Routed => f64::from(config.bits),
        Method::Simhash => f64::from(config.radius),
    }
}

/// A threshold as a value that grows with nearness, and back.
pub(super) fn nearness(method: Method, threshold: f64) -> f64 {
    if method == Method::Simhash { -threshold } else { threshold }
}

/// The nearness of pages that could not be nearer.
pub(super) fn nearest(method: Method) -> f64 {
    match method {
        Method::Minhash | Method::Bloom | Method::Spotsigs => 1.0,
        Method::Shingle => SHINGLE_BANDS as f64,
        Method::Projection | Method::Combined | Method::Routed => f64::from(PROJECTION_BITS),
        Method::Simhash => 0.0,
    }
}

/// How many equal bits fewer pairs of one site need, beside their supershingles.
fn same_site_shift() -> f64 {
    let defaults = Config::for_method(Method::Routed);
    f64::from(defaults.bits - defaults.same_site_bits)
}

impl MethodRun {
    /// What decides about a pair; larger is nearer.
    pub(super) fn value(&self, pair: &ScoredPair) -> f64 {
        let is_same_site = || {
            let site = |page: PageId| self.sites.get(page as usize).copied().flatten();
            site(pair.left).is_some() && site(pair.left) == site(pair.right)
        };
        match self.config.method {
            Method::Minhash | Method::Bloom | Method::Spotsigs => pair.similarity,
            Method::Shingle | Method::Projection | Method::Combined => pair.score,
            Method::Simhash => -pair.score,
            // Pairs of one site have a threshold of their own, as far below the other as by default.
            Method::Routed if is_same_site() => pair.score + same_site_shift(),
            Method::Routed => pair.score,
        }
    }

    /// Whether a value reaches a threshold; both as nearness.
    pub(super) fn reaches(&self, value: f64, threshold: f64) -> bool {
        // Spot signatures must be above it.
        value > threshold || (value >= threshold && self.config.method != Method::Spotsigs)
    }

    /// The pages of each identity set, by its first page.
    pub(super) fn members(&self) -> Vec<Vec<PageId>> {
        let mut members = vec![Vec::new(); self.stored.first.len()];
        for (page, &first) in (0..).zip(&self.stored.first) {
            members[first as usize].push(page);
        }
        members
    }

    /// For each page the page that would be kept in its place, if `pairs` were all.
    pub(super) fn stars(&self, pairs: &[ScoredPair], threshold: f64, guess: Guess) -> Vec<PageId> {
        let first = &self.stored.first;
        let order: Vec<PageId> = (0..).zip(first).filter(|(page, first)| page == *first).map(|row| row.0).collect();
        let is_directed = self.config.method == Method::Bloom;
        let direction = if is_directed { Direction::Covering(threshold) } else { Direction::Either };
        let neighbours = Neighbours::new(first.len(), pairs, direction);
        let order = if is_directed { coverers_first(&order, pairs, direction) } else { order };
        let chosen = star::assign(first.len(), &order, &neighbours, guess);
        first.iter().map(|&first| chosen[first as usize].page).collect()
    }
}
