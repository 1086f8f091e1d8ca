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
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::candidate::band_join::{Candidates, CrowdedBucket};
use crate::error::{Error, Result};
use crate::feature::rarity::{Prefix, Rarity};
use crate::page::PageId;
use crate::plan::Measure;
use crate::sketch::page_sets::{PageSets, PairScratch};
use crate::spill::{Fixed, Scratch};
use crate::union_find::UnionFind;

/// Pages that are looked up by one thread at a time.
const PAGES_PER_TASK: usize = 256;
/// Pages whose candidates are held at a time before they are sorted into pairs and crowds.
const PLACES_AT_A_TIME: usize = 2048;

/// How many pages have each feature.
///
/// # Errors
/// When sets that were spilled to disk cannot be read back.
pub(super) fn rarity_of(sets: &PageSets, pages: &[PageId]) -> Result<Rarity> {
    let mut rarity = Rarity::default();
    let mut scratch = Scratch::default();
    for &page in pages {
        rarity.add(sets.features(page, &mut scratch)?);
    }
    Ok(rarity)
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collisions {
    /// Times that a page met another at a feature, without the filter.
    pub all: u64,
    /// Those that the filter left out.
    pub filtered: u64,
}

impl Collisions {
    fn plus(self, more: Collisions) -> Collisions {
        Collisions { all: self.all + more.all, filtered: self.filtered + more.filtered }
    }
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

/// Finds the candidates. A page with more of them than the limit is part of a crowd; crowds are
/// handed on whole, so that there are at most as many pairs as pages times the limit.
///
/// # Errors
/// When sets that were spilled to disk cannot be read back.
pub fn join(sets: &PageSets, members: Members<'_>, sharing: Sharing) -> Result<(Candidates, Collisions)> {
    let (pages, mut crowded) = without_crowds(sets, members, sharing.bucket_limit)?;
    let rarity = rarity_of(sets, &pages)?;
    let index = Index::new(sets, &pages, sharing, &rarity)?;
    let places = index.order.len();
    let look_up = |lookup: &mut Lookup, place: usize| index.look_up(place, sharing, members.is_wanted, lookup);

    // How many candidates every page has, without keeping them.
    let counts: Vec<AtomicU32> = (0..places).map(|_| AtomicU32::new(0)).collect();
    let count = |lookup: &mut Lookup, place: usize| {
        let met = look_up(lookup, place);
        counts[place].fetch_add(as_u32(lookup.found.len()), Ordering::Relaxed);
        for &other in &lookup.found {
            counts[other as usize].fetch_add(1, Ordering::Relaxed);
        }
        met
    };
    let collisions = (0..places)
        .into_par_iter()
        .with_min_len(PAGES_PER_TASK)
        .map_init(|| Lookup::new(places), count)
        .reduce(Collisions::default, Collisions::plus);
    // No page has more candidates than there are numbers of pages.
    let limit = u32::try_from(sharing.bucket_limit).unwrap_or(u32::MAX);
    let is_crowded: Vec<bool> = counts.into_iter().map(|count| count.into_inner() > limit).collect();

    let mut pairs = Vec::new();
    let mut crowds = UnionFind::new(places);
    for from in (0..places).step_by(PLACES_AT_A_TIME) {
        let found: Vec<(u32, Vec<u32>)> = (from..(from + PLACES_AT_A_TIME).min(places))
            .into_par_iter()
            .with_min_len(PAGES_PER_TASK)
            .map_init(
                || Lookup::new(places),
                |lookup, place| {
                    look_up(lookup, place);
                    (as_u32(place), lookup.found.clone())
                },
            )
            .collect();
        for (place, others) in found {
            for other in others {
                if is_crowded[place as usize] && is_crowded[other as usize] {
                    crowds.join(place, other);
                } else {
                    let (page, candidate) = (index.order[place as usize], index.order[other as usize]);
                    pairs.push((page.min(candidate), page.max(candidate)));
                }
            }
        }
    }
    pairs.par_sort_unstable();
    crowded.extend(spelled_out(&mut crowds, &is_crowded, &index.order));
    crowded.sort_by(|a, b| a.members.cmp(&b.members));
    Ok((Candidates { pairs, crowded }, collisions))
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
    let (mut scratch, mut bytes) = (Scratch::default(), Vec::new());
    for &page in members.pages {
        let features = sets.features(page, &mut scratch)?;
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

/// Pages by weight, and who has which of the features that are indexed.
struct Index {
    /// Pages from light to heavy; a page's place in here is its number in the index.
    order: Vec<PageId>,
    totals: Vec<u64>,
    /// Weight behind the prefix, and the last key of the prefix.
    rests: Vec<(u64, (u32, u64))>,
    /// The lists: weight of the feature, where its places start.
    weights: Vec<u32>,
    starts: Vec<usize>,
    places: Vec<u32>,
    /// For each place the lists of its prefix.
    own_starts: Vec<usize>,
    own_lists: Vec<u32>,
}

struct Row {
    feature: u64,
    place: u32,
    weight: u32,
    in_prefix: bool,
}

impl Index {
    fn new(sets: &PageSets, pages: &[PageId], sharing: Sharing, rarity: &Rarity) -> Result<Index> {
        let (mut scratch, mut prefix) = (PairScratch::default(), Prefix::default());
        let mut sizes = Vec::with_capacity(pages.len());
        for &page in pages {
            let (features, weights) = sets.weighted_features(page, &mut scratch)?;
            let total: u64 = if weights.is_empty() {
                features.len() as u64
            } else {
                weights.iter().map(|&weight| u64::from(weight)).sum()
            };
            sizes.push((total, page));
        }
        sizes.par_sort_unstable();
        let mut rows = Vec::new();
        let mut rests = Vec::with_capacity(sizes.len());
        for (place, &(_, page)) in (0u32..).zip(&sizes) {
            let (features, weights) = sets.weighted_features(page, &mut scratch)?;
            prefix.fill(features, weights, rarity, sharing.prefix_threshold());
            // Coverage is looked up from the lighter page, which knows nothing of the heavier one's
            // rarest features: all of them are indexed.
            let indexed = if sharing.measure == Measure::Coverage { features.len() } else { prefix.length };
            for (at, &((_, feature), weight)) in prefix.ranked()[..indexed].iter().enumerate() {
                rows.push(Row { feature, place, weight, in_prefix: at < prefix.length });
            }
            let last = prefix.length.checked_sub(1).map_or((0, 0), |last| prefix.ranked()[last].0);
            rests.push((prefix.rest, last));
        }
        rows.par_sort_unstable_by_key(|row| (row.feature, row.place));
        let mut index = Index {
            order: sizes.iter().map(|row| row.1).collect(),
            totals: sizes.iter().map(|row| row.0).collect(),
            rests,
            weights: Vec::new(),
            starts: vec![0],
            places: Vec::new(),
            own_starts: vec![0; sizes.len() + 1],
            own_lists: Vec::new(),
        };
        // A feature that one page has brings nobody together.
        rows = keep_shared(rows);
        let mut own: Vec<(u32, u32)> = Vec::new();
        for list in rows.chunk_by(|a, b| a.feature == b.feature) {
            let number = u32::try_from(index.weights.len()).map_err(|_| too_many_features())?;
            index.weights.push(list[0].weight);
            index.places.extend(list.iter().map(|row| row.place));
            index.starts.push(index.places.len());
            own.extend(list.iter().filter(|row| row.in_prefix).map(|row| (row.place, number)));
        }
        own.par_sort_unstable();
        for &(place, _) in &own {
            index.own_starts[place as usize + 1] += 1;
        }
        for place in 0..sizes.len() {
            index.own_starts[place + 1] += index.own_starts[place];
        }
        index.own_lists = own.into_iter().map(|row| row.1).collect();
        Ok(index)
    }

    /// Leaves the candidates of one page in `lookup.found`: those before it for a Jaccard similarity, those behind it, which
    /// are heavier, for coverage.
    fn look_up(
        &self,
        place: usize,
        sharing: Sharing,
        is_wanted: &(dyn Fn(PageId, PageId) -> bool + Sync),
        lookup: &mut Lookup,
    ) -> Collisions {
        let mut met = Collisions::default();
        let total = self.totals[place];
        let is_coverage = sharing.measure == Measure::Coverage;
        let lightest = sharing.lightest(total);
        let from = if sharing.size_filter && !is_coverage {
            self.totals.partition_point(|&other| (other as f64) < lightest)
        } else {
            0
        };
        for &list in &self.own_lists[self.own_starts[place]..self.own_starts[place + 1]] {
            let list = list as usize;
            let places = &self.places[self.starts[list]..self.starts[list + 1]];
            let here = places.partition_point(|&other| (other as usize) < place);
            let (others, skipped) = if is_coverage {
                (&places[here + 1..], 0)
            } else {
                let skipped = places[..here].partition_point(|&other| (other as usize) < from);
                (&places[skipped..here], skipped)
            };
            met.all += (others.len() + skipped) as u64;
            met.filtered += skipped as u64;
            for &other in others {
                lookup.add(other, self.weights[list]);
            }
        }
        let (rest, last) = self.rests[place];
        lookup.found.clear();
        for other in lookup.met.drain(..) {
            let at = other as usize;
            let shared = std::mem::take(&mut lookup.shared[at]);
            let (other_rest, other_last) = self.rests[at];
            // Behind the prefix that ends first, nothing was counted; no more than that can come.
            let left = if is_coverage || last <= other_last { rest } else { other_rest };
            let needed = sharing.needed(total, self.totals[at]);
            if (shared + left) as f64 >= needed * (1.0 - 1e-9) && is_wanted(self.order[place], self.order[at]) {
                lookup.found.push(other);
            }
        }
        met
    }
}

/// Of a number of places, which are those of pages.
fn as_u32(places: usize) -> u32 {
    u32::try_from(places).expect("pages, and so their places, are numbered by 32 bits")
}

fn too_many_features() -> Error {
    let reason = "finds pages by the features that they share, and here more than 2^32 are shared; split the input, or use `method` minhash";
    Error::conflict("method", reason)
}

fn keep_shared(rows: Vec<Row>) -> Vec<Row> {
    let is_shared = |at: usize, rows: &[Row]| {
        let feature = rows[at].feature;
        (at > 0 && rows[at - 1].feature == feature) || rows.get(at + 1).is_some_and(|next| next.feature == feature)
    };
    let shared: Vec<bool> = (0..rows.len()).map(|at| is_shared(at, &rows)).collect();
    rows.into_iter().zip(shared).filter_map(|(row, is_shared)| is_shared.then_some(row)).collect()
}

/// What one page shares with those it has met; one per thread.
struct Lookup {
    shared: Vec<u64>,
    met: Vec<u32>,
    /// The places of the last page's candidates.
    found: Vec<u32>,
}

impl Lookup {
    fn new(pages: usize) -> Lookup {
        Lookup { shared: vec![0; pages], met: Vec::new(), found: Vec::new() }
    }

    #[inline]
    fn add(&mut self, place: u32, weight: u32) {
        let shared = &mut self.shared[place as usize];
        if *shared == 0 {
            self.met.push(place);
        }
        *shared += u64::from(weight);
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers
mod tests {
    use super::*;
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
        let (found, _) = join(&stored, everyone(&pages), CROWDED).unwrap();
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
                    let (found, met) = join(&stored, everyone(&pages), sharing).unwrap();
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
            join(&stored, everyone(&[0, 1, 2, 3].map(PageId::new)), sharing).unwrap()
        };
        let ((with, met), (without, all)) = (of(true), of(false));
        let expected = [(1, 2), (1, 3), (2, 3)].map(|(left, right)| (PageId::new(left), PageId::new(right)));
        assert_eq!(with.pairs, expected);
        assert_eq!(with.pairs, without.pairs);
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
        let (found, _) = join(&stored, everyone(&pages), CROWDED).unwrap();
        assert_eq!(found.crowded.len(), 1);
        assert_eq!(found.crowded[0].members.len(), 49);
        assert_eq!(found.pairs, [(PageId::new(20), PageId::new(49))], "the best-ranked of the crowd stands for it");
    }
}
