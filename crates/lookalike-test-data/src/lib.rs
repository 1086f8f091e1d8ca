//! The labelled data, for the tests and benchmarks that need it, and a word where it is missing.
//!
//! The data is not part of the project. Everything that reads it asks [`labelled_data`], so that no test passes unseen because
//! there was nothing to test.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder that holds the data; `shared/data` beside the project if it is not set.
const FOLDER: &str = "LOOKALIKE_DATA";

/// A file that skipped tests are listed in, for whoever runs all of them.
const LIST: &str = "LOOKALIKE_SKIPPED_TESTS";

/// A file or folder of the data; nothing if it is not there, and whoever asks is noted as skipped.
#[must_use]
pub fn labelled_data(name: &str) -> Option<PathBuf> {
    let folder = env::var_os(FOLDER)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    skipped(&format!("{name} in ${FOLDER}"));
    None
}

/// Says that the running test is skipped for want of something.
fn skipped(needed: &str) {
    let thread = std::thread::current();
    let program = env::current_exe().ok();
    // Test programs are called by the name of the test file, a dash and a hash.
    let program = program.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    let program = program.as_deref().map_or("?", |stem| stem.rsplit_once('-').map_or(stem, |(name, _)| name));
    let line = format!("skipped: {program} {}: needs {needed}\n", thread.name().unwrap_or("?"));
    // Not with a macro: those are caught, and shown of failed tests only. That nobody can be told is not a reason to fail.
    let _ = io::stderr().write_all(line.as_bytes());
    if let Some(list) = env::var_os(LIST) {
        let list = OpenOptions::new().create(true).append(true).open(list);
        let _ = list.and_then(|mut list| list.write_all(line.as_bytes()));
    }
}
