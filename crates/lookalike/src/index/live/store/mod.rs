//! What came online: changes by number, and what is known of every page.
//!
//! In: changes, entries and records in groups, each group written and synced as one. Out: the changes after a number, for an
//! index whose segments do not cover them yet; the page with an id, with a number, with the same words; what was learnt
//! of sites. The store is fjall's; it refuses all writes once one has failed, and is reopened then. With every group
//! its totals are written into each table, so that a table or an end of the journal that is lost is missed.

mod bulk;
mod copy;
mod group;
mod learnt;
mod mark;
mod verify;

pub(crate) use bulk::{PageWriter, replace_store};
pub(crate) use copy::StoreSnapshot;
pub(crate) use group::{ChangeGroup, Totals};
pub(crate) use mark::AcknowledgedMark;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::error::{Error, Result};
use crate::index::live::changes::RowChange;
use crate::index::live::manifest::sync_directory;
use crate::index::live::state::StoreState;
use crate::index::live::{Index, NEW_STORE, STORE};
use crate::index::rows::{FoundEntry, Record};
use group::{decode_change, encode_change};

/// What a store keeps in memory of its files, where nothing else is said.
pub(crate) const CACHE_BYTES: u64 = 64 << 20;
/// Bytes of a table in memory before it goes to a file.
const MEMTABLE_BYTES: u64 = 16 << 20;
/// Bytes of journals from which tables that lag behind are written.
const JOURNAL_BYTES: u64 = 128 << 20;
/// Bytes that must fit on the disk before a store that failed is reopened.
const FREE_BYTES: usize = 4 << 20;
/// Changes or pages that are read or written at once.
const BATCH: usize = 4096;
/// The key of the totals: no id and no number begins like this.
const TOTALS: [u8; 1] = [0xff];

/// The tables of a store.
#[derive(Clone)]
struct Tables {
    /// Number → change.
    log: Keyspace,
    /// Id → entry.
    pages: Keyspace,
    /// Number → record.
    records: Keyspace,
    /// Identity → numbers.
    copies: Keyspace,
    /// What was learnt of sites, and what from.
    learnt: Keyspace,
}

impl Tables {
    fn all(&self) -> [(&'static str, &Keyspace); 5] {
        let Tables { log, pages, records, copies, learnt } = self;
        [("log", log), ("pages", pages), ("records", records), ("copies", copies), ("learnt", learnt)]
    }
}

/// The store of an index.
pub(crate) struct Store {
    directory: PathBuf,
    database: Database,
    tables: Tables,
    /// Held by this and by every snapshot of it.
    alive: Arc<()>,
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
        fjall::Error::JournalRecovery(cause) => Error::corrupt(
            directory,
            format!(
                "the store: its journal is damaged ({cause:?}), and what was stored last cannot be read; restore a backup"
            ),
        ),
        other => Error::Store { path, reason: format!("{other}") },
    }
}

impl Store {
    /// Opens the store of the index in `directory`; makes one if there is none.
    pub(crate) fn open(directory: &Path, cache_bytes: u64) -> Result<Store> {
        if !directory.join(STORE).exists() {
            // Made aside and renamed: half a store can neither be opened nor made again.
            let aside = directory.join(NEW_STORE);
            if aside.exists() {
                std::fs::remove_dir_all(&aside).map_err(Error::io(&aside, "remove"))?;
            }
            drop(Store::open_as(directory, NEW_STORE, cache_bytes)?);
            // fjall leaves this one to the file system.
            sync_directory(&aside.join("keyspaces"))?;
            replace_store(directory)?;
        }
        Store::open_as(directory, STORE, cache_bytes)
    }

    fn open_as(directory: &Path, name: &str, cache_bytes: u64) -> Result<Store> {
        let failed = |cause: fjall::Error| failed(directory, &cause);
        let database = Database::builder(directory.join(name)).cache_size(cache_bytes).worker_threads(1);
        // Journals stay until every table has written what they hold, also those that change little.
        let database = database.max_journaling_size(JOURNAL_BYTES);
        let database = database.open().map_err(failed)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        let table = |name: &str| database.keyspace(name, options).map_err(failed);
        let tables = Tables {
            log: table("log")?,
            pages: table("pages")?,
            records: table("records")?,
            copies: table("copies")?,
            learnt: table("learnt")?,
        };
        // What was read back from the journal may not have been synced by whoever was killed.
        database.persist(PersistMode::SyncAll).map_err(failed)?;
        Ok(Store { directory: directory.to_path_buf(), database, tables, alive: Arc::default() })
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
        let Tables { log, pages, records, copies, learnt } = &self.tables;
        let mut batch = self.database.batch().durability(sync.then_some(PersistMode::SyncData));
        for (number, change) in (group.first..).zip(&group.changes) {
            batch.insert(log, number.to_be_bytes(), encode_change(change));
        }
        for (id, page) in &group.pages {
            match page {
                Some(page) => batch.insert(pages, id.as_bytes(), page.encode()),
                None => batch.remove(pages, id.as_bytes()),
            }
        }
        for (number, record) in &group.records {
            match record {
                Some(record) => batch.insert(records, number.to_be_bytes(), record.encode()),
                None => batch.remove(records, number.to_be_bytes()),
            }
        }
        for (identity, numbers) in &group.copies {
            if numbers.is_empty() {
                batch.remove(copies, identity.to_be_bytes());
            } else {
                let numbers = postcard::to_stdvec(numbers).expect("writing to memory does not fail");
                batch.insert(copies, identity.to_be_bytes(), numbers);
            }
        }
        for &(host, number, is_there) in &group.hosts {
            let key = learnt::host_key(host, number);
            if is_there { batch.insert(learnt, key, []) } else { batch.remove(learnt, key) }
        }
        for &(time, number, is_there) in &group.expiries {
            let key = learnt::expiry_key(time, number);
            if is_there { batch.insert(learnt, key, []) } else { batch.remove(learnt, key) }
        }
        for (host, frames) in &group.frames {
            batch.insert(learnt, learnt::frames_key(*host), frames.as_slice());
        }
        let totals = postcard::to_stdvec(&group.totals).expect("writing to memory does not fail");
        for (_, table) in self.tables.all() {
            batch.insert(table, TOTALS, totals.as_slice());
        }
        batch.commit().map_err(|cause| self.failed(&cause))
    }

    fn failed(&self, cause: &fjall::Error) -> Error {
        failed(&self.directory, cause)
    }

    fn get(&self, table: &Keyspace, key: &[u8]) -> Result<Option<fjall::UserValue>> {
        table.get(key).map_err(|cause| self.failed(&cause))
    }

    /// What is known by an id.
    pub(crate) fn entry(&self, id: &str) -> Result<Option<FoundEntry>> {
        let found = self.get(&self.tables.pages, id.as_bytes())?;
        found.map(|bytes| FoundEntry::decode(id, &bytes).map_err(|reason| self.corrupt(reason))).transpose()
    }

    /// The record with a number.
    pub(crate) fn record(&self, number: u32) -> Result<Option<Record>> {
        let found = self.get(&self.tables.records, &number.to_be_bytes())?;
        found.map(|bytes| Record::decode(&bytes).map_err(|reason| self.corrupt(reason))).transpose()
    }

    /// The numbers of pages with an identity: all, or the first of a crowd.
    pub(crate) fn copies(&self, identity: u128) -> Result<Vec<u32>> {
        let found = self.get(&self.tables.copies, &identity.to_be_bytes())?;
        let numbers = found.map(|bytes| postcard::from_bytes(&bytes)).transpose();
        numbers
            .map(Option::unwrap_or_default)
            .map_err(|cause| self.corrupt(format!("a list of copies makes no sense: {cause}")))
    }

    /// Visits pages by their ids, in the order of their bytes, from the first with `prefix` after `after`, until `visit`
    /// has enough.
    pub(crate) fn for_each_entry(
        &self,
        prefix: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(String, FoundEntry) -> Result<bool>,
    ) -> Result<()> {
        use std::ops::Bound;
        let from = match after.filter(|after| *after >= prefix) {
            Some(after) => Bound::Excluded(after.as_bytes().to_vec()),
            None => Bound::Included(prefix.as_bytes().to_vec()),
        };
        for entry in self.tables.pages.range::<Vec<u8>, _>((from, Bound::Excluded(TOTALS.to_vec()))) {
            let (key, value) = entry.into_inner().map_err(|cause| self.failed(&cause))?;
            let id = std::str::from_utf8(&key).map_err(|_| self.corrupt("a page has an id that is not text"))?;
            if !id.starts_with(prefix) {
                return Ok(());
            }
            let found = FoundEntry::decode(id, &value).map_err(|reason| self.corrupt(reason))?;
            if !visit(id.to_owned(), found)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Visits the records with numbers from `from` on, until `visit` has enough.
    pub(crate) fn for_each_record(&self, from: u32, visit: &mut dyn FnMut(u32, Record) -> Result<bool>) -> Result<()> {
        for entry in self.tables.records.range(from.to_be_bytes().to_vec()..TOTALS.to_vec()) {
            let (key, value) = entry.into_inner().map_err(|cause| self.failed(&cause))?;
            let number = key.as_ref().try_into().map(u32::from_be_bytes);
            let number = number.map_err(|_| self.corrupt("a record has no number"))?;
            let record = Record::decode(&value).map_err(|reason| self.corrupt(reason))?;
            if !visit(number, record)? {
                return Ok(());
            }
        }
        Ok(())
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
        for entry in self.tables.log.range(covered.saturating_add(1).to_be_bytes().to_vec()..TOTALS.to_vec()) {
            let (key, value) = entry.into_inner().map_err(|cause| self.failed(&cause))?;
            let number = self.number_of(&key)?;
            if number != last + 1 {
                if !skip_holes {
                    return Err(self.corrupt(format!(
                        "changes {} to {} are missing, and {number} is there: its journal has a hole; restore a backup, or use `skip_damaged` to serve what is left without writing to it",
                        last + 1,
                        number - 1
                    )));
                }
                // What follows a hole has other numbers.
                visit(&changes, last)?;
                changes.clear();
            }
            last = number;
            match decode_change(&value) {
                Some(change) => changes.push(change),
                None if skip_holes => {
                    visit(&changes, last - 1)?;
                    changes.clear();
                }
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
            (first..end).for_each(|number| batch.remove_weak(&self.tables.log, number.to_be_bytes()));
            batch.commit().map_err(|cause| self.failed(&cause))?;
        }
        Ok(end.max(first))
    }

    /// The number of the first change in the log.
    pub(crate) fn first(&self) -> Result<Option<u64>> {
        let Some(entry) = self.tables.log.first_key_value() else { return Ok(None) };
        let key = entry.key().map_err(|cause| self.failed(&cause))?;
        if key.as_ref() == TOTALS { Ok(None) } else { self.number_of(&key).map(Some) }
    }

    /// The number of a change.
    fn number_of(&self, key: &[u8]) -> Result<u64> {
        let number = key.try_into().map(u64::from_be_bytes);
        number.map_err(|_| self.corrupt("a change has no number; restore a backup"))
    }

    /// What it has had so far; `None` if it never noted that, as 0.1.0 did not.
    ///
    /// # Errors
    /// When a table does not have what the others have.
    pub(crate) fn totals(&self) -> Result<Option<Totals>> {
        let mut found = Vec::new();
        for (name, table) in self.tables.all() {
            let totals = self.get(table, &TOTALS)?.map(|bytes| postcard::from_bytes::<Totals>(&bytes)).transpose();
            found.push((name, totals.map_err(|cause| self.corrupt(format!("its totals make no sense: {cause}")))?));
        }
        let most = found.iter().filter_map(|(_, totals)| *totals).max_by_key(|totals| totals.groups);
        let Some(most) = most else { return Ok(None) };
        for (name, totals) in found {
            match totals {
                Some(totals) if totals == most => {}
                Some(totals) => {
                    return Err(self.corrupt(format!(
                        "its table {name} ends after group {} of {}: a part of it is lost; restore a backup, or use `skip_damaged` to serve what is left without writing to it",
                        totals.groups, most.groups
                    )));
                }
                None => {
                    return Err(self.corrupt(format!(
                        "its table {name} is gone, and with it what is known of {} pages; restore a backup, or use `skip_damaged` to serve what is left without writing to it",
                        most.pages
                    )));
                }
            }
        }
        Ok(Some(most))
    }

    /// Bytes on disk; `None` where they cannot be counted.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.database.disk_space().ok()
    }

    /// Whether a snapshot keeps the database open.
    pub(crate) fn is_held(&self) -> bool {
        Arc::strong_count(&self.alive) > 1
    }
}

impl Index {
    /// Opens the store; makes one if there never was any, and fails if one is lost.
    pub(crate) fn open_store(&self, skip_damaged: bool, cache_bytes: u64) -> Result<Store> {
        let had_store = matches!(self.state.load().store, StoreState::Settled { .. } | StoreState::Ahead { .. });
        if had_store && !skip_damaged && !self.directory.join(STORE).exists() {
            let reason = "the store: it is gone, and with it what is known of pages; restore a backup, or use `skip_damaged` to serve the rows that are left without writing";
            return Err(Error::corrupt(&self.directory, reason));
        }
        Store::open(&self.directory, if cache_bytes > 0 { cache_bytes } else { CACHE_BYTES })
    }

    /// Reads the changes of the store that segments do not cover into memory; returns what it has had so far.
    pub(crate) fn read_store(&self, store: &Store, skip_holes: bool) -> Result<Totals> {
        let last = store.replay(self.covered(), skip_holes, &mut |changes, last| self.apply_locked(changes, last))?;
        let totals = match store.totals() {
            Err(_) if skip_holes => None,
            totals => totals?,
        };
        let has = totals.unwrap_or(Totals { last, ..Totals::default() });
        if !skip_holes {
            self.check_totals(store, last, totals)?;
        }
        let pages = match totals {
            Some(totals) => totals.pages,
            // 0.1.0 and bulk builds do not count them.
            None => store.tables.pages.len().map_err(|cause| store.failed(&cause))? as u64,
        };
        let totals = Totals { last, pages, ..has };
        *self.settled.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(totals);
        Ok(totals)
    }

    /// Fails if a store has less than it must have.
    fn check_totals(&self, store: &Store, last: u64, totals: Option<Totals>) -> Result<()> {
        const REMEDY: &str = "restore a backup, or use `skip_damaged` to serve what is left without writing to it";
        let settled = self.settled_totals();
        let has = totals.unwrap_or(Totals { last, ..Totals::default() });
        if let Some(totals) = totals.filter(|totals| totals.last > last) {
            return Err(store.corrupt(format!(
                "changes {} to {} are missing from its log; {REMEDY}",
                last + 1,
                totals.last
            )));
        }
        let acknowledged = AcknowledgedMark::read(&self.directory);
        for must in settled.into_iter().chain(acknowledged) {
            if must.last > has.last.max(last) {
                let from = has.last.max(last) + 1;
                return Err(store.corrupt(format!(
                    "changes {from} to {} were acknowledged and are not there: its journal has lost its end; {REMEDY}",
                    must.last
                )));
            }
            if must.groups > has.groups {
                return Err(store.corrupt(format!(
                    "{} groups of changes were acknowledged and are not there ({} pages were stored, and {} are known of): its journal has lost its end; {REMEDY}",
                    must.groups - has.groups, must.pages, has.pages
                )));
            }
        }
        Ok(())
    }
}
