//! A person's judgment of a result, where there is no gold standard (Henzinger 2006, §3.1).
//!
//! In: a result. Out: a sample of its pairs and near misses, equally many from strata of nearness and site, as a page
//! for judging. In again: the judgments. Out: precision in each stratum with its confidence interval, over all
//! strata, the tables of the study, and the threshold that reaches a wanted precision, tested on judgments that it was
//! not chosen by.

mod judge;
mod strata;
mod tables;

pub use judge::{Audit, StratumScores, Suggestion, judge, write_report};
pub use strata::{Level, StratifyBy, Stratum};
pub use tables::{LevelScores, StudyTables, TableRow, Verdicts};

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use askama::Template;
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::evaluate::method_run::temporary_directory;
use crate::page::{PageId, PageOrigin, PageVec, ScoredPair};
use crate::report::diff::{SideBySide, side_by_side};
use crate::report::files;
use crate::report::render;
use crate::report::stored::{self, StoredPages, StoredSummary, texts};
use crate::spill::Scratch;
use crate::text::{PageReader, TextOptions};

/// A result with its pairs in strata.
struct Population {
    _work: TempDir,
    stored: StoredPages,
    summary: StoredSummary,
    strata: BTreeMap<Stratum, Vec<ScoredPair>>,
}

impl Population {
    fn open(directory: &Path, by: StratifyBy) -> Result<Population> {
        let work = temporary_directory()?;
        let (summary, stored) = stored::open(directory, work.path())?;
        let mut strata: BTreeMap<Stratum, Vec<ScoredPair>> = BTreeMap::new();
        let mut scratch = Scratch::default();
        let mut sites = PageVec::new();
        for page in stored.pages.all() {
            let site =
                stored.pages.strings(page, &mut scratch)?.url.and_then(|url| summary.config.pairs.site.site(url));
            sites.push(site.map(|site| xxh3_64(site.as_bytes())));
        }
        let has_text = |page: PageId| stored.pages.origin(page) != PageOrigin::IndexRow;
        for (name, accepted) in [(files::PAIRS, true), (files::NEAR_MISSES, false)] {
            for pair in stored.pairs(directory, name)? {
                if !has_text(pair.left) || !has_text(pair.right) {
                    continue; // a row of an index, which nobody can look at
                }
                let same = sites[pair.left].zip(sites[pair.right]).map(|(a, b)| a == b);
                let level = Level::of(&pair, summary.config.method.unit(), by);
                strata.entry(Stratum::new(accepted, level, same)).or_default().push(pair);
            }
        }
        if strata.is_empty() {
            let reason = "the result has no pairs to judge: only exact copies, or none at all";
            return Err(Error::bad_input(directory, reason));
        }
        Ok(Population { _work: work, stored, summary, strata })
    }

    fn key(&self, pair: &ScoredPair, seed: u64) -> Result<u64> {
        let (left, right) = (self.stored.pages.id(pair.left)?, self.stored.pages.id(pair.right)?);
        Ok(xxh3_64(format!("{seed}\t{left}\t{right}").as_bytes()))
    }

    /// A sample of `wanted` pairs: as many from every stratum, or all where it has fewer.
    fn sample(&self, wanted: usize, seed: u64) -> Result<Vec<(Stratum, ScoredPair)>> {
        let mut shares: BTreeMap<&Stratum, usize> = self.strata.keys().map(|stratum| (stratum, 0)).collect();
        let mut left = wanted;
        while left > 0 {
            let open: Vec<&Stratum> =
                self.strata.iter().filter(|(stratum, pairs)| shares[stratum] < pairs.len()).map(|row| row.0).collect();
            if open.is_empty() {
                break;
            }
            let each = (left / open.len()).max(1);
            for stratum in open {
                let more = each.min(self.strata[stratum].len() - shares[stratum]).min(left);
                *shares.entry(stratum).or_default() += more;
                left -= more;
            }
        }
        let mut drawn = Vec::new();
        for (stratum, pairs) in &self.strata {
            let mut keyed = pairs.iter().map(|pair| Ok((self.key(pair, seed)?, *pair))).collect::<Result<Vec<_>>>()?;
            keyed.sort_by_key(|row| (row.0, row.1.left, row.1.right));
            for (key, pair) in keyed.into_iter().take(shares[stratum]) {
                drawn.push((key.rotate_left(32), stratum.clone(), pair));
            }
        }
        // Mixed, so that whoever judges does not know what comes.
        drawn.sort_by_key(|row| (row.0, row.2.left, row.2.right));
        Ok(drawn.into_iter().map(|row| (row.1, row.2)).collect())
    }
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    pairs: Vec<PairView>,
    key: String,
    rubric: Vec<String>,
    version: &'static str,
}

/// When two pages are the same page, for whoever judges (Henzinger 2006, §3.1).
const RUBRIC: &str = "Same: the text differs only in a session id, a time stamp, an execution time, a message id, a visitor count, a server name, or all or part of the URL.
Same: no visitor sees the difference.
Same: the difference is a combination of these.
Same: both are entry pages to the same site.
Different: the main item differs, for example the product in the middle of two pages of a shop.
Unsure: anything else, such as a form with other values in it, another minor item at the side or the bottom, or a pair that cannot be judged.";

/// What a sample is drawn by, and how it is shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SampleOptions {
    /// Pairs.
    pub pairs: usize,
    /// Seeds the draw.
    pub seed: u64,
    /// What the pairs are divided by; of every stratum equally many are drawn.
    pub by: StratifyBy,
    /// When two pages are the same page, one rule per line, instead of those of Henzinger (2006).
    pub rubric: Option<String>,
}

impl Default for SampleOptions {
    fn default() -> SampleOptions {
        SampleOptions { pairs: 120, seed: 1, by: StratifyBy::Method, rubric: None }
    }
}

/// A sample that was drawn: the pairs in the order in which they are judged, by the ids of their pages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrawnSample {
    /// The pairs.
    pub pairs: Vec<(String, String)>,
    /// When two pages are the same page, one rule per line.
    pub rubric: String,
}

/// Draws a sample of the pairs and near misses of the result in `directory`, mixed, so that nothing about a pair tells what the
/// program decided.
///
/// # Errors
/// When the directory is not a result, or has no pairs.
pub fn draw(directory: &Path, options: &SampleOptions) -> Result<DrawnSample> {
    let population = Population::open(directory, options.by)?;
    let drawn = population.sample(options.pairs, options.seed)?;
    let id = |page: PageId| population.stored.pages.id(page);
    let pairs = drawn.iter().map(|(_, pair)| Ok((id(pair.left)?, id(pair.right)?))).collect::<Result<_>>()?;
    Ok(DrawnSample { pairs, rubric: options.rubric.as_deref().unwrap_or(RUBRIC).to_owned() })
}

/// What whoever judges sees of a pair: not how similar the program finds it, nor what it takes the difference for.
struct PairView {
    left: SideView,
    right: SideView,
    sides: SideBySide,
    /// Whether a page is longer than what is shown of it.
    is_cut: bool,
}

struct SideView {
    id: String,
    url: Option<String>,
    title: String,
}

/// Text of a page that is shown.
const TEXT_BYTES: usize = 100_000;

/// The page on which a sample of the result in `directory` is judged; also how many pairs it has.
///
/// # Errors
/// When the directory is not a result, has no pairs, or its pages are gone.
pub fn page(directory: &Path, options: &SampleOptions) -> Result<(String, usize)> {
    let population = Population::open(directory, options.by)?;
    let drawn = population.sample(options.pairs, options.seed)?;
    let needed: BTreeSet<PageId> = drawn.iter().flat_map(|(_, pair)| [pair.left, pair.right]).collect();
    let needed: Vec<PageId> = needed.into_iter().collect();
    let raw = texts::load(&population.stored, &population.summary, &needed)?;
    let mut reader = PageReader::new(TextOptions::default());
    let mut text = |page: PageId| {
        let mut text = raw.get(&page).map(|raw| reader.text(raw)).unwrap_or_default();
        let is_cut = text.len() > TEXT_BYTES;
        text.truncate(text.floor_char_boundary(TEXT_BYTES));
        (text, is_cut)
    };
    let side = |page: PageId| {
        let mut scratch = Scratch::default();
        let strings = population.stored.pages.strings(page, &mut scratch)?;
        let title = strings.title.unwrap_or_default().to_owned();
        Ok::<SideView, Error>(SideView { id: strings.id.to_owned(), url: strings.url.map(str::to_owned), title })
    };
    let mut pairs = Vec::new();
    for (_, pair) in &drawn {
        let (left, right) = (side(pair.left)?, side(pair.right)?);
        let (texts, is_cut) = {
            let (one, other) = (text(pair.left), text(pair.right));
            ((one.0, other.0), one.1 || other.1)
        };
        pairs.push(PairView { left, right, sides: side_by_side(&texts.0, &texts.1), is_cut });
    }
    let count = pairs.len();
    let drawn_ids: String = pairs.iter().map(|pair| format!("{}\t{}\n", pair.left.id, pair.right.id)).collect();
    let html = AuditPage {
        pairs,
        // Another sample is another page, whatever it is called.
        key: format!("lookalike-audit-{:016x}", xxh3_64(drawn_ids.as_bytes())),
        rubric: options.rubric.as_deref().unwrap_or(RUBRIC).lines().map(str::to_owned).collect(),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok((render::html(&html)?, count))
}
