//! What the judgments of a sample say, as the tables and figures of the papers have it (Henzinger 2006, Tables 1 to 8; Manku
//! et al. 2007, Figure 1).

use std::collections::BTreeMap;

use serde::Serialize;

use super::judge::JudgedAs;
use super::strata::Level;
use crate::evaluate::metrics::wilson;

/// The reason that stands for a form with other values in it, which in many applications is the same page.
pub(super) const FORM: &str = "form";

/// Verdicts on some pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// Judged the same page.
    pub correct: u64,
    /// Judged different pages.
    pub incorrect: u64,
    /// Undecided.
    pub undecided: u64,
    /// Those of the undecided that are forms with other values in them.
    pub forms: u64,
}

impl Verdicts {
    /// All of them.
    #[must_use]
    pub fn judged(&self) -> u64 {
        self.correct + self.incorrect + self.undecided
    }

    /// Share of the judged that are correct; undecided ones are not.
    #[must_use]
    pub fn precision(&self) -> f64 {
        self.correct as f64 / self.judged().max(1) as f64
    }

    /// The same with forms counted as correct.
    #[must_use]
    pub fn precision_with_forms(&self) -> f64 {
        (self.correct + self.forms) as f64 / self.judged().max(1) as f64
    }

    fn add(&mut self, pair: &JudgedPair<'_>) {
        match pair.verdict {
            JudgedAs::Correct => self.correct += 1,
            JudgedAs::Incorrect => self.incorrect += 1,
            JudgedAs::Undecided => {
                self.undecided += 1;
                self.forms += u64::from(pair.reason == Some(FORM));
            }
        }
    }
}

/// A judged pair with all that the tables ask for.
pub(super) struct JudgedPair<'a> {
    pub(super) accepted: bool,
    pub(super) level: &'a Level,
    pub(super) site: &'static str,
    pub(super) verdict: JudgedAs,
    pub(super) reason: Option<&'a str>,
    /// What the pages differ in, and in how many words, if they could be read.
    pub(super) difference: Option<(String, usize)>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableRow {
    /// Which pairs.
    pub name: String,
    /// All of them.
    pub all: Verdicts,
    /// Those of one site.
    pub same_site: Verdicts,
}

/// Pairs up to a level, from equal samples of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelScores {
    /// How near.
    pub level: String,
    /// Pairs at exactly this level.
    pub verdicts: Verdicts,
    /// The interval of their precision at 95 % (Wilson).
    pub interval: (f64, f64),
    /// Precision of all pairs down to this level.
    pub precision: f64,
    /// Share of all correct pairs of the sample that are at this level or nearer.
    pub recall: f64,
}

/// The tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyTables {
    /// Near-duplicates: all, of one site, of two, at each level (Tables 2 and 5).
    pub near_duplicates: Vec<(String, Verdicts)>,
    /// By what pages differ in (Tables 3 and 6).
    pub differences: Vec<TableRow>,
    /// Why pairs are undecided (Tables 4 and 7).
    pub reasons: Vec<TableRow>,
    /// Pairs that differ in more than 200 words (Table 8).
    pub large: Verdicts,
    /// From near to far, near misses included (Manku et al. 2007, Figure 1).
    pub levels: Vec<LevelScores>,
}

/// Words from which on a difference is large.
const LARGE_DIFFERENCE: usize = 200;

pub(super) fn tables(pairs: &[JudgedPair<'_>]) -> StudyTables {
    let accepted = || pairs.iter().filter(|pair| pair.accepted);
    let of = |wanted: &dyn Fn(&JudgedPair<'_>) -> bool| {
        let mut verdicts = Verdicts::default();
        accepted().filter(|pair| wanted(pair)).for_each(|pair| verdicts.add(pair));
        verdicts
    };
    let mut near_duplicates = vec![
        ("all".to_owned(), of(&|_| true)),
        ("same site".to_owned(), of(&|pair| pair.site == "same")),
        ("different sites".to_owned(), of(&|pair| pair.site == "different")),
    ];
    let mut levels: BTreeMap<&Level, Verdicts> = BTreeMap::new();
    pairs.iter().for_each(|pair| levels.entry(pair.level).or_default().add(pair));
    for level in levels.keys() {
        near_duplicates.push((level.name().to_owned(), of(&|pair| pair.level == *level)));
    }
    near_duplicates.retain(|row| row.1.judged() > 0);
    let correct = levels.values().map(|verdicts| verdicts.correct).sum::<u64>();
    let (mut right, mut all) = (0, 0);
    let levels = levels.iter().rev().map(|(level, verdicts)| {
        (right, all) = (right + verdicts.correct, all + verdicts.judged());
        LevelScores {
            level: level.name().to_owned(),
            verdicts: *verdicts,
            interval: wilson(verdicts.correct, verdicts.judged()),
            precision: right as f64 / all.max(1) as f64,
            recall: right as f64 / correct.max(1) as f64,
        }
    });
    StudyTables {
        levels: levels.collect(),
        near_duplicates,
        differences: rows(accepted(), |pair| pair.difference.as_ref().map(|(label, _)| label.clone())),
        reasons: rows(accepted().filter(|pair| pair.verdict == JudgedAs::Undecided), |pair| {
            Some(pair.reason.unwrap_or("no reason").to_owned())
        }),
        large: of(&|pair| pair.difference.as_ref().is_some_and(|(_, words)| *words > LARGE_DIFFERENCE)),
    }
}

/// A row for each name, the largest first.
fn rows<'a, 'p: 'a>(
    pairs: impl Iterator<Item = &'a JudgedPair<'p>>,
    name: impl Fn(&JudgedPair<'p>) -> Option<String>,
) -> Vec<TableRow> {
    let mut rows: BTreeMap<String, TableRow> = BTreeMap::new();
    for pair in pairs {
        let Some(name) = name(pair) else { continue };
        let row = rows.entry(name.clone()).or_insert_with(|| TableRow {
            name,
            all: Verdicts::default(),
            same_site: Verdicts::default(),
        });
        row.all.add(pair);
        if pair.site == "same" {
            row.same_site.add(pair);
        }
    }
    let mut rows: Vec<TableRow> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.all.judged()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::pair;
    use crate::evaluate::audit::strata::StratifyBy;
    use crate::page::ScoredPair;
    use crate::plan::Unit;

    #[test]
    fn a_small_study_gives_the_tables_of_the_paper() {
        let level = |distance: u32| {
            let pair = ScoredPair { score: f64::from(distance), ..pair(0, 1, 0.5) };
            Level::of(&pair, Unit::DifferingBits, StratifyBy::Method)
        };
        let levels = [level(1), level(3), level(5)];
        let judged = |level, site, verdict, reason, label: &str, words| JudgedPair {
            accepted: level < 2,
            level: &levels[level],
            site,
            verdict,
            reason,
            difference: Some((label.to_owned(), words)),
        };
        use JudgedAs::{Correct, Incorrect, Undecided};
        let pairs = [
            judged(0, "same", Correct, None, "time stamp", 2),
            judged(0, "different", Correct, None, "URL", 1),
            judged(1, "same", Incorrect, None, "main item", 300),
            judged(1, "same", Undecided, Some("form"), "prefilled form", 5),
            judged(2, "same", Correct, None, "time stamp", 4),
            judged(2, "same", Incorrect, None, "main item", 30),
        ];
        let found = tables(&pairs);
        let verdicts = |correct, incorrect, undecided, forms| Verdicts { correct, incorrect, undecided, forms };
        let expected = [
            ("all".to_owned(), verdicts(2, 1, 1, 1)),
            ("same site".to_owned(), verdicts(1, 1, 1, 1)),
            ("different sites".to_owned(), verdicts(1, 0, 0, 0)),
            ("3 bits differ".to_owned(), verdicts(0, 1, 1, 1)),
            ("1 bits differ".to_owned(), verdicts(2, 0, 0, 0)),
        ];
        assert_eq!(found.near_duplicates, expected);
        assert_eq!(
            (found.near_duplicates[0].1.precision(), found.near_duplicates[0].1.precision_with_forms()),
            (0.5, 0.75)
        );
        assert_eq!(found.large, verdicts(0, 1, 0, 0));
        let curve: Vec<(&str, f64, f64)> =
            found.levels.iter().map(|row| (row.level.as_str(), row.precision, row.recall)).collect();
        let (two_thirds, half) = (2.0 / 3.0, 0.5);
        assert_eq!(
            curve,
            [("1 bits differ", 1.0, two_thirds), ("3 bits differ", half, two_thirds), ("5 bits differ", half, 1.0)]
        );
        assert_eq!(
            found.reasons,
            [TableRow { name: "form".to_owned(), all: verdicts(0, 0, 1, 1), same_site: verdicts(0, 0, 1, 1) }]
        );
        assert_eq!(
            found.differences.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(),
            ["URL", "main item", "prefilled form", "time stamp"]
        );
    }
}
