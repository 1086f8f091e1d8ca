//! `routed`: an algorithm for each kind of pair, Henzinger (2006), §3.5.
//!
//! Pages of one site share boilerplate, which fools either algorithm alone. So pairs on different
//! sites are decided by Alg. C, pairs on the same site by the combined algorithm. A page without a URL
//! is on no page's site. Sketch: 6 supershingles and 384 signs. Candidates: pages that share a
//! supershingle or a piece. The score is the C-similarity in both cases.

use crate::config::Config;
use crate::method::{Decision, Plan, Search, SketchPlan, combined, projection};

pub(super) fn plan(config: &Config) -> Plan {
    let combined = combined::plan(config);
    Plan {
        sketch: SketchPlan { site: true, ..combined.sketch },
        search: Search::BandsAndBits(projection::pieces(config)),
        decision: Decision::BySite { agree: config.agree, same: config.same_site_bits, other: config.bits },
        ..combined
    }
}
