//! Connected components: everything reachable over verified pairs.
//!
//! In: verified pairs. Out: for each page a root that all pages of its component share. Used for
//! the `component` column in every run, and for grouping on request.

use std::collections::HashMap;

use crate::cluster::identity::IdentitySets;
use crate::error::Result;
use crate::page::{PageId, ScoredPair};
use crate::page_table::PageTable;
use crate::union_find::UnionFind;

/// The components of `pairs`, and of pages with the same `first`.
#[must_use]
pub fn of(first: &[PageId], pairs: &[ScoredPair]) -> UnionFind {
    let mut components = UnionFind::new(first.len());
    for (page, &leader) in (0..).zip(first) {
        components.join(page, leader);
    }
    for pair in pairs {
        components.join(pair.left, pair.right);
    }
    components
}

/// For every page that stands for a set: the best-ranked set of its component.
#[must_use]
pub fn assign(in_rank_order: &[PageId], components: &mut UnionFind, pages: usize) -> Vec<PageId> {
    let mut best: Vec<Option<PageId>> = vec![None; pages];
    let mut chosen: Vec<PageId> = (0..).take(pages).collect();
    for &page in in_rank_order {
        let root = components.root(page) as usize;
        chosen[page as usize] = *best[root].get_or_insert(page);
    }
    chosen
}

/// For every page the page with the smallest id that is reachable over verified pairs.
///
/// # Errors
/// When the file of strings cannot be read.
pub fn smallest_ids(pages: &PageTable, sets: &IdentitySets, pairs: &[ScoredPair]) -> Result<Vec<PageId>> {
    let mut components = of(&sets.first, pairs);
    let roots: Vec<PageId> = (0..).take(pages.len()).map(|page| components.root(page)).collect();
    let mut smallest: HashMap<PageId, (String, PageId)> = HashMap::new();
    let mut size = vec![0u32; pages.len()];
    roots.iter().for_each(|&root| size[root as usize] += 1);
    for (page, &root) in (0..).zip(&roots).filter(|(_, root)| size[**root as usize] > 1) {
        let id = pages.id(page)?;
        match smallest.get(&root) {
            Some((known, _)) if *known <= id => {}
            _ => {
                smallest.insert(root, (id, page));
            }
        }
    }
    Ok((0..).zip(&roots).map(|(page, root)| smallest.get(root).map_or(page, |(_, page)| *page)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::pair;
    use proptest::prelude::*;

    #[test]
    fn a_chain_is_one_group_led_by_its_best_ranked_page() {
        let mut components = of(&[0, 1, 2, 3, 3], &[pair(0, 1, 0.8), pair(1, 2, 0.8)]);
        assert_eq!(assign(&[2, 1, 0, 3], &mut components, 5)[..4], [2, 2, 2, 3]);
        assert_eq!(components.root(4), 3);
    }

    proptest! {
        #[test]
        fn components_equal_reachability(edges in prop::collection::vec((0u32..15, 0u32..15), 0..20)) {
            let pairs: Vec<_> = edges.iter().filter(|(a, b)| a != b).map(|&(a, b)| pair(a.min(b), a.max(b), 0.9)).collect();
            let first: Vec<PageId> = (0..15).collect();
            let mut components = of(&first, &pairs);
            for start in 0..15u32 {
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
