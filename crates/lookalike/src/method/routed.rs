//! `routed`: an algorithm for each kind of pair, Henzinger (2006), §3.5.
//!
//! Pages of one site share boilerplate, which fools either algorithm alone. So pairs on different
//! sites are decided by Alg. C, pairs on the same site by the combined algorithm. A page without a URL
//! is on no page's site. Sketch: 6 supershingles and 384 signs. Candidates: pages that share a
//! supershingle or a piece. The score is the C-similarity in both cases.

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
            site: true,
            ..SketchPlan::default()
        },
        search: Search::BandsAndBits(projection::pieces(config)),
        decision: Decision::BySite { agree: config.agree, same: config.same_site_bits, other: config.bits },
        layout: None,
        survey: None,
    }
}
