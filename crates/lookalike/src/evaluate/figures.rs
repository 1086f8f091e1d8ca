//! The figures of an evaluation, each with the figure or table of a paper that it corresponds to.

use crate::evaluate::experiments::Experiments;
use crate::evaluate::metrics::Counts;
use crate::evaluate::report::cells::number;
use crate::evaluate::spot_figures::spots;
use crate::evaluate::{Evaluation, MethodEvaluation};
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{Figure, figure};

/// Points of a curve, where something was found at all.
pub(super) fn points<'a>(
    rows: impl Iterator<Item = (f64, &'a Counts)>,
    of: impl Fn(&Counts) -> f64,
) -> Vec<(f64, f64)> {
    rows.filter(|row| row.1.correct + row.1.wrong > 0).map(|(x, counts)| (x, of(counts))).collect()
}

/// Precision and recall as two curves.
fn two(rows: &[(f64, Counts)]) -> [Series; 2] {
    let rows = || rows.iter().map(|(x, counts)| (*x, counts));
    [
        Series::line("precision", points(rows(), Counts::precision)),
        Series::line("recall", points(rows(), Counts::recall)),
    ]
}

/// All of them.
pub(super) fn figures(found: &Evaluation, more: &Experiments) -> Vec<Figure> {
    let mut figures = vec![precision_against_recall(found)];
    figures.extend(found.methods.iter().map(against_threshold));
    figures.extend(degrees(more));
    figures.extend(term_differences(more));
    figures.extend(b_and_c(more));
    figures.extend(combined(more));
    figures.extend(ngrams(more));
    figures.extend(found.methods.iter().find(|row| row.name == "simhash").map(distances));
    figures.extend(more.spots.iter().flat_map(spots));
    figures
}

fn precision_against_recall(found: &Evaluation) -> Figure {
    let series: Vec<Series> = found
        .methods
        .iter()
        .map(|row| {
            let cuts = row.sweep.iter().filter(|cut| cut.pairs.correct + cut.pairs.wrong > 0);
            Series::line(
                format!("{}{}", row.method, capped(row)),
                cuts.map(|cut| (cut.pairs.recall(), cut.pairs.precision())).collect(),
            )
        })
        .collect();
    figure(
        "Precision against recall, all methods",
        "Henzinger 2006, Figure 7 (which has it for the combined method); Manku et al. 2007, Figure 1",
        "Each point is a threshold; pairs of pages, exact copies included.",
        ("recall", Scale::SHARE),
        ("precision", Scale::SHARE),
        &series,
    )
}

/// A mark at the name of a method whose loosest run may miss pairs.
fn capped(row: &MethodEvaluation) -> &'static str {
    if row.is_loosest_capped { " (* crowded buckets by leaders)" } else { "" }
}

fn threshold_scale(row: &MethodEvaluation) -> Scale {
    let ends = (row.sweep.first(), row.sweep.last());
    let (Some(first), Some(last)) = ends else { return Scale::SHARE };
    let (from, to) = (first.threshold.min(last.threshold), first.threshold.max(last.threshold));
    Scale::Linear(from, if to > from { to } else { from + 1.0 })
}

fn against_threshold(row: &MethodEvaluation) -> Figure {
    let paper = match row.name {
        "spotsigs" => "Spot signatures, Figures 5 and 6",
        "simhash" => "Manku et al. 2007, Figure 1",
        "combined" => "Henzinger 2006, Figure 6",
        "shingle" => "Henzinger 2006, Table 2",
        "projection" | "routed" => "Henzinger 2006, Table 5",
        "bloom" => "no figure of Jain et al. 2005, which has no labels",
        _ => "no figure of the papers",
    };
    let cuts: Vec<(f64, Counts)> = row.sweep.iter().map(|cut| (cut.threshold, cut.pairs)).collect();
    let [precision, recall] = two(&cuts);
    let f1 = Series::line("F1", points(cuts.iter().map(|cut| (cut.0, &cut.1)), Counts::f1));
    figure(
        format!("{}{}: precision and recall against the threshold", row.method, capped(row)),
        paper,
        format!("The default is {}; F1 is best at {}.", row.threshold, number(&row.best.threshold)),
        (row.unit, threshold_scale(row)),
        ("share", Scale::SHARE),
        &[precision, recall, f1],
    )
}

fn degrees(more: &Experiments) -> Option<Figure> {
    let series: Vec<Series> = more
        .degrees
        .iter()
        .map(|row| {
            let name = match row.exponent {
                Some(exponent) => format!("{} (exponent {exponent:.2}, mean {:.1})", row.method, row.mean),
                None => row.method.to_owned(),
            };
            Series::dots(name, row.pages.iter().map(|(&degree, &pages)| (degree as f64, pages as f64)).collect())
        })
        .collect();
    let all = || series.iter().flat_map(|series| &series.points);
    all().next()?;
    Some(figure(
        "How many near-duplicates a page has",
        "Henzinger 2006, Figures 1 and 3 (exponents −1.3 and −1.4, means 135 and 92)",
        "Both axes are logarithmic; the exponent is the slope of the line of least squares. Copies count once.",
        ("near-duplicates of a page", Scale::powers(all().map(|point| point.0))),
        ("pages", Scale::powers(all().map(|point| point.1))),
        &series,
    ))
}

/// Words of a difference that one point stands for, and the longest that is drawn.
const TERM_STEP: usize = 10;
const MOST_TERMS: usize = 200;

fn term_differences(more: &Experiments) -> Option<Figure> {
    let series: Vec<Series> = more
        .differences
        .iter()
        .filter(|row| !row.words.is_empty())
        .map(|row| {
            let share = |from: usize| {
                let here = row.words.iter().filter(|&&words| words >= from && words < from + TERM_STEP).count();
                (from as f64, here as f64 / row.words.len() as f64)
            };
            let median = row.words[row.words.len() / 2];
            let beyond = row.words.iter().filter(|&&words| words >= MOST_TERMS).count();
            let name = format!("{} (median {median}, {beyond} of {} at {MOST_TERMS} or more)", row.method, row.sampled);
            Series::line(name, (0..MOST_TERMS).step_by(TERM_STEP).map(share).collect())
        })
        .collect();
    series.first()?;
    Some(figure(
        "Term differences of accepted pairs",
        "Henzinger 2006, Figures 2 and 4 (medians 11 and 7)",
        format!(
            "Words that only one page has, in steps of {TERM_STEP}; a sample of the accepted pairs of each method, copies left out."
        ),
        ("differing words", Scale::Linear(0.0, MOST_TERMS as f64)),
        ("share of the pairs", Scale::SHARE),
        &series,
    ))
}

fn b_and_c(more: &Experiments) -> Option<Figure> {
    let found = more.b_and_c.as_ref()?;
    let series: Vec<Series> = found
        .bits_by_supershingles
        .iter()
        .map(|(supershingles, bits)| {
            let pairs: u64 = bits.values().sum();
            let mean = bits.iter().map(|(&bits, &count)| f64::from(bits) * count as f64).sum::<f64>() / pairs as f64;
            // In ranges of four bits: single values are few.
            let mut ranges: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
            bits.iter().for_each(|(&bits, &count)| *ranges.entry(bits / 4 * 4).or_default() += count);
            let name = format!("{supershingles} supershingles (mean {mean:.1} bits, {pairs} pairs)");
            Series::line(
                name,
                ranges.iter().map(|(&bits, &count)| (f64::from(bits), count as f64 / pairs as f64)).collect(),
            )
        })
        .collect();
    series.first()?;
    let note = found
        .supershingles_by_bits
        .iter()
        .map(|(range, mean, pairs)| format!("{range} bits: {mean:.2} supershingles on average ({pairs} pairs)"))
        .collect::<Vec<_>>()
        .join("; ");
    Some(figure(
        "Equal bits of pairs with equal supershingles",
        "Henzinger 2006, Figure 5, Tables 9 and 10 (means 331.5, 342.4, 352.4, 358.9, 370.9 for 2 to 6 supershingles)",
        note,
        ("equal bits", Scale::Linear(264.0, 384.0)),
        ("share of the pairs", Scale::SHARE),
        &series,
    ))
}

fn combined(more: &Experiments) -> Option<Figure> {
    let tables = more.combined.as_ref()?;
    let points = tables.curve.iter().map(|point| (point.stay, point.precision)).collect();
    Some(figure(
        "Combined: precision against the share of Algorithm B's correct pairs that stay",
        "Henzinger 2006, Figure 7 and Table 11",
        "Each point is a threshold of equal bits, on the first half of the labels.",
        ("correct pairs that stay (R)", Scale::SHARE),
        ("precision", Scale::SHARE),
        &[Series::line("combined", points)],
    ))
}

fn ngrams(more: &Experiments) -> Option<Figure> {
    let mut series = Vec::new();
    for method in ["simhash", "minhash"] {
        let rows: Vec<(f64, Counts)> =
            more.ngrams.iter().filter(|row| row.method == method).map(|row| (row.ngram as f64, row.pairs)).collect();
        if rows.is_empty() {
            continue;
        }
        let [mut precision, mut recall] = two(&rows);
        precision.name = format!("{method}: precision");
        recall.name = format!("{method}: recall");
        series.extend([precision, recall]);
    }
    series.first()?;
    Some(figure(
        "Precision and recall by n-gram length",
        "ClueWeb slides: quality rises and fewer are found as n-grams grow longer",
        "At the methods' default thresholds.",
        ("words in an n-gram", Scale::Linear(1.0, 8.0)),
        ("share", Scale::SHARE),
        &series,
    ))
}

fn distances(row: &MethodEvaluation) -> Figure {
    let exactly = row.levels.iter().filter_map(|level| {
        let distance: f64 = level.level.parse().ok()?;
        Some((distance, level.correct as f64 / level.pairs as f64))
    });
    let cuts: Vec<(f64, Counts)> = row.sweep.iter().map(|cut| (cut.threshold, cut.pairs)).collect();
    let [mut precision, mut recall] = two(&cuts);
    precision.name = "precision up to it".to_owned();
    recall.name = "recall up to it".to_owned();
    figure(
        "SimHash at each distance",
        "Manku et al. 2007, Figure 1 (precision and recall near 0.75 at distance 3)",
        "Precision of the pairs at exactly this distance, and of all up to it.",
        ("differing bits", Scale::Linear(0.0, 12.0)),
        ("share", Scale::SHARE),
        &[Series::line("precision at exactly this distance", exactly.collect()), precision, recall],
    )
}
