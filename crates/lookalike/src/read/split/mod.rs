//! Sources → batches of whole records, which are parsed by many threads.
//!
//! `units` divides the input into what is read side by side; `stream` and `unpack` make bytes of a source, in buffers
//! that go round (`buffer`); `batch` is what one thread parses.

pub(super) mod batch;
pub mod buffer;
pub(super) mod stream;
pub(super) mod units;
pub(super) mod unpack;

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::page::SourceId;
use crate::parallel::JobSender;
use crate::read::format::tagged;
use crate::read::{Batch, Corpus, Format, Source, Wanted, WantedRecord, crawl};
use batch::Content;

/// Page files in one batch, at most this many and about this many bytes.
const BATCH_FILES: usize = 64;
const BATCH_FILE_BYTES: u64 = 1 << 20;
/// Records that are read by seeking, in one batch.
const BATCH_SEEKS: usize = 128;

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
            let source = &self.sources[index];
            let here = SourceId::from_index(index);
            if source.format.is_page_file() {
                let pages = self.sources[index..sources.end].iter().take_while(|source| source.format.is_page_file());
                let count = self.batch_files(pages);
                let files = (index..index + count).map(SourceId::from_index).collect();
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
    pub(super) fn read_wanted(&self, wanted: &Wanted, jobs: &mut JobSender<'_, Batch>) -> Result<()> {
        let is_page_file = |wanted: &WantedRecord| self.source(wanted.source).format.is_page_file();
        let together =
            |a: &WantedRecord, b: &WantedRecord| a.source == b.source || (is_page_file(a) && is_page_file(b));
        for records in wanted.0.chunk_by(together) {
            let here = records[0].source;
            let source = self.source(here);
            let go_on = if source.format.is_page_file() {
                let mut rest = records;
                let mut go_on = true;
                while go_on && !rest.is_empty() {
                    let (files, later) =
                        rest.split_at(self.batch_files(rest.iter().map(|wanted| self.source(wanted.source))));
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
    pub fn header_bytes(&self, source: SourceId) -> Option<u64> {
        match self.source(source).format {
            Format::Csv | Format::Tsv => stream::header(self, source).ok().map(|(_, bytes)| bytes),
            _ => None,
        }
    }

    /// Streams one source; false: stop.
    fn read_source(&self, source: SourceId, only: Option<&Arc<Vec<u64>>>, jobs: &mut JobSender<'_, Batch>) -> bool {
        let mut send = |content| jobs.send(Batch { source, content, only: only.cloned() });
        match self.source(source).format {
            Format::Jsonl => stream::lines(self, source, &mut send),
            Format::Csv | Format::Tsv => stream::table(self, source, &mut send),
            Format::Parquet => stream::rows(self, source, &mut send),
            Format::Warc | Format::Arc => crawl::records(self, source, &mut send),
            Format::Trec | Format::Reuters | Format::MediaWiki => tagged::documents(self, source, &mut send),
            Format::Html | Format::Text => true, // page files are batched by their callers
        }
    }
}
