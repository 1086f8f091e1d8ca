//! Which pairs are judged together: by what the method decides by, or by similarity, and by site.

use serde::Serialize;

use crate::evaluate::PAPER_BIT_RANGES;
use crate::names::named;
use crate::page::ScoredPair;
use crate::plan::Unit;
use crate::plan::decision::PAPER_BITS;

named! {
    /// What the pairs of a sample are divided by.
    pub enum StratifyBy {
        /// What the method decides by: equal supershingles, ranges of equal bits, differing bits, or similarity
        Method = "method",
        /// Ranges of the exact similarity
        Similarity = "similarity",
    }
}

/// Which pairs are judged together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Stratum {
    /// Whether the result calls its pairs near-duplicates.
    pub accepted: bool,
    /// How near its pairs are.
    pub level: Level,
    /// `same`, `different` or `unknown`.
    pub site: &'static str,
}

/// How near pairs are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level {
    /// From far to near.
    order: i64,
    name: String,
}

impl Serialize for Level {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl Level {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn of(pair: &ScoredPair, unit: Unit, by: StratifyBy) -> Level {
        match (by, unit) {
            (StratifyBy::Similarity, _) | (_, Unit::Similarity) => Level::of_similarity(pair.similarity),
            (_, Unit::Supershingles { .. }) => {
                let equal = whole(pair.score);
                Level { order: equal, name: format!("{equal} supershingles") }
            }
            (_, Unit::EqualBits { of }) => Level::of_bits(whole(pair.score), of),
            (_, Unit::DifferingBits) => {
                let differing = whole(pair.score);
                Level { order: -differing, name: format!("{differing} bits differ") }
            }
        }
    }

    fn of_similarity(similarity: f64) -> Level {
        let thousandths = whole(similarity.clamp(0.0, 1.0) * 1000.0);
        let at = BOUNDS.partition_point(|&bound| bound <= thousandths).clamp(1, BOUNDS.len() - 1);
        let share = |bound: i64| bound as f64 / 1000.0;
        Level { order: BOUNDS[at - 1], name: format!("{}–{}", share(BOUNDS[at - 1]), share(BOUNDS[at])) }
    }

    /// The ranges of Henzinger (2006), Tables 5 and 10, for a sketch of any size.
    fn of_bits(equal: i64, of: u32) -> Level {
        let (of, paper) = (i64::from(of), i64::from(PAPER_BITS));
        let starts = PAPER_BIT_RANGES.map(|from| of - (paper - i64::from(from)) * of / paper);
        match starts.iter().rposition(|&from| equal >= from) {
            None => Level { order: 0, name: format!("fewer than {} equal bits", starts[0]) },
            Some(at) => {
                let to = starts.get(at + 1).map_or(of, |next| next - 1);
                Level { order: starts[at], name: format!("{}–{to} equal bits", starts[at]) }
            }
        }
    }
}

/// Where strata of similarity begin, in thousandths.
const BOUNDS: [i64; 12] = [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 1000];

fn whole(value: f64) -> i64 {
    #[allow(clippy::cast_possible_truncation)] // a count, or thousandths
    let whole = (value + 1e-9).floor() as i64;
    whole
}

impl Stratum {
    pub(super) fn new(accepted: bool, level: Level, same_site: Option<bool>) -> Stratum {
        let site = match same_site {
            Some(true) => "same",
            Some(false) => "different",
            None => "unknown",
        };
        Stratum { accepted, level, site }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        let what = if self.accepted { "near-duplicates" } else { "near misses" };
        let site = match self.site {
            "same" => ", same site",
            "different" => ", different sites",
            _ => "",
        };
        format!("{what}, {}{site}", self.level.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::pair;

    fn name(unit: Unit, by: StratifyBy, similarity: f64, score: f64) -> String {
        Level::of(&ScoredPair { score, ..pair(0, 1, similarity) }, unit, by).name
    }

    #[test]
    fn pairs_are_divided_by_what_the_method_decides_by() {
        let by = StratifyBy::Method;
        assert_eq!(name(Unit::Supershingles { of: 6 }, by, 0.9, 4.0), "4 supershingles");
        assert_eq!(name(Unit::DifferingBits, by, 0.9, 3.0), "3 bits differ");
        let bits = |equal: f64| name(Unit::EqualBits { of: 384 }, by, 0.9, equal);
        assert_eq!(
            [bits(371.0), bits(372.0), bits(375.0)],
            ["fewer than 372 equal bits", "372–375 equal bits", "372–375 equal bits"]
        );
        assert_eq!(
            [bits(376.0), bits(381.0), bits(384.0)],
            ["376–378 equal bits", "379–381 equal bits", "382–384 equal bits"]
        );
        assert_eq!(name(Unit::Similarity, by, 0.7, 0.7), "0.7–0.8");
        assert_eq!(name(Unit::Similarity, by, 1.0, 1.0), "0.95–1");
        assert_eq!(name(Unit::DifferingBits, StratifyBy::Similarity, 0.25, 3.0), "0.2–0.3");
    }

    #[test]
    fn levels_are_ordered_from_far_to_near() {
        let level =
            |score: f64| Level::of(&ScoredPair { score, ..pair(0, 1, 0.5) }, Unit::DifferingBits, StratifyBy::Method);
        assert!(level(10.0) < level(3.0) && level(3.0) < level(0.0));
    }
}
