//! A copy of an index that is in use.

use std::path::Path;

use crate::error::{Error, Result};
use crate::index::store::{AcknowledgedMark, Totals};
use crate::index::{BackupList, Index, OpenOptions, belongs_to_index, sync_directory};
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
            let rows = copy.tiers().rows;
            // If the copy replaces an index that was ahead of it, the mark of that one must not stay.
            let totals = store_snapshot.totals()?;
            AcknowledgedMark::open(&aside)?
                .write(totals.unwrap_or(Totals { last: copy.last_change(), ..Totals::default() }));
            drop(copy);
            // Written last: what has no list is not a whole backup.
            BackupList::write(&aside, pages)?;
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

impl Backup {
    /// All that is wrong with the backup in `directory`.
    ///
    /// # Errors
    /// When it is not a backup, or cannot be read.
    pub fn verify(directory: &Path) -> Result<Vec<String>> {
        Backup::list(directory)?.verify(directory)
    }

    fn list(directory: &Path) -> Result<BackupList> {
        BackupList::read(directory)?.ok_or_else(|| {
            Error::bad_input(directory, "is not a complete backup: it has no backup.json, which is written last")
        })
    }

    /// Puts a backup, which is verified first, into `target`, which must not exist or be empty; an index that `replace`
    /// says goes only when all of the backup is there. Collections beside it stay.
    ///
    /// # Errors
    /// When the backup is damaged, or the target holds an index or cannot be written.
    pub fn restore(directory: &Path, target: &Path, replace: bool) -> Result<Backup> {
        let list = Backup::list(directory)?;
        if let Some(wrong) = list.verify(directory)?.into_iter().next() {
            return Err(Error::corrupt(directory, format!("nothing was restored: {wrong}")));
        }
        let there = |name: &str| target.join(name).exists();
        if there("manifest.json") && !replace {
            let reason = "holds an index already; choose another directory, or use `force` to replace it";
            return Err(Error::bad_input(target, reason));
        }
        std::fs::create_dir_all(target).map_err(Error::io(target, "create"))?;
        // Held until all is in its place, so that nobody opens a half.
        let held = if there("manifest.json") {
            Some(Index::open_to_serve(target, OpenOptions { skip_damaged: true, ..OpenOptions::default() })?)
        } else {
            None
        };
        let aside = target.join("building").join("restored");
        if aside.exists() {
            std::fs::remove_dir_all(&aside).map_err(Error::io(&aside, "remove"))?;
        }
        std::fs::create_dir_all(&aside).map_err(Error::io(&aside, "create"))?;
        list.copy(directory, &aside)?;
        if let Some(wrong) = list.verify(&aside)?.into_iter().next() {
            return Err(Error::corrupt(
                target,
                format!("nothing was restored, the copy is not what it should be: {wrong}"),
            ));
        }
        for entry in std::fs::read_dir(target).map_err(Error::io(target, "read"))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !belongs_to_index(&name) || ["collections", "building", "lock"].contains(&name.as_str()) {
                continue;
            }
            let path = entry.path();
            let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.map_err(Error::io(&path, "remove"))?;
        }
        let mut entries: Vec<_> = std::fs::read_dir(&aside).map_err(Error::io(&aside, "read"))?.flatten().collect();
        // The manifest comes last: a directory without one is not an index.
        entries.sort_by_key(|entry| entry.file_name() == "manifest.json");
        for entry in entries {
            let path = target.join(entry.file_name());
            std::fs::rename(entry.path(), &path).map_err(Error::io(&path, "write"))?;
        }
        std::fs::remove_dir_all(target.join("building")).map_err(Error::io(target, "remove"))?;
        sync_directory(target)?;
        drop(held);
        let index = Index::open(target, OpenOptions { check: true, ..OpenOptions::default() })?;
        Ok(Backup { rows: index.tiers().rows, pages: list.pages })
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
