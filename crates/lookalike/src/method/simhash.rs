//! `simhash`: Manku, Jain and Das Sarma (2007), §2 and §3.
//!
//! Features: content words (case folded, stop words out, stemmed in the page's language) and phrases
//! of two; or word n-grams (`--ngram 1..8`). Weights: how often a feature occurs, on request times
//! its rarity in the corpus. Sketch: a fingerprint of 64 bits. Candidates: all pairs within the
//! radius, through tables of permuted blocks; exact. Decision: at most 3 differing bits; the exact
//! cosine is reported beside it.

use crate::config::Config;
use crate::method::{BitSearch, Decision, Features, Measure, Plan, Search, SketchPlan};

pub(super) fn plan(config: &Config) -> Plan {
    Plan {
        text: config.text_options(),
        features: if config.ngram == 0 { Features::Words } else { Features::Shingles { k: config.ngram } },
        weights: config.weights,
        measure: Measure::Cosine,
        sketch: SketchPlan { simhash: true, ..SketchPlan::default() },
        search: Search::Bits(BitSearch::Radius(config.radius)),
        decision: Decision::Distance { radius: config.radius },
        layout: None,
        survey: None,
    }
}
