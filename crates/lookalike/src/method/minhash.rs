//! `minhash`: what today's corpus tools do, with the promise kept.
//!
//! Features: word n-grams (5). Sketch: min-values in bands. Candidates: pages that share a band;
//! bands and rows are chosen so that the expected recall at the threshold is the wanted one.
//! Decision: exact Jaccard similarity of the n-gram sets of the two pages, at or above the
//! threshold; the sketch alone decides nothing.

use crate::candidate::layout;
use crate::config::Config;
use crate::method::{Decision, Features, Measure, Plan, Search, SketchPlan};
use crate::sketch::minhash::MinHasher;

pub(super) fn plan(config: &Config) -> Plan {
    let layout = layout::choose(config.threshold, config.recall);
    let hasher = MinHasher::new(layout.bands.functions(), config.seed);
    Plan {
        text: config.text_options(),
        features: Features::Shingles { k: config.ngram },
        weights: config.weights,
        measure: Measure::Jaccard,
        sketch: SketchPlan { min_values: Some((hasher, layout.bands)), ..SketchPlan::default() },
        search: Search::Bands,
        decision: Decision::Similarity { threshold: config.threshold, strictly: false },
        layout: Some(layout),
        survey: None,
    }
}
