//! An index as it was at one moment, for a copy of it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::index::live::Index;
use crate::index::live::frames::write_frames;
use crate::index::live::manifest::Manifest;
use crate::index::live::state::IndexState;

/// Segments in files, and the manifest that lists them, of one moment; the files stay as long as this is held.
pub(crate) struct IndexSnapshot {
    state: Arc<IndexState>,
    manifest: Manifest,
}

impl IndexSnapshot {
    /// The number of the last change in segments.
    pub(crate) fn covered(&self) -> u64 {
        self.state.store.covered()
    }

    /// Makes the same index in another directory, which exists and is empty. Files are linked where that is possible:
    /// they never change.
    pub(crate) fn copy_to(&self, directory: &Path) -> Result<()> {
        for (segment, name) in
            self.state.segments.iter().filter_map(|segment| segment.file_name().map(|name| (segment, name)))
        {
            link_or_copy(segment.file().path(), &directory.join(name))?;
        }
        for table in &self.state.bands {
            link_or_copy(table.file().path(), &directory.join(table.file_name()))?;
        }
        write_frames(directory, &self.manifest.config)?;
        self.manifest.write(directory)
    }
}

/// Files never change, so that two names can have one.
fn link_or_copy(from: &Path, to: &Path) -> Result<()> {
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).map_err(Error::io(to, "write"))?;
        File::open(to).and_then(|file| file.sync_all()).map_err(Error::io(to, "write"))?;
    }
    Ok(())
}

impl Index {
    /// What is in files now.
    pub(crate) fn snapshot(&self) -> Result<IndexSnapshot> {
        let _writing = self.write_lock()?;
        let state = self.state.load_full();
        let manifest = self.manifest(&state);
        Ok(IndexSnapshot { state, manifest })
    }
}
