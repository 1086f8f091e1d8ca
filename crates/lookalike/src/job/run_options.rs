//! Where a run reads and writes, and what it may use.

use std::path::PathBuf;

use crate::machine;
use crate::report::OutputOptions;
use crate::report::run::RunFacts;

/// Where a run reads and writes, and what it may use. Nothing in here changes what is decided about pages.
///
/// ```
/// use lookalike::RunOptions;
///
/// let mut options = RunOptions::new(["crawl/*.warc.gz"], "out");
/// options.memory_bytes = Some(4 << 30);
/// options.strict = true;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// Files, directories, globs, or `-`.
    pub inputs: Vec<String>,
    /// The output directory.
    pub output: PathBuf,
    /// Ceiling on memory, in bytes, all of which may be used. Without one, what can be in files is there beyond some 250 MB,
    /// and the run is refused if it needs more than half of the machine.
    pub memory_bytes: Option<u64>,
    /// Worker threads.
    pub threads: usize,
    /// Stop at the first record that cannot be used.
    pub strict: bool,
    /// Write into a directory that is not ours.
    pub force: bool,
    /// Replace a result of other inputs or settings.
    pub replace: bool,
    /// What is written besides the tables, and how.
    pub outputs: OutputOptions,
    /// Go on with what a killed run has done.
    pub resume: bool,
    /// Files with the examples that seeded matching starts from.
    pub seeds: Vec<String>,
    /// A result or an index: what it has is dropped.
    pub against: Option<PathBuf>,
}

impl RunOptions {
    /// A run with the default memory and threads, and nothing unusual.
    #[must_use]
    pub fn new(inputs: impl IntoIterator<Item: Into<String>>, output: impl Into<PathBuf>) -> RunOptions {
        RunOptions {
            inputs: inputs.into_iter().map(Into::into).collect(),
            output: output.into(),
            memory_bytes: None,
            threads: RunOptions::default_threads(),
            strict: false,
            force: false,
            replace: false,
            outputs: OutputOptions::default(),
            resume: false,
            seeds: Vec::new(),
            against: None,
        }
    }

    /// Half of the memory of the machine or container, or 2 GiB if the system does not report it.
    #[must_use]
    pub fn default_memory_bytes() -> u64 {
        machine::memory_bytes().map_or(2 << 30, |bytes| bytes / 2)
    }

    /// The memory that must not be exceeded.
    #[must_use]
    pub fn memory_limit(&self) -> u64 {
        self.memory_bytes.unwrap_or_else(RunOptions::default_memory_bytes)
    }

    /// As many threads as there are processors.
    #[must_use]
    pub fn default_threads() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// What `run.json` says of it.
    pub(crate) fn facts<'a>(
        &'a self,
        job: Option<u64>,
        input_bytes: u64,
        spilled: &'a [(&'a str, bool)],
    ) -> RunFacts<'a> {
        RunFacts {
            job,
            inputs: &self.inputs,
            output: &self.output,
            memory_bytes: self.memory_limit(),
            threads: self.threads,
            input_bytes,
            spilled,
        }
    }
}
