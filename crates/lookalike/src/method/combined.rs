//! `combined`: the combined algorithm of Henzinger (2006), §3.5.
//!
//! Features: shingles of k = 8 tokens for Alg. B. Sketch: 6 supershingles, no more than Alg. B alone
//! keeps. Candidates: B-similar pages. Decision: B-similar, and at least 355 equal bits of Alg. C,
//! computed on the fly from the pages read again. The score is the C-similarity.

use crate::error::Result;
use crate::method::parameters::{any, between, one_of, parameters};
use crate::method::projection::{PAPER_BITS, check_bits, scaled};
use crate::method::shingle::{
    MOST_BANDS, PAPER_BANDS, PAPER_ROWS, Shingle, check_supershingles, count, supershingle_rule,
};
use crate::method::{DEFAULT_SEED, MethodDefinition};
use crate::plan::{CorpusStats, Decision, Plan, SketchPlan, Unit, Weights};
use crate::sketch::projection::Projection as Signs;
use crate::text::ContentConfig;

/// Equal bits of the paper's sketch that pages with equal supershingles must have.
pub(super) const CONFIRMING_EQUAL: u32 = 355;

parameters! {
    /// Pairs of shingle that projection does not contradict.
    pub struct Combined named "combined", decides by "`agree`, the number of equal supershingles (2 of 6), and `bits`, the number of equal bits (355 of 384)" {
        /// Equal supershingles from which two pages are near-duplicates.
        agree: u32 as "N" = 2, between(1, MOST_BANDS);
        /// Supershingles of a page.
        bands: u32 as "N" = PAPER_BANDS, between(1, MOST_BANDS);
        /// Min-values in a supershingle.
        rows: u32 as "N" = PAPER_ROWS, between(1, MOST_BANDS);
        /// Bits of a projection or fingerprint; the thresholds of projections follow.
        sketch_bits: u32 as "N" = PAPER_BITS, between(16, 4096);
        /// Equal bits of a projection from which two pages are near-duplicates.
        bits: u32 as "N" = CONFIRMING_EQUAL, between(1, 4096);
        /// Words in a feature.
        ngram: usize as "N" = 8, between(1, 32);
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::None, one_of(&[Weights::None, Weights::Tf]);
        /// Seeds whatever is random.
        seed: u64 as "N" = DEFAULT_SEED, any();
    }
}

impl MethodDefinition for Combined {
    fn rule(&self) -> String {
        let supershingles = supershingle_rule(self.agree, self.bands, self.ngram);
        format!("{supershingles}, and at least {} of {} bits of a random projection", self.bits, self.sketch_bits)
    }

    fn threshold(&self) -> (f64, Unit) {
        (f64::from(self.bits), Unit::EqualBits { of: self.sketch_bits })
    }

    fn set_threshold(&mut self, threshold: f64) {
        self.bits = count(threshold);
    }

    fn adapt_to(&mut self, name: &str) {
        if name == "sketch_bits" {
            self.bits = scaled(CONFIRMING_EQUAL, self.sketch_bits);
        }
    }

    fn check(&self) -> Result<()> {
        check_supershingles(self.agree, self.bands, self.rows)?;
        check_bits("bits", self.bits, self.sketch_bits)
    }

    fn decision(&self) -> Decision {
        Decision::Both { agree: self.agree, least: self.bits }
    }

    fn plan(&self, content: &ContentConfig, corpus: Option<&CorpusStats>) -> Plan {
        let Combined { agree, bands, rows, ngram, weights, seed, .. } = *self;
        let shingle = Shingle { agree, bands, rows, ngram, weights, seed };
        let shingle = shingle.plan(content, corpus);
        Plan {
            sketch: SketchPlan { projection: Some(Signs::new(self.sketch_bits, self.seed)), ..shingle.sketch },
            decision: self.decision(),
            ..shingle
        }
    }
}
