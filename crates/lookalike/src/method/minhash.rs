//! `minhash`: what today's corpus tools do, with the promise kept.
//!
//! Features: word n-grams (5). Sketch: min-values in bands. Candidates: pages that share a band;
//! bands and rows are chosen so that the expected recall at the threshold is the wanted one.
//! Decision: exact Jaccard similarity of the n-gram sets of the two pages, at or above the
//! threshold; the sketch alone decides nothing.

use crate::error::{Error, Result};
use crate::method::parameters::{any, between, one_of, parameters, proper_share, similarity};
use crate::method::{DEFAULT_SEED, MethodDefinition};
use crate::method::shingle::{MOST_BANDS, check_supershingles};
use crate::plan::layout::{self, Layout};
use crate::plan::{
    CorpusStats, Decision, Features, Measure, Plan, Search, SetMeasure, SketchPlan, Unit, Weights,
};
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
        /// What two pages must have in common: most of both, or most of one. Contains is for another corpus, such as a test
        /// set: pages that contain one of its items are dropped.
        measure: SetMeasure as "MEASURE" = SetMeasure::Resemblance, any();
        /// Words in a feature; with simhash, 0 stands for content words and phrases.
        ngram: usize as "N" = 5, between(1, 32);
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::None, one_of(&[Weights::None, Weights::Tf]);
        /// Bands of min-values, the supershingles of shingle; with minhash, 0 chooses bands and rows for the recall.
        bands: u32 as "N" = 0, between(0, MOST_BANDS);
        /// Min-values in a band.
        rows: u32 as "N" = 0, between(0, MOST_BANDS);
        /// Share of the pairs at the threshold that must be found.
        recall: f64 as "SHARE" = 0.99, proper_share();
        /// Seeds whatever is random.
        seed: u64 as "N" = DEFAULT_SEED, any();
    }
}

impl Minhash {
    /// The bands that were given, or those that reach the recall at a threshold.
    fn layout(&self, threshold: f64) -> Layout {
        match (self.bands, self.rows) {
            (0, _) => layout::choose(threshold, self.recall),
            (bands, rows) => Layout::new(Bands { bands: bands as usize, rows: rows as usize }, threshold),
        }
    }
}

impl MethodDefinition for Minhash {
    fn rule(&self) -> String {
        let Minhash { ngram, threshold, .. } = self;
        match self.measure {
            SetMeasure::Resemblance => format!("exact Jaccard similarity of word {ngram}-grams ≥ {threshold}"),
            SetMeasure::Containment => format!("at least {threshold} of one page's word {ngram}-grams are in the other"),
            SetMeasure::Contains => {
                format!("at least {threshold} of the word {ngram}-grams of a page of the other corpus are in the page")
            }
        }
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

    fn check(&self) -> Result<()> {
        match (self.bands, self.rows) {
            (0, 0) => Ok(()),
            (0, _) => Err(Error::conflict("rows", "needs `bands`, too: either both are chosen or both are given")),
            (_, 0) => Err(Error::conflict("bands", "needs `rows`, too: either both are chosen or both are given")),
            (bands, rows) => check_supershingles(1, bands, rows),
        }
    }

    fn decision(&self) -> Decision {
        Decision::Similarity { threshold: self.threshold, strictly: false }
    }

    fn plan(&self, content: &ContentConfig, corpus: Option<&CorpusStats>) -> Plan {
        let text = content.text_options();
        let Minhash { threshold, within_site, between_sites, short_stories, .. } = *self;
        if self.measure != SetMeasure::Resemblance {
            return Plan {
                weights: self.weights,
                measure: Measure::Coverage,
                drops_containers: self.measure == SetMeasure::Contains,
                ..Plan::new(
                    text,
                    Features::Shingles { k: self.ngram },
                    self.decision(),
                    Search::Features { threshold, size_filter: false, prefix_filter: true },
                )
            };
        }
        let is_story = text.scope == Scope::Story;
        let decision = if is_story {
            Decision::Stories { text: threshold, within: within_site, between: between_sites, short: short_stories }
        } else {
            self.decision()
        };
        let layout = self.layout(threshold);
        // Before frames are known, there are no stories.
        let has_stories = is_story && corpus.is_some_and(|corpus| corpus.frames.is_some());
        let story_layout = has_stories.then(|| self.layout(within_site.min(between_sites)));
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
