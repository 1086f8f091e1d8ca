//! How many groups there are, by threshold and by length of the list (Jain et al. 2005, Figures 4 to 10).

use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::refine::{Refiner, StoredSketch};
use crate::report::numbers::counted;
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{figure, page};
use crate::report::render;

/// Groups by threshold and length, over all lists that are long enough.
#[derive(Debug, Clone, Serialize)]
pub struct Spread {
    /// The thresholds.
    pub thresholds: Vec<f64>,
    /// The lengths.
    pub lengths: Vec<usize>,
    /// Lists of at least each length.
    pub lists: Vec<usize>,
    /// The mean number of groups: by threshold, then by length.
    pub groups: Vec<Vec<f64>>,
    /// Share of near-duplicates at the chosen threshold, by length: least, mean, most.
    pub duplicates: Vec<(f64, f64, f64)>,
}

const THRESHOLDS: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
const LENGTHS: [usize; 10] = [10, 20, 50, 100, 150, 200, 300, 400, 500, 1000];

/// Folds lists at several thresholds and lengths.
///
/// # Errors
/// When the method has no similarity to vary.
pub fn spread(refiner: &Refiner, lists: &[Vec<Option<StoredSketch>>]) -> Result<Spread> {
    if !refiner.config().method.has_similarity_threshold() {
        let reason = format!(
            "varies the similarity, and {} decides by something else; use bloom, minhash or spotsigs",
            refiner.config().method.name()
        );
        return Err(Error::conflict("report", reason));
    }
    let longest = lists.iter().map(Vec::len).max().unwrap_or_default();
    let mut lengths: Vec<usize> = LENGTHS.into_iter().filter(|&length| length < longest).collect();
    lengths.push(longest);
    let long = |length: usize| lists.iter().filter(move |list| list.len() >= length);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut groups = Vec::new();
    for threshold in THRESHOLDS {
        let strict = Refiner::new(refiner.config().with_method(refiner.config().method.with_threshold(threshold)))?;
        let of = |length: usize| {
            let counts: Vec<f64> = long(length).map(|list| strict.fold(&list[..length]).groups.len() as f64).collect();
            mean(&counts)
        };
        groups.push(lengths.iter().map(|&length| of(length)).collect());
    }
    let duplicates = lengths.iter().map(|&length| {
        let shares: Vec<f64> = long(length).map(|list| refiner.fold(&list[..length]).duplicates(length)).collect();
        let ends = (shares.iter().copied().fold(1.0, f64::min), shares.iter().copied().fold(0.0, f64::max));
        (ends.0, mean(&shares), ends.1)
    });
    Ok(Spread {
        thresholds: THRESHOLDS.to_vec(),
        duplicates: duplicates.collect(),
        lists: lengths.iter().map(|&length| long(length).count()).collect(),
        lengths,
        groups,
    })
}

/// Writes it as a page with plots, and as JSON beside it.
///
/// # Errors
/// When a file cannot be written.
pub fn write_report(found: &Spread, refiner: &Refiner, path: &Path) -> Result<()> {
    if path.extension().is_some_and(|ending| ending == "json") {
        return Err(Error::invalid(
            "report",
            path.display(),
            "must name the page; its numbers are written beside it, to a file that ends in .json",
        ));
    }
    let lengths: Vec<f64> = found.lengths.iter().map(|&length| length as f64).collect();
    let by_threshold: Vec<Series> = found
        .thresholds
        .iter()
        .zip(&found.groups)
        .map(|(threshold, groups)| {
            Series::line(
                format!("similarity {threshold}"),
                lengths.iter().copied().zip(groups.iter().copied()).collect(),
            )
        })
        .collect();
    let share = |name: &str, of: fn(&(f64, f64, f64)) -> f64| {
        Series::line(name, lengths.iter().copied().zip(found.duplicates.iter().map(of)).collect())
    };
    let longest = Scale::from_zero(lengths.iter().copied());
    let figures = [
        figure(
            "Groups by length of the list",
            "Jain et al. 2005, Figure 4 (493 results: 56, 220, 317, 328 and 340 groups at 50, 60, 70, 80 and 90 %)",
            "Means over all lists that are long enough.",
            ("results", longest),
            ("groups", longest),
            &by_threshold,
        ),
        figure(
            "Near-duplicates among the first results",
            "Jain et al. 2005, Figures 5 to 10 (7 to 26 % on average among the first 50)",
            format!("At similarity {}: minimum, mean and maximum over all lists.", refiner.config().method.threshold()),
            ("results", longest),
            ("share of near-duplicates", Scale::SHARE),
            &[share("minimum", |row| row.0), share("mean", |row| row.1), share("maximum", |row| row.2)],
        ),
    ];
    let lead = format!(
        "{} of {} or more, folded by {}.",
        counted(found.lists.first().copied().unwrap_or_default() as u64, "list"),
        counted(found.lengths.first().copied().unwrap_or_default() as u64, "result"),
        refiner.config().method.name()
    );
    render::write(path, page("Near-duplicates in search results", &lead, &figures)?)?;
    render::write(&path.with_extension("json"), render::json(found)?)
}
