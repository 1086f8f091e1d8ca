//! What a run reports to whoever watches it. The library itself never prints.

use crate::error::{Error, Result, SkippedRecord};

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Features are counted in the whole corpus, where a method needs that.
    Count,
    /// Pages are read, tokenised and sketched.
    Read,
    /// Identity sets and candidate pairs are found.
    Candidates,
    /// Candidate pages are read again and compared.
    Verify,
    /// Groups are formed.
    Cluster,
    /// The output files are written.
    Write,
}

impl Stage {
    /// The stage's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stage::Count => "count",
            Stage::Read => "read",
            Stage::Candidates => "candidates",
            Stage::Verify => "verify",
            Stage::Cluster => "cluster",
            Stage::Write => "write",
        }
    }
}

/// Watches a run: every method may be left out.
///
/// ```
/// use lookalike::{Observer, Stage};
///
/// struct Stages;
///
/// impl Observer for Stages {
///     fn start(&self, stage: Stage, total: u64) {
///         eprintln!("{}: {total} bytes or pages", stage.name());
///     }
/// }
/// ```
pub trait Observer: Sync {
    /// A stage starts; `total` units of work (bytes or pages) are known to be ahead, or 0.
    fn start(&self, stage: Stage, total: u64) {
        let _ = (stage, total);
    }
    /// `done` units of the current stage are done, and `pages` pages have come by.
    fn advance(&self, done: u64, pages: u64) {
        let _ = (done, pages);
    }
    /// A record was skipped.
    fn skipped(&self, record: &SkippedRecord) {
        let _ = record;
    }
    /// The current stage is over.
    fn finish(&self, stage: Stage) {
        let _ = stage;
    }
    /// Whether the run is to stop. It is asked often, between batches of pages and between stages; the run then ends
    /// with [`Error::Cancelled`](crate::Error::Cancelled).
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// use lookalike::{Config, Error, Observer, RunOptions};
    ///
    /// struct Switch(AtomicBool);
    ///
    /// impl Observer for Switch {
    ///     fn is_cancelled(&self) -> bool {
    ///         self.0.load(Ordering::Relaxed)
    ///     }
    /// }
    ///
    /// std::fs::write(at("pages.jsonl"), r#"{"text": "Once upon a time"}"#).unwrap();
    /// let switch = Switch(AtomicBool::new(true));
    /// let ended = lookalike::dedup(&Config::default(), &RunOptions::new([at("pages.jsonl")], at("out")), &switch);
    /// assert!(matches!(ended, Err(Error::Cancelled)));
    /// ```
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Fails if the run is to stop.
pub(crate) fn check_cancelled(observer: &dyn Observer) -> Result<()> {
    if observer.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}
