//! Sources → batches of whole records, which are parsed by many threads.
//!
//! `units` divides the input into what is read side by side; `stream` and `unpack` make bytes of a source, in buffers
//! that go round (`buffer`); `batch` is what one thread parses. How a source is cut is the business of its format.

pub(super) mod batch;
pub(super) mod buffer;
pub(super) mod stream;
pub(super) mod units;
pub(super) mod unpack;

use std::ops::{ControlFlow, Range};

use crate::error::Result;
use crate::page::SourceId;
use crate::parallel::JobSender;
use crate::read::format::page_file::Files;
use crate::read::format::reader::Input;
use crate::read::{Batch, Corpus, Source, Wanted, WantedRecord};
use batch::BatchSender;

/// Page files in one batch, at most this many and about this many bytes.
const BATCH_FILES: usize = 64;
const BATCH_FILE_BYTES: u64 = 1 << 20;

impl Corpus {
    /// Hands all records of all sources to `jobs`, in order.
    ///
    /// # Errors
    /// Never for bad records; those are handed on as such.
    pub(super) fn read_all(&self, jobs: &mut JobSender<'_, Batch>) -> Result<()> {
        self.read_sources(0..self.sources.len(), jobs)
    }

    fn read_sources(&self, sources: Range<usize>, jobs: &mut JobSender<'_, Batch>) -> Result<()> {
        let mut index = sources.start;
        while index < sources.end {
            let input = Input { corpus: self, id: SourceId::from_index(index) };
            let mut batches = BatchSender::new(jobs, input.id);
            let format = input.source().format;
            let flow = if format.is_page_file() {
                let pages = self.sources[index..sources.end].iter().take_while(|source| source.format.is_page_file());
                let files = index..index + batch_files(pages);
                index = files.end;
                batches.send(Files(files.map(SourceId::from_index).collect()))
            } else {
                index += 1;
                format.reader().split(&input, &mut batches)
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Hands the wanted records to `jobs`, in order, reading as little else as the source allows.
    ///
    /// # Errors
    /// Never for bad records; those are handed on as such.
    pub(super) fn read_wanted(&self, wanted: &Wanted, jobs: &mut JobSender<'_, Batch>) -> Result<()> {
        let is_page_file = |wanted: &WantedRecord| self.source(wanted.source).format.is_page_file();
        let together =
            |a: &WantedRecord, b: &WantedRecord| a.source == b.source || (is_page_file(a) && is_page_file(b));
        for records in wanted.0.chunk_by(together) {
            let input = Input { corpus: self, id: records[0].source };
            let mut batches = BatchSender::again(jobs, input.id);
            let (source, reader) = (input.source(), input.source().format.reader());
            let flow = if source.format.is_page_file() {
                self.send_files(records, &mut batches)
            } else if source.is_seekable() && records.iter().all(|wanted| wanted.offset.is_some()) {
                reader.seek(&input, records, &mut batches)
            } else {
                reader.split(&input, &mut batches.only(records))
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn send_files(&self, mut files: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        while !files.is_empty() {
            let count = batch_files(files.iter().map(|wanted| self.source(wanted.source)));
            let (now, later) = files.split_at(count);
            batches.send(Files(now.iter().map(|wanted| wanted.source).collect()))?;
            files = later;
        }
        ControlFlow::Continue(())
    }
}

/// How many of these page files make a batch; at least one.
fn batch_files<'s>(files: impl Iterator<Item = &'s Source>) -> usize {
    let mut bytes = 0;
    let within = files.take(BATCH_FILES).take_while(|source| {
        let room = bytes < BATCH_FILE_BYTES;
        bytes += source.bytes;
        room
    });
    within.count()
}
