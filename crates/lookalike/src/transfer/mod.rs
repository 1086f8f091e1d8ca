//! Relevance judgments, transferred from one corpus to another.
//!
//! In: judgments of pages of a corpus A, and a corpus B. Out: for each judged page its counterparts in B, found by
//! equal URL and by content, and the judgments of B that follow. Content: pages with the same words, with
//! fingerprints within a distance, or with a band of min-values in common are compared exactly; from a threshold
//! on they are near-duplicates. B is read once; the judged pages of A stay in memory.

mod contradictions;
mod counterparts;
mod judged;
mod ngrams;
mod output;
pub mod parts;
pub mod qrels;
mod side;
pub mod urls;

pub use contradictions::Contradiction;
pub use output::{Claim, Conflict, NgramFound, NgramRow, Report};
pub use urls::DomainRule;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::Config;
use crate::error::{Error, Result, first_names};
use crate::job::RunOptions;
use crate::method::Simhash;
use crate::names::named;
use crate::observe::Observer;
use crate::report::files;
use crate::work_dir::WorkDir;
use counterparts::{CounterpartSearch, Counterparts};
use judged::JudgedPages;
use qrels::Judgment;
use side::Side;

/// What is transferred, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TransferOptions {
    /// The judgments.
    pub qrels: PathBuf,
    /// The corpus they are about: files of pages, or an index.
    pub from: Vec<String>,
    /// The other corpus.
    pub to: Vec<String>,
    /// Where the result goes.
    pub output: PathBuf,
    /// How pages are read and fingerprinted.
    pub config: Config,
    /// The similarity from which pages are near-duplicates.
    pub threshold: f64,
    /// Judged pages may be missing from A.
    pub allow_missing: bool,
    /// Judgments are transferred only between near-duplicates, not on a URL alone.
    pub verified_only: bool,
    /// Judgments are transferred to every near-duplicate, not only to the most similar one.
    pub all_near: bool,
    /// Which judgment counts where several differ.
    pub on_conflict: OnConflict,
    /// What shared URLs are counted by in the report.
    pub domains: DomainRule,
    /// Write into a directory that holds other things.
    pub force: bool,
    /// Replace a result of other judgments, corpora or settings.
    pub replace: bool,
    /// Worker threads.
    pub threads: usize,
}

impl TransferOptions {
    /// The similarity from which pages are near-duplicates, where none is given.
    pub const THRESHOLD: f64 = 0.7;

    /// Transfers to the most similar page, from [`THRESHOLD`](Self::THRESHOLD) on, with default threads. Every judged page must be
    /// in `from`.
    #[must_use]
    pub fn new(qrels: PathBuf, from: Vec<String>, to: Vec<String>, output: PathBuf) -> TransferOptions {
        TransferOptions {
            qrels,
            from,
            to,
            output,
            config: Config::new(Simhash::default()),
            threshold: TransferOptions::THRESHOLD,
            allow_missing: false,
            verified_only: false,
            all_near: false,
            on_conflict: OnConflict::Nearest,
            domains: DomainRule::default(),
            force: false,
            replace: false,
            threads: RunOptions::default_threads(),
        }
    }
}

impl TransferOptions {
    /// What decides the result, as a number.
    fn job(&self, judgments: &[Judgment]) -> String {
        let TransferOptions { from, to, config, threshold, allow_missing, verified_only, all_near, .. } = self;
        let flags = (threshold, allow_missing, verified_only, all_near, self.on_conflict, &self.domains);
        let text = format!("{judgments:?} {from:?} {to:?} {:016x} {flags:?}", config.hash());
        format!("{:016x}", xxh3_64(text.as_bytes()))
    }
}

named! {
    /// Which of several different judgments of one page counts.
    pub enum OnConflict {
        /// That of the most similar page; of equally similar ones the highest
        Nearest = "nearest",
        /// The highest
        Highest = "highest",
        /// The lowest
        Lowest = "lowest",
    }
}

/// How a counterpart was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Way {
    /// By its URL only; the content differs.
    Url,
    /// By its content only.
    Near,
    /// By both.
    Both,
}

impl Way {
    /// The name in the files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Url => "url",
            Way::Near => "near",
            Way::Both => "both",
        }
    }
}

/// A judged page and a page of the other corpus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counterpart {
    /// The judged page, by number.
    pub(crate) judged: u32,
    pub(crate) id: String,
    pub(crate) url: Option<String>,
    /// None where it is near by some n-grams only, which counts in the report and not for judgments.
    pub(crate) way: Option<Way>,
    /// Differing bits of the fingerprints, where both have one.
    pub(crate) distance: Option<u32>,
    /// Exact similarity, where both texts are at hand.
    pub(crate) similarity: Option<f64>,
    /// Lengths of n-grams at which fingerprints are near: bit n − 1.
    pub(crate) near_fingerprints: u8,
    /// Lengths of n-grams at which the exact similarity reaches the threshold.
    pub(crate) near_sets: u8,
}

/// Transfers judgments, and writes the result.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// # let named = |name: &str| vec![at(name).to_string_lossy().into_owned()];
/// use lookalike::Silent;
/// use lookalike::transfer::{TransferOptions, transfer};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
/// std::fs::write(at("old.jsonl"), format!("{{\"id\": \"old-1\", \"text\": \"{story}\"}}\n")).unwrap();
/// std::fs::write(at("new.jsonl"), format!("{{\"id\": \"new-7\", \"text\": \"{story} (Photo)\"}}\n")).unwrap();
/// std::fs::write(at("qrels.txt"), "1 0 old-1 2\n").unwrap();
///
/// let options = TransferOptions::new(at("qrels.txt"), named("old.jsonl"), named("new.jsonl"), at("out"));
/// transfer(&options, &Silent)?;
/// assert_eq!(std::fs::read_to_string(at("out/qrels.txt")).unwrap(), "1 0 new-7 2\n");
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # Errors
/// When something cannot be read or written, judged pages are missing that must not be, or the two sides do not fit
/// together.
pub fn transfer(options: &TransferOptions, observer: &dyn Observer) -> Result<Report> {
    let (judgments, work) = start(options)?;
    let read = &options.config.read;
    let (from, to) = (Side::new(&options.from, read)?, Side::new(&options.to, read)?);
    let config = side::common_config(&from, &to, &options.config)?;
    let config = side::with_frames(config, [&from, &to], options.threads, observer)?;
    let judged = JudgedPages::read(&from, &judgments, &config, options, observer)?;
    check_missing(&judged, &judgments, options)?;
    let search = CounterpartSearch::new(&judged, &config, options);
    let found = Counterparts::find(&search, &to, &config, options, observer)?;
    let report = output::write(&judgments, &search, &found, options, work.path())?;
    work.publish()?;
    Ok(report)
}

/// The judgments, and where the result goes.
fn start(options: &TransferOptions) -> Result<(Vec<Judgment>, WorkDir)> {
    if !(options.threshold > 0.0 && options.threshold <= 1.0) {
        return Err(Error::invalid("threshold", options.threshold, "must be above 0 and at most 1"));
    }
    let judgments = qrels::read(&options.qrels)?;
    let same = |path: &std::path::Path| path.canonicalize().ok();
    if same(&options.qrels).is_some() && same(&options.qrels) == same(&options.output.join(files::QRELS)) {
        let reason = format!(
            "the judgments of the result would replace {}, which is read; choose another directory",
            options.qrels.display()
        );
        return Err(Error::conflict("output", reason));
    }
    let work = WorkDir::open(output::FILES.to_vec(), &options.output, options.force, false)?;
    if !options.replace && output::is_of_other_job(work.output(), &options.job(&judgments)) {
        return Err(Error::OtherResult { path: options.output.clone() });
    }
    Ok((judgments, work))
}

fn check_missing(judged: &JudgedPages, judgments: &[Judgment], options: &TransferOptions) -> Result<()> {
    let mut missing: BTreeMap<&str, u64> = BTreeMap::new();
    for judgment in judgments {
        if judged.number(&judgment.page).is_none() {
            missing.entry(&judgment.page).or_insert(judgment.line);
        }
    }
    let all = judged.pages.len() + missing.len();
    if missing.is_empty() || (options.allow_missing && missing.len() < all) {
        return Ok(());
    }
    let mut by_line: Vec<(u64, &str)> = missing.iter().map(|(page, line)| (*line, *page)).collect();
    by_line.sort_unstable();
    let names: Vec<String> = by_line.iter().map(|(line, page)| format!("line {line}: {page}")).collect();
    let remedy = if missing.len() == all {
        "so there is nothing to transfer; check the ids, or name the field that has them with `id_field`"
    } else {
        "use `allow_missing` to transfer the judgments of the others"
    };
    let reason = format!(
        "{} of the {all} judged pages are not in {}:\n{}\n{remedy}",
        missing.len(),
        options.from.join(", "),
        first_names(&names)
    );
    Err(Error::bad_input(&options.qrels, reason))
}
