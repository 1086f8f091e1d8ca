//! A copy of an index that is in use.

use std::path::Path;
use std::sync::mpsc;

use crate::error::{Error, Result};
use crate::index::store::AcknowledgedMark;
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
    /// Writes a copy of one moment into a directory that is not there yet: everything that was acknowledged before
    /// this call is in it. It is opened to see that it can be. Others go on meanwhile.
    ///
    /// # Errors
    /// When there is such a directory, or it cannot be written.
    pub fn backup(&self, directory: &Path) -> Result<Backup> {
        if self.is_read_only {
            return Err(self.read_only());
        }
        if directory.exists() {
            return Err(Error::Usage(format!("{}: is there already", directory.display())));
        }
        let Ok(_copying) = self.copying.try_lock() else {
            return Err(Error::Usage("a copy of this index is being made already".to_owned()));
        };
        let (tell, told) = mpsc::sync_channel(1);
        // Nobody waits for the answer if this thread is gone.
        self.send(SequencerJob::Snapshot { done: Box::new(move |moment| drop(tell.send(moment))) })?;
        let (moment, snapshot) = told.recv().map_err(|_| self.shared.closed())??;
        let parent = directory.parent().unwrap_or(Path::new("."));
        let mut name = directory.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let aside = parent.join(name);
        let copied = (|| {
            remove_unfinished(parent, directory)?;
            std::fs::create_dir_all(&aside).map_err(Error::io(&aside, "create"))?;
            let pages = snapshot.copy_to(&aside, moment.covered())?;
            moment.copy_to(&aside)?;
            let copy = Index::open(&aside, OpenOptions::default())?;
            let rows = copy.reader().len().0;
            // Over the one of an index that was ahead: it is put back to this moment.
            AcknowledgedMark::open(&aside)?.write(copy.last_change());
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
fn remove_unfinished(parent: &Path, directory: &Path) -> Result<()> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.rsplit_once('-').map_or(&*name, |(stem, _)| stem);
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        let is_part = other
            .strip_suffix(".part")
            .is_some_and(|other| other.rsplit_once('-').map_or(other, |(stem, _)| stem) == stem);
        if is_part {
            std::fs::remove_dir_all(entry.path()).map_err(Error::io(&entry.path(), "remove"))?;
        }
    }
    Ok(())
}
