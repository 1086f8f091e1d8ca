//! An index that cannot be written to, as on a read-only file system.
//!
//! The database of the store writes when it is opened, so that a copy of the store is opened, in a directory for temporary
//! files; segments are used where they are. The copy takes the time and the space of the store, and is removed at the end.

use std::fs::{File, TryLockError};
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::error::{Error, Result};
use crate::index::place;
use crate::online::{Online, OnlineOptions};

impl Online {
    /// Opens the index in `directory` without writing to it; nothing is stored.
    ///
    /// # Errors
    /// When there is none, it is damaged, another has it open for writing, or there is no room for a copy of its store.
    pub fn open_read_only(directory: &Path, options: OnlineOptions) -> Result<Online> {
        let directory = &place::place(directory)?;
        let lock = match File::open(directory.join("lock")) {
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => Some(file),
                Err(TryLockError::WouldBlock) => return Err(Error::IndexLocked { path: directory.to_path_buf() }),
                // Some file systems have no locks; nobody can write to those that are read-only.
                Err(TryLockError::Error(_)) => None,
            },
            Err(_) => None,
        };
        if !directory.join("manifest.json").exists() {
            return Err(Error::bad_input(directory, "holds no index; check the path"));
        }
        let aside = tempfile::Builder::new().prefix("lookalike-").tempdir();
        let aside = aside.map_err(Error::io(&std::env::temp_dir(), "create a directory in"))?;
        let entries = std::fs::read_dir(directory).map_err(Error::io(directory, "read"))?;
        let from = std::path::absolute(directory).map_err(Error::io(directory, "read"))?;
        for entry in entries {
            let name = entry.map_err(Error::io(directory, "read"))?.file_name();
            let (path, target) = (from.join(&name), aside.path().join(&name));
            let name = name.to_string_lossy();
            if name.ends_with(".seg") || name.starts_with("frames-") {
                symlink(&path, &target).map_err(Error::io(&target, "create"))?;
            } else if ["manifest.json", "acknowledged", "backup.json"].contains(&&*name) {
                std::fs::copy(&path, &target).map_err(Error::io(&target, "write"))?;
            } else if name == "store" {
                copy_all(&path, &target)?;
            }
        }
        let mut online = Online::open(aside.path(), options)?;
        online.served.replica.refuse(Some("the service was started with `read_only`".to_owned()));
        online.aside = Some((aside, lock));
        Ok(online)
    }
}

/// Copies a directory with all that is in it.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.map_err(|cause| Error::io(from, "read")(cause.into()))?;
        let path = entry.path().strip_prefix(from).map_err(|_| Error::internal("a file outside of its directory"))?;
        let target = to.join(path);
        let done = if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target)
        } else {
            // The bytes alone: what cannot be written there must be writable here.
            File::open(entry.path())
                .and_then(|mut file| std::io::copy(&mut file, &mut File::create(&target)?).map(drop))
        };
        done.map_err(Error::io(&target, "write"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BandConfig;
    use crate::index::IndexConfig;
    use crate::online::{PageVerdict, StorePolicy};
    use crate::page::RawPage;

    #[test]
    fn an_index_is_served_without_a_change_to_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        Online::create(directory, IndexConfig::bands(BandConfig::default(), 0.7)).unwrap();
        let online = Online::open(directory, OnlineOptions::default()).unwrap();
        let mut page = RawPage::text("The ferry had left the harbour before the storm reached the town. ".repeat(5));
        page.id = Some("ferry".into());
        online.insert(&page, StorePolicy::IfNew).unwrap();
        assert!(Online::open_read_only(directory, OnlineOptions::default()).is_err(), "it is being written to");
        online.close().unwrap();
        let files = || {
            let entries = walkdir::WalkDir::new(directory).sort_by_file_name().into_iter().flatten();
            let files = entries.filter(|entry| entry.file_type().is_file());
            files.map(|file| (file.path().to_path_buf(), std::fs::read(file.path()).unwrap())).collect::<Vec<_>>()
        };
        let before = files();
        let first = Online::open_read_only(directory, OnlineOptions::default()).unwrap();
        let second = Online::open_read_only(directory, OnlineOptions::default()).unwrap();
        for online in [&first, &second] {
            assert_eq!(online.check(&page).unwrap().verdict, PageVerdict::Exact);
            assert!(online.insert(&page, StorePolicy::Always).unwrap_err().to_string().contains("`read_only`"));
        }
        assert!(Online::open(directory, OnlineOptions::default()).is_err(), "it is being read");
        first.close().unwrap();
        drop(second);
        assert_eq!(files(), before);
    }
}
