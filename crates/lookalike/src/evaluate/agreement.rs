//! How far two people agree, beyond chance (Cohen 1960).

use std::collections::HashMap;
use std::hash::Hash;

/// How two coders labelled the same things.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Agreement {
    /// Things that both labelled.
    pub items: u64,
    /// Share of them with the same label.
    pub observed: f64,
    /// That share if both had given as many of each label, at random.
    pub expected: f64,
}

impl Agreement {
    /// Counts how often two coders gave the same label.
    ///
    /// ```
    /// use lookalike::evaluate::agreement::Agreement;
    ///
    /// let labels = [("yes", "yes"), ("yes", "no"), ("no", "no"), ("no", "no")];
    /// let agreement = Agreement::of(labels);
    /// assert_eq!((agreement.items, agreement.kappa()), (4, Some(0.5)));
    /// ```
    pub fn of<L: Eq + Hash>(labels: impl IntoIterator<Item = (L, L)>) -> Agreement {
        let (mut items, mut same) = (0u64, 0u64);
        let mut counts: HashMap<L, [u64; 2]> = HashMap::new();
        for (left, right) in labels {
            items += 1;
            same += u64::from(left == right);
            counts.entry(left).or_default()[0] += 1;
            counts.entry(right).or_default()[1] += 1;
        }
        let all = items.max(1) as f64;
        // A sum of whole numbers, so that the order of the labels does not matter.
        let chance: u128 = counts.values().map(|count| u128::from(count[0]) * u128::from(count[1])).sum();
        Agreement { items, observed: same as f64 / all, expected: chance as f64 / (all * all) }
    }

    /// Cohen's kappa: 1 where both always agree, 0 where they agree as often as by chance; nothing where there is nothing to
    /// agree about, as when both gave one label only.
    #[must_use]
    pub fn kappa(&self) -> Option<f64> {
        (self.items > 0 && self.expected < 1.0).then(|| (self.observed - self.expected) / (1.0 - self.expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(cells: [[usize; 2]; 2]) -> Agreement {
        let cell = |left: usize, right: usize| std::iter::repeat_n((left, right), cells[left][right]);
        Agreement::of((0..2).flat_map(|left| (0..2).flat_map(move |right| cell(left, right))))
    }

    #[test]
    fn known_answers() {
        // 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: 0.7 observed, 0.5 expected.
        let grants = table([[20, 5], [10, 15]]);
        assert_eq!((grants.items, grants.observed, grants.expected), (50, 0.7, 0.5));
        assert!((grants.kappa().unwrap() - 0.4).abs() < 1e-12);
        // The same share of agreement, other shares of labels: 0.1304 and 0.2593.
        assert!((table([[45, 15], [25, 15]]).kappa().unwrap() - 0.130_434_782_6).abs() < 1e-9);
        assert!((table([[25, 35], [5, 35]]).kappa().unwrap() - 0.259_259_259_3).abs() < 1e-9);
        assert_eq!(table([[0, 7], [7, 0]]).kappa(), Some(-1.0));
    }

    #[test]
    fn there_is_no_kappa_where_nothing_can_be_told_apart() {
        assert_eq!(table([[0, 0], [0, 0]]).kappa(), None);
        assert_eq!(table([[9, 0], [0, 0]]).kappa(), None);
    }
}
