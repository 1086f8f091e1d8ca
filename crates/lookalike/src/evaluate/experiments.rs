//! What the papers plot, on the pages at hand: everything that takes more than the runs of the methods.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::config::{Config, Method};
use crate::error::Result;
use crate::evaluate::combined_tables::{CombinedTables, combined_tables};
use crate::evaluate::judge::{Judge, count};
use crate::evaluate::labels::Labels;
use crate::evaluate::method_run::{MethodRun, Runner};
use crate::evaluate::metrics::Counts;
use crate::evaluate::spot_experiments::{SpotExperiments, spot_experiments};
use crate::evaluate::{EvaluateOptions, RunPair};
use crate::page::{PageId, RawPage, ScoredPair};
use crate::report::diff::differences::classify;
use crate::report::diff::hunks;
use crate::report::stored::texts;
use crate::text::{PageReader, Scope, TextOptions};

/// Everything that is plotted beside the evaluation.
#[derive(Debug, Clone, Serialize)]
pub struct Experiments {
    /// How many near-duplicates a page has, by method.
    pub degrees: Vec<Degrees>,
    /// How many words accepted pairs differ in, and in what, by method.
    pub differences: Vec<PairDifferences>,
    /// Equal supershingles against equal bits.
    pub b_and_c: Option<BAndC>,
    /// The combined algorithm, chosen and tested.
    pub combined: Option<CombinedTables>,
    /// Word n-grams of 1 to 8.
    pub ngrams: Vec<NgramPoint>,
    /// Spot signatures, varied.
    pub spots: Option<SpotExperiments>,
}

/// Pages by their number of near-duplicates (Henzinger 2006, Figures 1 and 3).
#[derive(Debug, Clone, Serialize)]
pub struct Degrees {
    /// The method.
    pub method: &'static str,
    /// Pages with so many near-duplicates.
    pub pages: BTreeMap<u64, u64>,
    /// The mean over pages that have any.
    pub mean: f64,
    /// The slope of a line through the points, both axes logarithmic; nothing with fewer than three points.
    pub exponent: Option<f64>,
}

/// What accepted pairs differ in (Henzinger 2006, Figures 2 and 4, Tables 3, 6 and 8).
#[derive(Debug, Clone, Serialize)]
pub struct PairDifferences {
    /// The method.
    pub method: &'static str,
    /// Pairs that were looked at.
    pub sampled: usize,
    /// Differing words of each of them, ascending.
    pub words: Vec<usize>,
    /// Correct pairs by what they differ in.
    pub correct: BTreeMap<String, u64>,
    /// Those of them that are on one site.
    pub correct_same_site: BTreeMap<String, u64>,
    /// Wrong ones.
    pub wrong: BTreeMap<String, u64>,
    /// Those of them that are on one site.
    pub wrong_same_site: BTreeMap<String, u64>,
    /// Pairs that differ in more than [`LARGE_DIFFERENCE`] words: correct and wrong ones (Table 8).
    pub large: (u64, u64),
}

/// Words from which on a difference is large.
pub const LARGE_DIFFERENCE: usize = 200;

/// B-similarity against C-similarity (Henzinger 2006, Tables 9 and 10, Figure 5).
#[derive(Debug, Clone, Serialize)]
pub struct BAndC {
    /// For each number of equal supershingles the numbers of equal bits, and how many pairs have them.
    pub bits_by_supershingles: BTreeMap<u32, BTreeMap<u32, u64>>,
    /// For ranges of equal bits the mean number of equal supershingles, and pairs.
    pub supershingles_by_bits: Vec<(String, f64, u64)>,
}

/// A length of n-grams.
#[derive(Debug, Clone, Serialize)]
pub struct NgramPoint {
    /// The method.
    pub method: &'static str,
    /// Words in an n-gram.
    pub ngram: usize,
    /// Pairs at the method's default.
    pub pairs: Counts,
}

/// Pairs whose differences are looked at, for each method.
const LOOKED_AT: usize = 120;

pub(super) fn experiments(
    options: &EvaluateOptions,
    runs: &[RunPair],
    labels: &Labels<'_>,
    announce: &dyn Fn(&str),
) -> Result<Experiments> {
    let runner = Runner::new(options);
    let truth = labels.true_pairs();
    let judge = Judge { labels, truth: &truth, clustered: labels.clustered() };
    let mut degrees = Vec::new();
    let mut differences = Vec::new();
    for pair in runs {
        announce(&format!("differences of {}", pair.run.config.method.name()));
        degrees.push(degrees_of(&pair.run));
        differences.push(differences_of(&pair.run, labels)?);
    }
    let of = |name: &str| runs.iter().find(|pair| pair.run.config.method.name() == name);
    let b_and_c = match (of("shingle"), of("projection")) {
        (Some(b), Some(c)) => {
            announce("supershingles against bits");
            Some(b_and_c(&runner, b, c, &options.bit_ranges)?)
        }
        _ => None,
    };
    let combined = of("shingle").zip(of("combined")).map(|(b, combined)| combined_tables(&judge, b, combined));
    let mut ngrams = Vec::new();
    for name in ["simhash", "minhash"] {
        let Some(pair) = of(name) else { continue };
        for ngram in 1..=8 {
            announce(&format!("{name} with {ngram}-grams"));
            let mut config = pair.run.config.clone();
            config.method.set("ngram", &ngram.to_string())?;
            let run = runner.run(&config)?;
            let pairs = count(judge.judged(&run).iter(), truth.len() as u64);
            ngrams.push(NgramPoint { method: config.method.name(), ngram, pairs });
        }
    }
    let spots = match of("spotsigs") {
        Some(pair) if !judge.clustered.is_empty() => Some(spot_experiments(options, pair, &judge, announce)?),
        _ => None,
    };
    Ok(Experiments { degrees, differences, b_and_c, combined, ngrams, spots })
}

fn degrees_of(run: &MethodRun) -> Degrees {
    let mut degree: HashMap<PageId, u64> = HashMap::new();
    for pair in &run.pairs {
        *degree.entry(pair.left).or_default() += 1;
        *degree.entry(pair.right).or_default() += 1;
    }
    let mut pages: BTreeMap<u64, u64> = BTreeMap::new();
    degree.values().for_each(|&degree| *pages.entry(degree).or_default() += 1);
    let mean = degree.values().sum::<u64>() as f64 / degree.len().max(1) as f64;
    Degrees { method: run.config.method.name(), exponent: slope(&pages), pages, mean }
}

/// The slope of the line of least squares through the logarithms.
fn slope(points: &BTreeMap<u64, u64>) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let logs: Vec<(f64, f64)> = points.iter().map(|(&x, &y)| ((x as f64).ln(), (y as f64).ln())).collect();
    let count = logs.len() as f64;
    let (mean_x, mean_y) =
        (logs.iter().map(|p| p.0).sum::<f64>() / count, logs.iter().map(|p| p.1).sum::<f64>() / count);
    let covariance: f64 = logs.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let variance: f64 = logs.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    Some(covariance / variance)
}

fn differences_of(run: &MethodRun, labels: &Labels<'_>) -> Result<PairDifferences> {
    let judged = run.pairs.iter().filter_map(|pair| Some((pair, labels.verdict(pair.left, pair.right)?)));
    let mut sample: Vec<(u64, &ScoredPair, bool)> = judged
        .map(|(pair, is_correct)| {
            let key = [pair.left.number().to_le_bytes(), pair.right.number().to_le_bytes()].concat();
            (xxh3_64(&key), pair, is_correct)
        })
        .collect();
    sample.sort_by_key(|row| row.0);
    sample.truncate(LOOKED_AT);
    let mut needed: Vec<PageId> = sample.iter().flat_map(|row| [row.1.left, row.1.right]).collect();
    needed.sort_unstable();
    needed.dedup();
    let raw: HashMap<PageId, RawPage<'static>> = texts::load(&run.stored, &run.summary, &needed)?;
    let found: Vec<_> = sample
        .par_iter()
        .filter_map(|(_, pair, is_correct)| {
            let (left, right) = (raw.get(&pair.left)?, raw.get(&pair.right)?);
            let same_site = labels.facts(pair.left, pair.right).same_site == Some(true);
            let words = differing_words(left, right, run.config.content.scope);
            Some((classify(left, right), words, *is_correct, same_site))
        })
        .collect();
    let mut looked = PairDifferences {
        method: run.config.method.name(),
        sampled: found.len(),
        words: found.iter().map(|row| row.1).collect(),
        correct: BTreeMap::new(),
        correct_same_site: BTreeMap::new(),
        wrong: BTreeMap::new(),
        wrong_same_site: BTreeMap::new(),
        large: (0, 0),
    };
    looked.words.sort_unstable();
    for (differences, words, is_correct, same_site) in found {
        let (all, of_site, large) = if is_correct {
            (&mut looked.correct, &mut looked.correct_same_site, &mut looked.large.0)
        } else {
            (&mut looked.wrong, &mut looked.wrong_same_site, &mut looked.large.1)
        };
        let label = differences.kind();
        *large += u64::from(words > LARGE_DIFFERENCE);
        if same_site {
            *of_site.entry(label.clone()).or_default() += 1;
        }
        *all.entry(label).or_default() += 1;
    }
    Ok(looked)
}

/// Words of what is compared that only one of two pages has.
fn differing_words(left: &RawPage<'_>, right: &RawPage<'_>, scope: Scope) -> usize {
    let mut reader = PageReader::new(TextOptions { scope, content: true, ..TextOptions::default() });
    let left = reader.read(left).content.to_owned();
    let right = reader.read(right).content;
    hunks(&left, right).0.iter().map(|hunk| hunk.words).sum()
}

/// Needs pairs with at least one equal supershingle, and their equal bits; and similar ones by bits.
fn b_and_c(runner: &Runner<'_>, b: &RunPair, c: &RunPair, ranges: &[u32]) -> Result<BAndC> {
    let equal: HashMap<(PageId, PageId), u32> =
        b.loose.pairs.iter().map(|pair| ((pair.left, pair.right), whole(pair.score))).collect();
    let mut both = Config::new("combined agree=1 bits=1".parse::<Method>()?);
    both.read = b.run.config.read.clone();
    both.content.scope = b.run.config.content.scope;
    both.pairs.site = b.run.config.pairs.site;
    both.pairs.bucket_limit = b.loose.config.pairs.bucket_limit;
    let mut by_b: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    for pair in &runner.run(&both)?.pairs {
        if let Some(&supershingles) = equal.get(&(pair.left, pair.right)) {
            *by_b.entry(supershingles).or_default().entry(whole(pair.score)).or_default() += 1;
        }
    }
    let mut by_c: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for pair in &c.run.pairs {
        let bits = whole(pair.score);
        let Some(range) = ranges.iter().rev().find(|&&from| bits >= from) else { continue };
        let row = by_c.entry(*range).or_default();
        row.0 += 1;
        row.1 += u64::from(equal.get(&(pair.left, pair.right)).copied().unwrap_or_default());
    }
    let all = c.run.plan.sketch.compared_bits();
    let name = |from: u32| {
        let to = ranges.iter().find(|&&next| next > from).map_or(all, |next| next - 1);
        format!("{from}–{to}")
    };
    Ok(BAndC {
        bits_by_supershingles: by_b,
        supershingles_by_bits: by_c
            .into_iter()
            .map(|(from, (pairs, sum))| (name(from), sum as f64 / pairs as f64, pairs))
            .collect(),
    })
}

/// A count that is stored as a real number.
fn whole(score: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a small count
    let count = score.max(0.0) as u32;
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_has_its_exponent() {
        let points = [1u64, 2, 4, 8, 16].map(|x| (x, 1_048_576 / (x * x)));
        assert!((slope(&BTreeMap::from(points)).unwrap() + 2.0).abs() < 1e-9);
        assert_eq!(slope(&BTreeMap::from([(1, 5), (2, 3)])), None);
    }
}
