//! `shingle`: Algorithm B of Henzinger (2006), §2, after Broder et al. and Fetterly et al.
//!
//! Features: shingles of k = 8 tokens. Sketch: 84 min-values, 14 consecutive ones make one of 6
//! supershingles. Candidates: pages that share a supershingle at the same position. Decision: at
//! least 2 equal supershingles (B-similar); the number of them is the score (B-similarity), and the
//! exact Jaccard similarity is reported beside it.

use crate::method::parameters::{any, between, one_of, parameters};
use crate::method::{DEFAULT_SEED, MethodDefinition};
use crate::plan::{CorpusStats, Decision, Features, Plan, Search, SketchPlan, Unit, Weights};
use crate::sketch::minhash::MinHasher;
use crate::sketch::supershingle::Bands;
use crate::text::ContentConfig;

/// Supershingles of a page, and min-values in each.
pub(super) const SUPERSHINGLES: Bands = Bands { bands: 6, rows: 14 };
/// The same as a bound of counts.
pub(super) const MOST_SUPERSHINGLES: u32 = 6;

parameters! {
    /// Equal supershingles of word 8-grams.
    pub struct Shingle named "shingle", decides by "`agree`, the number of equal supershingles (1..6)" {
        /// Equal supershingles, 1..6, from which two pages are near-duplicates.
        agree: u32 as "N" = 2, between(1, MOST_SUPERSHINGLES);
        /// Words in a feature.
        ngram: usize as "N" = 8, between(1, 32);
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::None, one_of(&[Weights::None, Weights::Tf]);
        /// Seeds whatever is random.
        seed: u64 as "N" = DEFAULT_SEED, any();
    }
}

impl MethodDefinition for Shingle {
    fn rule(&self) -> String {
        supershingle_rule(self.agree, self.ngram)
    }

    fn threshold(&self) -> (f64, Unit) {
        (f64::from(self.agree), Unit::Supershingles { of: MOST_SUPERSHINGLES })
    }

    fn set_threshold(&mut self, threshold: f64) {
        self.agree = count(threshold);
    }

    fn decision(&self) -> Decision {
        Decision::Agreement { agree: self.agree }
    }

    fn plan(&self, content: &ContentConfig, _corpus: Option<&CorpusStats>) -> Plan {
        let hasher = MinHasher::new(SUPERSHINGLES.functions(), self.seed);
        Plan {
            weights: self.weights,
            sketch: SketchPlan { min_values: Some((hasher, SUPERSHINGLES)), ..SketchPlan::default() },
            ..Plan::new(
                content.text_options(),
                Features::Shingles { k: self.ngram },
                self.decision(),
                Search::Bands,
            )
        }
    }
}

/// What supershingles decide, in words.
pub(super) fn supershingle_rule(agree: u32, ngram: usize) -> String {
    format!("at least {agree} of {MOST_SUPERSHINGLES} supershingles of word {ngram}-grams equal")
}

/// A threshold that is a count.
pub(super) fn count(threshold: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, and not negative
    let count = threshold.round().clamp(0.0, f64::from(u32::MAX)) as u32;
    count
}
