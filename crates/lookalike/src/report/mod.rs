//! Groups → files: tables, kept records, numbers, and a page for people.
//!
//! In: [`Findings`]. Out: a directory. Everything but `run.json` is the same, byte for byte,
//! whenever the job is.

pub mod blocks;
pub mod comparison;
pub mod diff;
pub mod index_plots;
pub(crate) mod links;
pub(crate) mod numbers;
pub mod outputs;
pub(crate) mod plots;
pub(crate) mod render;
pub mod run;
pub(crate) mod sinks;
pub mod skipped;
pub(crate) mod stored;
pub mod summary;
pub mod table;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::candidate::inverted::Collisions;
use crate::cluster::Fates;
use crate::cluster::decided::DecisionReport;
use crate::cluster::identity::IdentitySets;
use crate::config::Config;
use crate::error::Result;
pub(crate) use crate::files;
use crate::observe::Observer;
use crate::page::{PageId, PageOrigin, PageVec};
use crate::page_table::PageTable;
use crate::plan::{Decision, Plan};
use crate::read::Corpus;
use crate::verify::Verified;
pub use outputs::OutputOptions;
use sinks::SinkContext;
pub(crate) use sinks::result_files;
use skipped::Skipped;
use summary::{Capped, FilterReport, SizeFilterReport, SourceFile, Summary, TableReport, Thresholds, UnreadRanks};

/// Everything that a run found.
pub struct Findings<'a> {
    /// The config.
    pub config: &'a Config,
    /// The method's plan.
    pub plan: &'a Plan,
    /// The sources.
    pub reading: &'a Corpus,
    /// The pages.
    pub pages: &'a PageTable,
    /// Identity sets.
    pub sets: &'a IdentitySets,
    /// Compared pairs.
    pub verified: &'a Verified,
    /// What became of each page.
    pub fates: &'a Fates,
    /// For each page the page with the smallest id in its component.
    pub component: &'a PageVec<PageId>,
    /// Candidate pairs.
    pub candidates: u64,
    /// Candidate pages.
    pub candidate_pages: u64,
    /// How often pages met in an inverted index, and how often its size filter refused them.
    pub collisions: Option<Collisions>,
    /// The number of bit tables, and the distance up to which they miss nothing.
    pub tables: Option<(usize, u32)>,
    /// What is expected of the Bloom filters.
    pub filters: Option<FilterReport>,
    /// Pages that got another id.
    pub repeated_ids: u64,
    /// Files that are not pages.
    pub ignored_files: u64,
    /// Results of earlier runs that were not read.
    pub results_not_read: &'a [String],
    /// Records that are not pages, by what they are.
    pub other_records: &'a BTreeMap<String, u64>,
    /// Pages of HTML by the part of them that was compared.
    pub scopes: &'a BTreeMap<String, u64>,
    /// Records that could not be used.
    pub skipped: &'a Skipped,
    /// Pages whose rank could not be read.
    pub unread_ranks: Option<&'a UnreadRanks>,
    /// Sources, also those without pages.
    pub source_count: u64,
    /// Their size on disk.
    pub source_bytes: u64,
    /// The earlier run, where this one only clusters its pairs again.
    pub earlier: Option<Earlier>,
    /// Another corpus, and what its pages are called there.
    pub against: Option<(&'a Path, &'a HashMap<PageId, String>)>,
}

/// What a second clustering takes over from the run before it.
pub struct Earlier {
    /// The threshold of the second clustering.
    pub threshold: f64,
    /// What decided there.
    pub decision: Decision,
    /// The thresholds that were asked for.
    pub asked: Thresholds,
    /// What counts from then on, in words.
    pub rule: String,
    /// Files that hold many pages each.
    pub files: Vec<SourceFile>,
    /// Crowded buckets, in total.
    pub capped_buckets: u64,
    /// The largest of them.
    pub capped: Vec<Capped>,
    /// Antecedents that were chosen from the corpus.
    pub antecedents: Vec<String>,
    /// How bits were searched.
    pub tables: Option<TableReport>,
    /// What the size filter saved.
    pub size_filter: Option<SizeFilterReport>,
    /// What became of a person's decisions.
    pub decisions: Option<DecisionReport>,
}

impl Findings<'_> {
    /// The source of a page, as its path was given; for a row of an index that is the index.
    pub(crate) fn source_path(&self, page: PageId) -> Cow<'_, str> {
        match (self.pages.origin(page), self.against) {
            (PageOrigin::IndexRow, Some((index, _))) => index.to_string_lossy(),
            _ => Cow::Borrowed(&self.reading.source(self.pages.place(page).source).display),
        }
    }

    /// Groups of two pages or more by their kept page, largest first.
    #[must_use]
    pub fn cluster_sizes(&self) -> Vec<(PageId, u64)> {
        let mut sizes = PageVec::filled(self.fates.len(), 0u32);
        self.fates.all_kept().iter().for_each(|&kept| sizes[kept] += 1);
        let groups = PageId::counting().zip(sizes).filter(|row| row.1 > 1);
        let mut groups: Vec<(PageId, u64)> = groups.map(|(kept, size)| (kept, u64::from(size))).collect();
        groups.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        groups
    }
}

/// Writes the result into `directory`, from where it is moved to `output`: everything but `skipped.jsonl`, which is written
/// while records are read, and `run.json`, which is written last.
///
/// # Errors
/// When something cannot be read again or written.
pub fn write(
    findings: &Findings<'_>,
    directory: &Path,
    output: &Path,
    options: OutputOptions,
    observer: &dyn Observer,
) -> Result<Summary> {
    let summary = Summary::new(findings, options)?;
    sinks::write(findings, directory, &SinkContext { summary: &summary, output, options, observer })?;
    Ok(summary)
}

/// Writes a result that clusters the pairs of the one in `earlier` again: what depends on the clusters is written,
/// the rest is copied.
///
/// # Errors
/// When something cannot be read again or written.
pub fn write_again(
    findings: &Findings<'_>,
    earlier: &Path,
    directory: &Path,
    output: &Path,
    options: OutputOptions,
    observer: &dyn Observer,
) -> Result<Summary> {
    let summary = Summary::new(findings, options)?;
    sinks::write_again(findings, earlier, directory, &SinkContext { summary: &summary, output, options, observer })?;
    Ok(summary)
}
