//! One description of a run. The command line, and later HTTP and Python, build a [`Config`] and
//! hand it to the library; no logic lives in them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::read::Format;

/// Which pairs of pages are near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Banded MinHash, then exact Jaccard similarity at or above a threshold.
    Minhash,
    /// Broder's algorithm as Henzinger (2006) ran it: equal supershingles.
    Shingle,
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
    /// Jaccard similarity from which two pages are near-duplicates (`minhash`).
    pub threshold: f64,
    /// Wanted share of the pairs at the threshold that become candidates (`minhash`).
    pub recall: f64,
    /// Equal supershingles from which two pages are near-duplicates (`shingle`).
    pub agree: u32,
    /// Tokens in a shingle.
    pub ngram: usize,
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
    /// Read every input as this format.
    pub format: Option<Format>,
    /// Names of the fields.
    pub fields: Fields,
    /// Seeds the min-value functions.
    pub seed: u64,
}

/// The n-gram length of `minhash`.
pub const MINHASH_NGRAM: usize = 5;
/// The shingle length of Alg. B (Henzinger 2006, §2).
pub const SHINGLE_NGRAM: usize = 8;
/// Supershingles a page has in Alg. B (Henzinger 2006, §2).
pub const SHINGLE_BANDS: usize = 6;
/// Min-values in one supershingle of Alg. B (Henzinger 2006, §2).
pub const SHINGLE_ROWS: usize = 14;

impl Default for Config {
    fn default() -> Config {
        Config {
            method: Method::Minhash,
            threshold: 0.7,
            recall: 0.99,
            agree: 2,
            ngram: MINHASH_NGRAM,
            cluster: ClusterMode::Star,
            keep: Keep::First,
            min_tokens: 8,
            keep_case: false,
            exact_only: false,
            bucket_limit: 256,
            max_page_bytes: 64 << 20,
            format: None,
            fields: Fields::default(),
            seed: 0x6c6f_6f6b_616c_696b,
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
        if !(1..=32).contains(&self.ngram) {
            return complain(format!("--ngram {} must be between 1 and 32", self.ngram));
        }
        if self.agree == 0 || self.agree as usize > SHINGLE_BANDS {
            return complain(format!("--agree {} must be between 1 and {SHINGLE_BANDS}", self.agree));
        }
        if self.bucket_limit < 2 {
            return complain("--bucket-limit must be at least 2".to_owned());
        }
        if self.max_page_bytes < 1024 {
            return complain("--max-page must be at least 1 KiB".to_owned());
        }
        Ok(())
    }

    /// A hash of everything that decides the result.
    #[must_use]
    pub fn hash(&self) -> u64 {
        // Serialising a struct of plain fields to memory cannot fail; an empty text would still
        // be the same text on every machine.
        xxh3_64(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Where a run reads and writes, and what it may use. Nothing in here changes the result.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Files, directories, globs, or `-`.
    pub inputs: Vec<String>,
    /// The output directory.
    pub output: PathBuf,
    /// Ceiling on memory, in bytes.
    pub memory_bytes: u64,
    /// Worker threads.
    pub threads: usize,
    /// Stop at the first record that cannot be used.
    pub strict: bool,
    /// Write into a directory that is not ours.
    pub force: bool,
    /// Write the tables as JSON lines too.
    pub jsonl: bool,
    /// Copy kept page files instead of only listing them.
    pub copy_kept: bool,
}

/// A size such as `512MB`, `2GiB`, `1.5g` or `4096` in bytes.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let help = || format!("'{text}' is not a size; write for example 512MB, 2GiB or 4096");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..split].parse().map_err(|_| help())?;
    let unit: f64 = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "tb" => 1e12,
        _ => return Err(help()),
    };
    let bytes = number * unit;
    if !bytes.is_finite() || bytes < 0.0 || bytes > 2f64.powi(60) {
        return Err(help());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 ..= 2^60, checked above
    Ok(bytes as u64)
}

/// Bytes for people: `1.5 GiB`, `320 MiB`, `17 B`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 100.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_both_kinds_of_units() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("1k"), Ok(1024));
        assert_eq!(parse_bytes("2MB"), Ok(2_000_000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(1_610_612_736));
        assert!(parse_bytes("lots").is_err());
        assert!(parse_bytes("").is_err());
        assert!(parse_bytes("5 parsec").is_err());
    }

    #[test]
    fn sizes_are_written_for_people() {
        assert_eq!(format_bytes(17), "17 B");
        assert_eq!(format_bytes(1536), "1.5 KiB");
        assert_eq!(format_bytes(320 << 20), "320 MiB");
    }

    #[test]
    fn the_hash_is_the_same_on_every_machine_and_moves_with_the_config() {
        let config = Config::default();
        assert_eq!(config.hash(), 0x54b2_594e_a121_f153, "stored in every result; a change needs a new format version");
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
