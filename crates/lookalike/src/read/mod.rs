//! Bytes → pages.
//!
//! In: files, directories, patterns, objects in stores. Out: a [`Corpus`], whose pages are seen in order by
//! [`Corpus::for_each`] and [`Scan`]; every record is a [`RawPage`](crate::page::RawPage), or a
//! [`SkippedRecord`](crate::error::SkippedRecord) that says what is wrong with it. Chosen records
//! ([`Wanted`]) are read again by seeking where the source allows it.
//!
//! `source/`: arguments → sources. `split/`: sources → batches of whole records. `format/`: one file per format.
//! `crawl/`: what web archives of either format have in common.

mod chosen;
mod corpus;
pub(crate) mod crawl;
pub mod fields;
pub mod format;
mod scan;
pub(crate) mod source;
mod split;
mod wanted;

pub use chosen::ChosenCaptures;
pub use corpus::Corpus;
pub use crawl::capture::{CaptureFilter, MimeTypes, Statuses};
pub(crate) use crawl::capture::{NEAR_PROFILE, record_names};
pub(crate) use crawl::http::{head_length, response_body_bytes};
pub(crate) use crawl::revisits::Captures;
pub use format::Format;
pub(crate) use format::arrow::ArrowStream;
pub(crate) use format::csv::TableHead;
pub(crate) use format::json::Frame;
pub(crate) use format::parquet::{guarded, open_file as open_parquet, open_typed as open_typed_parquet};
pub(crate) use format::reader::{Annotations, Input, Keeping};
pub(crate) use format::rows::dictionary_value;
pub(crate) use format::warc::head as warc_head;
pub use scan::{Scan, Scanned};
pub use source::compression;
pub use source::file::MadeBytes;
pub(crate) use source::file::{Chunks, Location, SourceFile};
pub(crate) use source::patterns;
pub(crate) use source::plain;
pub use source::{STDIN, Source, Sources, discover, known_source};
pub(crate) use split::batch::Batch;
pub use split::batch::{NotAPage, Record};
pub(crate) use split::units::{Stretch, UNIT_BYTES, Unit, UnitEnd};
pub(crate) use split::unpack::Unpacker;
pub use wanted::{Wanted, WantedRecord};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use fields::{Fields, ReadAs};

/// What is read, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReadConfig {
    /// Read every input as this format; without one, each is recognised.
    pub format: Option<Format>,
    /// Names of the fields.
    pub fields: Fields,
    /// Which records of a crawl are pages.
    pub captures: CaptureFilter,
    /// Records larger than this are skipped and counted.
    pub max_page_bytes: u64,
    /// Read every page as text, or as HTML; without it, its type and its first tag decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_as: Option<ReadAs>,
    /// Patterns of the files that are read, by their paths below the input; without any, all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Patterns of files that are not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The share of the pages that take part, chosen by their ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<f64>,
    /// The captures of web archives that take part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdxj: Option<ChosenCaptures>,
}

impl Default for ReadConfig {
    fn default() -> ReadConfig {
        ReadConfig {
            format: None,
            fields: Fields::default(),
            captures: CaptureFilter::default(),
            max_page_bytes: 64 << 20,
            read_as: None,
            include: Vec::new(),
            exclude: Vec::new(),
            sample: None,
            cdxj: None,
        }
    }
}

impl ReadConfig {
    /// The same without patterns: those are for the input, not for what it is held against.
    #[must_use]
    pub(crate) fn of_all_files(&self) -> ReadConfig {
        ReadConfig { include: Vec::new(), exclude: Vec::new(), ..self.clone() }
    }

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        if self.max_page_bytes < 1024 {
            return Err(Error::invalid("max_page", self.max_page_bytes, "must be at least 1 KiB"));
        }
        if let Some(share) = self.sample.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            return Err(Error::invalid("sample", share, "must be above 0 and at most 1, for example 0.1"));
        }
        if let Some(text) = self.fields.text.as_ref().filter(|text| text.split(',').any(|name| name.trim().is_empty()))
        {
            return Err(Error::invalid("text_field", text, "names a field that has no name"));
        }
        patterns::check(self)?;
        Ok(())
    }
}
