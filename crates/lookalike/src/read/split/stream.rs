//! A source as a stream of batches that end where records end.
//!
//! Memory is bounded whatever the source holds: a record over the size limit is passed over, not
//! collected. A stream that breaks off gives everything before the damage, and then the damage.

use std::io::Read;
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memrchr};

use crate::error::{SkipKind, SkippedRecord};
use crate::page::SourceId;
use crate::read::format::csv::{Header, Splitter};
use crate::read::format::parquet::RowReader;
use crate::read::source::compression::Compression;
use crate::read::split::batch::Content;
use crate::read::split::buffer::{Buffer, BufferPool};
use crate::read::{Chunks, Corpus, Format};

/// Bytes in a batch of lines.
const CHUNK_BYTES: usize = 1 << 20;

/// Takes batches; false means stop.
type Send<'a> = &'a mut dyn FnMut(Content) -> bool;

/// A stream that is read in pieces.
pub(crate) struct Pieces<'r> {
    reader: Box<dyn Read + std::marker::Send + 'r>,
    /// Read, and not handed on yet.
    pub(crate) buffer: Vec<u8>,
    /// Where the buffer starts in the stream.
    pub(crate) offset: u64,
    pub(crate) state: Stream,
    pool: Arc<BufferPool>,
}

pub(crate) enum Stream {
    Open,
    Ended,
    Broken(String),
}

impl Pieces<'_> {
    /// Adds about `CHUNK_BYTES` to the buffer.
    pub(crate) fn fill(&mut self) {
        if !matches!(self.state, Stream::Open) {
            return;
        }
        let before = self.buffer.len();
        // Room for the probe by which the end is found, so that the buffer does not double.
        self.buffer.reserve(CHUNK_BYTES + 64);
        match self.reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.buffer) {
            Ok(_) if self.buffer.len() < before + CHUNK_BYTES => self.state = Stream::Ended,
            Ok(_) => {}
            Err(error) => self.state = Stream::Broken(error.to_string()),
        }
    }

    /// Takes the first `length` bytes out of the buffer.
    pub(crate) fn take(&mut self, length: usize) -> Buffer {
        let mut rest = self.pool.take();
        rest.extend_from_slice(&self.buffer[length..]);
        self.buffer.truncate(length);
        self.offset += length as u64;
        Buffer::new(std::mem::replace(&mut self.buffer, rest), Arc::clone(&self.pool))
    }
}

impl Corpus {
    pub(crate) fn pieces(&self, source: SourceId) -> Result<Pieces<'_>, SkippedRecord> {
        match self.open_source(self.source(source)) {
            Ok(reader) => Ok(Pieces {
                reader,
                buffer: self.buffers.take(),
                offset: 0,
                state: Stream::Open,
                pool: Arc::clone(&self.buffers),
            }),
            Err(error) => {
                Err(self.skipped(source, None, None, (SkipKind::Unreadable, format!("cannot be opened: {error}")), &[]))
            }
        }
    }

    pub(crate) fn damaged(&self, source: SourceId, record: u64, pieces: &Pieces<'_>, error: &str) -> Content {
        let byte = pieces.offset + pieces.buffer.len() as u64;
        let (kind, what) = match self.source(source).compression {
            Compression::None => (SkipKind::Unreadable, "reading failed"),
            _ => (SkipKind::Damaged, "the compressed data is damaged or cut off"),
        };
        let reason = format!("{what} ({error}); what comes before it was read, the rest was not");
        Content::Skipped(self.skipped(source, Some(record), Some(byte), (kind, reason), &pieces.buffer))
    }

    pub(crate) fn most_bytes(&self) -> usize {
        usize::try_from(self.max_page_bytes).unwrap_or(usize::MAX).max(CHUNK_BYTES)
    }
}

/// Batches of whole lines.
pub(crate) fn lines(corpus: &Corpus, source: SourceId, send: Send<'_>) -> bool {
    let mut pieces = match corpus.pieces(source) {
        Ok(pieces) => pieces,
        Err(skipped) => return send(Content::Skipped(skipped)),
    };
    let mut record = 1;
    loop {
        pieces.fill();
        let whole = match pieces.state {
            Stream::Ended => pieces.buffer.len(),
            _ => memrchr(b'\n', &pieces.buffer).map_or(0, |at| at + 1),
        };
        if whole > 0 {
            let offset = pieces.offset;
            let bytes = pieces.take(whole);
            let count = memchr_iter(b'\n', &bytes).count() as u64;
            if !send(Content::Lines { bytes, first_record: record, offset }) {
                return false;
            }
            record += count;
        } else if pieces.buffer.len() > corpus.most_bytes() && matches!(pieces.state, Stream::Open) {
            let next_line = |bytes: &[u8]| memchr(b'\n', bytes).map(|at| at + 1);
            let skipped = pass_over(corpus, source, record, &mut pieces, 0, next_line);
            if !send(Content::Skipped(skipped)) {
                return false;
            }
            record += 1;
        }
        match &pieces.state {
            Stream::Open => {}
            Stream::Ended if pieces.buffer.is_empty() => return true,
            Stream::Ended => {}
            Stream::Broken(error) => return send(corpus.damaged(source, record, &pieces, error)),
        }
    }
}

/// Drops a record that is over the limit. `end_in` finds its end in bytes that come one piece after
/// the other; the first `scanned` bytes of the buffer are known not to hold it.
fn pass_over(
    corpus: &Corpus,
    source: SourceId,
    record: u64,
    pieces: &mut Pieces<'_>,
    mut scanned: usize,
    mut end_in: impl FnMut(&[u8]) -> Option<usize>,
) -> SkippedRecord {
    let start = pieces.offset;
    let first_bytes = pieces.buffer[..pieces.buffer.len().min(256)].to_vec();
    loop {
        if let Some(end) = end_in(&pieces.buffer[scanned..]) {
            pieces.take(scanned + end);
            break;
        }
        pieces.take(pieces.buffer.len());
        scanned = 0;
        pieces.fill();
        if pieces.buffer.is_empty() && !matches!(pieces.state, Stream::Open) {
            break;
        }
    }
    corpus.skipped(source, Some(record), Some(start), corpus.too_large(pieces.offset - start), &first_bytes)
}

/// Batches of whole records of a table.
pub(crate) fn table(corpus: &Corpus, source: SourceId, send: Send<'_>) -> bool {
    let (mut pieces, header) = match open_table(corpus, source) {
        Ok(Some(opened)) => opened,
        Ok(None) => return true,
        Err(skipped) => return send(Content::Skipped(skipped)),
    };
    let header = Arc::new(header);
    let mut record = 1;
    let mut splitter = Splitter::FieldStart;
    let mut scanned = 0;
    let mut ends = Vec::new();
    let mut unclosed = 0;
    loop {
        let unread = pieces.buffer[scanned..].iter().zip(scanned + 1..);
        ends.extend(unread.filter_map(|(&byte, end)| splitter.ends_at(byte, header.delimiter).then_some(end)));
        scanned = pieces.buffer.len();
        let ended = matches!(pieces.state, Stream::Ended);
        if ended && splitter != Splitter::Quoted && ends.last() != Some(&scanned) && scanned > 0 {
            ends.push(scanned); // the last record may lack its line end
        }
        if let Some(&whole) = ends.last() {
            let count = ends.len() as u64;
            let offset = pieces.offset;
            let bytes = pieces.take(whole);
            scanned -= whole;
            let ends = std::mem::take(&mut ends);
            if !send(Content::Table { bytes, ends, first_record: record, offset, header: Arc::clone(&header) }) {
                return false;
            }
            record += count;
        }
        let too_large = pieces.buffer.len() > corpus.most_bytes();
        if !pieces.buffer.is_empty() && (too_large || ended) {
            // What is left is one record whose end is not in sight.
            let skipped = if ended {
                unclosed += 1;
                pass_over_quote(corpus, source, record, unclosed, &mut pieces)
            } else {
                let next_record = |bytes: &[u8]| {
                    bytes.iter().position(|&byte| splitter.ends_at(byte, header.delimiter)).map(|at| at + 1)
                };
                pass_over(corpus, source, record, &mut pieces, scanned, next_record)
            };
            if !send(Content::Skipped(skipped)) {
                return false;
            }
            record += 1;
            scanned = 0;
            splitter = Splitter::FieldStart;
            continue;
        }
        match &pieces.state {
            Stream::Open => pieces.fill(),
            Stream::Ended => return true,
            Stream::Broken(error) => return send(corpus.damaged(source, record, &pieces, error)),
        }
    }
}

/// Unclosed quotes in one table after which the rest of it is given up: each costs a second look at
/// what follows.
const MOST_UNCLOSED: usize = 100;

/// Drops the first line of a record whose quote is never closed; what follows is read again.
fn pass_over_quote(
    corpus: &Corpus,
    source: SourceId,
    record: u64,
    unclosed: usize,
    pieces: &mut Pieces<'_>,
) -> SkippedRecord {
    let start = pieces.offset;
    let line = memchr(b'\n', &pieces.buffer).map_or(pieces.buffer.len(), |at| at + 1);
    let mut reason = "a quote is opened in this record and never closed".to_owned();
    if unclosed > MOST_UNCLOSED {
        reason.push_str("; there are too many of these, the rest of the file was not read");
        pieces.state = Stream::Ended;
    }
    let dropped = pieces.take(if unclosed > MOST_UNCLOSED { pieces.buffer.len() } else { line });
    corpus.skipped(source, Some(record), Some(start), (SkipKind::BadCsv, reason), &dropped)
}

/// The header of a table, and its length.
pub(crate) fn header(corpus: &Corpus, source: SourceId) -> Result<(Header, u64), SkippedRecord> {
    match open_table(corpus, source)? {
        Some((pieces, header)) => Ok((header, pieces.offset)),
        None => Err(corpus.skipped(source, None, Some(0), (SkipKind::BadCsv, "the table is empty".to_owned()), &[])),
    }
}

/// Opens a table behind its header; none if there is nothing in it.
fn open_table<'r>(corpus: &'r Corpus, source: SourceId) -> Result<Option<(Pieces<'r>, Header)>, SkippedRecord> {
    let mut pieces = corpus.pieces(source)?;
    let delimiter = match corpus.source(source).format {
        Format::Tsv => Some(b'\t'),
        _ => None,
    };
    loop {
        let end = end_of_header(corpus, &mut pieces, delimiter.unwrap_or(b','));
        if let (true, Stream::Broken(error)) = (pieces.buffer.is_empty(), &pieces.state) {
            let problem = (SkipKind::Damaged, format!("the compressed data is damaged ({error})"));
            return Err(corpus.skipped(source, None, Some(0), problem, &[]));
        }
        if pieces.buffer.is_empty() {
            return Ok(None);
        }
        let first = pieces.take(end);
        if first.trim_ascii().is_empty() {
            continue; // blank lines in front of the header
        }
        return match Header::parse(&first, delimiter, &corpus.names) {
            Ok(header) => Ok(Some((pieces, header))),
            Err(problem) => Err(corpus.skipped(source, None, Some(0), problem, &first)),
        };
    }
}

/// Where the first record in the buffer ends; reads on until it is known.
fn end_of_header(corpus: &Corpus, pieces: &mut Pieces<'_>, delimiter: u8) -> usize {
    let mut splitter = Splitter::FieldStart;
    let mut scanned = 0;
    loop {
        let unread = pieces.buffer[scanned..].iter().zip(scanned + 1..);
        if let Some(end) = { unread }.find_map(|(&byte, end)| splitter.ends_at(byte, delimiter).then_some(end)) {
            return end;
        }
        scanned = pieces.buffer.len();
        if !matches!(pieces.state, Stream::Open) || scanned > corpus.most_bytes() {
            return scanned;
        }
        pieces.fill();
    }
}

/// Batches of rows.
pub(crate) fn rows(corpus: &Corpus, source: SourceId, send: Send<'_>) -> bool {
    let file = corpus.source(source);
    let opened = Chunks::new(&file.location)
        .map_err(|error| (SkipKind::Unreadable, format!("cannot be opened: {error}")))
        .and_then(|file| RowReader::open(file, &corpus.names));
    let mut record = 1;
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(problem) => return send(Content::Skipped(corpus.skipped(source, None, None, problem, &[]))),
    };
    loop {
        match reader.next_rows() {
            Ok(Some(rows)) => {
                let count = rows.len() as u64;
                if !send(Content::Rows { rows, first_record: record }) {
                    return false;
                }
                record += count;
            }
            Ok(None) => break,
            Err(problem) => {
                if !send(Content::Skipped(corpus.skipped(source, Some(record), None, problem, &[]))) {
                    return false;
                }
                break;
            }
        }
    }
    corpus.count_bytes_read(file.bytes);
    true
}
