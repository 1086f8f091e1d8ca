//! What a method asks of the stages.
//!
//! In: nothing; a [`Plan`] is plain data that a method makes from its parameters (`method/`). Every stage
//! takes from it what concerns the stage: text which terms, sketcher which features and sketch, candidate which
//! search, verify which measure and decision, cluster which direction. No stage knows a method.

mod columns;
mod corpus_stats;
mod coverage;
pub mod curve;
pub mod decision;
pub mod design;
pub mod layout;
mod pair_rules;
mod sketch_plan;

use std::sync::Arc;

pub(crate) use columns::ColumnLayout;
pub use corpus_stats::{CorpusNeeds, CorpusStats};
pub use decision::{Decision, NEAR_MISS_BITS, NEAR_MISS_DISTANCE, NEAR_MISS_SHARE, Unit, Verdict};
pub use pair_rules::{PairConfig, Within};
pub use sketch_plan::{SketchParts, SketchPlan};

use crate::feature::chunk::Chunker;
use crate::feature::spot::Spots;
use crate::names::named;
use crate::page::{PageId, ScoredPair};
use crate::text::language::Lang;
use crate::text::{Scope, TextOptions};
use design::Design;
use layout::Layout;

/// How a method goes through the stages; immutable, shared by all threads.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How pages are read.
    pub text: TextOptions,
    /// The language of all pages, where it is given.
    pub language: Option<Lang>,
    /// Whether words are reduced to the stems of a language that is not sure.
    pub guesses_language: bool,
    /// What pages are compared by, exactly.
    pub features: Features,
    /// What a feature weighs.
    pub weights: Weights,
    /// How the features of two pages are compared.
    pub measure: Measure,
    /// What stands for a page.
    pub sketch: SketchPlan,
    /// Which pages are worth comparing.
    pub search: Search,
    /// What makes a pair.
    pub decision: Decision,
    /// Which pages a page is matched with.
    pub matching: Matching,
    /// Which of several matches counts.
    pub guess: Guess,
    /// Whether pages of the input are compared with those of another corpus alone, and dropped if they contain one.
    pub drops_containers: bool,
    /// Whether duplicates can be matched, too, where pages are matched in one pass.
    pub index_duplicates: bool,
    /// Which pairs are looked at, whatever the method.
    pub pairs: PairConfig,
    /// The order of matching in one pass.
    pub order: MatchingOrder,
    /// Seeds that order.
    pub seed: u64,
    /// Why the bands are what they are, where they were chosen.
    pub layout: Option<Layout>,
    /// The same of the bands of stories.
    pub story_layout: Option<Layout>,
    /// What was counted in the corpus, where the method asks for that.
    pub corpus: Option<Arc<CorpusStats>>,
}

/// What pages are compared by.
#[derive(Debug, Clone)]
pub enum Features {
    /// Runs of `k` tokens; single terms for 1.
    Shingles {
        /// Tokens in a shingle.
        k: usize,
    },
    /// Content words, stemmed, and phrases of two.
    Words,
    /// Content-defined chunks of the canonical text.
    Chunks(Chunker),
    /// Spot signatures; without antecedents, those of the page's language.
    Spots(Option<Spots>),
}

named! {
    /// What a feature weighs.
    pub enum Weights {
        /// Every feature counts once
        None = "none",
        /// As often as it occurs
        Tf = "tf",
        /// More, the fewer pages have it
        Idf = "idf",
        /// Both
        TfIdf = "tf-idf",
    }
}

impl Weights {
    /// Whether the corpus must be counted first.
    #[must_use]
    pub fn needs_corpus(self) -> bool {
        matches!(self, Weights::Idf | Weights::TfIdf)
    }
}

named! {
    /// Which pages a page is matched with.
    pub enum Matching {
        /// With all pages
        Full = "full",
        /// In one pass, with the pages before it that were not duplicates
        Incremental = "incremental",
        /// In one pass that starts from given examples
        Seeded = "seeded",
    }
}

named! {
    /// In which order pages are matched, where they are matched in one pass.
    pub enum MatchingOrder {
        /// Shuffled by the seed and the pages' ids
        Shuffled = "shuffled",
        /// As the pages are in the input
        Given = "given",
    }
}

named! {
    /// Which of several matches counts.
    pub enum Guess {
        /// The first above the threshold
        First = "first",
        /// The most similar
        Best = "best",
    }
}

/// How the features of two pages are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Shared features, as a share of all.
    Jaccard,
    /// The cosine of the angle between the weights.
    Cosine,
    /// Shared features, as a share of the page that has fewer.
    Coverage,
}

named! {
    /// How two sets of features are compared.
    pub enum SetMeasure {
        /// What two pages share, as a share of all they have
        Resemblance = "resemblance",
        /// The share of a page that is in the other
        Containment = "containment",
        /// The share of a page of the other corpus that is in a page of the input, which is then dropped
        Contains = "contains",
    }
}

/// Which pages are worth comparing.
#[derive(Debug, Clone)]
pub enum Search {
    /// Pages that share a band.
    Bands,
    /// Pages that share a part of their bits.
    Bits(BitSearch),
    /// Pages that share a band or a part of their bits.
    BandsAndBits(BitSearch),
    /// Pages that share enough features, by an inverted index.
    Features {
        /// The least similarity.
        threshold: f64,
        /// Whether pages of very different sizes are filtered out.
        size_filter: bool,
        /// Whether pages are looked up by their rarest features only.
        prefix_filter: bool,
    },
}

/// How pages with few differing bits are found.
#[derive(Debug, Clone)]
pub enum BitSearch {
    /// They share one of the pieces.
    Pieces(Design),
    /// They differ in at most so many bits; how this is found depends on the number of pages.
    Radius(u32),
}

impl Plan {
    /// A plan that compares all pages by their exact features: what a method starts from.
    #[must_use]
    pub fn new(text: TextOptions, features: Features, decision: Decision, search: Search) -> Plan {
        Plan {
            text,
            language: None,
            guesses_language: false,
            features,
            weights: Weights::None,
            measure: Measure::Jaccard,
            sketch: SketchPlan::default(),
            search,
            decision,
            matching: Matching::Full,
            guess: Guess::Best,
            drops_containers: false,
            index_duplicates: false,
            pairs: PairConfig::default(),
            order: MatchingOrder::Shuffled,
            seed: 0,
            layout: None,
            story_layout: None,
            corpus: None,
        }
    }

    /// The same plan with what was counted in the corpus.
    #[must_use]
    pub fn with_corpus(self, corpus: Option<Arc<CorpusStats>>) -> Plan {
        Plan { corpus, ..self }
    }

    /// A plan that compares all that pages show, by the same features and without sketches.
    #[must_use]
    pub(crate) fn of_whole_pages(&self) -> Plan {
        // Stories have no pictures, and pages that wait for their frames to be known have none either.
        let no_images = self.text.scope == Scope::Story;
        let text = TextOptions { scope: Scope::Page, no_images, ..self.text };
        Plan { text, sketch: SketchPlan::default(), ..self.clone() }
    }

    /// Whether every page's features are kept from the first reading on.
    #[must_use]
    pub fn keeps_features(&self) -> bool {
        matches!(self.search, Search::Features { .. })
    }

    /// Whether pages are matched one after the other, in an order of its own.
    #[must_use]
    pub fn matches_in_order(&self) -> bool {
        self.matching != Matching::Full && !self.pairs.exact_only
    }

    /// Whether a page may be dropped for another only if most of it is in the other one.
    #[must_use]
    pub fn is_directed(&self) -> bool {
        self.measure == Measure::Coverage
    }

    /// Whether the other page of an accepted pair can stand for `page`.
    #[must_use]
    pub fn can_stand_for(&self, pair: &ScoredPair, page: PageId) -> bool {
        match self.decision {
            Decision::Similarity { threshold, .. } if self.is_directed() => {
                let is_part_of_other = (page == pair.left) != self.drops_containers;
                (if is_part_of_other { pair.left_in_right } else { pair.right_in_left }) >= threshold
            }
            _ => true,
        }
    }

    /// Whether pages with so many features can be near-duplicates, or close to it, whatever the features are.
    #[must_use]
    pub fn can_be_close(&self, left: u64, right: u64) -> bool {
        if !self.decides_by_shared_features() {
            return true;
        }
        let least = match self.decision {
            Decision::Stories { text, within, between, .. } => text.min(within).min(between),
            other => other.least_nearness(),
        };
        let least = least * (1.0 - NEAR_MISS_SHARE);
        left.min(right) as f64 >= least * left.max(right) as f64
    }

    /// The similarity from which two pages are near-duplicates, or close to it; nothing where more is looked at than how
    /// many features they share.
    #[must_use]
    pub fn least_close_similarity(&self, same_site: Option<bool>, is_short: bool) -> Option<f64> {
        let threshold = self.decision.story_threshold(same_site, is_short);
        self.decides_by_shared_features().then_some(threshold * (1.0 - NEAR_MISS_SHARE))
    }

    /// Whether all that decides is how many features two pages have and share.
    fn decides_by_shared_features(&self) -> bool {
        let by_similarity = matches!(self.decision, Decision::Similarity { .. } | Decision::Stories { .. });
        by_similarity && self.measure == Measure::Jaccard && !self.is_weighted()
    }

    /// Whether features have weights that are not all 1.
    #[must_use]
    pub fn is_weighted(&self) -> bool {
        match self.measure {
            Measure::Cosine => self.weights != Weights::None,
            Measure::Jaccard | Measure::Coverage => self.weights == Weights::Idf,
        }
    }

    /// Whether a projection is one of shingles and not of single tokens.
    #[must_use]
    pub fn projects_shingles(&self) -> bool {
        self.measure == Measure::Cosine && !matches!(self.features, Features::Shingles { k: 1 })
    }

    /// Whether pages are compared by the stems of their words.
    #[must_use]
    pub fn reduces_words(&self) -> bool {
        matches!(self.features, Features::Words)
    }

    /// Whether languages must be detected.
    #[must_use]
    pub fn needs_language(&self) -> bool {
        matches!(self.features, Features::Words | Features::Spots(None))
    }

    /// Whether a page of so many tokens is long enough to be compared other than exactly.
    #[must_use]
    pub fn is_long_enough(&self, tokens: u32) -> bool {
        tokens >= self.pairs.min_tokens.max(1)
    }

    /// What the similarity of a pair is.
    #[must_use]
    pub fn similarity_name(&self) -> &'static str {
        match self.measure {
            Measure::Jaccard => "exact Jaccard similarity",
            Measure::Cosine => "exact cosine similarity",
            Measure::Coverage => "share of the smaller page that is in the other",
        }
    }
}
