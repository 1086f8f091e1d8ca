//! `combined`: the combined algorithm of Henzinger (2006), §3.5.
//!
//! Features: shingles of k = 8 tokens for Alg. B. Sketch: 6 supershingles, no more than Alg. B alone
//! keeps. Candidates: B-similar pages. Decision: B-similar, and at least 355 equal bits of Alg. C,
//! computed on the fly from the pages read again. The score is the C-similarity.

use crate::config::Config;
use crate::method::{Decision, Plan, SketchPlan, projection, shingle};

pub(super) fn plan(config: &Config) -> Plan {
    let b = shingle::plan(config);
    Plan {
        sketch: SketchPlan { projection: Some(projection::signs(config)), ..b.sketch },
        decision: Decision::Both { agree: config.agree, least: config.bits },
        ..b
    }
}
