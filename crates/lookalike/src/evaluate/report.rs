//! The evaluation as a page with tables and plots, and as JSON beside it.

use std::path::Path;

use askama::Template;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::evaluate::experiments::{Experiments, experiments};
use crate::evaluate::gold::Gold;
use crate::evaluate::labels::Labels;
use crate::evaluate::metrics::Counts;
use crate::evaluate::{EvaluateOptions, Evaluation, MethodEvaluation, evaluate_keeping};
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{Figure, figure};

#[derive(Template)]
#[template(path = "evaluation.html")]
struct Page<'a> {
    found: &'a Evaluation,
    more: &'a Experiments,
    figures: Vec<Figure>,
    inputs: String,
    has_equal_recall: bool,
    is_capped: bool,
    has_splits: bool,
    has_sites: bool,
    version: &'static str,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    evaluation: &'a Evaluation,
    experiments: &'a Experiments,
}

/// Evaluates, and writes the page to `path` and everything as JSON to the same path with the ending `json`.
///
/// # Errors
/// As [`evaluate`](super::evaluate); also when a file cannot be written.
pub fn write_report(
    gold: &Gold,
    options: &EvaluateOptions,
    path: &Path,
    announce: &dyn Fn(&str),
) -> Result<Evaluation> {
    if path.extension().is_some_and(|ending| ending == "json") {
        let expected = "names the page; the JSON file is written beside it, with the ending json";
        return Err(Error::invalid("report", path.display(), expected));
    }
    let (evaluation, runs) = evaluate_keeping(gold, options, true, announce)?;
    let Some(first) = runs.first() else { return Ok(evaluation) };
    let labels = Labels::new(gold, &first.run.stored, first.run.config.pairs.site, options.allow_missing)?;
    let more = experiments(options, &runs, &labels, announce)?;
    let any = |test: fn(&MethodEvaluation) -> bool| evaluation.methods.iter().any(test);
    let page = Page {
        found: &evaluation,
        more: &more,
        figures: figures(&evaluation, &more),
        inputs: options.inputs.join(", "),
        has_equal_recall: any(|row| row.equal_recall.is_some()),
        is_capped: any(|row| row.is_capped),
        has_splits: any(|row| !row.splits().is_empty()),
        has_sites: any(|row| !row.sites.is_empty()),
        version: env!("CARGO_PKG_VERSION"),
    };
    let html = page.render().map_err(|error| Error::internal(format!("the page could not be rendered: {error}")))?;
    std::fs::write(path, html).map_err(Error::io(path, "write"))?;
    let beside = path.with_extension("json");
    let json = serde_json::to_string_pretty(&Written { evaluation: &evaluation, experiments: &more })
        .map_err(|error| Error::internal(format!("an evaluation does not serialise: {error}")))?;
    std::fs::write(&beside, json + "\n").map_err(Error::io(&beside, "write"))?;
    Ok(evaluation)
}

/// Points of a curve, where something was found at all.
fn points<'a>(rows: impl Iterator<Item = (f64, &'a Counts)>, of: impl Fn(&Counts) -> f64) -> Vec<(f64, f64)> {
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

fn figures(found: &Evaluation, more: &Experiments) -> Vec<Figure> {
    let mut figures = vec![precision_against_recall(found)];
    figures.extend(found.methods.iter().map(against_threshold));
    figures.extend(degrees(more));
    figures.extend(term_differences(more));
    figures.extend(b_and_c(more));
    figures.extend(combined(found));
    figures.extend(ngrams(more));
    figures.extend(found.methods.iter().find(|row| row.method == "simhash").map(distances));
    figures.extend(spots(more));
    figures
}

fn precision_against_recall(found: &Evaluation) -> Figure {
    let series: Vec<Series> = found
        .methods
        .iter()
        .map(|row| {
            let cuts = row.sweep.iter().filter(|cut| cut.pairs.correct + cut.pairs.wrong > 0);
            Series::line(row.method, cuts.map(|cut| (cut.pairs.recall(), cut.pairs.precision())).collect())
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

fn threshold_scale(row: &MethodEvaluation) -> Scale {
    let ends = (row.sweep.first(), row.sweep.last());
    let (Some(first), Some(last)) = ends else { return Scale::SHARE };
    let (from, to) = (first.threshold.min(last.threshold), first.threshold.max(last.threshold));
    Scale::Linear(from, if to > from { to } else { from + 1.0 })
}

fn against_threshold(row: &MethodEvaluation) -> Figure {
    let paper = match row.method {
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
        format!("{}: precision and recall against the threshold", row.method),
        paper,
        format!("The default is {}; F1 is best at {}.", row.threshold, cells::number(&row.best.threshold)),
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

fn combined(found: &Evaluation) -> Option<Figure> {
    let row = found.methods.iter().find(|row| row.method == "combined")?;
    let b = found.methods.iter().find(|row| row.method == "shingle")?;
    let cuts = row.sweep.iter().filter(|cut| cut.pairs.correct + cut.pairs.wrong > 0);
    let points =
        cuts.map(|cut| (cut.pairs.correct as f64 / b.pairs.correct.max(1) as f64, cut.pairs.precision())).collect();
    Some(figure(
        "Combined: precision against the share of Algorithm B's correct pairs that stay",
        "Henzinger 2006, Figure 7 and Table 11",
        "Each point is a threshold of equal bits.",
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

fn spots(more: &Experiments) -> Vec<Figure> {
    let Some(found) = &more.spots else { return Vec::new() };
    let antecedents: Vec<(f64, Counts)> = found.antecedents.iter().map(|row| (row.0 as f64, row.1)).collect();
    let distances: Vec<(f64, Counts)> = found.distances.iter().map(|row| (f64::from(row.0), row.1)).collect();
    let curve = |of: fn(&Counts) -> f64| {
        let curves = found
            .matching
            .iter()
            .map(|curve| Series::line(curve.name.clone(), points(curve.points.iter().map(|row| (row.0, &row.1)), of)));
        curves.collect::<Vec<_>>()
    };
    let growth: Vec<Series> = found
        .growth
        .iter()
        .map(|row| {
            let sizes = row.batches.iter().map(|batch| (batch.0 as f64, batch.1 as f64));
            Series::line(format!("threshold {}", row.threshold), sizes.collect())
        })
        .collect();
    let mistakes: Vec<Series> = found
        .growth
        .iter()
        .flat_map(|row| {
            let of = |count: fn(&(usize, usize, usize, usize)) -> usize| {
                row.batches.iter().map(|batch| (batch.0 as f64, count(batch) as f64)).collect::<Vec<_>>()
            };
            [
                Series::line(format!("false positives, threshold {}", row.threshold), of(|batch| batch.2)),
                Series::line(format!("all mistakes, threshold {}", row.threshold), of(|batch| batch.2 + batch.3)),
            ]
        })
        .collect();
    let all = |series: &[Series], y: bool| {
        let values: Vec<f64> =
            series.iter().flat_map(|series| &series.points).map(|point| if y { point.1 } else { point.0 }).collect();
        Scale::from_zero(values.into_iter())
    };
    let strictly = "Precision of dropped pages; recall is strict: the page it was dropped for is of its cluster.";
    vec![
        figure(
            "Spot signatures by the number of antecedents",
            "Spot signatures, Figure 21",
            format!("is, the, said, that, was, a, there, added one by one; distance 3; incremental. {strictly}"),
            ("antecedents", Scale::Linear(1.0, 7.0)),
            ("share", Scale::SHARE),
            &two(&antecedents),
        ),
        figure(
            "Spot signatures by spot distance",
            "Spot signatures, Figure 22",
            format!("is, the, said; incremental. {strictly}"),
            ("spot distance", Scale::Log(1.0, 100.0)),
            ("share", Scale::SHARE),
            &two(&distances),
        ),
        figure(
            "Spot signatures: precision by threshold and way of matching",
            "Spot signatures, Figures 5, 9 and 11",
            strictly,
            ("threshold", Scale::SHARE),
            ("precision", Scale::SHARE),
            &curve(Counts::precision),
        ),
        figure(
            "Spot signatures: recall by threshold and way of matching",
            "Spot signatures, Figures 6, 10 and 12",
            strictly,
            ("threshold", Scale::SHARE),
            ("recall", Scale::SHARE),
            &curve(Counts::recall),
        ),
        figure(
            "Spot signatures: how the index grows",
            "Spot signatures, Figure 23",
            "Incremental matching; only pages that are not duplicates enter the index.",
            ("pages matched", all(&growth, false)),
            ("pages in the index", all(&growth, true)),
            &growth,
        ),
        figure(
            "Spot signatures: mistakes in each batch of 100 pages",
            "Spot signatures, Figures 24 and 25",
            "False positives, and with them the pages that were taken for new although their cluster was there.",
            ("pages matched", all(&mistakes, false)),
            ("mistakes in the batch", all(&mistakes, true)),
            &mistakes,
        ),
    ]
}

/// Numbers of the tables of the page.
mod cells {
    use crate::evaluate::metrics::Counts;

    /// A share, or a dash.
    pub fn share(value: &Option<f64>) -> String {
        value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
    }

    /// Precision, or a dash where nothing was found.
    pub fn precision(counts: &Counts) -> String {
        share(&(counts.correct + counts.wrong > 0).then(|| counts.precision()))
    }

    /// Recall, or a dash where there is nothing to find.
    pub fn recall(counts: &Counts) -> String {
        share(&(counts.gold > 0).then(|| counts.recall()))
    }

    /// A threshold, without digits that say nothing.
    pub fn number(value: &f64) -> String {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// A share of a count.
    pub fn of(row: &(u64, u64)) -> String {
        if row.0 == 0 { "–".to_owned() } else { format!("{:.3} ({})", row.1 as f64 / row.0 as f64, row.0) }
    }
}
