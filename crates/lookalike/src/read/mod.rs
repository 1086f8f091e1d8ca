//! Bytes → pages.
//!
//! In: sources. Out: batches of records, made by one thread and parsed by many; every record is
//! handed on as a [`RawPage`] or as a [`SkippedRecord`] that says what is wrong with it. A second
//! reading of chosen records ([`Wanted`]) seeks where the source allows it. A reader is one file
//! in this folder; web archives will be two more.

pub mod buffer;
pub mod compression;
mod csv;
pub mod fields;
pub mod format;
mod jsonl;
mod parquet;
mod source;
mod source_names;
mod stream;

pub use format::Format;
pub(crate) use parquet::{guarded, open_file as open_parquet};
pub use source::{STDIN, Source, Sources, discover, known_source};

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use memchr::memchr;

use crate::error::{Result, SkipKind, SkippedRecord};
use crate::page::{Body, Markup, PageId, RawPage};
use crate::parallel::JobSender;
use buffer::{Buffer, BufferPool};
use compression::Compression;
use fields::FieldNames;
use jsonl::Line;

/// Page files in one batch, at most this many and about this many bytes.
const BATCH_FILES: usize = 64;
const BATCH_FILE_BYTES: u64 = 1 << 20;
/// Records that are read by seeking, in one batch.
const BATCH_SEEKS: usize = 128;

/// What all readers need to know.
pub struct Reading<'a> {
    /// The sources, by index.
    pub sources: &'a [Source],
    /// Which field is what.
    pub names: FieldNames,
    /// Records larger than this are skipped.
    pub max_page_bytes: u64,
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

/// A piece of work: some records of one source, or some page files.
pub struct Batch {
    source: u32,
    content: Content,
    /// If given, only these records are parsed.
    only: Option<Arc<Vec<u64>>>,
}

enum Content {
    Lines { bytes: Buffer, first_record: u64, offset: u64 },
    Table { bytes: Buffer, ends: Vec<usize>, first_record: u64, offset: u64, header: Arc<csv::Header> },
    Rows { rows: parquet::Rows, first_record: u64 },
    Seek { records: Vec<WantedRecord>, header: Option<Arc<csv::Header>> },
    Files(Vec<u32>),
    Skipped(SkippedRecord),
}

/// What a batch is made of: pages, and records that are none.
pub type Found<'a> = Result<RawPage<'a>, SkippedRecord>;

impl Reading<'_> {
    /// Hands all records of all sources to `jobs`, in order.
    ///
    /// # Errors
    /// Never for bad records; those are handed on as such.
    pub fn read_all(&self, jobs: &mut JobSender<'_, Batch>) -> Result<()> {
        let mut index = 0;
        while index < self.sources.len() {
            let source = &self.sources[index];
            let here = as_u32(index);
            if source.format.is_page_file() {
                let pages = self.sources[index..].iter().take_while(|source| source.format.is_page_file());
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
            } else if source.compression == Compression::None && records[0].offset.is_some() {
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

    fn open(&self, source: &Source) -> std::io::Result<Box<dyn Read + Send + '_>> {
        source.compression.decode(Counted { inner: File::open(&source.path)?, bytes: &self.bytes_read })
    }
}

impl Batch {
    /// Parses the batch: `visit` sees every page and every record that is none, in order.
    ///
    /// # Errors
    /// What `visit` returns.
    pub fn visit(&self, reading: &Reading<'_>, visit: &mut dyn FnMut(Found<'_>) -> Result<()>) -> Result<()> {
        let wanted = |record: u64| self.only.as_ref().is_none_or(|only| only.binary_search(&record).is_ok());
        match &self.content {
            Content::Skipped(skipped) => visit(Err(skipped.clone())),
            Content::Lines { bytes, first_record, offset } => {
                let (mut at, mut record) = (0, *first_record);
                while at < bytes.len() {
                    let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length + 1);
                    if wanted(record) {
                        let place = Place { record, offset: Some(offset + at as u64), bytes: &bytes[at..end] };
                        self.visit_line(reading, &place, visit)?;
                    }
                    at = end;
                    record += 1;
                }
                Ok(())
            }
            Content::Table { bytes, ends, first_record, offset, header } => {
                let mut parser = csv::RecordParser::new(header.delimiter);
                let mut at = 0;
                for (&end, record) in ends.iter().zip(*first_record..) {
                    if wanted(record) {
                        let place = Place { record, offset: Some(offset + at as u64), bytes: &bytes[at..end] };
                        self.visit_record(reading, &place, header, &mut parser, visit)?;
                    }
                    at = end;
                }
                Ok(())
            }
            Content::Rows { rows, first_record } => {
                for (at, record) in (0..rows.len()).zip(*first_record..) {
                    if wanted(record) {
                        let line = rows.line(at, &reading.names);
                        let length = line.as_ref().map_or(0, |line| line.text.len() as u64);
                        let place = Place { record, offset: None, bytes: &[] };
                        self.hand_on(reading, &place, length, || line, visit)?;
                    }
                }
                Ok(())
            }
            Content::Seek { records, header } => self.visit_seek(reading, records, header.as_deref(), visit),
            Content::Files(sources) => {
                let mut bytes = Vec::new();
                sources.iter().try_for_each(|&source| visit_file(reading, source, &mut bytes, visit))
            }
        }
    }

    fn visit_line(
        &self,
        reading: &Reading<'_>,
        place: &Place<'_>,
        visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut line = place.bytes.trim_ascii();
        if place.offset == Some(0) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(());
        }
        self.hand_on(reading, place, place.bytes.len() as u64, || jsonl::parse(line, &reading.names), visit)
    }

    fn visit_record(
        &self,
        reading: &Reading<'_>,
        place: &Place<'_>,
        header: &csv::Header,
        parser: &mut csv::RecordParser,
        visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    ) -> Result<()> {
        if matches!(place.bytes, b"" | b"\n" | b"\r\n") {
            return Ok(());
        }
        let length = place.bytes.len() as u64;
        self.hand_on(reading, place, length, || parser.line(place.bytes, header, &reading.names), visit)
    }

    fn visit_seek(
        &self,
        reading: &Reading<'_>,
        records: &[WantedRecord],
        header: Option<&csv::Header>,
        visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let source = &reading.sources[self.source as usize];
        let mut parser = csv::RecordParser::new(header.map_or(b',', |header| header.delimiter));
        let mut bytes = Vec::new();
        let file = File::open(&source.path);
        for wanted in records {
            let length = usize::try_from(wanted.length).unwrap_or(usize::MAX);
            bytes.resize(length, 0);
            let read = match &file {
                Ok(file) => {
                    file.read_exact_at(&mut bytes, wanted.offset.unwrap_or(0)).map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = read {
                let problem = (SkipKind::Unreadable, format!("cannot be read again: {error}"));
                visit(Err(reading.skipped(self.source, Some(wanted.record), wanted.offset, problem, &[])))?;
                continue;
            }
            reading.bytes_read.fetch_add(wanted.length, Ordering::Relaxed);
            let place = Place { record: wanted.record, offset: wanted.offset, bytes: &bytes };
            match header {
                Some(header) => self.visit_record(reading, &place, header, &mut parser, visit)?,
                None => self.visit_line(reading, &place, visit)?,
            }
        }
        Ok(())
    }

    /// The one place where a parsed record of any format becomes a page, or is skipped.
    fn hand_on<'l>(
        &self,
        reading: &Reading<'_>,
        place: &Place<'_>,
        length: u64,
        parse: impl FnOnce() -> Result<Line<'l>, (SkipKind, String)>,
        visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let line = if length > reading.max_page_bytes { Err(reading.too_large(length)) } else { parse() };
        match line {
            Ok(line) => visit(Ok(RawPage {
                source: self.source,
                record: place.record,
                offset: place.offset,
                length,
                id: line.id.filter(|id| !id.is_empty()),
                url: line.url.filter(|url| !url.is_empty()),
                title: line.title.filter(|title| !title.is_empty()),
                rank_value: line.rank_value,
                body: Body::Text(line.text),
                markup: line.markup,
            })),
            Err(problem) => {
                visit(Err(reading.skipped(self.source, Some(place.record), place.offset, problem, place.bytes)))
            }
        }
    }
}

/// Where a record was found.
struct Place<'a> {
    record: u64,
    offset: Option<u64>,
    bytes: &'a [u8],
}

/// Reads a page file, decompressed, up to the size limit.
fn visit_file(
    reading: &Reading<'_>,
    index: u32,
    bytes: &mut Vec<u8>,
    visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
) -> Result<()> {
    let source = &reading.sources[index as usize];
    bytes.clear();
    let limit = reading.max_page_bytes.saturating_add(1);
    let read = reading.open(source).and_then(|reader| reader.take(limit).read_to_end(bytes));
    if let Err(error) = read {
        let kind = if source.compression == Compression::None { SkipKind::Unreadable } else { SkipKind::Damaged };
        return visit(Err(reading.skipped(
            index,
            None,
            Some(bytes.len() as u64),
            (kind, format!("cannot be read: {error}")),
            bytes,
        )));
    }
    let length = bytes.len() as u64;
    if length > reading.max_page_bytes {
        return visit(Err(reading.skipped(index, None, Some(0), reading.too_large(length), bytes)));
    }
    let modified = || fs::metadata(&source.path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok();
    visit(Ok(RawPage {
        source: index,
        record: 1,
        offset: Some(0),
        length,
        id: Some(Cow::Borrowed(&source.name)),
        url: None,
        title: None,
        rank_value: if reading.names.rank_is_date { modified().map(|age| age.as_secs_f64()) } else { None },
        body: Body::Bytes(Cow::Borrowed(bytes)),
        markup: if source.format == Format::Html { Markup::Html } else { Markup::Text },
    }))
}

/// Counts what is read from a file.
struct Counted<'a, R> {
    inner: R,
    bytes: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

fn as_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
