//! `bloom`: Jain, Dahlin and Tewari (2005), §2 and §3, made fit for a corpus.
//!
//! Features: the multiset of content-defined chunks of the canonical text. Sketch: a Bloom filter of
//! one fixed size. Candidates: pages that share enough chunks, by an inverted index. Decision: at
//! least 0.7 of one page's chunks are in the other, counted exactly on the multisets; which way round
//! is in the columns `left_in_right` and `right_in_left`. The paper's share of common bits is the
//! score, and the estimate is the filters' word on it, corrected for chance.

use crate::config::Config;
use crate::feature::chunk::Chunker;
use crate::method::{Decision, Features, Measure, Plan, Search, SketchPlan};
use crate::sketch::bloom::FilterPlan;

pub(super) fn plan(config: &Config) -> Plan {
    let filter = FilterPlan { bits: config.filter_bits, hashes: config.filter_hashes, seed: config.seed };
    Plan {
        text: config.text_options(),
        features: Features::Chunks(Chunker::new(config.chunks)),
        weights: config.weights,
        measure: Measure::Coverage,
        sketch: SketchPlan { filter: Some(filter), ..SketchPlan::default() },
        search: Search::Features { threshold: config.threshold, size_filter: false },
        decision: Decision::Similarity { threshold: config.threshold, strictly: false },
        layout: None,
        survey: None,
    }
}
