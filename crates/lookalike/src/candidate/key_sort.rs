//! Rows by their keys, whose bits are as good as random.
//!
//! In: rows of a key and a page. Out: the same, ascending. Each row is put among those with the same highest bits, in place, and so
//! on in each part until few are left, which are compared; that takes about a third of the time of comparing all. Where many keys
//! are equal, the rows of the same key are sorted by their pages at the end. Parts are sorted side by side.

use rayon::prelude::*;

use crate::page::PageId;

/// A key and whose it is.
pub type Row = (u64, PageId);

/// So few are compared.
const FEW: usize = 24;
/// So many are worth a thread of their own.
const MANY: usize = 1 << 14;
/// Parts that a thread sorts, about.
const PARTS_PER_THREAD: usize = 8;
/// Bits that are looked at together, at the most.
const MOST_BITS: u32 = 14;
/// The most rows that a part is to have.
const PART: usize = 8;

/// Sorts rows.
pub fn sort_by_key(rows: &mut [Row]) {
    // Few parts first, where each is worth a thread.
    let threads = rayon::current_num_threads();
    let taken = if threads > 1 && rows.len() >= MANY { (threads * PARTS_PER_THREAD).ilog2() } else { MOST_BITS };
    sort_below(rows, u64::BITS, taken);
}

/// Sorts rows whose keys are the same but for the lowest `bits`, of which at most `most` are looked at first.
fn sort_below(rows: &mut [Row], bits: u32, most: u32) {
    if rows.len() <= FEW || bits == 0 {
        rows.sort_unstable();
        return;
    }
    let taken = (rows.len() / PART).next_power_of_two().ilog2().clamp(1, most.min(bits));
    let below = bits - taken;
    let mask = (1u64 << taken) - 1;
    let part_of = |row: &Row| usize::try_from((row.0 >> below) & mask).unwrap_or(0);
    let mut ends = vec![0u32; 1 << taken];
    rows.iter().for_each(|row| ends[part_of(row)] += 1);
    let counts = ends.clone();
    let mut next = Vec::with_capacity(ends.len());
    let mut end = 0;
    for count in &mut ends {
        next.push(end);
        end += *count;
        *count = end;
    }
    for part in 0..ends.len() {
        while next[part] < ends[part] {
            let at = next[part] as usize;
            let mut row = rows[at];
            // Around the circle of rows that stand in each other's places.
            loop {
                let place = part_of(&row);
                let to = next[place] as usize;
                next[place] += 1;
                std::mem::swap(&mut rows[to], &mut row);
                if to == at {
                    break;
                }
            }
        }
    }
    let is_worth_threads = rows.len() >= MANY;
    let mut parts = Vec::new();
    let mut rest = rows;
    for count in counts {
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(count as usize);
        rest = behind;
        if part.len() < 2 {
            continue;
        }
        if is_worth_threads {
            parts.push(part);
        } else {
            sort_below(part, below, MOST_BITS);
        }
    }
    let few = parts.len() / (rayon::current_num_threads() * PARTS_PER_THREAD);
    parts.into_par_iter().with_min_len(few.max(1)).for_each(|part| sort_below(part, below, MOST_BITS));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mix;
    use proptest::prelude::*;

    fn check(keys: impl Iterator<Item = u64>) {
        let mut rows: Vec<Row> = keys.zip(PageId::counting()).collect();
        // In any order, not that of the pages.
        rows.sort_unstable_by_key(|row| mix(u64::from(row.1.number()) + 1));
        let mut expected = rows.clone();
        expected.sort_unstable();
        sort_by_key(&mut rows);
        assert!(rows == expected);
    }

    #[test]
    fn many_rows_equal_keys_and_keys_that_are_not_random() {
        for count in [0, 1, FEW as u64, 1000, 40_000] {
            check((0..count).map(mix));
            check((0..count).map(|n| mix(n / 3)));
            check((0..count).map(|n| mix(n % 5)));
            check((0..count).map(|_| 7));
            check(0..count);
            check((0..count).map(|n| n << 50));
            check((0..count).map(|n| if n % 2 == 0 { 0 } else { mix(n) }));
        }
    }

    proptest! {
        #[test]
        fn equals_sorting(keys in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..50, (0u64..50).prop_map(mix)], 0..600)) {
            check(keys.into_iter());
        }
    }
}
