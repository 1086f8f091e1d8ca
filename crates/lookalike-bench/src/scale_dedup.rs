//! The main job on corpora of growing size, which are made in the process whenever they are read: CPU time per page, memory
//! and disk at their peaks.
//!
//! CPU time is that of the whole process without what its threads spend on making documents. Memory is anonymous memory
//! (`RssAnon`), looked at every few milliseconds; what is mapped from files is not in it. Disk is what is in the work directory
//! and in files without a name, looked at as often as that is cheap.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use lookalike::corpus::Source;
use lookalike::unstable::{MadeBytes, cpu_seconds, dedup_sources, estimate_sources};
use lookalike::{Config, Method, RunOptions, Silent};
use lookalike_bench::corpus::{BLOCK_BYTES, CorpusPlan, EndlessCorpus};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Blocks of a source.
const SOURCE_BLOCKS: u64 = 1024;
/// How often memory is looked at.
const EVERY: Duration = Duration::from_millis(5);
/// How often disk is.
const DISK_EVERY: Duration = Duration::from_millis(500);

/// What is run.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScaleArguments {
    /// Documents, more or less, one run each
    #[arg(long, value_delimiter = ',', default_value = "100000,1000000,10000000")]
    documents: Vec<u64>,
    /// Words of a document, on average
    #[arg(long, default_value_t = 450)]
    words: usize,
    /// The method
    #[arg(long, default_value = "minhash")]
    method: String,
    /// Its threshold [default: its own]
    #[arg(long)]
    threshold: Option<f64>,
    /// The ceiling, in MiB [default: none]
    #[arg(long)]
    memory: Option<u64>,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Where the results go
    #[arg(long, default_value = "target/bench/scale-dedup")]
    work: PathBuf,
    /// Run the first size here, and print what it took
    #[arg(long, hide = true)]
    here: bool,
}

/// What a run took, as it says itself.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    pages: u64,
    pairs: u64,
    kept: u64,
    cpu: f64,
    making: f64,
    blocks: u64,
}

/// Prints a table.
pub(crate) fn run(arguments: &ScaleArguments) -> Result<()> {
    if arguments.here {
        return run_here(arguments);
    }
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| pages | ceiling, MiB | CPU-seconds | making documents | µs per page | anonymous memory, MB | floor, MB | disk, MB | announced, MB | accepted pairs |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for &documents in &arguments.documents {
        let (corpus, _) = sources(arguments, documents)?;
        let (config, options) = (config(arguments)?, options(arguments));
        let estimate = estimate_sources(&config, &options, corpus)?;
        let (run, memory, disk) = measured(arguments, documents)?;
        let cpu = run.cpu - run.making;
        writeln!(
            out,
            "| {} | {} | {cpu:.1} | {:.1} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} | {} |",
            run.pages,
            arguments.memory.map_or_else(|| "none".to_owned(), |mib| mib.to_string()),
            run.making,
            cpu * 1e6 / run.pages as f64,
            memory as f64 / 1e6,
            estimate.memory_floor_bytes as f64 / 1e6,
            disk as f64 / 1e6,
            estimate.disk_bytes as f64 / 1e6,
            run.pairs,
        )?;
        out.flush()?;
    }
    Ok(())
}

/// A run in a process of its own: what it says, and memory and disk at their peaks.
fn measured(arguments: &ScaleArguments, documents: u64) -> Result<(Run, u64, u64)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["scale-dedup", "--here", "--documents", &documents.to_string(), "--method", &arguments.method]);
    command.args(["--words", &arguments.words.to_string(), "--threads", &arguments.threads.to_string()]);
    command.arg("--work").arg(&arguments.work);
    if let Some(threshold) = arguments.threshold {
        command.args(["--threshold", &threshold.to_string()]);
    }
    if let Some(memory) = arguments.memory {
        command.args(["--memory", &memory.to_string()]);
    }
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let (mut memory, mut disk, mut looked) = (0, 0, Instant::now());
    while child.try_wait()?.is_none() {
        memory = memory.max(anonymous_bytes(&child).unwrap_or(0));
        if looked.elapsed() >= DISK_EVERY {
            disk = disk.max(bytes_below(&arguments.work) + nameless_bytes(&child));
            looked = Instant::now();
        }
        thread::sleep(EVERY);
    }
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok((serde_json::from_slice(&output.stdout)?, memory, disk))
}

fn run_here(arguments: &ScaleArguments) -> Result<()> {
    let documents = *arguments.documents.first().context("no size is given")?;
    let (sources, maker) = sources(arguments, documents)?;
    if arguments.work.exists() {
        fs::remove_dir_all(&arguments.work)?;
    }
    fs::create_dir_all(&arguments.work)?;
    let before = cpu_seconds().context("the system does not count CPU time")?;
    let outcome = dedup_sources(&config(arguments)?, &options(arguments), sources, &Silent)?;
    let run = Run {
        pages: outcome.summary.pages,
        pairs: outcome.summary.pairs,
        kept: outcome.summary.kept,
        cpu: cpu_seconds().unwrap_or_default() - before,
        making: maker.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
        blocks: maker.blocks.load(Ordering::Relaxed),
    };
    serde_json::to_writer(io::stdout().lock(), &run)?;
    Ok(())
}

fn config(arguments: &ScaleArguments) -> Result<Config> {
    let method = Method::named(&arguments.method)?;
    Ok(Config::new(arguments.threshold.map_or(method.clone(), |threshold| method.with_threshold(threshold))))
}

fn options(arguments: &ScaleArguments) -> RunOptions {
    let mut options = RunOptions::new(["made"], arguments.work.join("out"));
    options.memory_bytes = arguments.memory.map(|mib| mib << 20);
    options.threads = arguments.threads;
    options.outputs.no_kept = true;
    options
}

/// Sources with so many documents, more or less.
fn sources(arguments: &ScaleArguments, documents: u64) -> Result<(Vec<Source>, Arc<Maker>)> {
    let plan = CorpusPlan { words: arguments.words, ..CorpusPlan::default() };
    let maker =
        Arc::new(Maker { corpus: EndlessCorpus::new(plan), nanoseconds: AtomicU64::new(0), blocks: AtomicU64::new(0) });
    let in_block = maker.corpus.block(1, &mut Vec::new());
    let blocks = documents.div_ceil(in_block);
    let mut sources = Vec::new();
    for first in (0..blocks).step_by(usize::try_from(SOURCE_BLOCKS)?) {
        let stretch = Stretch { maker: Arc::clone(&maker), first, blocks: SOURCE_BLOCKS.min(blocks - first) };
        sources.push(Source::made(&format!("made-{:05}.jsonl", first / SOURCE_BLOCKS), Arc::new(stretch))?);
    }
    Ok((sources, maker))
}

/// Makes documents, and counts what that takes.
struct Maker {
    corpus: EndlessCorpus,
    nanoseconds: AtomicU64,
    blocks: AtomicU64,
}

thread_local! {
    /// The block that this thread made last.
    static LAST: RefCell<(u64, Vec<u8>)> = const { RefCell::new((u64::MAX, Vec::new())) };
}

/// Blocks that follow each other.
struct Stretch {
    maker: Arc<Maker>,
    first: u64,
    blocks: u64,
}

impl std::fmt::Debug for Stretch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} blocks from {} on", self.blocks, self.first)
    }
}

impl MadeBytes for Stretch {
    fn size(&self) -> u64 {
        self.blocks * BLOCK_BYTES as u64
    }

    fn fill(&self, bytes: &mut [u8], offset: u64) {
        let started = thread_time();
        LAST.with_borrow_mut(|(number, block)| {
            let (mut bytes, mut offset) = (bytes, offset);
            while !bytes.is_empty() {
                let wanted = self.first + offset / BLOCK_BYTES as u64;
                if *number != wanted {
                    self.maker.corpus.block(wanted, block);
                    self.maker.blocks.fetch_add(1, Ordering::Relaxed);
                    *number = wanted;
                }
                let from = usize::try_from(offset % BLOCK_BYTES as u64).unwrap_or(0);
                let count = bytes.len().min(BLOCK_BYTES - from);
                let (here, rest) = std::mem::take(&mut bytes).split_at_mut(count);
                here.copy_from_slice(&block[from..from + count]);
                (bytes, offset) = (rest, offset + count as u64);
            }
        });
        self.maker.nanoseconds.fetch_add(thread_time() - started, Ordering::Relaxed);
    }
}

/// CPU time of this thread in nanoseconds.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn anonymous_bytes(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Bytes of the files below a directory, and of those that are made or removed meanwhile, perhaps.
fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let bytes = entries.filter_map(Result::ok).map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// Bytes of open files that have no name.
fn nameless_bytes(child: &Child) -> u64 {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", child.id())) else { return 0 };
    let is_nameless = |path: &Path| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().ends_with("(deleted)"));
    let nameless = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| is_nameless(path));
    nameless.filter_map(|path| fs::metadata(path).ok()).map(|found| found.len()).sum()
}
