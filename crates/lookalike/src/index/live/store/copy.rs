//! The store as it was at one moment, for a copy of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{Keyspace, PersistMode, Readable, Snapshot};

use crate::error::{Error, Result};
use crate::index::live::store::{BATCH, CACHE_BYTES, Store, TOTALS, Tables, Totals, failed};

/// What the store held at one moment.
pub(crate) struct StoreSnapshot {
    snapshot: Snapshot,
    tables: Tables,
    directory: PathBuf,
    /// Keeps [`Store::is_held`] true.
    _alive: Arc<()>,
}

impl Store {
    /// What it holds now.
    pub(crate) fn snapshot(&self) -> StoreSnapshot {
        StoreSnapshot {
            snapshot: self.database.snapshot(),
            tables: self.tables.clone(),
            directory: self.directory.clone(),
            _alive: Arc::clone(&self.alive),
        }
    }
}

impl StoreSnapshot {
    /// What it had had so far; `None` if it never noted that.
    pub(crate) fn totals(&self) -> Result<Option<Totals>> {
        let found = self.snapshot.get(&self.tables.pages, TOTALS).map_err(|cause| failed(&self.directory, &cause))?;
        Ok(found.and_then(|bytes| postcard::from_bytes(&bytes).ok()))
    }

    /// Writes a store with the same content, without changes up to `covered`, into another directory; returns the number
    /// of pages.
    pub(crate) fn copy_to(&self, directory: &Path, covered: u64) -> Result<u64> {
        let from = |cause: fjall::Error| failed(&self.directory, &cause);
        let to = |cause: fjall::Error| failed(directory, &cause);
        let copy = Store::open(directory, CACHE_BYTES)?;
        let copy_table = |entries: fjall::Iter, table: &Keyspace| {
            let (mut count, mut batch) = (0, copy.database.batch());
            for entry in entries {
                let (key, value) = entry.into_inner().map_err(from)?;
                count += u64::from(key.as_ref() != TOTALS);
                batch.insert(table, key, value);
                if batch.len() == BATCH {
                    std::mem::replace(&mut batch, copy.database.batch()).commit().map_err(to)?;
                }
            }
            batch.commit().map_err(to)?;
            Ok::<u64, Error>(count)
        };
        let mut pages = 0;
        for ((name, table), (_, target)) in self.tables.all().into_iter().zip(copy.tables.all()) {
            let entries = match name {
                "log" => self.snapshot.range(table, covered.saturating_add(1).to_be_bytes()..),
                _ => self.snapshot.iter(table),
            };
            let count = copy_table(entries, target)?;
            pages = if name == "pages" { count } else { pages };
        }
        copy.database.persist(PersistMode::SyncAll).map_err(to)?;
        Ok(pages)
    }
}
