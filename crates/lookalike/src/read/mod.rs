//! Bytes → pages.
//!
//! In: sources. Out: batches of records, made by one thread and parsed by many; every record is
//! handed on as a [`RawPage`] or as a [`SkippedRecord`] that says what is wrong with it. A second
//! reading of chosen records ([`Wanted`]) seeks where the source allows it.
//!
//! `source/`: arguments → sources. `split/`: sources → batches of whole records. `format/`: one file per format.
//! `crawl/`: what web archives of either format have in common.

pub(crate) mod crawl;
pub mod fields;
pub mod format;
mod source;
mod split;

pub use crawl::capture::{CaptureFilter, MimeTypes, Statuses};
pub(crate) use crawl::capture::{NEAR_PROFILE, record_names};
pub(crate) use crawl::http::{head_length, response_body_bytes};
pub use format::Format;
pub(crate) use format::parquet::{guarded, open_file as open_parquet};
pub(crate) use format::warc::head as warc_head;
pub use source::compression;
pub use source::file::Location;
pub(crate) use source::file::{Chunks, SourceFile};
pub(crate) use source::plain;
pub use source::{STDIN, Source, Sources, discover, known_source};
pub use split::batch::{Batch, Found, NoPage};
pub use split::buffer;
pub use split::units::{Unit, UnitEnd};
pub(crate) use split::unpack::Unpacker;

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, SkipKind, SkippedRecord};
use crate::page::{PageId, RawPage};
use crate::parallel::JobSender;
use buffer::BufferPool;
use fields::{FieldNames, Fields, RankField};
use split::batch::Content;
use split::stream;

/// Page files in one batch, at most this many and about this many bytes.
const BATCH_FILES: usize = 64;
const BATCH_FILE_BYTES: u64 = 1 << 20;
/// Records that are read by seeking, in one batch.
const BATCH_SEEKS: usize = 128;

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
}

impl Default for ReadConfig {
    fn default() -> ReadConfig {
        ReadConfig {
            format: None,
            fields: Fields::default(),
            captures: CaptureFilter::default(),
            max_page_bytes: 64 << 20,
        }
    }
}

impl ReadConfig {
    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        if self.max_page_bytes < 1024 {
            return Err(Error::invalid("max_page", self.max_page_bytes, "must be at least 1 KiB"));
        }
        Ok(())
    }
}

/// What all readers need to know.
pub struct Reading<'a> {
    /// The sources, by index.
    pub sources: &'a [Source],
    /// Which field is what.
    pub names: FieldNames,
    /// Records larger than this are skipped.
    pub max_page_bytes: u64,
    /// Which records of a crawl are pages.
    pub captures: CaptureFilter,
    /// Bytes taken from disk so far, for whoever shows progress.
    pub bytes_read: AtomicU64,
    /// Buffers that batches have been done with.
    pub buffers: Arc<BufferPool>,
}

/// A record that is to be read again.
#[derive(Debug, Clone, Copy)]
pub struct WantedRecord {
    /// Index of its source.
    pub source: u32,
    /// Its number in the source.
    pub record: u64,
    /// Where it starts, if it has such a place.
    pub offset: Option<u64>,
    /// Its length.
    pub length: u64,
    /// The page it is.
    pub page: PageId,
}

/// Records to be read again, in the order of their pages.
#[derive(Debug, Default)]
pub struct Wanted(pub Vec<WantedRecord>);

impl Wanted {
    /// The page that is record `record` of source `source`.
    #[must_use]
    pub fn page_of(&self, source: u32, record: u64) -> Option<PageId> {
        self.0
            .binary_search_by_key(&(source, record), |wanted| (wanted.source, wanted.record))
            .ok()
            .map(|at| self.0[at].page)
    }
}

impl<'s> Reading<'s> {
    /// Reads `sources` as `config` says; `rank` is the field that pages are ranked by.
    #[must_use]
    pub fn new(config: &ReadConfig, rank: RankField<'_>, sources: &'s [Source]) -> Reading<'s> {
        Reading {
            sources,
            names: FieldNames::new(&config.fields, rank),
            max_page_bytes: config.max_page_bytes,
            captures: config.captures.clone(),
            bytes_read: AtomicU64::new(0),
            buffers: Arc::default(),
        }
    }
}

impl Reading<'_> {
    /// The id of a page: its own, or its file and record.
    #[must_use]
    pub fn id_of(&self, page: &RawPage<'_>) -> String {
        let numbered = || format!("{}:{}", self.sources[page.source as usize].name, page.record);
        page.id.as_deref().map_or_else(numbered, str::to_owned)
    }

    /// Hands all records of all sources to `jobs`, in order.
    ///
    /// # Errors
    /// Never for bad records; those are handed on as such.
    pub fn read_all(&self, jobs: &mut JobSender<'_, Batch>) -> Result<()> {
        self.read_sources(0..self.sources.len(), jobs)
    }

    fn read_sources(&self, sources: Range<usize>, jobs: &mut JobSender<'_, Batch>) -> Result<()> {
        let mut index = sources.start;
        while index < sources.end {
            let source = &self.sources[index];
            let here = as_u32(index);
            if source.format.is_page_file() {
                let pages = self.sources[index..sources.end].iter().take_while(|source| source.format.is_page_file());
                let count = self.batch_files(pages);
                let files = (here..).take(count).collect();
                if !jobs.send(Batch { source: here, content: Content::Files(files), only: None }) {
                    return Ok(());
                }
                index += count;
                continue;
            }
            if !self.read_source(here, None, jobs) {
                return Ok(());
            }
            index += 1;
        }
        Ok(())
    }

    /// How many of these page files make a batch; at least one.
    fn batch_files<'s>(&self, files: impl Iterator<Item = &'s Source>) -> usize {
        let mut bytes = 0;
        let within = files.take(BATCH_FILES).take_while(|source| {
            let room = bytes < BATCH_FILE_BYTES;
            bytes += source.bytes;
            room
        });
        within.count()
    }

    /// Hands the wanted records to `jobs`, in order, reading as little else as the source allows.
    ///
    /// # Errors
    /// Never for bad records; those are handed on as such.
    pub fn read_wanted(&self, wanted: &Wanted, jobs: &mut JobSender<'_, Batch>) -> Result<()> {
        let is_page_file = |wanted: &WantedRecord| self.sources[wanted.source as usize].format.is_page_file();
        let together =
            |a: &WantedRecord, b: &WantedRecord| a.source == b.source || (is_page_file(a) && is_page_file(b));
        for records in wanted.0.chunk_by(together) {
            let here = records[0].source;
            let source = &self.sources[here as usize];
            let go_on = if source.format.is_page_file() {
                let mut rest = records;
                let mut go_on = true;
                while go_on && !rest.is_empty() {
                    let (files, later) = rest
                        .split_at(self.batch_files(rest.iter().map(|wanted| &self.sources[wanted.source as usize])));
                    let content = Content::Files(files.iter().map(|wanted| wanted.source).collect());
                    go_on = jobs.send(Batch { source: here, content, only: None });
                    rest = later;
                }
                go_on
            } else if source.is_seekable() && records.iter().all(|wanted| wanted.offset.is_some()) {
                let header = match source.format {
                    Format::Csv | Format::Tsv => match stream::header(self, here) {
                        Ok((header, _)) => Some(Arc::new(header)),
                        Err(skipped) => {
                            jobs.send(Batch { source: here, content: Content::Skipped(skipped), only: None });
                            continue;
                        }
                    },
                    _ => None,
                };
                records.chunks(BATCH_SEEKS).all(|records| {
                    let content = Content::Seek { records: records.to_vec(), header: header.clone() };
                    jobs.send(Batch { source: here, content, only: None })
                })
            } else {
                let only = Arc::new(records.iter().map(|wanted| wanted.record).collect());
                self.read_source(here, Some(&only), jobs)
            };
            if !go_on {
                break;
            }
        }
        Ok(())
    }

    /// The length of a table's header; none where a source has none.
    #[must_use]
    pub fn header_bytes(&self, source: u32) -> Option<u64> {
        match self.sources[source as usize].format {
            Format::Csv | Format::Tsv => stream::header(self, source).ok().map(|(_, bytes)| bytes),
            _ => None,
        }
    }

    /// Streams one source; false: stop.
    fn read_source(&self, source: u32, only: Option<&Arc<Vec<u64>>>, jobs: &mut JobSender<'_, Batch>) -> bool {
        let mut send = |content| jobs.send(Batch { source, content, only: only.cloned() });
        match self.sources[source as usize].format {
            Format::Jsonl => stream::lines(self, source, &mut send),
            Format::Csv | Format::Tsv => stream::table(self, source, &mut send),
            Format::Parquet => stream::rows(self, source, &mut send),
            Format::Warc | Format::Arc => crawl::records(self, source, &mut send),
            Format::Trec | Format::Reuters | Format::MediaWiki => format::tagged::documents(self, source, &mut send),
            Format::Html | Format::Text => true, // page files are batched by their callers
        }
    }

    fn skipped(
        &self,
        source: u32,
        record: Option<u64>,
        byte: Option<u64>,
        (kind, reason): (SkipKind, String),
        bytes: &[u8],
    ) -> SkippedRecord {
        let source = self.sources[source as usize].display.clone();
        SkippedRecord { kind, source, record, byte, reason, first_bytes: SkippedRecord::excerpt(bytes) }
    }

    fn too_large(&self, length: u64) -> (SkipKind, String) {
        let limit = crate::size::format_bytes(self.max_page_bytes);
        (
            SkipKind::TooLarge,
            format!("the record has {length} bytes or more, above the limit of {limit} (use --max-page)"),
        )
    }

    fn file(&self, source: &Source) -> std::io::Result<SourceFile<'_>> {
        source.location.open_counted(&self.bytes_read)
    }

    fn open(&self, source: &Source) -> std::io::Result<Box<dyn Read + Send + '_>> {
        source.compression.decode(self.file(source)?)
    }
}

fn as_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
