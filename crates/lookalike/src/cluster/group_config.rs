//! How verified pairs become groups.

use globset::GlobMatcher;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::names::named;
use crate::read::fields::RankField;
use crate::read::{Source, patterns};

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
    /// The first: inputs in the order given, the files of a directory by name, then the place in the file.
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
    /// The page that it keeps, in words.
    #[must_use]
    pub(crate) fn in_words(&self) -> String {
        match self {
            Keep::First => "the first page".to_owned(),
            Keep::Longest => "the longest page".to_owned(),
            Keep::Newest => "the newest page".to_owned(),
            Keep::ShortestUrl => "the page with the shortest URL".to_owned(),
            Keep::Max(field) => format!("the page with the largest {field}"),
        }
    }

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

impl std::fmt::Display for Keep {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Keep::First => out.write_str("first"),
            Keep::Longest => out.write_str("longest"),
            Keep::Newest => out.write_str("newest"),
            Keep::ShortestUrl => out.write_str("shortest-url"),
            Keep::Max(field) => write!(out, "max:{field}"),
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
    /// Patterns of sources whose pages stay before those of all others, the first pattern first; only then the policy
    /// decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefer: Vec<String>,
}

impl GroupConfig {
    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        self.patterns().map(drop)
    }

    fn patterns(&self) -> Result<Vec<GlobMatcher>> {
        self.prefer.iter().map(|pattern| patterns::matcher("prefer", pattern)).collect()
    }

    /// The place of every source in the order of preference: that of the first pattern that matches its path, as it was
    /// given or within the directory that was given.
    ///
    /// # Errors
    /// When a pattern matches no source: it is likely a mistake.
    pub(crate) fn preferences(&self, sources: &[Source]) -> Result<Vec<usize>> {
        let patterns = self.patterns()?;
        for (pattern, text) in patterns.iter().zip(&self.prefer) {
            if !sources.iter().any(|source| matches(pattern, &source.display, &source.name)) {
                let first = sources.first().map_or_else(String::new, |source| format!(", such as {}", source.display));
                return Err(Error::invalid("prefer", text, format!("matches none of the input files{first}")));
            }
        }
        let place = |source: &Source| place(&patterns, &source.display, &source.name);
        Ok(sources.iter().map(place).collect())
    }

    /// The place of one source in that order, by its path and by its path within the directory that was given.
    pub(crate) fn preference(&self, display: &str, name: &str) -> Result<usize> {
        Ok(place(&self.patterns()?, display, name))
    }
}

fn matches(pattern: &GlobMatcher, display: &str, name: &str) -> bool {
    [display, name].into_iter().any(|path| pattern.is_match(path))
}

fn place(patterns: &[GlobMatcher], display: &str, name: &str) -> usize {
    patterns.iter().take_while(|pattern| !matches(pattern, display, name)).count()
}
