//! `spotsigs`: spot signatures for web archives, §3 to §5 of that paper.
//!
//! Features: the set of spot signatures, which stand for the story and not for its frame. Candidates:
//! pages that share enough of them, by an inverted index; pages of very different sizes are passed
//! over. Decision: Jaccard similarity above the threshold, strictly.

use crate::config::{Antecedents, Config};
use crate::feature::spot::Spots;
use crate::method::{Decision, Features, Measure, Plan, Search, SketchPlan};
use crate::survey::Survey;

pub(super) fn plan(config: &Config, survey: Option<&Survey>) -> Plan {
    let spots = match &config.spots.antecedents {
        Antecedents::BuiltIn => None,
        Antecedents::Auto => Some(Spots::new(survey.map_or(&[][..], |survey| &survey.antecedents), config.keep_case)),
        Antecedents::List(list) => Some(Spots::new(list, config.keep_case)),
    };
    Plan {
        text: config.text_options(),
        features: Features::Spots(spots),
        weights: config.weights,
        measure: Measure::Jaccard,
        sketch: SketchPlan::default(),
        search: Search::Features { threshold: config.threshold, size_filter: config.spots.size_filter },
        decision: Decision::Similarity { threshold: config.threshold, strictly: true },
        layout: None,
        survey: None,
    }
}
