//! Relevance judgments, carried from one corpus to another.
//!
//! In: judgments of pages of a corpus A, and a corpus B. Out: for each judged page its counterparts in B, found by
//! equal URL and by content, and the judgments of B that follow. Content: pages with the same words, with
//! fingerprints within a distance, or with a band of min-values in common are compared exactly; from a threshold
//! on they are near-duplicates. B goes by once; the judged pages of A stay in memory.

mod frames;
mod ngrams;
mod output;
pub mod qrels;
mod sides;
pub mod urls;

pub use output::{Conflict, NgramRow, Report};

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::names::named;
use crate::observe::Observer;
use crate::report::files;
use crate::work_dir::WorkDir;
use qrels::Judgment;
use sides::{JudgedPages, Side};

/// What is to be carried, and how.
#[derive(Debug, Clone)]
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
    /// Judgments are carried only between near-duplicates, not on a URL alone.
    pub verified_only: bool,
    /// Judgments are carried to every near-duplicate, not to the most similar alone.
    pub all_near: bool,
    /// Which judgment counts where several differ.
    pub on_conflict: OnConflict,
    /// Write into a directory that holds other things.
    pub force: bool,
    /// Worker threads.
    pub threads: usize,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Under the same URL; its content is another.
    Url,
    /// By its content.
    Near,
    /// Both.
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
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counterpart {
    /// The judged page, by number.
    pub(crate) judged: u32,
    pub(crate) id: String,
    pub(crate) url: Option<String>,
    /// Nothing where it is near by some n-grams only, which is for the report and not for judgments.
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

/// Carries judgments over, and writes the result.
///
/// # Errors
/// When something cannot be read or written, judged pages are missing that must not be, or the two sides do not fit
/// together.
pub fn transfer(options: &TransferOptions, observer: &dyn Observer) -> Result<Report> {
    if !(options.threshold > 0.0 && options.threshold <= 1.0) {
        return Err(Error::Usage(format!(
            "--threshold {} is not a similarity: it must be above 0 and at most 1",
            options.threshold
        )));
    }
    let judgments = qrels::read(&options.qrels)?;
    let same = |path: &std::path::Path| path.canonicalize().ok();
    if same(&options.qrels).is_some() && same(&options.qrels) == same(&options.output.join(files::QRELS)) {
        return Err(Error::Usage(format!(
            "{}: the judgments of the result would replace those that are read; choose another --output",
            options.qrels.display()
        )));
    }
    let work = WorkDir::open_for(output::FILES.to_vec(), &options.output, options.force, false)?;
    let read = &options.config.read;
    let (from, to) = (Side::new(&options.from, read)?, Side::new(&options.to, read)?);
    let config = sides::common_config(&from, &to, &options.config)?;
    let judged = JudgedPages::read(&from, &judgments, &config, options, observer)?;
    check_missing(&judged, &judgments, options)?;
    let found = judged.find_in(&to, &config, options, observer)?;
    let report = output::write(&judgments, &judged, &found, options, work.path())?;
    work.publish()?;
    Ok(report)
}

/// Missing pages that are named.
const NAMED: usize = 10;

fn check_missing(judged: &JudgedPages, judgments: &[Judgment], options: &TransferOptions) -> Result<()> {
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    for judgment in judgments {
        if judged.number(&judgment.page).is_none() {
            missing.entry(&judgment.page).or_insert(judgment.line);
        }
    }
    let all = judged.pages.len() + missing.len();
    if missing.is_empty() || (options.allow_missing && missing.len() < all) {
        return Ok(());
    }
    let mut named: Vec<(usize, &str)> = missing.iter().map(|(page, line)| (*line, *page)).collect();
    named.sort_unstable();
    let more = named.len().saturating_sub(NAMED);
    let names: Vec<String> = named.iter().take(NAMED).map(|(line, page)| format!("  line {line}: {page}")).collect();
    let rest = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
    Err(Error::Usage(format!(
        "{}: {} of the {all} judged pages are not in {}:\n{}{rest}\n{}",
        options.qrels.display(),
        missing.len(),
        options.from.join(", "),
        names.join("\n"),
        if missing.len() == all {
            "so there is nothing to carry over; check the ids, or --id-field"
        } else {
            "use --allow-missing to carry over the others alone"
        }
    )))
}
