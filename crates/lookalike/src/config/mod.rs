//! One description of a run. The command line, HTTP and Python build a [`Config`] and hand it to the library; no logic
//! lives in them. Each part belongs to the stage that obeys it.

mod bands;
mod fingerprint;
mod v1;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

pub use crate::cluster::{ClusterMode, GroupConfig, Keep};
pub use crate::error::name_settings;
pub use crate::method::Method;
pub use crate::names::Named;
pub use crate::plan::{Guess, Matching, MatchingOrder, PairConfig, SetMeasure, Weights, Within};
pub use crate::read::fields::{Fields, ReadAs, Role};
pub use crate::read::{CaptureFilter, ChosenCaptures, Format, MimeTypes, ReadConfig, Statuses};
pub use crate::size::{format_bytes, parse_bytes};
pub use crate::text::site::SiteRule;
pub use crate::text::{ContentConfig, KnownFrames, Scope, language};
pub use bands::BandConfig;
pub use fingerprint::FingerprintConfig;
pub(crate) use v1::ConfigV1;

use crate::error::{Error, Result};
use crate::method::Simhash;
use crate::plan::decision::SHORT_STORY_WORDS;
use crate::plan::{CorpusNeeds, CorpusStats, Decision, Plan};
use crate::read::fields::FieldNames;
use crate::read::{Corpus, Sources};
use crate::sketcher::Sketcher;

/// What decides the result. Everything in here is part of the config's hash.
///
/// ```
/// use lookalike::Config;
/// use lookalike::method::Spotsigs;
///
/// let mut config = Config::new(Spotsigs::default());
/// config.method.set("threshold", "0.4")?;
/// config.groups.keep = "longest".parse().unwrap();
/// config.check()?;
/// assert_eq!(config.method.rule(), "Jaccard similarity of spot signatures > 0.4");
/// # Ok::<(), lookalike::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Config {
    /// What is read.
    pub read: ReadConfig,
    /// What of a page is compared.
    pub content: ContentConfig,
    /// The method and its parameters.
    pub method: Method,
    /// Which pairs are looked at.
    pub pairs: PairConfig,
    /// How groups are made.
    pub groups: GroupConfig,
}

impl Config {
    /// A method, and the defaults for everything else.
    #[must_use]
    pub fn new(method: impl Into<Method>) -> Config {
        Config { method: method.into(), ..Config::default() }
    }

    /// The same with another method.
    #[must_use]
    pub fn with_method(&self, method: impl Into<Method>) -> Config {
        Config { method: method.into(), ..self.clone() }
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] for a value outside its range,
    /// [`Error::Conflict`] for values that contradict each other.
    pub fn check(&self) -> Result<()> {
        self.read.check()?;
        self.content.check()?;
        self.method.check()?;
        self.pairs.check()?;
        self.groups.check()?;
        if self.content.scope == Scope::Links && self.method.get("ngram").is_none() {
            let reason = format!(
                "links have neither sentences nor chunks, which {} compares; use `method` minhash or simhash",
                self.method.name()
            );
            return Err(Error::conflict("content", reason));
        }
        self.method.definition().check_with(&self.pairs, &self.groups)
    }

    /// What the stages do. What is counted in a corpus is left out.
    #[must_use]
    pub(crate) fn plan(&self) -> Plan {
        self.plan_with(None)
    }

    /// What the stages do, with what was counted in the corpus.
    #[must_use]
    pub(crate) fn plan_with(&self, corpus: Option<Arc<CorpusStats>>) -> Plan {
        let mut content = self.content.clone();
        let known = self.content.frames.as_ref().and_then(|known| known.frames().cloned());
        let corpus = match (corpus, known.filter(|_| content.scope == Scope::Story)) {
            (None, Some(frames)) => Some(Arc::new(CorpusStats { frames: Some(frames), ..CorpusStats::default() })),
            (corpus, _) => corpus,
        };
        if self.pairs.exact_only {
            // A copy is a copy of all of a page.
            content.scope = Scope::Page;
        }
        Plan {
            language: self.content.language.as_deref().and_then(language::by_name),
            guesses_language: self.content.guesses_language,
            pairs: self.pairs.clone(),
            ..self.effective_method().definition().plan(&content, corpus.as_deref())
        }
        .with_corpus(corpus)
    }

    /// The method as it is used: where links are words, each counts by itself, unless a length of n-grams was asked for.
    fn effective_method(&self) -> Cow<'_, Method> {
        let default = || self.method.parameters().into_iter().find(|row| row.name == "ngram").map(|row| row.default);
        if self.content.scope != Scope::Links || self.pairs.exact_only || self.method.get("ngram") != default() {
            return Cow::Borrowed(&self.method);
        }
        let mut method = self.method.clone();
        // A method without n-grams is refused with links, and all others can take single words.
        let _ = method.set("ngram", "1");
        Cow::Owned(method)
    }

    /// Whether the method counts something in the whole corpus first, as weights by rarity do.
    #[must_use]
    pub fn counts_corpus(&self) -> bool {
        self.corpus_needs().any()
    }

    /// Whether pages are compared without what their site puts around them.
    #[must_use]
    pub(crate) fn leaves_out_frames(&self) -> bool {
        self.content.scope == Scope::Story && !self.pairs.exact_only
    }

    /// What must be counted in the corpus first.
    #[must_use]
    pub(crate) fn corpus_needs(&self) -> CorpusNeeds {
        if self.pairs.exact_only {
            return CorpusNeeds::default();
        }
        let frames = self.leaves_out_frames() && self.content.frames.is_none();
        CorpusNeeds { frames, ..self.method.definition().corpus_needs() }
    }

    /// What makes two pages near-duplicates, in words.
    #[must_use]
    pub fn rule(&self) -> String {
        if self.pairs.exact_only {
            return "the same sequence of words".to_owned();
        }
        if self.content.scope == Scope::Links {
            return format!("{}; each hyperlink counts as one word", self.effective_method().rule());
        }
        match self.plan().decision {
            Decision::Stories { within, between, short, .. } => {
                let rule = self.method.rule();
                format!(
                    "{rule}; of pages without their frame ≥ {within} within a site, ≥ {between} between sites, ≥ {short} of fewer than {SHORT_STORY_WORDS} words"
                )
            }
            _ => self.method.rule(),
        }
    }

    /// The differing bits up to which fingerprints are near, for jobs that compare fingerprints whatever the method.
    pub(crate) fn radius(&self) -> u32 {
        Simhash::of(&self.method).cloned().unwrap_or_default().radius
    }

    /// The pages of `sources`, read as the config says, with the field that the keep policy needs.
    pub(crate) fn corpus(&self, sources: impl Into<Sources>) -> Corpus {
        Corpus::new(sources, &self.read).ranked_by(self.groups.keep.rank_field())
    }

    /// What the field of a record with this name may be read for, as a whole or for a field inside it; nothing if it is
    /// not looked at.
    ///
    /// ```
    /// use lookalike::Config;
    /// use lookalike::config::Role;
    ///
    /// let mut config = Config::default();
    /// assert_eq!([config.role_of("text"), config.role_of("embedding")], [Some(Role::Text), None]);
    /// config.read.fields.text = Some("doc.body".to_owned());
    /// assert_eq!([config.role_of("text"), config.role_of("doc")], [None, Some(Role::Text)]);
    /// ```
    #[must_use]
    pub fn role_of(&self, field: &str) -> Option<Role> {
        FieldNames::new(&self.read.fields, self.groups.keep.rank_field()).role_of(field)
    }

    /// A hash of everything that decides the result.
    #[must_use]
    pub fn hash(&self) -> u64 {
        xxh3_64(&serde_json::to_vec(self).expect("plain fields serialise"))
    }
}

impl Sketcher {
    /// A sketcher for pages as a config reads and compares them. What the method counts in a corpus is left out.
    ///
    /// ```
    /// use lookalike::{Config, RawPage, Sketcher};
    ///
    /// let mut sketcher = Sketcher::new(&Config::default());
    /// let facts = sketcher.read(&RawPage::html("<title>Hello</title><p>Once upon a time there was a page"));
    /// assert_eq!((facts.tokens, facts.title), (9, Some("Hello")));
    /// assert_eq!(sketcher.sketch().features.len(), 5, "runs of five words");
    /// ```
    #[must_use]
    pub fn new(config: &Config) -> Sketcher {
        Sketcher::of_plan(&config.plan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Minhash;

    #[test]
    fn the_rule_says_what_decides() {
        let mut config = Config::default();
        let rule = "exact Jaccard similarity of word 5-grams ≥ 0.7; of pages without their frame ≥ 0.5 within a site, ≥ 0.4 between sites, ≥ 0.6 of fewer than 100 words";
        assert_eq!(config.rule(), rule);
        config.content.scope = Scope::Core;
        assert_eq!(config.rule(), "exact Jaccard similarity of word 5-grams ≥ 0.7");
        config.content.scope = Scope::Links;
        let rule = "exact Jaccard similarity of word 1-grams ≥ 0.7; each hyperlink counts as one word";
        assert_eq!(config.rule(), rule);
        config.method.set("ngram", "2").unwrap();
        assert_eq!(config.rule(), rule.replace('1', "2"));
    }

    #[test]
    fn links_are_refused_where_a_method_needs_sentences() {
        for method in Method::all() {
            let mut config = Config::new(method);
            config.content.scope = Scope::Links;
            let is_refused = matches!(config.check(), Err(Error::Conflict { .. }));
            assert_eq!(is_refused, ["bloom", "spotsigs"].contains(&config.method.name()), "{}", config.method.name());
        }
    }

    #[test]
    fn the_hash_is_the_same_on_every_machine_and_moves_with_the_config() {
        let config = Config::default();
        assert_eq!(config.hash(), 0x7c4d_ecf0_72ca_4971, "stored in every result; a change needs a new format version");
        let mut other = config.clone();
        other.method.set("threshold", "0.8").unwrap();
        assert_ne!(config.hash(), other.hash());
        let mut other = config.clone();
        other.groups.keep = Keep::Longest;
        assert_ne!(config.hash(), other.hash());
    }

    #[test]
    fn values_outside_their_range_are_refused_by_name() {
        let minhash = |change: fn(&mut Minhash)| {
            let mut method = Minhash::default();
            change(&mut method);
            Config::new(method)
        };
        let mut long = Config::default();
        long.pairs.length_ratio = Some(1.5);
        let mut unknown = Config::default();
        unknown.content.language = Some("klingon".to_owned());
        for (config, name) in [
            (minhash(|method| method.threshold = 0.0), "threshold"),
            (minhash(|method| method.threshold = f64::NAN), "threshold"),
            (minhash(|method| method.recall = 1.0), "recall"),
            (minhash(|method| method.ngram = 0), "ngram"),
            (minhash(|method| method.weights = Weights::Idf), "weights"),
            (long, "length_ratio"),
            (unknown, "language"),
        ] {
            match config.check() {
                Err(Error::InvalidSetting { setting, .. }) => assert_eq!(setting, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert!(Config::default().check().is_ok());
    }

    #[test]
    fn a_field_that_is_not_there_has_its_default() {
        let config: Config = serde_json::from_str(
            r#"{"read": {}, "content": {}, "method": {"name": "bloom", "threshold": 0.5}, "pairs": {}, "groups": {}}"#,
        )
        .unwrap();
        assert_eq!(config.method.threshold(), 0.5);
        assert_eq!(config.with_method(Minhash::default()), Config::default());
    }
}
