//! Stars: nothing is dropped on hearsay.
//!
//! In: identity sets in rank order, and verified pairs between them. Out: for each set the kept set
//! it is assigned to. A set is kept unless a kept one is a verified near-duplicate of it; then each
//! dropped one is assigned to its *most similar* kept neighbour, the better-ranked one in a tie.

use crate::cluster::Neighbours;
use crate::page::PageId;

/// For every page that stands for a set: the set it is assigned to, and the similarity.
#[must_use]
pub fn assign(pages: usize, in_rank_order: &[PageId], neighbours: &Neighbours) -> Vec<(PageId, f64)> {
    let mut chosen: Vec<(PageId, f64)> = (0..).take(pages).map(|page| (page, 1.0)).collect();
    let mut place = vec![0usize; pages];
    let mut kept = vec![false; pages];
    for (at, &page) in in_rank_order.iter().enumerate() {
        place[page as usize] = at;
        kept[page as usize] = !neighbours.of(page).iter().any(|&(other, _)| kept[other as usize]);
    }
    for &page in in_rank_order.iter().filter(|&&page| !kept[page as usize]) {
        let candidates = neighbours.of(page).iter().filter(|(other, _)| kept[*other as usize]);
        let best = candidates.min_by(|a, b| b.1.total_cmp(&a.1).then(place[a.0 as usize].cmp(&place[b.0 as usize])));
        if let Some(&best) = best {
            chosen[page as usize] = best;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::pair;
    use proptest::prelude::*;

    #[test]
    fn a_chain_is_not_one_group() {
        // 0 – 1 – 2: 1 is like 0, 2 is like 1 but not like 0.
        let neighbours = Neighbours::new(3, &[pair(0, 1, 0.8), pair(1, 2, 0.8)]);
        assert_eq!(assign(3, &[0, 1, 2], &neighbours), [(0, 1.0), (0, 0.8), (2, 1.0)]);
        // With the middle ranked first, it stands for both.
        assert_eq!(assign(3, &[1, 0, 2], &neighbours), [(1, 0.8), (1, 1.0), (1, 0.8)]);
    }

    #[test]
    fn the_most_similar_kept_page_is_named() {
        let neighbours = Neighbours::new(3, &[pair(0, 2, 0.7), pair(1, 2, 0.9)]);
        assert_eq!(assign(3, &[0, 1, 2], &neighbours)[2], (1, 0.9));
    }

    proptest! {
        #[test]
        fn the_promise(edges in prop::collection::btree_map((0u32..20, 0u32..20), 0.5f64..1.0, 0..60), order in Just((0u32..20).collect::<Vec<_>>()).prop_shuffle()) {
            let pairs: Vec<_> = edges.iter().filter(|((a, b), _)| a < b).map(|(&(a, b), &s)| pair(a, b, s)).collect();
            let neighbours = Neighbours::new(20, &pairs);
            let chosen = assign(20, &order, &neighbours);
            let is_kept = |page: PageId| chosen[page as usize].0 == page;
            for page in 0..20u32 {
                let (target, similarity) = chosen[page as usize];
                prop_assert!(is_kept(target), "only kept pages are named");
                if target == page {
                    // Kept: no kept page is a verified neighbour.
                    prop_assert!(!neighbours.of(page).iter().any(|&(other, _)| is_kept(other)));
                } else {
                    let best = neighbours.of(page).iter().filter(|n| is_kept(n.0)).map(|n| n.1).fold(0.0, f64::max);
                    prop_assert_eq!(similarity, best);
                }
            }
        }
    }
}
