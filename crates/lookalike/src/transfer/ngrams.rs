//! Two pages, compared by word n-grams of 1 to 8: what the report on transferred judgments is made of.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::candidate::hamming_join::{QueryTables, join_design};
use crate::feature::shingle::{into_set, shingles};
use crate::page::Token;
use crate::plan::design::Design;
use crate::plan::layout;
use crate::sketch::minhash::MinHasher;
use crate::sketch::simhash::fingerprint;
use crate::sketch::supershingle::Bands;
use crate::verify::jaccard::{jaccard, shared};

/// The lengths that are compared.
pub(super) const LENGTHS: std::ops::RangeInclusive<usize> = 1..=8;
pub(super) const COUNT: usize = 8;

/// A hash of a sequence of tokens.
pub(super) fn sequence_hash(tokens: &[Token]) -> u64 {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    xxh3_64(&bytes)
}

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

/// Pages by their fingerprints, and who is near which.
pub(super) struct NearFingerprints {
    radius: u32,
    design: Design,
    values: Vec<u64>,
    pages: HashMap<u64, Vec<u32>>,
}

impl NearFingerprints {
    pub(super) fn new(rows: impl Iterator<Item = (u32, u64)>, others: u64, radius: u32) -> NearFingerprints {
        let mut pages: HashMap<u64, Vec<u32>> = HashMap::new();
        rows.for_each(|(page, value)| pages.entry(value).or_default().push(page));
        let mut values: Vec<u64> = pages.keys().copied().collect();
        values.sort_unstable();
        let design = join_design(values.len() as u64, others, radius);
        NearFingerprints { radius, design, values, pages }
    }

    pub(super) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Tables to look things up in.
    pub(super) fn tables(&self) -> QueryTables<'_> {
        QueryTables::new(&self.values, &self.design)
    }

    /// The pages near each of `values`: the place in `values`, the page, and the distance.
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
                found.extend(self.pages.get(&known).into_iter().flatten().map(|&page| (at, page, distance)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The pages with exactly this fingerprint.
    pub(super) fn pages_with(&self, value: u64) -> &[u32] {
        self.pages.get(&value).map_or(&[], Vec::as_slice)
    }
}

/// MinHash bands of n-grams: pages that share one are worth comparing.
pub(super) struct BandTable {
    n: usize,
    hasher: MinHasher,
    bands: Bands,
    pages: HashMap<(u32, u64), Vec<u32>>,
}

/// Buffers for making sketches.
#[derive(Default)]
pub(super) struct NgramScratch {
    sequence: Vec<u64>,
    narrow: Vec<u32>,
    minima: Vec<u32>,
    bytes: Vec<u8>,
}

impl BandTable {
    pub(super) fn new(n: usize, threshold: f64, seed: u64) -> BandTable {
        let bands = layout::choose(threshold, 0.99).bands;
        BandTable { n, hasher: MinHasher::new(bands.functions(), seed), bands, pages: HashMap::new() }
    }

    fn keys(&self, tokens: &[Token], scratch: &mut NgramScratch, mut emit: impl FnMut((u32, u64))) {
        shingles(tokens, self.n, &mut scratch.sequence);
        into_set(&mut scratch.sequence);
        if scratch.sequence.is_empty() {
            return;
        }
        self.hasher.min_values(&scratch.sequence, &mut scratch.narrow, &mut scratch.minima);
        for key in (0u32..).zip(self.bands.keys(&scratch.minima, &mut scratch.bytes)) {
            emit(key);
        }
    }

    pub(super) fn add(&mut self, page: u32, tokens: &[Token], scratch: &mut NgramScratch) {
        let mut keys = Vec::new();
        self.keys(tokens, scratch, |key| keys.push(key));
        keys.into_iter().for_each(|key| self.pages.entry(key).or_default().push(page));
    }

    /// The pages that share a band.
    pub(super) fn find(&self, tokens: &[Token], scratch: &mut NgramScratch) -> Vec<u32> {
        let mut found = Vec::new();
        self.keys(tokens, scratch, |key| found.extend(self.pages.get(&key).into_iter().flatten()));
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The SimHash fingerprint of n-grams, each as often as it occurs.
pub(super) fn simhash(tokens: &[Token], n: usize, scratch: &mut NgramScratch) -> Option<u64> {
    shingles(tokens, n, &mut scratch.sequence);
    (!scratch.sequence.is_empty()).then(|| fingerprint(&scratch.sequence))
}
