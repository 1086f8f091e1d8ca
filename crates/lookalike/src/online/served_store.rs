//! The store of an index while it is served, and what becomes of it when a write fails.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::{Error, Result};
use crate::index::store::{ChangeGroup, Store, StoreSnapshot};
use crate::index::{RowChange, StoredPage};

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
}

impl ServedStore {
    pub(super) fn new(store: Store, directory: &Path) -> ServedStore {
        ServedStore { state: RwLock::new(ServedState::Open(store)), directory: directory.to_path_buf() }
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

    /// The page with an id.
    pub(super) fn page(&self, id: &str) -> Result<Option<StoredPage>> {
        self.read().readable().ok_or_else(|| self.closed())?.page(id)
    }

    /// Writes a group and syncs it.
    pub(super) fn write_group(&self, group: &ChangeGroup) -> Result<()> {
        match &*self.read() {
            ServedState::Open(store) => store.write(group, true),
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
    /// `last`; returns the number of its last change, or `None` if it had not failed.
    pub(super) fn reopen_if_failed(
        &self,
        last: u64,
        visit: &mut dyn FnMut(&[RowChange], u64) -> Result<()>,
    ) -> Result<Option<u64>> {
        let Some(reason) = self.failure() else { return Ok(None) };
        Store::check_space(&self.directory)?;
        let mut state = self.write();
        if state.readable().is_some_and(Store::is_held) {
            let reason = "it has failed, and is opened again when the backup that is under way is done".to_owned();
            return Err(Error::Store { path: self.directory.clone(), reason });
        }
        // The old database must release the directory before it is opened again.
        *state = ServedState::Closed { reason };
        let store = Store::open(&self.directory)?;
        // A group that failed may be there all the same.
        let last = store.replay(last, false, visit)?;
        *state = ServedState::Open(store);
        Ok(Some(last))
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
        let store = ServedStore::new(Store::open(directory).unwrap(), directory);
        let group = |first| ChangeGroup {
            first,
            changes: vec![RowChange::Insert(1, Id::from("a"))],
            pages: vec![("a".to_owned(), None)],
        };
        store.write_group(&group(1)).unwrap();
        assert_eq!(store.reopen_if_failed(1, &mut |_, _| Ok(())).unwrap(), None);
        store.fail("the disk is gone".to_owned());
        store.fail("and so is the other".to_owned());
        assert_eq!(store.failure().as_deref(), Some("and so is the other"));
        assert!(store.page("a").unwrap().is_none());
        assert!(store.write_group(&group(2)).is_err());
        assert_eq!(store.trim(1, 1).unwrap(), 1, "nothing is trimmed");
        let held = store.snapshot().unwrap();
        assert!(store.reopen_if_failed(0, &mut |_, _| Ok(())).is_err(), "a snapshot holds it");
        drop(held);
        assert!(store.reopen_if_failed(0, &mut |_, _| Err(Error::Overloaded)).is_err());
        assert!(store.page("a").is_err(), "it is closed");
        let mut seen = 0;
        let mut visit = |changes: &[RowChange], _| {
            seen += changes.len();
            Ok(())
        };
        assert_eq!(store.reopen_if_failed(0, &mut visit).unwrap(), Some(1));
        assert_eq!((seen, store.failure()), (1, None));
        store.write_group(&group(2)).unwrap();
        assert_eq!(store.trim(1, 1).unwrap(), 2);
    }
}
