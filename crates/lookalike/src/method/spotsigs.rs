//! `spotsigs`: spot signatures for web archives, §3 to §5 of that paper.
//!
//! Features: the set of spot signatures, which stand for the story and not for its frame. Candidates:
//! pages that share enough of them, by an inverted index; pages of very different sizes are filtered
//! out. Decision: Jaccard similarity above the threshold, strictly.

use serde::{Deserialize, Serialize};

use crate::cluster::{ClusterMode, GroupConfig, Keep};
use crate::error::{Error, Result};
use crate::feature::spot::{Antecedent, Spots};
use crate::method::parameters::{Value, any, one_of, parameters, similarity};
use crate::method::{DEFAULT_SEED, MethodDefinition};
use crate::plan::{
    CorpusNeeds, CorpusStats, Decision, Features, Guess, Matching, MatchingOrder, PairConfig, Plan, Search, Unit, Weights,
};
use crate::text::ContentConfig;

/// Where the antecedents of spot signatures come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Antecedents {
    /// A list for the page's language.
    BuiltIn,
    /// The corpus's own most frequent words.
    Auto,
    /// As given.
    List(Vec<Antecedent>),
    /// As given, and more while pages are read, for those that have few of them.
    Growing(Vec<Antecedent>),
}

impl Value for Antecedents {
    fn parse(text: &str) -> Result<Antecedents, String> {
        match text {
            "built-in" => Ok(Antecedents::BuiltIn),
            "auto" => Ok(Antecedents::Auto),
            list if list.split(',').any(|word| word == "auto") => {
                Err("auto stands alone: the corpus's words make the whole list".to_owned())
            }
            "+" => Ok(Antecedents::Growing(Vec::new())),
            list if list.ends_with(",+") => {
                list[..list.len() - 2].split(',').map(str::parse).collect::<Result<_, String>>().map(Antecedents::Growing)
            }
            list => list.split(',').map(str::parse).collect::<Result<_, String>>().map(Antecedents::List),
        }
    }

    fn show(&self) -> String {
        match self {
            Antecedents::BuiltIn => "built-in".to_owned(),
            Antecedents::Auto => "auto".to_owned(),
            Antecedents::List(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            Antecedents::Growing(list) => {
                list.iter().map(ToString::to_string).chain(["+".to_owned()]).collect::<Vec<_>>().join(",")
            }
        }
    }
}

parameters! {
    /// Spot signatures: the same story in different page frames.
    pub struct Spotsigs named "spotsigs", decides by "`threshold`, the Jaccard similarity of spot signatures in 0..1" {
        /// Similarity, 0..1, from which two pages are near-duplicates.
        threshold: f64 as "T" = 0.25, similarity();
        /// What a feature weighs.
        weights: Weights as "WEIGHTS" = Weights::None, one_of(&[Weights::None, Weights::Idf]);
        /// Words that signatures are taken behind, and how far: is:3,the:3,that:4:2 …; auto for the
        /// corpus's own words; is:3,the:3,+ for a list that grows in a first reading, for pages with few of its
        /// words; built-in for a list of the page's language, at 2:2.
        antecedents: Antecedents as "LIST" = Antecedents::BuiltIn, any();
        /// Match with all pages, or in one pass with those before that were not duplicates.
        matching: Matching as "MATCHING" = Matching::Full, any();
        /// Which match counts: the first above the threshold, or the most similar.
        guess: Guess as "GUESS" = Guess::Best, any();
        /// Duplicates can be matched, too, with incremental or seeded matching.
        index_duplicates: bool as "" = false, any();
        /// Filter out pages of very different sizes, which changes the time and not the result.
        size_filter: bool as "" = true, any();
        /// Look pages up by their rarest signatures only, which changes the time and not the result.
        prefix_filter: bool as "" = true, any();
        /// Order of incremental and seeded matching.
        order: MatchingOrder as "ORDER" = MatchingOrder::Shuffled, any();
        /// Let signatures reach over the end of a block.
        spill: bool as "" = false, any();
        /// Read the markup itself as text.
        raw: bool as "" = false, any();
        /// Seeds the shuffled order of incremental and seeded matching.
        seed: u64 as "N" = DEFAULT_SEED, any();
    }
}

impl MethodDefinition for Spotsigs {
    fn rule(&self) -> String {
        format!("Jaccard similarity of spot signatures > {}", self.threshold)
    }

    fn threshold(&self) -> (f64, Unit) {
        (self.threshold, Unit::Similarity)
    }

    fn set_threshold(&mut self, threshold: f64) {
        self.threshold = threshold;
    }

    fn corpus_needs(&self) -> CorpusNeeds {
        CorpusNeeds {
            rarity: self.weights.needs_corpus(),
            antecedents: matches!(self.antecedents, Antecedents::Auto | Antecedents::Growing(_)),
            frames: false,
        }
    }

    fn check(&self) -> Result<()> {
        if self.index_duplicates && self.matching == Matching::Full {
            let reason =
                "is for `matching` incremental or seeded; full matching compares all pages anyway";
            return Err(Error::conflict("index_duplicates", reason));
        }
        Ok(())
    }

    fn check_with(&self, pairs: &PairConfig, groups: &GroupConfig) -> Result<()> {
        if self.matching == Matching::Full {
            return Ok(());
        }
        if pairs.exact_only {
            return Err(Error::conflict("exact_only", "leaves nothing to match; use `matching` full"));
        }
        if groups.keep != Keep::First {
            let reason = "has no place in incremental and seeded matching, where the page met first in the seeded order is kept; use `matching` full";
            return Err(Error::conflict("keep", reason));
        }
        if self.index_duplicates && groups.cluster == ClusterMode::Star {
            let reason = "matches pages with duplicates of the kept page, which stars do not allow; use `cluster` components";
            return Err(Error::conflict("index_duplicates", reason));
        }
        Ok(())
    }

    fn forget_decision(&mut self) {
        self.threshold = Spotsigs::default().threshold;
    }

    fn decision(&self) -> Decision {
        Decision::Similarity { threshold: self.threshold, strictly: true }
    }

    fn plan(&self, content: &ContentConfig, corpus: Option<&CorpusStats>) -> Plan {
        let spots = match &self.antecedents {
            Antecedents::BuiltIn => None,
            Antecedents::Auto | Antecedents::Growing(_) => {
                Some(Spots::new(corpus.map_or(&[][..], |corpus| &corpus.antecedents), content.keep_case))
            }
            Antecedents::List(list) => Some(Spots::new(list, content.keep_case)),
        };
        let mut text = content.text_options();
        text.raw = self.raw;
        text.blocks = !self.spill && !self.raw;
        Plan {
            weights: self.weights,
            matching: self.matching,
            guess: self.guess,
            index_duplicates: self.index_duplicates,
            order: self.order,
            seed: self.seed,
            ..Plan::new(
                text,
                Features::Spots(spots),
                self.decision(),
                Search::Features {
                    threshold: self.threshold,
                    size_filter: self.size_filter,
                    prefix_filter: self.prefix_filter,
                },
            )
        }
    }
}
