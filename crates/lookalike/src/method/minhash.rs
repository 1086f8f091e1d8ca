//! `minhash`: what today's corpus tools do, with the promise kept.
//!
//! Features: word n-grams (5). Sketch: min-values in bands. Candidates: pages that share a band;
//! bands and rows are chosen so that the expected recall at the threshold is the wanted one.
//! Decision: exact Jaccard similarity of the n-gram sets of the two pages, at or above the
//! threshold; the sketch alone decides nothing.

use crate::method::parameters::{any, between, one_of, parameters, proper_share, similarity};
use crate::method::{DEFAULT_SEED, MethodDefinition};
use crate::plan::layout;
use crate::plan::{CorpusStats, Decision, Features, Plan, Search, SketchPlan, Unit, Weights};
use crate::sketch::minhash::MinHasher;
use crate::sketch::supershingle::Bands;
use crate::text::{ContentConfig, Scope};

/// The threshold for whole texts.
const THRESHOLD: f64 = 0.7;
/// The thresholds for stories without their frames, chosen on framed-docs-dev and same-core-dev. What is left of a page is
/// its own text, of which edited copies have a third to a half in common, and other texts next to nothing; pages of one
/// site share more than their story.
const WITHIN_SITE: f64 = 0.5;
const BETWEEN_SITES: f64 = 0.4;
/// A page of a few words has more in common with others like it, as every page of its kind says the same in a few words.
const SHORT_STORIES: f64 = 0.6;

parameters! {
    /// Banded MinHash on word 5-grams, every candidate verified by exact Jaccard similarity.
    pub struct Minhash named "minhash", decides by "`threshold`, the Jaccard similarity of word n-grams in 0..1" {
        /// Similarity, 0..1, from which two pages are near-duplicates.
        threshold: f64 as "T" = THRESHOLD, similarity();
        /// Similarity from which two stories on the same site are near-duplicates; follows the threshold.
        within_site: f64 as "T" = WITHIN_SITE, similarity();
        /// Similarity from which two stories on different sites are near-duplicates; follows the threshold.
        between_sites: f64 as "T" = BETWEEN_SITES, similarity();
        /// Similarity from which two stories are near-duplicates if one has fewer than 100 words; follows the threshold.
        short_stories: f64 as "T" = SHORT_STORIES, similarity();
        /// Words in a feature; with simhash, 0 stands for content words and phrases.
        ngram: usize as "N" = 5, between(1, 32);
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::None, one_of(&[Weights::None, Weights::Tf]);
        /// Share of the pairs at the threshold that must be found.
        recall: f64 as "SHARE" = 0.99, proper_share();
        /// Seeds whatever is random.
        seed: u64 as "N" = DEFAULT_SEED, any();
    }
}

impl MethodDefinition for Minhash {
    fn rule(&self) -> String {
        format!("exact Jaccard similarity of word {}-grams ≥ {}", self.ngram, self.threshold)
    }

    fn threshold(&self) -> (f64, Unit) {
        (self.threshold, Unit::Similarity)
    }

    fn set_threshold(&mut self, threshold: f64) {
        self.threshold = threshold;
        self.adapt_to("threshold");
    }

    /// The thresholds for stories keep their distance to that for whole texts.
    fn adapt_to(&mut self, name: &str) {
        if name == "threshold" {
            let scaled = |default: f64| default * (self.threshold / THRESHOLD);
            (self.within_site, self.between_sites) = (scaled(WITHIN_SITE), scaled(BETWEEN_SITES));
            self.short_stories = scaled(SHORT_STORIES);
        }
    }

    fn decision(&self) -> Decision {
        Decision::Similarity { threshold: self.threshold, strictly: false }
    }

    fn plan(&self, content: &ContentConfig, corpus: Option<&CorpusStats>) -> Plan {
        let text = content.text_options();
        let Minhash { threshold, within_site, between_sites, short_stories, .. } = *self;
        let is_story = text.scope == Scope::Story;
        let decision = if is_story {
            Decision::Stories { text: threshold, within: within_site, between: between_sites, short: short_stories }
        } else {
            self.decision()
        };
        let layout = layout::choose(threshold, self.recall);
        // Before frames are known, there are no stories.
        let has_stories = is_story && corpus.is_some_and(|corpus| corpus.frames.is_some());
        let story_layout = has_stories.then(|| layout::choose(within_site.min(between_sites), self.recall));
        let story_bands = story_layout.map(|layout| layout.bands);
        let functions = layout.bands.functions().max(story_bands.map_or(0, Bands::functions));
        Plan {
            weights: self.weights,
            sketch: SketchPlan {
                min_values: Some((MinHasher::new(functions, self.seed), layout.bands)),
                story_bands,
                site: is_story,
                length: is_story,
                ..SketchPlan::default()
            },
            layout: Some(layout),
            story_layout,
            ..Plan::new(text, Features::Shingles { k: self.ngram }, decision, Search::Bands)
        }
    }
}
