//! Methods against what people say: precision, recall and cost on labelled pages.
//!
//! In: pages, and a gold standard ([`gold`]). Out: an [`Evaluation`]. Each method runs twice over the pages: as
//! it comes, for its scores and its cost, and at its loosest, for everything that depends on the threshold; a
//! threshold is then a cut through the pairs of the loosest run.

pub mod agreement;
pub mod audit;
mod combined_tables;
mod contradictions;
mod experiments;
mod figures;
pub mod gold;
mod grid;
mod judge;
mod labels;
mod levels;
mod method_run;
pub mod metrics;
mod one_page;
pub mod pairs;
mod report;
pub mod runs;
mod score_table;
mod spot_experiments;
mod spot_figures;
mod spot_study;

pub use report::write_report;

pub use contradictions::{Against, GoldContradiction};
pub use levels::Level;
pub use method_run::Cost;
pub use one_page::{OnePage, OnePageOptions, OtherPage, one_page, write_one_page};

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::config::{Config, Method};
use crate::error::{Error, Result};
use crate::job::RunOptions;
use crate::method::{GridAxis, GridPoint};
use crate::report::stored;
use gold::{Gold, GoldColumns};
use judge::{Judge, JudgedPair, cuts, shown};
use labels::Labels;
use method_run::{MethodRun, Runner, loosest, temporary_directory};
use metrics::{ClusterScores, Counts, compare_clusters};

/// What is to be evaluated, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EvaluateOptions {
    /// Files of pages.
    pub inputs: Vec<String>,
    /// The methods, each as it would be run.
    pub configs: Vec<Config>,
    /// Worker threads.
    pub threads: usize,
    /// The ceiling on memory of each run.
    pub memory_bytes: Option<u64>,
    /// Judged pages may be missing from the input.
    pub allow_missing: bool,
    /// All methods are also set to the recall that this one has with its own threshold.
    pub equal_recall: Option<String>,
    /// Where ranges of equal bits begin, in which equal supershingles are counted (Henzinger 2006, Table 10).
    pub bit_ranges: Vec<u32>,
    /// The grid that the configs are the points of. The report then shows it instead of the papers' experiments.
    pub grid: Option<Grid>,
}

/// A grid of parameters.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The parameters and their values; the first two are drawn.
    pub axes: Vec<GridAxis>,
    /// Its points, one for each config.
    pub points: Vec<GridPoint>,
}

/// Where the ranges of Henzinger (2006), Table 10, begin.
pub const PAPER_BIT_RANGES: [u32; 4] = [372, 376, 379, 382];

impl EvaluateOptions {
    /// Some methods on some pages, with the default threads and memory. Every judged page must be there.
    #[must_use]
    pub fn new(inputs: impl IntoIterator<Item: Into<String>>, configs: Vec<Config>) -> EvaluateOptions {
        EvaluateOptions {
            inputs: inputs.into_iter().map(Into::into).collect(),
            configs,
            threads: RunOptions::default_threads(),
            memory_bytes: None,
            allow_missing: false,
            equal_recall: None,
            bit_ranges: PAPER_BIT_RANGES.to_vec(),
            grid: None,
        }
    }
}

/// All methods, judged.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// Pages in the input.
    pub pages: usize,
    /// Judged pages among them.
    pub judged_pages: usize,
    /// Judged pages that are not in the input.
    pub missing_pages: usize,
    /// Records of the input that could not be used.
    pub skipped: u64,
    /// Pairs that belong together.
    pub gold_pairs: u64,
    /// Clusters of two or more judged pages.
    pub gold_clusters: usize,
    /// Judgments that cannot both hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<GoldContradiction>,
    /// The methods.
    pub methods: Vec<MethodEvaluation>,
}

/// One method, judged.
#[derive(Debug, Clone, Serialize)]
pub struct MethodEvaluation {
    /// The method, with the parameters that are not at their defaults.
    pub method: String,
    /// The name of the method alone.
    pub name: &'static str,
    /// The method without its threshold: what is found over all thresholds is the same for all that have this in common.
    #[serde(skip)]
    pub family: String,
    /// Its rule in words.
    pub rule: String,
    /// What its threshold counts.
    pub unit: &'static str,
    /// Its own threshold: the default, unless another one was given.
    pub threshold: f64,
    /// Pairs, at its own threshold.
    pub pairs: Counts,
    /// Clusters, at its own threshold; nothing where the gold has only pairs.
    pub clusters: Option<ClusterScores>,
    /// Duplicates found for a page of their own cluster, at its own threshold.
    pub strict: Option<Counts>,
    /// Pairs of one site.
    pub same_site: Option<Counts>,
    /// Pairs of two sites.
    pub different_site: Option<Counts>,
    /// Pairs by the kind of their pages.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, Counts>,
    /// The threshold with the best F1 of pairs.
    pub best: CutPoint,
    /// The best threshold of one half of the labels, tested on the other.
    pub halves: Halves,
    /// The threshold at which recall is that of another method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equal_recall: Option<EqualRecall>,
    /// Scores at every threshold of a grid, loose to strict.
    pub sweep: Vec<SweepPoint>,
    /// Pairs by how near they are.
    pub levels: Vec<Level>,
    /// Sites with most errors.
    pub sites: Vec<SiteErrors>,
    /// Pairs that it found at its own threshold and that do not belong together, nearest first; the first of them.
    pub wrong: Vec<PairError>,
    /// Pairs that belong together and that it did not find, nearest first; the first of them.
    pub missed: Vec<PairError>,
    /// What it takes.
    pub cost: Cost,
    /// Whether crowded buckets of the run were compared by leaders, so that pairs may be missing.
    pub is_capped: bool,
    /// The same of the loosest run, so that loose thresholds miss pairs.
    pub is_loosest_capped: bool,
}

impl Evaluation {
    /// Whether no parameter of any method was given.
    #[must_use]
    pub fn is_at_defaults(&self) -> bool {
        self.methods.iter().all(MethodEvaluation::is_at_defaults)
    }

    /// The methods whose results over all thresholds differ, the first of each, and what they are called.
    #[must_use]
    pub fn sweeps(&self) -> Vec<(&str, &MethodEvaluation)> {
        let mut sweeps: Vec<(&str, &MethodEvaluation)> = Vec::new();
        for row in &self.methods {
            let is_same = |other: &MethodEvaluation| {
                other.family == row.family && other.best == row.best && other.halves == row.halves
            };
            match sweeps.iter_mut().find(|known| is_same(known.1)) {
                Some(known) => known.0 = &row.family,
                None => sweeps.push((&row.method, row)),
            }
        }
        sweeps
    }
}

impl MethodEvaluation {
    /// Whether none of its parameters was given.
    #[must_use]
    pub fn is_at_defaults(&self) -> bool {
        self.method == self.name
    }

    /// Pairs of one site, of two, and of each kind, where these are known.
    #[must_use]
    pub fn splits(&self) -> Vec<(&str, Counts)> {
        let sites = [("same site", self.same_site), ("different site", self.different_site)];
        let sites = sites.into_iter().filter_map(|(name, counts)| Some((name, counts?)));
        sites.chain(self.kinds.iter().map(|(name, counts)| (name.as_str(), *counts))).collect()
    }
}

/// A threshold, and what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CutPoint {
    /// The threshold, in the method's unit.
    pub threshold: f64,
    /// Pairs at it.
    pub pairs: Counts,
}

/// A threshold chosen on one half of the labels (Henzinger 2006, Tables 11 and 12).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Halves {
    /// The threshold with the best F1 on the first half.
    pub threshold: f64,
    /// Pairs of the half that it was chosen on.
    pub chosen_on: Counts,
    /// Pairs of the other half.
    pub tested_on: Counts,
}

/// A method at the recall of another (Henzinger 2006, §3.3).
#[derive(Debug, Clone, Serialize)]
pub struct EqualRecall {
    /// The other method.
    pub with: String,
    /// The strictest threshold that reaches its recall; nothing where none does.
    pub at: Option<CutPoint>,
}

/// Scores at a threshold.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SweepPoint {
    /// The threshold, in the method's unit.
    pub threshold: f64,
    /// Pairs.
    pub pairs: Counts,
    /// Clusters.
    pub clusters: Option<ClusterScores>,
    /// Duplicates, strictly.
    pub strict: Option<Counts>,
}

/// Errors of a site.
#[derive(Debug, Clone, Serialize)]
pub struct SiteErrors {
    /// The site.
    pub site: String,
    /// Wrong pairs with a page of it.
    pub wrong: u64,
    /// Missed pairs with a page of it.
    pub missed: u64,
}

/// A pair that a method decided about wrongly.
#[derive(Debug, Clone, Serialize)]
pub struct PairError {
    /// One page.
    pub left: PairPage,
    /// The other.
    pub right: PairPage,
    /// What the method decides by, in its unit; nothing where it never compared them, or where they are copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// A page of a pair.
#[derive(Debug, Clone, Serialize)]
pub struct PairPage {
    /// Its id.
    pub id: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its file, where that holds nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Runs the methods and judges them; `announce` is called with what is about to be done.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// use lookalike::evaluate::{EvaluateOptions, evaluate, gold::{Gold, GoldColumns}};
/// use lookalike::{Config, Method};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
/// let other = "Prices of bread and milk rose again this spring, and bakers say that flour is why. ".repeat(5);
/// let line = |id: &str, text: &str| format!("{{\"id\": \"{id}\", \"text\": \"{text}\"}}\n");
/// let pages = line("a", &story) + &line("b", &format!("{story} (Photo)")) + &line("c", &other);
/// std::fs::write(at("pages.jsonl"), pages).unwrap();
/// std::fs::write(at("gold.tsv"), "page\tcluster\na\tferry\nb\tferry\nc\tprices\n").unwrap();
///
/// let gold = Gold::read(&at("gold.tsv"), &GoldColumns::default(), 1.0)?;
/// let configs = ["minhash", "spotsigs"].map(|name| Method::named(name).map(Config::new));
/// let configs = configs.into_iter().collect::<Result<_, _>>()?;
/// let options = EvaluateOptions::new([at("pages.jsonl").to_string_lossy()], configs);
/// let evaluation = evaluate(&gold, &options, &|_| {})?;
/// assert_eq!((evaluation.gold_pairs, evaluation.methods.len()), (1, 2));
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # Errors
/// When a run fails, or judged pages are missing that must not be.
pub fn evaluate(gold: &Gold, options: &EvaluateOptions, announce: &dyn Fn(&str)) -> Result<Evaluation> {
    Ok(evaluate_keeping(gold, options, false, announce)?.0)
}

/// A method with its own threshold and at its loosest.
struct RunPair {
    run: MethodRun,
    loose: MethodRun,
}

fn evaluate_keeping(
    gold: &Gold,
    options: &EvaluateOptions,
    keeps_runs: bool,
    announce: &dyn Fn(&str),
) -> Result<(Evaluation, Vec<RunPair>)> {
    let runner = Runner::new(options);
    if let Some(reference) = &options.equal_recall
        && !options.configs.iter().any(|config| config.method.name() == reference)
    {
        return Err(Error::invalid("equal_recall", reference, "must be one of the methods that are evaluated"));
    }
    let mut runs = Vec::new();
    let mut evaluation: Option<Evaluation> = None;
    let mut last_loose = None;
    let mut curves: Vec<(Method, Vec<JudgedPair>)> = Vec::new();
    for config in &options.configs {
        announce(&config.method.label());
        let run = runner.run(config)?;
        let labels = Labels::new(gold, &run.stored, config.pairs.site, options.allow_missing)?;
        let truth = labels.true_pairs();
        if truth.is_empty() {
            let reason =
                "the gold standard has no two pages of the input that belong together, so there is nothing to find";
            return Err(Error::conflict("gold", reason));
        }
        // Where only the threshold differs, the loosest run is the same.
        let loosest = loosest(config);
        let loose = match last_loose.take().filter(|last: &MethodRun| last.config == loosest && !keeps_runs) {
            Some(last) => last,
            None => runner.run(&loosest)?,
        };
        let judge = Judge { labels: &labels, truth: &truth, clustered: labels.clustered() };
        let (judged, method) = judge.method(&run, &loose)?;
        let mut all = match evaluation.take() {
            Some(all) => all,
            None => Evaluation {
                pages: run.stored.pages.len(),
                judged_pages: labels.judged_pages(),
                missing_pages: labels.missing,
                skipped: run.skipped,
                gold_pairs: truth.len() as u64,
                gold_clusters: judge.cluster_count(),
                contradictions: contradictions::contradictions(&labels, &run.stored)?,
                methods: Vec::new(),
            },
        };
        all.methods.push(method);
        evaluation = Some(all);
        curves.push((config.method.clone(), judged));
        if keeps_runs {
            runs.push(RunPair { run, loose });
        } else {
            last_loose = Some(loose);
        }
    }
    let mut evaluation = evaluation.ok_or_else(|| Error::conflict("method", "no method was named"))?;
    if let Some(reference) = &options.equal_recall {
        equal_recall(&mut evaluation, &curves, reference);
    }
    Ok((evaluation, runs))
}

/// Judges a clustering that somebody else made; also how many judged pages it does not have.
///
/// # Errors
/// When judged pages are missing that must not be, or the gold has no clusters.
pub fn evaluate_found(gold: &Gold, found: &Gold, allow_missing: bool) -> Result<(ClusterScores, usize)> {
    let (mut of_gold, mut of_found, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for page in &gold.pages {
        let Some(cluster) = page.cluster else {
            return Err(Error::conflict("found", "compares clusters, and the gold standard has only pairs"));
        };
        match found.find(&page.id).and_then(|number| found.pages[number as usize].cluster) {
            Some(there) => {
                of_gold.push(cluster);
                of_found.push(there);
            }
            None => missing.push(page),
        }
    }
    if !missing.is_empty() && (!allow_missing || of_gold.is_empty()) {
        return Err(Error::conflict(
            "found",
            format!(
                "{} of the {} judged pages are in no found cluster, first line {}: {}; {}",
                missing.len(),
                gold.pages.len(),
                missing[0].line,
                missing[0].id,
                if of_gold.is_empty() {
                    "so there is nothing to compare: check the ids"
                } else {
                    "use `allow_missing` to judge by the others alone"
                }
            ),
        ));
    }
    Ok((compare_clusters(&of_gold, &of_found), missing.len()))
}

/// Reads a clustering: a result of `dedup`, or a file in the form of a gold standard.
///
/// # Errors
/// When it is neither.
pub fn found_clusters(path: &Path, columns: &GoldColumns) -> Result<Gold> {
    if !path.is_dir() {
        return Gold::read(path, columns, 1.0);
    }
    stored::summary(path)?;
    let work = temporary_directory()?;
    let stored = stored::pages(path, work.path(), usize::MAX / 2)?;
    let kept = stored.ids.kept(path)?;
    let mut rows = Vec::with_capacity(kept.len());
    for (page, &kept) in kept.by_page() {
        rows.push((stored.pages.id(page)?, stored.pages.id(kept)?));
    }
    Ok(Gold::of_clusters(rows.iter().map(|(page, cluster)| (page.as_str(), cluster.as_str()))))
}

/// Sets every method to the recall of one of them.
fn equal_recall(evaluation: &mut Evaluation, curves: &[(Method, Vec<JudgedPair>)], reference: &str) {
    let Some(wanted) = evaluation.methods.iter().find(|method| method.name == reference) else { return };
    let recall = wanted.pairs.recall();
    for (row, (method, judged)) in evaluation.methods.iter_mut().zip(curves) {
        let at = cuts(judged, evaluation.gold_pairs, None).find(|cut| cut.1.recall() >= recall);
        let at = at.map(|(value, pairs)| CutPoint { threshold: shown(method, value), pairs });
        row.equal_recall = Some(EqualRecall { with: reference.to_owned(), at });
    }
}
