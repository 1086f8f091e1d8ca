//! One file a method: which features, which sketch, which candidates, which decision.

mod minhash;
mod shingle;

use crate::candidate::layout::Layout;
use crate::config::{Config, Method};
use crate::page::ScoredPair;
use crate::sketch::minhash::MinHasher;
use crate::sketch::supershingle::Bands;

/// How a method goes through the stages; immutable, shared by all threads.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Tokens in a shingle.
    pub ngram: usize,
    /// The min-value functions.
    pub hasher: MinHasher,
    /// How min-values become keys.
    pub bands: Bands,
    /// What makes a pair.
    pub decision: Decision,
    /// Why the bands are what they are, where they were chosen.
    pub layout: Option<Layout>,
}

/// What makes two pages near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Exact Jaccard similarity of the shingle sets, at or above.
    Jaccard {
        /// The threshold.
        threshold: f64,
    },
    /// Equal supershingles, at least.
    Agreement {
        /// How many.
        agree: u32,
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

/// How far below the threshold a rejected pair is still reported, in Jaccard similarity.
pub const NEAR_MISS_MARGIN: f64 = 0.2;

impl Plan {
    /// The plan for a config.
    #[must_use]
    pub fn new(config: &Config) -> Plan {
        match config.method {
            Method::Minhash => minhash::plan(config),
            Method::Shingle => shingle::plan(config),
        }
    }

    /// The least number of bands two pages must share to be candidates.
    #[must_use]
    pub fn agree(&self) -> u32 {
        match self.decision {
            Decision::Jaccard { .. } => 1,
            Decision::Agreement { agree } => agree,
        }
    }
}

impl Decision {
    /// The pair's score in the method's unit.
    #[must_use]
    pub fn score(self, similarity: f64, agreeing: u32) -> f64 {
        match self {
            Decision::Jaccard { .. } => similarity,
            Decision::Agreement { .. } => f64::from(agreeing),
        }
    }

    /// What the score means.
    #[must_use]
    pub fn verdict(self, pair: &ScoredPair) -> Verdict {
        let (limit, margin) = match self {
            Decision::Jaccard { threshold } => (threshold, NEAR_MISS_MARGIN),
            Decision::Agreement { agree } => (f64::from(agree), 1.0),
        };
        if pair.score >= limit {
            Verdict::Accepted
        } else if pair.score >= limit - margin {
            Verdict::NearMiss
        } else {
            Verdict::Rejected
        }
    }
}
