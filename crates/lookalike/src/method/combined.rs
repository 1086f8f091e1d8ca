//! `combined`: the combined algorithm of Henzinger (2006), §3.5.
//!
//! Features: shingles of k = 8 tokens for Alg. B. Sketch: 6 supershingles, no more than Alg. B alone
//! keeps. Candidates: B-similar pages. Decision: B-similar, and at least 355 equal bits of Alg. C,
//! computed on the fly from the pages read again. The score is the C-similarity.

use crate::config::Config;
use crate::method::{Decision, Features, Measure, Plan, Search, SketchPlan, projection, shingle};

pub(super) fn plan(config: &Config) -> Plan {
    Plan {
        text: config.text_options(),
        features: Features::Shingles { k: config.ngram },
        weights: config.weights,
        measure: Measure::Jaccard,
        sketch: SketchPlan {
            min_values: Some(shingle::supershingles(config)),
            projection: Some(projection::signs(config)),
            ..SketchPlan::default()
        },
        search: Search::Bands,
        decision: Decision::Both { agree: config.agree, least: config.bits },
        layout: None,
        survey: None,
    }
}
