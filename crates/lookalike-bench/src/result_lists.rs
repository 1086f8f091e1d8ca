//! Labelled lists of search results: how well `refine` folds them, by whole texts and by snippets.
//!
//! In: the lists in `labels/result-lists`, whose README says how they were made. Out: counts of pairs. A pair is found if both results are in one group;
//! pairs that people disagree about are not counted.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lookalike::refine::SearchResult;
use lookalike::{RawPage, Refiner};
use serde::Deserialize;

use crate::labelled::PairCounts;

/// Which lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Half {
    /// Rules and thresholds were chosen on these.
    Tuning,
    /// These were only counted in the end.
    HeldOut,
}

/// What is known of each page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The whole text.
    WholeText,
    /// A snippet.
    Snippet,
}

/// A list of results.
#[derive(Debug, Deserialize)]
pub struct LabelledList {
    /// Its name: the words of the query.
    pub name: String,
    /// Where it belongs.
    pub half: Half,
    results: Vec<LabelledResult>,
    #[serde(skip)]
    labels: HashMap<(usize, usize), Label>,
}

#[derive(Debug, Deserialize)]
struct LabelledResult {
    url: String,
    title: String,
    content: String,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Same,
    Unscored,
}

/// The folder.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("labels/result-lists")
}

/// Reads all lists of a folder.
///
/// # Errors
/// When a file cannot be read, or they do not belong together.
pub fn read(folder: &Path) -> Result<Vec<LabelledList>> {
    let open = |name: &str| File::open(folder.join(name)).with_context(|| folder.join(name).display().to_string());
    let mut texts: HashMap<String, String> = HashMap::new();
    for line in BufReader::new(flate2::read::GzDecoder::new(open("texts.jsonl.gz")?)).lines() {
        #[derive(Deserialize)]
        struct Text {
            url: String,
            text: String,
        }
        let row: Text = serde_json::from_str(&line?)?;
        texts.insert(row.url, row.text);
    }
    let mut lists: Vec<LabelledList> = Vec::new();
    for line in BufReader::new(open("lists.jsonl")?).lines() {
        let mut list: LabelledList = serde_json::from_str(&line?)?;
        for result in &mut list.results {
            result.text = texts.get(&result.url).with_context(|| format!("{} has no text", result.url))?.clone();
        }
        lists.push(list);
    }
    for line in fs::read_to_string(folder.join("labels.tsv"))?.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, left, right, _, label] = cells[..] else {
            anyhow::bail!("labels.tsv: '{line}' has not five columns")
        };
        let list =
            lists.iter_mut().find(|list| list.name == name).with_context(|| format!("there is no list {name}"))?;
        let place = (left.parse::<usize>()? - 1, right.parse::<usize>()? - 1);
        ensure!(place.0 < place.1 && place.1 < list.results.len(), "labels.tsv: '{line}' names no pair");
        list.labels.insert(place, if label == "same" { Label::Same } else { Label::Unscored });
    }
    Ok(lists)
}

impl LabelledList {
    /// The groups that `refiner` makes: for each result the place of the best one of its group.
    #[must_use]
    pub fn fold(&self, refiner: &Refiner, shown: Shown) -> Vec<usize> {
        let mut sketcher = refiner.sketcher();
        let result = |row: &LabelledResult| SearchResult {
            url: Some(row.url.clone()),
            title: Some(row.title.clone()),
            text: Some(if shown == Shown::WholeText { row.text.clone() } else { row.content.clone() }),
            ..SearchResult::default()
        };
        let results: Vec<SearchResult> = self.results.iter().map(result).collect();
        let text = |result: &SearchResult| RawPage::text(result.text.clone().unwrap_or_default());
        let sketches: Vec<_> = results.iter().map(|row| Some(refiner.sketch(&text(row), &mut sketcher))).collect();
        let mut best: Vec<usize> = (0..results.len()).collect();
        for group in refiner.fold_results(&results, &sketches).groups {
            group.others.iter().for_each(|fold| best[fold.at] = group.best);
        }
        best
    }

    /// Pairs found and to be found.
    #[must_use]
    pub fn count(&self, best: &[usize]) -> PairCounts {
        let mut counts = PairCounts::default();
        for right in 0..best.len() {
            for left in 0..right {
                let (label, is_found) = (self.labels.get(&(left, right)), best[left] == best[right]);
                match label {
                    Some(Label::Unscored) => {}
                    Some(Label::Same) => {
                        counts.gold += 1;
                        counts.correct += u64::from(is_found);
                    }
                    None => counts.wrong += u64::from(is_found),
                }
            }
        }
        counts
    }

    /// Pairs that are wrongly found, or not found, for people.
    #[must_use]
    pub fn mistakes(&self, best: &[usize]) -> Vec<String> {
        let mut mistakes = Vec::new();
        for right in 0..best.len() {
            for left in 0..right {
                let kind = match (self.labels.get(&(left, right)), best[left] == best[right]) {
                    (None, true) => "wrong",
                    (Some(Label::Same), false) => "missed",
                    _ => continue,
                };
                let (a, b) = (&self.results[left], &self.results[right]);
                mistakes.push(format!("{kind} {}: {} {} | {} {}", self.name, a.url, a.title, b.url, b.title));
            }
        }
        mistakes
    }
}

/// Counts over the lists of a half.
#[must_use]
pub fn count(lists: &[LabelledList], half: Half, refiner: &Refiner, shown: Shown) -> PairCounts {
    let mut counts = PairCounts::default();
    for list in lists.iter().filter(|list| list.half == half) {
        let one = list.count(&list.fold(refiner, shown));
        counts.correct += one.correct;
        counts.wrong += one.wrong;
        counts.gold += one.gold;
    }
    counts
}
