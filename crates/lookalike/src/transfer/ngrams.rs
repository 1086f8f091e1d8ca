//! Two pages, compared by word n-grams of 1 to 8: what the report on judgments is made of.

use std::collections::HashMap;

use crate::candidate::hamming_join::{QueryTables, join_design};
use crate::feature::shingle::{into_set, shingles};
use crate::page::Token;
use crate::plan::design::Design;
use crate::plan::layout;
use crate::sketch::minhash::MinHasher;
use crate::sketch::simhash::fingerprint;
use crate::sketch::supershingle::Bands;
use crate::verify::jaccard::{jaccard, shared};

/// The lengths that are looked at.
pub(super) const LENGTHS: std::ops::RangeInclusive<usize> = 1..=8;
pub(super) const COUNT: usize = 8;

/// The exact Jaccard similarity of two pages' n-grams.
pub(super) fn similarity(left: &[Token], right: &[Token], n: usize) -> f64 {
    let set = |tokens: &[Token]| {
        let mut features = Vec::new();
        shingles(tokens, n, &mut features);
        into_set(&mut features);
        features
    };
    let (left, right) = (set(left), set(right));
    if left.is_empty() || right.is_empty() {
        return 0.0;
    }
    jaccard(shared(&left, &right), left.len(), right.len())
}

/// Who has which fingerprint.
pub(super) struct Near {
    radius: u32,
    design: Design,
    values: Vec<u64>,
    who: HashMap<u64, Vec<u32>>,
}

impl Near {
    pub(super) fn new(rows: impl Iterator<Item = (u32, u64)>, others: u64, radius: u32) -> Near {
        let mut who: HashMap<u64, Vec<u32>> = HashMap::new();
        rows.for_each(|(page, value)| who.entry(value).or_default().push(page));
        let mut values: Vec<u64> = who.keys().copied().collect();
        values.sort_unstable();
        let design = join_design(values.len() as u64, others, radius);
        Near { radius, design, values, who }
    }

    pub(super) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Tables to look things up in.
    pub(super) fn tables(&self) -> QueryTables<'_> {
        QueryTables::new(&self.values, &self.design)
    }

    /// Who is near which of `values`: the place in `values`, who, and the distance.
    pub(super) fn find(&self, tables: &QueryTables<'_>, values: &[u64]) -> Vec<(usize, u32, u32)> {
        if self.values.is_empty() || values.is_empty() {
            return Vec::new();
        }
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        values.iter().enumerate().for_each(|(at, &value)| places.entry(value).or_default().push(at));
        let mut found = Vec::new();
        for (known, value) in tables.join(values, self.radius) {
            let distance = (known ^ value).count_ones();
            for &at in places.get(&value).into_iter().flatten() {
                found.extend(self.who.get(&known).into_iter().flatten().map(|&page| (at, page, distance)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Who has exactly this fingerprint.
    pub(super) fn who(&self, value: u64) -> &[u32] {
        self.who.get(&value).map_or(&[], Vec::as_slice)
    }
}

/// MinHash bands of n-grams: pages that share one are worth comparing.
pub(super) struct BandTable {
    n: usize,
    hasher: MinHasher,
    bands: Bands,
    who: HashMap<(u32, u64), Vec<u32>>,
}

/// Room for making sketches.
#[derive(Default)]
pub(super) struct Room {
    sequence: Vec<u64>,
    narrow: Vec<u32>,
    minima: Vec<u32>,
    bytes: Vec<u8>,
}

impl BandTable {
    pub(super) fn new(n: usize, threshold: f64, seed: u64) -> BandTable {
        let bands = layout::choose(threshold, 0.99).bands;
        BandTable { n, hasher: MinHasher::new(bands.functions(), seed), bands, who: HashMap::new() }
    }

    fn keys(&self, tokens: &[Token], room: &mut Room, mut tell: impl FnMut((u32, u64))) {
        shingles(tokens, self.n, &mut room.sequence);
        into_set(&mut room.sequence);
        if room.sequence.is_empty() {
            return;
        }
        self.hasher.min_values(&room.sequence, &mut room.narrow, &mut room.minima);
        for key in (0u32..).zip(self.bands.keys(&room.minima, &mut room.bytes)) {
            tell(key);
        }
    }

    pub(super) fn add(&mut self, page: u32, tokens: &[Token], room: &mut Room) {
        let mut keys = Vec::new();
        self.keys(tokens, room, |key| keys.push(key));
        keys.into_iter().for_each(|key| self.who.entry(key).or_default().push(page));
    }

    /// Who shares a band.
    pub(super) fn find(&self, tokens: &[Token], room: &mut Room) -> Vec<u32> {
        let mut found = Vec::new();
        self.keys(tokens, room, |key| found.extend(self.who.get(&key).into_iter().flatten()));
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The SimHash fingerprint of n-grams, each as often as it occurs.
pub(super) fn simhash(tokens: &[Token], n: usize, room: &mut Room) -> Option<u64> {
    shingles(tokens, n, &mut room.sequence);
    (!room.sequence.is_empty()).then(|| fingerprint(&room.sequence))
}
