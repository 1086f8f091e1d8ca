//! What is kept of many pages at once, and a store that takes the place of another.

use std::path::Path;

use fjall::PersistMode;

use crate::error::{Error, Result};
use crate::index::live::manifest::sync_directory;
use crate::index::live::store::{BATCH, CACHE_BYTES, Store};
use crate::index::live::{MARK, NEW_STORE, STORE};
use crate::index::rows::StoredPage;
use crate::index::segment::ids::Id;

/// Writes what is kept of many pages.
pub(crate) struct PageWriter {
    store: Store,
    pages: Vec<(String, StoredPage)>,
}

impl PageWriter {
    pub(crate) fn new(directory: &Path, name: &str) -> Result<PageWriter> {
        let store = if name == STORE {
            Store::open(directory, CACHE_BYTES)
        } else {
            Store::open_as(directory, name, CACHE_BYTES)
        };
        Ok(PageWriter { store: store?, pages: Vec::new() })
    }

    pub(crate) fn push(&mut self, id: &Id, page: StoredPage) -> Result<()> {
        let id = id.to_string();
        // The store has no empty keys.
        if id.is_empty() {
            return Ok(());
        }
        self.pages.push((id, page));
        if self.pages.len() == BATCH { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let mut batch = self.store.database.batch();
        // Of pages with the same id the last one counts; a batch must have each once.
        self.pages.reverse();
        self.pages.sort_by(|a, b| a.0.cmp(&b.0));
        self.pages.dedup_by(|b, a| a.0 == b.0);
        for (id, page) in self.pages.drain(..) {
            batch.insert(&self.store.tables.pages, id.as_bytes(), page.encode());
        }
        batch.commit().map_err(|cause| self.store.failed(&cause))
    }

    /// All of them are on disk after this.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.write()?;
        self.store.database.persist(PersistMode::SyncAll).map_err(|cause| self.store.failed(&cause))
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
