//! The output directory while a run is at work on it.
//!
//! Everything is written to `DIR/.lookalike-work` and renamed into place at the end, the summary
//! last: a directory with a `summary.json` is a whole result, and a run that fails or is killed
//! leaves nothing half-written that could be taken for one. A lock keeps a second run out.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::files::{self, READ_KEY, WORK};

/// How the names of files begin that a later run can go on with.
pub(crate) const READ_PREFIX: &str = "read-";

/// Directories of records that others may have made, and why we do not write there then.
const FOREIGN: [(&str, &str); 3] = [
    (files::KEPT, "holds a 'kept' that is not ours and would have to be replaced; move it, or choose another `output`"),
    (
        files::REMOVED,
        "holds a 'removed' that is not ours and would have to be replaced; move it, or choose another `output`",
    ),
    (
        files::ANNOTATED,
        "holds an 'annotated' that is not ours and would have to be replaced; move it, or choose another `output`",
    ),
];

/// An output directory that this run holds.
#[derive(Debug)]
pub struct WorkDir {
    output: PathBuf,
    work: PathBuf,
    /// The directories that were made for it, outermost first.
    made: Vec<PathBuf>,
    /// Whether what stands in it is a result of ours, which goes when a new one comes.
    holds_result: bool,
    /// Whether there is something that a later run could go on with.
    can_resume: AtomicBool,
    /// What the result may consist of, in the order in which it is put into place.
    files: Vec<&'static str>,
    /// Held while we live.
    _lock: File,
}

impl WorkDir {
    /// Takes hold of `output`, which is made if it does not exist, for a result that consists of `files`; the last of
    /// them makes it complete. What a killed run left is cleared, all but what `resume` can use.
    ///
    /// # Errors
    /// If it holds something else, another run is in it, or it cannot be written.
    pub fn open(files: Vec<&'static str>, output: &Path, force: bool, resume: bool) -> Result<WorkDir> {
        let not_ours = |reason| Error::OutputNotOurs { path: output.to_path_buf(), reason };
        let exists = output.exists();
        if exists && !output.is_dir() {
            return Err(not_ours("exists and is not a directory; choose another `output`"));
        }
        let holds_result = exists && is_ours(output, &files)?;
        if exists && !holds_result && !force {
            return Err(not_ours(
                "exists and is not a lookalike result; choose another `output`, or use `force` to write into it (files of other names stay)",
            ));
        }
        let foreign = FOREIGN.iter().find(|(name, _)| files.contains(name) && output.join(name).exists());
        if let Some((_, reason)) = foreign.filter(|_| exists && !holds_result) {
            return Err(not_ours(reason));
        }
        let mut made: Vec<PathBuf> = output
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .map(Path::to_path_buf)
            .collect();
        made.reverse();
        let work = output.join(WORK);
        fs::create_dir_all(&work).map_err(Error::io(output, "create"))?;
        let lock_path = work.join("lock");
        let lock = File::create(&lock_path).map_err(Error::io(&lock_path, "create"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: output.to_path_buf() }),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => {
                return Err(Error::Io { path: lock_path, action: "lock", cause: error });
            }
        }
        let can_resume = AtomicBool::new(resume && work.join(READ_KEY).exists());
        let directory =
            WorkDir { output: output.to_path_buf(), work, made, holds_result, can_resume, files, _lock: lock };
        directory.clear(directory.can_resume())?;
        Ok(directory)
    }

    /// Where files are written before they are put into place.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.work
    }

    /// The output directory.
    #[must_use]
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// If the run fails from now on, what can be gone on with stays.
    pub(crate) fn keep_for_resuming(&self) {
        self.can_resume.store(true, Ordering::Relaxed);
    }

    /// Whether a later run can go on with what this one leaves.
    pub(crate) fn can_resume(&self) -> bool {
        self.can_resume.load(Ordering::Relaxed)
    }

    /// What an earlier run has left is of no use.
    pub(crate) fn nothing_to_resume(&self) {
        self.can_resume.store(false, Ordering::Relaxed);
    }

    /// Removes what is there, all but what a later run can use if that is to stay.
    fn clear(&self, keep: bool) -> Result<()> {
        for entry in fs::read_dir(&self.work).map_err(Error::io(&self.work, "read"))? {
            let path = entry.map_err(Error::io(&self.work, "read"))?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name != "lock" && !(keep && (name == files::KEPT || name.starts_with(READ_PREFIX))) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Puts the result into place. From the first rename on, the old result counts as gone. Files
    /// that are not ours and that this run does not write stay.
    ///
    /// # Errors
    /// When something cannot be renamed.
    pub fn publish(self) -> Result<()> {
        if self.holds_result {
            remove(&self.output.join(files::SUMMARY))?;
        }
        for name in &self.files {
            let (from, to) = (self.work.join(name), self.output.join(name));
            if *name == files::CARD || *name == files::CARD_ASIDE {
                continue;
            }
            if *name == files::SUMMARY {
                self.publish_card()?;
            }
            if from.exists() || self.holds_result {
                remove(&to)?;
            }
            if from.exists() {
                fs::rename(&from, &to).map_err(Error::io(&to, "write"))?;
            }
        }
        self.nothing_to_resume();
        Ok(())
    }
}

impl WorkDir {
    /// Puts the dataset card into place, without replacing what somebody has written or edited.
    fn publish_card(&self) -> Result<()> {
        let from = self.work.join(files::CARD);
        let mut targets = Vec::new();
        for name in [files::CARD, files::CARD_ASIDE] {
            let path = self.output.join(name);
            match fs::read(&path) {
                Ok(bytes) if !is_signed(&bytes) => continue,
                Ok(_) if self.holds_result => remove(&path)?,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => continue, // a directory, or nothing that we may look at
            }
            targets.push(path);
        }
        match targets.first() {
            Some(to) if from.exists() => fs::rename(&from, to).map_err(Error::io(to, "write")),
            _ => Ok(()),
        }
    }
}

/// How the line begins that tells whether a file is still as we wrote it.
const SIGNATURE: &str = "<!-- Written by lookalike, and replaced by its next run unless it is edited. ";

/// A text with a line that tells later whether it was edited; `{signature}` says where.
pub(crate) fn signed(text: &str) -> String {
    let hash = xxh3_64(text.replace("{signature}", "").as_bytes());
    text.replace("{signature}", &format!("{SIGNATURE}{hash:016x} -->"))
}

/// Whether a file is as we wrote it.
fn is_signed(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Some(line) = text.lines().find(|line| line.starts_with(SIGNATURE)) else { return false };
    signed(&text.replacen(line, "{signature}", 1)) == text
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Nothing more can be done about a failure here; the next run clears up.
        if self.can_resume() {
            let _ = self.clear(true);
            return;
        }
        let _ = fs::remove_dir_all(&self.work);
        for directory in self.made.iter().rev() {
            let _ = fs::remove_dir(directory); // only if it is empty: nothing was published
        }
    }
}

/// Whether a directory is empty or holds a result of ours, whole or begun.
fn is_ours(output: &Path, files: &[&str]) -> Result<bool> {
    let mut names = Vec::new();
    for entry in fs::read_dir(output).map_err(Error::io(output, "read"))? {
        names.push(entry.map_err(Error::io(output, "read"))?.file_name().to_string_lossy().into_owned());
    }
    let known =
        |name: &String| name == WORK || files.contains(&name.as_str()) || files::OF_PEOPLE.contains(&name.as_str());
    let signed = files::is_result(output);
    // A result of the other kind is not to be replaced by one of this.
    let (clusters, mapping) = (files::CLUSTERS.parquet, files::MAPPING.parquet);
    let other = if files.contains(&mapping) { clusters } else { mapping };
    let signed = signed && !names.iter().any(|name| name == other);
    Ok(names.is_empty() || signed || (names.iter().any(|name| name == WORK) && names.iter().all(known)))
}

fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::Io { path: path.to_path_buf(), action: "remove", cause: error })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(output: &Path, force: bool, resume: bool) -> Result<WorkDir> {
        let files = vec![files::KEPT, files::PAGES.parquet, files::CLUSTERS.parquet, files::SUMMARY];
        WorkDir::open(files, output, force, resume)
    }

    #[test]
    fn a_directory_of_others_is_refused_unless_forced() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "precious").unwrap();
        assert!(matches!(open(root.path(), false, false), Err(Error::OutputNotOurs { .. })));
        let forced = open(root.path(), true, false).unwrap();
        fs::write(forced.path().join("summary.json"), "{\"lookalike\": 1}").unwrap();
        forced.publish().unwrap();
        assert_eq!(fs::read(root.path().join("thesis.tex")).unwrap(), b"precious");
        assert!(open(root.path(), false, false).is_ok(), "now it is ours");
    }

    #[test]
    fn force_removes_nothing_that_the_run_does_not_write() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("pages.jsonl"), "precious").unwrap();
        let forced = open(root.path(), true, false).unwrap();
        fs::write(forced.path().join("summary.json"), "{\"lookalike\": 1}").unwrap();
        forced.publish().unwrap();
        assert_eq!(fs::read(root.path().join("pages.jsonl")).unwrap(), b"precious");
        let other = tempfile::tempdir().unwrap();
        fs::create_dir(other.path().join("kept")).unwrap();
        assert!(matches!(open(other.path(), true, false), Err(Error::OutputNotOurs { .. })));
    }

    #[test]
    fn a_card_that_somebody_wrote_or_edited_stays() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let run = |card: &str, force| {
            let files = vec![files::CARD, files::CARD_ASIDE, files::SUMMARY];
            let work = WorkDir::open(files, root.path(), force, false).unwrap();
            fs::write(work.path().join(files::CARD), signed(card)).unwrap();
            fs::write(work.path().join(files::SUMMARY), "{\"lookalike\": 1}").unwrap();
            work.publish().unwrap();
        };
        let read = |name: &str| fs::read_to_string(at(name)).unwrap_or_default();
        run("# One\n{signature}\n", false);
        run("# Two\n{signature}\n", false);
        assert!(read("README.md").starts_with("# Two"), "ours is replaced");
        let edited = read("README.md") + "by me\n";
        fs::write(at("README.md"), &edited).unwrap();
        run("# Three\n{signature}\n", false);
        assert_eq!(read("README.md"), edited);
        assert!(read("README.lookalike.md").starts_with("# Three"));
        fs::remove_file(at("README.md")).unwrap();
        run("# Four\n{signature}\n", false);
        assert!(read("README.md").starts_with("# Four") && !at("README.lookalike.md").exists());
        for name in ["README.md", "README.lookalike.md"] {
            fs::write(at(name), "mine").unwrap();
        }
        run("# Five\n{signature}\n", false);
        assert_eq!((read("README.md"), read("README.lookalike.md")), ("mine".to_owned(), "mine".to_owned()));
        assert!(!at(".lookalike-work").exists());
    }

    #[test]
    fn a_second_run_is_kept_out_and_a_failed_one_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let output = root.path().join("deep/er/out");
        let first = open(&output, false, false).unwrap();
        fs::write(first.path().join("pairs.parquet"), "half").unwrap();
        assert!(matches!(open(&output, false, false), Err(Error::Locked { .. })));
        drop(first);
        assert!(!root.path().join("deep").exists());
    }

    #[test]
    fn what_people_made_of_a_result_stays_also_if_the_next_run_is_killed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(WORK)).unwrap();
        for name in [files::WORKBENCH, files::DECISIONS, files::PAGES.parquet] {
            fs::write(root.path().join(name), name).unwrap();
        }
        let again = open(root.path(), false, false).unwrap();
        fs::write(again.path().join(files::SUMMARY), "{\"lookalike\": 1}").unwrap();
        again.publish().unwrap();
        for name in [files::WORKBENCH, files::DECISIONS] {
            assert_eq!(fs::read_to_string(root.path().join(name)).unwrap(), name);
        }
    }

    #[test]
    fn what_a_killed_run_left_is_cleared() {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join(WORK);
        fs::create_dir(&work).unwrap();
        fs::write(work.join("pairs.parquet"), "half").unwrap();
        let opened = open(root.path(), false, false).unwrap();
        assert!(!opened.path().join("pairs.parquet").exists());
    }
}
