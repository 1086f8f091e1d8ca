//! Pages that are probably compared: what they are compared by is kept from the first reading, so that they need not be read again.
//!
//! In: the band keys of each page, as it is read. Out: a guess whether it shares some with a page before it. A wrong guess costs
//! time or memory, and changes nothing else: candidates are found as if nobody had guessed, and those whose features are not here are
//! read again. What is kept takes a share of the memory; once that is full, nothing more is, and near the ceiling nothing at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Result;
use crate::job::dedup::Run;
use crate::job::dedup::limits::FEATURES_SHARE;
use crate::kernel::mix;
use crate::plan::Search;
use crate::read::Corpus;
use crate::sketch::page_sets::{PageSets, SetBatch};
use crate::sketcher::NO_KEY;

/// The share of the memory that what is kept may take, beside columns and table.
const LIKELY_SHARE: f64 = 0.4;
/// With less than that, it is left for other things.
const LEAST_BYTES: usize = 32 << 20;
/// Keys that a page must share: one is often shared by chance.
const LEAST_SHARED: u32 = 2;
/// Bits of the filter for each expected key, and at the most in all: 16 MiB.
const BITS_PER_KEY: u64 = 32;
const MOST_BITS: u64 = 1 << 27;
/// Bytes of input for a page, at a guess.
const BYTES_PER_PAGE: u64 = 2048;
/// Words of a page of memory, at the least.
const PAGE_WORDS: usize = 4096 / size_of::<u64>();
/// Room is made at once for so many bytes at the most: it is not touched before it is needed.
const MOST_RESERVED_BYTES: u64 = 1 << 30;

/// The guesses of a run.
pub(super) struct LikelyPages {
    bands: usize,
    /// A bit for every key that was seen.
    seen: Vec<AtomicU64>,
    is_over: AtomicBool,
}

impl LikelyPages {
    fn new(bands: usize, keys: u64) -> LikelyPages {
        let bits = keys.saturating_mul(BITS_PER_KEY).clamp(1 << 16, MOST_BITS).next_power_of_two();
        let seen: Vec<AtomicU64> = (0..bits / 64).map(|_| AtomicU64::new(0)).collect();
        // Memory that is read before it is written is given twice: first a page that all share, and then, with a halt of all
        // cores, one of its own.
        seen.iter().step_by(PAGE_WORDS).for_each(|word| word.store(0, Ordering::Relaxed));
        LikelyPages { bands, seen, is_over: AtomicBool::new(false) }
    }

    /// Whether a page probably is like one that was seen before it; a page with all keys in common rather is its copy, and copies
    /// are not compared.
    pub(super) fn is_likely(&self, columns: &[u64]) -> bool {
        if self.is_over.load(Ordering::Relaxed) {
            return false;
        }
        let (mut shared, mut keys) = (0, 0);
        for (band, &key) in (1u64..).zip(&columns[..self.bands]).filter(|row| *row.1 != NO_KEY) {
            let hash = mix(key ^ band.rotate_right(8));
            let bit = 1 << (hash >> 58);
            // As many words as a power of two.
            let word = &self.seen[usize::try_from(hash).unwrap_or(usize::MAX) & (self.seen.len() - 1)];
            keys += 1;
            let before = word.load(Ordering::Relaxed);
            shared += u32::from(before & bit != 0);
            // Not as one step, which would wait for memory each time: a bit that is lost to another thread is a guess less.
            word.store(before | bit, Ordering::Relaxed);
        }
        (LEAST_SHARED..keys).contains(&shared)
    }
}

/// What is kept of them.
pub(super) struct LikelySets {
    /// Who guesses.
    pub(super) pages: Arc<LikelyPages>,
    sets: PageSets,
    bytes: usize,
}

impl LikelySets {
    /// Adds the pages of a batch that begins with the page `start`, as far as there is room; says whether what was kept before still
    /// has its place.
    pub(super) fn append(&mut self, batch: &SetBatch, start: usize, limit_bytes: usize) -> Result<bool> {
        let bytes = self.bytes + batch.memory_bytes();
        if bytes > limit_bytes {
            self.pages.is_over.store(true, Ordering::Relaxed);
        } else if !self.pages.is_over.load(Ordering::Relaxed) {
            self.sets.append(batch, start)?;
            self.bytes = bytes;
        }
        Ok(self.bytes <= limit_bytes)
    }

    /// What was kept.
    pub(super) fn into_sets(self) -> PageSets {
        self.sets
    }
}

impl Run<'_> {
    /// Keeps what likely candidates are compared by, where that saves reading them again.
    pub(super) fn likely_sets(&self, corpus: &Corpus) -> Option<LikelySets> {
        let bands = self.plan.columns().bands;
        let finds_by_bands = matches!(self.plan.search, Search::Bands) && bands > 2 * LEAST_SHARED as usize;
        let room = self.spill_limit(0, LIKELY_SHARE);
        if !finds_by_bands || self.config.pairs.exact_only || self.plan.keeps_features() || room < LEAST_BYTES {
            return None;
        }
        let pages = LikelyPages::new(bands, corpus.bytes() / BYTES_PER_PAGE * bands as u64);
        let limit = self.spill_limit(0, FEATURES_SHARE);
        let mut sets = PageSets::new(self.work.path(), limit, self.plan.sketch.words(), self.plan.is_weighted());
        let reserved = (corpus.bytes() / 2).min(MOST_RESERVED_BYTES) / size_of::<u64>() as u64;
        sets.reserve(0, usize::try_from(reserved).unwrap_or(0));
        Some(LikelySets { pages: Arc::new(pages), sets, bytes: 0 })
    }

    /// The memory of what is kept, once there are so many pages.
    pub(super) fn likely_bytes(&self, pages: u64) -> usize {
        self.spill_limit(pages, LIKELY_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(page: u64, own: usize) -> Vec<u64> {
        (0..17).map(|band| if band < own { mix(page << 8 | band as u64) } else { mix(band as u64) }).collect()
    }

    #[test]
    fn a_page_is_likely_if_it_shares_some_keys_and_not_all() {
        let likely = LikelyPages::new(17, 1000);
        assert!(!likely.is_likely(&keys(1, 0)), "the first page");
        assert!(!likely.is_likely(&keys(2, 0)), "a copy");
        for own in 1..=17 {
            assert_eq!(likely.is_likely(&keys(own as u64 + 2, own)), own <= 15, "{own} keys of its own");
        }
    }

    #[test]
    fn few_pages_without_anything_in_common_are_likely() {
        let likely = LikelyPages::new(17, 17 * 20_000);
        let wrong = (0..20_000).filter(|&page| likely.is_likely(&keys(page, 17))).count();
        assert!(wrong < 1000, "{wrong} of 20000");
    }

    #[test]
    fn the_same_key_in_another_band_is_another_key() {
        let likely = LikelyPages::new(17, 1000);
        let (first, mut second) = (keys(1, 17), keys(1, 17));
        second.rotate_left(1);
        assert!(!likely.is_likely(&first) && !likely.is_likely(&second));
    }
}
