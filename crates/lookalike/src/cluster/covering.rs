//! The order in which pages are kept where one page can cover another.
//!
//! In: pages in rank order, and pairs of which one page may cover the other without being covered by
//! it. Out: the same pages; each comes after those that cover it in that one-sided way, in rank order
//! otherwise. So that of a long page and a part of it the long one is kept, whichever came first, and
//! among equals the keep policy decides. One-sided covering goes from fewer features to more, so there
//! is no circle.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::cluster::Direction;
use crate::page::{PageId, PageVec, ScoredPair};

/// Moves pages behind those that cover them one-sidedly.
#[must_use]
pub fn coverers_first(in_rank_order: &[PageId], pairs: &[ScoredPair], direction: Direction) -> Vec<PageId> {
    let pages = in_rank_order.iter().max().map_or(0, |&last| last.index() + 1);
    let mut place = PageVec::filled(pages, 0u32);
    (0..).zip(in_rank_order).for_each(|(at, &page)| place[page] = at);
    // Few pages are covered.
    let mut waiting_for: HashMap<PageId, u32> = HashMap::new();
    let mut covers: HashMap<PageId, Vec<PageId>> = HashMap::new();
    for pair in pairs {
        for (page, other) in [(pair.left, pair.right), (pair.right, pair.left)] {
            if direction.link(pair, page).is_some() && direction.link(pair, other).is_none() {
                *waiting_for.entry(page).or_default() += 1;
                covers.entry(other).or_default().push(page);
            }
        }
    }
    let ready = in_rank_order.iter().filter(|page| !waiting_for.contains_key(page));
    let mut heap: BinaryHeap<Reverse<u32>> = ready.map(|&page| Reverse(place[page])).collect();
    let mut order = Vec::with_capacity(in_rank_order.len());
    while let Some(Reverse(at)) = heap.pop() {
        let page = in_rank_order[at as usize];
        order.push(page);
        for &covered in covers.get(&page).into_iter().flatten() {
            let waits = waiting_for.entry(covered).or_default();
            *waits = waits.saturating_sub(1);
            if *waits == 0 {
                heap.push(Reverse(place[covered]));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::pair;
    use crate::cluster::{Neighbours, star};
    use crate::config::Guess;
    use crate::spill::LongList;
    use proptest::prelude::*;

    #[test]
    fn the_whole_is_kept_although_its_part_came_first() {
        // 0 is a part of 2; 1 and 2 are alike.
        let part = ScoredPair { left_in_right: 1.0, right_in_left: 0.3, ..pair(0, 2, 1.0) };
        let alike = ScoredPair { left_in_right: 0.9, right_in_left: 0.9, ..pair(1, 2, 0.9) };
        let direction = Direction::Covering(0.7);
        let order = coverers_first(&[0, 1, 2].map(PageId::new), &[part, alike], direction);
        assert_eq!(order, [1, 2, 0].map(PageId::new));
        let neighbours = Neighbours::new(3, &[part, alike], direction, LongList::default()).unwrap();
        let chosen = star::assign(3, &order, &neighbours, Guess::Best);
        // 1 is kept and 2 is like it; 0 was compared with 2 only, which is gone, so it stays.
        assert_eq!(PageId::first(3).map(|page| chosen.target(page).number()).collect::<Vec<_>>(), [0, 1, 1]);
    }

    proptest! {
        #[test]
        fn no_kept_page_covers_another(
            sets in prop::collection::vec(prop::collection::btree_set(0u8..12, 1..10), 2..25),
            order in Just((0u32..25).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let direction = Direction::Covering(0.6);
            let order: Vec<PageId> = order.into_iter().map(PageId::new).filter(|page| page.index() < sets.len()).collect();
            let mut pairs = Vec::new();
            for right in 0..sets.len() {
                for left in 0..right {
                    let both = sets[left].intersection(&sets[right]).count() as f64;
                    let (forward, back) = (both / sets[left].len() as f64, both / sets[right].len() as f64);
                    if forward.max(back) >= 0.6 {
                        let (l, r) = (u32::try_from(left).unwrap(), u32::try_from(right).unwrap());
                        pairs.push(ScoredPair { left_in_right: forward, right_in_left: back, ..pair(l, r, forward.max(back)) });
                    }
                }
            }
            let ordered = coverers_first(&order, &pairs, direction);
            prop_assert_eq!(ordered.len(), order.len(), "there is no circle");
            let neighbours = Neighbours::new(sets.len(), &pairs, direction, LongList::default()).unwrap();
            let chosen = star::assign(sets.len(), &ordered, &neighbours, Guess::Best);
            let is_kept = |page: PageId| chosen.is_kept(page);
            for (page, link) in PageId::first(sets.len()).map(|page| (page, chosen.link(page))) {
                prop_assert!(is_kept(link.page));
                if is_kept(page) {
                    prop_assert!(!neighbours.of(page).iter().any(|link| is_kept(link.page)), "kept, though another kept page has it");
                } else {
                    prop_assert!(link.similarity >= 0.6, "what is dropped is in the page it names");
                }
            }
        }
    }
}
