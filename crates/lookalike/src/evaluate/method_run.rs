//! One method on the pages, with its own threshold or at its loosest: a whole `dedup` into a directory that goes away.

use std::time::Instant;

use serde::Serialize;
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::{Direction, star};
use crate::config::{Config, Guess};
use crate::error::{Error, Result};
use crate::evaluate::EvaluateOptions;
use crate::job::RunOptions;
use crate::job::dedup::dedup;
use crate::observe::Silent;
use crate::page::{PageId, PageVec, ScoredPair};
use crate::plan::Plan;
use crate::report::files;
use crate::report::run::cpu_seconds;
use crate::report::stored::{self, StoredPages, StoredSummary};
use crate::spill::{LongList, Scratch};

/// What a method takes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    /// CPU time of the whole job, reading and writing included.
    pub cpu_seconds: f64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Bytes that stand for a page while candidates are looked for: its sketch, or its features where those are.
    pub bytes_per_page: f64,
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
    pub(super) plan: Plan,
    pub(super) stored: StoredPages,
    /// Accepted pairs between identity sets, ascending.
    pub(super) pairs: Vec<ScoredPair>,
    /// For each page the page that is kept in its place.
    pub(super) kept: PageVec<PageId>,
    pub(super) cost: Cost,
    /// Records that could not be used.
    pub(super) skipped: u64,
    /// Sites by the URLs of pages, as hashes, where the method looks at them.
    sites: PageVec<Option<u64>>,
    /// Whether crowded buckets were compared by leaders, so that pairs may be missing.
    pub(super) is_capped: bool,
    /// The result's own account of it, with which its pages are found again.
    pub(super) summary: StoredSummary,
}

/// Where and with what the runs are made.
pub(super) struct Runner<'a> {
    inputs: &'a [String],
    threads: usize,
    memory_bytes: Option<u64>,
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
        let pairs = stored.pairs(&output, files::PAIRS)?;
        let kept = stored.ids.kept(&output)?;
        let mut sites = PageVec::new();
        let plan = config.plan();
        if plan.sketch.site {
            let mut scratch = Scratch::default();
            for page in stored.pages.all() {
                let site = stored.pages.strings(page, &mut scratch)?.url.and_then(|url| config.pairs.site.site(url));
                sites.push(site.map(|site| xxh3_64(site.as_bytes())));
            }
        }
        let bytes_per_page = bytes_per_page(&plan, outcome.features_per_page);
        Ok(MethodRun {
            config: config.clone(),
            plan,
            stored,
            pairs,
            kept,
            cost: Cost {
                cpu_seconds: cpu,
                seconds,
                bytes_per_page,
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

fn bytes_per_page(plan: &Plan, features_per_page: Option<f64>) -> f64 {
    match features_per_page {
        Some(features) => 8.0 * features + 4.0 * plan.sketch.words() as f64,
        None => 8.0 * plan.columns().columns() as f64,
    }
}

/// The buckets of the loosest runs may be this full before leaders stand for their members.
const LOOSE_BUCKETS: usize = 4096;

/// A config that accepts whatever any sensible threshold would.
pub(super) fn loosest(config: &Config) -> Config {
    let mut loosest = config.with_method(config.method.loosest());
    loosest.pairs.bucket_limit = LOOSE_BUCKETS;
    loosest
}

impl MethodRun {
    /// How near a pair is, in what the method decides by; larger is nearer.
    pub(super) fn nearness(&self, pair: &ScoredPair) -> f64 {
        self.plan.decision.nearness(pair, self.is_same_site(pair))
    }

    fn is_same_site(&self, pair: &ScoredPair) -> bool {
        let site = |page: PageId| self.sites.get(page).copied().flatten();
        site(pair.left).is_some() && site(pair.left) == site(pair.right)
    }

    /// The pages of each identity set, by its first page.
    pub(super) fn members(&self) -> PageVec<Vec<PageId>> {
        let mut members = PageVec::filled(self.stored.first.len(), Vec::new());
        for (page, &first) in self.stored.first.by_page() {
            members[first].push(page);
        }
        members
    }

    /// For each page the page that would be kept in its place, if the method had another threshold and `pairs` were all
    /// that it accepts.
    pub(super) fn stars(&self, pairs: &[ScoredPair], threshold: f64, guess: Guess) -> Result<PageVec<PageId>> {
        let first = &self.stored.first;
        let order: Vec<PageId> = first.pages().filter(|&page| first[page] == page).collect();
        let direction = Direction::of(&self.plan, Some(threshold));
        let (chosen, _) = star::stars(first.len(), &order, pairs, direction, guess, LongList::default())?;
        Ok(first.iter().map(|&first| chosen.target(first)).collect())
    }
}
