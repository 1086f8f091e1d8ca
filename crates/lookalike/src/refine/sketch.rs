//! What a result is compared by, and as text that a search index can carry.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::config::{ClusterMode, Config, Keep, Method};
use crate::method::Plan;
use crate::page::RawPage;
use crate::sketch::sketcher::Sketcher;

/// The version of the text.
const VERSION: &str = "1";

/// A page's features and sketch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSketch {
    pub(super) tokens: u32,
    pub(super) identity: u128,
    pub(super) features: Vec<u64>,
    pub(super) weights: Vec<u32>,
    pub(super) sketch: Vec<u32>,
}

impl StoredSketch {
    pub(super) fn make(page: &RawPage<'_>, sketcher: &mut Sketcher<'_>, config: &Config) -> StoredSketch {
        let facts = sketcher.read(page);
        let (tokens, identity) = (facts.tokens, facts.identity);
        if tokens < config.min_tokens.max(1) {
            let (features, weights, sketch) = (Vec::new(), Vec::new(), Vec::new());
            return StoredSketch { tokens, identity, features, weights, sketch };
        }
        let made = sketcher.sketch();
        StoredSketch {
            tokens,
            identity,
            features: made.features.to_vec(),
            weights: made.weights.to_vec(),
            sketch: made.sketch.to_vec(),
        }
    }

    /// As text: version, method, a hash of the settings, and the rest in hexadecimal digits.
    #[must_use]
    pub fn to_text(&self, config: &Config) -> String {
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        let mut text = format!("{VERSION}.{}.{:016x}.", config.method.name(), settings(config));
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    pub(super) fn parse(text: &str, config: &Config, plan: &Plan) -> Result<StoredSketch, String> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        let [version, method, hash, digits] = parts[..] else {
            return Err("is no sketch of lookalike".to_owned());
        };
        if version != VERSION {
            return Err(format!("is a sketch of version {version}; this program reads version {VERSION}"));
        }
        if method != config.method.name() {
            return Err(format!("is a sketch of {method}, and results are folded by {}", config.method.name()));
        }
        if hash != format!("{:016x}", settings(config)) {
            return Err("was made with other settings than those given now; make the sketches again, or fold with the same flags".to_owned());
        }
        let nibble = |byte: u8| (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let bytes: Option<Vec<u8>> =
            digits.as_bytes().chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?)).collect();
        let damaged = || "is damaged: cut short, or changed".to_owned();
        let sketch: StoredSketch = postcard::from_bytes(&bytes.ok_or_else(damaged)?).map_err(|_| damaged())?;
        let is_whole = sketch.features.is_empty() || sketch.sketch.len() == plan.sketch.words();
        let is_sorted = sketch.features.is_sorted_by(|a, b| a < b);
        let is_weighted = sketch.weights.is_empty() || sketch.weights.len() == sketch.features.len();
        if is_whole && is_sorted && is_weighted { Ok(sketch) } else { Err(damaged()) }
    }
}

/// A hash of what decides about a sketch, without what only decides about pairs.
fn settings(config: &Config) -> u64 {
    let defaults = Config::for_method(config.method);
    let pieces = if matches!(config.method, Method::Bloom | Method::Spotsigs | Method::Simhash) {
        Config { threshold: defaults.threshold, radius: defaults.radius, ..config.clone() }
    } else {
        config.clone()
    };
    let same = Config {
        cluster: ClusterMode::Star,
        keep: Keep::First,
        exact_only: false,
        bucket_limit: defaults.bucket_limit,
        max_page_bytes: defaults.max_page_bytes,
        captures: defaults.captures,
        format: None,
        fields: defaults.fields,
        ..pieces
    };
    same.hash()
}
