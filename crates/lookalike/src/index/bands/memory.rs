//! The newest rows: a hash table that one thread fills while others look into it.
//!
//! A slot is one number, so that a reader sees a row whole or not at all; nothing is ever moved or removed. Where a row
//! would stand follows from its key, and the part of the key that does not follow from the place is in the slot.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::bands::{BandRow, MOST_ROWS_OF_KEY};

/// A slot that nothing is in: numbers are stored as one more than they are.
const EMPTY: u64 = 0;

/// Rows in memory.
pub(crate) struct BandMemory {
    slots: Box<[AtomicU64]>,
}

impl BandMemory {
    /// A table for `rows` rows.
    pub(crate) fn new(rows: usize) -> BandMemory {
        let slots = (rows.max(1) * 2).next_power_of_two();
        BandMemory { slots: (0..slots).map(|_| AtomicU64::new(EMPTY)).collect() }
    }

    /// Rows that it has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len() / 2
    }

    /// Where rows with a key begin to stand, and what stands for the key there.
    fn place(&self, key: u64) -> (usize, u64) {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        #[allow(clippy::cast_possible_truncation)] // a few bits of it
        let at = (mixed >> 32) as usize & (self.slots.len() - 1);
        (at, (key & 0xffff_ffff) << 32)
    }

    /// Adds a row. Only one thread may do this, and not more often than there is room. Of a crowd only the first rows stay.
    pub(crate) fn insert(&self, row: BandRow) {
        let (mut at, tag) = self.place(row.key);
        let mut same = 0;
        loop {
            let slot = self.slots[at].load(Ordering::Relaxed);
            if slot == EMPTY {
                break;
            }
            same += usize::from(slot & !0xffff_ffff == tag);
            if same == MOST_ROWS_OF_KEY {
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        // The last number is never given out.
        self.slots[at].store(tag | (u64::from(row.number) + 1), Ordering::Release);
    }

    /// Appends the numbers of the rows with each of some keys, at most `most` of a key, from old to new.
    pub(crate) fn find(&self, keys: &[u64], most: usize, numbers: &mut Vec<u32>) {
        // The processor waits for many slots at once, instead of one after the other.
        let touched = keys.iter().fold(0, |sum, &key| sum ^ self.slots[self.place(key).0].load(Ordering::Relaxed));
        std::hint::black_box(touched);
        keys.iter().for_each(|&key| self.find_one(key, most, numbers));
    }

    fn find_one(&self, key: u64, most: usize, numbers: &mut Vec<u32>) {
        let (mut at, tag) = self.place(key);
        let end = numbers.len() + most;
        loop {
            let slot = self.slots[at].load(Ordering::Acquire);
            if slot == EMPTY || numbers.len() == end {
                return;
            }
            if slot & !0xffff_ffff == tag {
                #[allow(clippy::cast_possible_truncation)] // the lower half
                numbers.push((slot as u32).wrapping_sub(1));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_random;

    #[test]
    fn rows_are_found_by_their_keys_while_others_come() {
        let memory = BandMemory::new(20_000);
        let mut seed = 1;
        let keys: Vec<u64> = (0..5000).map(|_| next_random(&mut seed) >> 16).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..4u32 {
                    for (at, &key) in (0..).zip(&keys) {
                        memory.insert(BandRow { key, number: round * 5000 + at });
                    }
                }
            });
            // Whatever is seen meanwhile is right, and in order.
            for (at, &key) in (0..).zip(&keys) {
                let mut found = Vec::new();
                memory.find(&[key], 100, &mut found);
                assert!(found.iter().zip(0..).all(|(&number, round)| number == round * 5000 + at), "{found:?}");
            }
        });
        for (at, &key) in (0..).zip(&keys) {
            let mut found = Vec::new();
            memory.find(&[key], 100, &mut found);
            assert_eq!(found, [at, 5000 + at, 10_000 + at, 15_000 + at]);
            found.clear();
            memory.find(&[key], 2, &mut found);
            assert_eq!(found, [at, 5000 + at]);
        }
        let mut found = Vec::new();
        memory.find(&[next_random(&mut seed) >> 16], 100, &mut found);
        assert!(found.is_empty());
    }

    #[test]
    fn a_crowd_does_not_fill_the_table() {
        let memory = BandMemory::new(1000);
        (0..100_000).for_each(|number| memory.insert(BandRow { key: 7, number }));
        memory.insert(BandRow { key: 8, number: 1 });
        let mut found = Vec::new();
        memory.find(&[7], usize::MAX >> 1, &mut found);
        assert_eq!(found.len(), MOST_ROWS_OF_KEY);
        found.clear();
        memory.find(&[8], 10, &mut found);
        assert_eq!(found, [1]);
    }
}
