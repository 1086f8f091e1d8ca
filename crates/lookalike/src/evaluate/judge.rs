//! A run, judged by the labels of its pages.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::config::{Guess, Method};
use crate::error::Result;
use crate::evaluate::labels::{Labels, PairFacts};
use crate::evaluate::levels::levels;
use crate::evaluate::method_run::MethodRun;
use crate::evaluate::metrics::{ClusterScores, Counts, compare_clusters, strict};
use crate::evaluate::{CutPoint, Halves, MethodEvaluation, PairError, PairPage, SiteErrors, SweepPoint};
use crate::page::{PageId, PageVec, ScoredPair};
use crate::plan::Unit;
use crate::spill::Scratch;

/// Sites and pairs that are listed for each method.
const LISTED_SITES: usize = 10;
const LISTED_PAIRS: usize = 25;

/// A judged pair of the loosest run.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgedPair {
    pub(super) left: PageId,
    pub(super) right: PageId,
    /// Larger is nearer; copies are nearest.
    pub(super) value: f64,
    /// The same in the method's unit, whatever threshold it is held against.
    pub(super) level: f64,
    pub(super) is_correct: bool,
    pub(super) facts: PairFacts,
}

/// All that is needed to judge a run.
pub(super) struct Judge<'a> {
    pub(super) labels: &'a Labels<'a>,
    pub(super) truth: &'a [(PageId, PageId)],
    pub(super) clustered: Vec<(PageId, u32)>,
}

impl Judge<'_> {
    pub(super) fn cluster_count(&self) -> usize {
        let mut sizes: HashMap<u32, u32> = HashMap::new();
        self.clustered.iter().for_each(|row| *sizes.entry(row.1).or_default() += 1);
        sizes.values().filter(|&&size| size > 1).count()
    }

    pub(super) fn method(&self, run: &MethodRun, loose: &MethodRun) -> Result<(Vec<JudgedPair>, MethodEvaluation)> {
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
            family: Method::named(method.name())
                .map_or_else(|_| method.label(), |own| method.with_threshold(own.threshold()).label()),
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
            sweep: self.sweep(loose, &judged)?,
            levels: levels(&judged, method.unit()),
            sites: self.site_errors(&at_default),
            wrong: wrong_pairs(run, &at_default)?,
            missed: self.missed_pairs(run, &at_default, &judged)?,
            cost: run.cost,
            is_capped: run.is_capped,
            is_loosest_capped: loose.is_capped,
        };
        Ok((judged, evaluation))
    }

    /// Pairs that belong together and were not found; those that a looser threshold finds first.
    fn missed_pairs(&self, run: &MethodRun, found: &[JudgedPair], loose: &[JudgedPair]) -> Result<Vec<PairError>> {
        let ends = |pair: &JudgedPair| (pair.left, pair.right);
        let right: HashSet<(PageId, PageId)> = found.iter().filter(|pair| pair.is_correct).map(ends).collect();
        let seen: HashSet<(PageId, PageId)> = loose.iter().map(ends).collect();
        let near = loose.iter().filter(|pair| pair.is_correct && !right.contains(&ends(pair)));
        let near = near.map(|pair| (ends(pair), Some(pair.level)));
        let far = self.truth.iter().filter(|&pair| !right.contains(pair) && !seen.contains(pair));
        let all = near.chain(far.map(|&pair| (pair, None))).take(LISTED_PAIRS);
        all.map(|((left, right), level)| pair_error(run, left, right, level)).collect()
    }

    /// The judged pairs of a run, copies included, nearest first.
    pub(super) fn judged(&self, run: &MethodRun) -> Vec<JudgedPair> {
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
    pub(super) fn clusters(&self, kept: &PageVec<PageId>) -> (Option<ClusterScores>, Option<Counts>) {
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

    fn sweep(&self, loose: &MethodRun, judged: &[JudgedPair]) -> Result<Vec<SweepPoint>> {
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
                self.clusters(&loose.stars(&near, threshold, Guess::Best)?)
            };
            Ok(SweepPoint { threshold, pairs, clusters, strict })
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

/// Pairs that were found and do not belong together.
fn wrong_pairs(run: &MethodRun, found: &[JudgedPair]) -> Result<Vec<PairError>> {
    let wrong = found.iter().filter(|pair| !pair.is_correct).take(LISTED_PAIRS);
    wrong.map(|pair| pair_error(run, pair.left, pair.right, Some(pair.level))).collect()
}

fn pair_error(run: &MethodRun, left: PageId, right: PageId, level: Option<f64>) -> Result<PairError> {
    let page = |page: PageId| {
        let mut scratch = Scratch::default();
        let strings = run.stored.pages.strings(page, &mut scratch)?;
        let source = run.stored.sources.get(run.stored.pages.place(page).source.index());
        let file = source.filter(|name| run.summary.files.iter().all(|file| file.source != **name));
        Ok(PairPage {
            id: strings.id.to_owned(),
            title: strings.title.map(str::to_owned),
            url: strings.url.map(str::to_owned),
            file: file.cloned(),
        })
    };
    let unit = run.config.method.unit();
    // Copies are nearer than anything that can be measured.
    let score = level.filter(|level| level.is_finite()).map(|level| unit.nearness(level).abs());
    Ok(PairError { left: page(left)?, right: page(right)?, score })
}

pub(super) fn count<'a>(pairs: impl Iterator<Item = &'a JudgedPair>, gold: u64) -> Counts {
    let mut counts = Counts { gold, ..Counts::default() };
    for pair in pairs {
        counts.correct += u64::from(pair.is_correct);
        counts.wrong += u64::from(!pair.is_correct);
    }
    counts
}

/// Every cut through pairs that are sorted, nearest first: the value of the last one accepted, and the counts.
pub(super) fn cuts(judged: &[JudgedPair], gold: u64, half: Option<usize>) -> impl Iterator<Item = (f64, Counts)> {
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
pub(super) fn shown(method: &Method, nearness: f64) -> f64 {
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
