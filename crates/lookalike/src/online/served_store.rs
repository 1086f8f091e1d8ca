//! The store of an index while it is served, and what becomes of it when a write fails.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::{Error, Result};
use crate::index::store::{CACHE_BYTES, ChangeGroup, Store, StoreSnapshot, Totals};
use crate::index::{FoundEntry, Record, RowChange};

/// Where the store stands. The sequencer's thread alone moves it on; others read pages from it.
///
/// | from | when | to |
/// |---|---|---|
/// | | the index is opened | `Open` |
/// | `Open` | a group cannot be written, applied to the index, or trimmed from the log | `Failed` |
/// | `Failed`, `Closed` | a job comes, and the disk has space: the database is closed and opened again | `Open`, or `Closed` if that fails |
enum ServedState {
    /// Read and written.
    Open(Store),
    /// A write has failed, and the database takes no more; pages are still read.
    Failed { store: Store, reason: String },
    /// The database could not be opened again; neither read nor written.
    Closed { reason: String },
}

impl ServedState {
    fn readable(&self) -> Option<&Store> {
        match self {
            ServedState::Open(store) | ServedState::Failed { store, .. } => Some(store),
            ServedState::Closed { .. } => None,
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            ServedState::Open(_) => None,
            ServedState::Failed { reason, .. } | ServedState::Closed { reason } => Some(reason),
        }
    }

    /// The state after a failure.
    fn fail(self, reason: String) -> ServedState {
        match self {
            ServedState::Open(store) | ServedState::Failed { store, .. } => ServedState::Failed { store, reason },
            ServedState::Closed { .. } => ServedState::Closed { reason },
        }
    }
}

/// The store, shared by all threads.
pub(super) struct ServedStore {
    state: RwLock<ServedState>,
    /// Of the index.
    directory: PathBuf,
    cache_bytes: u64,
}

impl ServedStore {
    pub(super) fn new(store: Store, directory: &Path, cache_bytes: u64) -> ServedStore {
        let cache_bytes = if cache_bytes > 0 { cache_bytes } else { CACHE_BYTES };
        ServedStore { state: RwLock::new(ServedState::Open(store)), directory: directory.to_path_buf(), cache_bytes }
    }

    fn read(&self) -> RwLockReadGuard<'_, ServedState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ServedState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing can be stored at the moment.
    pub(super) fn failure(&self) -> Option<String> {
        self.read().reason().map(str::to_owned)
    }

    /// Nothing is stored from now on, until it is reopened.
    pub(super) fn fail(&self, reason: String) {
        let mut state = self.write();
        let before = std::mem::replace(&mut *state, ServedState::Closed { reason: reason.clone() });
        *state = before.fail(reason);
    }

    /// Bytes on disk, if they can be counted.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.read().readable().and_then(Store::bytes)
    }

    /// The number of the first change in its log.
    #[cfg(test)]
    pub(super) fn first(&self) -> Option<u64> {
        self.read().readable().and_then(|store| store.first().unwrap())
    }

    /// Asks the store.
    fn ask<T>(&self, question: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
        question(self.read().readable().ok_or_else(|| self.closed())?)
    }

    /// What is known by an id.
    pub(super) fn entry(&self, id: &str) -> Result<Option<FoundEntry>> {
        self.ask(|store| store.entry(id))
    }

    /// The record with a number.
    pub(super) fn record(&self, number: u32) -> Result<Option<Record>> {
        self.ask(|store| store.record(number))
    }

    /// The numbers of pages with an identity.
    pub(super) fn copies(&self, identity: u128) -> Result<Vec<u32>> {
        self.ask(|store| store.copies(identity))
    }

    /// Visits pages by their ids; see [`Store::for_each_entry`].
    pub(super) fn for_each_entry(
        &self,
        prefix: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(String, FoundEntry) -> Result<bool>,
    ) -> Result<()> {
        self.ask(|store| store.for_each_entry(prefix, after, visit))
    }

    /// Records with numbers from `from` on, at most `most`.
    pub(super) fn records_from(&self, from: u32, most: usize) -> Result<Vec<(u32, Record)>> {
        let mut found = Vec::with_capacity(most);
        let mut take = |number, record| {
            found.push((number, record));
            Ok(found.len() < most)
        };
        self.ask(|store| store.for_each_record(from, &mut take))?;
        Ok(found)
    }

    /// Keeps what another store has learnt of sites.
    pub(super) fn copy_learnt(&self, from: &ServedStore) -> Result<()> {
        from.ask(|from| self.ask(|store| store.copy_learnt(from)))
    }

    /// Keeps a page to learn from.
    pub(super) fn keep_sample(&self, host: u64, key: u64, sample: Vec<u8>) -> Result<()> {
        self.ask(|store| store.keep_sample(host, key, sample))
    }

    /// Forgets a page that was learnt from.
    pub(super) fn forget_sample(&self, host: u64, key: u64) -> Result<()> {
        self.ask(|store| store.forget_sample(host, key))
    }

    /// Visits the pages of a host that are learnt from.
    pub(super) fn for_each_sample(&self, host: u64, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        self.ask(|store| store.for_each_sample(host, visit))
    }

    /// What was learnt of a host.
    pub(super) fn frames(&self, host: u64) -> Result<Option<Vec<u8>>> {
        self.ask(|store| Ok(store.frames(host)?.map(|bytes| bytes.to_vec())))
    }

    /// The numbers of stored pages of a host.
    pub(super) fn numbers_of_host(&self, host: u64, from: u32, most: usize) -> Result<Vec<u32>> {
        self.ask(|store| store.numbers_of_host(host, from, most))
    }

    /// The numbers of pages that were to go up to a time.
    pub(super) fn expired(&self, until: u64, most: usize) -> Result<Vec<(u64, u32)>> {
        self.ask(|store| store.expired(until, most))
    }

    /// Writes a group; without `sync`, it is on disk when the next one is.
    pub(super) fn write_group(&self, group: &ChangeGroup, sync: bool) -> Result<()> {
        match &*self.read() {
            ServedState::Open(store) => store.write(group, sync),
            ServedState::Failed { .. } | ServedState::Closed { .. } => Err(self.closed()),
        }
    }

    /// Removes changes that segments cover from the log; returns the first that is left. Nothing while it has failed.
    pub(super) fn trim(&self, first: u64, covered: u64) -> Result<u64> {
        match &*self.read() {
            ServedState::Open(store) => store.trim(first, covered),
            ServedState::Failed { .. } | ServedState::Closed { .. } => Ok(first),
        }
    }

    /// What it holds now.
    pub(super) fn snapshot(&self) -> Result<StoreSnapshot> {
        Ok(self.read().readable().ok_or_else(|| self.closed())?.snapshot())
    }

    /// Opens a store that has failed again, if there is space, and visits its changes after the one with the number
    /// `last`; returns what it has had, or `None` if it had not failed.
    pub(super) fn reopen_if_failed(
        &self,
        last: u64,
        visit: &mut dyn FnMut(&[RowChange], u64) -> Result<()>,
    ) -> Result<Option<Totals>> {
        let Some(reason) = self.failure() else { return Ok(None) };
        Store::check_space(&self.directory)?;
        let mut state = self.write();
        if state.readable().is_some_and(Store::is_held) {
            let reason = "it has failed, and is opened again when the backup that is under way is done".to_owned();
            return Err(Error::Store { path: self.directory.clone(), reason });
        }
        // The old database must release the directory before it is opened again.
        *state = ServedState::Closed { reason };
        let store = Store::open(&self.directory, self.cache_bytes)?;
        // A group that failed may be there all the same.
        let last = store.replay(last, false, visit)?;
        let totals = store.totals()?.unwrap_or_default();
        *state = ServedState::Open(store);
        Ok(Some(Totals { last, ..totals }))
    }

    fn closed(&self) -> Error {
        let reason =
            "it could not be opened again after a write had failed; it is tried again with every page that comes";
        Error::Store { path: self.directory.clone(), reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Id;

    #[test]
    fn a_store_that_failed_is_read_but_not_written_until_it_is_reopened() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let store = ServedStore::new(Store::open(directory, CACHE_BYTES).unwrap(), directory, 0);
        let group = |first| ChangeGroup {
            first,
            changes: vec![RowChange::Insert(1, Id::from("a"))],
            pages: vec![("a".to_owned(), None)],
            totals: Totals { last: first, groups: first, pages: 1 },
            ..ChangeGroup::default()
        };
        store.write_group(&group(1), true).unwrap();
        assert_eq!(store.reopen_if_failed(1, &mut |_, _| Ok(())).unwrap(), None);
        store.fail("the disk is gone".to_owned());
        store.fail("and so is the other".to_owned());
        assert_eq!(store.failure().as_deref(), Some("and so is the other"));
        assert!(store.entry("a").unwrap().is_none());
        assert!(store.write_group(&group(2), true).is_err());
        assert_eq!(store.trim(1, 1).unwrap(), 1, "nothing is trimmed");
        let held = store.snapshot().unwrap();
        assert!(store.reopen_if_failed(0, &mut |_, _| Ok(())).is_err(), "a snapshot holds it");
        drop(held);
        assert!(store.reopen_if_failed(0, &mut |_, _| Err(Error::Overloaded)).is_err());
        assert!(store.entry("a").is_err(), "it is closed");
        let mut seen = 0;
        let mut visit = |changes: &[RowChange], _| {
            seen += changes.len();
            Ok(())
        };
        assert_eq!(store.reopen_if_failed(0, &mut visit).unwrap(), Some(Totals { last: 1, groups: 1, pages: 1 }));
        assert_eq!((seen, store.failure()), (1, None));
        store.write_group(&group(2), true).unwrap();
        assert_eq!(store.trim(1, 1).unwrap(), 2);
    }
}
