//! Hashes, each as often as it occurs → a set.
//!
//! In: hashes whose bits are as good as random. Out: the same, ascending, each once. The highest bits say where in the
//! order a hash stands, more or less: hashes are put there in one pass, and neighbours are put right in a second.

/// With fewer hashes, comparing them takes less time.
const FEWEST: usize = 48;

/// More hashes than this in one place are not random.
const MOST_IN_PLACE: u32 = 24;

/// Makes sets; has the room it needs, and is used again.
#[derive(Default)]
pub struct HashSets {
    ends: Vec<u32>,
    placed: Vec<u64>,
}

impl HashSets {
    /// Sorts hashes and removes duplicates.
    pub fn make(&mut self, hashes: &mut Vec<u64>) {
        if hashes.len() < FEWEST || !self.place(hashes) {
            hashes.sort_unstable();
        } else {
            sort_neighbours(&mut self.placed);
            std::mem::swap(hashes, &mut self.placed);
        }
        hashes.dedup();
    }

    /// Puts each hash among those with the same highest bits; gives up where these are too many.
    fn place(&mut self, hashes: &[u64]) -> bool {
        let bits = hashes.len().next_power_of_two().ilog2();
        let place = |hash: u64| usize::try_from(hash >> (u64::BITS - bits)).unwrap_or(0);
        self.ends.clear();
        self.ends.resize(1 << bits, 0);
        hashes.iter().for_each(|&hash| self.ends[place(hash)] += 1);
        let mut start = 0;
        for end in &mut self.ends {
            if *end > MOST_IN_PLACE {
                return false;
            }
            start += std::mem::replace(end, start);
        }
        self.placed.clear();
        self.placed.resize(hashes.len(), 0);
        for &hash in hashes {
            let next = &mut self.ends[place(hash)];
            self.placed[*next as usize] = hash;
            *next += 1;
        }
        true
    }
}

/// Sorts what is nearly sorted.
fn sort_neighbours(hashes: &mut [u64]) {
    for at in 1..hashes.len() {
        let hash = hashes[at];
        let mut to = at;
        while to > 0 && hashes[to - 1] > hash {
            hashes[to] = hashes[to - 1];
            to -= 1;
        }
        hashes[to] = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mix;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(hashes: &[u64]) {
        let expected: Vec<u64> = hashes.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let (mut sets, mut made) = (HashSets::default(), hashes.to_vec());
        sets.make(&mut made);
        assert_eq!(made, expected);
        // With room that was used before.
        made = hashes.to_vec();
        sets.make(&mut made);
        assert_eq!(made, expected);
    }

    #[test]
    fn hashes_that_are_not_random_are_sorted_all_the_same() {
        check(&[7; 1000]);
        check(&(0..1000).rev().collect::<Vec<u64>>());
        check(&(0..1000).map(|n| n << 54).collect::<Vec<u64>>());
        check(&[0, u64::MAX].repeat(40));
    }

    proptest! {
        #[test]
        fn equals_the_definition(numbers in prop::collection::vec(0u64..2000, 0..1500), is_mixed in any::<bool>()) {
            check(&numbers.iter().map(|&n| if is_mixed { mix(n) } else { n }).collect::<Vec<_>>());
        }
    }
}
