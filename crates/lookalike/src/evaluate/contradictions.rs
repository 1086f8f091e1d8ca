//! Judgments that cannot both hold.
//!
//! In: what the gold says of pages, and which pages have the same text. Out: pairs that are judged to be different pages
//! although their texts are the same, or although a chain of judgments says that they are the same page. Pages with the
//! same text count as one; each pair is listed once.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde::Serialize;

use crate::error::Result;
use crate::evaluate::labels::Labels;
use crate::names::named;
use crate::page::PageId;
use crate::report::stored::StoredPages;

named! {
    /// Why two judgments cannot both hold.
    pub enum Against {
        /// The pages are judged to be different, and what is compared of them is the same
        SameText = "same_text",
        /// The pages are judged to be different, and others between them to be the same
        Chain = "chain",
    }
}

/// Two pages that are judged to be different, and why they cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoldContradiction {
    /// The page that comes first in the input.
    pub left: String,
    /// The other one.
    pub right: String,
    /// What speaks against it.
    pub against: Against,
    /// Pages between them, each judged to be the same as the next, or with its text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<String>,
}

impl GoldContradiction {
    /// What speaks against the judgment, in words.
    #[must_use]
    pub fn reason(&self) -> String {
        match self.against {
            Against::SameText => "what is compared of them is the same".to_owned(),
            Against::Chain if self.through.is_empty() => "their copies are judged to be the same".to_owned(),
            Against::Chain => format!("judged to be the same through {}", self.through.join(", ")),
        }
    }
}

/// All contradictions, by page.
pub(super) fn contradictions(labels: &Labels<'_>, stored: &StoredPages) -> Result<Vec<GoldContradiction>> {
    let text_of = |page: PageId| stored.first[page];
    let mut found: BTreeMap<(PageId, PageId), (Against, Vec<PageId>)> = BTreeMap::new();
    let mut first_judged: HashMap<PageId, PageId> = HashMap::new();
    for page in stored.pages.all().filter(|&page| labels.is_judged(page)) {
        let leader = *first_judged.entry(text_of(page)).or_insert(page);
        if leader != page && labels.verdict(leader, page) == Some(false) {
            found.insert((leader, page), (Against::SameText, Vec::new()));
        }
    }
    let listed = labels.listed_pairs();
    let mut same: BTreeMap<PageId, BTreeSet<PageId>> = BTreeMap::new();
    for &(left, right, _) in listed.iter().filter(|row| row.2) {
        same.entry(text_of(left)).or_default().insert(text_of(right));
        same.entry(text_of(right)).or_default().insert(text_of(left));
    }
    for &(left, right, _) in listed.iter().filter(|row| !row.2) {
        if text_of(left) == text_of(right) {
            found.entry((left, right)).or_insert((Against::SameText, Vec::new()));
        } else if let Some(through) = path(&same, text_of(left), text_of(right)) {
            found.entry((left, right)).or_insert((Against::Chain, through));
        }
    }
    let id = |page: PageId| stored.pages.id(page);
    let row = |((left, right), (against, through)): ((PageId, PageId), (Against, Vec<PageId>))| {
        let through = through.into_iter().map(|page| id(first_judged.get(&page).copied().unwrap_or(page)));
        Ok(GoldContradiction { left: id(left)?, right: id(right)?, against, through: through.collect::<Result<_>>()? })
    };
    found.into_iter().map(row).collect()
}

/// What stands between two nodes on a shortest way, if there is one.
fn path(edges: &BTreeMap<PageId, BTreeSet<PageId>>, from: PageId, to: PageId) -> Option<Vec<PageId>> {
    let mut before: HashMap<PageId, PageId> = HashMap::from([(from, from)]);
    let mut waiting = VecDeque::from([from]);
    while let Some(node) = waiting.pop_front() {
        if node == to {
            let mut between: Vec<PageId> = std::iter::successors(Some(before[&to]), |node| Some(before[node]))
                .take_while(|&node| node != from)
                .collect();
            between.reverse();
            return Some(between);
        }
        for &next in edges.get(&node).into_iter().flatten() {
            before.entry(next).or_insert_with(|| {
                waiting.push_back(next);
                node
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortest_way_is_found() {
        let page = PageId::new;
        let mut edges: BTreeMap<PageId, BTreeSet<PageId>> = BTreeMap::new();
        for (a, b) in [(1, 2), (2, 3), (3, 4), (2, 5), (5, 4), (4, 6), (8, 9)] {
            edges.entry(page(a)).or_default().insert(page(b));
            edges.entry(page(b)).or_default().insert(page(a));
        }
        assert_eq!(path(&edges, page(1), page(6)), Some([2, 3, 4].map(page).to_vec()));
        assert_eq!(path(&edges, page(1), page(2)), Some(Vec::new()));
        assert_eq!(path(&edges, page(1), page(9)), None);
    }
}
