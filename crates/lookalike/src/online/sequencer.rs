//! The one thread that stores: decides what is new, writes what waits as one group, syncs it, and answers.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::index::store::{AcknowledgedMark, ChangeGroup, StoreSnapshot, Totals};
use crate::index::{FoundEntry, Id, IndexSnapshot, MergeThread, PageEntry, Record, RowChange, RowMatch};
use crate::online::incoming::{Worker, now};
use crate::online::lookup::{PendingKeys, near_rows};
use crate::online::{CheckOutcome, IncomingPage, PageVerdict, ServedIndex, StorePolicy};

/// The most jobs of one group.
const MOST_IN_GROUP: usize = 1024;
/// How often the size of the store is measured.
const MEASURED_EVERY: Duration = Duration::from_secs(1);
/// How often pages are looked for whose time is over.
const SWEPT_EVERY: Duration = Duration::from_secs(1);
/// Pages that go at once.
const MOST_SWEPT: usize = 1024;
/// Pages with the same words that are remembered.
const MOST_COPIES: usize = 64;

/// Called with a result when all that it says is on disk.
pub(super) type Done<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// What is to be done.
pub(super) enum SequencerJob {
    /// Look a page up among what came after `since`, and store it. `found` is what was found up to then.
    Put {
        incoming: Box<IncomingPage>,
        policy: StorePolicy,
        since: u32,
        found: Box<CheckOutcome>,
        done: Done<CheckOutcome>,
    },
    Delete {
        id: String,
        done: Done<bool>,
    },
    /// Put a page that was read again in the place of what is stored under a number.
    Refresh {
        number: u32,
        page: Box<IncomingPage>,
        done: Done<bool>,
    },
    /// Store a page of another index, in the place of one with the same id.
    Copy {
        page: Box<IncomingPage>,
        done: Done<()>,
    },
    /// Keep what was learnt of a host.
    Frames {
        host: u64,
        bytes: Vec<u8>,
        done: Done<()>,
    },
    Snapshot {
        done: Done<(IndexSnapshot, StoreSnapshot)>,
    },
    /// Apply groups that the primary has written.
    #[cfg(feature = "remote")]
    Apply {
        groups: Vec<ChangeGroup>,
        done: Done<()>,
    },
}

impl SequencerJob {
    /// Says that it cannot be done.
    fn fail(self, error: Error) {
        match self {
            SequencerJob::Put { done, .. } => done(Err(error)),
            SequencerJob::Delete { done, .. } | SequencerJob::Refresh { done, .. } => done(Err(error)),
            SequencerJob::Frames { done, .. } | SequencerJob::Copy { done, .. } => done(Err(error)),
            SequencerJob::Snapshot { done } => done(Err(error)),
            #[cfg(feature = "remote")]
            SequencerJob::Apply { done, .. } => done(Err(error)),
        }
    }
}

/// What is about to be stored.
#[derive(Default)]
pub(super) struct PendingGroup {
    /// The number of the first change.
    first: u64,
    changes: Vec<RowChange>,
    /// Rows that come, in a collection of fingerprints.
    rows: Vec<(u64, Id)>,
    /// Pages that come, by id, and `None` for those that are removed.
    pub(super) pages: HashMap<String, Option<PageEntry>>,
    /// Records that come, by number, and `None` for those that are removed.
    pub(super) records: HashMap<u32, Option<Record>>,
    /// The numbers of pages with an identity, of those that change.
    pub(super) copies: HashMap<u128, Vec<u32>>,
    /// The numbers of pages that come, by the keys of their bands.
    pub(super) keys: PendingKeys,
    hosts: Vec<(u64, u32, bool)>,
    expiries: Vec<(u64, u32, bool)>,
    frames: Vec<(u64, Vec<u8>)>,
    /// By how many pages there will be more.
    more: i64,
}

impl PendingGroup {
    /// Rows within `radius` of `fingerprint`.
    pub(super) fn near(&self, fingerprint: u64, radius: u32) -> Vec<RowMatch> {
        near_rows(&self.rows, fingerprint, radius)
    }

    fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.frames.is_empty() && self.expiries.is_empty()
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
    worker: Worker,
    mark: AcknowledgedMark,
    totals: Totals,
    /// The number of the first change in the log.
    first: u64,
    /// The number of the next page without a name.
    next_name: u64,
    /// When the size of the store was last measured.
    measured: Instant,
    /// When pages were last looked for whose time is over.
    swept: Instant,
}

impl Sequencer {
    pub(super) fn new(
        served: Arc<ServedIndex>,
        merging: Arc<MergeThread>,
        worker: Worker,
        mark: AcknowledgedMark,
        totals: Totals,
        first: u64,
    ) -> Sequencer {
        let (measured, swept) = (Instant::now(), Instant::now());
        Sequencer { served, merging, worker, mark, totals, first, next_name: totals.last + 1, measured, swept }
    }

    /// Works until nobody can send any more and all is done.
    pub(super) fn run(mut self, jobs: &Receiver<SequencerJob>) {
        loop {
            let group: Vec<SequencerJob> = match jobs.recv_timeout(SWEPT_EVERY) {
                Ok(first) => {
                    let others = std::iter::from_fn(|| jobs.try_recv().ok());
                    std::iter::once(first).chain(others.take(MOST_IN_GROUP - 1)).collect()
                }
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let counters = &self.served.counters;
            counters.waiting.fetch_sub(group.len() as u64, Ordering::Relaxed);
            counters.busy_since.store(self.served.nanoseconds(), Ordering::Relaxed);
            // Whoever waits for one of these jobs hears that it is gone when it is dropped.
            let done = std::panic::catch_unwind(AssertUnwindSafe(|| {
                if !group.is_empty() {
                    self.work(group);
                }
                self.sweep();
            }));
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
            jobs.into_iter().for_each(|job| job.fail(self.copy_of(&error)));
            return;
        }
        let mut pending = PendingGroup { first: self.totals.last + 1, ..PendingGroup::default() };
        let mut waiting = Vec::new();
        for job in jobs {
            match job {
                SequencerJob::Put { incoming, policy, since, found, done } => {
                    let decided = self.put(*incoming, policy, since, *found, &mut pending);
                    answer_later(decided, done, &mut waiting);
                }
                SequencerJob::Delete { id, done } => {
                    let decided = self.delete(&id, &mut pending);
                    answer_later(decided, done, &mut waiting);
                }
                SequencerJob::Refresh { number, page, done } => {
                    let decided = self.refresh(number, *page, &mut pending);
                    answer_later(decided, done, &mut waiting);
                }
                SequencerJob::Copy { page, done } => {
                    let decided = self.copy(*page, &mut pending).map(|()| ((), true));
                    answer_later(decided, done, &mut waiting);
                }
                SequencerJob::Frames { host, bytes, done } => {
                    pending.frames.push((host, bytes));
                    answer_later(Ok(((), true)), done, &mut waiting);
                }
                SequencerJob::Snapshot { done } => done(self.snapshot()),
                #[cfg(feature = "remote")]
                SequencerJob::Apply { groups, done } => {
                    let is_alone = pending.is_empty();
                    done(if is_alone { self.apply(groups) } else { Err(Error::internal("a follower stores pages")) });
                    pending.first = self.totals.last + 1;
                }
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
        since: u32,
        found: CheckOutcome,
        pending: &mut PendingGroup,
    ) -> Result<(CheckOutcome, bool)> {
        #[cfg(feature = "faults")]
        crate::online::faults::before_put(incoming.id.as_deref());
        let mut outcome = self.served.lookup(&incoming, since, pending, &mut self.worker)?;
        outcome.candidates += found.candidates;
        outcome.of.extend(found.of);
        outcome.rejected.extend(found.rejected);
        outcome.unconfirmed.extend(found.unconfirmed);
        // What was found before may have gone since.
        let mut gone = Vec::new();
        for near in &outcome.of {
            if self.served.entry(&near.id, pending)?.is_none() {
                gone.push(near.id.clone());
            }
        }
        outcome.of.retain(|near| !gone.contains(&near.id));
        outcome.decide();
        if policy == StorePolicy::IfNew && outcome.verdict != PageVerdict::New {
            let depends = outcome.of.iter().any(|near| pending.pages.contains_key(&near.id));
            return Ok((outcome, depends));
        }
        let id = match &incoming.id {
            Some(id) => id.clone(),
            None => self.free_id(pending)?,
        };
        let old = self.served.entry(&id, pending)?;
        if policy == StorePolicy::IfNew && incoming.record.tokens == 0 && old.is_some() {
            // Nothing is new; what is known of the page stays.
            let depends = pending.pages.contains_key(&id);
            outcome.id = Some(id);
            return Ok((outcome, depends));
        }
        outcome.replaced = old.is_some();
        self.replace(&id, old, Some(incoming), pending)?;
        outcome.id = Some(id);
        outcome.stored = true;
        Ok((outcome, true))
    }

    /// Removes a page: whether there was one, and whether that depends on what is about to be written.
    fn delete(&self, id: &str, pending: &mut PendingGroup) -> Result<(bool, bool)> {
        let depends = pending.pages.contains_key(id);
        match self.served.entry(id, pending)? {
            Some(old) => {
                self.replace(id, Some(old), None, pending)?;
                self.served.removed.note(id);
                Ok((true, true))
            }
            None => Ok((false, depends)),
        }
    }

    /// Puts a page that was read again in the place of what is stored, if that is still the same.
    fn refresh(&self, number: u32, page: IncomingPage, pending: &mut PendingGroup) -> Result<(bool, bool)> {
        let id = page.record.id.clone();
        match self.served.entry(&id, pending)? {
            Some(FoundEntry::Entry(entry)) if entry.number == number => {
                let mut page = page;
                page.entry = entry.clone();
                self.replace(&id, Some(FoundEntry::Entry(entry)), Some(page), pending)?;
                Ok((true, true))
            }
            _ => Ok((false, false)),
        }
    }

    /// Stores a page that was stored elsewhere.
    fn copy(&self, page: IncomingPage, pending: &mut PendingGroup) -> Result<()> {
        let id = page.record.id.clone();
        let old = self.served.entry(&id, pending)?;
        self.replace(&id, old, Some(page), pending)
    }

    /// Puts a page in the place of what is there; `None` removes it.
    fn replace(
        &self,
        id: &str,
        old: Option<FoundEntry>,
        new: Option<IncomingPage>,
        pending: &mut PendingGroup,
    ) -> Result<()> {
        let has_bands = self.served.bands().is_some();
        pending.more += i64::from(new.is_some()) - i64::from(old.is_some());
        let old_record = match old {
            Some(FoundEntry::Whole(_, record)) => Some((None, *record)),
            Some(FoundEntry::Entry(entry)) => {
                let record = match pending.records.get(&entry.number) {
                    Some(record) => record.clone(),
                    None => self.served.store.record(entry.number)?,
                };
                record.map(|record| (Some(entry.number), record))
            }
            None => None,
        };
        let old_fingerprint = old_record.as_ref().and_then(|(_, record)| record.fingerprint);
        let new_fingerprint = new.as_ref().and_then(|new| new.record.fingerprint);
        if !has_bands && old_fingerprint != new_fingerprint {
            let row = Id::from(id);
            pending.rows.retain(|(_, other)| *other != row);
            pending.changes.extend(old_fingerprint.map(|old| RowChange::Delete(old, row)));
        }
        if let Some((Some(number), record)) = &old_record {
            self.forget(*number, record, pending)?;
            if has_bands {
                pending.changes.push(RowChange::Gone(*number));
            }
        }
        let Some(new) = new else {
            pending.pages.insert(id.to_owned(), None);
            return Ok(());
        };
        let IncomingPage { entry, mut record, keys, .. } = new;
        record.id = id.to_owned();
        // Every page has a change of its own, whose number is that of the page.
        let number = pending.first + pending.changes.len() as u64;
        let number = u32::try_from(number).ok().filter(|number| *number < u32::MAX).ok_or_else(|| {
            Error::conflict("collection", "has had 4 billion changes, which is all that it can have; make another one")
        })?;
        if has_bands {
            keys.iter().for_each(|&key| pending.keys.entry(key).or_default().push(number));
            pending.changes.push(RowChange::Bands(keys.into()));
        } else if let Some(fingerprint) = new_fingerprint {
            let row = Id::from(id);
            if old_fingerprint == new_fingerprint {
                // The row is there; the change says so once more.
                pending.changes.push(RowChange::Delete(fingerprint, row.clone()));
            }
            let number_of_row = pending.first + pending.changes.len() as u64;
            debug_assert!(number_of_row >= u64::from(number));
            pending.rows.retain(|(_, other)| *other != row);
            pending.rows.push((fingerprint, row.clone()));
            pending.changes.push(RowChange::Insert(fingerprint, row));
        } else {
            // An empty page has no row, but a number.
            let row = Id::from(id);
            pending.changes.push(RowChange::Delete(0, row));
        }
        if record.tokens > 0 {
            let mut copies = self.copies(record.identity, pending)?;
            if copies.len() < MOST_COPIES {
                copies.push(number);
            }
            pending.copies.insert(record.identity, copies);
        }
        pending.hosts.extend(record.host.map(|host| (host, number, true)));
        pending.expiries.extend(entry.expires_at.map(|time| (time, number, true)));
        pending.records.insert(number, Some(record));
        pending.pages.insert(id.to_owned(), Some(PageEntry { number, ..entry }));
        Ok(())
    }

    /// Forgets what was known of a page by its number.
    fn forget(&self, number: u32, record: &Record, pending: &mut PendingGroup) -> Result<()> {
        let mut copies = self.copies(record.identity, pending)?;
        copies.retain(|&copy| copy != number);
        pending.copies.insert(record.identity, copies);
        pending.hosts.retain(|(_, other, _)| *other != number);
        pending.hosts.extend(record.host.map(|host| (host, number, false)));
        pending.expiries.retain(|(_, other, _)| *other != number);
        pending.expiries.extend(record.expires_at.map(|time| (time, number, false)));
        pending.keys.values_mut().for_each(|numbers| numbers.retain(|&other| other != number));
        pending.records.insert(number, None);
        Ok(())
    }

    fn copies(&self, identity: u128, pending: &PendingGroup) -> Result<Vec<u32>> {
        match pending.copies.get(&identity) {
            Some(numbers) => Ok(numbers.clone()),
            None => self.served.store.copies(identity),
        }
    }

    /// An id that no page has.
    fn free_id(&mut self, pending: &PendingGroup) -> Result<String> {
        loop {
            let id = format!("page-{}", self.next_name);
            self.next_name += 1;
            if self.served.entry(&id, pending)?.is_none() {
                return Ok(id);
            }
        }
    }

    /// Writes and syncs what is pending, and shows it to readers.
    fn write(&mut self, pending: PendingGroup) -> Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let PendingGroup { first, changes, pages, records, copies, hosts, expiries, frames, more, .. } = pending;
        let totals = Totals {
            last: first + changes.len() as u64 - 1,
            groups: self.totals.groups + 1,
            pages: self.totals.pages.saturating_add_signed(more),
        };
        let group = ChangeGroup {
            first,
            changes,
            pages: pages.into_iter().collect(),
            records: records.into_iter().collect(),
            copies: copies.into_iter().collect(),
            hosts,
            expiries,
            frames,
            totals,
        };
        self.commit(&group, true)
    }

    /// Applies groups that the primary has written; they are synced together.
    #[cfg(feature = "remote")]
    fn apply(&mut self, groups: Vec<ChangeGroup>) -> Result<()> {
        let count = groups.len();
        for (group, number) in groups.into_iter().zip(1..) {
            let (next, first) = (self.totals.groups + 1, self.totals.last + 1);
            if group.totals.groups != next || group.first != first || group.totals.last != group.last() {
                let reason = format!(
                    "group {} begins with change {}, and group {next} with change {first} is the next one",
                    group.totals.groups, group.first
                );
                return Err(Error::corrupt(self.served.index.directory(), reason));
            }
            self.commit(&group, number == count)?;
            if let Some(sites) = &self.served.sites {
                group.frames.iter().for_each(|(host, _)| sites.forget(*host));
            }
        }
        self.next_name = self.next_name.max(self.totals.last + 1);
        Ok(())
    }

    /// Writes a group and shows it to readers; without `sync`, it is on disk when the next one is.
    fn commit(&mut self, group: &ChangeGroup, sync: bool) -> Result<()> {
        let totals = group.totals;
        let fail = |error: &Error| self.served.store.fail(error.to_string());
        let start = Instant::now();
        self.served.replica.prepare(group);
        self.served.store.write_group(group, sync).inspect_err(fail)?;
        self.served.replica.commit(totals.groups);
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).expect("less than five centuries");
        let counters = &self.served.counters;
        counters.sync_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        counters.groups.fetch_add(1, Ordering::Relaxed);
        counters.grouped.fetch_add(group.pages.len() as u64, Ordering::Relaxed);
        // It is on disk; should this fail, it is read from there when the store is reopened.
        self.served.index.apply(&group.changes, totals.last).inspect_err(fail)?;
        self.totals = totals;
        if sync {
            self.mark.write(totals);
        }
        // Whoever sees this number finds all changes up to it.
        counters.last.store(totals.last, Ordering::Release);
        counters.pages.store(totals.pages, Ordering::Relaxed);
        counters.all_groups.store(totals.groups, Ordering::Relaxed);
        if self.measured.elapsed() >= MEASURED_EVERY {
            self.measured = Instant::now();
            self.served.measure();
        }
        self.merging.wake();
        Ok(())
    }

    /// Removes pages whose time is over.
    fn sweep(&mut self) {
        let is_kept = self.served.store.failure().is_some() || self.served.replica.refusal().is_some();
        if self.swept.elapsed() < SWEPT_EVERY || is_kept {
            return;
        }
        self.swept = Instant::now();
        // What fails here is met again by the next group, or the next sweep.
        let _ = self.sweep_once();
    }

    fn sweep_once(&mut self) -> Result<()> {
        let mut pending = PendingGroup { first: self.totals.last + 1, ..PendingGroup::default() };
        for (time, number) in self.served.store.expired(now(), MOST_SWEPT)? {
            let record = self.served.store.record(number)?;
            match record.map(|record| record.id).map(|id| Ok((self.served.entry(&id, &pending)?, id))).transpose()? {
                Some((Some(FoundEntry::Entry(entry)), id)) if entry.number == number => {
                    self.delete(&id, &mut pending)?;
                }
                // It was replaced; only the note is left.
                _ => pending.expiries.push((time, number, false)),
            }
        }
        self.write(pending)
    }

    /// Reopens a store that has failed, if there is space for more.
    fn reopen_if_failed(&mut self) -> Result<()> {
        let apply = &mut |changes: &[RowChange], last: u64| self.served.index.apply(changes, last);
        if let Some(totals) = self.served.store.reopen_if_failed(self.totals.last, apply)? {
            self.totals = totals;
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

/// Answers a caller when the group is written, or at once if nothing could be decided.
fn answer_later<T: Send + 'static>(decided: Result<(T, bool)>, done: Done<T>, waiting: &mut Vec<WaitingCaller>) {
    match decided {
        Ok((outcome, depends)) => {
            let answer = Box::new(|written: Result<()>| done(written.map(|()| outcome)));
            waiting.push(WaitingCaller { answer, depends });
        }
        Err(error) => done(Err(error)),
    }
}
