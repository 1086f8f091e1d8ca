//! Pages that share a band key at the same position.
//!
//! In: for each band, the key of every page. Out: each pair once, `left < right`; and the buckets
//! that are too common to be spelled out as pairs, whole, for the leader rule. Guaranteed: the
//! result depends neither on threads nor on the order of the bands.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::candidate::key_sort::{Row, sort_by_key};
use crate::error::Result;
use crate::page::{PageId, PageVec};
use crate::spill::LongList;

/// Candidate pairs before they are sorted and made unique are at most this many, and those of one bucket.
const UNSORTED_PAIRS: usize = 1 << 20;

/// Two pages.
type Pair = (PageId, PageId);

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
    pub pairs: LongList<Pair>,
    /// Buckets over the limit.
    pub crowded: Vec<CrowdedBucket>,
}

impl Candidates {
    /// Every page that occurs, ascending.
    #[must_use]
    pub fn pages(&self) -> Vec<PageId> {
        let mut occurs: PageVec<bool> = PageVec::new();
        let pairs = self.pairs.iter().flat_map(|&(left, right)| [left, right]);
        for page in pairs.chain(self.crowded.iter().flat_map(|bucket| bucket.members.iter().copied())) {
            while occurs.len() <= page.index() {
                occurs.push(false);
            }
            occurs[page] = true;
        }
        occurs.by_page().filter(|row| *row.1).map(|row| row.0).collect()
    }
}

/// A bucket up to this size has all its pairs looked at by the filter before it counts as crowded.
pub(crate) const MOST_FILTERED: usize = 1 << 15;

/// Collects candidates band by band.
pub struct BandJoin<'a> {
    takes_part: &'a (dyn Fn(PageId) -> bool + Sync),
    filter: Option<&'a (dyn Fn(PageId, PageId) -> bool + Sync)>,
    bucket_limit: usize,
    /// Runs of pairs, each ascending, and where they end.
    sorted: LongList<Pair>,
    ends: Vec<usize>,
    unsorted: Vec<Pair>,
    crowded: Vec<CrowdedBucket>,
    rows: Vec<Row>,
}

impl<'a> BandJoin<'a> {
    /// A join over the pages for which `takes_part` holds. Pairs that a `filter` on what is known of
    /// the two pages refuses are not candidates. The others go into `pairs`, which is empty.
    pub fn new(
        takes_part: &'a (dyn Fn(PageId) -> bool + Sync),
        filter: Option<&'a (dyn Fn(PageId, PageId) -> bool + Sync)>,
        bucket_limit: usize,
        pairs: LongList<(PageId, PageId)>,
    ) -> BandJoin<'a> {
        BandJoin {
            takes_part,
            filter,
            bucket_limit,
            sorted: pairs,
            ends: Vec::new(),
            unsorted: Vec::new(),
            crowded: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a band: the keys of the pages that have one.
    ///
    /// # Errors
    /// When pairs cannot be written to a file.
    pub fn add(&mut self, band: usize, keys: impl Iterator<Item = Row>) -> Result<()> {
        self.rows.clear();
        self.rows.extend(keys.filter(|&(_, page)| (self.takes_part)(page)));
        sort_by_key(&mut self.rows);
        let rows = std::mem::take(&mut self.rows);
        for bucket in rows.chunk_by(|a, b| a.0 == b.0).filter(|bucket| bucket.len() > 1) {
            if self.spell_out(bucket) {
                if self.unsorted.len() >= UNSORTED_PAIRS {
                    self.settle()?;
                }
            } else {
                self.crowded.push(CrowdedBucket { band, members: bucket.iter().map(|row| row.1).collect() });
            }
        }
        self.rows = rows;
        Ok(())
    }

    /// Adds the pairs of a bucket; not if there are too many.
    fn spell_out(&mut self, bucket: &[Row]) -> bool {
        let is_large = bucket.len() > self.bucket_limit;
        let Some(filter) = self.filter else {
            if !is_large {
                for (i, left) in bucket.iter().enumerate() {
                    self.unsorted.extend(bucket[i + 1..].iter().map(|right| (left.1, right.1)));
                }
            }
            return !is_large;
        };
        if !is_large {
            for (i, left) in bucket.iter().enumerate() {
                let passing = bucket[i + 1..].iter().filter(|right| filter(left.1, right.1));
                self.unsorted.extend(passing.map(|right| (left.1, right.1)));
            }
            return true;
        }
        // What makes a bucket crowded is how many pairs pass, not how many share a key.
        if bucket.len() > MOST_FILTERED {
            return false;
        }
        let most = bucket.len() * self.bucket_limit / 2;
        let counted = AtomicUsize::new(0);
        let found: Vec<Vec<Pair>> = (0..bucket.len())
            .into_par_iter()
            .map(|i| {
                if counted.load(Ordering::Relaxed) > most {
                    return Vec::new();
                }
                let left = bucket[i].1;
                let passing = bucket[i + 1..].iter().filter(|right| filter(left, right.1));
                let found: Vec<Pair> = passing.map(|right| (left, right.1)).collect();
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
    ///
    /// # Errors
    /// When pairs cannot be written to a file.
    pub fn finish(mut self) -> Result<Candidates> {
        self.settle()?;
        // The same crowd in several bands is one crowd.
        self.crowded.sort_by(|a, b| a.members.cmp(&b.members).then(a.band.cmp(&b.band)));
        self.crowded.dedup_by(|later, first| later.members == first.members);
        Ok(Candidates { pairs: merged(self.sorted, &self.ends)?, crowded: self.crowded })
    }

    /// Makes a run of what is not sorted yet.
    fn settle(&mut self) -> Result<()> {
        if self.unsorted.is_empty() {
            return Ok(());
        }
        self.unsorted.par_sort_unstable_by_key(|&(left, right)| by_number(left, right));
        self.unsorted.dedup();
        self.sorted.extend_from_slice(&self.unsorted)?;
        self.ends.push(self.sorted.len());
        self.unsorted.clear();
        Ok(())
    }
}

/// Runs of ascending pairs as one, without repeats.
fn merged(runs: LongList<Pair>, ends: &[usize]) -> Result<LongList<Pair>> {
    if ends.len() <= 1 {
        return Ok(runs);
    }
    let mut all = runs.another();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let mut rests: Vec<&[Pair]> = starts.zip(ends).map(|(start, &end)| &runs[start..end]).collect();
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    heap.extend(rests.iter().enumerate().filter_map(|(run, rest)| {
        let &(left, right) = rest.first()?;
        Some(Reverse((by_number(left, right), run)))
    }));
    let mut last = None;
    while let Some(mut least) = heap.peek_mut() {
        let Reverse((number, run)) = *least;
        let pair = rests[run][0];
        rests[run] = &rests[run][1..];
        match rests[run].first() {
            Some(&(left, right)) => *least = Reverse((by_number(left, right), run)),
            None => drop(PeekMut::pop(least)),
        }
        if last != Some(number) {
            all.push(pair)?;
            last = Some(number);
        }
    }
    Ok(all)
}

fn by_number(left: PageId, right: PageId) -> u64 {
    u64::from(left.number()) << 32 | u64::from(right.number())
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
        let mut join = BandJoin::new(&everyone, Some(&neighbours), 4, LongList::default());
        join.add(0, numbered(std::iter::repeat_n(7, 100))).unwrap();
        let found = join.finish().unwrap();
        assert_eq!((found.pairs.len(), found.crowded.len()), (99, 0));
        let all = |_: PageId, _: PageId| true;
        let mut join = BandJoin::new(&everyone, Some(&all), 4, LongList::default());
        join.add(0, numbered(std::iter::repeat_n(7, 100))).unwrap();
        let found = join.finish().unwrap();
        assert_eq!((found.pairs.len(), found.crowded.len()), (0, 1));
    }

    #[test]
    fn runs_become_one() {
        let page = PageId::new;
        let runs = [vec![(page(0), page(3)), (page(2), page(5))], vec![], vec![(page(0), page(1)), (page(2), page(5))]];
        let mut list = LongList::default();
        let mut ends = Vec::new();
        for run in &runs {
            list.extend_from_slice(run).unwrap();
            ends.push(list.len());
        }
        let expected = [(page(0), page(1)), (page(0), page(3)), (page(2), page(5))];
        assert_eq!(&*merged(list, &ends).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn pairs_equal_brute_force(
            bands in (1usize..30).prop_flat_map(|pages| prop::collection::vec(prop::collection::vec(0u64..6, pages), 1..5)),
            left_out in 0u32..8,
            limit in 2usize..6,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let takes_part = |page: PageId| page.number() % 8 != left_out;
            let mut join = BandJoin::new(&takes_part, None, limit, LongList::new(directory.path(), 100));
            let pass = |left: PageId, right: PageId| !(left.number() + right.number()).is_multiple_of(3);
            let mut filtered = BandJoin::new(&takes_part, Some(&pass), 30, LongList::default());
            for (band, keys) in bands.iter().enumerate() {
                join.add(band, numbered(keys.iter().copied())).unwrap();
                filtered.add(band, numbered(keys.iter().copied())).unwrap();
            }
            let (found, filtered) = (join.finish().unwrap(), filtered.finish().unwrap());
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
            prop_assert_eq!(&*filtered.pairs, passing.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(&*found.pairs, pairs.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(found.crowded.into_iter().map(|bucket| bucket.members).collect::<BTreeSet<_>>(), crowded);
        }
    }
}
