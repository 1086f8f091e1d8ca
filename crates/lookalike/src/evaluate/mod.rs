//! Methods against what people say: precision, recall and cost on labelled pages.
//!
//! In: pages, and a gold standard ([`gold`]). Out: an [`Evaluation`]. Each method runs twice over the pages: as
//! it comes, for its scores and its cost, and at its loosest, for everything that depends on the threshold; a
//! threshold is then a cut through the pairs of the loosest run.

pub mod audit;
mod combined_tables;
mod experiments;
mod figures;
pub mod gold;
mod grid;
mod labels;
mod levels;
mod method_run;
pub mod metrics;
mod one_page;
pub mod pairs;
mod report;
mod spot_experiments;
mod spot_figures;
mod spot_study;

pub use report::write_report;

pub use levels::Level;
pub use method_run::Cost;
pub use one_page::{OnePage, OnePageOptions, OtherPage, one_page, write_one_page};

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;

use crate::config::{Config, Guess, Method};
use crate::error::{Error, Result};
use crate::job::RunOptions;
use crate::method::{GridAxis, GridPoint};
use crate::page::{PageId, PageVec, ScoredPair};
use crate::plan::Unit;
use crate::report::stored;
use gold::{Gold, GoldColumns};
use labels::{Labels, PairFacts};
use levels::levels;
use method_run::{MethodRun, Runner, loosest, temporary_directory};
use metrics::{ClusterScores, Counts, compare_clusters, strict};

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
    pub memory_bytes: u64,
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
            memory_bytes: RunOptions::default_memory_bytes(),
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
    /// Its rule in words.
    pub rule: String,
    /// What its threshold counts.
    pub unit: &'static str,
    /// The threshold it comes with.
    pub threshold: f64,
    /// Pairs, at the default threshold.
    pub pairs: Counts,
    /// Clusters, at the default threshold; nothing where the gold has only pairs.
    pub clusters: Option<ClusterScores>,
    /// Duplicates found for a page of their own cluster, at the default threshold.
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
    /// What it takes.
    pub cost: Cost,
    /// Whether crowded buckets of the run were compared by leaders, so that pairs may be missing.
    pub is_capped: bool,
    /// The same of the loosest run, so that loose thresholds miss pairs.
    pub is_loosest_capped: bool,
}

impl MethodEvaluation {
    /// Pairs of one site, of two, and of each kind, where these are known.
    #[must_use]
    pub fn splits(&self) -> Vec<(&str, Counts)> {
        let sites = [("same site", self.same_site), ("different site", self.different_site)];
        let sites = sites.into_iter().filter_map(|(name, counts)| Some((name, counts?)));
        sites.chain(self.kinds.iter().map(|(name, counts)| (name.as_str(), *counts))).collect()
    }
}

/// A threshold, and what it gives.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CutPoint {
    /// The threshold, in the method's unit.
    pub threshold: f64,
    /// Pairs at it.
    pub pairs: Counts,
}

/// A threshold chosen on one half of the labels (Henzinger 2006, Tables 11 and 12).
#[derive(Debug, Clone, Copy, Serialize)]
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

/// Sites that are listed for each method.
const LISTED_SITES: usize = 10;

/// A judged pair of the loosest run.
#[derive(Debug, Clone, Copy)]
struct JudgedPair {
    left: PageId,
    right: PageId,
    /// Larger is nearer; copies are nearest.
    value: f64,
    /// The same in the method's unit, whatever threshold it is held against.
    level: f64,
    is_correct: bool,
    facts: PairFacts,
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
        let (judged, method) = judge.method(&run, &loose);
        let all = evaluation.get_or_insert_with(|| Evaluation {
            pages: run.stored.pages.len(),
            judged_pages: labels.judged_pages(),
            missing_pages: labels.missing,
            skipped: run.skipped,
            gold_pairs: truth.len() as u64,
            gold_clusters: judge.cluster_count(),
            methods: Vec::new(),
        });
        all.methods.push(method);
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

/// All that is needed to judge a run.
struct Judge<'a> {
    labels: &'a Labels<'a>,
    truth: &'a [(PageId, PageId)],
    clustered: Vec<(PageId, u32)>,
}

impl Judge<'_> {
    fn cluster_count(&self) -> usize {
        let mut sizes: HashMap<u32, u32> = HashMap::new();
        self.clustered.iter().for_each(|row| *sizes.entry(row.1).or_default() += 1);
        sizes.values().filter(|&&size| size > 1).count()
    }

    fn method(&self, run: &MethodRun, loose: &MethodRun) -> (Vec<JudgedPair>, MethodEvaluation) {
        let method = &run.config.method;
        let at_default = self.judged(run);
        let judged = self.judged(loose);
        let gold = |wanted: &dyn Fn(PageId, PageId) -> bool| {
            self.truth.iter().filter(|&&(left, right)| wanted(left, right)).count() as u64
        };
        let split = |wanted: &dyn Fn(PageId, PageId) -> bool| {
            let pairs = at_default.iter().filter(|pair| wanted(pair.left, pair.right));
            count(pairs, gold(wanted))
        };
        let by_site = |same: bool| {
            let counts = split(&|left, right| self.labels.facts(left, right).same_site == Some(same));
            (counts.correct + counts.wrong + counts.gold > 0).then_some(counts)
        };
        let mut kinds = BTreeMap::new();
        let found = at_default.iter().map(|pair| (pair.left, pair.right));
        for (left, right) in self.truth.iter().copied().chain(found) {
            if let Some(kind) = self.labels.kind(left, right)
                && !kinds.contains_key(kind)
            {
                kinds.insert(kind.to_owned(), split(&|left, right| self.labels.kind(left, right) == Some(kind)));
            }
        }
        let (clusters, strictly) = self.clusters(&run.kept);
        let evaluation = MethodEvaluation {
            method: method.label(),
            name: method.name(),
            rule: run.config.rule(),
            unit: method.unit().name(),
            threshold: method.threshold(),
            pairs: split(&|_, _| true),
            clusters,
            strict: strictly,
            same_site: by_site(true),
            different_site: by_site(false),
            kinds,
            best: {
                let (value, pairs) = best(&judged, self.truth.len() as u64, None);
                CutPoint { threshold: shown(method, value), pairs }
            },
            halves: self.halves(&judged, method),
            equal_recall: None,
            sweep: self.sweep(loose, &judged),
            levels: levels(&judged, method.unit()),
            sites: self.site_errors(&at_default),
            cost: run.cost,
            is_capped: run.is_capped,
            is_loosest_capped: loose.is_capped,
        };
        (judged, evaluation)
    }

    /// The judged pairs of a run, copies included, nearest first.
    fn judged(&self, run: &MethodRun) -> Vec<JudgedPair> {
        let mut members = run.members();
        members.iter_mut().for_each(|pages| pages.retain(|&page| self.labels.is_judged(page)));
        let (mut judged, unit) = (Vec::new(), run.config.method.unit());
        let mut add = |left: PageId, right: PageId, pair: Option<&ScoredPair>| {
            let (left, right) = (left.min(right), left.max(right));
            let Some(is_correct) = self.labels.verdict(left, right) else { return };
            let facts = self.labels.facts(left, right);
            // Where thresholds depend on the site, a pair may be nearer than any threshold that can be set.
            let nearest = unit.nearness(unit.nearest());
            let value = pair.map_or(f64::INFINITY, |pair| run.nearness(pair).min(nearest));
            // Where pairs on one site have a threshold of their own, levels are those of the score itself.
            let level = pair.filter(|_| run.plan.sketch.site).map_or(value, |pair| pair.score);
            judged.push(JudgedPair { left, right, value, level, is_correct, facts });
        };
        for same in &members {
            for (at, &left) in same.iter().enumerate() {
                same[at + 1..].iter().for_each(|&right| add(left, right, None));
            }
        }
        for pair in &run.pairs {
            for &left in &members[pair.left] {
                members[pair.right].iter().for_each(|&right| add(left, right, Some(pair)));
            }
        }
        judged.sort_by(|a, b| b.value.total_cmp(&a.value).then((a.left, a.right).cmp(&(b.left, b.right))));
        judged
    }

    /// Scores of clusters, from the page that is kept in each page's place.
    fn clusters(&self, kept: &PageVec<PageId>) -> (Option<ClusterScores>, Option<Counts>) {
        if self.clustered.is_empty() {
            return (None, None);
        }
        let gold: Vec<u32> = self.clustered.iter().map(|row| row.1).collect();
        let found: Vec<PageId> = self.clustered.iter().map(|row| kept[row.0]).collect();
        // A kept page that nobody judged is of no cluster, so that what was dropped for it counts as wrong.
        let mut place = PageVec::filled(kept.len(), u32::MAX);
        for (at, row) in (0u32..).zip(&self.clustered) {
            place[row.0] = at;
        }
        let mut all_gold = gold.clone();
        all_gold.push(u32::MAX);
        let nowhere = u32::try_from(gold.len()).expect("a gold standard has fewer than 2^32 pages");
        let mut places: Vec<u32> = found.iter().map(|&kept| place[kept].min(nowhere)).collect();
        places.push(nowhere);
        let found: Vec<u32> = found.into_iter().map(PageId::number).collect();
        (Some(compare_clusters(&gold, &found)), Some(strict(&all_gold, &places)))
    }

    fn halves(&self, judged: &[JudgedPair], method: &Method) -> Halves {
        let gold_of = |half: usize| {
            self.truth.iter().filter(|&&(left, right)| self.labels.facts(left, right).half == half).count() as u64
        };
        let (least, chosen_on) = best(judged, gold_of(0), Some(0));
        let others = judged.iter().filter(|pair| pair.facts.half == 1 && pair.value >= least);
        Halves { threshold: shown(method, least), chosen_on, tested_on: count(others, gold_of(1)) }
    }

    fn sweep(&self, loose: &MethodRun, judged: &[JudgedPair]) -> Vec<SweepPoint> {
        let method = &loose.config.method;
        let points = method.definition().thresholds().into_iter().map(|threshold| {
            let decision = method.with_threshold(threshold).definition().decision();
            let accepted = judged.iter().filter(|pair| decision.still_accepts(pair.value));
            let pairs = count(accepted, self.truth.len() as u64);
            let near = |pair: &&ScoredPair| decision.still_accepts(loose.nearness(pair));
            let near: Vec<ScoredPair> = loose.pairs.iter().filter(near).copied().collect();
            let (clusters, strict) = if self.clustered.is_empty() {
                (None, None)
            } else {
                self.clusters(&loose.stars(&near, threshold, Guess::Best))
            };
            SweepPoint { threshold, pairs, clusters, strict }
        });
        points.collect()
    }

    fn site_errors(&self, found: &[JudgedPair]) -> Vec<SiteErrors> {
        let mut errors: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut add = |left: PageId, right: PageId, is_wrong: bool| {
            let mut sites = [self.labels.site_of(left), self.labels.site_of(right)];
            if sites[0] == sites[1] {
                sites[1] = None;
            }
            for site in sites.into_iter().flatten() {
                let row = errors.entry(site).or_default();
                if is_wrong {
                    row.0 += 1;
                } else {
                    row.1 += 1;
                }
            }
        };
        found.iter().filter(|pair| !pair.is_correct).for_each(|pair| add(pair.left, pair.right, true));
        let mut right: Vec<(PageId, PageId)> =
            found.iter().filter(|pair| pair.is_correct).map(|pair| (pair.left, pair.right)).collect();
        right.sort_unstable();
        for pair in self.truth.iter().filter(|pair| right.binary_search(pair).is_err()) {
            add(pair.0, pair.1, false);
        }
        let mut rows: Vec<SiteErrors> = errors
            .into_iter()
            .map(|(site, (wrong, missed))| SiteErrors { site: site.to_owned(), wrong, missed })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.wrong, row.missed)));
        rows.truncate(LISTED_SITES);
        rows
    }
}

fn count<'a>(pairs: impl Iterator<Item = &'a JudgedPair>, gold: u64) -> Counts {
    let mut counts = Counts { gold, ..Counts::default() };
    for pair in pairs {
        counts.correct += u64::from(pair.is_correct);
        counts.wrong += u64::from(!pair.is_correct);
    }
    counts
}

/// Every cut through pairs that are sorted, nearest first: the value of the last one accepted, and the counts.
fn cuts(judged: &[JudgedPair], gold: u64, half: Option<usize>) -> impl Iterator<Item = (f64, Counts)> {
    let mut counts = Counts { gold, ..Counts::default() };
    judged.chunk_by(|a, b| a.value.total_cmp(&b.value).is_eq()).map(move |same| {
        for pair in same.iter().filter(|pair| half.is_none_or(|half| pair.facts.half == half)) {
            counts.correct += u64::from(pair.is_correct);
            counts.wrong += u64::from(!pair.is_correct);
        }
        (same[0].value, counts)
    })
}

/// The cut with the best F1; the strictest of those.
fn best(judged: &[JudgedPair], gold: u64, half: Option<usize>) -> (f64, Counts) {
    let mut found = (f64::INFINITY, Counts { gold, ..Counts::default() });
    for cut in cuts(judged, gold, half) {
        if cut.1.f1() > found.1.f1() {
            found = cut;
        }
    }
    found
}

/// A nearness as a threshold: copies alone are as near as can be.
fn shown(method: &Method, nearness: f64) -> f64 {
    let unit = method.unit();
    if nearness.is_infinite() {
        return unit.nearest();
    }
    let threshold = unit.nearness(nearness).abs();
    if unit != Unit::Similarity {
        return threshold;
    }
    // Rounded down to four digits, so that the pair it comes from is still accepted when the number is typed.
    let rounded = (threshold * 1e4).floor() / 1e4;
    if method.definition().decision().reaches(threshold, rounded) { rounded } else { rounded - 1e-4 }
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
