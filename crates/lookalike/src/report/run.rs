//! `run.json`: what varies between runs of the same job. Times, memory, host, versions.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::error::Result;
use crate::observe::Stage;
use crate::report::{files, render};

/// What one stage took.
#[derive(Debug, Clone, Copy)]
pub struct StageUse {
    /// The stage.
    pub stage: Stage,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// CPU time of all threads since the stage before, where the system reports it.
    pub cpu_seconds: Option<f64>,
    /// Units of work: bytes for reading and verifying, pages for writing.
    pub units: u64,
}

/// What a run was given.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts<'a> {
    /// What was done to which files, as a number; none where the same files are not to be found again.
    pub job: Option<u64>,
    /// The inputs, as they were named.
    pub inputs: &'a [String],
    /// The output directory.
    pub output: &'a Path,
    /// Ceiling on memory, in bytes.
    pub memory_bytes: u64,
    /// Worker threads.
    pub threads: usize,
    /// Bytes of all sources on disk.
    pub input_bytes: u64,
    /// What could have gone to disk for lack of memory, and whether it did.
    pub spilled: &'a [(&'a str, bool)],
}

/// Collects the stages of a run.
pub struct Resources {
    started: Instant,
    stages: Vec<StageUse>,
    /// CPU time up to the last stage.
    cpu_seconds: Option<f64>,
}

impl Resources {
    /// From now on.
    #[must_use]
    pub fn start() -> Resources {
        Resources { started: Instant::now(), stages: Vec::new(), cpu_seconds: cpu_seconds() }
    }

    /// A stage is over.
    pub fn add(&mut self, stage: Stage, elapsed: Duration, units: u64) {
        let now = cpu_seconds();
        let cpu_seconds = now.zip(self.cpu_seconds).map(|(now, before)| now - before);
        self.cpu_seconds = now;
        self.stages.push(StageUse { stage, elapsed, cpu_seconds, units });
    }

    /// Writes `run.json` into `directory`, and hands the stages on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(self, directory: &Path, facts: &RunFacts<'_>) -> Result<Vec<StageUse>> {
        let stages: Vec<_> = self
            .stages
            .iter()
            .map(|row| {
                let (seconds, cpu_seconds) = (row.elapsed.as_secs_f64(), row.cpu_seconds);
                json!({"stage": row.stage.name(), "seconds": seconds, "cpu_seconds": cpu_seconds, "units": row.units})
            })
            .collect();
        let run = json!({
            "lookalike": env!("CARGO_PKG_VERSION"),
            "job": facts.job.map(job_name),
            "seconds": self.started.elapsed().as_secs_f64(),
            "cpu_seconds": cpu_seconds(),
            "peak_memory_bytes": peak_memory_bytes(),
            "memory_limit_bytes": facts.memory_bytes,
            "threads": facts.threads,
            "input_bytes": facts.input_bytes,
            "inputs": facts.inputs,
            "output": facts.output.to_string_lossy(),
            "stages": stages,
            "spilled_to_disk": facts.spilled.iter().filter(|row| row.1).map(|row| row.0).collect::<Vec<_>>(),
            "host": {
                "name": read_line("/proc/sys/kernel/hostname"),
                "os": std::env::consts::OS,
                "arch": std::env::consts::ARCH,
                "cpus": std::thread::available_parallelism().map_or(1, usize::from),
            },
        });
        render::write(&directory.join(files::RUN), render::json(&run)?)?;
        Ok(self.stages)
    }
}

fn job_name(job: u64) -> String {
    format!("{job:016x}")
}

/// Whether the result in `directory` was made by this job, which is over.
pub(crate) fn is_of_job(directory: &Path, job: Option<u64>) -> bool {
    let run = std::fs::read(directory.join(files::RUN)).unwrap_or_default();
    let run: serde_json::Value = serde_json::from_slice(&run).unwrap_or_default();
    job.is_some_and(|job| run["job"] == job_name(job))
}

fn read_line(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// User and system time of this process, where the system reports it.
#[must_use]
pub fn cpu_seconds() -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0; // fixed for programs by the Linux ABI
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

/// The most memory this process had, where the system reports it.
#[must_use]
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
