//! A list of search results → the list folded by near-duplicates (Jain et al. 2005).
//!
//! In: results in the order of their ranks, with texts or with sketches that were made before. Out: groups in
//! the order of their best rank; each names its best result, and the others with their exact similarity to it
//! and which of the two contains the other. Every folded result was compared with the one it is folded under;
//! the paper's chains are an option. Where texts are snippets, titles and URLs count, too (`evidence.rs` has the rule).

mod address;
mod answer;
mod evidence;
mod examples;
pub mod lists;
mod sketch;
mod sketched;
mod spread;
mod title;

pub use answer::{Answer, AnswerOptions, GROUP_FIELD};
pub use evidence::{Evidence, EvidenceSet};
pub use lists::{Lists, ResultFields, ResultList, SearchResult};
pub use sketch::StoredSketch;
pub use sketched::{ByFingerprints, ListSketches, RunCorpus, by_fingerprints, sketch_list, sketch_lists};
pub use spread::{FirstResults, ListSpread, Spread, spread, write_report};

use std::collections::HashMap;

use serde::Serialize;

use crate::config::{ClusterMode, Config, Method, Scope};
use crate::error::{Error, Result};
use crate::page::RawPage;
use crate::plan::{Decision, Plan, Verdict};
use crate::sketch::PageSketch;
use crate::sketcher::Sketcher;
use crate::union_find::UnionFind;
use crate::verify::score::{Score, score};
use evidence::Signs;

/// Folds lists by one method.
///
/// ```
/// use lookalike::method::Bloom;
/// use lookalike::{RawPage, Refiner};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
/// let other = "Prices of bread and milk rose again this spring, and bakers say that flour is why. ".repeat(5);
/// let refiner = Refiner::new(Refiner::defaults(Bloom::default()))?;
/// let mut sketcher = refiner.sketcher();
/// let results = [&story, &other, &format!("{story} (Photo)")];
/// let sketches = results.map(|text| Some(refiner.sketch(&RawPage::text(text), &mut sketcher)));
/// let folded = refiner.fold(&sketches);
/// assert_eq!((folded.groups[0].best, folded.groups[0].others[0].at), (0, 2));
/// assert_eq!((folded.groups[1].best, folded.groups[1].others.len()), (1, 0));
/// # Ok::<(), lookalike::Error>(())
/// ```
pub struct Refiner {
    config: Config,
    plan: Plan,
    /// What suffices where titles or URLs agree; none where the method does not decide by a similarity.
    supported: Option<Plan>,
    evidence: EvidenceSet,
}

/// Texts of fewer words are snippets: titles and URLs say more about them.
const SHORT_WORDS: u32 = 100;
/// The share of the threshold that suffices for long texts with the same title or URL.
const SUPPORTED_SHARE: f64 = 0.7;

/// Two results that are the same page.
#[derive(Debug, Clone, Copy)]
struct Link {
    score: Score,
    evidence: EvidenceSet,
}

/// How a result is related to the one it is folded under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The same words in the same order.
    Exact,
    /// Each has most of the other.
    Near,
    /// Most of it is in the best result, which has more besides.
    ContainedIn,
    /// It has most of the best result, and more besides.
    Contains,
    /// They have the same URL; the texts alone do not show it.
    SameUrl,
    /// They have the same title; the texts alone do not show it.
    SameTitle,
    /// Neither: others of the group lie between them.
    Chained,
}

impl Relation {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Relation::Exact => "the same",
            Relation::Near => "near",
            Relation::ContainedIn => "contained in it",
            Relation::Contains => "contains it",
            Relation::SameUrl => "same URL",
            Relation::SameTitle => "same title",
            Relation::Chained => "through others",
        }
    }
}

/// A result under another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fold {
    /// Its place in the list, from 0.
    pub at: usize,
    /// Exact similarity of its text to that of the best result of its group; 0 where one of them has none.
    pub similarity: f64,
    /// Share of it that is in the best result.
    pub in_best: f64,
    /// Share of the best result that is in it.
    pub best_in_it: f64,
    /// Which way.
    pub relation: Relation,
    /// What decided.
    pub evidence: EvidenceSet,
}

/// A result and those under it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The place of the best result in the list, from 0.
    pub best: usize,
    /// The others, by rank.
    pub others: Vec<Fold>,
}

/// A folded list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Folded {
    /// Groups, by the rank of their best result.
    pub groups: Vec<Group>,
    /// Results in the list.
    pub results: usize,
}

impl Folded {
    /// The share of the first `top` results that are near-duplicates of a better one.
    #[must_use]
    pub fn duplicates(&self, top: usize) -> f64 {
        let folded = self.groups.iter().flat_map(|group| &group.others).filter(|fold| fold.at < top).count();
        folded as f64 / self.results.min(top).max(1) as f64
    }
}

impl Refiner {
    /// The defaults of a method for lists of results.
    #[must_use]
    pub fn defaults(method: impl Into<Method>) -> Config {
        Config::new(method.into().for_results())
    }

    /// Folds as `config` says.
    ///
    /// # Errors
    /// When the config is not valid, or needs a whole corpus.
    pub fn new(mut config: Config) -> Result<Refiner> {
        config.check()?;
        if config.corpus_needs().frames {
            // A list of results is not a corpus to learn frames from.
            config.content.scope = Scope::Core;
        }
        if config.corpus_needs().any() {
            let reason = "counts in a whole corpus, which a list of results is not; use `weights` none or tf, and `antecedents` that are given";
            return Err(Error::conflict("method", reason));
        }
        let loose = |method: &Method| method.with_threshold(method.threshold() * SUPPORTED_SHARE);
        let supported =
            config.method.has_similarity_threshold().then(|| config.with_method(loose(&config.method)).plan());
        Ok(Refiner { plan: config.plan(), config, supported, evidence: EvidenceSet::ALL })
    }

    /// The same, with other evidence; all there is counts otherwise.
    #[must_use]
    pub fn with_evidence(self, evidence: EvidenceSet) -> Refiner {
        Refiner { evidence, ..self }
    }

    /// What counts as evidence.
    #[must_use]
    pub fn evidence(&self) -> EvidenceSet {
        self.evidence
    }

    /// The config.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A sketcher for [`sketch`](Self::sketch); one for each thread.
    #[must_use]
    pub fn sketcher(&self) -> Sketcher {
        Sketcher::of_plan(&self.plan)
    }

    /// What a page is compared by.
    #[must_use]
    pub fn sketch(&self, page: &RawPage<'_>, sketcher: &mut Sketcher) -> StoredSketch {
        StoredSketch::make(page, sketcher, &self.config)
    }

    /// Reads a sketch that was made before.
    ///
    /// # Errors
    /// When it is not a sketch, or was made with other settings.
    pub fn read_sketch(&self, text: &str) -> Result<StoredSketch, String> {
        StoredSketch::parse(text, &self.config, &self.plan)
    }

    /// Folds a list by the texts alone; results without a sketch stay by themselves.
    #[must_use]
    pub fn fold(&self, sketches: &[Option<StoredSketch>]) -> Folded {
        self.group(sketches, &self.links(sketches))
    }

    /// Folds a list by all evidence that counts: `sketches` are those of the texts of `results`.
    #[must_use]
    pub fn fold_results(&self, results: &[SearchResult], sketches: &[Option<StoredSketch>]) -> Folded {
        let mut links = self.links(sketches);
        if self.evidence != EvidenceSet::TEXT {
            self.add_signs(results, sketches, &mut links);
        }
        self.group(sketches, &links)
    }

    /// Adds pairs whose titles or URLs show what the texts do not.
    fn add_signs(
        &self,
        results: &[SearchResult],
        sketches: &[Option<StoredSketch>],
        links: &mut HashMap<(usize, usize), Link>,
    ) {
        let is_short = |at: usize| sketches[at].as_ref().is_none_or(|sketch| sketch.tokens < SHORT_WORDS);
        let signs = Signs::of(results, self.evidence, is_short);
        for right in 0..results.len() {
            for left in (0..right).filter(|&left| !links.contains_key(&(left, right))).collect::<Vec<_>>() {
                let evidence = if is_short(left) || is_short(right) {
                    signs.decide(left, right)
                } else {
                    signs.supports(left, right).filter(|_| self.is_supported(&sketches[left], &sketches[right]))
                };
                if let Some(evidence) = evidence {
                    let score = self.score(sketches[left].as_ref(), sketches[right].as_ref());
                    links.insert((left, right), Link { score, evidence });
                }
            }
        }
    }

    /// Whether two long texts are as similar as it takes if their titles or URLs agree.
    fn is_supported(&self, left: &Option<StoredSketch>, right: &Option<StoredSketch>) -> bool {
        match (&self.supported, left, right) {
            (Some(plan), Some(left), Some(right)) => {
                score(plan, left.view(), right.view()).verdict == Verdict::Accepted
            }
            _ => false,
        }
    }

    /// Links → groups.
    fn group(&self, sketches: &[Option<StoredSketch>], links: &HashMap<(usize, usize), Link>) -> Folded {
        let mut best_of: Vec<usize> = (0..sketches.len()).collect();
        if self.config.groups.cluster == ClusterMode::Components {
            let number = |at: usize| u32::try_from(at).expect("a list has fewer than 2^32 results");
            let mut sets = UnionFind::new(sketches.len());
            links.keys().for_each(|&(left, right)| sets.join(number(left), number(right)));
            let mut first: HashMap<u32, usize> = HashMap::new();
            for (at, best) in best_of.iter_mut().enumerate() {
                *best = *first.entry(sets.root(number(at))).or_insert(at);
            }
        } else {
            for at in 0..sketches.len() {
                // Of the results before it that are under no other, the most similar one, by its text if that shows it;
                // the better one in a tie.
                let kept = (0..at).filter(|&best| best_of[best] == best);
                let linked = kept.filter_map(|best| Some((best, links.get(&(best, at))?)));
                let nearest = linked.max_by(|(a, left), (b, right)| {
                    let by_text = |link: &Link| link.evidence == EvidenceSet::TEXT;
                    let order = by_text(left).cmp(&by_text(right));
                    order.then(left.score.similarity.total_cmp(&right.score.similarity)).then(b.cmp(a))
                });
                best_of[at] = nearest.map_or(at, |(best, _)| best);
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut place: HashMap<usize, usize> = HashMap::new();
        for (at, &best) in best_of.iter().enumerate() {
            if best == at {
                place.insert(at, groups.len());
                groups.push(Group { best, others: Vec::new() });
                continue;
            }
            let (left, right) = (sketches[best].as_ref(), sketches[at].as_ref());
            let found = links
                .get(&(best, at))
                .copied()
                .unwrap_or_else(|| Link { score: self.score(left, right), evidence: EvidenceSet::default() });
            let is_copy = left.zip(right).is_some_and(|(a, b)| a.tokens > 0 && a.identity == b.identity);
            let group = place[&best];
            groups[group].others.push(self.describe(at, &found, is_copy));
        }
        Folded { groups, results: sketches.len() }
    }

    fn score(&self, left: Option<&StoredSketch>, right: Option<&StoredSketch>) -> Score {
        // Without a text there are no features, and nothing is similar.
        let nothing = PageSketch { features: &[], weights: &[], sketch: &[] };
        score(&self.plan, left.map_or(nothing, StoredSketch::view), right.map_or(nothing, StoredSketch::view))
    }

    /// Every pair of results whose texts are near-duplicates, the better one first.
    fn links(&self, results: &[Option<StoredSketch>]) -> HashMap<(usize, usize), Link> {
        let long = |sketch: &&StoredSketch| sketch.tokens >= self.config.pairs.min_tokens.max(1);
        let mut links = HashMap::new();
        let mut add = |left: usize, right: usize| {
            let (Some(a), Some(b)) = (&results[left], &results[right]) else { return };
            let is_copy = a.tokens > 0 && a.identity == b.identity;
            let is_near = || long(&a) && long(&b);
            if is_copy || is_near() {
                let found = self.score(Some(a), Some(b));
                if is_copy || found.verdict == Verdict::Accepted {
                    links.insert((left, right), Link { score: found, evidence: EvidenceSet::TEXT });
                }
            }
        };
        if let (Some(filter), Decision::Similarity { threshold, .. }) = (self.plan.sketch.filter, self.plan.decision) {
            by_filters(results, filter.hashes, threshold).into_iter().for_each(|(left, right)| add(left, right));
        } else if matches!(self.plan.decision, Decision::Similarity { .. }) {
            candidates(results).into_iter().for_each(|(left, right)| add(left, right));
        } else {
            for right in 0..results.len() {
                (0..right).for_each(|left| add(left, right));
            }
        }
        links
    }

    fn describe(&self, at: usize, link: &Link, is_copy: bool) -> Fold {
        let found = &link.score;
        let threshold = match self.plan.decision {
            Decision::Similarity { threshold, .. } => threshold,
            _ => 1.0, // not directed: neither share is asked for
        };
        let relation = if is_copy {
            Relation::Exact
        } else if link.evidence.has(Evidence::Title) {
            Relation::SameTitle
        } else if link.evidence.has(Evidence::Url) {
            Relation::SameUrl
        } else if found.verdict != Verdict::Accepted {
            Relation::Chained
        } else if !self.plan.is_directed() || (found.left_in_right >= threshold && found.right_in_left >= threshold) {
            Relation::Near
        } else if found.right_in_left >= threshold {
            Relation::ContainedIn
        } else {
            Relation::Contains
        };
        Fold {
            at,
            similarity: if is_copy { 1.0 } else { found.similarity },
            in_best: found.right_in_left,
            best_in_it: found.left_in_right,
            relation,
            evidence: link.evidence,
        }
    }
}

/// Pairs that Bloom filters do not rule out. What only one page has sets at most so many bits for each element; if
/// enough of it is in the other, the rest of its bits must be set there too. Copies count whatever their chunks are.
fn by_filters(results: &[Option<StoredSketch>], hashes: u32, threshold: f64) -> Vec<(usize, usize)> {
    let ones = |words: &[u32]| words.iter().map(|word| word.count_ones()).sum::<u32>();
    let least = |sketch: &StoredSketch| {
        let own = f64::from(hashes) * (1.0 - threshold) * sketch.features.len() as f64;
        f64::from(ones(&sketch.sketch)) - own - 1e-6
    };
    let least: Vec<f64> = results.iter().map(|sketch| sketch.as_ref().map_or(f64::INFINITY, least)).collect();
    let mut pairs = Vec::new();
    for (right, b) in results.iter().enumerate().filter_map(|(at, sketch)| Some((at, sketch.as_ref()?))) {
        for (left, a) in results[..right].iter().enumerate().filter_map(|(at, sketch)| Some((at, sketch.as_ref()?))) {
            let both: u32 = a.sketch.iter().zip(&b.sketch).map(|(a, b)| (a & b).count_ones()).sum();
            if f64::from(both) >= least[left].min(least[right]) || a.identity == b.identity {
                pairs.push((left, right));
            }
        }
    }
    pairs
}

/// Pairs that share a feature, or are copies of each other: no other can be similar.
fn candidates(results: &[Option<StoredSketch>]) -> Vec<(usize, usize)> {
    let mut rows: Vec<(u64, u32)> = Vec::new();
    for (at, sketch) in (0u32..).zip(results).filter_map(|(at, sketch)| Some((at, sketch.as_ref()?))) {
        #[allow(clippy::cast_possible_truncation)] // half of a hash is a hash
        let identity = sketch.identity as u64;
        rows.push((identity, at));
        rows.extend(sketch.features.iter().map(|&feature| (feature, at)));
    }
    rows.sort_unstable();
    let mut is_candidate = vec![false; results.len() * results.len()];
    for same in rows.chunk_by(|a, b| a.0 == b.0) {
        for (number, right) in same.iter().enumerate() {
            for left in &same[..number] {
                is_candidate[left.1 as usize * results.len() + right.1 as usize] = true;
            }
        }
    }
    let count = results.len();
    (0..is_candidate.len())
        .filter(|&at| is_candidate[at])
        .map(|at| (at / count, at % count))
        .filter(|p| p.0 < p.1)
        .collect()
}

/// The part of a sketch that is compared.
impl StoredSketch {
    fn view(&self) -> PageSketch<'_> {
        PageSketch { features: &self.features, weights: &self.weights, sketch: &self.sketch }
    }
}

#[cfg(test)]
mod tests;
