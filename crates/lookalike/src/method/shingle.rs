//! `shingle`: Algorithm B of Henzinger (2006), §2, after Broder et al. and Fetterly et al.
//!
//! Features: shingles of k = 8 tokens. Sketch: 84 min-values, 14 consecutive ones make one of 6
//! supershingles. Candidates: pages that share a supershingle at the same position. Decision: at
//! least 2 equal supershingles (B-similar); the number of them is the score (B-similarity), and the
//! exact Jaccard similarity is reported beside it.

use crate::error::{Error, Result};
use crate::method::parameters::{any, between, one_of, parameters};
use crate::method::{DEFAULT_SEED, MethodDefinition};
use crate::plan::{CorpusStats, Decision, Features, Plan, Search, SketchPlan, Unit, Weights};
use crate::sketch::minhash::MinHasher;
use crate::sketch::supershingle::Bands;
use crate::text::ContentConfig;

/// Supershingles of a page in the paper (m').
pub(super) const PAPER_BANDS: u32 = 6;
/// Min-values in each (l).
pub(super) const PAPER_ROWS: u32 = 14;
/// The most of either.
pub(super) const MOST_BANDS: u32 = 256;
/// Min-values in all (m) at most.
const MOST_MIN_VALUES: u32 = 1024;

parameters! {
    /// Equal supershingles of word 8-grams.
    pub struct Shingle named "shingle", decides by "`agree`, the number of equal supershingles (2 of 6)" {
        /// Equal supershingles from which two pages are near-duplicates.
        agree: u32 as "N" = 2, between(1, MOST_BANDS);
        /// Supershingles of a page.
        bands: u32 as "N" = PAPER_BANDS, between(1, MOST_BANDS);
        /// Min-values in a supershingle.
        rows: u32 as "N" = PAPER_ROWS, between(1, MOST_BANDS);
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
        supershingle_rule(self.agree, self.bands, self.ngram)
    }

    fn threshold(&self) -> (f64, Unit) {
        (f64::from(self.agree), Unit::Supershingles { of: self.bands })
    }

    fn set_threshold(&mut self, threshold: f64) {
        self.agree = count(threshold);
    }

    fn check(&self) -> Result<()> {
        check_supershingles(self.agree, self.bands, self.rows)
    }

    fn decision(&self) -> Decision {
        Decision::Agreement { agree: self.agree }
    }

    fn plan(&self, content: &ContentConfig, _corpus: Option<&CorpusStats>) -> Plan {
        let bands = Bands { bands: self.bands as usize, rows: self.rows as usize };
        let hasher = MinHasher::new(bands.functions(), self.seed);
        Plan {
            weights: self.weights,
            sketch: SketchPlan { min_values: Some((hasher, bands)), ..SketchPlan::default() },
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
pub(super) fn supershingle_rule(agree: u32, bands: u32, ngram: usize) -> String {
    format!("at least {agree} of {bands} supershingles of word {ngram}-grams equal")
}

/// Refuses more equal supershingles than there are, and more min-values than anybody needs.
pub(super) fn check_supershingles(agree: u32, bands: u32, rows: u32) -> Result<()> {
    if agree > bands {
        return Err(Error::invalid("agree", agree, format!("must not be above `bands`, which is {bands}")));
    }
    if bands * rows > MOST_MIN_VALUES {
        let expected = format!("must be at most {} with {bands} `bands`: {MOST_MIN_VALUES} min-values in all", MOST_MIN_VALUES / bands);
        return Err(Error::invalid("rows", rows, expected));
    }
    Ok(())
}

/// A threshold that is a count.
pub(super) fn count(threshold: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, and not negative
    let count = threshold.round().clamp(0.0, f64::from(u32::MAX)) as u32;
    count
}
