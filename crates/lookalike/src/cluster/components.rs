//! Connected components: everything reachable over verified pairs.
//!
//! In: verified pairs. Out: for each page a root that all pages of its component share. Used for
//! the `component` column in every run, and for grouping on request.

use crate::cluster::identity::IdentitySets;
use crate::error::Result;
use crate::page::{PageId, PageVec, ScoredPair};
use crate::page_table::PageTable;
use crate::spill::Scratch;
use crate::union_find::UnionFind;

/// Pages in components; the first page of each is its root.
pub struct Components(UnionFind);

impl Components {
    /// The components of `pairs`, and of pages with the same `first`.
    #[must_use]
    pub fn of(first: &PageVec<PageId>, pairs: &[ScoredPair]) -> Components {
        let mut components = UnionFind::new(first.len());
        for (page, leader) in first.by_page() {
            components.join(page.number(), leader.number());
        }
        for pair in pairs {
            components.join(pair.left.number(), pair.right.number());
        }
        Components(components)
    }

    /// The root of a page's component.
    pub fn root(&mut self, page: PageId) -> PageId {
        PageId::new(self.0.root(page.number()))
    }
}

/// For every page that stands for a set: the best-ranked set of its component.
#[must_use]
pub fn assign(in_rank_order: &[PageId], components: &mut Components, pages: usize) -> PageVec<PageId> {
    let mut best: PageVec<Option<PageId>> = PageVec::filled(pages, None);
    let mut chosen = PageVec::from_fn(pages, |page| page);
    for &page in in_rank_order {
        let root = components.root(page);
        chosen[page] = *best[root].get_or_insert(page);
    }
    chosen
}

/// For every page the page with the smallest id that is reachable over verified pairs.
///
/// # Errors
/// When the file of strings cannot be read.
pub fn smallest_ids(pages: &PageTable, sets: &IdentitySets, pairs: &[ScoredPair]) -> Result<PageVec<PageId>> {
    let mut components = Components::of(&sets.first, pairs);
    let roots = PageVec::from_fn(pages.len(), |page| components.root(page));
    // A root is the first page of its component, and so the smallest until another one comes.
    let mut smallest = PageVec::from_fn(pages.len(), |page| page);
    let (mut own, mut known) = (Scratch::default(), Scratch::default());
    for (page, &root) in roots.by_page().filter(|&(page, &root)| page != root) {
        if pages.strings(page, &mut own)?.id < pages.strings(smallest[root], &mut known)?.id {
            smallest[root] = page;
        }
    }
    Ok(roots.iter().map(|&root| smallest[root]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{page_vec, pair};
    use proptest::prelude::*;

    #[test]
    fn a_chain_is_one_group_led_by_its_best_ranked_page() {
        let mut components = Components::of(&page_vec([0, 1, 2, 3, 3]), &[pair(0, 1, 0.8), pair(1, 2, 0.8)]);
        let order = [2, 1, 0, 3].map(PageId::new);
        assert_eq!(assign(&order, &mut components, 5), page_vec([2, 2, 2, 3, 4]));
        assert_eq!(components.root(PageId::new(4)), PageId::new(3));
    }

    proptest! {
        #[test]
        fn components_equal_reachability(edges in prop::collection::vec((0u32..15, 0u32..15), 0..20)) {
            let pairs: Vec<_> = edges.iter().filter(|(a, b)| a != b).map(|&(a, b)| pair(a.min(b), a.max(b), 0.9)).collect();
            let first = PageVec::from_fn(15, |page| page);
            let mut components = Components::of(&first, &pairs);
            for start in first.pages() {
                let mut reached = vec![start];
                let mut at = 0;
                while at < reached.len() {
                    let here = reached[at];
                    for p in &pairs {
                        for next in [p.left, p.right] {
                            if (p.left == here || p.right == here) && !reached.contains(&next) {
                                reached.push(next);
                            }
                        }
                    }
                    at += 1;
                }
                prop_assert_eq!(components.root(start), reached.iter().copied().min().unwrap());
            }
        }
    }
}
