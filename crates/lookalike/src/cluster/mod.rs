//! Verified pairs → groups: which page of each is kept, and why every other one is dropped.

pub mod components;
pub mod covering;
pub mod decided;
mod group_config;
pub mod identity;
pub mod rank;
pub mod star;

pub use group_config::{ClusterMode, GroupConfig, Keep};

use crate::page::{Kind, PageId, PageVec, ScoredPair};
use crate::plan::{Decision, Plan};
use identity::IdentitySets;

/// A page that another can be dropped for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The page.
    pub page: PageId,
    /// Similarity to it.
    pub similarity: f64,
    /// Whether the other one is a part of it, and not its like.
    pub is_containment: bool,
}

impl Link {
    /// A page's link to itself.
    #[must_use]
    pub fn to_itself(page: PageId) -> Link {
        Link { page, similarity: 1.0, is_containment: false }
    }
}

/// Which way pairs can be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Direction {
    /// Either page can stand for the other.
    Either,
    /// A page can stand for another if it has at least this share of it.
    Covering(f64),
    /// A page can stand for another if at least this share of it is in the other.
    Contained(f64),
}

impl Direction {
    /// The direction of a plan; pairs count from `threshold` on, where it is not the plan's own.
    #[must_use]
    pub fn of(plan: &Plan, threshold: Option<f64>) -> Direction {
        match plan.decision {
            Decision::Similarity { threshold: own, .. } if plan.is_directed() => {
                let threshold = threshold.unwrap_or(own);
                if plan.drops_containers { Direction::Contained(threshold) } else { Direction::Covering(threshold) }
            }
            _ => Direction::Either,
        }
    }

    /// What the pair means for dropping `page` in favour of the other; nothing if it must not be.
    #[must_use]
    pub fn link(self, pair: &ScoredPair, page: PageId) -> Option<Link> {
        let link = self.any_link(pair, page);
        match self {
            Direction::Either => Some(link),
            Direction::Covering(threshold) | Direction::Contained(threshold) => {
                (link.similarity >= threshold).then_some(link)
            }
        }
    }

    /// The same for pages that are grouped whether or not one stands for the other.
    #[must_use]
    pub fn any_link(self, pair: &ScoredPair, page: PageId) -> Link {
        let (other, forward, back) = if page == pair.left {
            (pair.right, pair.left_in_right, pair.right_in_left)
        } else {
            (pair.left, pair.right_in_left, pair.left_in_right)
        };
        match self {
            Direction::Either => Link { page: other, similarity: pair.similarity, is_containment: false },
            Direction::Covering(threshold) => {
                let is_part = forward >= threshold && (back < threshold || (forward >= 1.0 && back < 1.0));
                Link { page: other, similarity: forward, is_containment: is_part }
            }
            Direction::Contained(_) => Link { page: other, similarity: back, is_containment: true },
        }
    }
}

/// For each node the pages it can be dropped for, as flat arrays.
pub struct Neighbours {
    starts: Vec<usize>,
    entries: Vec<Link>,
}

impl Neighbours {
    /// The graph of `pairs` over `pages` pages.
    #[must_use]
    pub fn new(pages: usize, pairs: &[ScoredPair], direction: Direction) -> Neighbours {
        let links = || {
            pairs.iter().flat_map(|pair| {
                [pair.left, pair.right].into_iter().filter_map(move |page| Some((page, direction.link(pair, page)?)))
            })
        };
        let mut starts = vec![0usize; pages + 1];
        links().for_each(|(page, _)| starts[page.index() + 1] += 1);
        for page in 0..pages {
            starts[page + 1] += starts[page];
        }
        let mut next = starts.clone();
        let mut entries = vec![Link::to_itself(PageId::new(0)); starts[pages]];
        for (page, link) in links() {
            entries[next[page.index()]] = link;
            next[page.index()] += 1;
        }
        Neighbours { starts, entries }
    }

    /// The pages that `page` can be dropped for.
    #[must_use]
    pub fn of(&self, page: PageId) -> &[Link] {
        &self.entries[self.starts[page.index()]..self.starts[page.index() + 1]]
    }
}

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fate {
    /// The page that is kept in its place; itself, if it is kept.
    pub kept: PageId,
    /// Similarity to that page.
    pub similarity: f64,
    /// Similarity of the whole pages, whatever of them was compared; nothing while it is not known.
    pub page_similarity: Option<f64>,
    /// What became of it.
    pub kind: Kind,
}

impl Fate {
    /// That of a page with the same words as the kept one.
    pub(crate) fn same_words(kept: PageId, is_same_text: bool) -> Fate {
        let (page_similarity, kind) = if is_same_text { (Some(1.0), Kind::Exact) } else { (None, Kind::SameCore) };
        Fate { kept, similarity: 1.0, page_similarity, kind }
    }

    /// Whether the page of this number is kept.
    #[must_use]
    pub fn keeps(&self, page: PageId) -> bool {
        self.kept == page
    }
}

/// From the groups of identity sets to the fate of every page.
///
/// `chosen[first]` is the set that a set was assigned to; `tokens` shows which pages are empty or short, `is_same_text`
/// whether all of two pages is the same.
#[must_use]
pub fn fates(
    sets: &IdentitySets,
    chosen: &PageVec<Link>,
    tokens: &PageVec<u32>,
    min_tokens: u32,
    is_same_text: &dyn Fn(PageId, PageId) -> bool,
) -> PageVec<Fate> {
    let mut fates: PageVec<Fate> = sets
        .first
        .by_page()
        .map(|(page, &first)| {
            let Link { page: target, similarity, is_containment } = chosen[first];
            let kept = sets.best[target];
            if kept == page {
                return Fate { kept, similarity: 1.0, page_similarity: Some(1.0), kind: Kind::Unique };
            }
            if target == first {
                return Fate::same_words(kept, is_same_text(page, kept));
            }
            let kind = if is_containment { Kind::Contained } else { Kind::Near };
            Fate { kept, similarity, page_similarity: None, kind }
        })
        .collect();
    name_kept(&mut fates, tokens, min_tokens);
    fates
}

/// Says of each page that is kept what it is.
pub(crate) fn name_kept(fates: &mut PageVec<Fate>, tokens: &PageVec<u32>, min_tokens: u32) {
    let mut stands_for_others = PageVec::filled(fates.len(), false);
    for (_, fate) in fates.by_page().filter(|(page, fate)| !fate.keeps(*page)) {
        stands_for_others[fate.kept] = true;
    }
    for (page, fate) in PageId::counting().zip(fates.iter_mut()).filter(|(page, fate)| fate.keeps(*page)) {
        fate.kind = match tokens[page] {
            0 => Kind::Empty,
            _ if stands_for_others[page] => Kind::Representative,
            few if few < min_tokens => Kind::Short,
            _ => Kind::Unique,
        };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn pair(left: u32, right: u32, similarity: f64) -> ScoredPair {
        let (left, right) = (PageId::new(left), PageId::new(right));
        ScoredPair {
            left,
            right,
            similarity,
            left_in_right: 0.0,
            right_in_left: 0.0,
            score: similarity,
            estimate: 0.0,
            page_similarity: None,
            same_site: None,
            is_short: false,
        }
    }

    /// A page for every page.
    pub(crate) fn page_vec<const N: usize>(numbers: [u32; N]) -> PageVec<PageId> {
        numbers.into_iter().map(PageId::new).collect()
    }

    #[test]
    fn a_part_can_be_dropped_for_the_whole_and_not_the_other_way() {
        let part = ScoredPair { left_in_right: 0.9, right_in_left: 0.2, ..pair(3, 8, 0.9) };
        let direction = Direction::Covering(0.7);
        assert_eq!(
            direction.link(&part, PageId::new(3)),
            Some(Link { page: PageId::new(8), similarity: 0.9, is_containment: true })
        );
        assert_eq!(direction.link(&part, PageId::new(8)), None);
        let alike = ScoredPair { left_in_right: 0.9, right_in_left: 0.8, ..part };
        assert_eq!(
            direction.link(&alike, PageId::new(8)),
            Some(Link { page: PageId::new(3), similarity: 0.8, is_containment: false })
        );
        let whole = ScoredPair { left_in_right: 1.0, right_in_left: 0.9, ..part };
        assert!(direction.any_link(&whole, PageId::new(3)).is_containment, "all of it is in the other, which has more");
    }

    #[test]
    fn every_kind_of_fate() {
        // 0 and 1 are the same page, 2 is near them, 3 empty, 4 short, 5 unique, 6 and 7 short copies, 8 is 1 in another frame.
        let first = page_vec([0, 0, 2, 3, 4, 5, 6, 6, 0]);
        let sets = IdentitySets { first, best: page_vec([1, 0, 2, 3, 4, 5, 6, 0, 0]), count: 6 };
        let mut chosen: PageVec<Link> =
            page_vec([0, 0, 0, 3, 4, 5, 6, 6, 0]).iter().copied().map(Link::to_itself).collect();
        let near = PageId::new(2);
        chosen[near].similarity = 0.8;
        let is_same_text = |left: PageId, right: PageId| left.max(right) != PageId::new(8);
        let fates = fates(&sets, &chosen, &vec![50, 50, 50, 0, 3, 50, 3, 3, 50].into(), 8, &is_same_text);
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
            Kind::SameCore,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(
            (fates[near].kept, fates[near].similarity),
            (PageId::new(1), 0.8),
            "the best-ranked copy is the one that is kept"
        );
    }
}
