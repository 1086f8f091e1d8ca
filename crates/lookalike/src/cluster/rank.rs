//! The order of preference: (preferred source, keep policy, position).
//!
//! A page's position (source, record) is its number, so ties end there and no two pages are equal.

use rayon::prelude::*;

use crate::cluster::Keep;
use crate::page::{PageId, PageVec, RawPage};

/// The rank of every page; 0 is kept first.
#[derive(Debug, Clone)]
pub enum Ranks {
    /// By position alone.
    Position,
    /// By a policy, as places in the order.
    Places(PageVec<u32>),
}

impl Ranks {
    /// By ascending key, then position. No keys: by position.
    #[must_use]
    pub fn new(keys: &PageVec<f64>) -> Ranks {
        if keys.is_empty() {
            return Ranks::Position;
        }
        Ranks::sorted(keys.len(), |a, b| keys[a].total_cmp(&keys[b]))
    }

    /// The same, by classes first: pages of a lower class before those of a higher one.
    #[must_use]
    pub fn in_classes<C: Ord + Sync>(keys: &PageVec<f64>, classes: &PageVec<C>) -> Ranks {
        // Without keys the position decides.
        let key = |page: PageId| if keys.is_empty() { 0.0 } else { keys[page] };
        Ranks::sorted(classes.len(), |a, b| classes[a].cmp(&classes[b]).then(key(a).total_cmp(&key(b))))
    }

    /// By ascending key of any kind, then position.
    #[must_use]
    pub fn by_key<K: Ord + Sync>(keys: &PageVec<K>) -> Ranks {
        Ranks::sorted(keys.len(), |a, b| keys[a].cmp(&keys[b]))
    }

    fn sorted(pages: usize, compare: impl Fn(PageId, PageId) -> std::cmp::Ordering + Sync) -> Ranks {
        let mut order: Vec<PageId> = PageId::first(pages).collect();
        order.par_sort_unstable_by(|&a, &b| compare(a, b).then(a.cmp(&b)));
        let mut places = PageVec::filled(pages, 0);
        for (place, &page) in (0..).zip(&order) {
            places[page] = place;
        }
        Ranks::Places(places)
    }

    /// The place of `page`.
    #[must_use]
    pub fn of(&self, page: PageId) -> u32 {
        match self {
            Ranks::Position => page.number(),
            Ranks::Places(places) => places[page],
        }
    }
}

/// What the keep policy orders by, ascending; nothing if it is the position.
pub(crate) fn rank_key(keep: &Keep, page: &RawPage<'_>, tokens: u32) -> Option<f64> {
    match keep {
        Keep::First => None,
        Keep::Longest => Some(-f64::from(tokens)),
        Keep::ShortestUrl => Some(url_key(page.url.as_deref())),
        Keep::Newest | Keep::Max(_) => {
            Some(page.rank_value.filter(|value| value.is_finite()).map_or(f64::INFINITY, |value| -value))
        }
    }
}

/// What the shortest URL is found by.
pub(crate) fn url_key(url: Option<&str>) -> f64 {
    url.map_or(f64::INFINITY, |url| url.chars().count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_decide_and_position_breaks_ties() {
        let ranks = Ranks::new(&vec![5.0, f64::INFINITY, 1.0, 5.0].into());
        assert_eq!(PageId::first(4).map(|page| ranks.of(page)).collect::<Vec<_>>(), [1, 3, 0, 2]);
        assert_eq!(Ranks::new(&PageVec::new()).of(PageId::new(9)), 9);
        let ranks = Ranks::in_classes(&PageVec::new(), &vec![1, 0, 0].into());
        assert_eq!(PageId::first(3).map(|page| ranks.of(page)).collect::<Vec<_>>(), [2, 0, 1]);
    }
}
