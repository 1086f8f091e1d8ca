//! Matching page by page: the incremental and the seeded way of spot signatures.
//!
//! In: pages in an order that matters, and a way to compare two of them. Out: for each page that is a
//! duplicate the page it matches. A page is compared with the pages in the index; it enters the index
//! only if it is not a duplicate (on request in any case). The first pages can be given as examples:
//! they are indexed and never matched. Web-archives paper, §3.3. What two pages share is counted while the index is
//! read, so that pages which cannot reach the threshold are not compared: of pages that have nothing to do with each other
//! hardly any are, however many there are. A bitmap of each page's features bounds what it can share beyond its prefix.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::candidate::inverted::{Collisions, rarity_of};
use crate::error::Result;
use crate::feature::rarity::Prefix;
use crate::page::{PageId, ScoredPair};
use crate::plan::{Guess, Verdict};
use crate::sketch::page_sets::PageSets;
use crate::text::term::TokenHasher;

/// How pages are matched.
#[derive(Debug, Clone, Copy)]
pub struct MatchingPlan {
    /// The least similarity.
    pub threshold: f64,
    /// Which of several matches counts.
    pub guess: Guess,
    /// Duplicates are indexed, too.
    pub index_duplicates: bool,
    /// Pages of too different sizes are filtered out.
    pub size_filter: bool,
    /// Pages are looked up by their rarest features only.
    pub prefix_filter: bool,
    /// How many of the first pages are examples.
    pub seeds: usize,
}

/// Pages in the seeded order of their ids: the same whatever the order of the input.
#[must_use]
pub fn seeded_order_key(id: &str, seed: u64) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), seed)
}

/// Matches the pages of `order`, one after the other. `compare` knows which pairs are left out.
///
/// # Errors
/// When sets that were spilled to disk cannot be read back.
pub fn match_in_order(
    sets: &PageSets,
    order: &[PageId],
    plan: MatchingPlan,
    mut compare: impl FnMut(PageId, PageId) -> Result<Option<(ScoredPair, Verdict)>>,
) -> Result<(Vec<ScoredPair>, Collisions)> {
    let rarity = rarity_of(sets, order);
    let mut index: HashMap<u64, Vec<u32>, BuildHasherDefault<TokenHasher>> = HashMap::default();
    let mut prefix = Prefix::default();
    let mut found = Vec::new();
    let mut met: Vec<u32> = Vec::new();
    let mut seen: Vec<Seen> = Vec::new();
    let mut collisions = Collisions::default();
    let prefix_threshold = if plan.prefix_filter { plan.threshold } else { 0.0 };
    for (place, &page) in (0u32..).zip(order) {
        let (features, weights) = sets.weighted_features(page);
        prefix.fill(features, weights, &rarity, prefix_threshold);
        let own = &prefix.ranked()[..prefix.length];
        let last = own.last().map_or((0, 0), |row| row.0);
        let bitmap = weights.is_empty().then(|| bitmap_of(features));
        let this = Seen { total: prefix.total, rest: prefix.rest, last, shared: 0, bitmap };
        seen.push(this);
        let mut matched: Option<ScoredPair> = None;
        if place as usize >= plan.seeds {
            met.clear();
            for &((_, feature), weight) in own {
                for &other in index.get(&feature).into_iter().flatten() {
                    let shared = &mut seen[other as usize].shared;
                    if *shared == 0 {
                        met.push(other);
                    }
                    *shared += u64::from(weight);
                }
            }
            met.sort_unstable();
            let before = met.len() as u64;
            collisions.all += before;
            if plan.size_filter {
                met.retain(|&other| {
                    let other = &mut seen[other as usize];
                    let can_match = this.is_of_like_size(other, plan.threshold);
                    other.shared = if can_match { other.shared } else { 0 };
                    can_match
                });
            }
            collisions.filtered += before - met.len() as u64;
            met.retain(|&other| {
                let other = &mut seen[other as usize];
                let can_match = this.can_reach(other, plan.threshold);
                other.shared = 0;
                can_match
            });
            for &other in &met {
                let Some((pair, Verdict::Accepted)) = compare(page, order[other as usize])? else { continue };
                if matched.is_none_or(|best| pair.similarity > best.similarity) {
                    matched = Some(pair);
                }
                if plan.guess == Guess::First {
                    break;
                }
            }
        }
        if matched.is_none() || plan.index_duplicates {
            own.iter().for_each(|row| index.entry(row.0.1).or_default().push(place));
        }
        found.extend(matched);
    }
    found.sort_unstable_by_key(|pair| (pair.left, pair.right));
    Ok((found, collisions))
}

/// A page that was met.
#[derive(Clone, Copy)]
struct Seen {
    /// The weight of its features.
    total: u64,
    /// The weight of those behind its prefix.
    rest: u64,
    /// The last key of its prefix.
    last: (u32, u64),
    /// The weight that it shares with the page that is matched, as far as prefixes tell.
    shared: u64,
    /// The places that its features have among [`BITMAP_BITS`], where every feature weighs 1.
    bitmap: Option<[u64; BITMAP_WORDS]>,
}

/// Words of a bitmap.
const BITMAP_WORDS: usize = 16;
/// Bits of it.
const BITMAP_BITS: usize = BITMAP_WORDS * 64;

fn bitmap_of(features: &[u64]) -> [u64; BITMAP_WORDS] {
    let mut bitmap = [0; BITMAP_WORDS];
    for feature in features {
        let place = (feature.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % BITMAP_BITS;
        bitmap[place / 64] |= 1 << (place % 64);
    }
    bitmap
}

impl Seen {
    fn is_of_like_size(&self, other: &Seen, threshold: f64) -> bool {
        // Rounding must not leave out a page that just reaches the threshold.
        let least = threshold * self.total.max(other.total) as f64 * (1.0 - 1e-9);
        self.total.min(other.total) as f64 >= least
    }

    /// Whether what `other` shares with this page can be enough.
    fn can_reach(&self, other: &Seen, threshold: f64) -> bool {
        // Behind the prefix that ends first, nothing was counted; no more than that can come.
        let left = if self.last <= other.last { self.rest } else { other.rest };
        let needed = threshold / (1.0 + threshold) * (self.total + other.total) as f64;
        let is_enough = |shared: u64| shared as f64 >= needed * (1.0 - 1e-9);
        is_enough(other.shared + left) && is_enough(self.most_shared(other))
    }

    /// The most that two pages can share, by their bitmaps: a bit that one of them has is a feature that the other has not.
    fn most_shared(&self, other: &Seen) -> u64 {
        let Some((own, theirs)) = self.bitmap.as_ref().zip(other.bitmap.as_ref()) else { return u64::MAX };
        let differing: u64 = own.iter().zip(theirs).map(|(own, theirs)| u64::from((own ^ theirs).count_ones())).sum();
        (self.total + other.total).saturating_sub(differing) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::pair;
    use crate::random::next_random;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn jaccard(left: &BTreeSet<u64>, right: &BTreeSet<u64>) -> f64 {
        let union = left.union(right).count();
        if union == 0 { 0.0 } else { left.intersection(right).count() as f64 / union as f64 }
    }

    /// The definition: (page, the page it matches).
    fn by_definition(sets: &[BTreeSet<u64>], order: &[PageId], plan: MatchingPlan) -> BTreeSet<(PageId, PageId)> {
        let mut indexed: Vec<PageId> = Vec::new();
        let mut matches = BTreeSet::new();
        for (place, &page) in order.iter().enumerate() {
            let mut best: Option<(PageId, f64)> = None;
            if place >= plan.seeds {
                for &other in &indexed {
                    let similarity = jaccard(&sets[page.index()], &sets[other.index()]);
                    let better = match plan.guess {
                        Guess::First => best.is_none(),
                        Guess::Best => best.is_none_or(|known| similarity > known.1),
                    };
                    if similarity > plan.threshold && better {
                        best = Some((other, similarity));
                    }
                }
            }
            if let Some((other, _)) = best {
                matches.insert((page.min(other), page.max(other)));
            }
            if best.is_none() || plan.index_duplicates {
                indexed.push(page);
            }
        }
        matches
    }

    proptest! {
        #[test]
        fn every_variant_equals_its_definition(
            sets in prop::collection::vec(prop::collection::btree_set(0u64..15, 0..9), 1..25),
            threshold in prop::sample::select(vec![0.1, 0.2, 0.5, 0.75]),
            seeds in 0usize..4,
            seed in any::<u64>(),
            prefix_filter in any::<bool>(),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut stored = PageSets::new(directory.path(), 1 << 20, 0, false);
            for (page, set) in PageId::counting().zip(&sets) {
                stored.push(page, &set.iter().copied().collect::<Vec<_>>(), &[], &[]).unwrap();
            }
            stored.finish().unwrap();
            let mut order: Vec<PageId> = PageId::first(sets.len()).collect();
            order.sort_by_key(|page| seeded_order_key(&page.number().to_string(), seed));
            for guess in [Guess::First, Guess::Best] {
                for (index_duplicates, size_filter) in [(false, true), (true, true), (true, false), (false, false)] {
                    let plan = MatchingPlan { threshold, guess, index_duplicates, size_filter, prefix_filter, seeds };
                    let (found, _) = match_in_order(&stored, &order, plan, |left, right| {
                        let similarity = jaccard(&sets[left.index()], &sets[right.index()]);
                        let verdict = if similarity > threshold { Verdict::Accepted } else { Verdict::Rejected };
                        Ok(Some((pair(left.min(right).number(), left.max(right).number(), similarity), verdict)))
                    }).unwrap();
                    let found: BTreeSet<_> = found.iter().map(|pair| (pair.left, pair.right)).collect();
                    prop_assert_eq!(found, by_definition(&sets, &order, plan));
                }
            }
        }
    }

    #[test]
    fn comparisons_per_page_do_not_grow_on_unrelated_pages() {
        // Spot signatures of unrelated pages: frequent ones that every tenth page has, rare ones of its own.
        let per_page = |pages: u32| {
            let directory = tempfile::tempdir().unwrap();
            let mut stored = PageSets::new(directory.path(), 64 << 20, 0, false);
            let mut state = 9;
            let mut sets = Vec::new();
            for page in PageId::first(pages as usize) {
                let mut draw = |below: u64| next_random(&mut state) % below;
                let frequent: Vec<u64> = (0..20).map(|_| draw(200)).collect();
                let set: BTreeSet<u64> = frequent.into_iter().chain((0..60).map(|_| 1000 + draw(1 << 40))).collect();
                stored.push(page, &set.iter().copied().collect::<Vec<_>>(), &[], &[]).unwrap();
                sets.push(set);
            }
            stored.finish().unwrap();
            let order: Vec<PageId> = PageId::first(pages as usize).collect();
            let mut compared = 0u32;
            let plan = MatchingPlan {
                threshold: 0.25,
                guess: Guess::Best,
                index_duplicates: false,
                size_filter: true,
                prefix_filter: true,
                seeds: 0,
            };
            match_in_order(&stored, &order, plan, |left, right| {
                compared += 1;
                let similarity = jaccard(&sets[left.index()], &sets[right.index()]);
                let verdict = if similarity > 0.25 { Verdict::Accepted } else { Verdict::Rejected };
                Ok(Some((pair(left.min(right).number(), left.max(right).number(), similarity), verdict)))
            })
            .unwrap();
            f64::from(compared) / f64::from(pages)
        };
        let (few, many) = (per_page(250), per_page(4000));
        assert!(many <= 1.5 * few.max(0.01), "{few} comparisons per page became {many}");
    }
}
