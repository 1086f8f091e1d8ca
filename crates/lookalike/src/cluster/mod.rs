//! Verified pairs → groups: which page of each is kept, and why every other one is dropped.

pub mod components;
pub mod covering;
pub mod decided;
mod fates;
mod group_config;
pub mod identity;
pub mod rank;
pub mod star;

pub use fates::{Fate, Fates};
pub use group_config::{ClusterMode, GroupConfig, Keep};

use crate::error::Result;
use crate::page::{PageId, PageVec, ScoredPair};
use crate::plan::{Decision, Plan};
use crate::spill::LongList;

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

/// For each page the pages it can be dropped for, as flat arrays.
pub struct Neighbours {
    /// The place of each page that has any among the starts; [`NO_PLACE`] of others.
    places: PageVec<u32>,
    starts: Vec<usize>,
    entries: LongList<Link>,
}

/// The place of pages that have none.
const NO_PLACE: u32 = u32::MAX;

impl Neighbours {
    /// The graph of `pairs` over `pages` pages, whose links go into `entries`, which is empty.
    ///
    /// # Errors
    /// When the links cannot be written to a file.
    pub fn new(
        pages: usize,
        pairs: &[ScoredPair],
        direction: Direction,
        mut entries: LongList<Link>,
    ) -> Result<Neighbours> {
        let links = || {
            pairs.iter().flat_map(|pair| {
                [pair.left, pair.right].into_iter().filter_map(move |page| Some((page, direction.link(pair, page)?)))
            })
        };
        let mut places = PageVec::filled(pages, NO_PLACE);
        let mut ends: Vec<usize> = Vec::new();
        for (page, _) in links() {
            if places[page] == NO_PLACE {
                places[page] = u32::try_from(ends.len()).unwrap_or(NO_PLACE);
                ends.push(0);
            }
            ends[places[page] as usize] += 1;
        }
        let mut all = 0;
        for end in &mut ends {
            all += std::mem::replace(end, all);
        }
        entries.reserve(all)?;
        (0..all).try_for_each(|_| entries.push(Link::to_itself(PageId::new(0))))?;
        for (page, link) in links() {
            // What is the start of the next page in the end is where the next entry goes until then.
            let next = &mut ends[places[page] as usize];
            entries[*next] = link;
            *next += 1;
        }
        ends.insert(0, 0);
        Ok(Neighbours { places, starts: ends, entries })
    }

    /// The pages that `page` can be dropped for.
    #[must_use]
    pub fn of(&self, page: PageId) -> &[Link] {
        match self.places[page] {
            NO_PLACE => &[],
            at => &self.entries[self.starts[at as usize]..self.starts[at as usize + 1]],
        }
    }
}

/// The page that each page was assigned to. Most are kept, and take four bytes.
#[derive(Debug)]
pub struct Chosen {
    targets: PageVec<PageId>,
    /// Of pages that were assigned to another, ascending.
    links: Vec<(PageId, Link)>,
}

impl Chosen {
    /// From the links of those who were assigned to another page.
    #[must_use]
    pub fn new(pages: usize, mut links: Vec<(PageId, Link)>) -> Chosen {
        let mut targets = PageVec::from_fn(pages, |page| page);
        links.iter().for_each(|(page, link)| targets[*page] = link.page);
        links.sort_unstable_by_key(|row| row.0);
        Chosen { targets, links }
    }

    /// The page that a page was assigned to.
    #[must_use]
    pub fn target(&self, page: PageId) -> PageId {
        self.targets[page]
    }

    /// Whether a page is kept.
    #[must_use]
    pub fn is_kept(&self, page: PageId) -> bool {
        self.targets[page] == page
    }

    /// The link of a page to the one that it was assigned to.
    #[must_use]
    pub fn link(&self, page: PageId) -> Link {
        let found = self.links.binary_search_by_key(&page, |row| row.0);
        found.map_or_else(|_| Link::to_itself(page), |at| self.links[at].1)
    }

    /// Those who were assigned to another page, ascending, with their links.
    #[must_use]
    pub fn links(&self) -> &[(PageId, Link)] {
        &self.links
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
}
