//! Which files of a directory are written to their ends: a run that goes on writes the others.
//!
//! A list beside the directory, one line for each source, with the files that its records went to and their sizes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::page::SourceId;
use crate::report::OutputOptions;
use crate::report::sinks::records::target::Target;

/// A line of the list.
#[derive(Serialize, Deserialize)]
struct Line {
    source: SourceId,
    /// The sizes of its files, part by part.
    bytes: Vec<u64>,
}

/// The list of a directory.
pub(in crate::report::sinks) struct WholeFiles {
    path: PathBuf,
    file: File,
    known: HashMap<SourceId, Vec<u64>>,
}

impl WholeFiles {
    /// Takes over the list in `path`, if files in `directory` were written with the same options; else both begin anew.
    pub(in crate::report::sinks) fn open(path: &Path, directory: &Path, options: OutputOptions) -> Result<WholeFiles> {
        let head = serde_json::to_string(&options).map_err(|error| Error::internal(error.to_string()))? + "\n";
        let text = fs::read_to_string(path).unwrap_or_default();
        // What follows the last line end was cut off.
        let text = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let known: HashMap<SourceId, Vec<u64>> = match text.strip_prefix(&head) {
            Some(lines) => {
                let lines = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
                lines.map(|Line { source, bytes }| (source, bytes)).collect()
            }
            None => {
                if directory.exists() {
                    fs::remove_dir_all(directory).map_err(Error::io(directory, "remove"))?;
                }
                HashMap::new()
            }
        };
        let mut whole = WholeFiles {
            path: path.to_path_buf(),
            file: File::create(path).map_err(Error::io(path, "create"))?,
            known: HashMap::new(),
        };
        whole.append(&head)?;
        for (source, bytes) in known {
            whole.add_line(source, bytes)?;
        }
        Ok(whole)
    }

    /// Whether the files of a source are there.
    pub(super) fn has(&self, source: SourceId, target: &Target<'_>) -> bool {
        self.known.get(&source).is_some_and(|known| *known == sizes(target))
    }

    /// The files of a source have been written.
    pub(super) fn add(&mut self, source: SourceId, target: &Target<'_>) -> Result<()> {
        self.add_line(source, sizes(target))
    }

    fn add_line(&mut self, source: SourceId, bytes: Vec<u64>) -> Result<()> {
        let line = Line { source, bytes };
        let text = serde_json::to_string(&line).map_err(|error| Error::internal(error.to_string()))?;
        self.append(&(text + "\n"))?;
        self.known.insert(source, line.bytes);
        Ok(())
    }

    fn append(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).map_err(Error::io(&self.path, "write"))
    }
}

/// The sizes of the parts of a target, as far as they are there.
fn sizes(target: &Target<'_>) -> Vec<u64> {
    let parts = if target.limit.is_some() { usize::MAX } else { 1 };
    (0..parts).map_while(|part| Some(fs::metadata(target.path(part)).ok()?.len())).collect()
}
