//! The whole job, input file to result, against other tools in the same run.
//!
//! Cost is CPU time, user and system, of the whole process with all its threads, as the system
//! counts it for a finished child; memory is its peak.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike::result::files;
use lookalike_bench::oracle::all_pairs;
use lookalike_bench::quality::columns;
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

/// Peers, as the scripts know them: those that are run on all documents, and those that would take too long.
const PEERS: [(&str, &str); 2] = [
    ("rensa-words", "rensa 0.5.0 R-MinHash and LSH, sets of words"),
    ("rensa", "rensa 0.5.0 R-MinHash and LSH, sets of word 5-grams"),
];
const PIPELINES: [(&str, &str); 2] = [
    ("text-dedup", "text-dedup 0.4.0 minhash, word 5-grams, 256 hashes"),
    ("datatrove", "datatrove 0.10.1 minhash, word 5-grams, 14 buckets of 8 hashes"),
];

/// Documents on which what is found is compared with the truth, and the slow ones are measured, once.
const TRUE_DOCUMENTS: usize = 10_000;
/// What is a near-duplicate: the share of word 5-grams that two documents have in common.
const THRESHOLD: f64 = 0.7;
const NGRAM: usize = 5;

/// All peers of all benchmarks, with their versions.
const REQUIREMENTS: &str = include_str!("../peers/requirements.txt");

/// Text-dedup and datatrove, which need other versions of what the others need.
const PIPELINE_REQUIREMENTS: &str = include_str!("../peers/pipelines-requirements.txt");

/// The row that is not drawn: the one of one thread stands for it.
const ALL_CORES: &str = "lookalike dedup, all cores, verified, all files written";

/// How often each job is run.
const REPEATS: usize = 3;

/// What a job cost.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) megabytes: f64,
    pub(crate) cpu: f64,
    wall: f64,
    pub(crate) peak_kib: f64,
}

/// One of those that are compared.
struct Tool {
    name: String,
    is_slow: bool,
    kind: Kind,
}

enum Kind {
    /// On so many threads, if not on all.
    Lookalike(Option<usize>),
    Gaoya,
    /// A Python, a script, and what the script calls it.
    Script {
        python: String,
        script: &'static str,
        peer: &'static str,
    },
}

/// Prints a table of all; with `plot`, draws it, too.
pub(crate) fn run(documents: usize, work: &Path, alone: bool, plot: Option<&Path>) -> Result<()> {
    let (corpus, small) = (crate::generated(work, documents)?, crate::generated(work, documents.min(TRUE_DOCUMENTS))?);
    let truth = Truth::new(&small)?;
    let tools = tools(work, alone)?;
    let mut rows = Vec::new();
    for tool in &tools {
        let input = if tool.is_slow { &small } else { &corpus };
        let megabytes = fs::metadata(input)?.len() as f64 / 1e6;
        let measured = if tool.is_slow { measure_once } else { measure };
        let row = measured("python3", &tool.name, &tool.command(input, work)?, input, megabytes)?;
        let command = tool.command(&small, work)?;
        if !tool.is_slow {
            ensure!(Command::new(&command[0]).args(&command[1..]).output()?.status.success(), "{} failed", tool.name);
        }
        let found = tool.found(work)?;
        rows.push((row, truth.recall(&found), truth.precision(&found), tool.is_slow));
    }
    print(&rows, documents)?;
    if let Some(path) = plot {
        fs::write(path, draw(&rows)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn tools(work: &Path, alone: bool) -> Result<Vec<Tool>> {
    let tool = |name: &str, is_slow, kind| Tool { name: name.to_owned(), is_slow, kind };
    let mut tools = vec![
        tool("lookalike dedup, one thread, verified, all files written", false, Kind::Lookalike(Some(1))),
        tool(ALL_CORES, false, Kind::Lookalike(None)),
    ];
    if alone {
        return Ok(tools);
    }
    let name = "gaoya 0.2.2 MinHashIndex, word 5-grams, 125 hashes, each document hashed once";
    tools.push(tool(name, false, Kind::Gaoya));
    let python = environment(work)?;
    for (peer, name) in PEERS {
        let kind = Kind::Script { python: python.clone(), script: include_str!("../peers/peers.py"), peer };
        tools.push(tool(name, false, kind));
    }
    let python = environment_of(work, "pipelines-venv", PIPELINE_REQUIREMENTS)?;
    for (peer, name) in PIPELINES {
        let kind = Kind::Script { python: python.clone(), script: include_str!("../peers/pipelines.py"), peer };
        tools.push(tool(name, true, kind));
    }
    Ok(tools)
}

impl Tool {
    fn command(&self, corpus: &Path, work: &Path) -> Result<Vec<String>> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (corpus, found) = (text(corpus), text(&work.join("found")));
        Ok(match &self.kind {
            Kind::Lookalike(threads) => {
                let engine = std::env::current_exe()?.with_file_name("lookalike");
                ensure!(engine.exists(), "{} is not built: cargo build --release", engine.display());
                let output = text(&work.join("out"));
                let fixed = ["dedup", &corpus, "--output", &output, "--replace"].map(str::to_owned);
                let threads = threads.map(|threads| ["--threads".to_owned(), threads.to_string()]);
                std::iter::once(text(&engine)).chain(fixed).chain(threads.into_iter().flatten()).collect()
            }
            Kind::Gaoya => vec![text(&std::env::current_exe()?), "peers-gaoya".to_owned(), corpus, found],
            Kind::Script { python, script, peer } => {
                let path = work.join("peer.py");
                fs::write(&path, script)?;
                vec![python.clone(), text(&path), (*peer).to_owned(), corpus, found, text(&work.join("peer"))]
            }
        })
    }

    /// The documents that it found to have a near-duplicate, by their numbers.
    fn found(&self, work: &Path) -> Result<BTreeSet<usize>> {
        if !matches!(self.kind, Kind::Lookalike(_)) {
            let found = fs::read_to_string(work.join("found"))?;
            return found.lines().map(|number| Ok(number.parse()?)).collect();
        }
        // The later ones of verified pairs, and copies: also those that are kept, as what they are like was dropped.
        let number =
            |id: &str| -> Result<usize> { Ok(id.strip_prefix('d').context("no id of a generated document")?.parse()?) };
        let (mut found, directory) = (BTreeSet::new(), work.join("out"));
        for pair in columns(&directory.join(files::PAIRS.parquet), &["left", "right"])? {
            found.insert(number(&pair[0])?.max(number(&pair[1])?));
        }
        for page in columns(&directory.join(files::PAGES.parquet), &["id", "identity"])? {
            if page[0] != page[1] {
                found.insert(number(&page[0])?);
            }
        }
        Ok(found)
    }
}

/// Which documents have a near-duplicate, by comparing them with all others.
struct Truth {
    with_earlier: BTreeSet<usize>,
    with_any: BTreeSet<usize>,
}

impl Truth {
    fn new(corpus: &Path) -> Result<Truth> {
        let lines = fs::read_to_string(corpus)?;
        let text = |line: &str| -> Result<String> {
            let record: Value = serde_json::from_str(line)?;
            Ok(record["text"].as_str().context("a document without a text")?.to_owned())
        };
        let texts = lines.lines().map(text).collect::<Result<Vec<_>>>()?;
        let pairs = all_pairs(&texts, NGRAM, THRESHOLD, 1);
        let with_earlier = pairs.iter().map(|pair| pair.right).collect();
        let with_any = pairs.iter().flat_map(|pair| [pair.left, pair.right]).collect();
        Ok(Truth { with_earlier, with_any })
    }

    /// The share of documents with an earlier near-duplicate that was found.
    fn recall(&self, found: &BTreeSet<usize>) -> f64 {
        self.with_earlier.intersection(found).count() as f64 / self.with_earlier.len().max(1) as f64
    }

    /// The share of what was found that has a near-duplicate at all.
    fn precision(&self, found: &BTreeSet<usize>) -> f64 {
        self.with_any.intersection(found).count() as f64 / found.len().max(1) as f64
    }
}

/// Runs a job [`REPEATS`] times; the run with the median CPU time counts.
pub(crate) fn measure<A: AsRef<OsStr>>(
    python: &str,
    name: &str,
    command: &[A],
    corpus: &Path,
    megabytes: f64,
) -> Result<Row> {
    let mut rows = Vec::new();
    for _ in 0..REPEATS {
        rows.push(measure_once(python, name, command, corpus, megabytes)?);
    }
    rows.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    Ok(rows.swap_remove(REPEATS / 2))
}

fn measure_once<A: AsRef<OsStr>>(
    python: &str,
    name: &str,
    command: &[A],
    corpus: &Path,
    megabytes: f64,
) -> Result<Row> {
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
    Ok(Row { name: name.to_owned(), megabytes, cpu: number("cpu"), wall: number("wall"), peak_kib: number("peak_kib") })
}

/// The Python of a virtual environment with the peers in it: those of `peers/requirements.txt` and nothing else.
pub(crate) fn environment(work: &Path) -> Result<String> {
    environment_of(work, "peers-venv", REQUIREMENTS)
}

fn environment_of(work: &Path, name: &str, requirements: &str) -> Result<String> {
    let directory = work.join(name);
    let (python, ready) = (directory.join("bin/python"), directory.join("ready"));
    if fs::read_to_string(&ready).ok().as_deref() != Some(requirements) {
        let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory).status()?;
        ensure!(made.success(), "python3 -m venv failed; install python3-venv");
        let list = directory.join("requirements.txt");
        fs::write(&list, requirements)?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
        let installed = Command::new(&python).args(pip).arg(&list).status()?;
        ensure!(installed.success(), "the peers of {} could not be installed", list.display());
        fs::write(&ready, requirements)?;
    }
    Ok(python.to_string_lossy().into_owned())
}

fn print(rows: &[(Row, f64, f64, bool)], documents: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (first, small) = (&rows[0].0, documents.min(TRUE_DOCUMENTS));
    writeln!(out, "{documents} documents, {:.0} MB, one file; median of {REPEATS} runs\n", first.megabytes)?;
    writeln!(
        out,
        "| job | MB per CPU-second | CPU s | wall s | peak memory | lookalike is faster by | recall | precision |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for (row, recall, precision, is_slow) in rows {
        let speed = row.megabytes / row.cpu;
        writeln!(
            out,
            "| {}{} | {:.1} | {:.1} | {:.1} | {:.0} MB | {:.1} × | {recall:.4} | {precision:.4} |",
            row.name,
            if *is_slow { format!(", {small} documents, one run") } else { String::new() },
            speed,
            row.cpu,
            row.wall,
            row.peak_kib * 1024.0 / 1e6,
            first.megabytes / first.cpu / speed,
        )?;
    }
    writeln!(
        out,
        "\nRecall and precision on {small} documents: documents with an earlier one of a similarity of {THRESHOLD} or more that were \
         found, and found ones with any such document"
    )
}

/// Speed as bars, on a scale of powers of ten, with the recall beside each.
fn draw(rows: &[(Row, f64, f64, bool)]) -> String {
    const BAR: usize = 22;
    const GAP: usize = 10;
    const LEFT: usize = 150;
    const WIDTH: f64 = 420.0;
    let speed_of = |row: &Row| row.megabytes / row.cpu;
    let mut rows: Vec<_> = rows.iter().filter(|row| row.0.name != ALL_CORES).collect();
    rows.sort_by(|one, two| speed_of(&two.0).total_cmp(&speed_of(&one.0)));
    let height = rows.len() * (BAR + GAP) + 50;
    let fastest = rows.iter().map(|row| speed_of(&row.0)).fold(1.0, f64::max);
    let length = |speed: f64| (WIDTH * speed / fastest).max(2.0);
    let mut bars = String::new();
    for (number, (row, recall, precision, _)) in rows.iter().enumerate() {
        let (y, speed) = (40 + number * (BAR + GAP), speed_of(row));
        let name = row.name.split([',', ' ']).next().unwrap_or_default();
        let what = if row.name.contains("sets of words") { " (words)" } else { "" };
        let colour = if number == 0 { "#2f7d5b" } else { "#8a94a6" };
        let (middle, end) = (y + BAR * 7 / 10, LEFT as f64 + length(speed));
        let _ = writeln!(
            bars,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{name}{what}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.0}\" height=\"{BAR}\" rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"{middle}\">{speed:.1} · recall {recall:.3} · precision {precision:.3}</text>",
            LEFT - 8,
            length(speed),
            end + 8.0,
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 880 {height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"14\" fill=\"#59636e\"><text x=\"{LEFT}\" y=\"22\" font-weight=\"600\">Near-duplicates in JSON lines: MB per \
         CPU-second</text>\n{bars}</svg>\n"
    )
}
