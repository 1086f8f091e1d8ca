//! How good a run is before and after its near-duplicates are folded.
//!
//! In: a run, what was folded in it, judgments. Out: nDCG@10, average precision, precision at 10 and reciprocal rank of the run and of the
//! folded run, each with the judgments as they are, and with those in which a near-duplicate of a better result is not relevant. All are defined as
//! in `trec_eval`: results by score, ties by id in descending order; gains are grades, and grades below 0 are 0; a grade of
//! 1 or more is relevant. Means are over all topics with judgments, as with its option `-c`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::refine::{Folded, Lists, ResultList};
use crate::transfer::qrels::Judgment;

/// Results that nDCG and precision look at.
const CUT: usize = 10;

/// The measures of a run, as means over topics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RunMeasures {
    /// nDCG@10.
    pub ndcg_10: f64,
    /// Average precision.
    pub average_precision: f64,
    /// Precision at 10.
    pub precision_10: f64,
    /// Reciprocal rank of the first relevant result.
    pub reciprocal_rank: f64,
}

/// A run before and after folding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoldedMeasures {
    /// Topics with judgments, which the means are over.
    pub topics: usize,
    /// Those of them that the run has no results for; they count as 0.
    pub topics_without_results: usize,
    /// Relevant results of the run.
    pub relevant_results: usize,
    /// Those of them that are near-duplicates of a better result.
    pub relevant_duplicates: usize,
    /// Those of them whose better result is not judged relevant.
    pub relevant_under_others: usize,
    /// The run.
    pub run: RunMeasures,
    /// The run without near-duplicates.
    pub folded: RunMeasures,
    /// The run, with judgments in which near-duplicates are not relevant.
    pub run_unique: RunMeasures,
    /// The run without near-duplicates, with these judgments.
    pub folded_unique: RunMeasures,
}

/// Measures a run before and after folding; also the judgments in which near-duplicates are not relevant.
///
/// # Errors
/// When no topic of the run is judged.
pub fn measure_folding(
    lists: &Lists,
    folded: &[Folded],
    judgments: &[Judgment],
) -> Result<(FoldedMeasures, Vec<Judgment>)> {
    let topics: BTreeMap<&str, (&ResultList, &Folded)> = lists
        .lists
        .iter()
        .zip(folded)
        .filter_map(|(list, folded)| Some((list.name.as_deref()?, (list, folded))))
        .collect();
    let judged: BTreeMap<&str, HashMap<&str, i64>> = by_topic(judgments);
    if !judged.keys().any(|topic| topics.contains_key(topic)) {
        let example = |names: Option<&&str>| names.copied().unwrap_or_default().to_owned();
        let reason = format!(
            "have no topic of the run: '{}' there, '{}' here",
            example(judged.keys().next()),
            example(topics.keys().next())
        );
        return Err(Error::conflict("qrels", reason));
    }
    let mut duplicates: HashSet<(&str, &str)> = HashSet::new();
    let (mut relevant_results, mut relevant_duplicates, mut relevant_under_others) = (0, 0, 0);
    for (topic, (list, folded)) in &topics {
        let id = |at: usize| list.results[at].id.as_deref().unwrap_or_default();
        let is_relevant =
            |at: usize| judged.get(topic).and_then(|pages| pages.get(id(at))).is_some_and(|&grade| grade > 0);
        relevant_results += (0..list.results.len()).filter(|&at| is_relevant(at)).count();
        for (best, fold) in folded.groups.iter().flat_map(|group| group.others.iter().map(|fold| (group.best, fold))) {
            duplicates.insert((topic, id(fold.at)));
            relevant_duplicates += usize::from(is_relevant(fold.at));
            relevant_under_others += usize::from(is_relevant(fold.at) && !is_relevant(best));
        }
    }
    let unique = |judgment: &Judgment| {
        let is_duplicate = duplicates.contains(&(judgment.topic.as_str(), judgment.page.as_str()));
        let grade = if is_duplicate { judgment.grade.min(0) } else { judgment.grade };
        Judgment { grade, ..judgment.clone() }
    };
    let unique: Vec<Judgment> = judgments.iter().map(unique).collect();
    let judged_unique = by_topic(&unique);
    let measure = |judged: &BTreeMap<&str, HashMap<&str, i64>>, is_folded: bool| {
        let mut sum = RunMeasures::default();
        for (topic, pages) in judged {
            let Some((list, folded)) = topics.get(topic) else { continue };
            let ranked = if is_folded {
                ranked(list, folded.groups.iter().map(|group| group.best))
            } else {
                ranked(list, 0..list.results.len())
            };
            sum.add(&RunMeasures::of(&ranked, pages));
        }
        sum.divided(judged.len())
    };
    let measures = FoldedMeasures {
        topics: judged.len(),
        topics_without_results: judged.keys().filter(|topic| !topics.contains_key(*topic)).count(),
        relevant_results,
        relevant_duplicates,
        relevant_under_others,
        run: measure(&judged, false),
        folded: measure(&judged, true),
        run_unique: measure(&judged_unique, false),
        folded_unique: measure(&judged_unique, true),
    };
    Ok((measures, unique))
}

fn by_topic(judgments: &[Judgment]) -> BTreeMap<&str, HashMap<&str, i64>> {
    let mut topics: BTreeMap<&str, HashMap<&str, i64>> = BTreeMap::new();
    for judgment in judgments {
        topics.entry(&judgment.topic).or_default().insert(&judgment.page, judgment.grade);
    }
    topics
}

/// The ids of some results, in the order in which `trec_eval` takes them.
fn ranked(list: &ResultList, places: impl Iterator<Item = usize>) -> Vec<&str> {
    // It keeps scores in 32 bits.
    #[allow(clippy::cast_possible_truncation)]
    let row = |at: usize| {
        let result = &list.results[at];
        (result.score.unwrap_or_default() as f32, result.id.as_deref().unwrap_or_default())
    };
    let mut rows: Vec<(f32, &str)> = places.map(row).collect();
    let order = |a: &(f32, &str), b: &(f32, &str)| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal).then(b.1.cmp(a.1));
    rows.sort_by(order);
    rows.into_iter().map(|(_, id)| id).collect()
}

impl RunMeasures {
    /// The measures of one topic.
    fn of(ranked: &[&str], judged: &HashMap<&str, i64>) -> RunMeasures {
        let gains: Vec<f64> = ranked.iter().map(|id| gain(judged.get(id).copied().unwrap_or_default())).collect();
        let mut ideal: Vec<f64> = judged.values().map(|&grade| gain(grade)).collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        let relevant = judged.values().filter(|&&grade| grade > 0).count();
        let (mut found, mut precisions, mut first) = (0usize, 0.0, None);
        for (at, _) in gains.iter().enumerate().filter(|(_, gain)| **gain > 0.0) {
            found += 1;
            precisions += found as f64 / (at + 1) as f64;
            first.get_or_insert(at + 1);
        }
        let best = discounted(&ideal);
        RunMeasures {
            ndcg_10: if best > 0.0 { discounted(&gains) / best } else { 0.0 },
            average_precision: precisions / relevant.max(1) as f64,
            precision_10: gains.iter().take(CUT).filter(|gain| **gain > 0.0).count() as f64 / CUT as f64,
            reciprocal_rank: first.map_or(0.0, |rank| 1.0 / rank as f64),
        }
    }

    fn add(&mut self, other: &RunMeasures) {
        self.ndcg_10 += other.ndcg_10;
        self.average_precision += other.average_precision;
        self.precision_10 += other.precision_10;
        self.reciprocal_rank += other.reciprocal_rank;
    }

    fn divided(self, topics: usize) -> RunMeasures {
        let mean = |sum: f64| sum / topics.max(1) as f64;
        RunMeasures {
            ndcg_10: mean(self.ndcg_10),
            average_precision: mean(self.average_precision),
            precision_10: mean(self.precision_10),
            reciprocal_rank: mean(self.reciprocal_rank),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // grades are small
fn gain(grade: i64) -> f64 {
    grade.max(0) as f64
}

/// Discounted cumulated gain of the first results.
fn discounted(gains: &[f64]) -> f64 {
    gains.iter().take(CUT).enumerate().map(|(at, gain)| gain / ((at + 2) as f64).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_of_one_topic_by_hand() {
        let judged: HashMap<&str, i64> = [("a", 2), ("b", 0), ("c", 1), ("d", -2), ("e", 1)].into();
        let found = RunMeasures::of(&["b", "a", "d", "c"], &judged);
        let ideal = 2.0 + 1.0 / 3f64.log2() + 0.5;
        let gained = 2.0 / 3f64.log2() + 1.0 / 5f64.log2();
        assert!((found.ndcg_10 - gained / ideal).abs() < 1e-12);
        assert!((found.average_precision - (0.5 + 0.5) / 3.0).abs() < 1e-12);
        assert!((found.precision_10 - 0.2).abs() < 1e-12);
        assert!((found.reciprocal_rank - 0.5).abs() < 1e-12);
        assert_eq!(RunMeasures::of(&[], &judged), RunMeasures::default());
        assert_eq!(RunMeasures::of(&["a"], &HashMap::new()), RunMeasures::default());
    }
}
