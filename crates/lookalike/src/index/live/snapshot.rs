//! An index as it was at one moment, for a copy of it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::index::live::changes::is_in_file;
use crate::index::live::manifest::Manifest;
use crate::index::{Index, IndexState};

/// What an index was at one moment.
pub(crate) struct IndexSnapshot {
    state: Arc<IndexState>,
    manifest: Manifest,
}

impl IndexSnapshot {
    /// The number of the last change in segments.
    pub(crate) fn covered(&self) -> u64 {
        self.manifest.store.map_or(0, |store| store.covered)
    }

    /// Makes the same index in another directory, which is there and empty; gives its rows. Files are linked where
    /// that can be done: they never change.
    pub(crate) fn copy_to(&self, directory: &Path) -> Result<u64> {
        let mut rows = 0;
        for segment in self.state.segments.iter().filter(|segment| is_in_file(segment)) {
            let from = segment.file().path();
            let to = directory.join(from.file_name().unwrap_or_default());
            if std::fs::hard_link(from, &to).is_err() {
                std::fs::copy(from, &to).map_err(Error::io(&to, "write"))?;
                File::open(&to).and_then(|file| file.sync_all()).map_err(Error::io(&to, "write"))?;
            }
            rows += segment.meta.rows;
        }
        self.manifest.write(directory)?;
        Ok(rows)
    }
}

impl Index {
    /// Segments in files, and the manifest that lists them, of one moment; the files stay as long as the segments are
    /// held.
    pub(crate) fn moment(&self) -> Result<IndexSnapshot> {
        let _writing = self.write_lock()?;
        let state = self.state.load_full();
        let manifest = self.manifest(&state.segments, self.covered());
        Ok(IndexSnapshot { state, manifest })
    }
}
