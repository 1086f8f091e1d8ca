//! The main job on one core and on two, stage by stage: how much faster it gets, and which share of each stage does not.
//!
//! One core means one: the run on one thread is tied to a processor, since its reader and its collector are threads, too. The share
//! that does not get faster follows from both times (Amdahl), and says what many cores would come to.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike::result::files;
use serde_json::Value;

use crate::budget::{median, pack};

/// How often each run is made; the median counts.
const ROUNDS: usize = 5;
/// Cores of a large machine.
const MANY: f64 = 64.0;

/// Prints a table for each kind of input.
pub(crate) fn run(documents: usize, work: &Path) -> Result<()> {
    let engine = std::env::current_exe()?.with_file_name("lookalike");
    ensure!(engine.exists(), "{} is not built: cargo build --release", engine.display());
    let lines = crate::generated(work, documents)?;
    let inputs = [
        ("JSON lines, kept records copied", lines.clone(), true),
        ("JSON lines", lines.clone(), false),
        ("one gzip file of JSON lines, members of a megabyte", gzip(&lines)?, false),
        ("Parquet", parquet(&engine, &lines, work)?, false),
        ("one archive of HTML, a gzip member a page", work.join("debian-docs.warc.gz"), false),
    ];
    let mut out = io::stdout().lock();
    for (what, input, keeps) in inputs {
        if !input.exists() {
            writeln!(out, "{what}: {} is not here; `lookalike-bench html` makes it\n", input.display())?;
            continue;
        }
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            one.push(seconds(&engine, &input, work, 1, keeps)?);
            two.push(seconds(&engine, &input, work, 2, keeps)?);
        }
        writeln!(out, "{what}: seconds, medians of {ROUNDS} runs by turns\n")?;
        writeln!(
            out,
            "| stage | one core | two cores | faster | not faster | on {MANY} cores |\n|---|---|---|---|---|---|"
        )?;
        let names: Vec<String> = one[0].iter().map(|row| row.0.clone()).collect();
        for (at, name) in names.iter().enumerate() {
            let of = |runs: &[Vec<(String, f64)>]| median(&mut runs.iter().map(|run| run[at].1).collect::<Vec<_>>());
            let (one, two) = (of(&one), of(&two));
            let serial = (2.0 * two / one.max(f64::MIN_POSITIVE) - 1.0).clamp(0.0, 1.0);
            let many = one * (serial + (1.0 - serial) / MANY);
            writeln!(
                out,
                "| {name} | {one:.2} | {two:.2} | {:.2} × | {:.0} % | {many:.2} |",
                one / two.max(f64::MIN_POSITIVE),
                100.0 * serial,
            )?;
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}

/// The wall-clock time of each stage of a run, and of all of it.
fn seconds(engine: &Path, input: &Path, work: &Path, threads: usize, keeps: bool) -> Result<Vec<(String, f64)>> {
    let output = work.join("threads");
    if output.exists() {
        fs::remove_dir_all(&output)?;
    }
    let cores = if threads == 1 { "0" } else { "0,1" };
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", cores]).arg(engine).arg("dedup").arg(input).arg("--output").arg(&output);
    command.args(["--threads", &threads.to_string(), "--quiet"]).args((!keeps).then_some("--no-kept"));
    ensure!(command.status().context("taskset is not here")?.success(), "{command:?} failed");
    let run: Value = serde_json::from_slice(&fs::read(output.join(files::RUN))?)?;
    let seconds = |value: &Value| value["seconds"].as_f64().context("run.json has no time");
    let mut all = Vec::new();
    for stage in run["stages"].as_array().context("run.json has no stages")? {
        all.push((stage["stage"].as_str().unwrap_or_default().to_owned(), seconds(stage)?));
    }
    all.push(("all".to_owned(), seconds(&run)?));
    Ok(all)
}

fn gzip(lines: &Path) -> Result<PathBuf> {
    let path = lines.with_extension("jsonl.gz");
    if !path.exists() {
        File::create(&path)?.write_all(&pack(&fs::read(lines)?)?)?;
    }
    Ok(path)
}

/// The same documents as rows.
fn parquet(engine: &Path, lines: &Path, work: &Path) -> Result<PathBuf> {
    let path = lines.with_extension("parquet");
    if !path.exists() {
        let output = work.join("threads-parquet");
        let mut command = Command::new(engine);
        command.arg("dedup").arg(lines).arg("--output").arg(&output);
        command.args(["--exact-only", "--kept-format", "parquet", "--replace", "--quiet"]);
        ensure!(command.status()?.success(), "{command:?} failed");
        let written = fs::read_dir(output.join(files::KEPT))?.next().context("nothing was kept")??.path();
        fs::rename(written, &path)?;
        fs::remove_dir_all(&output)?;
    }
    Ok(path)
}
