//! Which pairs are looked at, whatever the method.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::names::named;
use crate::text::site::SiteRule;

named! {
    /// Only pages that agree in this are compared.
    pub enum Within {
        /// The language, as detected
        Language = "language",
        /// The site of the URL
        Site = "site",
    }
}

/// Which pairs are looked at, whatever the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PairConfig {
    /// What a site is.
    pub site: SiteRule,
    /// Only pages that agree in this are compared.
    pub within: Option<Within>,
    /// Pages whose lengths differ by more than this factor are not compared.
    pub length_ratio: Option<f64>,
    /// Pages with fewer tokens match only as exact copies.
    pub min_tokens: u32,
    /// Only identity sets: no sketches, no near-duplicates.
    pub exact_only: bool,
    /// A bucket with more members than this is handled by the leader rule.
    pub bucket_limit: usize,
}

impl Default for PairConfig {
    fn default() -> PairConfig {
        PairConfig {
            site: SiteRule::Paper,
            within: None,
            length_ratio: None,
            min_tokens: 8,
            exact_only: false,
            bucket_limit: 256,
        }
    }
}

impl PairConfig {
    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        if let Some(ratio) = self.length_ratio.filter(|ratio| !(*ratio > 0.0 && *ratio <= 1.0)) {
            let expected = "must be above 0 and at most 1; 0.8 compares pages whose lengths differ by at most a fifth";
            return Err(Error::invalid("length_ratio", ratio, expected));
        }
        if self.bucket_limit < 2 {
            return Err(Error::invalid("bucket_limit", self.bucket_limit, "must be at least 2"));
        }
        Ok(())
    }
}
