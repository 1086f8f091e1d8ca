//! `projection`: Algorithm C of Henzinger (2006), §2, after Charikar.
//!
//! Features: the token sequence: frequency counts, order does not (`--ngram` projects shingles
//! instead, §4). Sketch: 384 signs of random ±1 projections. Candidates: pages that share one of 13
//! pieces of their bits; as at most 12 bits may differ, none is missed (the paper has 12 pieces).
//! Decision: at least 372 equal bits (C-similarity); the exact cosine is reported beside it.

use crate::candidate::design::Design;
use crate::config::Config;
use crate::method::{BitSearch, Decision, Features, Measure, Plan, Search, SketchPlan};
use crate::sketch::projection::Projection;

pub(super) fn plan(config: &Config) -> Plan {
    Plan {
        text: config.text_options(),
        features: Features::Shingles { k: config.ngram },
        weights: config.weights,
        measure: Measure::Cosine,
        sketch: SketchPlan { projection: Some(signs(config)), ..SketchPlan::default() },
        search: Search::Bits(pieces(config)),
        decision: Decision::EqualBits { least: config.bits },
        layout: None,
        survey: None,
    }
}

/// The sketch of Alg. C.
pub(super) fn signs(config: &Config) -> Projection {
    Projection::new(config.sketch_bits, config.seed)
}

/// The candidates of Alg. C.
pub(super) fn pieces(config: &Config) -> BitSearch {
    BitSearch::Pieces(Design::pieces(config.sketch_bits, config.pieces))
}
