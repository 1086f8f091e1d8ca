//! How the pages of a collection are read, found and compared.

use lookalike::config::{BandConfig, Config, ContentConfig, FingerprintConfig, Scope, language};
use lookalike::index::{FingerprintOrigin, IndexConfig};
use lookalike::{Error, Result};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The default radius of fingerprints.
const RADIUS: u32 = 3;
/// The default of `min_tokens` where pages are found by fingerprints, the same as that of `lookalike index build`.
const FINGERPRINT_MIN_TOKENS: u32 = 5;

/// The largest number of words of a page that is too short.
const MOST_MIN_TOKENS: u32 = 1_000_000;
/// The longest time that pages are kept, if not for ever: 100 years.
const LONGEST_TTL: u64 = 100 * 365 * 24 * 3600;

/// How pages are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CollectionMethod {
    /// By banded min-values of runs of words, and decided as `lookalike dedup` decides.
    Minhash,
    /// By fingerprints within a radius.
    Simhash,
}

/// Which part of an HTML page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentScope {
    /// All of it.
    Page,
    /// Blocks that read like prose.
    Core,
    /// What a reader view shows.
    Main,
    /// All but what sites put around their texts, which is learnt as pages come.
    Story,
    /// Its hyperlinks.
    Links,
}

impl ContentScope {
    fn scope(self) -> Scope {
        match self {
            ContentScope::Page => Scope::Page,
            ContentScope::Core => Scope::Core,
            ContentScope::Main => Scope::Main,
            ContentScope::Story => Scope::Story,
            ContentScope::Links => Scope::Links,
        }
    }

    fn of(scope: Scope) -> ContentScope {
        match scope {
            Scope::Page => ContentScope::Page,
            Scope::Core => ContentScope::Core,
            Scope::Main => ContentScope::Main,
            Scope::Story => ContentScope::Story,
            Scope::Links => ContentScope::Links,
        }
    }
}

/// How the pages of a collection are read, found and compared. The defaults are those of `lookalike dedup`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionSettings {
    /// How pages are found; by default minhash, or simhash if a radius is given
    pub method: Option<CollectionMethod>,
    /// Words per feature, by default 5; with simhash, 0 for content words and phrases of two, which is its default
    #[schema(minimum = 0, maximum = 8)]
    pub ngram: Option<usize>,
    /// Of simhash: differing bits of fingerprints up to which pages are candidates
    #[schema(minimum = 0, maximum = 15)]
    pub radius: Option<u32>,
    /// Similarity from which a candidate is a near-duplicate: by default 0.7, with simhash 0.6
    #[schema(minimum = 0, maximum = 1)]
    pub threshold: Option<f64>,
    /// The language of all pages, by its code of three letters (eng) or its English name; by default, the language of each page is detected
    #[schema(example = "eng")]
    pub language: Option<String>,
    /// Pages with fewer tokens match only as exact copies: by default 8, with simhash 5
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub min_tokens: Option<u32>,
    /// Upper and lower case are distinguished
    pub keep_case: Option<bool>,
    /// Dates, times, counters and the like are ignored
    pub mask_volatile: Option<bool>,
    /// Which part of an HTML page counts: by default story, with simhash or without texts core
    pub content: Option<ContentScope>,
    /// Whether the compared texts are stored, so that similarities are exact; otherwise they are estimated from sketches
    pub keep_text: Option<bool>,
    /// Seconds after which pages are removed, unless a page says otherwise; by default they stay
    #[schema(minimum = 1, maximum = 3_153_600_000_i64)]
    pub ttl: Option<u64>,
}

impl CollectionSettings {
    /// How pages are found.
    fn method(&self) -> CollectionMethod {
        let implied = if self.radius.is_some() { CollectionMethod::Simhash } else { CollectionMethod::Minhash };
        self.method.unwrap_or(implied)
    }

    /// What of a page is compared.
    fn content(&self, default: ContentConfig) -> ContentConfig {
        let mut content = default;
        // The check of the whole refuses unknown names.
        content.language = self
            .language
            .as_deref()
            .map(|name| language::by_name(name).map_or_else(|| name.to_owned(), |language| language.code().to_owned()));
        content.keep_case = self.keep_case.unwrap_or(content.keep_case);
        content.mask_volatile = self.mask_volatile.unwrap_or(content.mask_volatile);
        content.scope = self.content.map_or(content.scope, ContentScope::scope);
        content
    }

    /// The index of a collection with these settings.
    ///
    /// # Errors
    /// With the setting that cannot be.
    pub(crate) fn config(&self) -> Result<IndexConfig> {
        let mut index = match self.method() {
            CollectionMethod::Minhash => self.by_bands()?,
            CollectionMethod::Simhash => {
                let mut fingerprints = FingerprintConfig::default();
                fingerprints.ngram = self.ngram.unwrap_or(fingerprints.ngram);
                fingerprints.content = self.content(fingerprints.content);
                let mut index = IndexConfig::pages(fingerprints, self.radius.unwrap_or(RADIUS));
                index.min_tokens = self.min_tokens.unwrap_or(FINGERPRINT_MIN_TOKENS);
                index.keeps_text = self.keep_text.unwrap_or(true);
                index
            }
        };
        index.threshold = self.threshold.unwrap_or(index.threshold);
        if let Some(ttl) = self.ttl.filter(|ttl| !(1..=LONGEST_TTL).contains(ttl)) {
            let expected = "must be 1 second to 100 years (3153600000); leave it out for pages that stay";
            return Err(Error::invalid("ttl", ttl, expected));
        }
        if let Some(tokens) = self.min_tokens.filter(|tokens| *tokens > MOST_MIN_TOKENS) {
            return Err(Error::invalid("min_tokens", tokens, "must be at most 1000000: no page is that short"));
        }
        index.ttl_seconds = self.ttl;
        index.check()?;
        Ok(index)
    }

    fn by_bands(&self) -> Result<IndexConfig> {
        if self.radius.is_some() {
            return Err(Error::conflict("radius", "is for fingerprints; use `method` simhash, or leave it out"));
        }
        let mut bands = BandConfig::default();
        bands.ngram = self.ngram.unwrap_or(bands.ngram);
        bands.content = self.content(bands.content);
        bands.found_from = self.threshold.unwrap_or(bands.found_from);
        let keeps_text = self.keep_text.unwrap_or(true);
        if !keeps_text && self.content.is_none() {
            // Frames that are learnt later cannot be left out of pages whose text is gone.
            bands.content.scope = Scope::Core;
        }
        let threshold = bands.found_from;
        let mut index = IndexConfig::bands(bands, threshold);
        index.keeps_text = keeps_text;
        index.min_tokens = self.min_tokens.unwrap_or(Config::default().pairs.min_tokens);
        Ok(index)
    }

    /// The settings of an index; none if its fingerprints were not made from pages.
    pub(crate) fn of(index: &IndexConfig) -> Option<CollectionSettings> {
        let (method, ngram, radius, content) = match &index.fingerprints {
            FingerprintOrigin::Given => return None,
            FingerprintOrigin::Pages(pages) => {
                (CollectionMethod::Simhash, pages.ngram, Some(index.radius), &pages.content)
            }
            FingerprintOrigin::Bands(bands) => (CollectionMethod::Minhash, bands.ngram, None, &bands.content),
        };
        Some(CollectionSettings {
            method: Some(method),
            ngram: Some(ngram),
            radius,
            threshold: Some(index.threshold),
            language: content.language.clone(),
            min_tokens: Some(index.min_tokens),
            keep_case: Some(content.keep_case),
            mask_volatile: Some(content.mask_volatile),
            content: Some(ContentScope::of(content.scope)),
            keep_text: Some(index.keeps_text),
            ttl: index.ttl_seconds,
        })
    }

    /// Refuses an index with other settings; those that are left out may have any value.
    pub(crate) fn check_met_by(&self, index: &IndexConfig) -> Result<()> {
        let wanted = CollectionSettings::of(&self.config()?).expect("these settings are those of an index of pages");
        // An index of other fingerprints has none of these settings.
        let existing = CollectionSettings::of(index).unwrap_or_default();
        let is_said = self.method.is_some() || self.radius.is_some();
        let differs = [
            ("method", is_said && wanted.method != existing.method),
            ("ngram", self.ngram.is_some() && wanted.ngram != existing.ngram),
            ("radius", self.radius.is_some() && wanted.radius != existing.radius),
            ("threshold", self.threshold.is_some() && wanted.threshold != existing.threshold),
            ("language", self.language.is_some() && wanted.language != existing.language),
            ("min_tokens", self.min_tokens.is_some() && wanted.min_tokens != existing.min_tokens),
            ("keep_case", self.keep_case.is_some() && wanted.keep_case != existing.keep_case),
            ("mask_volatile", self.mask_volatile.is_some() && wanted.mask_volatile != existing.mask_volatile),
            ("content", self.content.is_some() && wanted.content != existing.content),
            ("keep_text", self.keep_text.is_some() && wanted.keep_text != existing.keep_text),
            ("ttl", self.ttl.is_some() && wanted.ttl != existing.ttl),
        ];
        match differs.into_iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((setting, _)) => Err(Error::conflict(
                setting,
                "the collection exists with another value; ask for the collection to see its settings, or choose another name",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_dedup_and_a_radius_asks_for_fingerprints() {
        let index = CollectionSettings::default().config().unwrap();
        let settings = CollectionSettings::of(&index).unwrap();
        assert_eq!((settings.method, settings.threshold), (Some(CollectionMethod::Minhash), Some(0.7)));
        assert_eq!((settings.content, settings.keep_text), (Some(ContentScope::Story), Some(true)));
        let by_radius = CollectionSettings { radius: Some(4), ..CollectionSettings::default() }.config().unwrap();
        let by_radius = CollectionSettings::of(&by_radius).unwrap();
        assert_eq!((by_radius.method, by_radius.threshold), (Some(CollectionMethod::Simhash), Some(0.6)));
        let both = CollectionSettings { method: settings.method, radius: Some(3), ..CollectionSettings::default() };
        assert!(both.config().unwrap_err().to_string().contains("simhash"));
        let without = CollectionSettings { keep_text: Some(false), ..CollectionSettings::default() }.config().unwrap();
        assert_eq!(CollectionSettings::of(&without).unwrap().content, Some(ContentScope::Core));
        let story = CollectionSettings {
            keep_text: Some(false),
            content: Some(ContentScope::Story),
            ..CollectionSettings::default()
        };
        assert!(story.config().is_err());
    }
}
