//! The list of a backup's files, by which damage to it is found before it is used: `backup.json`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::index::live::LOCK;
use crate::index::live::manifest::sync_directory;

/// The list, written when all that it names is there.
pub(crate) const BACKUP: &str = "backup.json";
const FORMAT: u32 = 1;
const REMEDY: &str = "use another backup";

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BackupFile {
    /// Relative to the backup, with slashes.
    path: String,
    bytes: u64,
    /// xxh3 of 128 bits, 32 hex digits.
    xxh3: String,
}

/// What a backup consists of.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BackupList {
    format: u32,
    /// Pages that are stored in it.
    pub(crate) pages: u64,
    files: Vec<BackupFile>,
}

fn hash_of(path: &Path) -> Result<(u64, String)> {
    let mut file = File::open(path).map_err(Error::io(path, "open"))?;
    let (mut hash, mut buffer, mut bytes) = (Xxh3::new(), vec![0; 1 << 18], 0);
    loop {
        let read = file.read(&mut buffer).map_err(Error::io(path, "read"))?;
        if read == 0 {
            return Ok((bytes, format!("{:032x}", hash.digest128())));
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
    }
}

/// All files below a directory, relative to it, but for the list itself and the lock.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        let place = directory.join(&folder);
        for entry in std::fs::read_dir(&place).map_err(Error::io(&place, "read"))? {
            let entry = entry.map_err(Error::io(&place, "read"))?;
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path != Path::new(BACKUP) && path != Path::new(LOCK) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

impl BackupList {
    /// Lists and syncs what is in `directory`; it is a backup after this.
    pub(crate) fn write(directory: &Path, pages: u64) -> Result<BackupList> {
        let mut files = Vec::new();
        for path in files_below(directory)? {
            let place = directory.join(&path);
            File::open(&place).and_then(|file| file.sync_all()).map_err(Error::io(&place, "sync"))?;
            let (bytes, xxh3) = hash_of(&place)?;
            files.push(BackupFile { path: path.to_string_lossy().into_owned(), bytes, xxh3 });
        }
        let list = BackupList { format: FORMAT, pages, files };
        let text = serde_json::to_vec_pretty(&list).map_err(|cause| Error::internal(format!("a list of files: {cause}")))?;
        let path = directory.join(BACKUP);
        let mut file = File::create(&path).map_err(Error::io(&path, "create"))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(Error::io(&path, "write"))?;
        sync_directory(directory)?;
        Ok(list)
    }

    /// The list of the backup in `directory`; nothing if it is not one.
    pub(crate) fn read(directory: &Path) -> Result<Option<BackupList>> {
        let path = directory.join(BACKUP);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(Error::io(&path, "read")(cause)),
        };
        let list: BackupList = serde_json::from_slice(&bytes)
            .map_err(|cause| Error::corrupt(&path, format!("is damaged ({cause}); {REMEDY}")))?;
        if list.format != FORMAT {
            let reason = format!("has the format {}, and this program reads {FORMAT}; use a newer version of lookalike", list.format);
            return Err(Error::corrupt(&path, reason));
        }
        if let Some(file) = list.files.iter().find(|file| Path::new(&file.path).is_absolute() || file.path.contains("..")) {
            return Err(Error::corrupt(&path, format!("lists '{}', which is not in the backup; {REMEDY}", file.path)));
        }
        Ok(Some(list))
    }

    /// All that is missing, or is not what it was.
    pub(crate) fn verify(&self, directory: &Path) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for file in &self.files {
            let path = directory.join(&file.path);
            if !path.exists() {
                wrong.push(format!("{}: is missing from the backup; {REMEDY}", path.display()));
                continue;
            }
            let length = path.metadata().map_err(Error::io(&path, "read"))?.len();
            if length != file.bytes {
                let reason = format!("has {length} bytes, and {} when the backup was made", file.bytes);
                wrong.push(format!("{}: {reason}; {REMEDY}", path.display()));
            } else if hash_of(&path)?.1 != file.xxh3 {
                wrong.push(format!("{}: is not what it was when the backup was made; {REMEDY}", path.display()));
            }
        }
        Ok(wrong)
    }

    /// Copies the files of a backup, which was verified, to another directory, which exists.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        for file in &self.files {
            let target = to.join(&file.path);
            let parent = target.parent().unwrap_or(to);
            std::fs::create_dir_all(parent).map_err(Error::io(parent, "create"))?;
            std::fs::copy(from.join(&file.path), &target).map_err(Error::io(&target, "write"))?;
            File::open(&target).and_then(|file| file.sync_all()).map_err(Error::io(&target, "sync"))?;
        }
        sync_directory(to)
    }
}

/// Fails if the index in `directory` was put there from a backup that is damaged. Once it is opened for writing, the list is
/// of no more use.
pub(super) fn check_restored(directory: &Path, is_written: bool) -> Result<()> {
    let Some(list) = BackupList::read(directory)? else { return Ok(()) };
    if let Some(wrong) = list.verify(directory)?.into_iter().next() {
        return Err(Error::corrupt(&directory.join(BACKUP), format!("is the list of a backup that is damaged: {wrong}")));
    }
    if is_written {
        let path = directory.join(BACKUP);
        std::fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_backup_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        std::fs::create_dir(place.join("store")).unwrap();
        for (name, text) in [("manifest.json", "{}"), ("store/0.jnl", "journal"), ("lock", "")] {
            std::fs::write(place.join(name), text).unwrap();
        }
        assert!(BackupList::read(place).unwrap().is_none());
        BackupList::write(place, 3).unwrap();
        let list = BackupList::read(place).unwrap().unwrap();
        assert_eq!((list.pages, list.files.len()), (3, 2));
        assert!(list.verify(place).unwrap().is_empty());
        let copy = tempfile::tempdir().unwrap();
        list.copy(place, copy.path()).unwrap();
        assert!(list.verify(copy.path()).unwrap().is_empty());
        for (name, text, word) in [("store/0.jnl", Some("journaL"), "not what it was"), ("store/0.jnl", Some("jour"), "4 bytes"), ("store/0.jnl", None, "missing")] {
            match text {
                Some(text) => std::fs::write(place.join(name), text).unwrap(),
                None => std::fs::remove_file(place.join(name)).unwrap(),
            }
            let wrong = list.verify(place).unwrap();
            assert!(wrong.len() == 1 && wrong[0].contains(word), "{wrong:?}");
            assert!(check_restored(place, true).is_err());
        }
        assert!(check_restored(place, true).is_err(), "the list stays while the backup is damaged");
        std::fs::write(place.join("store/0.jnl"), "journal").unwrap();
        check_restored(place, true).unwrap();
        assert!(!place.join(BACKUP).exists());
    }
}
