//! Stars: nothing is dropped on hearsay.
//!
//! In: identity sets in rank order, and verified pairs between them. Out: for each set the kept set
//! it is assigned to. A set is kept unless a kept one is a verified near-duplicate of it; then each
//! dropped one is assigned to its *most similar* kept neighbour, the better-ranked one in a tie.

use crate::cluster::covering::coverers_first;
use crate::cluster::{Chosen, Direction, Link, Neighbours};
use crate::error::Result;
use crate::page::{PageId, PageVec, ScoredPair};
use crate::plan::Guess;
use crate::spill::LongList;

/// The stars of `pairs`, and the graph they were found in, whose links go into `list`, which is empty.
///
/// # Errors
/// When the links cannot be written to a file.
pub fn stars(
    pages: usize,
    in_rank_order: &[PageId],
    pairs: &[ScoredPair],
    direction: Direction,
    guess: Guess,
    list: LongList<Link>,
) -> Result<(Chosen, Neighbours)> {
    let neighbours = Neighbours::new(pages, pairs, direction, list)?;
    let chosen = match direction {
        Direction::Either | Direction::Contained(_) => assign(pages, in_rank_order, &neighbours, guess),
        Direction::Covering(_) => assign(pages, &coverers_first(in_rank_order, pairs, direction), &neighbours, guess),
    };
    Ok((chosen, neighbours))
}

/// For every page that stands for a set: the set it is assigned to. The first guess is the
/// best-ranked kept neighbour, whatever the similarity.
#[must_use]
pub fn assign(pages: usize, in_rank_order: &[PageId], neighbours: &Neighbours, guess: Guess) -> Chosen {
    let mut chosen = Vec::new();
    let mut place = PageVec::filled(pages, 0u32);
    let mut kept = PageVec::filled(pages, false);
    for (at, &page) in (0..).zip(in_rank_order) {
        place[page] = at;
        kept[page] = !neighbours.of(page).iter().any(|link| kept[link.page]);
    }
    for &page in in_rank_order.iter().filter(|&&page| !kept[page]) {
        let candidates = neighbours.of(page).iter().filter(|link| kept[link.page]);
        let by_place = |a: &Link, b: &Link| place[a.page].cmp(&place[b.page]);
        let best = match guess {
            Guess::First => candidates.min_by(|a, b| by_place(a, b)),
            Guess::Best => candidates.min_by(|a, b| b.similarity.total_cmp(&a.similarity).then(by_place(a, b))),
        };
        if let Some(&best) = best {
            chosen.push((page, best));
        }
    }
    Chosen::new(pages, chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Direction;
    use crate::cluster::tests::pair;
    use crate::page::ScoredPair;
    use proptest::prelude::*;

    fn best<const N: usize>(order: [u32; N], pairs: &[ScoredPair]) -> Vec<(u32, f64)> {
        let neighbours = Neighbours::new(N, pairs, Direction::Either, LongList::default()).unwrap();
        let chosen = assign(N, &order.map(PageId::new), &neighbours, Guess::Best);
        PageId::first(N).map(|page| chosen.link(page)).map(|link| (link.page.number(), link.similarity)).collect()
    }

    #[test]
    fn a_chain_is_not_one_group() {
        // 0 – 1 – 2: 1 is like 0, 2 is like 1 but not like 0.
        let pairs = [pair(0, 1, 0.8), pair(1, 2, 0.8)];
        assert_eq!(best([0, 1, 2], &pairs), [(0, 1.0), (0, 0.8), (2, 1.0)]);
        // With the middle ranked first, it stands for both.
        assert_eq!(best([1, 0, 2], &pairs), [(1, 0.8), (1, 1.0), (1, 0.8)]);
    }

    #[test]
    fn the_most_similar_kept_page_is_named_or_the_first() {
        let pairs = [pair(0, 2, 0.7), pair(1, 2, 0.9)];
        assert_eq!(best([0, 1, 2], &pairs)[2], (1, 0.9));
        let neighbours = Neighbours::new(3, &pairs, Direction::Either, LongList::default()).unwrap();
        assert_eq!(
            assign(3, &[0, 1, 2].map(PageId::new), &neighbours, Guess::First).target(PageId::new(2)),
            PageId::new(0)
        );
    }

    proptest! {
        #[test]
        fn the_promise(edges in prop::collection::btree_map((0u32..20, 0u32..20), 0.5f64..1.0, 0..60), order in Just((0u32..20).collect::<Vec<_>>()).prop_shuffle()) {
            let pairs: Vec<_> = edges.iter().filter(|((a, b), _)| a < b).map(|(&(a, b), &s)| pair(a, b, s)).collect();
            let neighbours = Neighbours::new(20, &pairs, Direction::Either, LongList::default()).unwrap();
            let order: Vec<PageId> = order.into_iter().map(PageId::new).collect();
            let chosen = assign(20, &order, &neighbours, Guess::Best);
            let is_kept = |page: PageId| chosen.is_kept(page);
            for (page, link) in PageId::first(20).map(|page| (page, chosen.link(page))) {
                prop_assert!(is_kept(link.page), "only kept pages are named");
                if link.page == page {
                    // Kept: no kept page is a verified neighbour.
                    prop_assert!(!neighbours.of(page).iter().any(|other| is_kept(other.page)));
                } else {
                    let kept = neighbours.of(page).iter().filter(|other| is_kept(other.page));
                    prop_assert_eq!(link.similarity, kept.map(|other| other.similarity).fold(0.0, f64::max));
                }
            }
        }
    }
}
