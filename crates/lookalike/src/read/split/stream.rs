//! A source as a stream of bytes that is cut where records end.
//!
//! Memory is bounded whatever the source holds: a record over the size limit is skipped, not
//! collected. A stream that breaks off gives everything before the damage, and then the damage.

use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{SkipKind, SkippedRecord};
use crate::read::format::reader::Input;
use crate::read::source::compression::Compression;
use crate::read::split::batch::BatchSender;
use crate::read::split::buffer::{Buffer, BufferPool};

/// Bytes that are added to the buffer at a time, and about the size of a batch.
const CHUNK_BYTES: usize = 1 << 20;

/// A stream that is read in pieces.
pub(crate) struct Pieces<'r> {
    reader: Box<dyn Read + Send + 'r>,
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

impl<'c> Input<'c> {
    /// The source as a stream, decompressed.
    pub(crate) fn pieces(&self) -> Result<Pieces<'c>, SkippedRecord> {
        let reader = self.corpus.open_source(self.source()).map_err(|error| self.unopened(&error))?;
        let pool = Arc::clone(&self.corpus.buffers);
        Ok(Pieces { reader, buffer: pool.take(), offset: 0, state: Stream::Open, pool })
    }

    /// The same for a reader that sends batches: a source that cannot be opened is sent as a skipped record.
    pub(crate) fn pieces_or_skip(&self, batches: &mut BatchSender<'_, '_>) -> ControlFlow<(), Pieces<'c>> {
        match self.pieces() {
            Ok(pieces) => ControlFlow::Continue(pieces),
            Err(skipped) => {
                batches.send(skipped)?;
                ControlFlow::Break(())
            }
        }
    }

    /// A stream that broke off.
    pub(crate) fn damaged(&self, record: u64, pieces: &Pieces<'_>, error: &str) -> SkippedRecord {
        let byte = pieces.offset + pieces.buffer.len() as u64;
        let (kind, what) = match self.source().compression {
            Compression::None => (SkipKind::Unreadable, "reading failed"),
            _ => (SkipKind::Damaged, "the compressed data is damaged or cut off"),
        };
        let reason = format!("{what} ({error}); what comes before it was read, the rest was not");
        self.skipped(Some(record), Some(byte), (kind, reason), &pieces.buffer)
    }

    /// Bytes after which a record whose end is not in sight is skipped.
    pub(crate) fn most_bytes(&self) -> usize {
        // A limit beyond the address space is none.
        usize::try_from(self.corpus.max_page_bytes).unwrap_or(usize::MAX).max(CHUNK_BYTES)
    }

    /// Skips a record that is over the limit. `end_in` finds its end in bytes that come one piece after
    /// the other; the first `scanned` bytes of the buffer are known not to hold it.
    pub(crate) fn skip_record(
        &self,
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
        self.skipped(Some(record), Some(start), self.too_large(pieces.offset - start), &first_bytes)
    }
}
