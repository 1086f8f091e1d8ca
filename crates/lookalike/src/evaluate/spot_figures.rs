//! The figures of the experiments on spot signatures.

use crate::evaluate::figures::points;
use crate::evaluate::metrics::Counts;
use crate::evaluate::spot_experiments::{SpotCost, SpotCostPoint, SpotCurve, SpotExperiments};
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{Figure, figure};

const STRICTLY: &str = "Precision of pages taken for duplicates; recall is strict: the page it was taken for a duplicate of is of its cluster. Mean of three random orders.";

/// One value of each curve.
fn curves(curves: &[SpotCurve], of: fn(&Counts) -> f64, name: &str) -> Vec<Series> {
    let series = curves.iter().map(|curve| {
        let name = if name.is_empty() { curve.name.clone() } else { format!("{name}, {}", curve.name) };
        Series::line(name, points(curve.points.iter().map(|row| (row.0, &row.1)), of))
    });
    series.collect()
}

/// Precision and recall of each curve.
fn both(of: &[SpotCurve]) -> Vec<Series> {
    [curves(of, Counts::precision, "precision"), curves(of, Counts::recall, "recall")].concat()
}

fn costs(of: &[SpotCost], wanted: impl Fn(&str) -> bool, value: fn(&SpotCostPoint) -> f64) -> Vec<Series> {
    let series = of.iter().filter(|cost| wanted(&cost.name)).map(|cost| {
        Series::line(cost.name.clone(), cost.points.iter().map(|point| (point.threshold, value(point))).collect())
    });
    series.collect()
}

/// Wide enough for all values, from zero on, also if they are small.
fn scale(series: &[Series], of: fn(&(f64, f64)) -> f64) -> Scale {
    let most = series.iter().flat_map(|series| &series.points).map(of).fold(0.0, f64::max);
    if most >= 1.0 {
        Scale::from_zero([most].into_iter())
    } else {
        Scale::Linear(0.0, if most > 0.0 { most } else { 1.0 })
    }
}

/// A figure of times: its title, the paper's, and which settings it shows.
type TimeFigure = (&'static str, &'static str, fn(&str) -> bool);

pub(super) fn spots(found: &SpotExperiments) -> Vec<Figure> {
    let x = |series: &[Series]| scale(series, |point| point.0);
    let y = |series: &[Series]| scale(series, |point| point.1);
    let milliseconds: fn(&SpotCostPoint) -> f64 = |point| point.seconds * 1e3;
    let with = format!("Antecedents {}. {STRICTLY}", found.chains[0]);
    let mut figures = Vec::new();
    let ranks = || (1..=found.cosines.len()).map(|rank| rank as f64);
    let cosines = [Series::dots("clusters", ranks().zip(found.cosines.iter().copied()).collect())];
    let mean = found.cosines.iter().sum::<f64>() / found.cosines.len().max(1) as f64;
    figures.push(figure(
        "Mean cosine of the pages of a cluster",
        "Spot signatures, Figure 3 (0.6 on average)",
        format!("Clusters of two or more from low to high; {mean:.2} on average. Words of what is compared, by their frequency."),
        ("cluster", x(&cosines)),
        ("cosine", Scale::SHARE),
        &cosines,
    ));
    for (of, name, paper) in [
        (
            Counts::precision as fn(&Counts) -> f64,
            "precision",
            "Spot signatures, Figures 5, 9 and 11; §3.3.4 and §3.3.5",
        ),
        (Counts::recall, "recall", "Spot signatures, Figures 6, 10 and 12; §3.3.4 and §3.3.5"),
    ] {
        figures.push(figure(
            format!("Spot signatures: {name} by threshold and way of matching"),
            paper,
            with.clone(),
            ("threshold", Scale::SHARE),
            (name, Scale::SHARE),
            &curves(&found.matching, of, ""),
        ));
    }
    figures.push(figure(
        "Spot signatures: one word behind an antecedent or two",
        "Spot signatures, Figures 13 and 14",
        format!("Single chain {}, multi-chain {}. {STRICTLY}", found.chains[0], found.chains[1]),
        ("threshold", Scale::SHARE),
        ("share", Scale::SHARE),
        &both(&found.by_chain),
    ));
    let collisions = [Series::dots("pages with like numbers of collisions", found.collisions.clone())];
    figures.push(figure(
        "Spot signatures: collisions and time of a page",
        "Spot signatures, Figure 15",
        "Incremental matching at 0.9 without the size filter.",
        ("colliding pages", x(&collisions)),
        ("microseconds", y(&collisions)),
        &collisions,
    ));
    let drawn: [TimeFigure; 4] = [
        ("Incremental matching with and without the size filter", "Spot signatures, Figure 16 and Table 1", |name| {
            name.starts_with("incremental, best guess, single")
        }),
        ("Full matching with and without the size filter", "Spot signatures, Figure 17 and Table 1", |name| {
            name.starts_with("full, best guess, single")
        }),
        ("All ways of matching with the size filter", "Spot signatures, Figure 18", |name| {
            name.contains("single chain, size filter")
        }),
        ("One word behind an antecedent or two", "Spot signatures, Figure 20", |name| {
            name.starts_with("incremental, best guess") && name.ends_with("size filter")
        }),
    ];
    for (title, paper, wanted) in drawn {
        let series = costs(&found.costs, wanted, milliseconds);
        figures.push(figure(
            format!("Spot signatures: time. {title}"),
            paper,
            "Matching alone, in one thread; mean of three random orders.",
            ("threshold", Scale::SHARE),
            ("milliseconds", y(&series)),
            &series,
        ));
    }
    let is_drawn = |name: &str| name.starts_with("incremental, best guess") && name.ends_with("size filter");
    let colliding = costs(&found.costs, is_drawn, |point| point.collisions);
    figures.push(figure(
        "Spot signatures: colliding pages with one word behind an antecedent or two",
        "Spot signatures, Figure 19",
        "Pages that share a signature with one that is matched, over all pages.",
        ("threshold", Scale::SHARE),
        ("colliding pages", y(&colliding)),
        &colliding,
    ));
    figures.push(figure(
        "Spot signatures by the number of antecedents",
        "Spot signatures, Figure 21 (threshold 0.7)",
        format!("is, the, said, that, was, a, there, added one by one; distance 3; incremental. {STRICTLY}"),
        ("antecedents", Scale::Linear(1.0, 7.0)),
        ("share", Scale::SHARE),
        &both(&found.antecedents),
    ));
    figures.push(figure(
        "Spot signatures by spot distance",
        "Spot signatures, Figure 22",
        format!("is, the, said; incremental. {STRICTLY}"),
        ("spot distance", Scale::Log(1.0, 1000.0)),
        ("share", Scale::SHARE),
        &both(&found.distances),
    ));
    let growth: Vec<Series> = found
        .growth
        .iter()
        .map(|row| {
            let sizes = row.batches.iter().map(|batch| (batch.0 as f64, batch.1));
            Series::line(format!("threshold {}", row.threshold), sizes.collect())
        })
        .collect();
    figures.push(figure(
        "Spot signatures: how the index grows",
        "Spot signatures, Figure 23",
        "Incremental matching; only pages that are not duplicates enter the index. Mean of three random orders.",
        ("pages matched", x(&growth)),
        ("pages in the index", y(&growth)),
        &growth,
    ));
    let mistakes: Vec<Series> = found
        .growth
        .iter()
        .flat_map(|row| {
            let of = |count: fn(&(usize, f64, f64, f64)) -> f64| {
                row.batches.iter().map(|batch| (batch.0 as f64, count(batch))).collect::<Vec<_>>()
            };
            [
                Series::line(format!("false positives, threshold {}", row.threshold), of(|batch| batch.2)),
                Series::line(format!("all mistakes, threshold {}", row.threshold), of(|batch| batch.2 + batch.3)),
            ]
        })
        .collect();
    figures.push(figure(
        "Spot signatures: mistakes in each batch of 100 pages",
        "Spot signatures, Figures 24 and 25",
        "False positives, and with them the pages that were taken for new although their cluster was there.",
        ("pages matched", x(&mistakes)),
        ("mistakes in the batch", y(&mistakes)),
        &mistakes,
    ));
    figures
}
