//! `simhash`: Manku, Jain and Das Sarma (2007), §2 and §3.
//!
//! Features: content words (case folded, stop words out, stemmed in the page's language) and phrases
//! of two; or word n-grams. Weights: how often a feature occurs, on request times its rarity in the
//! corpus. Sketch: a fingerprint of 64 bits, or of another size. Candidates: all pairs within the radius, through tables of
//! permuted blocks; exact. Decision: at most 3 differing bits; the exact cosine is reported beside it.

use crate::method::MethodDefinition;
use crate::method::parameters::{between, one_of, parameters};
use crate::method::shingle::count;
use crate::plan::design::{Design, MOST_RADIUS};
use crate::plan::{
    BitSearch, CorpusNeeds, CorpusStats, Decision, Features, Measure, Plan, Search, SketchPlan, Unit, Weights,
};
use crate::sketch::simhash::FINGERPRINT_BITS;
use crate::text::ContentConfig;

parameters! {
    /// SimHash fingerprints of 64 bits that differ in few.
    pub struct Simhash named "simhash", decides by "`radius`, the number of differing bits (3 of 64)" {
        /// Bits of a projection or fingerprint; the thresholds of projections follow.
        sketch_bits: u32 as "N" = FINGERPRINT_BITS, between(32, 256);
        /// Differing bits of a fingerprint up to which two pages are near-duplicates.
        radius: u32 as "N" = 3, between(0, MOST_RADIUS);
        /// Words in a feature; 0 for content words and phrases instead of n-grams.
        ngram: usize as "N" = 0, between(0, 8);
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::Tf, one_of(&[Weights::None, Weights::Tf, Weights::TfIdf]);
    }
}

impl MethodDefinition for Simhash {
    fn rule(&self) -> String {
        format!("at most {} of {} bits of a SimHash fingerprint differ", self.radius, self.sketch_bits)
    }

    fn threshold(&self) -> (f64, Unit) {
        (f64::from(self.radius), Unit::DifferingBits)
    }

    fn set_threshold(&mut self, threshold: f64) {
        self.radius = count(threshold);
    }

    fn corpus_needs(&self) -> CorpusNeeds {
        CorpusNeeds { rarity: self.weights.needs_corpus(), antecedents: false, frames: false }
    }

    fn forget_decision(&mut self) {
        self.radius = Simhash::default().radius;
    }

    fn decision(&self) -> Decision {
        Decision::Distance { radius: self.radius }
    }

    fn plan(&self, content: &ContentConfig, _corpus: Option<&CorpusStats>) -> Plan {
        let mut text = content.text_options();
        text.words = self.ngram == 0;
        Plan {
            weights: self.weights,
            measure: Measure::Cosine,
            sketch: SketchPlan { simhash: Some(self.sketch_bits), ..SketchPlan::default() },
            ..Plan::new(
                text,
                if self.ngram == 0 { Features::Words } else { Features::Shingles { k: self.ngram } },
                self.decision(),
                Search::Bits(match self.sketch_bits {
                    FINGERPRINT_BITS => BitSearch::Radius(self.radius),
                    bits => BitSearch::Pieces(Design::pieces(bits, self.radius + 1)),
                }),
            )
        }
    }
}
