//! The judgments of a sample → what they say about the result.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::tables::{self, JudgedPair, LevelScores, StudyTables};
use super::{Population, StratifyBy, Stratum};
use crate::error::{Error, Result};
use crate::evaluate::metrics::wilson;
use crate::page::{PageId, ScoredPair};
use crate::read::plain::plain_text;
use crate::report::diff::differences::classify;
use crate::report::diff::hunks;
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{self, figure};
use crate::report::render;
use crate::report::stored::texts;
use crate::text::{PageReader, TextOptions};

/// One judgment, as the page saves it.
#[derive(Debug, Clone, Deserialize)]
struct Judgment {
    left: String,
    right: String,
    verdict: JudgedAs,
    #[serde(default)]
    reason: Option<String>,
}

/// The rules that were judged by, as the page saves them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedRubric {
    #[serde(rename = "rubric")]
    _rubric: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum JudgedAs {
    Correct,
    Incorrect,
    Undecided,
}

/// What the judgments say.
#[derive(Debug, Clone, Serialize)]
pub struct Audit {
    /// The strata that were judged.
    pub strata: Vec<StratumScores>,
    /// Precision of all near-duplicates of the result, by strata, with its interval at 95 %.
    pub precision: Option<(f64, f64, f64)>,
    /// Share of the pairs in the strata that are near-duplicates according to the judgments, which the result
    /// accepts: recall, as far as near misses go.
    pub recall_of_near_misses: Option<f64>,
    /// The tables of the study.
    pub tables: StudyTables,
    /// The least similarity that reaches the wanted precision on one half of the judgments, unless the other half
    /// contradicts it.
    pub suggestion: Option<Suggestion>,
    /// Why nothing is suggested.
    pub withheld: Option<String>,
    /// The precision that was wanted.
    pub target: f64,
    /// Share of the near-duplicates that are in strata of which something was judged.
    pub covered: f64,
}

/// Judgments of a stratum.
#[derive(Debug, Clone, Serialize)]
pub struct StratumScores {
    /// Which.
    pub stratum: Stratum,
    /// Pairs that the result has in it.
    pub pairs: u64,
    /// Judged correct.
    pub correct: u64,
    /// Judged incorrect.
    pub incorrect: u64,
    /// Undecided.
    pub undecided: u64,
    /// Share of the judged that are correct; undecided ones are not.
    pub precision: f64,
    /// Its interval at 95 % (Wilson).
    pub interval: (f64, f64),
}

impl StratumScores {
    fn judged(&self) -> u64 {
        self.correct + self.incorrect + self.undecided
    }
}

/// A threshold that was chosen on one half of the judgments and tested on the other.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Suggestion {
    /// The similarity.
    pub threshold: f64,
    /// Precision at or above it, on the half it was chosen on.
    pub chosen_on: f64,
    /// Judgments of the other half at or above it, and the correct ones.
    pub tested: (u64, u64),
    /// Precision there, by strata.
    pub tested_on: f64,
    /// Its interval at 95 % (Wilson, strata aside).
    pub interval: (f64, f64),
    /// Whether it is below what the result accepts, so that another run is needed.
    pub is_looser: bool,
}

/// Held-back judgments that it takes to test a threshold.
const ENOUGH_TESTED: u64 = 10;

impl Suggestion {
    /// Why it should not be suggested, if the half that was held back does not bear it out.
    fn contradicted(&self, target: f64) -> Option<String> {
        let (tested, correct) = self.tested;
        let chosen =
            format!("{:.3} reaches a precision of {target} on the judgments that it was chosen on", self.threshold);
        if tested < ENOUGH_TESTED {
            return Some(format!("{chosen}, but only {tested} others are at or above it, too few to test it"));
        }
        (self.interval.1 < target).then(|| {
            format!(
                "{chosen}, but only {correct} of {tested} others at or above it are correct ({:.3})",
                self.tested_on
            )
        })
    }
}

/// Reads judgments of a sample of the result in `directory`.
///
/// # Errors
/// When the directory is not a result, or a line is not a judgment of one of its pairs.
pub fn judge(directory: &Path, judgments: &Path, target: f64, by: StratifyBy) -> Result<Audit> {
    if !(target > 0.0 && target <= 1.0) {
        return Err(Error::invalid("target", target, "must be a precision above 0 and at most 1"));
    }
    let population = Population::open(directory, by)?;
    let mut place: HashMap<(PageId, PageId), (&Stratum, &ScoredPair)> = HashMap::new();
    for (stratum, pairs) in &population.strata {
        place.extend(pairs.iter().map(|pair| ((pair.left, pair.right), (stratum, pair))));
    }
    let text = plain_text(judgments)?;
    let mut judged: BTreeMap<(PageId, PageId), Judgment> = BTreeMap::new();
    let mut lines: HashMap<(PageId, PageId), (usize, JudgedAs)> = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|row| !row.1.trim().is_empty()) {
        let wrong = |reason: String| Error::bad_line(judgments, number as u64 + 1, reason);
        if serde_json::from_str::<SavedRubric>(line).is_ok() {
            continue; // what was judged by, for people
        }
        let judgment: Judgment = serde_json::from_str(line)
            .map_err(|error| wrong(format!("is not a judgment: {error}").replace('`', "'")))?;
        let page =
            |id: &str| population.stored.ids.find(id).ok_or_else(|| wrong(format!("the result has no page '{id}'")));
        let (left, right) = (page(&judgment.left)?, page(&judgment.right)?);
        let key = (left.min(right), left.max(right));
        if !place.contains_key(&key) {
            return Err(wrong(format!(
                "'{}' and '{}' are not a pair of this result; was it made again with other settings?",
                judgment.left, judgment.right
            )));
        }
        if let Some(&(before, verdict)) = lines.get(&key)
            && verdict != judgment.verdict
        {
            return Err(wrong(format!(
                "'{}' and '{}' were judged differently in line {before}",
                judgment.left, judgment.right
            )));
        }
        lines.insert(key, (number + 1, judgment.verdict));
        judged.insert(key, judgment);
    }
    if judged.is_empty() {
        return Err(Error::bad_input(judgments, "holds no judgment"));
    }

    let mut scores: BTreeMap<&Stratum, StratumScores> = BTreeMap::new();
    for (key, judgment) in &judged {
        let (stratum, _) = place[key];
        let row = scores.entry(stratum).or_insert_with(|| StratumScores {
            stratum: stratum.clone(),
            pairs: population.strata[stratum].len() as u64,
            correct: 0,
            incorrect: 0,
            undecided: 0,
            precision: 0.0,
            interval: (0.0, 1.0),
        });
        match judgment.verdict {
            JudgedAs::Correct => row.correct += 1,
            JudgedAs::Incorrect => row.incorrect += 1,
            JudgedAs::Undecided => row.undecided += 1,
        }
    }
    for row in scores.values_mut() {
        row.precision = row.correct as f64 / row.judged() as f64;
        row.interval = wilson(row.correct, row.judged());
    }
    // Where something else than the similarity decides, near misses stay out at any similarity.
    let has_threshold = population.summary.config.method.has_similarity_threshold();
    let rows: Vec<JudgedRow> = judged
        .iter()
        .filter(|(key, _)| has_threshold || place[*key].0.accepted)
        .map(|(key, judgment)| {
            let (stratum, pair) = place[key];
            let score = &scores[stratum];
            Ok(JudgedRow {
                similarity: pair.similarity,
                is_correct: judgment.verdict == JudgedAs::Correct,
                weight: score.pairs as f64 / score.judged() as f64,
                is_held_back: population.key(pair, HALVING_SEED)? & 1 == 1,
            })
        })
        .collect::<Result<_>>()?;
    let accepted = population.strata.iter().filter(|row| row.0.accepted).flat_map(|row| row.1);
    let weakest = accepted.map(|pair| pair.similarity).fold(f64::INFINITY, f64::min);
    let strata: Vec<StratumScores> = scores.into_values().collect();
    let accepted_pairs = |wanted: &dyn Fn(&Stratum) -> bool| {
        let rows = population.strata.iter().filter(|(stratum, _)| stratum.accepted && wanted(stratum));
        rows.map(|row| row.1.len() as f64).sum::<f64>()
    };
    let (accepted, missed): (Vec<&StratumScores>, Vec<&StratumScores>) =
        strata.iter().partition(|row| row.stratum.accepted);
    let true_pairs = |rows: &[&StratumScores]| rows.iter().map(|row| row.precision * row.pairs as f64).sum::<f64>();
    let (found, lost) = (true_pairs(&accepted), true_pairs(&missed));
    let chosen = suggest(&rows, target, weakest);
    let withheld = match &chosen {
        None => Some(format!("no threshold reaches a precision of {target} on these judgments")),
        Some(chosen) => chosen.contradicted(target),
    };
    Ok(Audit {
        precision: stratified(&accepted),
        recall_of_near_misses: (!missed.is_empty() && found + lost > 0.0).then(|| found / (found + lost)),
        suggestion: chosen.filter(|_| withheld.is_none()),
        withheld,
        tables: tables::tables(&judged_pairs(&population, &judged, &place)?),
        covered: accepted_pairs(&|stratum| strata.iter().any(|row| row.stratum == *stratum))
            / accepted_pairs(&|_| true).max(1.0),
        strata,
        target,
    })
}

/// The judged pairs with what the tables ask for.
fn judged_pairs<'a>(
    population: &Population,
    judged: &'a BTreeMap<(PageId, PageId), Judgment>,
    place: &HashMap<(PageId, PageId), (&'a Stratum, &'a ScoredPair)>,
) -> Result<Vec<JudgedPair<'a>>> {
    let needed: BTreeSet<PageId> = judged.keys().flat_map(|key| [key.0, key.1]).collect();
    let needed: Vec<PageId> = needed.into_iter().collect();
    let raw = texts::load(&population.stored, &population.summary, &needed)?;
    let mut reader = PageReader::new(TextOptions::default());
    let pairs = judged.iter().map(|(key, judgment)| {
        let stratum = place[key].0;
        let difference = raw.get(&key.0).zip(raw.get(&key.1)).map(|(left, right)| {
            let texts = (reader.text(left), reader.text(right));
            let words = hunks(&texts.0, &texts.1).0.iter().map(|hunk| hunk.words).sum();
            (classify(left, right).kind(), words)
        });
        JudgedPair {
            accepted: stratum.accepted,
            level: &stratum.level,
            site: stratum.site,
            verdict: judgment.verdict,
            reason: judgment.reason.as_deref(),
            difference,
        }
    });
    Ok(pairs.collect())
}

/// Writes what the judgments say as a page with a plot to `path`, and its points to the same path with the ending `csv`.
///
/// # Errors
/// When a file cannot be written.
pub fn write_report(audit: &Audit, path: &Path) -> Result<()> {
    render::check_page_name(path)?;
    let levels = &audit.tables.levels;
    let places = || (1..=levels.len()).map(|place| place as f64);
    let curve = |name: &str, of: &dyn Fn(&LevelScores) -> f64| {
        Series::line(name, places().zip(levels.iter().map(of)).collect())
    };
    let names: Vec<String> = levels.iter().enumerate().map(|(at, row)| format!("{}: {}", at + 1, row.level)).collect();
    let series = [
        curve("precision at exactly this level", &|row| row.verdicts.precision()),
        curve("precision down to it", &|row| row.precision),
        curve("recall down to it", &|row| row.recall),
    ];
    let figures = [figure(
        "Precision and recall from near to far",
        "Manku et al. 2007, Figure 1",
        format!("Equal samples of every level, near misses included. {}", names.join("; ")),
        ("level", Scale::Linear(1.0, levels.len().max(2) as f64)),
        ("share", Scale::SHARE),
        &series,
    )];
    let lead = "What people judged: same, different, unsure. Tables are in the JSON output of the command.";
    render::write(path, figures::page("A sample, judged", lead, &figures, &[])?)?;
    render::write(&path.with_extension("csv"), figures::csv(&figures))
}

/// Decides which judgments are held back.
const HALVING_SEED: u64 = 0x6861_6c76;

struct JudgedRow {
    similarity: f64,
    is_correct: bool,
    /// Pairs that it stands for.
    weight: f64,
    is_held_back: bool,
}

/// Precision over strata of different sizes, with its interval at 95 %.
fn stratified(rows: &[&StratumScores]) -> Option<(f64, f64, f64)> {
    const Z: f64 = 1.96;
    let all: f64 = rows.iter().map(|row| row.pairs as f64).sum();
    if all == 0.0 {
        return None;
    }
    let mean: f64 = rows.iter().map(|row| row.precision * row.pairs as f64 / all).sum();
    let variance: f64 = rows
        .iter()
        .map(|row| {
            // A stratum without an error has some chance of one all the same: one half of a judgment.
            let tries = row.judged() as f64;
            let p = (row.correct as f64 + 0.5) / (tries + 1.0);
            let rest = 1.0 - tries.min(row.pairs as f64) / row.pairs as f64;
            (row.pairs as f64 / all).powi(2) * p * (1.0 - p) / tries * rest
        })
        .sum();
    let reach = Z * variance.sqrt();
    Some((mean, (mean - reach).max(0.0), (mean + reach).min(1.0)))
}

fn suggest(rows: &[JudgedRow], target: f64, weakest: f64) -> Option<Suggestion> {
    let precision = |at: f64, held_back: bool| {
        let above = rows.iter().filter(|row| row.is_held_back == held_back && row.similarity >= at);
        let (mut right, mut all) = (0.0, 0.0);
        above.for_each(|row| {
            all += row.weight;
            right += if row.is_correct { row.weight } else { 0.0 };
        });
        if all > 0.0 { Some(right / all) } else { None }
    };
    let mut levels: Vec<f64> = rows.iter().filter(|row| !row.is_held_back).map(|row| row.similarity).collect();
    levels.sort_by(f64::total_cmp);
    // Rounded down, so that what was chosen by is still accepted when the number is typed.
    let mut levels = levels.into_iter().map(|level| (level * 1000.0).floor() / 1000.0);
    let threshold = levels.find(|&at| precision(at, false).is_some_and(|found| found >= target))?;
    let tested: Vec<&JudgedRow> = rows.iter().filter(|row| row.is_held_back && row.similarity >= threshold).collect();
    let correct = tested.iter().filter(|row| row.is_correct).count() as u64;
    Some(Suggestion {
        threshold,
        chosen_on: precision(threshold, false)?,
        tested: (tested.len() as u64, correct),
        tested_on: precision(threshold, true)?,
        interval: wilson(correct, tested.len() as u64),
        is_looser: threshold < weakest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::pair;
    use crate::evaluate::audit::Level;
    use crate::plan::Unit;
    use crate::random::next_random;

    fn scores(pairs: u64, correct: u64, incorrect: u64, undecided: u64) -> StratumScores {
        let judged = correct + incorrect + undecided;
        StratumScores {
            stratum: Stratum::new(true, Level::of(&pair(0, 1, 0.8), Unit::Similarity, StratifyBy::Method), None),
            pairs,
            correct,
            incorrect,
            undecided,
            precision: correct as f64 / judged as f64,
            interval: wilson(correct, judged),
        }
    }

    fn overall(rows: &[StratumScores]) -> Option<(f64, f64, f64)> {
        stratified(&rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn strata_count_by_their_pairs_and_not_by_their_judgments() {
        // 300 pairs with 8 of 10 correct, 100 pairs with 5 of 5: 0.75 · 0.8 + 0.25 · 1. The variance by hand:
        // 0.75² · (8.5 · 2.5 / 11²) / 10 · 290/300 + 0.25² · (5.5 · 0.5 / 6²) / 5 · 95/100 = 0.010456, its root 0.102257.
        let (mean, low, high) = overall(&[scores(300, 8, 1, 1), scores(100, 5, 0, 0)]).unwrap();
        assert!((mean - 0.85).abs() < 1e-12, "{mean}");
        assert!((low - (0.85 - 1.96 * 0.102_256_8)).abs() < 1e-6, "{low}");
        assert_eq!(high, 1.0, "not above what a share can be");
        // The other way round, it ends at 0: 0.25 · 1/5 + 0.75 · 1/10.
        let (mean, low, high) = overall(&[scores(100, 1, 4, 0), scores(300, 1, 9, 0)]).unwrap();
        assert!((mean - 0.125).abs() < 1e-12 && low == 0.0, "{mean} {low}");
        assert!((high - 0.307_082_1).abs() < 1e-6, "{high}");
        // Where all pairs were judged, nothing is left to chance.
        let (mean, low, high) = overall(&[scores(10, 7, 3, 0), scores(30, 27, 0, 3)]).unwrap();
        assert!([mean, low, high].iter().all(|value| (value - 34.0 / 40.0).abs() < 1e-12), "{mean} {low} {high}");
        assert_eq!(overall(&[]), None);
    }

    /// The mean of the estimates, and how often the truth is in the interval: for strata of (pairs, correct ones,
    /// judgments), judged again and again.
    fn judged_again_and_again(strata: &[(u64, u64, u64)]) -> (f64, f64, f64) {
        const RUNS: u32 = 4000;
        let (pairs, correct) = strata.iter().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
        let truth = correct as f64 / pairs as f64;
        let (mut state, mut sum, mut covered) = (42, 0.0, 0);
        for _ in 0..RUNS {
            let mut judge = |&(pairs, correct, judged): &(u64, u64, u64)| {
                // Drawn without being put back.
                let left = (0..judged)
                    .fold(correct, |left, drawn| left - u64::from(next_random(&mut state) % (pairs - drawn) < left));
                scores(pairs, correct - left, judged - (correct - left), 0)
            };
            let rows: Vec<StratumScores> = strata.iter().map(&mut judge).collect();
            let (mean, low, high) = overall(&rows).unwrap();
            sum += mean;
            covered += u32::from((low..=high).contains(&truth));
        }
        (truth, sum / f64::from(RUNS), f64::from(covered) / f64::from(RUNS))
    }

    #[test]
    fn the_interval_has_the_truth_in_it_95_times_of_100() {
        for strata in [
            &[(1000, 950, 30), (300, 200, 30), (100, 40, 30)][..],
            &[(1000, 800, 10), (1000, 600, 10), (1000, 400, 10), (1000, 200, 10)],
            // Most pairs of a stratum are judged.
            &[(60, 45, 40), (40, 10, 30)],
        ] {
            let (truth, mean, covered) = judged_again_and_again(strata);
            assert!((mean - truth).abs() < 0.005, "{strata:?}: {mean} for {truth}");
            assert!((0.92..=0.98).contains(&covered), "{strata:?}: {covered}");
        }
        // Without a single error among the judgments, the interval still allows for some.
        let (_, _, covered) = judged_again_and_again(&[(1000, 990, 20), (300, 290, 20)]);
        assert!(covered >= 0.95, "{covered}");
    }

    fn row(similarity: f64, is_correct: bool, weight: f64, is_held_back: bool) -> JudgedRow {
        JudgedRow { similarity, is_correct, weight, is_held_back }
    }

    #[test]
    fn the_least_similarity_is_chosen_on_one_half_and_tested_on_the_other() {
        let rows = [
            // Chosen on: precision is 7/8 from 0.6 on, 3/4 from 0.7 on, 1 from 0.8 on.
            row(0.9, true, 1.0, false),
            row(0.6, true, 4.0, false),
            row(0.8, true, 2.0, false),
            row(0.7, false, 1.0, false),
            // Tested on.
            row(0.95, true, 3.0, true),
            row(0.85, false, 1.0, true),
            row(0.65, true, 1.0, true),
            row(0.5, false, 9.0, true),
        ];
        let found = suggest(&rows, 0.9, 0.7).unwrap();
        assert_eq!((found.threshold, found.chosen_on, found.is_looser), (0.8, 1.0, false));
        assert_eq!((found.tested, found.tested_on), ((2, 1), 0.75));
        // Wilson's interval for 1 of 2.
        assert!((found.interval.0 - 0.094_531).abs() < 1e-6 && (found.interval.1 - 0.905_469).abs() < 1e-6);

        let loose = suggest(&rows, 0.875, 0.7).unwrap();
        assert_eq!((loose.threshold, loose.chosen_on, loose.is_looser), (0.6, 0.875, true));
        assert_eq!((loose.tested, loose.tested_on), ((3, 2), 0.8));
        assert!(!suggest(&rows, 0.875, 0.6).unwrap().is_looser, "the result accepts that much");
    }

    #[test]
    fn nothing_is_suggested_that_was_not_reached_or_cannot_be_tested() {
        let wrong = [row(0.9, false, 1.0, false), row(0.8, true, 1.0, false), row(0.95, true, 1.0, true)];
        assert!(suggest(&wrong, 0.6, 0.7).is_none(), "one of two at the most");
        let untested = [row(0.9, true, 1.0, false), row(0.8, true, 1.0, true)];
        assert!(suggest(&untested, 0.9, 0.7).is_none(), "nothing was held back from 0.9 on");
        assert!(suggest(&[], 0.9, 0.7).is_none());
    }

    #[test]
    fn a_rounded_threshold_is_judged_by_all_that_it_accepts() {
        let mut rows = vec![row(0.7539, true, 1.0, false), row(0.99, true, 1.0, true)];
        assert_eq!(suggest(&rows, 1.0, 0.7).map(|found| found.threshold), Some(0.753));
        rows.push(row(0.7535, false, 1.0, false));
        assert!(suggest(&rows, 1.0, 0.7).is_none(), "0.753 accepts the wrong one, too");
        rows.push(row(0.8, true, 1.0, false));
        assert_eq!(suggest(&rows, 1.0, 0.7).map(|found| found.threshold), Some(0.8));
    }

    #[test]
    fn a_threshold_that_the_other_half_contradicts_is_withheld() {
        // Ten correct ones chose 0.7; of those held back, half are wrong.
        let chosen_on = (0..10).map(|_| row(0.8, true, 1.0, false));
        let held_back = |correct: usize, all: usize| (0..all).map(move |at| row(0.8, at < correct, 1.0, true));
        let contradicted = |correct: usize, all: usize| {
            let rows: Vec<JudgedRow> = chosen_on.clone().chain(held_back(correct, all)).collect();
            suggest(&rows, 0.95, 0.7).unwrap().contradicted(0.95)
        };
        let reason = contradicted(8, 15).unwrap();
        assert!(reason.contains("only 8 of 15 others") && reason.contains("0.533"), "{reason}");
        assert!(contradicted(5, 5).unwrap().contains("too few to test"));
        assert_eq!(contradicted(19, 20), None);
        assert_eq!(contradicted(12, 12), None);
    }
}
