//! What a result is compared by, and as text that a search index can carry.

use xxhash_rust::xxh3::xxh3_64;

use crate::config::{Config, ConfigV1, PairConfig};
use crate::method::Bloom;
use crate::page::RawPage;
use crate::plan::Plan;
use crate::sketcher::Sketcher;

/// The version of the text.
const VERSION: &str = "1";

/// A page's features and sketch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSketch {
    pub(super) tokens: u32,
    pub(super) identity: u128,
    pub(super) features: Vec<u64>,
    pub(super) weights: Vec<u32>,
    pub(super) sketch: Vec<u32>,
}

impl StoredSketch {
    pub(super) fn make(page: &RawPage<'_>, sketcher: &mut Sketcher, config: &Config) -> StoredSketch {
        let facts = sketcher.read(page);
        let (tokens, identity) = (facts.tokens, facts.identity);
        if tokens < config.pairs.min_tokens.max(1) {
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
        let count = |length: usize| u32::try_from(length).expect("a page has fewer than 2^32 features").to_le_bytes();
        let mut bytes = Vec::new();
        bytes.extend(self.tokens.to_le_bytes());
        bytes.extend(self.identity.to_le_bytes());
        bytes.extend(count(self.features.len()));
        bytes.extend(count(self.weights.len()));
        self.features.iter().for_each(|feature| bytes.extend(feature.to_le_bytes()));
        self.weights.iter().chain(&self.sketch).for_each(|word| bytes.extend(word.to_le_bytes()));
        let mut text = format!("{VERSION}.{}.{:016x}.", config.method.name(), settings(config));
        text.reserve(bytes.len() * 2);
        for byte in bytes {
            text.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]].map(char::from));
        }
        text
    }

    pub(super) fn parse(text: &str, config: &Config, plan: &Plan) -> Result<StoredSketch, String> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        let [version, method, hash, digits] = parts[..] else {
            return Err("is not a lookalike sketch".to_owned());
        };
        if version != VERSION {
            return Err(format!("is a sketch of version {version}; this program reads version {VERSION}"));
        }
        if method != config.method.name() {
            return Err(format!("is a sketch of {method}, and results are folded by {}", config.method.name()));
        }
        if hash != format!("{:016x}", settings(config)) {
            return Err(
                "was made with other settings; make the sketches again, or fold with the settings they were made with"
                    .to_owned(),
            );
        }
        let damaged = || "is damaged: cut short, or changed".to_owned();
        let sketch = from_digits(digits.as_bytes()).and_then(|bytes| from_bytes(&bytes)).ok_or_else(damaged)?;
        let is_whole = sketch.features.is_empty() || sketch.sketch.len() == plan.sketch.words();
        let is_sorted = sketch.features.is_sorted_by(|a, b| a < b);
        let is_weighted = sketch.weights.is_empty() || sketch.weights.len() == sketch.features.len();
        if is_whole && is_sorted && is_weighted { Ok(sketch) } else { Err(damaged()) }
    }
}

/// Expected bytes of a chunk in lists of results.
const LIST_CHUNK_BYTES: u64 = 64;

const DIGITS: &[u8; 16] = b"0123456789abcdef";
const NO_DIGIT: u8 = 0xff;

/// The value of each hexadecimal digit.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut at = 0;
    while at < DIGITS.len() {
        #[allow(clippy::cast_possible_truncation)] // below 16
        let value = at as u8;
        values[DIGITS[at] as usize] = value;
        at += 1;
    }
    values
};

fn from_digits(digits: &[u8]) -> Option<Vec<u8>> {
    let mut wrong = digits.len() % 2;
    let bytes = digits.chunks_exact(2).map(|pair| {
        let (high, low) = (VALUES[usize::from(pair[0])], VALUES[usize::from(pair[1])]);
        wrong += usize::from(high == NO_DIGIT || low == NO_DIGIT);
        (high & 15) << 4 | (low & 15)
    });
    let bytes = bytes.collect();
    (wrong == 0).then_some(bytes)
}

fn from_bytes(bytes: &[u8]) -> Option<StoredSketch> {
    let (head, mut rest) = bytes.split_at_checked(28)?;
    let word = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let identity = u128::from_le_bytes(head.get(4..20)?.try_into().ok()?);
    let mut take = |count: u32, size: usize| {
        let (some, left) = rest.split_at_checked((count as usize).checked_mul(size)?)?;
        rest = left;
        Some(some)
    };
    let words = |bytes: &[u8]| bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let features = take(word(20)?, 8)?.as_chunks::<8>().0.iter().map(|feature| u64::from_le_bytes(*feature)).collect();
    let weights = words(take(word(24)?, 4)?);
    let tokens = word(0)?;
    rest.len().is_multiple_of(4).then(|| StoredSketch { tokens, identity, features, weights, sketch: words(rest) })
}

/// A hash of what decides about a sketch, without what only decides about pairs; that of 0.1.0, so that sketches stay
/// readable.
fn settings(config: &Config) -> u64 {
    let mut same = Config::new(config.method.clone().without_decision());
    same.content = config.content.clone();
    same.pairs = config.pairs.clone();
    same.pairs.exact_only = false;
    same.pairs.bucket_limit = PairConfig::default().bucket_limit;
    let mut frozen = ConfigV1::from(&same);
    if Bloom::of(&config.method).is_none() {
        // Lists had the chunks of lists, whatever the method.
        frozen.set_chunk_size(LIST_CHUNK_BYTES);
    }
    match ConfigV1::later_parameters(&same.method) {
        None => frozen.hash(),
        Some(later) => xxh3_64(format!("{:016x} {later}", frozen.hash()).as_bytes()),
    }
}
