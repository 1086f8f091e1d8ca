//! `routed`: an algorithm for each kind of pair, Henzinger (2006), §3.5.
//!
//! Pages of one site share boilerplate, which fools either algorithm alone. So pairs on different
//! sites are decided by Alg. C, pairs on the same site by the combined algorithm. A page without a URL
//! is on no page's site. Sketch: 6 supershingles and 384 signs. Candidates: pages that share a
//! supershingle or a piece. The score is the C-similarity in both cases.

use crate::error::Result;
use crate::method::combined::{CONFIRMING_EQUAL, Combined};
use crate::method::parameters::{any, between, one_of, parameters};
use crate::method::projection::{
    PAPER_BITS, PAPER_EQUAL, check_bits, pieces, pieces_for, scaled,
};
use crate::method::shingle::{
    MOST_BANDS, PAPER_BANDS, PAPER_ROWS, check_supershingles, count, supershingle_rule,
};
use crate::method::{DEFAULT_SEED, MethodDefinition};
use crate::plan::{CorpusStats, Decision, Plan, Search, SketchPlan, Unit, Weights};
use crate::text::ContentConfig;

/// How many equal bits fewer pairs of one site need, beside their supershingles: where one threshold moves, the other
/// moves with it.
const SAME_SITE_SHIFT: u32 = PAPER_EQUAL - CONFIRMING_EQUAL;

parameters! {
    /// Projection between sites, combined within a site.
    pub struct Routed named "routed", decides by "`bits` between sites, and `agree` with `same_site_bits` within a site" {
        /// Equal supershingles from which two pages are near-duplicates.
        agree: u32 as "N" = 2, between(1, MOST_BANDS);
        /// Supershingles of a page.
        bands: u32 as "N" = PAPER_BANDS, between(1, MOST_BANDS);
        /// Min-values in a supershingle.
        rows: u32 as "N" = PAPER_ROWS, between(1, MOST_BANDS);
        /// Bits of a projection or fingerprint; the thresholds of projections follow.
        sketch_bits: u32 as "N" = PAPER_BITS, between(16, 4096);
        /// Equal bits of a projection from which two pages are near-duplicates.
        bits: u32 as "N" = PAPER_EQUAL, between(1, 4096);
        /// Equal bits that a pair on the same site needs beside its supershingles.
        same_site_bits: u32 as "N" = CONFIRMING_EQUAL, between(1, 4096);
        /// Pieces of a projection, of which a pair must share one; one more than the bits that may differ misses nothing.
        pieces: u32 as "N" = pieces_for(PAPER_BITS, PAPER_EQUAL), between(1, 4096);
        /// Words in a feature.
        ngram: usize as "N" = 8, between(1, 32);
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::None, one_of(&[Weights::None, Weights::Tf]);
        /// Seeds whatever is random.
        seed: u64 as "N" = DEFAULT_SEED, any();
    }
}

impl MethodDefinition for Routed {
    fn rule(&self) -> String {
        format!(
            "between sites at least {} of {} bits of a random projection equal; within a site {}, and at least {} bits",
            self.bits,
            self.sketch_bits,
            supershingle_rule(self.agree, self.bands, self.ngram),
            self.same_site_bits
        )
    }

    fn threshold(&self) -> (f64, Unit) {
        (f64::from(self.bits), Unit::EqualBits { of: self.sketch_bits })
    }

    fn set_threshold(&mut self, threshold: f64) {
        let bits = count(threshold);
        // As far apart as they are now, so that both thresholds move together.
        let shift = self.bits.saturating_sub(self.same_site_bits);
        self.bits = bits;
        self.same_site_bits = bits.saturating_sub(shift).max(1);
        self.adapt_to("bits");
    }

    fn loosen(&mut self) {
        let loosest = count(self.threshold().1.loosest());
        self.bits = loosest.min(self.bits);
        self.same_site_bits = loosest.saturating_sub(SAME_SITE_SHIFT).min(self.same_site_bits).max(1);
        self.adapt_to("bits");
    }

    fn adapt_to(&mut self, name: &str) {
        if name == "sketch_bits" {
            self.bits = scaled(PAPER_EQUAL, self.sketch_bits);
            self.same_site_bits = scaled(CONFIRMING_EQUAL, self.sketch_bits);
        }
        if name == "sketch_bits" || name == "bits" {
            self.pieces = pieces_for(self.sketch_bits, self.bits);
        }
    }

    fn check(&self) -> Result<()> {
        check_supershingles(self.agree, self.bands, self.rows)?;
        check_bits("bits", self.bits, self.sketch_bits)?;
        check_bits("same_site_bits", self.same_site_bits, self.sketch_bits)?;
        check_bits("pieces", self.pieces, self.sketch_bits)
    }

    fn decision(&self) -> Decision {
        Decision::BySite { agree: self.agree, same: self.same_site_bits, other: self.bits }
    }

    fn plan(&self, content: &ContentConfig, corpus: Option<&CorpusStats>) -> Plan {
        let combined = Combined {
            agree: self.agree,
            bands: self.bands,
            rows: self.rows,
            sketch_bits: self.sketch_bits,
            bits: self.bits,
            ngram: self.ngram,
            weights: self.weights,
            seed: self.seed,
        };
        let combined = combined.plan(content, corpus);
        Plan {
            sketch: SketchPlan { site: true, ..combined.sketch },
            search: Search::BandsAndBits(pieces(self.sketch_bits, self.pieces)),
            decision: self.decision(),
            ..combined
        }
    }
}
