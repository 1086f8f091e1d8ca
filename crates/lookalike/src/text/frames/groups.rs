//! Pages with like markup: which group a page belongs to.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use crate::text::frames::BlockFacts;

/// Bins of a signature.
pub(super) const BINS: usize = 128;
/// A bin that nothing fell into.
const EMPTY_BIN: u32 = u32::MAX;
/// Blocks of at most so many words are what a menu consists of.
const MENU_WORDS: u32 = 6;

/// The markup of a page, with or without its menus, as numbers that can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MarkupSignature {
    /// Pages of different hosts have nothing in common; empty where it is not known.
    #[serde(serialize_with = "serialize_host", deserialize_with = "deserialize_host")]
    pub(super) host: Arc<str>,
    pub(super) bins: Vec<u32>,
    /// The bins that something fell into, as bits.
    filled: u128,
}

fn serialize_host<S: Serializer>(host: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(host)
}

fn deserialize_host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    Ok(String::deserialize(deserializer)?.into())
}

/// Bins by the hash that falls into each: the smallest stays.
struct Bins(Vec<u32>);

impl Bins {
    fn add(&mut self, feature: u64, kind: u64) {
        let hash = (feature ^ kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let hash = hash ^ (hash >> 32);
        #[allow(clippy::cast_possible_truncation)] // the lower half, and seven bits of the upper one
        let (value, bin) = (hash as u32, (hash >> 57) as usize);
        self.0[bin] = self.0[bin].min(value.min(EMPTY_BIN - 1));
    }
}

impl MarkupSignature {
    /// Of the names in the markup and the places of blocks alone.
    pub(in crate::text) fn of_names(host: Option<&str>, names: &[u64], blocks: &[BlockFacts]) -> MarkupSignature {
        let mut bins = Bins(vec![EMPTY_BIN; BINS]);
        names.iter().for_each(|&name| bins.add(name, 1));
        blocks.iter().for_each(|block| bins.add(block.path, 2));
        MarkupSignature::of_bins(host.unwrap_or_default(), bins.0)
    }

    /// The same with short blocks, of a signature without them.
    pub(in crate::text) fn with_menus(&self, blocks: &[BlockFacts]) -> MarkupSignature {
        let mut bins = Bins(self.bins.clone());
        blocks.iter().filter(|block| block.words <= MENU_WORDS).for_each(|block| bins.add(block.hash, 3));
        MarkupSignature::of_bins(&self.host, bins.0)
    }

    /// What stands for the site of a page of which nothing else is known.
    pub(in crate::text) fn site(&self) -> u64 {
        let bytes: Vec<u8> = match self.host.is_empty() {
            true => self.bins.iter().flat_map(|bin| bin.to_le_bytes()).collect(),
            false => self.host.as_bytes().to_vec(),
        };
        xxh3_64(&bytes).max(1)
    }

    /// Bins that have the same value in both.
    fn shared_with(&self, other: &MarkupSignature) -> u32 {
        let equal = self.bins.iter().zip(&other.bins).map(|(&own, &theirs)| own == theirs && own != EMPTY_BIN);
        equal.map(u32::from).sum()
    }

    pub(in crate::text) fn into_bins(self) -> Vec<u32> {
        self.bins
    }

    pub(in crate::text) fn of_bins(host: &str, bins: Vec<u32>) -> MarkupSignature {
        let half =
            |bins: &[u32]| bins.iter().rev().fold(0u64, |bits, &value| bits << 1 | u64::from(value != EMPTY_BIN));
        let (low, high) = bins.split_at(bins.len().min(BINS / 2));
        let filled = u128::from(half(low)) | u128::from(half(high)) << (BINS / 2);
        MarkupSignature { host: host.into(), bins, filled }
    }
}

/// How alike the markup of two pages is, by the bins of their signatures, 0..1.
pub(crate) fn markup_similarity(left: &[u32], right: &[u32]) -> f64 {
    let (mut equal, mut either) = (0u32, 0u32);
    for (&left, &right) in left.iter().zip(right) {
        equal += u32::from(left == right && left != EMPTY_BIN);
        either += u32::from(left != EMPTY_BIN || right != EMPTY_BIN);
    }
    f64::from(equal) / f64::from(either.max(1))
}

/// What stands for the markup of a page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::text) struct PageSignatures {
    pub(in crate::text) markup: MarkupSignature,
    pub(in crate::text) markup_and_menus: MarkupSignature,
}

impl PageSignatures {
    /// The same of a page whose host is not known.
    pub(super) fn without_host(&self) -> PageSignatures {
        let without = |signature: &MarkupSignature| MarkupSignature { host: "".into(), ..signature.clone() };
        PageSignatures { markup: without(&self.markup), markup_and_menus: without(&self.markup_and_menus) }
    }
}

/// Groups of pages with like markup, each by the first page that was in it.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    pub(super) least: f64,
    pub(super) leaders: Vec<MarkupSignature>,
    by_host: HashMap<Arc<str>, HostLeaders>,
}

/// The leaders of a host.
#[derive(Debug, Clone, Default)]
struct HostLeaders {
    groups: Vec<u32>,
    /// The bins of each leader that something fell into.
    filled: Vec<u128>,
    /// For each bin, a byte of the value that each leader has in it.
    columns: Vec<Vec<u8>>,
}

/// A byte that is the same for equal values.
fn byte_of(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

impl Groups {
    pub(super) fn new(least: f64) -> Groups {
        Groups { least, leaders: Vec::new(), by_host: HashMap::new() }
    }

    pub(super) fn add(&mut self, leader: MarkupSignature) -> u32 {
        let group = u32::try_from(self.leaders.len()).expect("there are fewer groups than pages");
        let host = self.by_host.entry(Arc::clone(&leader.host)).or_default();
        host.groups.push(group);
        host.filled.push(leader.filled);
        host.columns.resize(leader.bins.len(), Vec::new());
        host.columns.iter_mut().zip(&leader.bins).for_each(|(column, &value)| column.push(byte_of(value)));
        self.leaders.push(leader);
        group
    }

    /// The group that a page belongs to: the one with the most similar leader; where any similarity is enough, the first
    /// one of its host.
    pub(super) fn find(&self, page: &MarkupSignature) -> Option<u32> {
        let host = self.by_host.get(&page.host)?;
        if self.least <= 0.0 {
            return host.groups.first().copied();
        }
        // Equal bytes are at least as many as equal values, and sixteen leaders are looked at at once: few are left.
        let mut most_shared = vec![0u8; host.groups.len()];
        for (column, &value) in host.columns.iter().zip(&page.bins).filter(|(_, value)| **value != EMPTY_BIN) {
            let byte = byte_of(value);
            most_shared.iter_mut().zip(column).for_each(|(shared, &theirs)| *shared += u8::from(theirs == byte));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of at most BINS
        let least_shared = (self.least * f64::from(page.filled.count_ones())) as u8;
        let mut best: Option<(f64, u32)> = None;
        let close = most_shared.iter().enumerate().filter(|(_, shared)| **shared >= least_shared);
        for (at, &most) in close {
            let all = f64::from((page.filled | host.filled[at]).count_ones());
            let least = best.map_or(self.least, |best| best.0);
            if f64::from(most) / all < least {
                continue;
            }
            let group = host.groups[at];
            let similarity = f64::from(page.shared_with(&self.leaders[group as usize])) / all;
            // Of equals the first counts.
            if similarity >= self.least && best.is_none_or(|best| similarity > best.0) {
                best = Some((similarity, group));
            }
        }
        best.map(|best| best.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_page_is_in_the_group_of_the_leader_that_is_most_like_it(
            leaders in prop::collection::vec((0usize..6, prop::collection::vec((0usize..BINS, 0u32..3), 0..40)), 1..40),
            page in (0usize..6, prop::collection::vec((0usize..BINS, 0u32..3), 0..40)),
            least in 0.01f64..0.9,
        ) {
            // Values that are equal in their lowest byte and differ in others.
            let signature = |(kind, bins): &(usize, Vec<(usize, u32)>)| {
                let mut all: Vec<u32> = vec![EMPTY_BIN; BINS];
                (0..BINS).step_by(2 + kind / 2).for_each(|bin| all[bin] = 7);
                bins.iter().for_each(|&(bin, value)| all[bin] = [EMPTY_BIN, 7, 7 + 256][value as usize]);
                MarkupSignature::of_bins("", all)
            };
            let mut groups = Groups::new(least);
            leaders.iter().for_each(|leader| { groups.add(signature(leader)); });
            let page = signature(&page);
            let filled: Vec<usize> = (0..BINS).filter(|&bin| page.bins[bin] != EMPTY_BIN).collect();
            prop_assert_eq!(page.filled, filled.iter().fold(0u128, |bits, &bin| bits | 1 << bin));
            let mut expected: Option<(f64, usize)> = None;
            for (group, leader) in leaders.iter().enumerate() {
                let similarity = markup_similarity(&signature(leader).bins, &page.bins);
                if similarity >= least && expected.is_none_or(|best| similarity > best.0) {
                    expected = Some((similarity, group));
                }
            }
            prop_assert_eq!(groups.find(&page).map(|group| group as usize), expected.map(|best| best.1));
        }
    }
}
