//! How verified pairs become groups.

use serde::{Deserialize, Serialize};

use crate::names::named;
use crate::read::fields::RankField;

named! {
    /// How verified pairs become groups.
    pub enum ClusterMode default Star {
        /// Every dropped page is a verified near-duplicate of the kept page it names
        Star = "star",
        /// Everything reachable over verified pairs is one group
        Components = "components",
    }
}

/// Which page of a group is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    #[default]
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

impl Keep {
    /// The field that must be read for it.
    #[must_use]
    pub(crate) fn rank_field(&self) -> RankField<'_> {
        match self {
            Keep::Newest => RankField::Date,
            Keep::Max(field) => RankField::Number(field),
            Keep::First | Keep::Longest | Keep::ShortestUrl => RankField::None,
        }
    }
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

/// How verified pairs become groups, and which page of a group stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GroupConfig {
    /// How pairs become groups.
    pub cluster: ClusterMode,
    /// Which page of a group stays.
    pub keep: Keep,
}
