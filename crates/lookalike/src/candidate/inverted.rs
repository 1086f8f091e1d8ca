//! Pages that share enough features, by an inverted index.
//!
//! In: the feature sets of pages, and how much of them two pages must share. Out: every pair that
//! can reach it, few others. Features are ordered from rare to frequent; two pages that share enough
//! share one of their rarest, so only those are indexed and looked up (prefix filter). Pages of very
//! different sizes are passed over (size filter), and a pair is given up as soon as what is left of
//! the two pages cannot reach the threshold any more. None of this changes the result.
//! Web-archives paper, §4; Bayardo et al. 2007; Xiao et al. 2008.

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::candidate::band_join::{Candidates, CrowdedBucket};
use crate::candidate::rarity::{Prefix, Rarity};
use crate::error::Result;
use crate::method::Measure;
use crate::page::PageId;
use crate::spill::{Fixed, Scratch};
use crate::verify::sets::{PageSets, Room};

/// Pages that are looked up by one thread at a time.
const PAGES_A_TASK: usize = 256;

/// How much two pages must share.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// Of what.
    pub measure: Measure,
    /// How much.
    pub threshold: f64,
    /// Whether pages are passed over by their size.
    pub size_filter: bool,
    /// Pages with the same set beyond this number are one crowd.
    pub bucket_limit: usize,
}

impl Sharing {
    /// The weight that two pages of these weights must share.
    fn needed(self, left: u64, right: u64) -> f64 {
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
    /// Those that the filter passed over.
    pub passed_over: u64,
}

/// Finds the candidates among `pages`, which are ascending.
///
/// # Errors
/// When sets that were spilled to disk cannot be read back.
pub fn join(
    sets: &PageSets,
    pages: &[PageId],
    sharing: Sharing,
    filter: &(dyn Fn(PageId, PageId) -> bool + Sync),
) -> Result<(Candidates, Collisions)> {
    let (pages, crowded) = without_crowds(sets, pages, sharing.bucket_limit)?;
    let rarity = Rarity::of(sets, &pages)?;
    let index = Index::new(sets, &pages, sharing, &rarity)?;
    let found: Vec<(Vec<(PageId, PageId)>, Collisions)> = (0..index.order.len())
        .into_par_iter()
        .with_min_len(PAGES_A_TASK)
        .map_init(|| Lookup::new(index.order.len()), |lookup, place| index.look_up(place, sharing, filter, lookup))
        .collect();
    let mut collisions = Collisions::default();
    let mut pairs = Vec::new();
    for (more, met) in found {
        pairs.extend(more);
        collisions.all += met.all;
        collisions.passed_over += met.passed_over;
    }
    pairs.par_sort_unstable();
    Ok((Candidates { pairs, crowded }, collisions))
}

/// Pages with the very same features: where there are many, one stands for all in the index.
fn without_crowds(sets: &PageSets, pages: &[PageId], limit: usize) -> Result<(Vec<PageId>, Vec<CrowdedBucket>)> {
    let mut hashes = Vec::new();
    let (mut room, mut bytes) = (Scratch::default(), Vec::new());
    for &page in pages {
        let features = sets.features(page, &mut room)?;
        if !features.is_empty() {
            bytes.clear();
            u64::encode(features, &mut bytes);
            hashes.push((xxh3_64(&bytes), page));
        }
    }
    hashes.par_sort_unstable();
    let (mut single, mut crowded) = (Vec::new(), Vec::new());
    for same in hashes.chunk_by(|a, b| a.0 == b.0) {
        if same.len() > limit {
            single.push(same[0].1);
            crowded.push(CrowdedBucket { band: 0, members: same.iter().map(|row| row.1).collect() });
        } else {
            single.extend(same.iter().map(|row| row.1));
        }
    }
    single.sort_unstable();
    crowded.sort_by(|a, b| a.members.cmp(&b.members));
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
        let (mut room, mut prefix) = (Room::default(), Prefix::default());
        let mut sizes = Vec::with_capacity(pages.len());
        for &page in pages {
            let (features, weights) = sets.weighted_features(page, &mut room)?;
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
            let (features, weights) = sets.weighted_features(page, &mut room)?;
            prefix.fill(features, weights, rarity, sharing.threshold);
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
            let number = u32::try_from(index.weights.len()).unwrap_or(u32::MAX);
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

    /// The candidates of one page: those before it for a Jaccard similarity, those behind it, which
    /// are heavier, for coverage.
    fn look_up(
        &self,
        place: usize,
        sharing: Sharing,
        filter: &(dyn Fn(PageId, PageId) -> bool + Sync),
        lookup: &mut Lookup,
    ) -> (Vec<(PageId, PageId)>, Collisions) {
        let mut met = Collisions::default();
        let total = self.totals[place];
        let is_coverage = sharing.measure == Measure::Coverage;
        // Rounding must not pass over a page that just reaches the threshold.
        let lightest = sharing.threshold * total as f64 * (1.0 - 1e-9);
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
            met.passed_over += skipped as u64;
            for &other in others {
                lookup.add(other, self.weights[list]);
            }
        }
        let mut pairs = Vec::new();
        let (rest, last) = self.rests[place];
        for other in lookup.met.drain(..) {
            let at = other as usize;
            let shared = std::mem::take(&mut lookup.shared[at]);
            let (other_rest, other_last) = self.rests[at];
            // Behind the prefix that ends first, nothing was counted; no more than that can come.
            let left = if is_coverage || last <= other_last { rest } else { other_rest };
            let needed = sharing.needed(total, self.totals[at]);
            let (page, candidate) = (self.order[place], self.order[at]);
            if (shared + left) as f64 >= needed * (1.0 - 1e-9) && filter(page, candidate) {
                pairs.push((page.min(candidate), page.max(candidate)));
            }
        }
        (pairs, met)
    }
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
}

impl Lookup {
    fn new(pages: usize) -> Lookup {
        Lookup { shared: vec![0; pages], met: Vec::new() }
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

    /// Sets in which the feature n weighs 1 + n mod 3, or 1.
    fn page_sets(sets: &[BTreeSet<u64>], weighted: bool, directory: &std::path::Path) -> PageSets {
        let mut stored = PageSets::new(directory, 1 << 20, 0, weighted);
        for (page, set) in (0u32..).zip(sets) {
            let features: Vec<u64> = set.iter().map(|n| n * 0x9e37_79b9).collect();
            let weights: Vec<u32> =
                if weighted { set.iter().map(|n| 1 + (n % 3) as u32).collect() } else { Vec::new() };
            stored.push(page, &features, &weights, &[]).unwrap();
        }
        stored.finish().unwrap();
        stored
    }

    proptest! {
        #[test]
        fn every_pair_that_shares_enough_is_found(
            sets in prop::collection::vec(prop::collection::btree_set(0u64..25, 0..14), 1..40),
            threshold in prop::sample::select(vec![0.1, 0.25, 0.5, 0.7, 1.0]),
            weighted in any::<bool>(),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let stored = page_sets(&sets, weighted, directory.path());
            let pages: Vec<PageId> = (0..).take(sets.len()).collect();
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
                            expected.insert((left as PageId, right as PageId));
                        }
                    }
                }
                let mut results = Vec::new();
                for size_filter in [true, false] {
                    let sharing = Sharing { measure, threshold, size_filter, bucket_limit: 100 };
                    let (found, met) = join(&stored, &pages, sharing, &|_, _| true).unwrap();
                    let pairs: BTreeSet<_> = found.pairs.iter().copied().collect();
                    prop_assert_eq!(pairs.len(), found.pairs.len(), "each pair once");
                    prop_assert!(expected.is_subset(&pairs), "{:?} not all in {:?}", expected, pairs);
                    prop_assert!(size_filter || met.passed_over == 0);
                    results.push((expected.iter().filter(|pair| pairs.contains(*pair)).count(), met.all));
                }
                prop_assert_eq!(results[0].0, results[1].0, "the size filter changes no result");
            }
        }
    }

    #[test]
    fn many_pages_with_the_same_features_are_a_crowd() {
        let directory = tempfile::tempdir().unwrap();
        let same: BTreeSet<u64> = (0..10).collect();
        let other: BTreeSet<u64> = (0..9).collect();
        let sets: Vec<BTreeSet<u64>> =
            (0..50).map(|page| if page == 20 { other.clone() } else { same.clone() }).collect();
        let stored = page_sets(&sets, false, directory.path());
        let pages: Vec<PageId> = (0..50).collect();
        let sharing = Sharing { measure: Measure::Jaccard, threshold: 0.5, size_filter: true, bucket_limit: 10 };
        let (found, _) = join(&stored, &pages, sharing, &|_, _| true).unwrap();
        assert_eq!(found.crowded.len(), 1);
        assert_eq!(found.crowded[0].members.len(), 49);
        assert_eq!(found.pairs, [(0, 20)]);
    }
}
