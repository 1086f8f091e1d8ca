//! A copy of an index that is in use.

use std::path::Path;

use crate::error::{Error, Result};
use crate::index::store::{AcknowledgedMark, Totals};
use crate::index::{Index, OpenOptions, sync_directory};
use crate::online::Online;
use crate::online::sequencer::SequencerJob;

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Rows of the index.
    pub rows: u64,
    /// Pages of the store.
    pub pages: u64,
}

impl Online {
    /// Writes a copy of one moment into a directory that does not exist yet: everything that was acknowledged before
    /// this call is in it. The copy is opened to see that it can be. The index stays in use meanwhile.
    ///
    /// # Errors
    /// When there is such a directory, or it cannot be written.
    pub fn backup(&self, directory: &Path) -> Result<Backup> {
        let jobs = self.jobs()?;
        let Some(name) = directory.file_name() else {
            return Err(Error::bad_input(directory, "is not a name for a new directory"));
        };
        if directory.exists() {
            return Err(Error::conflict("backups", format!("{} exists already", directory.display())));
        }
        let Ok(_copying) = self.copying.try_lock() else {
            return Err(Error::conflict("backups", "a copy of this index is being made; wait until it is done"));
        };
        let (snapshot, store_snapshot) = jobs.wait_for(|done| SequencerJob::Snapshot { done })?;
        let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut part_name = name.to_owned();
        part_name.push(".part");
        let aside = parent.join(part_name);
        let copied = (|| {
            remove_unfinished(parent, &name.to_string_lossy())?;
            std::fs::create_dir_all(&aside).map_err(Error::io(&aside, "create"))?;
            let pages = store_snapshot.copy_to(&aside, snapshot.covered())?;
            snapshot.copy_to(&aside)?;
            let copy = Index::open(&aside, OpenOptions::default())?;
            let rows = copy.reader().len().0;
            // If the copy replaces an index that was ahead of it, the mark of that one must not stay.
            let totals = store_snapshot.totals()?;
            AcknowledgedMark::open(&aside)?
                .write(totals.unwrap_or(Totals { last: copy.last_change(), ..Totals::default() }));
            drop(copy);
            std::fs::rename(&aside, directory).map_err(Error::io(directory, "write"))?;
            sync_directory(parent)?;
            Ok(Backup { rows, pages })
        })();
        if copied.is_err() {
            // What is left is removed by the next attempt.
            let _ = std::fs::remove_dir_all(&aside);
        }
        copied
    }
}

/// Removes what attempts that were killed have left: directories with the same name up to the last hyphen.
fn remove_unfinished(parent: &Path, name: &str) -> Result<()> {
    let stem_of = |name: &str| name.rsplit_once('-').map_or(name, |(stem, _)| stem).to_owned();
    let stem = stem_of(name);
    // A parent that does not exist yet holds nothing.
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        if other.strip_suffix(".part").is_some_and(|other| stem_of(other) == stem) {
            std::fs::remove_dir_all(entry.path()).map_err(Error::io(&entry.path(), "remove"))?;
        }
    }
    Ok(())
}
