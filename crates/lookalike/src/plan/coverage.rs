//! Does a design find everything within its radius? A search for what it would miss.

use std::ops::Range;

use crate::plan::design::{Design, bit_of};

impl Design {
    /// Differing bits, at most as many as the radius, that no table finds: there are none, and this
    /// looks at every way to place them. It is a search for a set of bits that hits every prefix too
    /// often: some table that still finds the strings must be hit once more, in one of its bits. For nested
    /// blocks at large radii it ends after a few seconds without having looked at all.
    #[must_use]
    pub fn gap(&self) -> Option<Vec<u32>> {
        // Bits that lie in the same prefixes are alike, so that only their number counts.
        let mut ends: Vec<u32> =
            self.tables.iter().flat_map(|table| table.order.iter().map(|range| range.end)).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut runs: Vec<Range<u32>> = Vec::new();
        for end in ends {
            runs.push(runs.last().map_or(0, |last| last.end)..end);
        }
        let mut prefixes: Vec<(u128, u32)> = Vec::new();
        for table in &self.tables {
            let inside = |run: &Range<u32>| table.mask[run.start as usize / 64] & bit_of(run.start) != 0;
            let in_prefix = runs.iter().take(128).enumerate().filter(|(_, run)| inside(run));
            prefixes.push((in_prefix.fold(0, |all, (at, _)| all | 1 << at), table.flips));
        }
        let room = runs.iter().map(|run| run.end - run.start).collect();
        let mut search = GapSearch { prefixes, room, placed: vec![0; runs.len()], hit: 0, steps: 0 };
        search
            .escapes(self.radius)
            .then(|| runs.iter().zip(&search.placed).flat_map(|(run, &count)| run.start..run.start + count).collect())
    }
}

/// A search for differing bits that no table finds.
struct GapSearch {
    /// The runs of bits in each prefix, and how many of its bits may differ.
    prefixes: Vec<(u128, u32)>,
    /// Bits of each run that may be made to differ.
    room: Vec<u32>,
    /// Bits of each run that differ.
    placed: Vec<u32>,
    /// Runs with such bits.
    hit: u128,
    /// Looks at tables so far.
    steps: u64,
}

/// Looks at tables after which a search is given up.
const MOST_STEPS: u64 = 1 << 31;

impl GapSearch {
    /// Places at most `left` more differing bits so that no table finds the strings, if that can be done.
    fn escapes(&mut self, left: u32) -> bool {
        self.steps += self.prefixes.len() as u64;
        if self.steps > MOST_STEPS {
            return false;
        }
        // Tables that still find them and have no bit in common: each needs differing bits of its own.
        let (mut taken, mut needed, mut first) = (0, 0, 0);
        for &(prefix, flips) in &self.prefixes {
            let is_hit = prefix & self.hit != 0;
            if prefix & taken != 0 || is_hit && flips == 0 {
                continue;
            }
            let hits = if is_hit { runs(prefix & self.hit).map(|run| self.placed[run]).sum() } else { 0 };
            if hits <= flips {
                taken |= prefix;
                needed += flips + 1 - hits;
                first = if first == 0 { prefix } else { first };
                if needed > left {
                    return false;
                }
            }
        }
        if needed == 0 {
            return true;
        }
        // Ways that put a bit into the first run, then those that put none there but one into the second, ….
        let before = self.room.clone();
        for run in runs(first) {
            if self.placed[run] < self.room[run] {
                let hit = self.hit;
                self.placed[run] += 1;
                self.hit |= 1 << run;
                if self.escapes(left - 1) {
                    return true;
                }
                self.placed[run] -= 1;
                self.hit = hit;
            }
            self.room[run] = self.placed[run];
        }
        self.room = before;
        false
    }
}

/// The places of the ones.
fn runs(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (set != 0).then_some(set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        place
    })
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers
mod tests {
    use super::*;
    use crate::plan::design::Cut;
    use crate::random::next_random;

    /// Designs of every kind for a radius.
    fn all_designs(radius: u32) -> Vec<Design> {
        let mut cuts: Vec<Cut> = (1..=radius).map(Cut::Flips).collect();
        for extra in 1..=3 {
            cuts.push(Cut::Blocks(vec![radius + extra]));
        }
        if (1..=4).contains(&radius) {
            cuts.extend((1..=3).map(|extra| Cut::Blocks(vec![radius + 1, radius + extra])));
            cuts.push(Cut::Blocks(vec![radius + 2, radius + 1]));
            cuts.push(Cut::Blocks(vec![radius + 1; 3]));
        }
        cuts.into_iter().filter_map(|cut| Design::new(64, radius, cut).ok()).collect()
    }

    #[test]
    fn every_way_to_place_up_to_three_differing_bits_is_found() {
        for radius in 0..=3 {
            for design in all_designs(radius) {
                for a in 0..64 {
                    for b in a..64 {
                        for c in b..64 {
                            let difference: u64 = 1 << a | 1 << b | 1 << c;
                            if difference.count_ones() <= radius {
                                assert!(
                                    design.first_table(difference).is_some(),
                                    "{:?} misses {difference:x}",
                                    design.cut()
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn no_design_of_any_radius_has_a_gap() {
        let mut seen = 0;
        for radius in 0..=10 {
            for design in all_designs(radius) {
                assert_eq!(design.gap(), None, "radius {radius}, {}", design.cut());
                seen += 1;
            }
        }
        assert!(seen > 60, "{seen}");
        for pieces in [12, 13] {
            assert_eq!(Design::pieces(384, pieces).gap(), None);
        }
    }

    #[test]
    fn a_design_with_a_gap_is_found_out() {
        for (radius, levels) in [(3, vec![4]), (3, vec![4, 4]), (2, vec![5]), (10, vec![11])] {
            let mut design = Design::new(64, radius, Cut::Blocks(levels)).unwrap();
            design.tables.swap_remove(1);
            let gap = design.gap().unwrap();
            assert!(gap.len() as u32 <= radius);
            let difference = gap.iter().fold(0, |all, &bit| all | bit_of(bit));
            assert_eq!(design.first_table(difference), None);
        }
        let mut design = Design::new(64, 5, Cut::Flips(2)).unwrap();
        assert_eq!(design.gap(), None);
        design.radius = 6;
        assert_eq!(design.gap().unwrap().len(), 6);
    }

    #[test]
    fn tables_hold_every_bit_once_and_the_first_holds_them_as_they_are() {
        let mut state = 77;
        for radius in 0..=6 {
            for design in all_designs(radius) {
                for (number, table) in design.tables().iter().enumerate() {
                    let value = next_random(&mut state);
                    let key = table.permute(value);
                    assert_eq!(table.restore(key), value);
                    assert_eq!(table.permute(0b1011).count_ones(), 3);
                    assert!(number > 0 || key == value, "{}", design.cut());
                    // The prefix comes first.
                    let prefix = !u64::MAX.unbounded_shr(table.prefix);
                    assert_eq!(table.permute(table.mask[0]), prefix);
                    let patterns = table.patterns();
                    assert_eq!(patterns.len() as u64, table.probes());
                    assert!(
                        patterns.iter().all(|pattern| pattern & !prefix == 0 && pattern.count_ones() <= table.flips)
                    );
                }
            }
        }
    }
}
