//! `projection`: Algorithm C of Henzinger (2006), §2, after Charikar.
//!
//! Features: the token sequence: frequency counts, order does not (`ngram` projects shingles
//! instead, §4). Sketch: 384 signs of random ±1 projections. Candidates: pages that share one of 13
//! pieces of their bits; as at most 12 bits may differ, none is missed (the paper has 12 pieces).
//! Decision: at least 372 equal bits (C-similarity); the exact cosine is reported beside it.

use crate::error::{Error, Result};
use crate::method::parameters::{any, between, one_of, parameters};
use crate::method::shingle::count;
use crate::method::{DEFAULT_SEED, MethodDefinition};
pub(super) use crate::plan::decision::PAPER_BITS;
use crate::plan::design::Design;
use crate::plan::{BitSearch, CorpusStats, Decision, Features, Measure, Plan, Search, SketchPlan, Unit, Weights};
use crate::sketch::projection::Projection as Signs;
use crate::text::ContentConfig;

/// Equal ones of them from which pages are near-duplicates.
pub(super) const PAPER_EQUAL: u32 = 372;

parameters! {
    /// Equal bits of a random projection of the words.
    pub struct Projection named "projection", decides by "`bits`, the number of equal bits (372 of 384)" {
        /// Bits of a projection or fingerprint; the thresholds of projections follow.
        sketch_bits: u32 as "N" = PAPER_BITS, between(16, 4096);
        /// Equal bits of a projection from which two pages are near-duplicates.
        bits: u32 as "N" = PAPER_EQUAL, between(1, 4096);
        /// Pieces of a projection, of which a pair must share one; one more than the bits that may differ misses nothing.
        pieces: u32 as "N" = pieces_for(PAPER_BITS, PAPER_EQUAL), between(1, 4096);
        /// Words in a feature.
        ngram: usize as "N" = 1, between(1, 32);
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::Tf, one_of(&[Weights::Tf]);
        /// Seeds whatever is random.
        seed: u64 as "N" = DEFAULT_SEED, any();
    }
}

impl MethodDefinition for Projection {
    fn rule(&self) -> String {
        format!("at least {} of {} bits of a random projection equal", self.bits, self.sketch_bits)
    }

    fn threshold(&self) -> (f64, Unit) {
        (f64::from(self.bits), Unit::EqualBits { of: self.sketch_bits })
    }

    fn set_threshold(&mut self, threshold: f64) {
        self.bits = count(threshold);
        self.adapt_to("bits");
    }

    fn adapt_to(&mut self, name: &str) {
        if name == "sketch_bits" {
            self.bits = scaled(PAPER_EQUAL, self.sketch_bits);
        }
        if name == "sketch_bits" || name == "bits" {
            self.pieces = pieces_for(self.sketch_bits, self.bits);
        }
    }

    fn check(&self) -> Result<()> {
        check_bits("bits", self.bits, self.sketch_bits)?;
        check_bits("pieces", self.pieces, self.sketch_bits)
    }

    fn decision(&self) -> Decision {
        Decision::EqualBits { least: self.bits }
    }

    fn plan(&self, content: &ContentConfig, _corpus: Option<&CorpusStats>) -> Plan {
        Plan {
            weights: self.weights,
            measure: Measure::Cosine,
            sketch: SketchPlan {
                projection: Some(Signs::new(self.sketch_bits, self.seed)),
                ..SketchPlan::default()
            },
            ..Plan::new(
                content.text_options(),
                Features::Shingles { k: self.ngram },
                self.decision(),
                Search::Bits(pieces(self.sketch_bits, self.pieces)),
            )
        }
    }
}

/// Pages that share one of so many pieces of their bits.
pub(super) fn pieces(sketch_bits: u32, pieces: u32) -> BitSearch {
    BitSearch::Pieces(Design::pieces(sketch_bits, pieces))
}

/// As many pieces as it takes to miss nothing.
pub(super) fn pieces_for(sketch_bits: u32, bits: u32) -> u32 {
    sketch_bits.saturating_sub(bits) + 1
}

/// A number of equal bits of the paper's sketch, for a sketch of another size and the same angle. Rounded down in the
/// number of differing bits: never looser than the paper.
pub(super) fn scaled(equal: u32, sketch_bits: u32) -> u32 {
    sketch_bits - sketch_bits * (PAPER_BITS - equal) / PAPER_BITS
}

/// Refuses more bits than there are.
pub(super) fn check_bits(name: &'static str, bits: u32, sketch_bits: u32) -> Result<()> {
    if (1..=sketch_bits).contains(&bits) {
        return Ok(());
    }
    Err(Error::invalid(name, bits, format!("must be between 1 and {sketch_bits}, the bits of a sketch")))
}
