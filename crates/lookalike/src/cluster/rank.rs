//! The order of preference: (keep policy, position).
//!
//! A page's position (source, record) is its number, so ties end there and no two pages are equal.

use rayon::prelude::*;

use crate::page::PageId;

/// The rank of every page; 0 is kept first.
#[derive(Debug, Clone)]
pub enum Ranks {
    /// By position alone.
    Position,
    /// By a policy, as places in the order.
    Places(Vec<u32>),
}

impl Ranks {
    /// By ascending key, then position. No keys: by position.
    #[must_use]
    pub fn new(keys: &[f64]) -> Ranks {
        if keys.is_empty() {
            return Ranks::Position;
        }
        let mut order: Vec<PageId> = (0..).take(keys.len()).collect();
        order.par_sort_unstable_by(|&a, &b| keys[a as usize].total_cmp(&keys[b as usize]).then(a.cmp(&b)));
        let mut places = vec![0; keys.len()];
        for (place, &page) in (0..).zip(&order) {
            places[page as usize] = place;
        }
        Ranks::Places(places)
    }

    /// The place of `page`.
    #[must_use]
    pub fn of(&self, page: PageId) -> u32 {
        match self {
            Ranks::Position => page,
            Ranks::Places(places) => places[page as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_decide_and_position_breaks_ties() {
        let ranks = Ranks::new(&[5.0, f64::INFINITY, 1.0, 5.0]);
        assert_eq!((0..4).map(|page| ranks.of(page)).collect::<Vec<_>>(), [1, 3, 0, 2]);
        assert_eq!(Ranks::new(&[]).of(9), 9);
    }
}
