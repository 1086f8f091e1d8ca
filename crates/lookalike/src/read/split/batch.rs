//! A batch of records → pages, in one of many threads.

use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use memchr::memchr;

use crate::error::{Result, SkipKind, SkippedRecord};
use crate::page::{Body, Markup, RawPage, SourceId};
use crate::read::crawl::capture;
use crate::read::crawl::{Cut, Kind, line_ends};
use crate::read::format::jsonl::{self, Line};
use crate::read::format::{csv, parquet, tagged};
use crate::read::source::compression::Compression;
use crate::read::split::buffer::Buffer;
use crate::read::split::unpack::{Step, Unpacker};
use crate::read::{Corpus, Format, WantedRecord};

/// A piece of work: some records of one source, or some page files.
pub struct Batch {
    pub(crate) source: SourceId,
    pub(crate) content: Content,
    /// If given, only these records are parsed.
    pub(crate) only: Option<Arc<Vec<u64>>>,
}

pub(crate) enum Content {
    Lines { bytes: Buffer, first_record: u64, offset: u64 },
    Table { bytes: Buffer, ends: Vec<usize>, first_record: u64, offset: u64, header: Arc<csv::Header> },
    Rows { rows: parquet::Rows, first_record: u64 },
    Records { bytes: Buffer, cuts: Vec<Cut> },
    Seek { records: Vec<WantedRecord>, header: Option<Arc<csv::Header>> },
    Files(Vec<SourceId>),
    Skipped(SkippedRecord),
}

/// What a batch is made of: pages, and records that are none.
pub type Found<'a> = Result<RawPage<'a>, NoPage>;

/// Why a record is no page.
#[derive(Debug, Clone)]
pub enum NoPage {
    /// It cannot be used.
    Skipped(SkippedRecord),
    /// It is something else, and nothing is wrong with it; by name, to be counted.
    Other(&'static str),
}

impl Batch {
    /// Parses the batch: `visit` sees every page and every record that is none, in order.
    ///
    /// # Errors
    /// What `visit` returns.
    pub fn visit(&self, corpus: &Corpus, visit: &mut dyn FnMut(Found<'_>) -> Result<()>) -> Result<()> {
        let wanted = |record: u64| self.only.as_ref().is_none_or(|only| only.binary_search(&record).is_ok());
        match &self.content {
            Content::Skipped(skipped) => visit(Err(NoPage::Skipped(skipped.clone()))),
            Content::Lines { bytes, first_record, offset } => {
                let (mut at, mut record) = (0, *first_record);
                while at < bytes.len() {
                    let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length + 1);
                    if wanted(record) {
                        let place = Place { record, offset: Some(offset + at as u64), bytes: &bytes[at..end] };
                        self.visit_line(corpus, &place, visit)?;
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
                        self.visit_record(corpus, &place, header, &mut parser, visit)?;
                    }
                    at = end;
                }
                Ok(())
            }
            Content::Rows { rows, first_record } => {
                for (at, record) in (0..rows.len()).zip(*first_record..) {
                    if wanted(record) {
                        let line = rows.line(at, &corpus.names);
                        let length = line.as_ref().map_or(0, |line| line.text.len() as u64);
                        let place = Place { record, offset: None, bytes: &[] };
                        self.hand_on(corpus, &place, length, || line, visit)?;
                    }
                }
                Ok(())
            }
            Content::Records { bytes, cuts } => cuts
                .iter()
                .filter(|cut| wanted(cut.record))
                .try_for_each(|cut| visit(self.found(corpus, cut, &bytes[cut.from..cut.to]))),
            Content::Seek { records, .. } if !corpus.source(self.source).format.has_fields() => {
                self.visit_places(corpus, records, visit)
            }
            Content::Seek { records, header } => self.visit_seek(corpus, records, header.as_deref(), visit),
            Content::Files(sources) => {
                let mut bytes = Vec::new();
                sources.iter().try_for_each(|&source| visit_file(corpus, source, &mut bytes, visit))
            }
        }
    }

    fn visit_line(
        &self,
        corpus: &Corpus,
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
        self.hand_on(corpus, place, place.bytes.len() as u64, || jsonl::parse(line, &corpus.names), visit)
    }

    fn visit_record(
        &self,
        corpus: &Corpus,
        place: &Place<'_>,
        header: &csv::Header,
        parser: &mut csv::RecordParser,
        visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    ) -> Result<()> {
        if matches!(place.bytes, b"" | b"\n" | b"\r\n") {
            return Ok(());
        }
        let length = place.bytes.len() as u64;
        self.hand_on(corpus, place, length, || parser.line(place.bytes, header, &corpus.names), visit)
    }

    fn visit_seek(
        &self,
        corpus: &Corpus,
        records: &[WantedRecord],
        header: Option<&csv::Header>,
        visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let source = corpus.source(self.source);
        let mut parser = csv::RecordParser::new(header.map_or(b',', |header| header.delimiter));
        let mut bytes = Vec::new();
        let file = corpus.file(source);
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
                visit(Err(NoPage::Skipped(corpus.skipped(
                    self.source,
                    Some(wanted.record),
                    wanted.offset,
                    problem,
                    &[],
                ))))?;
                continue;
            }
            let place = Place { record: wanted.record, offset: wanted.offset, bytes: &bytes };
            match header {
                Some(header) => self.visit_record(corpus, &place, header, &mut parser, visit)?,
                None => self.visit_line(corpus, &place, visit)?,
            }
        }
        Ok(())
    }

    /// What a record of a crawl, or a document in tags, is.
    fn found<'a>(&self, corpus: &Corpus, cut: &Cut, bytes: &'a [u8]) -> Found<'a> {
        if corpus.source(self.source).format.is_crawl() {
            capture::found(corpus, self.source, cut, bytes)
        } else {
            tagged::found(corpus, self.source, cut, bytes)
        }
    }

    /// Records of a crawl and documents in tags, each read from its place.
    fn visit_places(
        &self,
        corpus: &Corpus,
        records: &[WantedRecord],
        visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let source = corpus.source(self.source);
        let mut unpacker =
            corpus.file(source).and_then(|file| Unpacker::new(file, source.compression, Kind::of(source).start_test()));
        let mut bytes = Vec::new();
        for wanted in records {
            bytes.clear();
            let read = match &mut unpacker {
                Ok(unpacker) => read_record(unpacker, source.by_member, wanted, &mut bytes),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = read {
                let problem = (SkipKind::Unreadable, format!("cannot be read again: {error}"));
                let skipped = corpus.skipped(self.source, Some(wanted.record), wanted.offset, problem, &[]);
                visit(Err(NoPage::Skipped(skipped)))?;
                continue;
            }
            let start = line_ends(&bytes);
            let cut = Cut {
                from: 0,
                to: bytes.len(),
                record: wanted.record,
                offset: wanted.offset,
                length: wanted.length,
                cut_short: None,
            };
            visit(self.found(corpus, &cut, &bytes[start..]))?;
        }
        Ok(())
    }

    /// The one place where a parsed record of any format becomes a page, or is skipped.
    fn hand_on<'l>(
        &self,
        corpus: &Corpus,
        place: &Place<'_>,
        length: u64,
        parse: impl FnOnce() -> Result<Line<'l>, (SkipKind, String)>,
        visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let line = if length > corpus.max_page_bytes { Err(corpus.too_large(length)) } else { parse() };
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
                ..RawPage::new(Body::Text(line.text), line.markup)
            })),
            Err(problem) => {
                let skipped = corpus.skipped(self.source, Some(place.record), place.offset, problem, place.bytes);
                visit(Err(NoPage::Skipped(skipped)))
            }
        }
    }
}

/// Reads one record of a crawl from its place: a member, or a stretch of a plain file.
fn read_record(
    unpacker: &mut Unpacker<'_>,
    by_member: bool,
    wanted: &WantedRecord,
    bytes: &mut Vec<u8>,
) -> Result<(), String> {
    const CHUNK_BYTES: usize = 1 << 20;
    unpacker.seek(wanted.offset.unwrap_or(0)).map_err(|error| error.to_string())?;
    let length = usize::try_from(wanted.length).unwrap_or(usize::MAX);
    loop {
        let room = if by_member { CHUNK_BYTES } else { (length - bytes.len()).min(CHUNK_BYTES) };
        match unpacker.step(bytes, room) {
            Step::Data if by_member || bytes.len() < length => {}
            Step::Data | Step::MemberEnd | Step::End => return Ok(()),
            Step::Damaged(reason) => return Err(reason),
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
    corpus: &Corpus,
    index: SourceId,
    bytes: &mut Vec<u8>,
    visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
) -> Result<()> {
    let source = corpus.source(index);
    bytes.clear();
    let limit = corpus.max_page_bytes.saturating_add(1);
    let read = corpus.open_source(source).and_then(|reader| reader.take(limit).read_to_end(bytes));
    if let Err(error) = read {
        let kind = if source.compression == Compression::None { SkipKind::Unreadable } else { SkipKind::Damaged };
        let problem = (kind, format!("cannot be read: {error}"));
        let skipped = corpus.skipped(index, None, Some(bytes.len() as u64), problem, bytes);
        return visit(Err(NoPage::Skipped(skipped)));
    }
    let length = bytes.len() as u64;
    if length > corpus.max_page_bytes {
        let skipped = corpus.skipped(index, None, Some(0), corpus.too_large(length), bytes);
        return visit(Err(NoPage::Skipped(skipped)));
    }
    let modified = || fs::metadata(source.location.path()?).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok();
    visit(Ok(RawPage {
        source: index,
        record: 1,
        offset: Some(0),
        length,
        id: Some(Cow::Borrowed(&source.name)),
        rank_value: if corpus.names.rank_is_date { modified().map(|age| age.as_secs_f64()) } else { None },
        ..RawPage::new(
            Body::Bytes(Cow::Borrowed(bytes)),
            if source.format == Format::Html { Markup::Html } else { Markup::Text },
        )
    }))
}
