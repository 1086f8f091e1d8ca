//! The whole job, input file to result, against other tools in the same run.
//!
//! Cost is CPU time, user and system, of the whole process with all its threads, as the system
//! counts it for a finished child; memory is its peak.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike::result::files;
use serde_json::Value;

/// Runs a command and prints what it cost as JSON, in Python because the standard library there
/// reports the resources of finished children.
const METER: &str = "
import json, resource, subprocess, sys, time
start = time.time()
code = subprocess.call(sys.argv[1:], stdout=sys.stderr)
use = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({'code': code, 'wall': time.time() - start, 'cpu': use.ru_utime + use.ru_stime, 'peak_kib': use.ru_maxrss}))
";

/// Peers, as the script `peers/peers.py` knows them.
const PEERS: [(&str, &str); 2] = [
    ("rensa-words", "rensa R-MinHash and LSH, sets of words"),
    ("rensa", "rensa R-MinHash and LSH, sets of word 5-grams"),
];

/// All peers of all benchmarks, with their versions.
const REQUIREMENTS: &str = include_str!("../peers/requirements.txt");

/// How often each job is run.
const REPEATS: usize = 3;

/// What a job cost.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) megabytes: f64,
    pub(crate) cpu: f64,
    wall: f64,
    pub(crate) peak_kib: f64,
    found: String,
}

/// Prints a table of all.
pub(crate) fn run(documents: usize, work: &Path, alone: bool) -> Result<()> {
    let corpus = crate::generated(work, documents)?;
    let megabytes = fs::metadata(&corpus)?.len() as f64 / 1e6;
    let engine = std::env::current_exe()?.with_file_name("lookalike");
    ensure!(engine.exists(), "{} is not built: cargo build --release", engine.display());
    let output = work.join("out");

    let mut rows = Vec::new();
    let (corpus_text, output_text) = (corpus.to_string_lossy(), output.to_string_lossy());
    let engine_text = engine.to_string_lossy();
    let dedup = [engine_text.as_ref(), "dedup", corpus_text.as_ref(), "--output", output_text.as_ref()];
    let mut row = measure("python3", "lookalike dedup, verified, all files written", &dedup, &corpus, megabytes)?;
    let summary: Value = serde_json::from_slice(&fs::read(output.join(files::SUMMARY))?)?;
    row.found = format!("{} dropped", summary["dropped"]);
    rows.push(row);
    if !alone {
        let found = work.join("gaoya.count");
        let (bench, found_text) = (std::env::current_exe()?, found.to_string_lossy());
        let command = [&bench.to_string_lossy(), "peers-gaoya", corpus_text.as_ref(), found_text.as_ref()];
        let name = "gaoya MinHashIndex, word 5-grams, 125 hashes, each document hashed once";
        let mut row = measure("python3", name, &command, &corpus, megabytes)?;
        row.found = format!("{} with a match", fs::read_to_string(&found)?.trim());
        rows.push(row);
        let python = environment(work)?;
        let script = work.join("peers.py");
        fs::write(&script, include_str!("../peers/peers.py"))?;
        let script = script.to_string_lossy();
        for (peer, name) in PEERS {
            let found = work.join(format!("{peer}.count"));
            let found_text = found.to_string_lossy();
            let command = [python.as_str(), script.as_ref(), peer, corpus_text.as_ref(), found_text.as_ref()];
            let mut row = measure(&python, name, &command, &corpus, megabytes)?;
            row.found = format!("{} with a match", fs::read_to_string(&found)?.trim());
            rows.push(row);
        }
    }
    print(&rows, documents, megabytes)?;
    Ok(())
}

/// Runs a job [`REPEATS`] times; the run with the median CPU time counts.
pub(crate) fn measure(python: &str, name: &str, command: &[&str], corpus: &Path, megabytes: f64) -> Result<Row> {
    let mut rows = Vec::new();
    for _ in 0..REPEATS {
        rows.push(measure_once(python, name, command, corpus, megabytes)?);
    }
    rows.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    Ok(rows.swap_remove(REPEATS / 2))
}

fn measure_once(python: &str, name: &str, command: &[&str], corpus: &Path, megabytes: f64) -> Result<Row> {
    // Everybody finds the file in the page cache: the disk is not what is measured.
    io::copy(&mut fs::File::open(corpus)?, &mut io::sink())?;
    let output = Command::new(python)
        .arg("-c")
        .arg(METER)
        .args(command)
        .output()
        .with_context(|| format!("cannot start {python}"))?;
    let usage: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{name}: {}", String::from_utf8_lossy(&output.stderr)))?;
    ensure!(usage["code"] == 0, "{name} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let number = |key: &str| usage[key].as_f64().unwrap_or(f64::NAN);
    Ok(Row {
        name: name.to_owned(),
        megabytes,
        cpu: number("cpu"),
        wall: number("wall"),
        peak_kib: number("peak_kib"),
        found: String::new(),
    })
}

/// The Python of a virtual environment with the peers in it: those of `peers/requirements.txt` and nothing else.
pub(crate) fn environment(work: &Path) -> Result<String> {
    let directory = work.join("peers-venv");
    let (python, ready) = (directory.join("bin/python"), directory.join("ready"));
    if fs::read_to_string(&ready).ok().as_deref() != Some(REQUIREMENTS) {
        let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory).status()?;
        ensure!(made.success(), "python3 -m venv failed; install python3-venv");
        let list = directory.join("requirements.txt");
        fs::write(&list, REQUIREMENTS)?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
        let installed = Command::new(&python).args(pip).arg(&list).status()?;
        ensure!(installed.success(), "the peers of {} could not be installed", list.display());
        fs::write(&ready, REQUIREMENTS)?;
    }
    Ok(python.to_string_lossy().into_owned())
}

fn print(rows: &[Row], documents: usize, megabytes: f64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{documents} documents, {megabytes:.0} MB, one file; median of {REPEATS} runs\n")?;
    writeln!(out, "| job | MB per CPU-second | CPU s | wall s | peak memory | lookalike is faster by | found |")?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for row in rows {
        writeln!(
            out,
            "| {} | {:.1} | {:.1} | {:.1} | {:.0} MB | {:.1} × | {} |",
            row.name,
            row.megabytes / row.cpu,
            row.cpu,
            row.wall,
            row.peak_kib * 1024.0 / 1e6,
            row.cpu / rows[0].cpu,
            row.found
        )?;
    }
    Ok(())
}
