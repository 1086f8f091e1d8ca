//! Bases: copies of an index in the object store, to begin from.
//!
//! The files of a base are named by their checksums, so that segments, which never change, are there once for all bases of
//! an epoch. `base.json` lists them and is written last: a base without it does not exist.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::index::{COLLECTIONS, sync_directory};
use crate::online::ship::bucket::Bucket;
use crate::online::ship::layout::{BASES, FILES, LogObject, PrimaryRecord, damaged, is_valid_base};
use crate::online::ship::{PARTS, SHIPPING};

/// What `base.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Base {
    pub(super) group: u64,
    pub(super) epoch: u64,
    pub(super) directories: Vec<String>,
    pub(super) files: Vec<BaseFile>,
}

/// A file of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseFile {
    /// Its path in the directory of an index.
    pub(super) path: String,
    pub(super) size: u64,
    /// XXH3 of 128 bits, in hex.
    pub(super) checksum: String,
    /// The object that holds it.
    pub(super) object: String,
}

impl Base {
    fn name(group: u64, epoch: u64) -> String {
        format!("{BASES}/{group:020}-{epoch:010}/base.json")
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Groups and epochs of all bases that are whole, in their order.
    pub(super) fn list(bucket: &Bucket) -> Result<Vec<(u64, u64)>> {
        let parse = |name: &str| {
            let (group, epoch) = name.strip_suffix("/base.json")?.split_once('-')?;
            Some((group.parse().ok()?, epoch.parse().ok()?))
        };
        Ok(bucket.list(BASES, None)?.iter().filter_map(|(name, _)| parse(name)).collect())
    }

    /// What a base holds.
    pub(super) fn read(bucket: &Bucket, (group, epoch): (u64, u64)) -> Result<Option<Base>> {
        let name = Base::name(group, epoch);
        let Some(fetched) = bucket.get(&name)? else { return Ok(None) };
        let base: Base = serde_json::from_slice(&fetched.bytes).map_err(|cause| damaged(bucket, &name, cause))?;
        let leaves =
            |path: &str| Path::new(path).components().any(|part| !matches!(part, std::path::Component::Normal(_)));
        if base.files.iter().map(|file| &file.path).chain(&base.directories).any(|path| leaves(path)) {
            return Err(damaged(bucket, &name, "a file is not in the directory"));
        }
        Ok(Some(base))
    }

    /// The newest base that counts.
    pub(super) fn newest(bucket: &Bucket, record: &PrimaryRecord) -> Result<Option<Base>> {
        let bases = Base::list(bucket)?;
        match bases.into_iter().rfind(|base| is_valid_base(record, *base)) {
            Some(newest) => Base::read(bucket, newest),
            None => Ok(None),
        }
    }

    /// Uploads the copy in a directory. Files that are among `uploaded` are there already; those that are uploaded now
    /// join them.
    pub(super) fn upload(
        bucket: &Bucket,
        directory: &Path,
        group: u64,
        epoch: u64,
        uploaded: &mut HashSet<String>,
        may_go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Base> {
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        for entry in walkdir::WalkDir::new(directory).min_depth(1).sort_by_file_name() {
            let entry = entry.map_err(|cause| Error::io(directory, "read")(cause.into()))?;
            let path =
                entry.path().strip_prefix(directory).map_err(|_| Error::internal("a file outside of its base"))?;
            let path = path.to_string_lossy().into_owned();
            if entry.file_type().is_dir() {
                directories.push(path);
                continue;
            }
            may_go_on()?;
            let (size, checksum) = checksum_of(entry.path())?;
            let object = format!("{FILES}/{epoch:010}/{checksum}-{size}");
            if !uploaded.contains(&object) {
                bucket.put_file(&object, entry.path())?;
                uploaded.insert(object.clone());
            }
            files.push(BaseFile { path, size, checksum, object });
        }
        Ok(Base { group, epoch, directories, files })
    }

    /// Says that it is whole.
    pub(super) fn publish(&self, bucket: &Bucket) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).expect("plain fields serialise");
        bucket.put(&Base::name(self.group, self.epoch), &bytes.into())
    }

    /// Removes all but the last `keep` bases that count, the part of the log before them, and files that nothing needs.
    pub(super) fn remove_old(bucket: &Bucket, record: &PrimaryRecord, keep: usize) -> Result<()> {
        let (kept, old): (Vec<_>, Vec<_>) = {
            let bases = Base::list(bucket)?;
            let valid: Vec<_> = bases.iter().copied().filter(|base| is_valid_base(record, *base)).collect();
            let kept: HashSet<_> = valid.into_iter().rev().take(keep.max(1)).collect();
            bases.into_iter().partition(|base| kept.contains(base))
        };
        let Some(oldest) = kept.iter().map(|(group, _)| *group).min() else { return Ok(()) };
        let mut needed = HashSet::new();
        for base in kept {
            let Some(base) = Base::read(bucket, base)? else { return Ok(()) };
            needed.extend(base.files.into_iter().map(|file| file.object));
        }
        for (group, epoch) in old {
            bucket.delete(&Base::name(group, epoch))?;
        }
        for (name, _) in bucket.list(FILES, None)? {
            let object = format!("{FILES}/{name}");
            if !needed.contains(&object) {
                bucket.delete(&object)?;
            }
        }
        for object in LogObject::list(bucket)?.iter().filter(|object| object.last <= oldest) {
            bucket.delete(&object.name())?;
        }
        Ok(())
    }

    /// Downloads it beside the index in a directory, taking up what an earlier attempt has left, and verifies every file.
    pub(super) fn download(&self, bucket: &Bucket, directory: &Path) -> Result<PathBuf> {
        let parts = directory.join(SHIPPING).join(PARTS);
        let create = |path: &Path| std::fs::create_dir_all(path).map_err(Error::io(path, "create"));
        create(&parts)?;
        for directory in &self.directories {
            create(&parts.join(directory))?;
        }
        let wanted: HashSet<PathBuf> = self.files.iter().map(|file| parts.join(&file.path)).collect();
        for entry in walkdir::WalkDir::new(&parts).into_iter().flatten() {
            if entry.file_type().is_file() && !wanted.contains(entry.path()) {
                std::fs::remove_file(entry.path()).map_err(Error::io(entry.path(), "remove"))?;
            }
        }
        for file in &self.files {
            let path = parts.join(&file.path);
            let is_whole = |path: &Path| -> Result<bool> {
                Ok(path.exists() && checksum_of(path)? == (file.size, file.checksum.clone()))
            };
            if is_whole(&path)? {
                continue;
            }
            bucket.get_file(&file.object, &path)?;
            if !is_whole(&path)? {
                let reason = format!(
                    "it is not what the base of group {} lists for {}; this base cannot be used",
                    self.group, file.path
                );
                return Err(damaged(bucket, &file.object, reason));
            }
        }
        Ok(parts)
    }
}

/// Puts a base that was downloaded in the place of the index in a directory. What is half done is begun again.
pub(super) fn install(parts: &Path, directory: &Path) -> Result<()> {
    let remove = |path: &Path| match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path).map_err(Error::io(path, "remove")),
        Ok(_) => std::fs::remove_file(path).map_err(Error::io(path, "remove")),
        Err(_) => Ok(()),
    };
    // Without its manifest nobody takes the rest for an index.
    remove(&directory.join(MANIFEST))?;
    sync_directory(directory)?;
    for entry in std::fs::read_dir(directory).map_err(Error::io(directory, "read"))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if crate::index::belongs_to_index(&name) && ![COLLECTIONS, SHIPPING, "lock"].contains(&name.as_str()) {
            remove(&entry.path())?;
        }
    }
    let mut names: Vec<_> = std::fs::read_dir(parts).map_err(Error::io(parts, "read"))?.flatten().collect();
    names.sort_by_key(|entry| entry.file_name() == MANIFEST);
    for entry in names {
        if entry.file_name() == MANIFEST {
            sync_directory(directory)?;
        }
        let target = directory.join(entry.file_name());
        if entry.file_name() != "lock" {
            std::fs::rename(entry.path(), &target).map_err(Error::io(&target, "write"))?;
        }
    }
    sync_directory(directory)?;
    std::fs::remove_dir_all(parts).map_err(Error::io(parts, "remove"))
}

const MANIFEST: &str = "manifest.json";

/// The size and the checksum of a file.
fn checksum_of(path: &Path) -> Result<(u64, String)> {
    let mut file = File::open(path).map_err(Error::io(path, "read"))?;
    let (mut hash, mut size, mut buffer) = (Xxh3::new(), 0, vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer).map_err(Error::io(path, "read"))?;
        if count == 0 {
            return Ok((size, format!("{:032x}", hash.digest128())));
        }
        hash.update(&buffer[..count]);
        size += count as u64;
    }
}

/// Whether a follower that has groups up to `group` can go on with the log: not if a group is missing that comes next.
pub(super) fn log_goes_on(record: &PrimaryRecord, log: &[LogObject], group: u64, shipped: u64) -> bool {
    let has_next = |object: &LogObject| {
        let last = record.last_valid(object.epoch, object.first, object.last);
        object.first <= group + 1 && last.is_some_and(|last| last > group)
    };
    shipped <= group || log.iter().any(has_next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("store/empty")).unwrap();
        for (name, content) in files {
            std::fs::write(directory.path().join(name), content).unwrap();
        }
        directory
    }

    fn upload(bucket: &Bucket, directory: &Path, group: u64, epoch: u64, uploaded: &mut HashSet<String>) -> Base {
        let base = Base::upload(bucket, directory, group, epoch, uploaded, &|| Ok(())).unwrap();
        base.publish(bucket).unwrap();
        base
    }

    #[test]
    fn a_base_is_downloaded_as_it_was_and_damage_is_refused() {
        let bucket = Bucket::in_memory();
        let made = directory_with(&[("manifest.json", "{}"), ("segment-000001.seg", "rows"), ("store/0.jnl", "")]);
        let base = upload(&bucket, made.path(), 7, 1, &mut HashSet::new());
        let record = PrimaryRecord::next(None, "a", Some(1));
        assert_eq!(Base::newest(&bucket, &record).unwrap(), Some(base.clone()));
        let target = directory_with(&[("segment-000009.seg", "old"), ("manifest.json", "old"), ("note.txt", "mine")]);
        let parts = base.download(&bucket, target.path()).unwrap();
        install(&parts, target.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(target.path().join(name)).ok();
        assert_eq!(read("segment-000001.seg").as_deref(), Some("rows"));
        assert_eq!((read("segment-000009.seg"), read("note.txt").as_deref()), (None, Some("mine")));
        assert!(target.path().join("store/empty").is_dir() && !parts.exists());
        let segment = base.files.iter().find(|file| file.path == "segment-000001.seg").unwrap();
        bucket.put(&segment.object, &"rowz".into()).unwrap();
        let other = tempfile::tempdir().unwrap();
        let refused = base.download(&bucket, other.path()).unwrap_err().to_string();
        assert!(refused.contains("segment-000001.seg") && refused.contains("cannot be used"), "{refused}");
        // It is taken up where it was left.
        bucket.put(&segment.object, &"rows".into()).unwrap();
        base.download(&bucket, other.path()).unwrap();
    }

    #[test]
    fn old_bases_go_with_their_log_and_files_but_not_what_is_shared() {
        let bucket = Bucket::in_memory();
        let (mut uploaded, mut record) = (HashSet::new(), PrimaryRecord::next(None, "a", Some(1)));
        for group in [10, 20, 30] {
            let made = directory_with(&[("segment-000001.seg", "same"), ("manifest.json", &format!("{group}"))]);
            upload(&bucket, made.path(), group, 1, &mut uploaded);
        }
        for (first, last) in [(11, 20), (21, 21), (22, 31)] {
            let object = LogObject { epoch: 1, first, last, size: 1 };
            bucket.put(&object.name(), &"x".into()).unwrap();
        }
        assert_eq!(uploaded.len(), 4, "the segment is there once");
        Base::remove_old(&bucket, &record, 2).unwrap();
        assert_eq!(Base::list(&bucket).unwrap(), [(20, 1), (30, 1)]);
        let firsts = || LogObject::list(&bucket).unwrap().iter().map(|object| object.first).collect::<Vec<_>>();
        assert_eq!((firsts(), bucket.list(FILES, None).unwrap().len()), (vec![21, 22], 3));
        let newest = Base::newest(&bucket, &record).unwrap().unwrap();
        newest.download(&bucket, tempfile::tempdir().unwrap().path()).unwrap();
        // A base of a primary that was fenced off does not count.
        record = PrimaryRecord::next(Some(&record), "b", Some(25));
        assert_eq!(Base::newest(&bucket, &record).unwrap().unwrap().group, 20);
        assert!(log_goes_on(&record, &LogObject::list(&bucket).unwrap(), 22, 24));
        assert!(!log_goes_on(&record, &LogObject::list(&bucket).unwrap(), 24, 26), "25 is missing");
        assert!(log_goes_on(&record, &[], 24, 24));
        Base::remove_old(&bucket, &record, 1).unwrap();
        assert_eq!((Base::list(&bucket).unwrap(), firsts()), (vec![(20, 1)], vec![21, 22]));
    }
}
