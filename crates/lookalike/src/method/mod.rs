//! One file a method: which features, which sketch, which candidates, which decision.

mod bloom;
mod combined;
pub mod describe;
mod minhash;
mod projection;
mod routed;
mod shingle;
mod simhash;
mod spotsigs;

use std::sync::Arc;

use crate::candidate::design::Design;
use crate::candidate::layout::Layout;
use crate::config::{Config, Method, Weights};
use crate::feature::chunk::Chunker;
use crate::feature::spot::Spots;
use crate::page::{PageId, ScoredPair};
use crate::sketch::bloom::FilterPlan;
use crate::sketch::minhash::MinHasher;
use crate::sketch::projection::Projection;
use crate::sketch::supershingle::Bands;
use crate::survey::Survey;
use crate::text::TextOptions;

/// How a method goes through the stages; immutable, shared by all threads.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How pages are read.
    pub text: TextOptions,
    /// What pages are compared by, exactly.
    pub features: Features,
    /// What a feature weighs.
    pub weights: Weights,
    /// How the features of two pages are compared.
    pub measure: Measure,
    /// What stands for a page.
    pub sketch: SketchPlan,
    /// Who is worth comparing.
    pub search: Search,
    /// What makes a pair.
    pub decision: Decision,
    /// Why the bands are what they are, where they were chosen.
    pub layout: Option<Layout>,
    /// What was counted in the corpus, where that was asked for.
    pub survey: Option<Arc<Survey>>,
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

/// How the features of two pages are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Shared of all.
    Jaccard,
    /// The cosine of the angle between the weights.
    Cosine,
    /// Shared of the page that has fewer.
    Coverage,
}

/// What stands for a page: 32-bit words, these parts one after the other.
#[derive(Debug, Clone, Default)]
pub struct SketchPlan {
    /// Min-values of the features, and how they are grouped.
    pub min_values: Option<(MinHasher, Bands)>,
    /// A projection of the tokens, or of the features where those are longer than a token.
    pub projection: Option<Projection>,
    /// A SimHash fingerprint of the features.
    pub simhash: bool,
    /// A Bloom filter of the features.
    pub filter: Option<FilterPlan>,
    /// The site.
    pub site: bool,
}

impl SketchPlan {
    /// Bands, if there are min-values.
    #[must_use]
    pub fn bands(&self) -> Option<Bands> {
        self.min_values.as_ref().map(|(_, bands)| *bands)
    }

    /// Bits that are compared place by place, as a projection or a fingerprint.
    #[must_use]
    pub fn compared_bits(&self) -> u32 {
        self.projection.as_ref().map_or(if self.simhash { 64 } else { 0 }, Projection::bits)
    }

    /// 32-bit words of those.
    #[must_use]
    pub fn bit_words(&self) -> usize {
        self.projection.as_ref().map_or(if self.simhash { 2 } else { 0 }, Projection::words)
    }

    /// 32-bit words in all.
    #[must_use]
    pub fn words(&self) -> usize {
        let min_values = self.min_values.as_ref().map_or(0, |(hasher, _)| hasher.functions());
        let filter = self.filter.map_or(0, FilterPlan::words);
        min_values + self.bit_words() + filter + if self.site { 2 } else { 0 }
    }

    /// The parts of a sketch.
    #[must_use]
    pub fn parts<'a>(&self, sketch: &'a [u32]) -> SketchParts<'a> {
        let mut rest = sketch;
        let mut take = |words: usize| {
            let (part, left) = rest.split_at(words.min(rest.len()));
            rest = left;
            part
        };
        SketchParts {
            min_values: take(self.min_values.as_ref().map_or(0, |(hasher, _)| hasher.functions())),
            bits: take(self.bit_words()),
            filter: take(self.filter.map_or(0, FilterPlan::words)),
            site: take(if self.site { 2 } else { 0 }),
        }
    }
}

/// The parts of a sketch; empty where there is none.
#[derive(Debug, Clone, Copy)]
pub struct SketchParts<'a> {
    /// Min-values.
    pub min_values: &'a [u32],
    /// Projection or fingerprint.
    pub bits: &'a [u32],
    /// Bloom filter.
    pub filter: &'a [u32],
    /// Hash of the site, 0 where there is none.
    pub site: &'a [u32],
}

/// Who is worth comparing.
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
        /// Whether pages of very different sizes are passed over.
        size_filter: bool,
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

/// What makes two pages near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// The exact similarity, at or above; above, if `strictly`.
    Similarity {
        /// The threshold.
        threshold: f64,
        /// Whether the threshold itself is not enough.
        strictly: bool,
    },
    /// Equal supershingles, at least.
    Agreement {
        /// How many.
        agree: u32,
    },
    /// Equal bits, at least.
    EqualBits {
        /// How many.
        least: u32,
    },
    /// Equal supershingles and equal bits.
    Both {
        /// How many supershingles.
        agree: u32,
        /// How many bits.
        least: u32,
    },
    /// Equal bits between sites, both within a site.
    BySite {
        /// How many supershingles within a site.
        agree: u32,
        /// How many bits within a site.
        same: u32,
        /// How many bits between sites.
        other: u32,
    },
    /// Differing bits, at most.
    Distance {
        /// How many.
        radius: u32,
    },
}

/// What became of a compared pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Near-duplicates.
    Accepted,
    /// Not, but close: worth a look in an audit.
    NearMiss,
    /// Not.
    Rejected,
}

/// How far below the threshold a rejected pair is still reported, as a share of the threshold.
pub const NEAR_MISS_SHARE: f64 = 2.0 / 7.0;
/// How many equal bits too few of a projection.
pub const NEAR_MISS_BITS: u32 = 12;
/// How many differing bits too many of a fingerprint.
pub const NEAR_MISS_DISTANCE: u32 = 2;

impl Plan {
    /// The plan for a config.
    #[must_use]
    pub fn new(config: &Config) -> Plan {
        Plan::with_survey(config, None)
    }

    /// The plan for a config and what was counted in the corpus.
    #[must_use]
    pub fn with_survey(config: &Config, survey: Option<Arc<Survey>>) -> Plan {
        let mut plan = match config.method {
            Method::Minhash => minhash::plan(config),
            Method::Shingle => shingle::plan(config),
            Method::Projection => projection::plan(config),
            Method::Combined => combined::plan(config),
            Method::Routed => routed::plan(config),
            Method::Simhash => simhash::plan(config),
            Method::Bloom => bloom::plan(config),
            Method::Spotsigs => spotsigs::plan(config, survey.as_deref()),
        };
        plan.survey = survey;
        plan
    }

    /// Whether every page's features are kept from the first reading on.
    #[must_use]
    pub fn keeps_features(&self) -> bool {
        matches!(self.search, Search::Features { .. })
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
                (if page == pair.left { pair.left_in_right } else { pair.right_in_left }) >= threshold
            }
            _ => true,
        }
    }

    /// Whether a similarity reaches a threshold, in the way of the method.
    #[must_use]
    pub fn reaches(&self, similarity: f64, threshold: f64) -> bool {
        let strictly = matches!(self.decision, Decision::Similarity { strictly: true, .. });
        Decision::on_similarity(similarity, threshold, strictly) == Verdict::Accepted
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

    /// Whether languages must be told apart.
    #[must_use]
    pub fn needs_language(&self) -> bool {
        matches!(self.features, Features::Words | Features::Spots(None))
    }
}

impl Decision {
    /// The verdict on a similarity.
    #[must_use]
    pub fn on_similarity(similarity: f64, threshold: f64, strictly: bool) -> Verdict {
        if similarity > threshold || (!strictly && similarity >= threshold) {
            Verdict::Accepted
        } else if similarity >= threshold * (1.0 - NEAR_MISS_SHARE) {
            Verdict::NearMiss
        } else {
            Verdict::Rejected
        }
    }

    /// The verdict on a count of which there should be at least `least`.
    #[must_use]
    pub fn on_count(count: u32, least: u32, margin: u32) -> Verdict {
        if count >= least {
            Verdict::Accepted
        } else if count + margin >= least {
            Verdict::NearMiss
        } else {
            Verdict::Rejected
        }
    }

    /// Whether a larger score is a nearer pair.
    #[must_use]
    pub fn larger_is_nearer(self) -> bool {
        !matches!(self, Decision::Distance { .. })
    }

    /// What the score counts, for people.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Decision::Similarity { .. } => "similarity",
            Decision::Agreement { .. } => "equal supershingles",
            Decision::EqualBits { .. } | Decision::Both { .. } | Decision::BySite { .. } => "equal bits",
            Decision::Distance { .. } => "differing bits",
        }
    }
}
