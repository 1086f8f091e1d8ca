//! Verified pairs → groups: which page of each is kept, and what every dropped page is told.

pub mod components;
pub mod identity;
pub mod rank;
pub mod star;

use crate::page::{Kind, PageId, ScoredPair};
use identity::IdentitySets;

/// For each node its neighbours, as flat arrays.
pub struct Neighbours {
    starts: Vec<usize>,
    /// Neighbour and similarity.
    entries: Vec<(PageId, f64)>,
}

impl Neighbours {
    /// The graph of `pairs` over `pages` pages.
    #[must_use]
    pub fn new(pages: usize, pairs: &[ScoredPair]) -> Neighbours {
        let mut starts = vec![0usize; pages + 1];
        for pair in pairs {
            starts[pair.left as usize + 1] += 1;
            starts[pair.right as usize + 1] += 1;
        }
        for page in 0..pages {
            starts[page + 1] += starts[page];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, 0.0); starts[pages]];
        for pair in pairs {
            for (from, to) in [(pair.left, pair.right), (pair.right, pair.left)] {
                entries[next[from as usize]] = (to, pair.similarity);
                next[from as usize] += 1;
            }
        }
        Neighbours { starts, entries }
    }

    /// The neighbours of `page`.
    #[must_use]
    pub fn of(&self, page: PageId) -> &[(PageId, f64)] {
        &self.entries[self.starts[page as usize]..self.starts[page as usize + 1]]
    }
}

/// What a page was told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fate {
    /// The page that is kept in its place; itself, if it is kept.
    pub kept: PageId,
    /// Similarity to that page.
    pub similarity: f64,
    /// What became of it.
    pub kind: Kind,
}

impl Fate {
    /// Whether the page of this number is kept.
    #[must_use]
    pub fn keeps(&self, page: PageId) -> bool {
        self.kept == page
    }
}

/// From the groups of identity sets to the fate of every page.
///
/// `chosen[first]` is the set that a set was assigned to and the similarity to it; `tokens` tells
/// empty and short pages.
#[must_use]
pub fn fates(sets: &IdentitySets, chosen: &[(PageId, f64)], tokens: &[u32], min_tokens: u32) -> Vec<Fate> {
    let pages = sets.first.len();
    let mut stands_for_others = vec![false; pages];
    let mut fates: Vec<Fate> = (0u32..)
        .zip(&sets.first)
        .map(|(page, &first)| {
            let (target, similarity) = chosen[first as usize];
            let kept = sets.best[target as usize];
            if kept == page {
                return Fate { kept, similarity: 1.0, kind: Kind::Unique };
            }
            stands_for_others[kept as usize] = true;
            if target == first {
                Fate { kept, similarity: 1.0, kind: Kind::Exact }
            } else {
                Fate { kept, similarity, kind: Kind::Near }
            }
        })
        .collect();
    for (page, fate) in fates.iter_mut().enumerate().filter(|(_, fate)| fate.kind == Kind::Unique) {
        fate.kind = match tokens[page] {
            0 => Kind::Empty,
            _ if stands_for_others[page] => Kind::Representative,
            few if few < min_tokens => Kind::Short,
            _ => Kind::Unique,
        };
    }
    fates
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn pair(left: PageId, right: PageId, similarity: f64) -> ScoredPair {
        ScoredPair { left, right, similarity, left_in_right: 0.0, right_in_left: 0.0, score: similarity, estimate: 0.0 }
    }

    #[test]
    fn every_kind_of_fate() {
        // 0 and 1 are the same page, 2 is near them, 3 empty, 4 short, 5 unique, 6 and 7 short copies.
        let sets = IdentitySets { first: vec![0, 0, 2, 3, 4, 5, 6, 6], best: vec![1, 0, 2, 3, 4, 5, 6, 0], count: 6 };
        let chosen = [(0, 1.0), (0, 1.0), (0, 0.8), (3, 1.0), (4, 1.0), (5, 1.0), (6, 1.0), (6, 1.0)];
        let fates = fates(&sets, &chosen, &[50, 50, 50, 0, 3, 50, 3, 3], 8);
        let kinds: Vec<Kind> = fates.iter().map(|fate| fate.kind).collect();
        let expected = [
            Kind::Exact,
            Kind::Representative,
            Kind::Near,
            Kind::Empty,
            Kind::Short,
            Kind::Unique,
            Kind::Representative,
            Kind::Exact,
        ];
        assert_eq!(kinds, expected);
        assert_eq!((fates[2].kept, fates[2].similarity), (1, 0.8), "the best-ranked copy is the one that is kept");
    }
}
