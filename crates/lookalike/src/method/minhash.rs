//! `minhash`: what today's corpus tools do, with the promise kept.
//!
//! Features: word n-grams (5). Sketch: min-values in bands. Candidates: pages that share a band;
//! bands and rows are chosen so that the expected recall at the threshold is the wanted one.
//! Decision: exact Jaccard similarity of the n-gram sets of the two pages, at or above the
//! threshold; the sketch alone decides nothing.

use crate::candidate::layout;
use crate::config::Config;
use crate::method::{Decision, Plan};
use crate::sketch::minhash::MinHasher;

pub(super) fn plan(config: &Config) -> Plan {
    let layout = layout::choose(config.threshold, config.recall);
    Plan {
        ngram: config.ngram,
        hasher: MinHasher::new(layout.bands.functions(), config.seed),
        bands: layout.bands,
        decision: Decision::Jaccard { threshold: config.threshold },
        layout: Some(layout),
    }
}
