//! Precision by level of similarity.

use serde::Serialize;

use crate::evaluate::judge::JudgedPair;
use crate::plan::Unit;

/// Pairs of about the same nearness.
#[derive(Debug, Clone, Serialize)]
pub struct Level {
    /// Which, in the method's unit.
    pub level: String,
    /// Judged pairs at it.
    pub pairs: u64,
    /// Those that belong together.
    pub correct: u64,
    /// Pairs of one site, and those that belong together.
    pub same_site: (u64, u64),
    /// Pairs of two sites, and those that belong together.
    pub different_site: (u64, u64),
}

impl Level {
    /// Share of its pairs that belong together.
    pub(super) fn precision(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.correct as f64 / self.pairs as f64)
    }
}

/// Pairs by how near they are (Henzinger 2006, Tables 2 and 5).
pub(super) fn levels(judged: &[JudgedPair], unit: Unit) -> Vec<Level> {
    let mut levels: Vec<(f64, Level)> = Vec::new();
    let mut sorted: Vec<&JudgedPair> = judged.iter().collect();
    sorted.sort_by(|a, b| b.level.total_cmp(&a.level));
    for pair in sorted {
        let (key, name) = level(pair.level, unit);
        if levels.last().is_none_or(|(last, _)| last.total_cmp(&key).is_ne()) {
            let level = Level { level: name, pairs: 0, correct: 0, same_site: (0, 0), different_site: (0, 0) };
            levels.push((key, level));
        }
        let Some((_, level)) = levels.last_mut() else { continue };
        let correct = u64::from(pair.is_correct);
        level.pairs += 1;
        level.correct += correct;
        let site = match pair.facts.same_site {
            Some(true) => &mut level.same_site,
            Some(false) => &mut level.different_site,
            None => continue,
        };
        site.0 += 1;
        site.1 += correct;
    }
    levels.into_iter().map(|row| row.1).collect()
}

fn level(value: f64, unit: Unit) -> (f64, String) {
    if value.is_infinite() {
        return (value, "copies".to_owned());
    }
    match unit {
        Unit::Similarity => {
            let low = (value * 10.0).floor().min(9.0) / 10.0;
            (low, format!("{low:.1}–{:.1}", low + 0.1))
        }
        Unit::Supershingles { .. } => (value, format!("{value}")),
        Unit::DifferingBits => (value, format!("{}", value.abs())),
        Unit::EqualBits { of: bits } => {
            // The ranges of Table 5, and ranges of four below them.
            let differing = f64::from(bits) - value.min(f64::from(bits));
            let (from, to) = match differing {
                d if d <= 2.0 => (0.0, 2.0),
                d if d <= 5.0 => (3.0, 5.0),
                d if d <= 8.0 => (6.0, 8.0),
                d => {
                    let from = 9.0 + ((d - 9.0) / 4.0).floor() * 4.0;
                    (from, from + 3.0)
                }
            };
            (-from, format!("{}–{}", f64::from(bits) - to, f64::from(bits) - from))
        }
    }
}
