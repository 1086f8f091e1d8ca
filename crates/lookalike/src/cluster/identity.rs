//! Identity sets: pages with the same token sequence (Henzinger 2006, §2).
//!
//! In: a 128-bit hash of every page's token sequence. Out: for every page the first page of its
//! set. Empty pages are in no set with others.

use rayon::prelude::*;

use crate::page::{PageId, PageVec};

/// Who is the same page.
#[derive(Debug, Clone)]
pub struct IdentitySets {
    /// For every page the first page of its set.
    pub first: PageVec<PageId>,
    /// For the first page of every set its best-ranked member.
    pub best: PageVec<PageId>,
    /// Sets with more than one page count once, as do all others.
    pub count: usize,
}

impl IdentitySets {
    /// Groups pages by hash; pages without tokens stay alone. Pages of which `has_text` is false are
    /// not the first of a set.
    #[must_use]
    pub fn new(
        hash: &dyn Fn(PageId) -> u128,
        tokens: &PageVec<u32>,
        has_text: &dyn Fn(PageId) -> bool,
        rank: &(dyn Fn(PageId) -> u32 + Sync),
    ) -> IdentitySets {
        // Half of each hash finds those who may be equal in half the memory.
        #[allow(clippy::cast_possible_truncation)]
        let half = |page: PageId| hash(page) as u64;
        let mut order: Vec<(u64, PageId)> = Vec::with_capacity(tokens.len());
        order.extend(tokens.pages().filter(|&page| tokens[page] > 0).map(|page| (half(page), page)));
        order.par_sort_unstable();
        let mut first = PageVec::from_fn(tokens.len(), |page| page);
        for alike in order.chunk_by(|a, b| a.0 == b.0).filter(|alike| alike.len() > 1) {
            let mut alike: Vec<(u128, PageId)> = alike.iter().map(|&(_, page)| (hash(page), page)).collect();
            alike.sort_unstable();
            for set in alike.chunk_by(|a, b| a.0 == b.0) {
                let leader = set.iter().find(|row| has_text(row.1)).unwrap_or(&set[0]).1;
                set.iter().for_each(|&(_, page)| first[page] = leader);
            }
        }
        IdentitySets::from_first(first, rank)
    }

    /// From the first page of every page's set.
    #[must_use]
    pub fn from_first(first: PageVec<PageId>, rank: &dyn Fn(PageId) -> u32) -> IdentitySets {
        let mut best = PageVec::from_fn(first.len(), |page| page);
        let mut count = 0;
        for (page, &leader) in first.by_page() {
            count += usize::from(page == leader);
            if rank(page) < rank(best[leader]) {
                best[leader] = page;
            }
        }
        IdentitySets { first, best, count }
    }

    /// Whether `page` stands for its set.
    #[must_use]
    pub fn is_first(&self, page: PageId) -> bool {
        self.first[page] == page
    }
}

/// The sets in the order of their best-ranked pages.
#[must_use]
pub fn in_rank_order(sets: &IdentitySets, rank: &dyn Fn(PageId) -> u32) -> Vec<PageId> {
    let mut order: Vec<PageId> = sets.first.pages().filter(|&page| sets.is_first(page)).collect();
    order.sort_by_key(|&page| rank(page));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::page_vec;

    #[test]
    fn equal_hashes_are_one_set_and_empty_pages_are_alone() {
        // Hashes of which one half is the same are not equal.
        let other_half = 1 << 100;
        let hashes: PageVec<u128> = vec![7, 9, 7, 0, 0, 9, 7 | other_half].into();
        let hash = |page: PageId| hashes[page];
        let tokens = vec![3, 3, 3, 0, 0, 3, 3].into();
        let sets = IdentitySets::new(&hash, &tokens, &|_| true, &|page| 10 - page.number());
        assert_eq!(sets.first, page_vec([0, 1, 0, 3, 4, 1, 6]));
        assert_eq!(sets.count, 5);
        assert_eq!([0, 1, 3].map(|page| sets.best[PageId::new(page)]), [2, 5, 3].map(PageId::new));
        let tokens = vec![3, 3, 3].into();
        let sets = IdentitySets::new(&hash, &tokens, &|page| page != PageId::new(0), &PageId::number);
        assert_eq!(sets.first, page_vec([2, 1, 2]));
    }
}
