//! The one thread that stores: decides what is new, writes what waits as one group, syncs it, and answers.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::index::store::{AcknowledgedMark, ChangeGroup, StoreSnapshot};
use crate::index::{Id, IndexSnapshot, MergeThread, RowChange, RowMatch, StoredPage};
use crate::online::{CheckOutcome, IncomingPage, PageVerdict, ServedIndex, StorePolicy};

/// The most jobs of one group.
const MOST_IN_GROUP: usize = 1024;

/// How often the size of the store is measured.
const MEASURED_EVERY: Duration = Duration::from_secs(1);

/// Called with a result when all that it says is on disk.
type Done<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// What is to be done.
pub(super) enum SequencerJob {
    Put { incoming: Box<IncomingPage>, policy: StorePolicy, done: Done<CheckOutcome> },
    Delete { id: String, done: Done<bool> },
    Snapshot { done: Done<(IndexSnapshot, StoreSnapshot)> },
}

/// What is about to be stored.
#[derive(Default)]
pub(super) struct PendingGroup {
    /// Rows that come.
    rows: Vec<(u64, Id)>,
    /// Pages that come, by id, and `None` for those that are removed.
    pub(super) pages: HashMap<String, Option<StoredPage>>,
    changes: Vec<RowChange>,
}

impl PendingGroup {
    /// Rows within `radius` of `fingerprint`.
    pub(super) fn near(&self, fingerprint: u64, radius: u32) -> Vec<RowMatch> {
        let distances = self.rows.iter().map(|row| ((row.0 ^ fingerprint).count_ones(), row));
        let near = distances.filter(|(distance, _)| *distance <= radius);
        near.map(|(distance, (fingerprint, id))| RowMatch { id: id.clone(), distance, fingerprint: *fingerprint })
            .collect()
    }

    /// Puts a page in the place of what is there; `None` removes it.
    fn replace(&mut self, id: &str, old: Option<u64>, page: Option<StoredPage>) {
        let new = page.as_ref().and_then(|page| page.fingerprint);
        if old != new {
            let row = Id::from(id);
            self.rows.retain(|(_, other)| *other != row);
            self.changes.extend(old.map(|old| RowChange::Delete(old, row.clone())));
            self.rows.extend(new.map(|new| (new, row.clone())));
            self.changes.extend(new.map(|new| RowChange::Insert(new, row)));
        }
        self.pages.insert(id.to_owned(), page);
    }
}

/// A caller that waits until the group is written.
struct WaitingCaller {
    answer: Box<dyn FnOnce(Result<()>) + Send>,
    /// Whether the answer is wrong if the group cannot be written.
    depends: bool,
}

pub(super) struct Sequencer {
    served: Arc<ServedIndex>,
    merging: Arc<MergeThread>,
    mark: AcknowledgedMark,
    /// The number of the next change.
    next: u64,
    /// The number of the first change in the log.
    first: u64,
    /// The number of the next page without a name.
    next_name: u64,
    /// When the size of the store was last measured.
    measured: Instant,
}

impl Sequencer {
    pub(super) fn new(
        served: Arc<ServedIndex>,
        merging: Arc<MergeThread>,
        mark: AcknowledgedMark,
        next: u64,
        first: u64,
    ) -> Sequencer {
        Sequencer { served, merging, mark, next, first, next_name: next, measured: Instant::now() }
    }

    /// Works until nobody can send any more and all is done.
    pub(super) fn run(mut self, jobs: &Receiver<SequencerJob>) {
        while let Ok(first) = jobs.recv() {
            let others = std::iter::from_fn(|| jobs.try_recv().ok());
            let group: Vec<SequencerJob> = std::iter::once(first).chain(others.take(MOST_IN_GROUP - 1)).collect();
            let counters = &self.served.counters;
            counters.waiting.fetch_sub(group.len() as u64, Ordering::Relaxed);
            counters.busy_since.store(self.served.nanoseconds(), Ordering::Relaxed);
            // Whoever waits for one of these jobs hears that it is gone when it is dropped.
            let done = std::panic::catch_unwind(AssertUnwindSafe(|| self.work(group)));
            if done.is_err() {
                // What this thread knows may be half done: the store is read again before the next group.
                self.served.store.fail("the thread that stores pages has panicked; see the log".to_owned());
                self.served.counters.restarted.fetch_add(1, Ordering::Relaxed);
            }
            self.served.counters.busy_since.store(0, Ordering::Relaxed);
        }
    }

    fn work(&mut self, jobs: Vec<SequencerJob>) {
        if let Err(error) = self.reopen_if_failed() {
            let again = || self.copy_of(&error);
            for job in jobs {
                match job {
                    SequencerJob::Put { done, .. } => done(Err(again())),
                    SequencerJob::Delete { done, .. } => done(Err(again())),
                    SequencerJob::Snapshot { done } => done(Err(again())),
                }
            }
            return;
        }
        let (mut pending, mut waiting) = (PendingGroup::default(), Vec::new());
        for job in jobs {
            match job {
                SequencerJob::Put { incoming, policy, done } => match self.put(*incoming, policy, &mut pending) {
                    Ok((outcome, depends)) => {
                        let answer = Box::new(|written: Result<()>| done(written.map(|()| outcome)));
                        waiting.push(WaitingCaller { answer, depends });
                    }
                    Err(error) => done(Err(error)),
                },
                SequencerJob::Delete { id, done } => match self.delete(&id, &mut pending) {
                    Ok((was_there, depends)) => {
                        let answer = Box::new(move |written: Result<()>| done(written.map(|()| was_there)));
                        waiting.push(WaitingCaller { answer, depends });
                    }
                    Err(error) => done(Err(error)),
                },
                SequencerJob::Snapshot { done } => done(self.snapshot()),
            }
        }
        let written = self.write(pending);
        for WaitingCaller { answer, depends } in waiting {
            match &written {
                Err(error) if depends => answer(Err(self.copy_of(error))),
                _ => answer(Ok(())),
            }
        }
        self.trim();
    }

    /// Decides on a page; also whether the outcome depends on what is about to be written.
    fn put(
        &mut self,
        incoming: IncomingPage,
        policy: StorePolicy,
        pending: &mut PendingGroup,
    ) -> Result<(CheckOutcome, bool)> {
        let mut outcome = self.served.lookup(&incoming, pending)?;
        if policy == StorePolicy::IfNew && outcome.verdict != PageVerdict::New {
            let depends = outcome.of.iter().any(|near| pending.pages.contains_key(&near.id));
            return Ok((outcome, depends));
        }
        let id = match incoming.id {
            Some(id) => id,
            None => self.free_id(pending)?,
        };
        let old = self.page(&id, pending)?;
        if policy == StorePolicy::IfNew && incoming.page.fingerprint.is_none() && old.is_some() {
            // Nothing is new; what is known of the page stays.
            let depends = pending.pages.contains_key(&id);
            outcome.id = Some(id);
            return Ok((outcome, depends));
        }
        pending.replace(&id, old.as_ref().and_then(|old| old.fingerprint), Some(incoming.page));
        outcome.id = Some(id);
        outcome.stored = true;
        outcome.replaced = old.is_some();
        Ok((outcome, true))
    }

    /// Removes a page: whether there was one, and whether that depends on what is about to be written.
    fn delete(&self, id: &str, pending: &mut PendingGroup) -> Result<(bool, bool)> {
        let depends = pending.pages.contains_key(id);
        match self.page(id, pending)? {
            Some(old) => {
                pending.replace(id, old.fingerprint, None);
                Ok((true, true))
            }
            None => Ok((false, depends)),
        }
    }

    fn page(&self, id: &str, pending: &PendingGroup) -> Result<Option<StoredPage>> {
        match pending.pages.get(id) {
            Some(page) => Ok(page.clone()),
            None => self.served.page(id),
        }
    }

    /// An id that no page has.
    fn free_id(&mut self, pending: &PendingGroup) -> Result<String> {
        loop {
            let id = format!("page-{}", self.next_name);
            self.next_name += 1;
            if self.page(&id, pending)?.is_none() {
                return Ok(id);
            }
        }
    }

    /// Writes and syncs what is pending, and shows it to readers.
    fn write(&mut self, pending: PendingGroup) -> Result<()> {
        let PendingGroup { changes, pages, .. } = pending;
        if pages.is_empty() {
            return Ok(());
        }
        let group = ChangeGroup { first: self.next, changes, pages: pages.into_iter().collect() };
        let fail = |error: &Error| self.served.store.fail(error.to_string());
        let start = Instant::now();
        self.served.store.write_group(&group).inspect_err(fail)?;
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).expect("less than five centuries");
        let counters = &self.served.counters;
        counters.sync_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        counters.groups.fetch_add(1, Ordering::Relaxed);
        counters.grouped.fetch_add(group.pages.len() as u64, Ordering::Relaxed);
        let last = self.next + group.changes.len() as u64 - 1;
        // It is on disk; should this fail, it is read from there when the store is reopened.
        self.served.index.apply(&group.changes, last).inspect_err(fail)?;
        self.next = last + 1;
        self.mark.write(last);
        counters.last.store(last, Ordering::Relaxed);
        if self.measured.elapsed() >= MEASURED_EVERY {
            self.measured = Instant::now();
            self.served.measure();
        }
        self.merging.wake();
        Ok(())
    }

    /// Reopens a store that has failed, if there is space for more.
    fn reopen_if_failed(&mut self) -> Result<()> {
        let apply = &mut |changes: &[RowChange], last: u64| self.served.index.apply(changes, last);
        if let Some(last) = self.served.store.reopen_if_failed(self.next - 1, apply)? {
            self.next = last + 1;
            self.served.counters.reopened.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Removes changes that segments cover from the log. What fails here is met again by the next group.
    fn trim(&mut self) {
        let covered = self.served.index.covered();
        if self.first > covered {
            return;
        }
        match self.served.store.trim(self.first, covered) {
            Ok(first) => self.first = first,
            Err(error) => self.served.store.fail(error.to_string()),
        }
    }

    fn snapshot(&self) -> Result<(IndexSnapshot, StoreSnapshot)> {
        Ok((self.served.index.snapshot()?, self.served.store.snapshot()?))
    }

    /// The same error for one more caller.
    fn copy_of(&self, error: &Error) -> Error {
        match error {
            Error::StoreFull { path } => Error::StoreFull { path: path.clone() },
            Error::Store { path, reason } => Error::Store { path: path.clone(), reason: reason.clone() },
            Error::Corrupt { path, reason } => Error::corrupt(path, reason.clone()),
            Error::IndexLocked { path } => Error::IndexLocked { path: path.clone() },
            other => Error::Store { path: self.served.index.directory().to_path_buf(), reason: other.to_string() },
        }
    }
}
