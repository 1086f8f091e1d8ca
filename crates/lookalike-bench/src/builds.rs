//! The main job with several builds of the program: what a profile is worth.
//!
//! The programs run in turns, so that all of them meet the same hours of a shared machine; the median of
//! each counts. They must write the same result.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::peers::{METER, corpus};

/// Files of a result that must not depend on the build.
const RESULT: [&str; 4] = ["pages.parquet", "pairs.parquet", "clusters.parquet", "summary.json"];

/// Prints a table of user CPU seconds.
pub(crate) fn run(programs: &[PathBuf], documents: usize, rounds: usize, work: &Path) -> Result<()> {
    let corpus = corpus(documents, work)?;
    let output = work.join("out-builds");
    let mut seconds = vec![Vec::new(); programs.len()];
    let mut expected = None;
    for _ in 0..rounds {
        for (program, seconds) in programs.iter().zip(&mut seconds) {
            seconds.push(user_seconds(program, &corpus, &output)?);
            let result = RESULT.map(|name| fs::read(output.join(name)).unwrap_or_default());
            let is_equal = *expected.get_or_insert_with(|| result.clone()) == result;
            ensure!(is_equal, "{} gives another result than {}", program.display(), programs[0].display());
        }
    }
    let mut out = io::stdout().lock();
    let megabytes = fs::metadata(&corpus)?.len() as f64 / 1e6;
    writeln!(out, "{documents} documents, {megabytes:.0} MB, one file; median of {rounds} runs in turns\n")?;
    writeln!(out, "| program | user CPU s | fastest to slowest | to the first |\n|---|---|---|---|")?;
    seconds.iter_mut().for_each(|seconds| seconds.sort_by(f64::total_cmp));
    for (program, row) in programs.iter().zip(&seconds) {
        let (median, first) = (row[rounds / 2], seconds[0][rounds / 2]);
        let (fastest, slowest) = (row[0], row[rounds - 1]);
        let program = program.display();
        writeln!(out, "| {program} | {median:.2} | {fastest:.2} to {slowest:.2} | {:.3} |", median / first)?;
    }
    Ok(())
}

fn user_seconds(program: &Path, corpus: &Path, output: &Path) -> Result<f64> {
    // Everybody finds the file in the page cache, and nothing to replace.
    io::copy(&mut fs::File::open(corpus)?, &mut io::sink())?;
    if output.exists() {
        fs::remove_dir_all(output)?;
    }
    let ended = Command::new("python3")
        .args(["-c", METER])
        .arg(program)
        .arg("dedup")
        .arg(corpus)
        .arg("--output")
        .arg(output)
        .output()
        .context("cannot start python3")?;
    let talk = String::from_utf8_lossy(&ended.stderr);
    let usage: Value =
        serde_json::from_slice(&ended.stdout).with_context(|| format!("{}: {talk}", program.display()))?;
    ensure!(usage["code"] == 0, "{} failed:\n{talk}", program.display());
    usage["user"].as_f64().context("the meter gave no user time")
}
