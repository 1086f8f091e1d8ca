//! One description of a run. The command line, and later HTTP and Python, build a [`Config`] and
//! hand it to the library; no logic lives in them.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::feature::chunk::ChunkPlan;
use crate::feature::spot::Antecedent;
use crate::read::{CaptureFilter, Format};
use crate::text::site::SiteRule;
use crate::text::{Scope, TextOptions};

/// Which pairs of pages are near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Banded MinHash, then exact Jaccard similarity at or above a threshold.
    Minhash,
    /// Alg. B of Henzinger (2006): equal supershingles.
    Shingle,
    /// Alg. C of Henzinger (2006): equal bits of a random projection.
    Projection,
    /// Pairs of Alg. B that Alg. C does not contradict.
    Combined,
    /// Alg. C between sites, the combined one within a site.
    Routed,
    /// SimHash fingerprints that differ in few bits (Manku et al. 2007).
    Simhash,
    /// Content-defined chunks and Bloom filters (Jain et al. 2005).
    Bloom,
    /// Spot signatures: the same story in different frames.
    Spotsigs,
}

impl Method {
    /// All methods, in the order in which they are listed.
    pub const ALL: [Method; 8] = [
        Method::Minhash,
        Method::Shingle,
        Method::Projection,
        Method::Combined,
        Method::Routed,
        Method::Simhash,
        Method::Bloom,
        Method::Spotsigs,
    ];

    /// The name on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Minhash => "minhash",
            Method::Shingle => "shingle",
            Method::Projection => "projection",
            Method::Combined => "combined",
            Method::Routed => "routed",
            Method::Simhash => "simhash",
            Method::Bloom => "bloom",
            Method::Spotsigs => "spotsigs",
        }
    }

    /// Whether a similarity in 0..1 decides.
    #[must_use]
    pub fn has_threshold(self) -> bool {
        matches!(self, Method::Minhash | Method::Bloom | Method::Spotsigs)
    }
}

/// What a feature weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// One, however often it occurs.
    None,
    /// As often as it occurs.
    Tf,
    /// More, the fewer pages have it.
    Idf,
    /// Both.
    TfIdf,
}

impl Weights {
    /// The name on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Weights::None => "none",
            Weights::Tf => "tf",
            Weights::Idf => "idf",
            Weights::TfIdf => "tf-idf",
        }
    }

    /// Whether the corpus must be counted first.
    #[must_use]
    pub fn needs_corpus(self) -> bool {
        matches!(self, Weights::Idf | Weights::TfIdf)
    }
}

/// Only pages that agree in this are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    /// The language, as detected.
    Language,
    /// The site of the URL.
    Site,
}

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
}

/// Which pages a page is matched with (`spotsigs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// All.
    Full,
    /// In one pass, those before it that were no duplicates.
    Incremental,
    /// The same, starting from given examples.
    Seeded,
}

/// Which of several matches counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guess {
    /// The first above the threshold.
    First,
    /// The most similar.
    Best,
}

/// How spot signatures are made and matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpotConfig {
    /// Behind which words signatures are taken.
    pub antecedents: Antecedents,
    /// Which pages are matched.
    pub matching: Matching,
    /// Which match counts.
    pub guess: Guess,
    /// Duplicates can be matched, too.
    pub index_duplicates: bool,
    /// Pages whose numbers of signatures are too different are not compared.
    pub size_filter: bool,
    /// Signatures reach over the end of a block.
    pub spill: bool,
    /// Markup counts as text.
    pub raw: bool,
}

impl Default for SpotConfig {
    fn default() -> SpotConfig {
        SpotConfig {
            antecedents: Antecedents::BuiltIn,
            matching: Matching::Full,
            guess: Guess::Best,
            index_duplicates: false,
            size_filter: true,
            spill: false,
            raw: false,
        }
    }
}

/// How verified pairs become groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterMode {
    /// Every dropped page is a verified near-duplicate of the kept page it names.
    Star,
    /// Everything reachable over verified pairs is one group.
    Components,
}

/// Which page of a group is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// The first in the order (source, record).
    First,
    /// The one with most tokens.
    Longest,
    /// The one with the latest date.
    Newest,
    /// The one with the shortest URL.
    ShortestUrl,
    /// The one with the largest value of a field.
    Max(String),
}

impl std::str::FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Keep, String> {
        match text {
            "first" => Ok(Keep::First),
            "longest" => Ok(Keep::Longest),
            "newest" => Ok(Keep::Newest),
            "shortest-url" => Ok(Keep::ShortestUrl),
            _ => match text.strip_prefix("max:") {
                Some(field) if !field.is_empty() => Ok(Keep::Max(field.to_owned())),
                _ => Err("one of first, longest, newest, shortest-url, max:FIELD (for example max:score)".to_owned()),
            },
        }
    }
}

/// Field names for records that have fields. `None`: the usual names are tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    /// Field with the page's id.
    pub id: Option<String>,
    /// Field with the text or markup.
    pub text: Option<String>,
    /// Field with the URL.
    pub url: Option<String>,
    /// Field with the date, for `--keep newest`.
    pub date: Option<String>,
}

/// What decides the result. Everything in here is part of the config's hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The method.
    pub method: Method,
    /// Similarity from which two pages are near-duplicates (`minhash`, `bloom`, `spotsigs`).
    pub threshold: f64,
    /// Wanted share of the pairs at the threshold that become candidates (`minhash`).
    pub recall: f64,
    /// Equal supershingles from which two pages are near-duplicates (`shingle`, `combined`, `routed`).
    pub agree: u32,
    /// Words in a feature; 0 for content words and phrases (`simhash`).
    pub ngram: usize,
    /// What a feature weighs.
    pub weights: Weights,
    /// Bits of a projection (`projection`, `combined`, `routed`).
    pub sketch_bits: u32,
    /// Equal bits from which two pages are near-duplicates (`projection`, `combined`; `routed` between
    /// sites).
    pub bits: u32,
    /// The same within a site (`routed`).
    pub same_site_bits: u32,
    /// Parts of a projection, of which two pages must have one in common (`projection`, `routed`).
    pub pieces: u32,
    /// Differing bits up to which two pages are near-duplicates (`simhash`).
    pub radius: u32,
    /// What a site is.
    pub site: SiteRule,
    /// Where text is cut (`bloom`).
    pub chunks: ChunkPlan,
    /// Bits of a Bloom filter (`bloom`).
    pub filter_bits: u32,
    /// Bits a chunk sets in it (`bloom`).
    pub filter_hashes: u32,
    /// Spot signatures (`spotsigs`).
    pub spots: SpotConfig,
    /// Pages whose lengths differ by more than this factor are not compared.
    pub length_ratio: Option<f64>,
    /// Only pages that agree in this are compared.
    pub within: Option<Within>,
    /// The language of all pages, by its code (`eng`); without one, each page's is found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Volatile tokens are left out before anything else.
    pub mask_volatile: bool,
    /// Which part of an HTML page counts.
    #[serde(rename = "content")]
    pub scope: Scope,
    /// Text in scripts counts, where it is the page\'s own.
    pub scripts: bool,
    /// How pairs become groups.
    pub cluster: ClusterMode,
    /// Which page of a group stays.
    pub keep: Keep,
    /// Pages with fewer tokens match only as exact copies.
    pub min_tokens: u32,
    /// Keep upper and lower case apart.
    pub keep_case: bool,
    /// Only identity sets: no sketches, no near-duplicates.
    pub exact_only: bool,
    /// A bucket with more members than this is handled by the leader rule.
    pub bucket_limit: usize,
    /// Records larger than this are skipped and counted.
    pub max_page_bytes: u64,
    /// Which records of a crawl are pages.
    pub captures: CaptureFilter,
    /// Read every input as this format.
    pub format: Option<Format>,
    /// Names of the fields.
    pub fields: Fields,
    /// Seeds the min-value functions.
    pub seed: u64,
}

/// Supershingles a page has in Alg. B (Henzinger 2006, §2).
pub const SHINGLE_BANDS: usize = 6;
/// Min-values in one supershingle of Alg. B (Henzinger 2006, §2).
pub const SHINGLE_ROWS: usize = 14;
/// Bits of Alg. C, and equal ones from which pages are near-duplicates (Henzinger 2006, §2).
pub const PROJECTION_BITS: u32 = 384;
const PROJECTION_EQUAL: u32 = 372;
/// Equal bits of Alg. C that a pair of Alg. B must have (Henzinger 2006, §3.5).
const COMBINED_EQUAL: u32 = 355;
/// Most differing bits that are searched for; beyond it, everything is near everything.
pub const MOST_RADIUS: u32 = 15;

impl Default for Config {
    fn default() -> Config {
        Config::for_method(Method::Minhash)
    }
}

impl Config {
    /// The defaults of a method: its paper's, where there is one.
    #[must_use]
    pub fn for_method(method: Method) -> Config {
        Config {
            method,
            threshold: if method == Method::Spotsigs { 0.25 } else { 0.7 },
            recall: 0.99,
            agree: 2,
            ngram: match method {
                Method::Minhash => 5,
                Method::Shingle | Method::Combined | Method::Routed => 8,
                Method::Projection => 1,
                Method::Simhash | Method::Bloom | Method::Spotsigs => 0,
            },
            weights: if matches!(method, Method::Projection | Method::Simhash | Method::Bloom) {
                Weights::Tf
            } else {
                Weights::None
            },
            sketch_bits: PROJECTION_BITS,
            bits: if method == Method::Combined { COMBINED_EQUAL } else { PROJECTION_EQUAL },
            same_site_bits: COMBINED_EQUAL,
            pieces: PROJECTION_BITS - PROJECTION_EQUAL + 1,
            radius: 3,
            site: SiteRule::Paper,
            chunks: ChunkPlan::default(),
            filter_bits: 2048,
            filter_hashes: 4,
            spots: SpotConfig::default(),
            length_ratio: None,
            within: None,
            language: None,
            mask_volatile: false,
            scope: Scope::Core,
            scripts: false,
            cluster: ClusterMode::Star,
            keep: Keep::First,
            min_tokens: 8,
            keep_case: false,
            exact_only: false,
            bucket_limit: 256,
            max_page_bytes: 64 << 20,
            captures: CaptureFilter::default(),
            format: None,
            fields: Fields::default(),
            seed: 0x6c6f_6f6b_616c_696b,
        }
    }

    /// Projections of another number of bits, with thresholds and pieces for the same angles.
    pub fn set_sketch_bits(&mut self, bits: u32) {
        let defaults = Config::for_method(self.method);
        let scale = |equal: u32| {
            // Rounded down in the number of differing bits: never looser than the paper.
            bits - bits * (PROJECTION_BITS - equal) / PROJECTION_BITS
        };
        self.sketch_bits = bits;
        self.bits = scale(defaults.bits);
        self.same_site_bits = scale(defaults.same_site_bits);
        self.pieces = bits - scale(PROJECTION_EQUAL) + 1;
    }

    /// Another number of equal bits, with as many pieces as it takes to miss nothing.
    pub fn set_bits(&mut self, bits: u32) {
        self.bits = bits;
        self.pieces = self.sketch_bits.saturating_sub(bits) + 1;
    }

    /// How pages are read.
    #[must_use]
    pub fn text_options(&self) -> TextOptions {
        let is_spots = self.method == Method::Spotsigs;
        TextOptions {
            keep_case: self.keep_case,
            mask_volatile: self.mask_volatile,
            raw: is_spots && self.spots.raw,
            blocks: is_spots && !self.spots.spill && !self.spots.raw,
            words: self.method == Method::Simhash && self.ngram == 0,
            content: self.method == Method::Bloom,
            scope: self.scope,
            scripts: self.scripts,
        }
    }
}

impl Config {
    /// Refuses what cannot work, naming the flag.
    ///
    /// # Errors
    /// [`Error::Usage`] for a value outside its range.
    pub fn check(&self) -> Result<()> {
        let complain = |message: String| Err(Error::Usage(message));
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            return complain(format!(
                "--threshold {} is not a similarity: it must be above 0 and at most 1",
                self.threshold
            ));
        }
        if !(self.recall > 0.0 && self.recall < 1.0) {
            return complain(format!("--recall {} must be between 0 and 1, both excluded", self.recall));
        }
        let least = usize::from(!matches!(self.method, Method::Simhash | Method::Bloom | Method::Spotsigs));
        let most = if self.method == Method::Simhash { 8 } else { 32 };
        if !(least..=most).contains(&self.ngram) {
            return complain(format!("--ngram {} must be between 1 and {most} for {}", self.ngram, self.method.name()));
        }
        if let Some(name) = self.language.as_deref().filter(|name| crate::text::language::by_name(name).is_none()) {
            return complain(format!(
                "'{name}' is no known language; use its code of three letters, such as eng or deu"
            ));
        }
        if self.agree == 0 || self.agree as usize > SHINGLE_BANDS {
            return complain(format!("--agree {} must be between 1 and {SHINGLE_BANDS}", self.agree));
        }
        if !(16..=4096).contains(&self.sketch_bits) {
            return complain(format!("--sketch-bits {} must be between 16 and 4096", self.sketch_bits));
        }
        for (flag, bits) in [("--bits", self.bits), ("--same-site-bits", self.same_site_bits)] {
            if bits == 0 || bits > self.sketch_bits {
                return complain(format!(
                    "{flag} {bits} must be between 1 and {}, the bits of a sketch",
                    self.sketch_bits
                ));
            }
        }
        if self.pieces == 0 || self.pieces > self.sketch_bits {
            return complain(format!(
                "--pieces {} must be between 1 and {}, the bits of a sketch",
                self.pieces, self.sketch_bits
            ));
        }
        if self.radius > MOST_RADIUS {
            return complain(format!("--radius {} must be at most {MOST_RADIUS}", self.radius));
        }
        self.check_chunks()?;
        self.check_matching()?;
        if self.length_ratio.is_some_and(|ratio| !(ratio > 0.0 && ratio <= 1.0)) {
            return complain(format!(
                "--length-ratio {} must be above 0 and at most 1; 0.8 compares pages whose lengths differ by at most a fifth",
                self.length_ratio.unwrap_or_default()
            ));
        }
        let allowed: &[Weights] = match self.method {
            Method::Minhash | Method::Shingle | Method::Combined | Method::Routed => &[Weights::None, Weights::Tf],
            Method::Projection | Method::Bloom => &[Weights::Tf],
            Method::Simhash => &[Weights::None, Weights::Tf, Weights::TfIdf],
            Method::Spotsigs => &[Weights::None, Weights::Idf],
        };
        if !allowed.contains(&self.weights) {
            let names: Vec<&str> = allowed.iter().map(|weights| weights.name()).collect();
            return complain(format!(
                "--weights {} is not for {}, which has {}",
                self.weights.name(),
                self.method.name(),
                names.join(", ")
            ));
        }
        if self.bucket_limit < 2 {
            return complain("--bucket-limit must be at least 2".to_owned());
        }
        if self.max_page_bytes < 1024 {
            return complain("--max-page must be at least 1 KiB".to_owned());
        }
        Ok(())
    }

    fn check_chunks(&self) -> Result<()> {
        let chunks = self.chunks;
        let complaint = if !chunks.size.is_power_of_two() || !(2..=1 << 20).contains(&chunks.size) {
            format!("--chunk-size {} must be a power of two between 2 and 1048576", chunks.size)
        } else if !(1..=4096).contains(&chunks.window) {
            format!("--chunk-window {} must be between 1 and 4096 bytes", chunks.window)
        } else if (chunks.longest as u64) < chunks.size {
            format!("--chunk-max {} must not be below --chunk-size {}", chunks.longest, chunks.size)
        } else if !(64..=1 << 20).contains(&self.filter_bits) {
            format!("--filter-bits {} must be between 64 and 1048576", self.filter_bits)
        } else if !(1..=32).contains(&self.filter_hashes) {
            format!("--filter-hashes {} must be between 1 and 32", self.filter_hashes)
        } else {
            return Ok(());
        };
        Err(Error::Usage(complaint))
    }

    fn check_matching(&self) -> Result<()> {
        if self.method != Method::Spotsigs || self.spots.matching == Matching::Full {
            return Ok(());
        }
        let complaint = if self.keep != Keep::First {
            "--keep has no place in incremental and seeded matching, where the page met first in the seeded order is kept; use --matching full"
        } else if self.spots.index_duplicates && self.cluster == ClusterMode::Star {
            "--index-duplicates matches pages with duplicates of the kept page, which stars do not allow; add --cluster components"
        } else {
            return Ok(());
        };
        Err(Error::Usage(complaint.to_owned()))
    }

    /// A hash of everything that decides the result.
    #[must_use]
    pub fn hash(&self) -> u64 {
        // Serialising a struct of plain fields to memory cannot fail; an empty text would still
        // be the same text on every machine.
        xxh3_64(&serde_json::to_vec(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_same_on_every_machine_and_moves_with_the_config() {
        let config = Config::default();
        assert_eq!(config.hash(), 0x61dc_26a2_825e_271f, "stored in every result; a change needs a new format version");
        assert_ne!(config.hash(), Config { threshold: 0.8, ..config.clone() }.hash());
        assert_ne!(config.hash(), Config { keep: Keep::Longest, ..config }.hash());
    }

    #[test]
    fn values_outside_their_range_are_refused_by_name() {
        for config in [
            Config { threshold: 0.0, ..Config::default() },
            Config { threshold: f64::NAN, ..Config::default() },
            Config { recall: 1.0, ..Config::default() },
            Config { ngram: 0, ..Config::default() },
            Config { agree: 7, ..Config::default() },
        ] {
            let message = config.check().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.starts_with("--"), "{message}");
        }
        assert!(Config::default().check().is_ok());
    }
}
