//! The names of the files in a result directory. They stand here and nowhere else.

use std::path::Path;

/// A table: always written as Parquet, on request also as JSON lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFiles {
    /// The Parquet file.
    pub parquet: &'static str,
    /// The JSON lines file.
    pub jsonl: &'static str,
}

macro_rules! table {
    ($name:literal) => {
        TableFiles { parquet: concat!($name, ".parquet"), jsonl: concat!($name, ".jsonl") }
    };
}

/// The directory that a run works in until its result is complete.
pub const WORK: &str = ".lookalike-work";
/// In [`WORK`], what says which job has been done so far.
pub(crate) const READ_KEY: &str = "read-key";
/// Every page of the input.
pub const PAGES: TableFiles = table!("pages");
/// What became of every page.
pub const CLUSTERS: TableFiles = table!("clusters");
/// What was learnt to be frame.
pub const FRAMES: TableFiles = table!("frames");
/// Accepted pairs.
pub const PAIRS: TableFiles = table!("pairs");
/// Rejected pairs that were close.
pub const NEAR_MISSES: TableFiles = table!("near_misses");
/// Pages that were dropped because another corpus has them.
pub const AGAINST: TableFiles = table!("against");
/// The directory with the input without the dropped pages.
pub const KEPT: &str = "kept";
/// In [`WORK`], which files of [`KEPT`] are whole.
pub(crate) const KEPT_WHOLE: &str = "read-kept-whole";
/// In [`KEPT`], the list of kept page files.
pub const KEPT_LIST: &str = "kept.txt";
/// The directory with the dropped records.
pub const REMOVED: &str = "removed";
/// What they were dropped for.
pub const REMOVED_RECORDS: TableFiles = table!("removed");
/// The directory with all records, and what became of each.
pub const ANNOTATED: &str = "annotated";
/// Captures of one URL over time.
pub const CAPTURES: TableFiles = table!("captures");
/// The dataset card.
pub const CARD: &str = "README.md";
/// Where the dataset card goes if somebody else's file has its name.
pub const CARD_ASIDE: &str = "README.lookalike.md";
/// The page for people.
pub const REPORT: &str = "report.html";
/// Records that could not be used.
pub const SKIPPED: &str = "skipped.jsonl";
/// What varies between runs of the same job.
pub const RUN: &str = "run.json";
/// Counts and config; a directory with this file holds a complete result.
pub const SUMMARY: &str = "summary.json";

/// Tags, notes and decisions of people. A new run does not touch it.
pub const WORKBENCH: &str = "workbench.sqlite";
/// What people decided about groups, one decision per line.
pub const DECISIONS: &str = "decisions.jsonl";
/// What the workbench has prepared; it can be made again.
pub const WORKBENCH_INDEX: &str = ".lookalike-workbench";
/// What people made of a result: it stays where it is when the result is made again.
pub(crate) const OF_PEOPLE: [&str; 5] =
    [WORKBENCH, "workbench.sqlite-wal", "workbench.sqlite-shm", DECISIONS, WORKBENCH_INDEX];

/// Transferred judgments.
pub const QRELS: &str = "qrels.txt";
/// The counterparts of judged pages.
pub const MAPPING: TableFiles = table!("mapping");
/// Transferred judgments that disagree.
pub const CONFLICTS: &str = "conflicts.jsonl";
/// Judged pages that are alike and were judged differently.
pub const CONTRADICTIONS: &str = "contradictions.jsonl";

/// Whether a run that was killed or failed can go on with what it left in its `output`.
#[must_use]
pub fn can_resume(output: &Path) -> bool {
    output.join(WORK).join(READ_KEY).exists()
}

/// Whether a directory holds a complete result of ours, of whatever kind.
#[must_use]
pub(crate) fn is_result(directory: &Path) -> bool {
    std::fs::read(directory.join(SUMMARY)).is_ok_and(|bytes| {
        serde_json::from_slice::<serde_json::Value>(&bytes).is_ok_and(|summary| summary.get("lookalike").is_some())
    })
}
