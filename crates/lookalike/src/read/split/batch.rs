//! A batch of records → pages, in one of many threads.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::{Result, SkippedRecord};
use crate::page::{RawPage, SourceId};
use crate::parallel::JobSender;
use crate::read::fields::ReadAs;
use crate::read::format::reader::{Input, Problem};
use crate::read::{Corpus, WantedRecord};

/// Records that are read by seeking, in one batch.
const BATCH_SEEKS: usize = 128;

/// What pages are called that were not chosen; the name is that in `summary.json`.
const NOT_CHOSEN: &str = "not_chosen";

/// A piece of work: some records of one source, or some page files.
pub(crate) struct Batch {
    source: SourceId,
    content: Box<dyn Content>,
    only: Only,
    /// Whether pages are still to be chosen: those that are read again have been.
    is_choosing: bool,
}

/// The records of a batch.
pub(crate) trait Content: Send {
    /// Parses the records among `only`, and shows each to `visit`, in order.
    ///
    /// # Errors
    /// What `visit` returns.
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()>;
}

/// Sees records.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(Record<'_>) -> Result<()>;

/// A record: a page, or something else.
pub type Record<'a> = Result<RawPage<'a>, NotAPage>;

/// Why a record is not a page.
#[derive(Debug, Clone)]
pub enum NotAPage {
    /// It cannot be used.
    Skipped(SkippedRecord),
    /// It is something else, and nothing is wrong with it; by name, to be counted.
    Other(&'static str),
}

/// The numbers of the records that are wanted; without any, all are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Only(Option<Arc<Vec<u64>>>);

impl Only {
    /// Those of `records` that are wanted, as stretches with gaps of at least `gap` between them.
    pub(crate) fn stretches(&self, records: Range<u64>, gap: u64) -> Vec<Range<u64>> {
        let Some(only) = &self.0 else { return vec![records] };
        let from = only.partition_point(|&record| record < records.start);
        let to = only.partition_point(|&record| record < records.end);
        let runs = only[from..to].chunk_by(|one, next| next - one < gap);
        runs.map(|run| run[0]..run[run.len() - 1] + 1).collect()
    }

    pub(crate) fn contains(&self, record: u64) -> bool {
        self.0.as_ref().is_none_or(|only| only.binary_search(&record).is_ok())
    }
}

/// One record in the bytes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Where in the batch's bytes.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) record: u64,
    /// Its place, if it has one by which it can be read again.
    pub(crate) offset: Option<u64>,
    pub(crate) length: u64,
    /// Its bytes in all, where `from..to` is only its start.
    pub(crate) cut_short: Option<u64>,
}

/// Takes the batches of a source.
pub(crate) struct BatchSender<'a, 'j> {
    jobs: &'a mut JobSender<'j, Batch>,
    source: SourceId,
    only: Only,
    is_choosing: bool,
}

impl<'a, 'j> BatchSender<'a, 'j> {
    pub(crate) fn new(jobs: &'a mut JobSender<'j, Batch>, source: SourceId) -> BatchSender<'a, 'j> {
        BatchSender { jobs, source, only: Only::default(), is_choosing: true }
    }

    /// For records that are read again.
    pub(crate) fn again(jobs: &'a mut JobSender<'j, Batch>, source: SourceId) -> BatchSender<'a, 'j> {
        BatchSender { is_choosing: false, ..BatchSender::new(jobs, source) }
    }

    /// The same, for these records alone.
    pub(crate) fn only(&mut self, records: &[WantedRecord]) -> BatchSender<'_, 'j> {
        let only = Only(Some(Arc::new(records.iter().map(|wanted| wanted.record).collect())));
        BatchSender { jobs: self.jobs, source: self.source, only, is_choosing: self.is_choosing }
    }

    /// Hands a batch on; waits while too many are under way. Break: the pass is over.
    pub(crate) fn send(&mut self, content: impl Content + 'static) -> ControlFlow<()> {
        let (content, only) = (Box::new(content), self.only.clone());
        let batch = Batch { source: self.source, content, only, is_choosing: self.is_choosing };
        if self.jobs.send(batch) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Hands on records that are read from their places, in batches.
    pub(crate) fn send_places<C: Content + 'static>(
        &mut self,
        records: &[WantedRecord],
        content: impl Fn(Vec<WantedRecord>) -> C,
    ) -> ControlFlow<()> {
        records.chunks(BATCH_SEEKS).try_for_each(|records| self.send(content(records.to_vec())))
    }
}

impl Batch {
    /// Parses the batch: `visit` sees every record, in order.
    ///
    /// # Errors
    /// What `visit` returns.
    pub(crate) fn visit(&self, corpus: &Corpus, visit: Visit<'_>) -> Result<()> {
        let input = Input { corpus, id: self.source };
        let chosen = corpus.chosen.as_ref().filter(|_| self.is_choosing);
        let read_as = corpus.names.read_as;
        if chosen.is_none() && read_as.is_none() {
            return self.content.visit(&input, &self.only, visit);
        }
        self.content.visit(&input, &self.only, &mut |record| {
            visit(match record {
                Ok(page) if chosen.is_some_and(|chosen| !chosen.takes(corpus.source(page.source), &page)) => {
                    Err(NotAPage::Other(NOT_CHOSEN))
                }
                Ok(page) => Ok(RawPage { markup: read_as.map_or(page.markup, ReadAs::markup), ..page }),
                other => other,
            })
        })
    }
}

/// A record that could not even be cut out.
impl Content for SkippedRecord {
    fn visit(&self, _: &Input<'_>, _: &Only, visit: Visit<'_>) -> Result<()> {
        visit(Err(NotAPage::Skipped(self.clone())))
    }
}

/// The bytes of a record, and where they are.
pub(crate) struct Place<'a> {
    pub(crate) record: u64,
    pub(crate) offset: Option<u64>,
    pub(crate) bytes: &'a [u8],
}

/// Reads records from their places in a file that is not compressed, and shows each to `parse`.
///
/// # Errors
/// What `parse` and `visit` return.
pub(crate) fn visit_places(
    input: &Input<'_>,
    records: &[WantedRecord],
    visit: Visit<'_>,
    mut parse: impl FnMut(&Place<'_>, Visit<'_>) -> Result<()>,
) -> Result<()> {
    let file = input.file();
    let mut bytes = Vec::new();
    for wanted in records {
        let read = match &file {
            Ok(file) => {
                bytes.resize(usize::try_from(wanted.length).expect("a record that was in memory fits there"), 0);
                let offset = wanted.offset.expect("only records that have places are read from them");
                file.read_exact_at(&mut bytes, offset).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(()) => parse(&Place { record: wanted.record, offset: wanted.offset, bytes: &bytes }, visit)?,
            Err(error) => visit(Err(unreadable(input, wanted, &error)))?,
        }
    }
    Ok(())
}

/// A record that was there before.
pub(crate) fn unreadable(input: &Input<'_>, wanted: &WantedRecord, error: &str) -> NotAPage {
    let problem: Problem = (crate::error::SkipKind::Unreadable, format!("cannot be read again: {error}"));
    NotAPage::Skipped(input.skipped(Some(wanted.record), wanted.offset, problem, &[]))
}
