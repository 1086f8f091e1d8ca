//! Ctrl-C: what has been done so far, and how to go on.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use lookalike::result::files::{WORK, can_resume};

/// As shells report a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// From now on, Ctrl-C ends the program with a word about how to go on with `output`.
pub(crate) fn explain(output: &Path) -> Result<()> {
    let output = output.to_path_buf();
    ctrlc::set_handler(move || {
        let advice = if can_resume(&output) {
            how_to_go_on(&output)
        } else {
            "there is nothing to go on with yet; run the same command again to start over".to_owned()
        };
        let _ = writeln!(io::stderr(), "\ninterrupted; {advice}");
        std::process::exit(INTERRUPTED);
    })
    .context("cannot watch for Ctrl-C")
}

/// How a run goes on with what it left in its work directory.
pub(crate) fn how_to_go_on(output: &Path) -> String {
    format!(
        "what was read so far is in {}; run the same command with --resume to continue",
        output.join(WORK).display()
    )
}
