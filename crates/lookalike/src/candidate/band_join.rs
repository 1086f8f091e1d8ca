//! Pages that share a band key at the same position.
//!
//! In: for each band, the key of every page. Out: each pair once, `left < right`; and the buckets
//! that are too common to be spelled out as pairs, whole, for the leader rule. Guaranteed: the
//! result depends neither on threads nor on the order of the bands.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::page::PageId;

/// Candidate pairs before they are sorted and made unique are at most this many.
const UNSORTED_PAIRS: usize = 4 << 20;

/// A bucket with more members than the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrowdedBucket {
    /// The band it was found in; the lowest, if several bands have the same members.
    pub band: usize,
    /// Its members, ascending.
    pub members: Vec<PageId>,
}

/// What is to be verified.
#[derive(Debug, Default)]
pub struct Candidates {
    /// Pairs, ascending.
    pub pairs: Vec<(PageId, PageId)>,
    /// Buckets over the limit.
    pub crowded: Vec<CrowdedBucket>,
}

impl Candidates {
    /// Every page that occurs, ascending.
    #[must_use]
    pub fn pages(&self) -> Vec<PageId> {
        let mut pages: Vec<PageId> = self.pairs.iter().flat_map(|&(left, right)| [left, right]).collect();
        pages.extend(self.crowded.iter().flat_map(|bucket| &bucket.members));
        pages.par_sort_unstable();
        pages.dedup();
        pages
    }
}

/// A bucket up to this size has all its pairs looked at by the filter before it counts as crowded.
pub(crate) const MOST_FILTERED: usize = 1 << 15;

/// Collects candidates band by band.
pub struct BandJoin<'a> {
    takes_part: &'a (dyn Fn(PageId) -> bool + Sync),
    filter: Option<&'a (dyn Fn(PageId, PageId) -> bool + Sync)>,
    bucket_limit: usize,
    unsorted: Vec<u64>,
    pairs: Vec<u64>,
    crowded: Vec<CrowdedBucket>,
    rows: Vec<(u64, PageId)>,
}

impl<'a> BandJoin<'a> {
    /// A join over the pages for which `takes_part` holds. Pairs that a `filter` on what is known of
    /// the two pages refuses are not candidates.
    pub fn new(
        takes_part: &'a (dyn Fn(PageId) -> bool + Sync),
        filter: Option<&'a (dyn Fn(PageId, PageId) -> bool + Sync)>,
        bucket_limit: usize,
    ) -> BandJoin<'a> {
        BandJoin {
            takes_part,
            filter,
            bucket_limit,
            unsorted: Vec::new(),
            pairs: Vec::new(),
            crowded: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a band: the keys of the pages that have one.
    pub fn add(&mut self, band: usize, keys: impl Iterator<Item = (u64, PageId)>) {
        self.rows.clear();
        self.rows.extend(keys.filter(|&(_, page)| (self.takes_part)(page)));
        self.rows.par_sort_unstable();
        let rows = std::mem::take(&mut self.rows);
        for bucket in rows.chunk_by(|a, b| a.0 == b.0).filter(|bucket| bucket.len() > 1) {
            if self.spell_out(bucket) {
                if self.unsorted.len() >= UNSORTED_PAIRS {
                    self.settle();
                }
            } else {
                self.crowded.push(CrowdedBucket { band, members: bucket.iter().map(|row| row.1).collect() });
            }
        }
        self.rows = rows;
    }

    /// Adds the pairs of a bucket; not if there are too many.
    fn spell_out(&mut self, bucket: &[(u64, PageId)]) -> bool {
        let is_large = bucket.len() > self.bucket_limit;
        let Some(filter) = self.filter else {
            if !is_large {
                for (i, left) in bucket.iter().enumerate() {
                    self.unsorted.extend(bucket[i + 1..].iter().map(|right| pack(left.1, right.1)));
                }
            }
            return !is_large;
        };
        if !is_large {
            for (i, left) in bucket.iter().enumerate() {
                let passing = bucket[i + 1..].iter().filter(|right| filter(left.1, right.1));
                self.unsorted.extend(passing.map(|right| pack(left.1, right.1)));
            }
            return true;
        }
        // What makes a bucket crowded is how many pairs pass, not how many share a key.
        if bucket.len() > MOST_FILTERED {
            return false;
        }
        let most = bucket.len() * self.bucket_limit / 2;
        let counted = AtomicUsize::new(0);
        let found: Vec<Vec<u64>> = (0..bucket.len())
            .into_par_iter()
            .map(|i| {
                if counted.load(Ordering::Relaxed) > most {
                    return Vec::new();
                }
                let left = bucket[i].1;
                let passing = bucket[i + 1..].iter().filter(|right| filter(left, right.1));
                let found: Vec<u64> = passing.map(|right| pack(left, right.1)).collect();
                counted.fetch_add(found.len(), Ordering::Relaxed);
                found
            })
            .collect();
        if counted.into_inner() > most {
            return false;
        }
        self.unsorted.extend(found.into_iter().flatten());
        true
    }

    /// The candidates of all bands added.
    #[must_use]
    pub fn finish(mut self) -> Candidates {
        self.settle();
        // The same crowd in several bands is one crowd.
        self.crowded.sort_by(|a, b| a.members.cmp(&b.members).then(a.band.cmp(&b.band)));
        self.crowded.dedup_by(|later, first| later.members == first.members);
        Candidates { pairs: self.pairs.into_iter().map(unpack).collect(), crowded: self.crowded }
    }

    fn settle(&mut self) {
        self.unsorted.par_sort_unstable();
        self.unsorted.dedup();
        if self.pairs.is_empty() {
            std::mem::swap(&mut self.pairs, &mut self.unsorted);
            return;
        }
        self.pairs.append(&mut self.unsorted);
        // Two ascending runs: a stable sort merges them in linear time.
        self.pairs.sort();
        self.pairs.dedup();
    }
}

fn pack(left: PageId, right: PageId) -> u64 {
    u64::from(left.number()) << 32 | u64::from(right.number())
}

#[allow(clippy::cast_possible_truncation)] // both halves are given
fn unpack(pair: u64) -> (PageId, PageId) {
    (PageId::new((pair >> 32) as u32), PageId::new(pair as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Keys of all pages, in order.
    fn numbered(keys: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, PageId)> {
        keys.zip(PageId::counting())
    }

    #[test]
    fn a_large_bucket_is_crowded_only_if_many_of_its_pairs_pass() {
        let everyone = |_: PageId| true;
        let neighbours = |left: PageId, right: PageId| right.number() - left.number() == 1;
        let mut join = BandJoin::new(&everyone, Some(&neighbours), 4);
        join.add(0, numbered(std::iter::repeat_n(7, 100)));
        let found = join.finish();
        assert_eq!((found.pairs.len(), found.crowded.len()), (99, 0));
        let all = |_: PageId, _: PageId| true;
        let mut join = BandJoin::new(&everyone, Some(&all), 4);
        join.add(0, numbered(std::iter::repeat_n(7, 100)));
        let found = join.finish();
        assert_eq!((found.pairs.len(), found.crowded.len()), (0, 1));
    }

    proptest! {
        #[test]
        fn pairs_equal_brute_force(
            bands in (1usize..30).prop_flat_map(|pages| prop::collection::vec(prop::collection::vec(0u64..6, pages), 1..5)),
            left_out in 0u32..8,
            limit in 2usize..6,
        ) {
            let takes_part = |page: PageId| page.number() % 8 != left_out;
            let mut join = BandJoin::new(&takes_part, None, limit);
            let pass = |left: PageId, right: PageId| !(left.number() + right.number()).is_multiple_of(3);
            let mut filtered = BandJoin::new(&takes_part, Some(&pass), 30);
            for (band, keys) in bands.iter().enumerate() {
                join.add(band, numbered(keys.iter().copied()));
                filtered.add(band, numbered(keys.iter().copied()));
            }
            let (found, filtered) = (join.finish(), filtered.finish());
            let pages = bands[0].len();
            let mut pairs = BTreeSet::new();
            let mut crowded = BTreeSet::new();
            let mut passing = BTreeSet::new();
            for keys in &bands {
                for key in 0..6 {
                    let members: Vec<PageId> = PageId::first(pages).filter(|&page| takes_part(page) && keys[page.index()] == key).collect();
                    for (i, &left) in members.iter().enumerate() {
                        passing.extend(members[i + 1..].iter().map(|&right| (left, right)).filter(|&(l, r)| pass(l, r)));
                    }
                    if members.len() > limit {
                        crowded.insert(members);
                        continue;
                    }
                    for (i, &left) in members.iter().enumerate() {
                        pairs.extend(members[i + 1..].iter().map(|&right| (left, right)));
                    }
                }
            }
            prop_assert_eq!(filtered.pairs, passing.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(found.pairs, pairs.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(found.crowded.into_iter().map(|bucket| bucket.members).collect::<BTreeSet<_>>(), crowded);
        }
    }
}
