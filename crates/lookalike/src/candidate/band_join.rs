//! Pages that share a band key at the same position.
//!
//! In: for each band, the key of every page. Out: each pair once, `left < right`; and the buckets
//! that are too common to be spelled out as pairs, whole, for the leader rule. Guaranteed: the
//! result depends neither on threads nor on the order of the bands.

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

/// Collects candidates band by band.
pub struct BandJoin<'a> {
    takes_part: &'a (dyn Fn(PageId) -> bool + Sync),
    bucket_limit: usize,
    unsorted: Vec<u64>,
    pairs: Vec<u64>,
    crowded: Vec<CrowdedBucket>,
    rows: Vec<(u64, PageId)>,
}

impl<'a> BandJoin<'a> {
    /// A join over the pages for which `takes_part` holds.
    pub fn new(takes_part: &'a (dyn Fn(PageId) -> bool + Sync), bucket_limit: usize) -> BandJoin<'a> {
        BandJoin {
            takes_part,
            bucket_limit,
            unsorted: Vec::new(),
            pairs: Vec::new(),
            crowded: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a band; `keys[i]` is the key of page `i`.
    pub fn add(&mut self, band: usize, keys: &[u64]) {
        self.rows.clear();
        self.rows.extend(keys.iter().copied().zip(0..).filter(|&(_, page)| (self.takes_part)(page)));
        self.rows.par_sort_unstable();
        let rows = std::mem::take(&mut self.rows);
        for bucket in rows.chunk_by(|a, b| a.0 == b.0).filter(|bucket| bucket.len() > 1) {
            if bucket.len() > self.bucket_limit {
                self.crowded.push(CrowdedBucket { band, members: bucket.iter().map(|row| row.1).collect() });
                continue;
            }
            for (i, left) in bucket.iter().enumerate() {
                self.unsorted.extend(bucket[i + 1..].iter().map(|right| pack(left.1, right.1)));
            }
            if self.unsorted.len() >= UNSORTED_PAIRS {
                self.settle();
            }
        }
        self.rows = rows;
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
    u64::from(left) << 32 | u64::from(right)
}

#[allow(clippy::cast_possible_truncation)] // both halves are given
fn unpack(pair: u64) -> (PageId, PageId) {
    ((pair >> 32) as PageId, pair as PageId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn pairs_equal_brute_force(
            bands in (1usize..30).prop_flat_map(|pages| prop::collection::vec(prop::collection::vec(0u64..6, pages), 1..5)),
            left_out in 0u32..8,
            limit in 2usize..6,
        ) {
            let takes_part = |page: PageId| page % 8 != left_out;
            let mut join = BandJoin::new(&takes_part, limit);
            for (band, keys) in bands.iter().enumerate() {
                join.add(band, keys);
            }
            let found = join.finish();
            let pages = u32::try_from(bands[0].len()).unwrap();
            let mut pairs = BTreeSet::new();
            let mut crowded = BTreeSet::new();
            for keys in &bands {
                for key in 0..6 {
                    let members: Vec<PageId> = (0..pages).filter(|&p| takes_part(p) && keys[p as usize] == key).collect();
                    if members.len() > limit {
                        crowded.insert(members);
                        continue;
                    }
                    for (i, &left) in members.iter().enumerate() {
                        pairs.extend(members[i + 1..].iter().map(|&right| (left, right)));
                    }
                }
            }
            prop_assert_eq!(found.pairs, pairs.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(found.crowded.into_iter().map(|bucket| bucket.members).collect::<BTreeSet<_>>(), crowded);
        }
    }
}
