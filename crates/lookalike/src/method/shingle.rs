//! `shingle`: Algorithm B of Henzinger (2006), §2, after Broder et al. and Fetterly et al.
//!
//! Features: shingles of k = 8 tokens. Sketch: 84 min-values, 14 consecutive ones make one of 6
//! supershingles. Candidates: pages that share a supershingle at the same position. Decision: at
//! least 2 equal supershingles (B-similar); the number of them is the score (B-similarity), and the
//! exact Jaccard similarity is reported beside it.

use crate::config::{Config, SHINGLE_BANDS, SHINGLE_ROWS};
use crate::method::{Decision, Features, Measure, Plan, Search, SketchPlan};
use crate::sketch::minhash::MinHasher;
use crate::sketch::supershingle::Bands;

pub(super) fn plan(config: &Config) -> Plan {
    let bands = Bands { bands: SHINGLE_BANDS, rows: SHINGLE_ROWS };
    let hasher = MinHasher::new(bands.functions(), config.seed);
    Plan {
        text: config.text_options(),
        features: Features::Shingles { k: config.ngram },
        weights: config.weights,
        measure: Measure::Jaccard,
        sketch: SketchPlan { min_values: Some((hasher, bands)), ..SketchPlan::default() },
        search: Search::Bands,
        decision: Decision::Agreement { agree: config.agree },
        layout: None,
        survey: None,
    }
}
