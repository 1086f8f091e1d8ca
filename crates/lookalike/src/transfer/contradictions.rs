//! Judged pages that are alike and were judged differently: judgments that cannot both hold.
//!
//! In: the judgments, the judged pages, and the conflicts about pages of the second corpus. Out: pairs of judged pages with
//! different grades for a topic that are near-duplicates, or were carried to the same page; each once for a topic.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::transfer::counterparts::CounterpartSearch;
use crate::transfer::output::Conflict;
use crate::transfer::qrels::Judgment;

/// Two judged pages that are alike and have different grades.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contradiction {
    /// The topic.
    pub topic: String,
    /// The page that comes first in the judged corpus.
    pub left_id: String,
    /// Its grade.
    pub left_grade: i64,
    /// The other page.
    pub right_id: String,
    /// Its grade.
    pub right_grade: i64,
    /// Their exact similarity, where texts are at hand.
    pub similarity: Option<f64>,
    /// Differing bits of their fingerprints, where both have one.
    pub distance: Option<u32>,
    /// Whether they are near-duplicates.
    pub near: bool,
    /// Pages of the second corpus that both were carried to.
    pub carried_to: Vec<String>,
}

/// What is known of a pair.
#[derive(Default)]
struct PairOfTopic {
    grades: (i64, i64),
    is_near: bool,
    carried_to: Vec<String>,
}

/// All contradictions, by topic in the order of the judgments, then by page. Of several judgments of one page and
/// topic, the first counts.
pub(super) fn contradictions(
    judgments: &[Judgment],
    conflicts: &[Conflict],
    search: &CounterpartSearch<'_>,
) -> Vec<Contradiction> {
    let judged = search.judged;
    let mut topics: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    let mut grades: HashMap<u32, BTreeMap<usize, i64>> = HashMap::new();
    for judgment in judgments {
        let topic = *topics.entry(&judgment.topic).or_insert_with(|| {
            names.push(&judgment.topic);
            names.len() - 1
        });
        if let Some(page) = judged.number(&judgment.page) {
            grades.entry(page).or_default().entry(topic).or_insert(judgment.grade);
        }
    }
    let grade_of = |page: u32, topic: usize| grades.get(&page)?.get(&topic).copied();
    let mut pairs: BTreeMap<(usize, u32, u32), PairOfTopic> = BTreeMap::new();
    for (left, right) in search.near_judged() {
        for (&topic, &grade) in grades.get(&left).into_iter().flatten() {
            if let Some(other) = grade_of(right, topic).filter(|other| *other != grade) {
                let pair = pairs.entry((topic, left, right)).or_default();
                (pair.grades, pair.is_near) = ((grade, other), true);
            }
        }
    }
    for conflict in conflicts {
        let Some(&topic) = topics.get(conflict.topic.as_str()) else { continue };
        let mut pages: Vec<u32> = conflict.from.iter().filter_map(|claim| judged.number(&claim.from_id)).collect();
        pages.sort_unstable();
        pages.dedup();
        for (at, &left) in pages.iter().enumerate() {
            for &right in &pages[at + 1..] {
                let Some(both) = grade_of(left, topic).zip(grade_of(right, topic)) else { continue };
                if both.0 != both.1 {
                    let pair = pairs.entry((topic, left, right)).or_default();
                    pair.grades = both;
                    pair.carried_to.push(conflict.to_id.clone());
                }
            }
        }
    }
    let id = |page: u32| judged.pages[page as usize].id.clone();
    let row = |((topic, left, right), pair): ((usize, u32, u32), PairOfTopic)| {
        let likeness = search.likeness_of(left, right);
        Contradiction {
            topic: names[topic].to_owned(),
            left_id: id(left),
            left_grade: pair.grades.0,
            right_id: id(right),
            right_grade: pair.grades.1,
            similarity: likeness.similarity,
            distance: likeness.distance,
            near: pair.is_near,
            carried_to: pair.carried_to,
        }
    };
    pairs.into_iter().map(row).collect()
}
