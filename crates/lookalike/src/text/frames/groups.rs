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

    pub(in crate::text) fn into_bins(self) -> Vec<u32> {
        self.bins
    }

    pub(in crate::text) fn of_bins(host: &str, bins: Vec<u32>) -> MarkupSignature {
        let filled = bins.iter().enumerate().filter(|(_, value)| **value != EMPTY_BIN);
        let filled = filled.fold(0, |bits, (bin, _)| bits | 1 << bin);
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
    /// For each bin, the values that the leaders have in it.
    columns: Vec<Vec<u32>>,
}

impl Groups {
    pub(super) fn new(least: f64) -> Groups {
        Groups { least, leaders: Vec::new(), by_host: HashMap::new() }
    }

    pub(super) fn add(&mut self, leader: MarkupSignature) -> u32 {
        let group = u32::try_from(self.leaders.len()).expect("there are fewer groups than pages");
        let host = self.by_host.entry(Arc::clone(&leader.host)).or_default();
        host.groups.push(group);
        host.columns.resize(leader.bins.len(), Vec::new());
        host.columns.iter_mut().zip(&leader.bins).for_each(|(column, &value)| column.push(value));
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
        let mut shared = vec![0u32; host.groups.len()];
        for (column, &value) in host.columns.iter().zip(&page.bins).filter(|(_, value)| **value != EMPTY_BIN) {
            shared.iter_mut().zip(column).for_each(|(shared, &theirs)| *shared += u32::from(theirs == value));
        }
        let near = shared.into_iter().zip(&host.groups).map(|(shared, &group)| {
            let all = (page.filled | self.leaders[group as usize].filled).count_ones();
            (f64::from(shared) / f64::from(all), group)
        });
        near.filter(|row| row.0 >= self.least)
            .max_by(|one, two| one.0.total_cmp(&two.0).then(two.1.cmp(&one.1)))
            .map(|row| row.1)
    }
}
