//! The config as 0.1.0 wrote it: one flat list of settings.
//!
//! Results and indexes of 0.1.0 are read through it. Its serialised form is frozen: segments of indexes and stored
//! sketches carry a hash of it, and stay what they are.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::{ClusterMode, GroupConfig, Keep};
use crate::config::{Config, ContentConfig, PairConfig, ReadConfig};
use crate::error::{Error, Result};
use crate::feature::chunk::ChunkPlan;
use crate::method::{DEFAULT_SEED, Method};
use crate::plan::{Guess, Matching, Weights, Within};
use crate::read::fields::Fields;
use crate::read::{CaptureFilter, Format};
use crate::text::Scope;
use crate::text::site::SiteRule;

/// The config of 0.1.0. The order of the fields counts: it decides the hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConfigV1 {
    method: String,
    threshold: f64,
    recall: f64,
    agree: u32,
    ngram: usize,
    weights: Weights,
    sketch_bits: u32,
    bits: u32,
    same_site_bits: u32,
    pieces: u32,
    radius: u32,
    site: SiteRule,
    chunks: ChunkPlan,
    filter_bits: u32,
    filter_hashes: u32,
    spots: SpotsV1,
    length_ratio: Option<f64>,
    within: Option<Within>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    mask_volatile: bool,
    content: Scope,
    scripts: bool,
    cluster: ClusterMode,
    keep: Keep,
    min_tokens: u32,
    keep_case: bool,
    exact_only: bool,
    bucket_limit: usize,
    max_page_bytes: u64,
    captures: CaptureFilter,
    format: Option<Format>,
    fields: Fields,
    seed: u64,
}

/// The parameters of spot signatures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SpotsV1 {
    antecedents: Value,
    matching: Matching,
    guess: Guess,
    index_duplicates: bool,
    size_filter: bool,
    spill: bool,
    raw: bool,
}

/// Parameters that 0.1.0 wrote in a group of their own: the name, the name in the group `chunks`.
const CHUNKS: [(&str, &str); 4] =
    [("chunk_size", "size"), ("chunk_max", "longest"), ("chunk_window", "window"), ("chunk_marker", "marker")];

/// The method whose parameter `sketch_bits` is not the one of 0.1.0.
const SIMHASH: &str = "simhash";

/// Parameters that decide about sketches and that 0.1.0 did not have.
const LATER: [&str; 3] = ["bands", "rows", "measure"];

impl ConfigV1 {
    /// What decides about sketches beside what 0.1.0 knew, if any of it is not at its default.
    pub(crate) fn later_parameters(method: &Method) -> Option<String> {
        let is_later = |name: &str| LATER.contains(&name) || name == "sketch_bits" && method.name() == SIMHASH;
        let changed = method.parameters().into_iter().filter_map(|parameter| {
            let value = method.get(parameter.name).filter(|value| *value != parameter.default)?;
            is_later(parameter.name).then(|| format!("{}={value}", parameter.name))
        });
        let changed: Vec<String> = changed.collect();
        (!changed.is_empty()).then(|| changed.join(" "))
    }

    /// The defaults of a method in 0.1.0, as far as the method itself does not say.
    fn defaults(method: &str) -> ConfigV1 {
        let (read, content, pairs, groups) =
            (ReadConfig::default(), ContentConfig::default(), PairConfig::default(), GroupConfig::default());
        ConfigV1 {
            method: method.to_owned(),
            threshold: 0.7,
            recall: 0.99,
            agree: 2,
            ngram: 0,
            weights: Weights::None,
            sketch_bits: 384,
            bits: 372,
            same_site_bits: 355,
            pieces: 13,
            radius: 3,
            site: pairs.site,
            chunks: ChunkPlan::default(),
            filter_bits: 2048,
            filter_hashes: 4,
            spots: SpotsV1 {
                antecedents: Value::from("built-in"),
                matching: Matching::Full,
                guess: Guess::Best,
                index_duplicates: false,
                size_filter: true,
                spill: false,
                raw: false,
            },
            length_ratio: pairs.length_ratio,
            within: pairs.within,
            language: content.language,
            mask_volatile: content.mask_volatile,
            content: content.scope,
            scripts: content.scripts,
            cluster: groups.cluster,
            keep: groups.keep,
            min_tokens: pairs.min_tokens,
            keep_case: content.keep_case,
            exact_only: pairs.exact_only,
            bucket_limit: pairs.bucket_limit,
            max_page_bytes: read.max_page_bytes,
            captures: read.captures,
            format: read.format,
            fields: read.fields,
            seed: DEFAULT_SEED,
        }
    }

    /// Sets the expected bytes of a chunk, whatever the method.
    pub(crate) fn set_chunk_size(&mut self, bytes: u64) {
        self.chunks.size = bytes;
    }

    /// The hash that 0.1.0 gave it.
    pub(crate) fn hash(&self) -> u64 {
        xxh3_64(&serde_json::to_vec(self).expect("plain fields serialise"))
    }

    /// The config as it is now.
    ///
    /// # Errors
    /// When it is one that no version wrote.
    pub(crate) fn upgrade(&self) -> Result<Config> {
        let Value::Object(mut flat) = serde_json::to_value(self).expect("plain fields serialise") else {
            return Err(Error::internal("a config is not an object"));
        };
        for group in ["chunks", "spots"] {
            let Some(Value::Object(inner)) = flat.remove(group) else { continue };
            for (name, value) in inner {
                let outer =
                    CHUNKS.iter().find(|row| group == "chunks" && row.1 == name).map_or(name.as_str(), |row| row.0);
                flat.insert(outer.to_owned(), value);
            }
        }
        if self.method == SIMHASH {
            // The bits of a projection, which it did not have; a fingerprint had 64.
            flat.remove("sketch_bits");
        }
        flat.insert("name".to_owned(), Value::from(self.method.as_str()));
        let method = serde_json::from_value(Value::Object(flat)).map_err(|error| {
            Error::invalid("method", &self.method, format!("is not a method of version 0.1.0 ({error})"))
        })?;
        Ok(Config {
            read: ReadConfig {
                format: self.format,
                fields: self.fields.clone(),
                captures: self.captures.clone(),
                max_page_bytes: self.max_page_bytes,
                ..ReadConfig::default()
            },
            content: ContentConfig {
                scope: self.content,
                scripts: self.scripts,
                keep_case: self.keep_case,
                mask_volatile: self.mask_volatile,
                language: self.language.clone(),
                guesses_language: false,
                frames: None,
            },
            method,
            pairs: PairConfig {
                site: self.site,
                within: self.within,
                length_ratio: self.length_ratio,
                min_tokens: self.min_tokens,
                exact_only: self.exact_only,
                bucket_limit: self.bucket_limit,
            },
            groups: GroupConfig { cluster: self.cluster, keep: self.keep.clone(), ..GroupConfig::default() },
        })
    }
}

impl From<&Config> for ConfigV1 {
    fn from(config: &Config) -> ConfigV1 {
        let defaults = ConfigV1 {
            site: config.pairs.site,
            length_ratio: config.pairs.length_ratio,
            within: config.pairs.within,
            language: config.content.language.clone(),
            mask_volatile: config.content.mask_volatile,
            content: config.content.scope,
            scripts: config.content.scripts,
            cluster: config.groups.cluster,
            keep: config.groups.keep.clone(),
            min_tokens: config.pairs.min_tokens,
            keep_case: config.content.keep_case,
            exact_only: config.pairs.exact_only,
            bucket_limit: config.pairs.bucket_limit,
            max_page_bytes: config.read.max_page_bytes,
            captures: config.read.captures.clone(),
            format: config.read.format,
            fields: config.read.fields.clone(),
            ..ConfigV1::defaults(config.method.name())
        };
        let object = |value: Value| match value {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        let mut flat = object(serde_json::to_value(&defaults).expect("plain fields serialise"));
        for (name, value) in object(serde_json::to_value(&config.method).expect("plain fields serialise")) {
            if name == "sketch_bits" && config.method.name() == SIMHASH {
                continue; // a later parameter of the same name
            }
            let place = match CHUNKS.iter().find(|row| row.0 == name) {
                Some(row) => flat["chunks"].get_mut(row.1),
                None if flat.contains_key(&name) => flat.get_mut(&name),
                None => flat["spots"].get_mut(&name),
            };
            // There is no place for the method's own name, which has one already, and for what 0.1.0 did not have.
            if let Some(place) = place {
                *place = value;
            }
        }
        serde_json::from_value(Value::Object(flat)).expect("every value has the type it had")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes that 0.1.0 gave the defaults of its methods.
    #[test]
    fn hashes_are_those_of_version_0_1_0() {
        let mut config = Config::default();
        config.content.scope = Scope::Core; // the default then
        let config = ConfigV1::from(&config);
        assert_eq!(config.hash(), 0x61dc_26a2_825e_271f);
    }

    #[test]
    fn later_parameters_are_told_apart() {
        let later = |text: &str| ConfigV1::later_parameters(&text.parse().unwrap());
        assert!(Method::all().iter().all(|method| ConfigV1::later_parameters(method).is_none()));
        assert_eq!(later("simhash sketch_bits=128").as_deref(), Some("sketch_bits=128"));
        assert_eq!(later("shingle bands=7 rows=3 agree=4").as_deref(), Some("bands=7 rows=3"));
        assert_eq!(later("projection sketch_bits=96"), None, "0.1.0 had it");
    }

    #[test]
    fn every_method_survives_the_way_there_and_back() {
        for mut method in Method::all() {
            if method.name() == "spotsigs" {
                method.set_all([("antecedents", "is:3,that:4:2"), ("raw", "true"), ("guess", "first")]).unwrap();
            }
            if method.name() == "bloom" {
                method.set_all([("chunk_size", "64"), ("chunk_marker", "9")]).unwrap();
            }
            let config = Config::new(method);
            assert_eq!(ConfigV1::from(&config).upgrade().unwrap(), config);
        }
    }
}
