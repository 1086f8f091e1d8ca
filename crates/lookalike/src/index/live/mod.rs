//! An index that changes: a directory with a manifest, segments, and the store of what came online.
//!
//! In: rows to insert and to delete. Out: an [`IndexState`] after each change, for readers. Writers make the next state
//! and publish it by exchanging a pointer, so that readers never wait; what must survive a crash is on disk before it is
//! published (`Index::commit`).

mod background;
pub(crate) mod backup_list;
mod bulk;
mod changes;
mod frames;
pub(crate) mod manifest;
mod merge;
mod merge_bands;
mod open;
pub(crate) mod place;
mod snapshot;
pub(crate) mod state;
pub(crate) mod store;

pub use background::{MergeStats, MergeThread};
pub use bulk::BulkInsert;
pub use changes::RowChange;
pub use manifest::{FingerprintOrigin, IndexConfig};
pub use open::OpenOptions;
pub(crate) use snapshot::IndexSnapshot;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::error::{Error, Result};
use crate::index::bands::BandTail;
use manifest::Manifest;
use state::{IndexState, StoreState};
use store::Totals;

/// Where segments are made.
pub(crate) const BUILDING: &str = "building";
const LOCK: &str = "lock";
/// The number of the last change that was acknowledged.
const MARK: &str = "acknowledged";
/// What was stored online.
const STORE: &str = "store";
/// The same of an index that is to replace another.
const NEW_STORE: &str = "store.new";
/// What is shipped to others, or comes from them.
pub(crate) const SHIPPING: &str = "shipping";
/// Other indexes of the same server.
pub const COLLECTIONS: &str = "collections";

/// An index.
///
/// ```
/// use lookalike::index::{Id, IdKind, Index, IndexConfig};
///
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// let index = Index::create(directory, IndexConfig::given(IdKind::Text, 3), 1 << 30, false)?;
/// index.insert(&[(0x0123_4567_89ab_cdef, Id::from("page-1"))])?;
/// let near = index.reader().query(0x0123_4567_89ab_cdee, 3, 10)?;
/// assert_eq!((near.count, near.matches[0].distance), (1, 1));
/// index.flush()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Index {
    directory: PathBuf,
    config: IndexConfig,
    state: ArcSwap<IndexState>,
    /// Held while the next state is made, not while one is read.
    writing: Mutex<()>,
    /// Held while segments are merged.
    merging: Mutex<()>,
    numbers: Numbers,
    memory_bytes: u64,
    /// Rows in memory from which they are written to a file.
    memory_rows: u64,
    access: Access,
    /// Band keys that have no file yet; changed with the lock on writing.
    band_tail: Mutex<BandTail>,
    /// What the store had when it was closed, if it was.
    settled: Mutex<Option<Totals>>,
}

/// Numbers that are given out once each, to whoever comes next.
struct Numbers {
    segment: AtomicU64,
    /// For a row without an id.
    row: AtomicU64,
    /// For a directory to build in.
    build: AtomicU64,
}

/// What this process may do with the directory; a file is the lock that keeps other writers out.
enum Access {
    /// Read segments, beside any writer.
    ReadSegments,
    /// Read segments and the store, which nobody else may meanwhile.
    ReadStore { _lock: File },
    /// Write.
    Write { _lock: File },
}

impl Index {
    /// What the index is for.
    #[must_use]
    pub fn config(&self) -> &IndexConfig {
        &self.config
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A number that changes when the rows of the index do.
    #[must_use]
    pub fn version(&self) -> u64 {
        let state = self.state.load();
        let mut names = format!("{:016x}", self.config.hash());
        for segment in &state.segments {
            names.push_str(&format!(" {} {} {}", segment.meta.rows, segment.meta.fingerprints, segment.deleted.len()));
        }
        names.push_str(&format!(" {}", state.tail.rows.len()));
        for table in &state.bands {
            names.push_str(&format!(" b{} {}", table.meta.rows, table.meta.gone));
        }
        xxhash_rust::xxh3::xxh3_64(names.as_bytes())
    }

    /// The number that a row without an id gets: above all numbers that rows have had.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.numbers.row.load(Ordering::Relaxed)
    }

    /// Segments that were left out because they are damaged.
    #[must_use]
    pub fn damaged(&self) -> Vec<String> {
        self.state.load().damaged.clone()
    }

    /// The number of the last change that is in files, with all before it.
    #[must_use]
    pub fn covered(&self) -> u64 {
        self.state.load().store.covered()
    }

    /// The number of the last change.
    pub(crate) fn last_change(&self) -> u64 {
        let state = self.state.load();
        let bands = self.band_tail.lock().unwrap_or_else(PoisonError::into_inner).last;
        state.tail.last.max(bands).max(state.store.covered())
    }

    /// What is there now.
    pub(crate) fn state(&self) -> Arc<IndexState> {
        self.state.load_full()
    }

    /// Pages that a service has stored, as far as that was noted when it stopped, or read since.
    #[must_use]
    pub fn stored_pages(&self) -> u64 {
        self.settled_totals().map_or(0, |totals| totals.pages)
    }

    /// Band keys that came last.
    pub(crate) fn band_rows_in_memory(&self) -> u64 {
        self.band_tail.lock().unwrap_or_else(PoisonError::into_inner).rows.len() as u64
    }

    fn write_lock(&self) -> Result<MutexGuard<'_, ()>> {
        match self.access {
            Access::Write { .. } => Ok(self.writing.lock().unwrap_or_else(PoisonError::into_inner)),
            Access::ReadSegments | Access::ReadStore { .. } => Err(Error::ReadOnly {
                path: self.directory.clone(),
                reason: "the index was opened for reading".to_owned(),
            }),
        }
    }

    fn merge_lock(&self) -> MutexGuard<'_, ()> {
        self.merging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The manifest of a state.
    fn manifest(&self, state: &IndexState) -> Manifest {
        let mut manifest = Manifest::new(self.config.clone());
        manifest.set_store(state.store, self.settled_totals());
        manifest.next = self.numbers.segment.load(Ordering::Relaxed);
        manifest.next_id = self.numbers.row.load(Ordering::Relaxed);
        manifest.segments.extend(state.segments.iter().filter_map(|segment| segment.file_name()));
        manifest.bands.extend(state.bands.iter().map(|table| table.file_name()));
        manifest
    }

    /// Writes the manifest of the next state, and publishes it then. The lock on writing is held by the caller.
    fn commit(&self, mut next: IndexState) -> Result<()> {
        let is_first = next.store == StoreState::Unwritten;
        next.store = next.store.written();
        let manifest = self.manifest(&next);
        // Changes of an index that is replaced are none of this one.
        let cleared = if is_first { store::replace_store(&self.directory) } else { Ok(()) };
        cleared.and_then(|()| manifest.write(&self.directory)).inspect_err(|_| self.forget(&next))?;
        self.state.store(Arc::new(next));
        if is_first { manifest.remove_unlisted(&self.directory) } else { Ok(()) }
    }

    /// Gives up segments that no manifest lists because it could not be written.
    fn forget(&self, state: &IndexState) {
        // A manifest that cannot be read may list them.
        let Ok(manifest) = Manifest::read(&self.directory) else { return };
        for segment in &state.segments {
            if segment.file_name().is_some_and(|name| !manifest.segments.contains(&name)) {
                segment.file().remove_when_unused();
            }
        }
        for table in state.bands.iter().filter(|table| !manifest.bands.contains(&table.file_name())) {
            table.file().remove_when_unused();
        }
    }

    /// What the store had when it was closed, if it was.
    fn settled_totals(&self) -> Option<Totals> {
        *self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the store may have changes that are not in segments.
    pub(crate) fn mark_store_ahead(&self) -> Result<()> {
        let _writing = self.write_lock()?;
        let state = self.state.load();
        *self.settled.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.commit(state.with_store(state.store.ahead()))
    }

    /// All changes of the store, which has had so much, are in segments.
    pub(crate) fn mark_store_settled(&self, totals: Totals) -> Result<()> {
        let _writing = self.write_lock()?;
        let state = self.state.load();
        *self.settled.lock().unwrap_or_else(PoisonError::into_inner) = Some(totals);
        self.commit(state.with_store(state.store.settled()))
    }
}
