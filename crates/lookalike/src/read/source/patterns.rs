//! Which files of the inputs are read, by patterns of their paths.

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};

use crate::error::{Error, Result};
use crate::read::ReadConfig;

/// Patterns as in a `.gitignore`: without a slash one is for names in any directory, with a slash at its end for all that
/// is in a directory; `*` stays within a name, `**` does not.
pub(crate) struct Patterns {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
}

impl Patterns {
    /// Those of a config.
    ///
    /// # Errors
    /// When one of them is not a pattern.
    pub(crate) fn new(config: &ReadConfig) -> Result<Patterns> {
        Ok(Patterns { include: set("include", &config.include)?, exclude: set("exclude", &config.exclude)? })
    }

    /// Whether a file is read that has this path below its input.
    pub(crate) fn take(&self, path: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(path))
            && !self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(path))
    }
}

/// Refuses what is not a pattern.
pub(crate) fn check(config: &ReadConfig) -> Result<()> {
    Patterns::new(config).map(|_| ())
}

/// One such pattern by itself.
pub(crate) fn matcher(setting: &'static str, pattern: &str) -> Result<GlobMatcher> {
    Ok(glob(pattern).map_err(|error| not_a_pattern(setting, pattern, &error))?.compile_matcher())
}

fn not_a_pattern(setting: &'static str, pattern: &str, error: &globset::Error) -> Error {
    Error::invalid(setting, pattern, format!("not a pattern: {}", error.kind()))
}

fn set(setting: &'static str, patterns: &[String]) -> Result<Option<GlobSet>> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern).map_err(|error| not_a_pattern(setting, pattern, &error))?);
    }
    let built = set.build();
    Ok(Some(built.map_err(|error| Error::invalid(setting, patterns.join(", "), error.to_string()))?))
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    let plain = pattern.trim_start_matches("./");
    let inside = if plain.ends_with('/') { format!("{plain}**") } else { plain.to_owned() };
    let anchored = match (plain.trim_end_matches('/').contains('/'), inside.strip_prefix('/')) {
        (_, Some(from_top)) => from_top.to_owned(),
        (true, None) => inside,
        (false, None) => format!("**/{inside}"),
    };
    GlobBuilder::new(&anchored).literal_separator(true).build()
}
