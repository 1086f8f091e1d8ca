//! `skipped.jsonl`: every record that could not be used.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, SkipKind, SkippedRecord};

/// Writes the list, and counts.
pub struct SkippedLog {
    path: PathBuf,
    file: BufWriter<File>,
    strict: bool,
    skipped: Skipped,
}

/// How many records were skipped, and the first of each kind.
#[derive(Debug, Clone, Default)]
pub struct Skipped {
    /// Number by kind.
    pub counts: BTreeMap<SkipKind, u64>,
    /// The first of each kind.
    pub examples: Vec<SkippedRecord>,
}

impl Skipped {
    /// Counts a record.
    pub fn count(&mut self, record: &SkippedRecord) {
        let count = self.counts.entry(record.kind).or_default();
        *count += 1;
        if *count == 1 {
            self.examples.push(record.clone());
        }
    }
}

impl SkippedLog {
    /// An empty list at `path`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, strict: bool) -> Result<SkippedLog> {
        let file = BufWriter::new(File::create(path).map_err(Error::io(path, "create"))?);
        Ok(SkippedLog { path: path.to_path_buf(), file, strict, skipped: Skipped::default() })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`Error::Strict`] if that was asked for; or when the file cannot be written.
    pub fn add(&mut self, record: &SkippedRecord) -> Result<()> {
        if self.strict {
            return Err(Error::Strict(record.clone()));
        }
        self.skipped.count(record);
        serde_json::to_writer(&mut self.file, record)
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"))
            .map_err(Error::io(&self.path, "write"))
    }

    /// Closes the list.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<Skipped> {
        self.file.flush().map_err(Error::io(&self.path, "write"))?;
        Ok(self.skipped)
    }
}
