//! What came online: changes by number, and what is known of every page.
//!
//! In: changes and pages in groups, each group written and synced as one. Out: the changes after a number, for an index
//! whose segments do not cover them yet; the page with an id. The store is fjall's; it refuses all writes once one has
//! failed, and is reopened then.

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::index::live::changes::RowChange;
use crate::index::live::manifest::sync_directory;
use crate::index::live::state::StoreState;
use crate::index::live::{Index, MARK, NEW_STORE, STORE};
use crate::index::rows::StoredPage;
use crate::index::segment::ids::Id;

const CACHE_BYTES: u64 = 64 << 20;
/// Bytes of a table in memory before it goes to a file.
const MEMTABLE_BYTES: u64 = 16 << 20;
/// Bytes that must fit on the disk before a store that failed is reopened.
const FREE_BYTES: usize = 4 << 20;
/// Changes or pages that are read or written at once.
const BATCH: usize = 4096;

/// Bytes of a change in the log.
fn encode_change(change: &RowChange) -> Vec<u8> {
    let (kind, fingerprint, id) = match change {
        RowChange::Insert(fingerprint, id) => (b'+', fingerprint, id),
        RowChange::Delete(fingerprint, id) => (b'-', fingerprint, id),
    };
    let mut bytes = vec![kind];
    bytes.extend(fingerprint.to_be_bytes());
    bytes.extend(id.to_string().as_bytes());
    bytes
}

fn decode_change(bytes: &[u8]) -> Option<RowChange> {
    let (kind, rest) = bytes.split_first()?;
    let (fingerprint, id) = rest.split_first_chunk::<8>()?;
    let (fingerprint, id) = (u64::from_be_bytes(*fingerprint), Id::from(std::str::from_utf8(id).ok()?));
    match kind {
        b'+' => Some(RowChange::Insert(fingerprint, id)),
        b'-' => Some(RowChange::Delete(fingerprint, id)),
        _ => None,
    }
}

/// What is written and synced as one.
#[derive(Debug, Default)]
pub(crate) struct ChangeGroup {
    /// The number of the first change.
    pub(crate) first: u64,
    pub(crate) changes: Vec<RowChange>,
    /// Pages by id; `None` for those that are removed.
    pub(crate) pages: Vec<(String, Option<StoredPage>)>,
}

/// The store of an index.
pub(crate) struct Store {
    directory: PathBuf,
    database: Database,
    /// Number → change.
    log: Keyspace,
    /// Id → page.
    pages: Keyspace,
    /// Held by this and by every snapshot of it.
    alive: Arc<()>,
}

/// What the store held at one moment.
pub(crate) struct StoreSnapshot {
    snapshot: Snapshot,
    log: Keyspace,
    pages: Keyspace,
    directory: PathBuf,
    /// Keeps [`Store::is_held`] true.
    _alive: Arc<()>,
}

fn failed(directory: &Path, cause: &fjall::Error) -> Error {
    let is_full = |cause: &std::io::Error| matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let path = directory.to_path_buf();
    match cause {
        fjall::Error::Io(cause) if is_full(cause) => Error::StoreFull { path },
        fjall::Error::Storage(inner)
            if std::error::Error::source(inner).and_then(|it| it.downcast_ref()).is_some_and(is_full) =>
        {
            Error::StoreFull { path }
        }
        fjall::Error::Locked => Error::IndexLocked { path },
        other => Error::Store { path, reason: format!("{other}") },
    }
}

impl Store {
    /// Opens the store of the index in `directory`; makes one if there is none.
    pub(crate) fn open(directory: &Path) -> Result<Store> {
        if !directory.join(STORE).exists() {
            // Made aside and renamed: half a store can neither be opened nor made again.
            let aside = directory.join(NEW_STORE);
            if aside.exists() {
                std::fs::remove_dir_all(&aside).map_err(Error::io(&aside, "remove"))?;
            }
            drop(Store::open_as(directory, NEW_STORE)?);
            // fjall leaves this one to the file system.
            sync_directory(&aside.join("keyspaces"))?;
            replace_store(directory)?;
        }
        Store::open_as(directory, STORE)
    }

    fn open_as(directory: &Path, name: &str) -> Result<Store> {
        let failed = |cause: fjall::Error| failed(directory, &cause);
        let database = Database::builder(directory.join(name)).cache_size(CACHE_BYTES).worker_threads(1);
        let database = database.open().map_err(failed)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        let log = database.keyspace("log", options).map_err(failed)?;
        let pages = database.keyspace("pages", options).map_err(failed)?;
        // What was read back from the journal may not have been synced by whoever was killed.
        database.persist(PersistMode::SyncAll).map_err(failed)?;
        Ok(Store { directory: directory.to_path_buf(), database, log, pages, alive: Arc::default() })
    }

    /// Fails if the disk has no space left, as far as a file of some size shows.
    pub(crate) fn check_space(directory: &Path) -> Result<()> {
        let path = directory.join("room");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![1; FREE_BYTES])?;
            file.sync_all()
        });
        // What is left of a file that did not fit must not stay.
        let removed = std::fs::remove_file(&path);
        match written.and(removed) {
            Err(cause) if matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                Err(Error::StoreFull { path: directory.to_path_buf() })
            }
            done => done.map_err(Error::io(&path, "write")),
        }
    }

    /// Writes a group and syncs it; without `sync`, it may be lost.
    pub(crate) fn write(&self, group: &ChangeGroup, sync: bool) -> Result<()> {
        let mut batch = self.database.batch().durability(sync.then_some(PersistMode::SyncData));
        for (number, change) in (group.first..).zip(&group.changes) {
            batch.insert(&self.log, number.to_be_bytes(), encode_change(change));
        }
        for (id, page) in &group.pages {
            match page {
                Some(page) => batch.insert(&self.pages, id.as_bytes(), page.encode()),
                None => batch.remove(&self.pages, id.as_bytes()),
            }
        }
        batch.commit().map_err(|cause| failed(&self.directory, &cause))
    }

    /// The page with an id.
    pub(crate) fn page(&self, id: &str) -> Result<Option<StoredPage>> {
        let found = self.pages.get(id.as_bytes()).map_err(|cause| failed(&self.directory, &cause))?;
        found.map(|bytes| StoredPage::decode(&bytes).map_err(|reason| self.corrupt(reason))).transpose()
    }

    fn corrupt(&self, reason: impl std::fmt::Display) -> Error {
        Error::corrupt(&self.directory, format!("the store: {reason}"))
    }

    /// Visits all changes after the one with the number `covered`; returns the number of the last.
    pub(crate) fn replay(
        &self,
        covered: u64,
        skip_holes: bool,
        visit: &mut dyn FnMut(&[RowChange], u64) -> Result<()>,
    ) -> Result<u64> {
        let (mut last, mut changes) = (covered, Vec::new());
        for entry in self.log.range(covered.saturating_add(1).to_be_bytes()..) {
            let (key, value) = entry.into_inner().map_err(|cause| failed(&self.directory, &cause))?;
            let number = self.number_of(&key)?;
            if number != last + 1 && !skip_holes {
                return Err(self.corrupt(format!(
                    "changes {} to {} are missing, and {number} is there: its journal has a hole; restore a backup, or use `skip_damaged` to serve what is left without writing to it",
                    last + 1,
                    number - 1
                )));
            }
            last = number;
            match decode_change(&value) {
                Some(change) => changes.push(change),
                None if skip_holes => {}
                None => return Err(self.corrupt(format!("change {number} makes no sense; restore a backup"))),
            }
            if changes.len() == BATCH {
                visit(&changes, last)?;
                changes.clear();
            }
        }
        visit(&changes, last)?;
        Ok(last)
    }

    /// Removes the changes from `first` up to `covered`, which segments cover, at most a batch; returns the first that is
    /// left. They are removed again if this is lost.
    pub(crate) fn trim(&self, first: u64, covered: u64) -> Result<u64> {
        let end = covered.saturating_add(1).min(first.saturating_add(BATCH as u64));
        if first < end {
            let mut batch = self.database.batch();
            (first..end).for_each(|number| batch.remove(&self.log, number.to_be_bytes()));
            batch.commit().map_err(|cause| failed(&self.directory, &cause))?;
        }
        Ok(end.max(first))
    }

    /// The number of the first change in the log.
    pub(crate) fn first(&self) -> Result<Option<u64>> {
        let Some(entry) = self.log.first_key_value() else { return Ok(None) };
        let key = entry.key().map_err(|cause| failed(&self.directory, &cause))?;
        self.number_of(&key).map(Some)
    }

    /// The number of a change.
    fn number_of(&self, key: &[u8]) -> Result<u64> {
        let number = key.try_into().map(u64::from_be_bytes);
        number.map_err(|_| self.corrupt("a change has no number; restore a backup"))
    }

    /// Bytes on disk; `None` where they cannot be counted.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.database.disk_space().ok()
    }

    /// What it holds now.
    pub(crate) fn snapshot(&self) -> StoreSnapshot {
        StoreSnapshot {
            snapshot: self.database.snapshot(),
            log: self.log.clone(),
            pages: self.pages.clone(),
            directory: self.directory.clone(),
            _alive: Arc::clone(&self.alive),
        }
    }

    /// Whether a snapshot keeps the database open.
    pub(crate) fn is_held(&self) -> bool {
        Arc::strong_count(&self.alive) > 1
    }
}

/// The number of the last change that was acknowledged, in a file beside the store: fjall takes a journal whose end is
/// damaged for one that ended there. The file is not synced; it may be behind, never ahead.
pub(crate) struct AcknowledgedMark(File);

impl AcknowledgedMark {
    pub(crate) fn open(directory: &Path) -> Result<AcknowledgedMark> {
        let path = directory.join(MARK);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        file.map(AcknowledgedMark).map_err(Error::io(&path, "create"))
    }

    /// The number; `None` if there is no mark that can be trusted.
    fn read(directory: &Path) -> Option<u64> {
        let bytes: [u8; 16] = std::fs::read(directory.join(MARK)).ok()?.try_into().ok()?;
        let (number, check) = bytes.split_first_chunk::<8>()?;
        (xxh3_64(number).to_le_bytes() == check).then_some(u64::from_le_bytes(*number))
    }

    /// Moves the mark; one that cannot be written stays behind.
    pub(crate) fn write(&mut self, number: u64) {
        let number = number.to_le_bytes();
        let bytes = [number, xxh3_64(&number).to_le_bytes()].concat();
        let _ = self.0.seek(SeekFrom::Start(0)).and_then(|_| self.0.write_all(&bytes));
    }
}

/// Writes what is kept of many pages.
pub(crate) struct PageWriter {
    store: Store,
    group: ChangeGroup,
}

impl PageWriter {
    pub(crate) fn new(directory: &Path, name: &str) -> Result<PageWriter> {
        let store = if name == STORE { Store::open(directory) } else { Store::open_as(directory, name) };
        Ok(PageWriter { store: store?, group: ChangeGroup::default() })
    }

    pub(crate) fn push(&mut self, id: &Id, page: StoredPage) -> Result<()> {
        let id = id.to_string();
        // The store has no empty keys.
        if id.is_empty() {
            return Ok(());
        }
        self.group.pages.push((id, Some(page)));
        if self.group.pages.len() == BATCH { self.write(false) } else { Ok(()) }
    }

    fn write(&mut self, sync: bool) -> Result<()> {
        // Of pages with the same id the last one counts; a group must have each once.
        let mut group = std::mem::take(&mut self.group);
        group.pages.reverse();
        group.pages.sort_by(|a, b| a.0.cmp(&b.0));
        group.pages.dedup_by(|b, a| a.0 == b.0);
        self.store.write(&group, sync)
    }

    /// All of them are on disk after this.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.write(true)?;
        let failed = |cause| failed(&self.store.directory, &cause);
        self.store.database.persist(PersistMode::SyncAll).map_err(failed)
    }
}

/// Puts the store of a new index in the place of the old one's.
pub(crate) fn replace_store(directory: &Path) -> Result<()> {
    let (old, new) = (directory.join(STORE), directory.join(NEW_STORE));
    let mark = directory.join(MARK);
    if mark.exists() {
        std::fs::remove_file(&mark).map_err(Error::io(&mark, "remove"))?;
    }
    if old.exists() {
        std::fs::remove_dir_all(&old).map_err(Error::io(&old, "remove"))?;
    }
    if new.exists() {
        std::fs::rename(&new, &old).map_err(Error::io(&old, "write"))?;
    }
    sync_directory(directory)
}

impl StoreSnapshot {
    /// Writes a store with the same content, without changes up to `covered`, into another directory; returns the number
    /// of pages.
    pub(crate) fn copy_to(&self, directory: &Path, covered: u64) -> Result<u64> {
        let from = |cause: fjall::Error| failed(&self.directory, &cause);
        let to = |cause: fjall::Error| failed(directory, &cause);
        let copy = Store::open(directory)?;
        let copy_table = |entries: fjall::Iter, table: &Keyspace| {
            let (mut count, mut batch) = (0, copy.database.batch());
            for entry in entries {
                let (key, value) = entry.into_inner().map_err(from)?;
                batch.insert(table, key, value);
                count += 1;
                if batch.len() == BATCH {
                    std::mem::replace(&mut batch, copy.database.batch()).commit().map_err(to)?;
                }
            }
            batch.commit().map_err(to)?;
            Ok::<u64, Error>(count)
        };
        copy_table(self.snapshot.range(&self.log, covered.saturating_add(1).to_be_bytes()..), &copy.log)?;
        let pages = copy_table(self.snapshot.iter(&self.pages), &copy.pages)?;
        copy.database.persist(PersistMode::SyncAll).map_err(to)?;
        Ok(pages)
    }
}

impl Index {
    /// Opens the store; makes one if there never was any, and fails if one is lost.
    pub(crate) fn open_store(&self, skip_damaged: bool) -> Result<Store> {
        let had_store = matches!(self.state.load().store, StoreState::Settled { .. } | StoreState::Ahead { .. });
        if had_store && !skip_damaged && !self.directory.join(STORE).exists() {
            let reason = "the store: it is gone, and with it what is known of pages; restore a backup, or use `skip_damaged` to serve the rows that are left without writing";
            return Err(Error::corrupt(&self.directory, reason));
        }
        Store::open(&self.directory)
    }

    /// Reads the changes of the store that segments do not cover into memory; returns the number of the last.
    pub(crate) fn read_store(&self, store: &Store, skip_holes: bool) -> Result<u64> {
        let last = store.replay(self.covered(), skip_holes, &mut |changes, last| self.apply_locked(changes, last))?;
        match AcknowledgedMark::read(&self.directory) {
            Some(acknowledged) if acknowledged > last && !skip_holes => Err(store.corrupt(format!(
                "changes {} to {acknowledged} were acknowledged and are not there: its journal has lost its end; restore a backup, or use `skip_damaged` to serve what is left without writing to it",
                last + 1
            ))),
            _ => Ok(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_the_same_bytes_on_every_machine_and_is_read_back() {
        let changes = [RowChange::Insert(0xab << 56, Id::from("ü")), RowChange::Delete(1, Id::from(""))];
        for (change, bytes) in changes.iter().zip([&b"+\xab\0\0\0\0\0\0\0\xc3\xbc"[..], b"-\0\0\0\0\0\0\0\x01"]) {
            assert_eq!(encode_change(change), bytes);
            assert_eq!(decode_change(bytes).as_ref(), Some(change));
        }
        assert_eq!(decode_change(b"?12345678"), None);
        assert_eq!(decode_change(b"+123"), None);
    }
}
