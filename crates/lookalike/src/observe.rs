//! What a run reports to whoever watches it. The library itself never prints.

use crate::error::SkippedRecord;

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
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}
