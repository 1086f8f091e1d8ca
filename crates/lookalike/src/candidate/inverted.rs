//! Pages that share enough features, by an inverted index.
//!
//! In: the feature sets of pages, and how much of them two pages must share. Out: every pair that
//! can reach it, few others. Features are ordered from rare to frequent; two pages that share enough
//! share one of their rarest, so only those are indexed and looked up (prefix filter). Pages of very
//! different sizes are filtered out (size filter), and a pair is given up as soon as what is left of
//! the two pages cannot reach the threshold any more. None of this changes the result; only crowds,
//! which are handed on whole, are not spelled out.
//! Web-archives paper, §4; Bayardo et al. 2007; Xiao et al. 2008.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::candidate::band_join::{Candidates, CrowdedBucket};
use crate::candidate::meetings::{Lookup, Meetings, as_u32};
use crate::candidate::shared_lists::{PAGES_PER_TASK, Room, SharedLists};
use crate::error::Result;
use crate::feature::rarity::Rarity;
use crate::observe::{Observer, check_cancelled};
use crate::page::PageId;
use crate::plan::Measure;
use crate::sketch::page_sets::PageSets;
use crate::spill::{Fixed, LongList};
use crate::union_find::UnionFind;

/// Pairs of pages, however many.
type PagePairs = LongList<(PageId, PageId)>;

/// Pages whose candidates are held at a time before they are sorted into pairs and crowds.
const PLACES_AT_A_TIME: usize = 2048;

/// How many pages have each feature.
pub(super) fn rarity_of(sets: &PageSets, pages: &[PageId]) -> Rarity {
    let mut rarity = Rarity::for_features(sets.feature_count());
    for &page in pages {
        rarity.add(sets.features(page));
    }
    rarity
}

/// How much two pages must share.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// Of what.
    pub measure: Measure,
    /// How much.
    pub threshold: f64,
    /// Whether pages are filtered out by their size.
    pub size_filter: bool,
    /// Whether pages are looked up by their rarest features only.
    pub prefix_filter: bool,
    /// Pages with the same set beyond this number are one crowd.
    pub bucket_limit: usize,
}

impl Sharing {
    /// The share of a page that another must have at least, as far as its prefix is concerned.
    pub(crate) fn prefix_threshold(self) -> f64 {
        if self.prefix_filter { self.threshold } else { 0.0 }
    }

    /// The least weight of a page that can share enough with one of this weight.
    pub(crate) fn lightest(self, total: u64) -> f64 {
        // Rounding must not leave out a page that just reaches the threshold.
        self.threshold * total as f64 * (1.0 - 1e-9)
    }

    /// The weight that two pages of these weights must share.
    pub(crate) fn needed(self, left: u64, right: u64) -> f64 {
        let (left, right) = (left as f64, right as f64);
        match self.measure {
            Measure::Coverage => self.threshold * left.min(right),
            _ => self.threshold / (1.0 + self.threshold) * (left + right),
        }
    }
}

/// What the size filter saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collisions {
    /// Times that a page met another at a feature, without the filter.
    pub all: u64,
    /// Those that the filter left out.
    pub filtered: u64,
}

/// Who takes part, and what is known of them.
#[derive(Clone, Copy)]
pub struct Members<'a> {
    /// The pages, ascending.
    pub pages: &'a [PageId],
    /// The order of preference.
    pub rank: &'a (dyn Fn(PageId) -> u32 + Sync),
    /// Pages of different groups are never compared.
    pub group: &'a (dyn Fn(PageId) -> u64 + Sync),
    /// Refuses pairs that the user does not want to be compared.
    pub is_wanted: &'a (dyn Fn(PageId, PageId) -> bool + Sync),
}

/// Finds the candidates, whose pairs go into `list`, which is empty. A page with more of them than the limit is part of a crowd; crowds are
/// handed on whole, so that there are at most as many pairs as pages times the limit.
///
/// # Errors
/// When temporary files cannot be written or read back, or `observer` wants the run to stop.
pub fn join(
    sets: &PageSets,
    members: Members<'_>,
    sharing: Sharing,
    room: Room<'_>,
    list: PagePairs,
    observer: &dyn Observer,
) -> Result<(Candidates, Collisions)> {
    let (pages, mut crowded) = without_crowds(sets, members, sharing.bucket_limit)?;
    let (by_weight, lists) = SharedLists::new(sets, &pages, sharing, room)?;
    drop(pages);
    let mut found = Found::new(by_weight.order.len(), sharing.bucket_limit, list.another());
    let spare: Mutex<Vec<Lookup>> = Mutex::default();
    let spare = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    let meetings = Meetings::new(&by_weight, &lists, sharing)?;
    let mut start = 0;
    while let Some(block) = meetings.block(start, room.bytes / 2)? {
        start = block.askers.end;
        let look_up = |places: Range<u32>| {
            let known = spare().pop();
            let mut lookup = known.unwrap_or_default();
            let mut pairs = Vec::new();
            for place in places {
                block.look_up(place, members.is_wanted, &mut lookup);
                pairs.extend(lookup.found.iter().map(|&other| (place, other)));
            }
            spare().push(lookup);
            pairs
        };
        for some in divided(block.askers.clone(), PLACES_AT_A_TIME) {
            check_cancelled(observer)?;
            let tasks: Vec<Range<u32>> = divided(some, PAGES_PER_TASK).collect();
            let pairs: Vec<Vec<(u32, u32)>> = tasks.into_par_iter().map(look_up).collect();
            pairs.into_iter().flatten().try_for_each(|(place, other)| found.add(place, other))?;
        }
    }
    let collisions = meetings.collisions;
    let (pairs, crowds) = found.finish(&by_weight.order, list)?;
    crowded.extend(crowds);
    crowded.sort_by(|a, b| a.members.cmp(&b.members));
    Ok((Candidates { pairs, crowded }, collisions))
}

/// Pairs that were found, as far as they are to be spelled out.
struct Found {
    /// Candidates of each place so far.
    counts: Vec<u32>,
    limit: u32,
    pairs: LongList<(u32, u32)>,
    crowds: UnionFind,
}

impl Found {
    fn new(places: usize, bucket_limit: usize, pairs: LongList<(u32, u32)>) -> Found {
        // No page has more candidates than there are numbers of pages.
        let limit = u32::try_from(bucket_limit).unwrap_or(u32::MAX);
        Found { counts: vec![0; places], limit, pairs, crowds: UnionFind::new(places) }
    }

    fn is_crowded(&self, place: u32) -> bool {
        self.counts[place as usize] > self.limit
    }

    /// Adds a pair; one of two pages that are crowded already need not be remembered.
    fn add(&mut self, place: u32, other: u32) -> Result<()> {
        self.counts[place as usize] += 1;
        self.counts[other as usize] += 1;
        if self.is_crowded(place) && self.is_crowded(other) {
            self.crowds.join(place, other);
            Ok(())
        } else {
            self.pairs.push((place, other))
        }
    }

    /// The pairs, in `list`, which is empty, and the crowds.
    fn finish(mut self, order: &[PageId], mut list: PagePairs) -> Result<(PagePairs, Vec<CrowdedBucket>)> {
        let found = std::mem::take(&mut self.pairs);
        let page = |place: u32| order[place as usize];
        for &(place, other) in &found {
            if self.is_crowded(place) && self.is_crowded(other) {
                self.crowds.join(place, other);
            } else {
                list.push((page(place).min(page(other)), page(place).max(page(other))))?;
            }
        }
        list.par_sort_unstable();
        let is_crowded: Vec<bool> = self.counts.iter().map(|&count| count > self.limit).collect();
        Ok((list, spelled_out(&mut self.crowds, &is_crowded, order)))
    }
}

/// The crowds of crowded pages, as buckets.
fn spelled_out(crowds: &mut UnionFind, is_crowded: &[bool], order: &[PageId]) -> Vec<CrowdedBucket> {
    let mut members: BTreeMap<u32, Vec<PageId>> = BTreeMap::new();
    for (place, _) in (0u32..).zip(is_crowded).filter(|(_, is_crowded)| **is_crowded) {
        members.entry(crowds.root(place)).or_default().push(order[place as usize]);
    }
    let sorted = members.into_values().filter(|members| members.len() > 1).map(|mut members| {
        members.sort_unstable();
        CrowdedBucket { band: 0, members }
    });
    sorted.collect()
}

/// Pages of one group with the very same features: where there are many, the best of them stands for
/// all in the index.
fn without_crowds(sets: &PageSets, members: Members<'_>, limit: usize) -> Result<(Vec<PageId>, Vec<CrowdedBucket>)> {
    let mut hashes = Vec::new();
    let mut bytes = Vec::new();
    for &page in members.pages {
        let features = sets.features(page);
        if !features.is_empty() {
            bytes.clear();
            u64::encode(features, &mut bytes);
            u64::encode(&[(members.group)(page)], &mut bytes);
            hashes.push((xxh3_64(&bytes), page));
        }
    }
    hashes.par_sort_unstable();
    let (mut single, mut crowded) = (Vec::new(), Vec::new());
    for same in hashes.chunk_by(|a, b| a.0 == b.0) {
        if same.len() > limit {
            single.extend(same.iter().map(|row| row.1).min_by_key(|&page| (members.rank)(page)));
            crowded.push(CrowdedBucket { band: 0, members: same.iter().map(|row| row.1).collect() });
        } else {
            single.extend(same.iter().map(|row| row.1));
        }
    }
    single.sort_unstable();
    Ok((single, crowded))
}

/// A range of places in pieces of a length.
fn divided(range: Range<u32>, length: usize) -> impl Iterator<Item = Range<u32>> {
    let end = range.end;
    range.step_by(length).map(move |from| from..end.min(from.saturating_add(as_u32(length))))
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers
mod tests {
    use super::*;
    use crate::observe::Silent;
    use crate::random::next_random;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Half of two pages is shared, and few make a crowd.
    const CROWDED: Sharing =
        Sharing { measure: Measure::Jaccard, threshold: 0.5, size_filter: true, prefix_filter: true, bucket_limit: 10 };

    /// Sets in which the feature n weighs 1 + n mod 3, or 1.
    fn page_sets(sets: &[BTreeSet<u64>], weighted: bool, directory: &std::path::Path) -> PageSets {
        let mut stored = PageSets::new(directory, 1 << 20, 0, weighted);
        for (page, set) in PageId::counting().zip(sets) {
            let features: Vec<u64> = set.iter().map(|n| n * 0x9e37_79b9).collect();
            let weights: Vec<u32> =
                if weighted { set.iter().map(|n| 1 + (n % 3) as u32).collect() } else { Vec::new() };
            stored.push(page, &features, &weights, &[]).unwrap();
        }
        stored.finish().unwrap();
        stored
    }

    /// Room for an index, or for very little of it at a time.
    fn room(directory: &std::path::Path, is_small: bool) -> Room<'_> {
        Room { directory, bytes: if is_small { 256 } else { 1 << 20 } }
    }

    fn everyone(pages: &[PageId]) -> Members<'_> {
        Members { pages, rank: &|page| 1000 - page.number(), group: &|_| 0, is_wanted: &|_, _| true }
    }

    #[test]
    fn a_crowd_of_pages_that_are_nearly_the_same_is_not_spelled_out() {
        let directory = tempfile::tempdir().unwrap();
        let mut sets: Vec<BTreeSet<u64>> = (0..200).map(|page| (0..20).chain([1000 + page]).collect()).collect();
        sets.push((0..9).chain([5000, 5001]).collect());
        let stored = page_sets(&sets, false, directory.path());
        let pages: Vec<PageId> = PageId::first(201).collect();
        let (found, _) = join(
            &stored,
            everyone(&pages),
            CROWDED,
            room(directory.path(), false),
            LongList::new(directory.path(), 64),
            &Silent,
        )
        .unwrap();
        assert_eq!(found.crowded.len(), 1);
        assert_eq!(found.crowded[0].members, PageId::first(200).collect::<Vec<_>>());
        assert!(found.pairs.is_empty());
    }

    proptest! {
        #[test]
        fn every_pair_that_shares_enough_is_found(
            sets in prop::collection::vec(prop::collection::btree_set(0u64..25, 0..14), 1..40),
            threshold in prop::sample::select(vec![0.1, 0.25, 0.5, 0.7, 1.0]),
            weighted in any::<bool>(),
            prefix_filter in any::<bool>(),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let stored = page_sets(&sets, weighted, directory.path());
            let pages: Vec<PageId> = PageId::first(sets.len()).collect();
            let weight = |n: &u64| if weighted { 1 + n % 3 } else { 1 };
            for measure in [Measure::Jaccard, Measure::Coverage] {
                let mut expected = BTreeSet::new();
                for right in 0..sets.len() {
                    for left in 0..right {
                        let sum = |set: &BTreeSet<u64>| set.iter().map(weight).sum::<u64>() as f64;
                        let both = sum(&sets[left].intersection(&sets[right]).copied().collect());
                        let (l, r) = (sum(&sets[left]), sum(&sets[right]));
                        let whole = if measure == Measure::Jaccard { l + r - both } else { l.min(r) };
                        if whole > 0.0 && both / whole >= threshold {
                            expected.insert((PageId::from_index(left), PageId::from_index(right)));
                        }
                    }
                }
                for size_filter in [true, false] {
                    let sharing = Sharing { measure, threshold, size_filter, prefix_filter, bucket_limit: 100 };
                    let (found, met) = join(&stored, everyone(&pages), sharing, room(directory.path(), false), LongList::new(directory.path(), 64), &Silent).unwrap();
                    let (in_parts, met_in_parts) =
                        join(&stored, everyone(&pages), sharing, room(directory.path(), true), LongList::new(directory.path(), 64), &Silent).unwrap();
                    prop_assert_eq!((&*in_parts.pairs, met_in_parts), (&*found.pairs, met), "memory changes nothing");
                    let pairs: BTreeSet<_> = found.pairs.iter().copied().collect();
                    prop_assert_eq!(pairs.len(), found.pairs.len(), "each pair once");
                    prop_assert!(expected.is_subset(&pairs), "{:?} not all in {:?}", expected, pairs);
                    prop_assert!(size_filter || met.filtered == 0);
                    // Without the prefix filter all that two pages share is counted, and what is not enough is left out.
                    prop_assert!(prefix_filter || measure == Measure::Coverage || pairs == expected);
                }
            }
        }
    }

    #[test]
    fn the_size_filter_leaves_out_what_cannot_match() {
        let directory = tempfile::tempdir().unwrap();
        // A large page has all of a small one, and those are its rarest features.
        let small: BTreeSet<u64> = [900, 901].into();
        let sets = [small.clone(), (0..60).chain(small).collect(), (0..60).collect(), (0..59).collect()];
        let stored = page_sets(&sets, false, directory.path());
        let of = |size_filter| {
            let sharing = Sharing {
                measure: Measure::Jaccard,
                threshold: 0.5,
                size_filter,
                prefix_filter: true,
                bucket_limit: 100,
            };
            join(
                &stored,
                everyone(&[0, 1, 2, 3].map(PageId::new)),
                sharing,
                room(directory.path(), false),
                LongList::new(directory.path(), 64),
                &Silent,
            )
            .unwrap()
        };
        let ((with, met), (without, all)) = (of(true), of(false));
        let expected = [(1, 2), (1, 3), (2, 3)].map(|(left, right)| (PageId::new(left), PageId::new(right)));
        assert_eq!(&*with.pairs, expected);
        assert_eq!(&*with.pairs, &*without.pairs);
        assert!(met.filtered > 0 && met.all == all.all && all.filtered == 0, "{met:?} {all:?}");
    }

    #[test]
    fn many_pages_with_the_same_features_are_a_crowd() {
        let directory = tempfile::tempdir().unwrap();
        let same: BTreeSet<u64> = (0..10).collect();
        let other: BTreeSet<u64> = (0..9).collect();
        let sets: Vec<BTreeSet<u64>> =
            (0..50).map(|page| if page == 20 { other.clone() } else { same.clone() }).collect();
        let stored = page_sets(&sets, false, directory.path());
        let pages: Vec<PageId> = PageId::first(50).collect();
        let (found, _) = join(
            &stored,
            everyone(&pages),
            CROWDED,
            room(directory.path(), false),
            LongList::new(directory.path(), 64),
            &Silent,
        )
        .unwrap();
        assert_eq!(found.crowded.len(), 1);
        assert_eq!(found.crowded[0].members.len(), 49);
        assert_eq!(&*found.pairs, [(PageId::new(20), PageId::new(49))], "the best-ranked of the crowd stands for it");
    }

    #[test]
    fn memory_changes_neither_pairs_nor_crowds() {
        let directory = tempfile::tempdir().unwrap();
        // Families of pages that share most of what they have, one of them a crowd, and frequent features that all pages share.
        let mut state = 3;
        let sets: Vec<BTreeSet<u64>> = (0..900u64)
            .map(|page| {
                let family = if page < 40 { 0 } else { page / 4 };
                let mut draw = |below: u64| next_random(&mut state) % below;
                let own: Vec<u64> = (0..4).map(|_| 1_000_000 + draw(1 << 30)).collect();
                let frequent: Vec<u64> = (0..6).map(|_| draw(20)).collect();
                (0..24).map(|n| 1000 + family * 100 + n).chain(own).chain(frequent).collect()
            })
            .collect();
        let stored = page_sets(&sets, false, directory.path());
        let pages: Vec<PageId> = PageId::first(sets.len()).collect();
        let of = |bytes| {
            join(
                &stored,
                everyone(&pages),
                CROWDED,
                Room { directory: directory.path(), bytes },
                LongList::default(),
                &Silent,
            )
            .unwrap()
        };
        let (all, met) = of(64 << 20);
        assert_eq!((all.crowded.len(), all.crowded[0].members.len()), (1, 40));
        for (number, left) in sets.iter().enumerate().skip(40) {
            for (other, right) in sets.iter().enumerate().skip(number + 1) {
                let both = left.intersection(right).count();
                if both * 2 >= left.len() + right.len() - both {
                    assert!(
                        all.pairs.contains(&(PageId::from_index(number), PageId::from_index(other))),
                        "{number} {other}"
                    );
                }
            }
        }
        for bytes in [0, 1 << 10, 100 << 10] {
            let (found, met_there) = of(bytes);
            assert_eq!((&*found.pairs, &found.crowded, met_there), (&*all.pairs, &all.crowded, met), "{bytes} bytes");
        }
    }
}
