//! How many groups and near-duplicates lists have, by threshold and by length (Jain et al. 2005, Figures 4 to 10).
//!
//! In: the sketches of lists. Out: a [`Spread`], and a page of figures with all numbers as JSON and CSV beside it. A list
//! counts at a length if it has that many results.

use std::path::Path;

use serde::Serialize;

use crate::config::ClusterMode;
use crate::error::{Error, Result};
use crate::refine::examples::folded_results;
use crate::refine::{Folded, ListSketches, Lists, Refiner, StoredSketch};
use crate::report::numbers::counted;
use crate::report::plots::chart::{COLOURS, Scale, Series};
use crate::report::plots::figures::{Figure, csv, figure, page};
use crate::report::render;

/// Groups and near-duplicates of some lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// The similarities.
    pub thresholds: Vec<f64>,
    /// The lengths.
    pub lengths: Vec<usize>,
    /// Lists of at least each length.
    pub lists: Vec<usize>,
    /// The mean number of groups: by similarity, then by length.
    pub groups: Vec<Vec<f64>>,
    /// The mean share of near-duplicates: by similarity, then by length.
    pub duplicates: Vec<Vec<f64>>,
    /// Near-duplicates in each list, at the chosen threshold.
    pub by_list: Vec<ListSpread>,
    /// Near-duplicates among the first results, at the chosen threshold.
    pub first: Vec<FirstResults>,
}

/// Near-duplicates in one list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListSpread {
    /// The query or topic, or the list's number.
    pub name: String,
    /// Lengths, and how many of so many first results are near-duplicates of a better one.
    pub duplicates: Vec<(usize, usize)>,
}

/// Shares of near-duplicates among the first results of the lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FirstResults {
    /// How many results of each list are looked at.
    pub results: usize,
    /// Lists that have so many.
    pub lists: usize,
    /// The least share.
    pub minimum: f64,
    /// The mean share.
    pub mean: f64,
    /// The largest share.
    pub maximum: f64,
}

/// The paper's degrees of similarity.
const THRESHOLDS: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
/// Lengths at which lists are looked at.
const LENGTHS: [usize; 17] = [10, 20, 30, 40, 50, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1000];
/// The paper's longest list in the figures of engines.
const FIRST_MOST: usize = 50;

/// The lengths at which a list of `length` results is looked at: the usual ones, and its own.
fn lengths(length: usize) -> Vec<usize> {
    LENGTHS.into_iter().filter(|&usual| usual < length).chain((length > 0).then_some(length)).collect()
}

/// The number of groups among the first results of a list, for each length.
fn groups(refiner: &Refiner, list: &[Option<StoredSketch>], lengths: &[usize]) -> Vec<usize> {
    if refiner.config().groups.cluster == ClusterMode::Star {
        // What a result is folded under depends on better results alone.
        let folded = refiner.fold(list);
        return lengths.iter().map(|&length| folded.groups.partition_point(|group| group.best < length)).collect();
    }
    lengths.iter().map(|&length| refiner.fold(&list[..length]).groups.len()).collect()
}

fn share(groups: usize, length: usize) -> f64 {
    (length - groups) as f64 / length.max(1) as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Folds lists at several similarities and lengths. `sketches` are those of the results of `lists`.
///
/// # Errors
/// When the method has no similarity to vary.
pub fn spread(refiner: &Refiner, lists: &Lists, sketches: &ListSketches) -> Result<Spread> {
    let method = &refiner.config().method;
    if !method.has_similarity_threshold() {
        let reason = format!(
            "varies the similarity, and {} decides by something else; use bloom, minhash or spotsigs",
            method.name()
        );
        return Err(Error::conflict("report", reason));
    }
    let longest = sketches.iter().map(Vec::len).max().unwrap_or_default();
    let all = lengths(longest);
    let reached = |list: &Vec<Option<StoredSketch>>| all.partition_point(|&length| length <= list.len());
    let (mut mean_groups, mut mean_shares) = (Vec::new(), Vec::new());
    for threshold in THRESHOLDS {
        let strict = Refiner::new(refiner.config().with_method(method.with_threshold(threshold)))?;
        let (mut counts, mut shares) = (vec![Vec::new(); all.len()], vec![Vec::new(); all.len()]);
        for list in sketches {
            let here = &all[..reached(list)];
            for (at, found) in groups(&strict, list, here).into_iter().enumerate() {
                counts[at].push(found as f64);
                shares[at].push(share(found, here[at]));
            }
        }
        mean_groups.push(counts.iter().map(|counts| mean(counts)).collect());
        mean_shares.push(shares.iter().map(|shares| mean(shares)).collect());
    }
    let of_list = |(at, list): (usize, &Vec<Option<StoredSketch>>)| {
        let name = lists.lists.get(at).and_then(|list| list.name.clone());
        let here = lengths(list.len());
        let found = groups(refiner, list, &here);
        let duplicates = here.into_iter().zip(found).map(|(length, groups)| (length, length - groups)).collect();
        ListSpread { name: name.unwrap_or_else(|| format!("list {}", at + 1)), duplicates }
    };
    let by_list: Vec<ListSpread> = sketches.iter().enumerate().map(of_list).collect();
    let first = lengths(longest.min(FIRST_MOST)).into_iter().map(|results| {
        let long = sketches.iter().filter(|list| list.len() >= results);
        let shares = long.map(|list| share(groups(refiner, &list[..results], &[results])[0], results));
        FirstResults::new(results, &shares.collect::<Vec<f64>>())
    });
    Ok(Spread {
        thresholds: THRESHOLDS.to_vec(),
        lists: all.iter().map(|&length| sketches.iter().filter(|list| list.len() >= length).count()).collect(),
        groups: mean_groups,
        duplicates: mean_shares,
        by_list,
        first: first.collect(),
        lengths: all,
    })
}

impl FirstResults {
    fn new(results: usize, shares: &[f64]) -> FirstResults {
        FirstResults {
            results,
            lists: shares.len(),
            minimum: shares.iter().copied().fold(1.0, f64::min),
            mean: mean(shares),
            maximum: shares.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// Writes it as a page with plots and the folded results of `lists`, and beside it all numbers as JSON and all points as CSV.
///
/// # Errors
/// When a file cannot be written.
pub fn write_report(found: &Spread, refiner: &Refiner, lists: &Lists, folded: &[Folded], path: &Path) -> Result<()> {
    render::check_page_name(path)?;
    let threshold = refiner.config().method.threshold();
    let mut figures = Vec::from(by_similarity(found));
    figures.extend(by_list(found, threshold));
    figures.push(first_results(found, threshold));
    let lead = format!(
        "{} of {} or more, folded by {}.",
        counted(found.lists.first().copied().unwrap_or_default() as u64, "list"),
        counted(found.lengths.first().copied().unwrap_or_default() as u64, "result"),
        refiner.config().method.name()
    );
    render::write(path, page("Near-duplicates in search results", &lead, &figures, &[folded_results(lists, folded)])?)?;
    render::write(&path.with_extension("json"), render::json(found)?)?;
    render::write(&path.with_extension("csv"), csv(&figures))
}

fn by_similarity(found: &Spread) -> [Figure; 2] {
    let lengths = || found.lengths.iter().map(|&length| length as f64);
    let longest = Scale::from_zero(lengths());
    let series = |rows: &[Vec<f64>]| -> Vec<Series> {
        let named = found.thresholds.iter().zip(rows);
        named
            .map(|(threshold, row)| {
                Series::line(format!("similarity {threshold}"), lengths().zip(row.iter().copied()).collect())
            })
            .collect()
    };
    let note = "Means over all lists that are long enough.";
    [
        figure(
            "Groups by similarity and length of the list",
            "Jain et al. 2005, Figure 4 (493 results: 56, 220, 317, 328 and 340 groups at 50, 60, 70, 80 and 90 %)",
            note,
            ("results", longest),
            ("groups", longest),
            &series(&found.groups),
        ),
        figure(
            "Near-duplicates by similarity and length of the list",
            "Jain et al. 2005, Figure 4 (493 results: 88 % of them at 50 %, 31 % at 90 %)",
            note,
            ("results", longest),
            ("share of near-duplicates", Scale::SHARE),
            &series(&found.duplicates),
        ),
    ]
}

/// One curve for each list, as many in a figure as there are colours.
fn by_list(found: &Spread, threshold: f64) -> Vec<Figure> {
    let points = || found.by_list.iter().flat_map(|list| &list.duplicates);
    let x = Scale::from_zero(points().map(|point| point.0 as f64));
    let y = Scale::from_zero(points().map(|point| point.1 as f64));
    let parts = found.by_list.chunks(COLOURS);
    let count = parts.len();
    parts
        .enumerate()
        .map(|(at, lists)| {
            let series = lists.iter().map(|list| {
                let points = list.duplicates.iter().map(|&(length, duplicates)| (length as f64, duplicates as f64));
                Series::line(list.name.clone(), points.collect())
            });
            let part = if count > 1 { format!(", part {} of {count}", at + 1) } else { String::new() };
            figure(
                format!("Near-duplicates in each list{part}"),
                "Jain et al. 2005, Figures 5 to 7 (24 to 44 % of all results of popular queries, 16 to 28 % of less popular ones, 18 % of random ones)",
                format!("At similarity {threshold}: how many of the first results are near-duplicates of a better one."),
                ("results", x),
                ("near-duplicates", y),
                &series.collect::<Vec<_>>(),
            )
        })
        .collect()
}

fn first_results(found: &Spread, threshold: f64) -> Figure {
    let series = |name: &str, of: fn(&FirstResults) -> f64| {
        Series::line(name, found.first.iter().map(|row| (row.results as f64, of(row))).collect())
    };
    figure(
        "Near-duplicates among the first results",
        "Jain et al. 2005, Figures 8 to 10 (7 to 26 % on average among the first 50)",
        format!("At similarity {threshold}: minimum, mean and maximum over all lists that are long enough."),
        ("results", Scale::from_zero(found.first.iter().map(|row| row.results as f64))),
        ("share of near-duplicates", Scale::SHARE),
        &[series("minimum", |row| row.minimum), series("mean", |row| row.mean), series("maximum", |row| row.maximum)],
    )
}
