//! Identity sets: pages with the same token sequence (Henzinger 2006, §2).
//!
//! In: a 128-bit hash of every page's token sequence. Out: for every page the first page of its
//! set. Empty pages are in no set with others.

use rayon::prelude::*;

use crate::page::PageId;

/// Who is the same page.
#[derive(Debug, Clone)]
pub struct IdentitySets {
    /// For every page the first page of its set.
    pub first: Vec<PageId>,
    /// For the first page of every set its best-ranked member.
    pub best: Vec<PageId>,
    /// Sets with more than one page count once, as do all others.
    pub count: usize,
}

impl IdentitySets {
    /// Groups pages by hash; pages without tokens stay alone. Pages of which `has_text` is false are
    /// not the first of a set.
    #[must_use]
    pub fn new(
        hashes: &[u128],
        tokens: &[u32],
        has_text: &dyn Fn(PageId) -> bool,
        rank: &(dyn Fn(PageId) -> u32 + Sync),
    ) -> IdentitySets {
        let mut order: Vec<(u128, PageId)> =
            hashes.iter().copied().zip(0..).filter(|&(_, page)| tokens[page as usize] > 0).collect();
        order.par_sort_unstable();
        let mut first: Vec<PageId> = (0..).take(hashes.len()).collect();
        for set in order.chunk_by(|a, b| a.0 == b.0) {
            let leader = set.iter().find(|row| has_text(row.1)).unwrap_or(&set[0]).1;
            for &(_, page) in set {
                first[page as usize] = leader;
            }
        }
        IdentitySets::from_first(first, rank)
    }

    /// From the first page of every page's set.
    #[must_use]
    pub fn from_first(first: Vec<PageId>, rank: &dyn Fn(PageId) -> u32) -> IdentitySets {
        let mut best: Vec<PageId> = (0..).take(first.len()).collect();
        let mut count = 0;
        for (page, &leader) in (0u32..).zip(&first) {
            count += usize::from(page == leader);
            if rank(page) < rank(best[leader as usize]) {
                best[leader as usize] = page;
            }
        }
        IdentitySets { first, best, count }
    }

    /// Whether `page` stands for its set.
    #[must_use]
    pub fn is_first(&self, page: PageId) -> bool {
        self.first[page as usize] == page
    }
}

/// The sets in the order of their best-ranked pages.
#[must_use]
pub fn in_rank_order(sets: &IdentitySets, rank: &dyn Fn(PageId) -> u32) -> Vec<PageId> {
    let mut order: Vec<PageId> = (0..).take(sets.first.len()).filter(|&page| sets.is_first(page)).collect();
    order.sort_by_key(|&page| rank(page));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_are_one_set_and_empty_pages_are_alone() {
        let sets = IdentitySets::new(&[7, 9, 7, 0, 0, 9], &[3, 3, 3, 0, 0, 3], &|_| true, &|page| 10 - page);
        assert_eq!(sets.first, [0, 1, 0, 3, 4, 1]);
        assert_eq!(sets.count, 4);
        assert_eq!((sets.best[0], sets.best[1], sets.best[3]), (2, 5, 3));
        let sets = IdentitySets::new(&[7, 9, 7], &[3, 3, 3], &|page| page != 0, &|page| page);
        assert_eq!(sets.first, [2, 1, 2]);
    }
}
