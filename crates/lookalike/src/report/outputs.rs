//! What is written besides the tables, and how.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::names::named;
use crate::page::PageOrigin;
use crate::read::Corpus;
use crate::read::compression::Compression;

/// Files smaller than this are mostly overhead.
const LEAST_SPLIT_BYTES: u64 = 1 << 10;

/// What is written besides the tables, and how. Nothing in here changes what is decided about pages.
///
/// ```
/// use lookalike::RunOptions;
/// use lookalike::result::KeptFormat;
///
/// let mut options = RunOptions::new(["corpus/*.jsonl"], "out");
/// options.outputs.removed = true;
/// options.outputs.kept_format = KeptFormat::Parquet;
/// options.outputs.kept_compression = "zstd:9".parse().unwrap();
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OutputOptions {
    /// Write the tables as JSON lines too.
    pub jsonl: bool,
    /// Copy kept page files instead of only listing them.
    pub copy_kept: bool,
    /// In web archives, write dropped pages as revisits of the pages that they duplicate.
    pub revisit: bool,
    /// Do not write `kept/`.
    pub no_kept: bool,
    /// Write the dropped records too.
    pub removed: bool,
    /// Write all records, with what became of them added.
    pub annotate: bool,
    /// The format of the files in `kept/`.
    pub kept_format: KeptFormat,
    /// How they are compressed.
    pub kept_compression: KeptCompression,
    /// Divide files of records into parts of about so many bytes.
    pub split_size: Option<u64>,
}

named! {
    /// The format of the files in `kept/`.
    pub enum KeptFormat default Same {
        /// The format of each input file, its records unchanged
        Same = "same",
        /// A JSON object per line
        Jsonl = "jsonl",
        /// Apache Parquet
        Parquet = "parquet",
        /// Comma-separated values with a header line
        Csv = "csv",
    }
}

/// How the files in `kept/` are compressed: `same`, `none`, `gzip`, `zstd`, the last two also with a level, as in `zstd:9`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeptCompression {
    /// As each input file.
    #[default]
    Same,
    /// All alike.
    To {
        /// How.
        compression: Compression,
        /// How hard; the usual level if it is not given.
        level: Option<i32>,
    },
}

impl FromStr for KeptCompression {
    type Err = String;

    fn from_str(text: &str) -> Result<KeptCompression, String> {
        let wrong = || "same, none, gzip, zstd, or with a level: gzip:1 to gzip:9, zstd:1 to zstd:22".to_owned();
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level.parse::<i32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let (compression, highest) = match name {
            "same" if level.is_none() => return Ok(KeptCompression::Same),
            "none" => (Compression::None, 0),
            "gzip" => (Compression::Gzip, 9),
            "zstd" => (Compression::Zstd, 22),
            _ => return Err(wrong()),
        };
        if level.is_some_and(|level| !(1..=highest).contains(&level)) {
            return Err(wrong());
        }
        Ok(KeptCompression::To { compression, level })
    }
}

impl fmt::Display for KeptCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeptCompression::To { compression, level } = self else { return f.write_str("same") };
        f.write_str(compression.name())?;
        level.map_or(Ok(()), |level| write!(f, ":{level}"))
    }
}

impl Serialize for KeptCompression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeptCompression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeptCompression, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl OutputOptions {
    /// Whether nothing unusual is asked for.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == OutputOptions::default()
    }

    /// What was asked for before, and what is asked for now.
    pub(crate) fn or(self, earlier: OutputOptions) -> OutputOptions {
        let is_other = self.kept_format != KeptFormat::Same || self.copy_kept || self.revisit;
        OutputOptions {
            jsonl: self.jsonl || earlier.jsonl,
            copy_kept: self.copy_kept || (earlier.copy_kept && self.kept_format == KeptFormat::Same),
            revisit: self.revisit,
            no_kept: self.no_kept || (earlier.no_kept && !is_other),
            removed: self.removed || earlier.removed,
            annotate: self.annotate || earlier.annotate,
            kept_format: if is_other { self.kept_format } else { earlier.kept_format },
            kept_compression: match self.kept_compression {
                KeptCompression::Same => earlier.kept_compression,
                asked @ KeptCompression::To { .. } => asked,
            },
            split_size: self.split_size.or(earlier.split_size),
        }
    }

    /// Refuses what does not go together.
    ///
    /// # Errors
    /// [`Error::Conflict`] or [`Error::InvalidSetting`].
    pub(crate) fn check(&self) -> Result<()> {
        let changes_kept = [
            ("copy_kept", self.copy_kept),
            ("revisit", self.revisit),
            ("kept_format", self.kept_format != KeptFormat::Same),
            ("kept_compression", self.kept_compression != KeptCompression::Same),
        ];
        if let Some((setting, _)) = changes_kept.iter().find(|row| self.no_kept && row.1) {
            return Err(Error::conflict(*setting, "is about kept/, which `no_kept` leaves out; use one of them"));
        }
        let is_converted = self.kept_format != KeptFormat::Same;
        if let Some((setting, _)) = changes_kept[..2].iter().find(|row| is_converted && row.1) {
            let reason = "writes records as they are, and `kept_format` writes them anew; use one of them";
            return Err(Error::conflict(*setting, reason));
        }
        match self.split_size {
            Some(bytes) if bytes < LEAST_SPLIT_BYTES => {
                Err(Error::invalid("split_size", bytes, "must be at least 1 KiB"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what these inputs cannot have.
    ///
    /// # Errors
    /// [`Error::Conflict`].
    pub(crate) fn check_sources(&self, corpus: &Corpus) -> Result<()> {
        let of_input = corpus.sources.iter().filter(|source| source.origin == PageOrigin::Input);
        let plain = |source: &&crate::read::Source| source.format.reader().annotations().is_none();
        if let Some(source) = { of_input }.find(|source| self.annotate && plain(source)) {
            return Err(Error::conflict(
                "annotate",
                format!(
                    "{}: no fields can be added to records of the format {}; JSON, Parquet, Arrow, CSV and TSV can have them. \
                     Without it, clusters.parquet has the same facts by id, and `kept_format` jsonl or parquet writes the kept pages as records",
                    source.display,
                    source.format.name()
                ),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressions_are_read_as_they_are_written() {
        for text in ["same", "none", "gzip", "gzip:9", "zstd", "zstd:19"] {
            assert_eq!(text.parse::<KeptCompression>().unwrap().to_string(), text);
        }
        for text in ["", "lz4", "zstd:23", "gzip:0", "gzip:x", "none:1", "same:1"] {
            assert!(text.parse::<KeptCompression>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let options = OutputOptions { no_kept: true, removed: true, ..OutputOptions::default() };
        assert!(options.check().is_ok());
        assert!(OutputOptions { revisit: true, ..options }.check().is_err());
        assert!(OutputOptions { kept_format: KeptFormat::Csv, ..options }.check().is_err());
        let converted = OutputOptions { kept_format: KeptFormat::Csv, ..OutputOptions::default() };
        assert!(converted.check().is_ok());
        assert!(OutputOptions { copy_kept: true, ..converted }.check().is_err());
        assert!(OutputOptions { split_size: Some(10), ..converted }.check().is_err());
    }

    #[test]
    fn outputs_of_before_are_written_again_unless_others_are_asked_for() {
        let earlier = OutputOptions {
            removed: true,
            kept_format: KeptFormat::Parquet,
            split_size: Some(1 << 20),
            ..OutputOptions::default()
        };
        assert_eq!(OutputOptions::default().or(earlier), earlier);
        let csv = OutputOptions { kept_format: KeptFormat::Csv, ..OutputOptions::default() };
        assert_eq!(csv.or(earlier), OutputOptions { kept_format: KeptFormat::Csv, ..earlier });
        let without = OutputOptions { no_kept: true, ..OutputOptions::default() };
        assert!(csv.or(without).check().is_ok());
    }
}
