//! `bloom`: Jain, Dahlin and Tewari (2005), §2 and §3, made fit for a corpus.
//!
//! Features: the multiset of content-defined chunks of the canonical text. Sketch: a Bloom filter of
//! one fixed size. Candidates: pages that share enough chunks, by an inverted index. Decision: at
//! least 0.7 of one page's chunks are in the other, counted exactly on the multisets; which way round
//! is in the columns `left_in_right` and `right_in_left`. The paper's share of common bits is the
//! score, and the estimate is the filters' word on it, corrected for chance.

use crate::error::{Error, Result};
use crate::feature::chunk::{ChunkPlan, Chunker};
use crate::method::parameters::{any, between, one_of, parameters, power_of_two, similarity};
use crate::method::{DEFAULT_SEED, MethodDefinition};
use crate::names::named;
use crate::plan::{CorpusStats, Decision, Features, Measure, Plan, Search, SketchPlan, Unit, Weights};
use crate::sketch::bloom::FilterPlan;
use crate::text::ContentConfig;

/// Expected bytes of a chunk in lists of search results: a quarter of the paper's, as results are short. On pages of 1
/// to 3 kB this finds four times as many near-duplicates, at the same precision.
const RESULT_CHUNK_BYTES: u64 = 64;

/// Share of the smaller page's chunks that pages must share to be compared at all, where the bits of filters decide.
const LEAST_SHARED: f64 = 0.01;

named! {
    /// What decides about two pages.
    pub enum DecideBy {
        /// The share of one page's chunks that are in the other
        Chunks = "chunks",
        /// The share of the bits of one page's filter that are set in the other's
        Bits = "bits",
    }
}

parameters! {
    /// Content-defined chunks and Bloom filters; finds pages contained in others.
    pub struct Bloom named "bloom", decides by "`threshold`, the share of one page's chunks that are in the other, in 0..1" {
        /// Similarity, 0..1, from which two pages are near-duplicates.
        threshold: f64 as "T" = 0.7, similarity();
        /// What decides: the chunks themselves, or the bits of their filters, which agree by chance, too.
        decide_by: DecideBy as "WHAT" = DecideBy::Chunks, any();
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::Tf, one_of(&[Weights::Tf]);
        /// Expected bytes of a chunk, a power of two.
        chunk_size: u64 as "BYTES" = ChunkPlan::default().size, power_of_two(1 << 20);
        /// Bytes of a chunk at most.
        chunk_max: u64 as "BYTES" = ChunkPlan::default().longest as u64, between(2, 1 << 32);
        /// Bytes that the rolling fingerprint looks back over.
        chunk_window: usize as "BYTES" = ChunkPlan::default().window, between(1, 4096);
        /// Low bits of the fingerprint that end a chunk, decimal or 0x….
        chunk_marker: u64 as "BITS" = ChunkPlan::default().marker, any();
        /// Bits of a Bloom filter.
        filter_bits: u32 as "N" = 2048, between(64, 1 << 20);
        /// Bits that a chunk sets in a Bloom filter.
        filter_hashes: u32 as "N" = 4, between(1, 32);
        /// Seeds whatever is random.
        seed: u64 as "N" = DEFAULT_SEED, any();
    }
}

impl MethodDefinition for Bloom {
    fn rule(&self) -> String {
        match self.decide_by {
            DecideBy::Chunks => format!("at least {} of one page's chunks are in the other", self.threshold),
            DecideBy::Bits => {
                format!("at least {} of the bits of one page's Bloom filter are set in the other's", self.threshold)
            }
        }
    }

    fn threshold(&self) -> (f64, Unit) {
        (self.threshold, Unit::Similarity)
    }

    fn set_threshold(&mut self, threshold: f64) {
        self.threshold = threshold;
    }

    fn check(&self) -> Result<()> {
        if self.chunk_max < self.chunk_size {
            let expected = format!("must not be below `chunk_size`, which is {}", self.chunk_size);
            return Err(Error::invalid("chunk_max", self.chunk_max, expected));
        }
        Ok(())
    }

    fn adapt_to_results(&mut self) {
        self.chunk_size = RESULT_CHUNK_BYTES;
    }

    fn forget_decision(&mut self) {
        self.threshold = Bloom::default().threshold;
    }

    fn decision(&self) -> Decision {
        match self.decide_by {
            DecideBy::Chunks => Decision::Similarity { threshold: self.threshold, strictly: false },
            DecideBy::Bits => Decision::CommonBits { threshold: self.threshold },
        }
    }

    fn plan(&self, content: &ContentConfig, _corpus: Option<&CorpusStats>) -> Plan {
        let mut text = content.text_options();
        text.content = true;
        let chunks = ChunkPlan {
            window: self.chunk_window,
            marker: self.chunk_marker,
            size: self.chunk_size,
            // A chunk longer than memory does not occur.
            longest: usize::try_from(self.chunk_max).unwrap_or(usize::MAX),
        };
        let filter = FilterPlan { bits: self.filter_bits, hashes: self.filter_hashes, seed: self.seed };
        Plan {
            weights: self.weights,
            measure: Measure::Coverage,
            sketch: SketchPlan { filter: Some(filter), ..SketchPlan::default() },
            ..Plan::new(
                text,
                Features::Chunks(Chunker::new(chunks)),
                self.decision(),
                Search::Features {
                    // Filters have more in common than the chunks that made them.
                    threshold: match self.decide_by {
                        DecideBy::Chunks => self.threshold,
                        DecideBy::Bits => LEAST_SHARED,
                    },
                    size_filter: false,
                    prefix_filter: true,
                },
            )
        }
    }
}
