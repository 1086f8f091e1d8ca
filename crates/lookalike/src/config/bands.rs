//! What decides the band keys of a page.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::{Config, ReadConfig};
use crate::error::{Error, Result};
use crate::method::{MethodDefinition, Minhash};
use crate::text::ContentConfig;

/// What decides the band keys of a page, and nothing else: pages that were stored with equal ones can be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BandConfig {
    /// What of a page is compared.
    pub content: ContentConfig,
    /// Words in a feature.
    pub ngram: usize,
    /// The least threshold for which candidates are found with the promised recall.
    pub found_from: f64,
}

impl Default for BandConfig {
    fn default() -> BandConfig {
        let minhash = Minhash::default();
        BandConfig { content: ContentConfig::default(), ngram: minhash.ngram, found_from: minhash.threshold }
    }
}

impl BandConfig {
    /// A config that finds and decides at `threshold` what these keys find.
    #[must_use]
    pub fn config(&self, read: &ReadConfig, min_tokens: u32, threshold: f64) -> Config {
        let mut minhash = Minhash { ngram: self.ngram, ..Minhash::default() };
        minhash.set_threshold(threshold);
        let mut config = Config::new(minhash);
        config.read = read.clone();
        config.content = self.content.clone();
        config.pairs.min_tokens = min_tokens;
        config
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] and [`Error::Conflict`].
    pub fn check(&self, threshold: f64) -> Result<()> {
        self.config(&ReadConfig::default(), 1, self.found_from).check()?;
        if threshold < self.found_from {
            let reason = format!(
                "its tables find near-duplicates from {} on; rebuild the collection for a lower one",
                self.found_from
            );
            return Err(Error::conflict("threshold", reason));
        }
        Ok(())
    }

    /// Stands for what the keys mean. The same on every machine; what is known of frames does not count, as stored pages
    /// are read again when that changes.
    pub(crate) fn hash(&self, min_tokens: u32) -> u64 {
        let content = ContentConfig { frames: None, ..self.content.clone() };
        let decides = (content, self.ngram, self.found_from.to_bits(), min_tokens, "bands");
        xxh3_64(&serde_json::to_vec(&decides).expect("plain fields serialise"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_dedup_and_their_hash_stays() {
        let bands = BandConfig::default();
        let config = bands.config(&ReadConfig::default(), Config::default().pairs.min_tokens, bands.found_from);
        assert_eq!(config, Config::default());
        assert_eq!(bands.hash(5), 0x948a_fb00_0a71_76ed, "in every table; never changes");
        assert_ne!(bands.hash(5), bands.hash(6));
        assert!(bands.check(0.7).is_ok() && bands.check(0.9).is_ok());
        assert!(bands.check(0.6).unwrap_err().to_string().contains("from 0.7"));
    }
}
