//! A pass over pages with many threads: the one place where batches are handed to workers.
//!
//! Guaranteed: what comes of the records is handed on in their order, in the thread that asked, whatever the number of
//! threads; what is under way is bounded; the first error stops the pass. Batches are the unit of parallel work.

use std::ops::ControlFlow;

use crate::error::{Result, SkippedRecord};
use crate::observe::{Observer, Silent, check_cancelled};
use crate::page::{PageId, RawPage};
use crate::parallel::{Event, in_lanes, in_order};
use crate::read::{Batch, Corpus, NotAPage, Record, Unit, UnitEnd, Wanted};

/// Units that are read at a time, at the most: each has buffers of its own.
const MOST_LANES: usize = 16;

/// Skipped records that are kept as examples.
const MOST_EXAMPLES: usize = 5;

/// A pass over the pages of a corpus, or over chosen ones.
///
/// Every thread has a worker of its own, made by `new_worker`, for buffers that are used again. `work` sees pages in
/// parallel; `collect` sees what came of them in the order of the pages, and may stop the pass.
#[must_use]
pub struct Scan<'c> {
    corpus: &'c Corpus,
    threads: usize,
    observer: &'c dyn Observer,
    reports_skipped: bool,
    leaves_out_revisits: bool,
    done: &'c [u64],
}

/// What a pass came by.
#[derive(Debug, Default)]
pub struct Scanned {
    /// Pages.
    pub pages: u64,
    /// Records that could not be used.
    pub skipped: u64,
    /// The first of them.
    pub examples: Vec<SkippedRecord>,
    /// Records that are something else than pages, as crawls have them.
    pub others: u64,
}

impl<'c> Scan<'c> {
    pub(super) fn new(corpus: &'c Corpus) -> Scan<'c> {
        Scan { corpus, threads: 1, observer: &Silent, reports_skipped: false, leaves_out_revisits: false, done: &[] }
    }

    /// Works with this many threads, besides the one that reads.
    pub fn threads(self, threads: usize) -> Scan<'c> {
        Scan { threads, ..self }
    }

    /// Reports progress and skipped records to `observer`.
    pub fn observed_by(self, observer: &'c dyn Observer) -> Scan<'c> {
        Scan { observer, reports_skipped: true, ..self }
    }

    /// Reports progress alone: another pass reports what is skipped.
    pub fn progress_to(self, observer: &'c dyn Observer) -> Scan<'c> {
        Scan { observer, ..self }
    }

    /// Leaves out revisits, which have no text of their own.
    pub fn without_revisits(self) -> Scan<'c> {
        Scan { leaves_out_revisits: true, ..self }
    }

    /// Of the units of [`for_each_unit`](Self::for_each_unit), leaves out the first batches, as many as `done` says of each:
    /// they are read and not worked on.
    pub(crate) fn behind(self, done: &'c [u64]) -> Scan<'c> {
        Scan { done, ..self }
    }

    /// Works on every page.
    ///
    /// # Errors
    /// The first error of `work` or `collect`. Never for bad records; those are counted.
    pub fn for_each<W, T: Send>(
        self,
        new_worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, RawPage<'_>) -> Result<Option<T>> + Sync,
        collect: impl FnMut(T) -> Result<ControlFlow<()>>,
    ) -> Result<Scanned> {
        self.for_each_batch(new_worker, page_by_page(work), one_by_one(collect))
    }

    /// Works on every page of `wanted`, with its number.
    ///
    /// # Errors
    /// As [`Scan::for_each`].
    pub(crate) fn for_each_of<W, T: Send>(
        self,
        wanted: &Wanted,
        new_worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, PageId, RawPage<'_>) -> Result<Option<T>> + Sync,
        collect: impl FnMut(T) -> Result<ControlFlow<()>>,
    ) -> Result<Scanned> {
        let work = |worker: &mut W, raw: RawPage<'_>| match wanted.page_of(raw.source, raw.record) {
            Some(page) => work(worker, page, raw),
            None => Ok(None),
        };
        self.for_each_batch_of(wanted, new_worker, page_by_page(work), one_by_one(collect))
    }

    /// Works on batches of consecutive records, for whoever sums up, or works on many pages at once.
    ///
    /// # Errors
    /// As [`Scan::for_each`].
    pub(crate) fn for_each_batch<W, R: Send>(
        self,
        new_worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &mut Records<'_>) -> Result<R> + Sync,
        collect: impl FnMut(R) -> Result<ControlFlow<()>>,
    ) -> Result<Scanned> {
        self.run(None, new_worker, work, collect)
    }

    /// The same for the records of `wanted`.
    ///
    /// # Errors
    /// As [`Scan::for_each`].
    pub(crate) fn for_each_batch_of<W, R: Send>(
        self,
        wanted: &Wanted,
        new_worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &mut Records<'_>) -> Result<R> + Sync,
        collect: impl FnMut(R) -> Result<ControlFlow<()>>,
    ) -> Result<Scanned> {
        self.run(Some(wanted), new_worker, work, collect)
    }

    fn run<W, R: Send>(
        self,
        wanted: Option<&Wanted>,
        new_worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &mut Records<'_>) -> Result<R> + Sync,
        mut collect: impl FnMut(R) -> Result<ControlFlow<()>>,
    ) -> Result<Scanned> {
        let corpus = self.corpus;
        let mut scanned = Scanned::default();
        let mut progress = Progress::new(&self);
        in_order(
            self.threads,
            |jobs| match wanted {
                Some(wanted) => corpus.read_wanted(wanted, jobs),
                None => corpus.read_all(jobs),
            },
            new_worker,
            |worker, batch: Batch| self.work_on(worker, &batch, &work),
            |(result, counts)| {
                // Wanted records are counted by their lengths, as they are in the total: more than they may be read.
                let bytes = wanted.is_some().then_some(counts.bytes);
                let pages = counts.pages;
                scanned.add(counts, self.reports_skipped.then_some(self.observer));
                let flow = collect(result)?;
                progress.advance(bytes, pages)?;
                Ok(flow)
            },
        )?;
        Ok(scanned)
    }

    /// Reads units of the input side by side: `collect` sees the results of each unit in order, those of different
    /// units in the order in which they arrive. The records of a stretch are numbered from 1.
    ///
    /// # Errors
    /// As [`Scan::for_each`].
    pub(crate) fn for_each_unit<W, R: Send>(
        self,
        units: &[&Unit],
        new_worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &mut Records<'_>) -> Result<R> + Sync,
        mut collect: impl FnMut(Event<R, UnitEnd>) -> Result<()>,
    ) -> Result<()> {
        let corpus = self.corpus;
        let mut progress = Progress::new(&self);
        in_lanes(
            self.threads,
            self.threads.min(MOST_LANES),
            units.len(),
            |at, jobs| corpus.read_unit(units[at], jobs),
            new_worker,
            |worker, (unit, number), batch: Batch| {
                let is_done = self.done.get(unit).is_some_and(|&done| number < done);
                if is_done { Ok(None) } else { self.work_on(worker, &batch, &work).map(Some) }
            },
            |event| {
                match event {
                    Event::Result(unit, worked) => {
                        let pages = worked.as_ref().map_or(0, |(_, counts)| counts.pages);
                        worked.map_or(Ok(()), |(result, _)| collect(Event::Result(unit, result)))?;
                        progress.advance(None, pages)?;
                    }
                    Event::End(unit, end) => collect(Event::End(unit, end))?,
                }
                Ok(ControlFlow::Continue(()))
            },
        )
    }

    fn work_on<W, R>(
        &self,
        worker: &mut W,
        batch: &Batch,
        work: impl Fn(&mut W, &mut Records<'_>) -> Result<R>,
    ) -> Result<(R, Counts)> {
        let leaves_out_revisits = self.leaves_out_revisits;
        let mut records = Records { corpus: self.corpus, batch, leaves_out_revisits, counts: Counts::default() };
        Ok((work(worker, &mut records)?, records.counts))
    }
}

fn page_by_page<W, T>(
    work: impl Fn(&mut W, RawPage<'_>) -> Result<Option<T>> + Sync,
) -> impl Fn(&mut W, &mut Records<'_>) -> Result<Vec<T>> + Sync {
    move |worker, records| {
        let mut results = Vec::new();
        records.for_each_page(|page| {
            results.extend(work(worker, page)?);
            Ok(())
        })?;
        Ok(results)
    }
}

fn one_by_one<T>(
    mut collect: impl FnMut(T) -> Result<ControlFlow<()>>,
) -> impl FnMut(Vec<T>) -> Result<ControlFlow<()>> {
    move |results| {
        for result in results {
            if collect(result)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Some consecutive records, which are parsed as they are visited.
pub struct Records<'b> {
    corpus: &'b Corpus,
    batch: &'b Batch,
    leaves_out_revisits: bool,
    counts: Counts,
}

/// What the records of a batch were.
#[derive(Default)]
struct Counts {
    pages: u64,
    /// Of the pages' records.
    bytes: u64,
    skipped: Vec<SkippedRecord>,
    others: u64,
}

impl Records<'_> {
    /// Shows the pages to `visit`, in order. What cannot be used is counted by the pass.
    ///
    /// # Errors
    /// What `visit` returns.
    pub fn for_each_page(&mut self, mut visit: impl FnMut(RawPage<'_>) -> Result<()>) -> Result<()> {
        let counts = &mut self.counts;
        let leaves_out_revisits = self.leaves_out_revisits;
        self.batch.visit(self.corpus, &mut |record| {
            match record {
                Ok(page) if leaves_out_revisits && page.is_revisit() => {}
                Ok(page) => {
                    counts.pages += 1;
                    counts.bytes += page.length;
                    visit(page)?;
                }
                Err(NotAPage::Skipped(record)) => counts.skipped.push(record),
                Err(NotAPage::Other(_)) => counts.others += 1,
            }
            Ok(())
        })
    }

    /// Shows all records to `visit`, in order.
    ///
    /// # Errors
    /// What `visit` returns.
    pub fn for_each(&mut self, mut visit: impl FnMut(Record<'_>) -> Result<()>) -> Result<()> {
        let pages = &mut self.counts.pages;
        self.batch.visit(self.corpus, &mut |record| {
            *pages += u64::from(record.is_ok());
            visit(record)
        })
    }
}

impl Scanned {
    fn add(&mut self, counts: Counts, observer: Option<&dyn Observer>) {
        self.pages += counts.pages;
        self.others += counts.others;
        self.skipped += counts.skipped.len() as u64;
        for record in counts.skipped {
            if let Some(observer) = observer {
                observer.skipped(&record);
            }
            if self.examples.len() < MOST_EXAMPLES {
                self.examples.push(record);
            }
        }
    }
}

/// How far a pass is.
struct Progress<'c> {
    corpus: &'c Corpus,
    observer: &'c dyn Observer,
    bytes_seen: u64,
}

impl<'c> Progress<'c> {
    fn new(scan: &Scan<'c>) -> Progress<'c> {
        Progress { corpus: scan.corpus, observer: scan.observer, bytes_seen: scan.corpus.bytes_read() }
    }

    /// By so many bytes, or by what has been taken from disk in the meantime. Fails if the pass is to stop.
    fn advance(&mut self, bytes: Option<u64>, pages: u64) -> Result<()> {
        let bytes_read = self.corpus.bytes_read();
        self.observer.advance(bytes.unwrap_or(bytes_read - self.bytes_seen), pages);
        self.bytes_seen = bytes_read;
        check_cancelled(self.observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::SourceId;
    use crate::read::{ReadConfig, Source};
    use std::borrow::Cow;
    use std::sync::Mutex;

    fn corpus(pages: usize) -> Corpus {
        let lines: String =
            (0..pages).map(|n| format!("{{\"id\": {n}, \"text\": \"{}\"}}\n", "w ".repeat(500))).collect();
        let source = Source::in_memory("a.jsonl", (lines + "damage\n").into_bytes(), None).unwrap();
        Corpus::new(vec![source], &ReadConfig::default())
    }

    #[derive(Default)]
    struct Seen(Mutex<(u64, u64, u64)>);

    impl Observer for Seen {
        fn advance(&self, bytes: u64, pages: u64) {
            let mut seen = self.0.lock().unwrap();
            (seen.0, seen.1) = (seen.0 + bytes, seen.1 + pages);
        }
        fn skipped(&self, _: &SkippedRecord) {
            self.0.lock().unwrap().2 += 1;
        }
    }

    #[test]
    fn pages_come_in_order_whatever_the_threads_and_everything_is_reported_once() {
        let corpus = corpus(5000);
        for threads in [1, 2, 5] {
            let (seen, mut ids) = (Seen::default(), Vec::new());
            let scan = corpus.scan().threads(threads).observed_by(&seen);
            let scanned = scan.for_each(
                || (),
                |(), page| Ok(page.id.map(Cow::into_owned)),
                |id| {
                    ids.push(id);
                    Ok(ControlFlow::Continue(()))
                },
            );
            let scanned = scanned.unwrap();
            assert_eq!(ids, (0..5000).map(|n| n.to_string()).collect::<Vec<_>>());
            assert_eq!((scanned.pages, scanned.skipped, scanned.examples.len()), (5000, 1, 1));
            assert_eq!(*seen.0.lock().unwrap(), (corpus.bytes(), 5000, 1));
        }
    }

    #[test]
    fn a_pass_stops_early_and_chosen_pages_keep_their_numbers() {
        let corpus = corpus(5000);
        let mut places = Vec::new();
        let scan = corpus.scan().threads(2);
        scan.for_each(
            || (),
            |(), page| Ok(Some((page.record, page.offset, page.length))),
            |place| {
                places.push(place);
                Ok(if places.len() < 100 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            },
        )
        .unwrap();
        assert_eq!(places.len(), 100);
        let chosen = places.iter().enumerate().filter(|(at, _)| at % 7 == 0).map(|(at, &(record, offset, length))| {
            crate::read::WantedRecord {
                source: SourceId::from_index(0),
                record,
                offset,
                length,
                page: PageId::from_index(at),
            }
        });
        let wanted = Wanted(chosen.collect());
        let (seen, mut found) = (Seen::default(), Vec::new());
        let scan = corpus.scan().threads(2).progress_to(&seen);
        scan.for_each_of(
            &wanted,
            || (),
            |(), number, page| Ok(Some((number, page.id.map(Cow::into_owned)))),
            |row| {
                found.push(row);
                Ok(ControlFlow::Continue(()))
            },
        )
        .unwrap();
        assert_eq!(found, (0..100).step_by(7).map(|n| (PageId::new(n), Some(n.to_string()))).collect::<Vec<_>>());
        assert_eq!(seen.0.lock().unwrap().0, wanted.0.iter().map(|record| record.length).sum::<u64>());
    }
}
