//! The one thread that stores: decides what is new, writes what waits as one group, syncs it, and answers.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::index::store::{AcknowledgedMark, ChangeGroup, Store, StoreSnapshot};
use crate::index::{Id, IndexSnapshot, MergeThread, RowChange, RowMatch, StoredPage};
use crate::online::{CheckOutcome, IncomingPage, PageVerdict, ServedIndex, StorePolicy};

/// Jobs that make one group, at the most.
const MOST_IN_GROUP: usize = 1024;

/// How often the size of the store is looked at.
const SIZED: Duration = Duration::from_secs(1);

/// Called with an answer when all that it says is on disk.
type Done<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// What is to be done.
pub(super) enum SequencerJob {
    Put { asked: Box<IncomingPage>, storing: StorePolicy, done: Done<CheckOutcome> },
    Delete { id: String, done: Done<bool> },
    Snapshot { done: Done<(IndexSnapshot, StoreSnapshot)> },
}

/// What is about to be stored.
#[derive(Default)]
pub(super) struct PendingGroup {
    /// Rows that come.
    rows: Vec<(u64, Id)>,
    /// Pages that come, by id, and nothing for those that go.
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

    /// Puts a page in the place of what is there; nothing, to remove it.
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

/// Somebody who waits, and whether for what is about to be written.
struct WaitingCaller {
    answer: Box<dyn FnOnce(Result<()>) + Send>,
    depends: bool,
}

pub(super) struct Sequencer {
    shared: Arc<ServedIndex>,
    merging: Arc<MergeThread>,
    mark: AcknowledgedMark,
    /// The number of the next change.
    next: u64,
    /// The number of the first change in the log.
    first: u64,
    /// The number of the next page without a name.
    next_name: u64,
    /// When the size of the store was last looked at.
    sized: Instant,
}

impl Sequencer {
    pub(super) fn new(
        shared: Arc<ServedIndex>,
        merging: Arc<MergeThread>,
        mark: AcknowledgedMark,
        next: u64,
        first: u64,
    ) -> Sequencer {
        Sequencer { shared, merging, mark, next, first, next_name: next, sized: Instant::now() }
    }

    /// Works until nobody can send any more and all is done.
    pub(super) fn run(mut self, jobs: &Receiver<SequencerJob>) {
        while let Ok(first) = jobs.recv() {
            let others = std::iter::from_fn(|| jobs.try_recv().ok());
            let group: Vec<SequencerJob> = std::iter::once(first).chain(others.take(MOST_IN_GROUP - 1)).collect();
            self.work(group);
        }
    }

    fn work(&mut self, jobs: Vec<SequencerJob>) {
        if let Err(error) = self.mend() {
            let again = || copy(&error);
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
                SequencerJob::Put { asked, storing, done } => match self.put(*asked, storing, &mut pending) {
                    Ok((answer, depends)) => {
                        waiting.push(WaitingCaller {
                            answer: Box::new(|written| done(written.map(|()| answer))),
                            depends,
                        });
                    }
                    Err(error) => done(Err(error)),
                },
                SequencerJob::Delete { id, done } => match self.delete(&id, &mut pending) {
                    Ok((was_there, depends)) => {
                        waiting.push(WaitingCaller {
                            answer: Box::new(move |written| done(written.map(|()| was_there))),
                            depends,
                        });
                    }
                    Err(error) => done(Err(error)),
                },
                SequencerJob::Snapshot { done } => done(self.snapshot()),
            }
        }
        let written = self.write(pending);
        for WaitingCaller { answer, depends } in waiting {
            match &written {
                Err(error) if depends => answer(Err(copy(error))),
                _ => answer(Ok(())),
            }
        }
        self.trim();
    }

    /// Decides on a page; also whether the answer depends on what is about to be written.
    fn put(
        &mut self,
        asked: IncomingPage,
        storing: StorePolicy,
        pending: &mut PendingGroup,
    ) -> Result<(CheckOutcome, bool)> {
        let mut answer = self.shared.look(&asked, pending)?;
        if storing == StorePolicy::IfNew && answer.verdict != PageVerdict::New {
            let depends = answer.of.iter().any(|near| pending.pages.contains_key(&near.id));
            return Ok((answer, depends));
        }
        let id = match asked.id {
            Some(id) => id,
            None => self.free_id(pending)?,
        };
        let old = self.page(&id, pending)?;
        if storing == StorePolicy::IfNew && asked.page.fingerprint.is_none() && old.is_some() {
            // Nothing is new; what is known of the page stays.
            let depends = pending.pages.contains_key(&id);
            answer.id = Some(id);
            return Ok((answer, depends));
        }
        pending.replace(&id, old.as_ref().and_then(|old| old.fingerprint), Some(asked.page));
        answer.id = Some(id);
        answer.stored = true;
        answer.replaced = old.is_some();
        Ok((answer, true))
    }

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
            None => self.shared.page(id),
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
        let counters = &self.shared.counters;
        let group = ChangeGroup { first: self.next, changes, pages: pages.into_iter().collect() };
        let start = Instant::now();
        let written = match self.shared.store.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(store) => store.write(&group, true),
            None => Err(self.shared.closed()),
        };
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        written.inspect_err(|error| self.shared.set_failed(Some(error.to_string())))?;
        counters.sync_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        counters.groups.fetch_add(1, Ordering::Relaxed);
        counters.grouped.fetch_add(group.pages.len() as u64, Ordering::Relaxed);
        let last = self.next + group.changes.len() as u64 - 1;
        // It is on disk; should this fail, it is read from there when the store is opened anew.
        let applied = self.shared.index.apply(&group.changes, last);
        applied.inspect_err(|error| self.shared.set_failed(Some(error.to_string())))?;
        self.next = last + 1;
        self.mark.write(last);
        counters.last.store(last, Ordering::Relaxed);
        if self.sized.elapsed() >= SIZED {
            self.sized = Instant::now();
            self.shared.measure();
        }
        self.merging.wake();
        Ok(())
    }

    /// Opens a store that has failed anew, if there is room for more.
    fn mend(&mut self) -> Result<()> {
        if self.shared.failed().is_none() {
            return Ok(());
        }
        let directory = self.shared.index.directory();
        Store::has_room(directory)?;
        let mut place = self.shared.store.write().unwrap_or_else(PoisonError::into_inner);
        if place.as_ref().is_some_and(Store::is_held) {
            let reason = "it has failed, and is opened again when the backup that is under way is done".to_owned();
            return Err(Error::Store { path: directory.to_path_buf(), reason });
        }
        // The old one gives the directory free before the new one takes it.
        *place = None;
        let store = Store::open(directory)?;
        // A group that failed may be there all the same.
        let apply = &mut |changes: &[RowChange], last: u64| self.shared.index.apply(changes, last);
        self.next = 1 + store.replay(self.next - 1, false, apply)?;
        *place = Some(store);
        self.shared.counters.reopened.fetch_add(1, Ordering::Relaxed);
        self.shared.set_failed(None);
        Ok(())
    }

    /// Removes changes that segments cover from the log. What fails here is met again by the next group.
    fn trim(&mut self) {
        let covered = self.shared.index.covered();
        if self.first > covered || self.shared.failed().is_some() {
            return;
        }
        if let Some(store) = self.shared.store.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            match store.trim(self.first, covered) {
                Ok(first) => self.first = first,
                Err(error) => self.shared.set_failed(Some(error.to_string())),
            }
        }
    }

    fn snapshot(&self) -> Result<(IndexSnapshot, StoreSnapshot)> {
        let store = self.shared.store.read().unwrap_or_else(PoisonError::into_inner);
        let store = store.as_ref().ok_or_else(|| self.shared.closed())?;
        Ok((self.shared.index.moment()?, store.snapshot()))
    }
}

/// The same error for one more who waits.
fn copy(error: &Error) -> Error {
    match error {
        Error::StoreFull { path } => Error::StoreFull { path: path.clone() },
        Error::Store { path, reason } => Error::Store { path: path.clone(), reason: reason.clone() },
        Error::IndexLocked { path } => Error::IndexLocked { path: path.clone() },
        other => Error::Store { path: std::path::PathBuf::new(), reason: other.to_string() },
    }
}
