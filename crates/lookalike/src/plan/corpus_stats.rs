//! What must be known about the whole corpus before its pages are sketched.

use crate::feature::rarity::Rarity;
use std::sync::Arc;

use crate::feature::spot::Antecedent;
use crate::text::frames::Frames;

/// What a method asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CorpusNeeds {
    /// How many pages have each feature.
    pub rarity: bool,
    /// The words that carry the corpus's sentences.
    pub antecedents: bool,
    /// What sites put around their stories.
    pub frames: bool,
}

impl CorpusNeeds {
    /// Whether the corpus must be counted at all.
    #[must_use]
    pub fn any(self) -> bool {
        self.passes() > 0
    }

    /// How often everything is read for it.
    #[must_use]
    pub fn passes(self) -> u64 {
        u64::from(self.rarity) + u64::from(self.antecedents) + u64::from(self.frames)
    }
}

/// What was counted in the corpus.
#[derive(Debug, Clone, Default)]
pub struct CorpusStats {
    /// Pages that have each feature.
    pub rarity: Rarity,
    /// The antecedents chosen from the corpus.
    pub antecedents: Vec<Antecedent>,
    /// The frames of its sites.
    pub frames: Option<Arc<Frames>>,
}
