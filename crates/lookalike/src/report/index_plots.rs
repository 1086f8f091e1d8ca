//! How the fingerprints of an index are spread, as drawings and as numbers (Manku et al. 2007, §4.2).

use crate::index::stats::IndexStats;
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{self, Figure, figure};
use crate::report::plots::{columns, standalone};

const LEADING: &str = "Leading 1-bits of the XOR of neighbouring fingerprints";
const PARTS: &str = "Fingerprints in each 1/128 of the space";

/// The two plots of §4.2 as SVG files, and what they show as a table: a name and the text of each.
///
/// Neighbours are those of the sorted list; equal ones have no differing bit and are not counted. The parts of the space
/// count every row, so that many rows with one fingerprint are a spike.
#[must_use]
pub fn index_plots(stats: &IndexStats) -> [(&'static str, String); 3] {
    let leading = format!("{LEADING} (Manku et al. 2007, figure 2a)");
    let parts = format!("{PARTS} (Manku et al. 2007, figure 2b)");
    let first: Vec<u64> = stats.leading_bits.iter().rev().copied().collect();
    let place = "place of the leading 1-bit, from the highest";
    let part = "1/128 of the space";
    let points = [
        points(LEADING, "Manku et al. 2007, Figure 2a", (place, "pairs of neighbours"), &first),
        points(PARTS, "Manku et al. 2007, Figure 2b", (part, "fingerprints"), &stats.parts),
    ];
    [
        ("leading-bits.svg", standalone(&leading, &columns(&leading, place, &first, 8))),
        ("buckets.svg", standalone(&parts, &columns(&parts, part, &stats.parts, 16))),
        ("plots.csv", figures::csv(&points)),
    ]
}

/// Counts as a figure, numbered from 0.
fn points(title: &str, paper: &'static str, (x, y): (&str, &str), counts: &[u64]) -> Figure {
    let points: Vec<(f64, f64)> = counts.iter().enumerate().map(|(at, count)| (at as f64, *count as f64)).collect();
    let scales = (Scale::from_zero(points.iter().map(|at| at.0)), Scale::from_zero(points.iter().map(|at| at.1)));
    figure(title, paper, "", (x, scales.0), (y, scales.1), &[Series::dots("", points)])
}
