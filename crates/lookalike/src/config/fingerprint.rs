//! What decides the fingerprint of a page.

use serde::{Deserialize, Serialize};

use crate::config::{Config, ReadConfig};
use crate::error::{Error, Result};
use crate::method::Simhash;
use crate::plan::Weights;
use crate::sketch::simhash::FINGERPRINT_BITS;
use crate::text::{ContentConfig, Scope};

/// What decides the fingerprint of a page, and nothing else: fingerprints that were made with equal ones can be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FingerprintConfig {
    /// What of a page is compared.
    pub content: ContentConfig,
    /// Words in a feature; 0 for content words and phrases.
    pub ngram: usize,
    /// What a feature weighs.
    pub weights: Weights,
}

impl Default for FingerprintConfig {
    fn default() -> FingerprintConfig {
        let mut config = Config::new(Simhash::default());
        // There may be nothing to learn frames from.
        config.content.scope = Scope::Core;
        FingerprintConfig::of(&config, &Simhash::default())
    }
}

impl FingerprintConfig {
    fn of(config: &Config, simhash: &Simhash) -> FingerprintConfig {
        FingerprintConfig { content: config.content.clone(), ngram: simhash.ngram, weights: simhash.weights }
    }

    /// The part of a config that decides fingerprints; nothing if its method makes none of 64 bits.
    #[must_use]
    pub fn of_config(config: &Config) -> Option<FingerprintConfig> {
        let simhash = Simhash::of(&config.method).filter(|simhash| simhash.sketch_bits == FINGERPRINT_BITS)?;
        Some(FingerprintConfig::of(config, simhash))
    }

    /// A config that makes these fingerprints of pages that are read as `read` says and have at least `min_tokens` tokens.
    #[must_use]
    pub fn config(&self, read: &ReadConfig, min_tokens: u32) -> Config {
        let simhash = Simhash { ngram: self.ngram, weights: self.weights, ..Simhash::default() };
        let mut config = Config::new(simhash);
        config.read = read.clone();
        config.content = self.content.clone();
        config.pairs.min_tokens = min_tokens;
        config
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        self.config(&ReadConfig::default(), 1).check()?;
        if self.content.scope == Scope::Story && self.content.frames.is_none() {
            let expected = "leaves out frames that are learnt from pages, and there are none to learn from; use core, main or page";
            return Err(Error::invalid("content", self.content.scope, expected));
        }
        if self.weights.needs_corpus() {
            let expected =
                "depends on the whole corpus, so that fingerprints of later pages would not fit; use none or tf";
            return Err(Error::invalid("weights", self.weights, expected));
        }
        Ok(())
    }

    /// The first setting in which two differ.
    #[must_use]
    pub fn difference(&self, other: &FingerprintConfig) -> Option<&'static str> {
        let (ours, theirs) = (&self.content, &other.content);
        let same = [
            ("ngram", self.ngram == other.ngram),
            ("weights", self.weights == other.weights),
            ("content", ours.scope == theirs.scope),
            ("mask", ours.mask_volatile == theirs.mask_volatile),
            ("keep_case", ours.keep_case == theirs.keep_case),
            ("scripts", ours.scripts == theirs.scripts),
            ("language", ours.language == theirs.language && ours.guesses_language == theirs.guesses_language),
            ("frames", ours.frames == theirs.frames),
        ];
        let difference = same.iter().find(|row| !row.1).map(|row| row.0);
        debug_assert_eq!(difference.is_none(), self == other, "every field that decides is compared");
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_differs_has_a_name() {
        let base = FingerprintConfig::default();
        assert_eq!(base.difference(&base.clone()), None);
        type Change = fn(&mut FingerprintConfig);
        let changes: [(&str, Change); 8] = [
            ("ngram", |config| config.ngram = 2),
            ("weights", |config| config.weights = Weights::None),
            ("content", |config| config.content.scope = Scope::Main),
            ("mask", |config| config.content.mask_volatile = true),
            ("keep_case", |config| config.content.keep_case = true),
            ("scripts", |config| config.content.scripts = true),
            ("language", |config| config.content.language = Some("deu".to_owned())),
            ("language", |config| config.content.guesses_language = true),
        ];
        for (name, change) in changes {
            let mut other = base.clone();
            change(&mut other);
            assert_eq!(base.difference(&other), Some(name));
        }
        let fields = serde_json::to_value(&base).unwrap().as_object().unwrap().len()
            + serde_json::to_value(&base.content).unwrap().as_object().unwrap().len();
        assert_eq!(
            fields,
            3 + 4,
            "a new field must be compared, too (language, its guesses and frames are left out where there are none)"
        );
    }

    #[test]
    fn what_does_not_decide_a_fingerprint_does_not_count() {
        let simhash = Config::new(Simhash::default());
        let mut other = simhash.clone();
        other.groups.keep = crate::cluster::Keep::Longest;
        other.read.max_page_bytes = 4096;
        other.method.set("radius", "7").unwrap();
        assert_eq!(FingerprintConfig::of_config(&simhash), FingerprintConfig::of_config(&other));
        assert_eq!(FingerprintConfig::of_config(&Config::default()), None);
    }
}
