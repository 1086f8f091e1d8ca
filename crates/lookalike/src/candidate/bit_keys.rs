//! Keys for finding bit strings that differ in few places.
//!
//! In: bit strings as 64-bit words. Out: for each table a key, which is equal iff the bits that the
//! table looks at are. With `pieces` disjoint pieces of which one must be equal, no pair at distance
//! below `pieces` is missed (pigeonhole; Henzinger 2006, §2). With `blocks` blocks of which any
//! `blocks − radius` must be equal, no pair within `radius` is missed (Manku et al. 2007, §3.1).

use std::ops::Range;

/// The bits that each table looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitKeys {
    masks: Vec<Vec<u64>>,
    /// Every pair at this distance or below shares a key.
    exact_to: u32,
}

/// Cost of sorting a row, in comparisons of two fingerprints.
const SORT_COST: f64 = 40.0;
/// Blocks beyond the radius that are tried.
const MOST_EXTRA_BLOCKS: u32 = 3;

impl BitKeys {
    /// One table for each of `pieces` pieces of `bits` bits, as equal in length as can be.
    #[must_use]
    pub fn pieces(bits: u32, pieces: u32) -> BitKeys {
        let masks = parts(bits, pieces).map(|piece| mask(bits, [piece])).collect();
        BitKeys { masks, exact_to: pieces.saturating_sub(1) }
    }

    /// One table for every choice of `blocks − radius` of `blocks` blocks.
    #[must_use]
    pub fn permuted(bits: u32, radius: u32, blocks: u32) -> BitKeys {
        let parts: Vec<Range<u32>> = parts(bits, blocks).collect();
        let chosen = (blocks - radius.min(blocks - 1)) as usize;
        let masks = choices(parts.len(), chosen)
            .into_iter()
            .map(|choice| mask(bits, choice.into_iter().map(|block| parts[block].clone())))
            .collect();
        BitKeys { masks, exact_to: radius }
    }

    /// The cheapest design for all pairs within `radius` among `rows` fingerprints of 64 bits.
    #[must_use]
    pub fn for_rows(radius: u32, rows: u64) -> BitKeys {
        let cost = |blocks: u32| {
            let tables = BitKeys::permuted(64, radius, blocks).tables() as f64;
            let key_bits = f64::from(64 * (blocks - radius) / blocks);
            let rows = rows as f64;
            tables * (rows * SORT_COST + rows * rows / 2.0 / key_bits.exp2())
        };
        let blocks = (radius + 1..=radius + MOST_EXTRA_BLOCKS).min_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        BitKeys::permuted(64, radius, blocks.unwrap_or(radius + 1))
    }

    /// Tables.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.masks.len()
    }

    /// No pair at this distance or below is missed.
    #[must_use]
    pub fn exact_to(&self) -> u32 {
        self.exact_to
    }

    /// The key of a bit string in a table; `word` gives its words.
    #[inline]
    pub fn key(&self, table: usize, word: impl Fn(usize) -> u64) -> u64 {
        // Most masks lie in one or two words, so that the bits themselves fit a key; a sum of
        // products stands for longer ones.
        let mut key = 0u64;
        for (at, &mask) in self.masks[table].iter().enumerate().filter(|(_, mask)| **mask != 0) {
            key = (key ^ (word(at) & mask)).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29);
        }
        key
    }
}

/// `bits` bits cut into `count` parts whose lengths differ by at most one.
fn parts(bits: u32, count: u32) -> impl Iterator<Item = Range<u32>> {
    let at = move |part: u32| {
        #[allow(clippy::cast_possible_truncation)] // at most `bits`
        let at = (u64::from(bits) * u64::from(part) / u64::from(count)) as u32;
        at
    };
    (0..count).map(move |part| at(part)..at(part + 1))
}

fn mask(bits: u32, parts: impl IntoIterator<Item = Range<u32>>) -> Vec<u64> {
    let mut words = vec![0u64; bits.div_ceil(64) as usize];
    for bit in parts.into_iter().flatten() {
        words[bit as usize / 64] |= 1 << (bit % 64);
    }
    words
}

/// All choices of `chosen` of `count` things, each ascending.
fn choices(count: usize, chosen: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for thing in 0..count {
        let more: Vec<Vec<usize>> = all
            .iter()
            .filter(|choice: &&Vec<usize>| choice.len() < chosen)
            .map(|choice| choice.iter().copied().chain([thing]).collect())
            .collect();
        all.extend(more);
    }
    all.retain(|choice| choice.len() == chosen);
    all.sort();
    all
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers
mod tests {
    use super::*;
    use crate::candidate::band_join::BandJoin;
    use crate::random::next_random;
    use proptest::prelude::*;

    fn shares_a_key(keys: &BitKeys, left: &[u64], right: &[u64]) -> bool {
        (0..keys.tables()).any(|table| keys.key(table, |at| left[at]) == keys.key(table, |at| right[at]))
    }

    /// Flips `count` different bits of `bits`.
    fn flip(words: &[u64], bits: u32, count: u32, state: &mut u64) -> Vec<u64> {
        let mut places: Vec<u32> = (0..bits).collect();
        let mut flipped = words.to_vec();
        for _ in 0..count {
            let place = places.swap_remove(usize::try_from(next_random(state) % places.len() as u64).unwrap());
            flipped[place as usize / 64] ^= 1 << (place % 64);
        }
        flipped
    }

    #[test]
    fn pieces_are_as_equal_as_can_be() {
        let lengths: Vec<u32> = parts(384, 13).map(|part| part.end - part.start).collect();
        assert_eq!(lengths.iter().sum::<u32>(), 384);
        assert!(lengths.iter().all(|length| (29..=30).contains(length)), "{lengths:?}");
        assert!(parts(384, 12).all(|part| part.end - part.start == 32));
    }

    #[test]
    fn the_paper_s_numbers_of_tables() {
        let tables = |blocks| BitKeys::permuted(64, 3, blocks).tables();
        assert_eq!((tables(4), tables(5), tables(6)), (4, 10, 20));
        // The slides' example: 8 bits, distance 2, 4 blocks: 6 tables of 4 bits.
        let slides = BitKeys::permuted(8, 2, 4);
        assert_eq!(slides.tables(), 6);
        assert!(slides.masks.iter().all(|mask| mask[0].count_ones() == 4));
    }

    #[test]
    fn more_rows_get_longer_keys() {
        assert_eq!(BitKeys::for_rows(3, 10_000).tables(), 4);
        assert!(BitKeys::for_rows(3, 1 << 34).tables() >= 10);
        assert_eq!(BitKeys::for_rows(0, 1000).tables(), 1);
    }

    #[test]
    fn twelve_pieces_find_distant_pairs_with_the_known_chance() {
        // Distance 12: 0.99994, 16: 0.9915, 29: 0.637.
        let keys = BitKeys::pieces(384, 12);
        let mut state = 5;
        let draws = 4000;
        for (distance, known) in [(16, 0.9915), (29, 0.637)] {
            let found = (0..draws)
                .filter(|_| {
                    let words: Vec<u64> = (0..6).map(|_| next_random(&mut state)).collect();
                    let other = flip(&words, 384, distance, &mut state);
                    shares_a_key(&keys, &words, &other)
                })
                .count() as f64
                / f64::from(draws);
            let bound = 5.0 * (known * (1.0 - known) / f64::from(draws)).sqrt();
            assert!((found - known).abs() < bound, "distance {distance}: {found} instead of {known}");
        }
    }

    /// Random rows, and clusters whose members differ in bits that an adversary put into one block,
    /// spread over all blocks, or walked along the row.
    fn adversarial_rows(bits: u32, distance: u32, state: &mut u64) -> Vec<Vec<u64>> {
        let words = bits.div_ceil(64);
        let mut rows: Vec<Vec<u64>> = Vec::new();
        for cluster in 0..24u32 {
            let centre: Vec<u64> = (0..words).map(|_| next_random(state)).collect();
            let centre: Vec<u64> = centre
                .iter()
                .enumerate()
                .map(|(at, word)| {
                    let left = bits - at as u32 * 64;
                    if left >= 64 { *word } else { word & ((1 << left) - 1) }
                })
                .collect();
            rows.push(centre.clone()); // equal to the first member
            for step in 0..=distance + 2 {
                let mut row = centre.clone();
                for flip in 0..step {
                    let place = match cluster % 3 {
                        0 => (cluster * 7 + flip) % bits,
                        1 => (cluster + flip * (bits / (distance + 1)).max(1)) % bits,
                        _ => u32::try_from(next_random(state) % u64::from(bits)).unwrap(),
                    };
                    row[place as usize / 64] ^= 1 << (place % 64);
                }
                rows.push(row);
            }
        }
        rows
    }

    /// All pairs at most `most` bits apart, by tables and by comparing everything.
    fn check_against_brute_force(keys: &BitKeys, rows: &[Vec<u64>], most: u32) {
        let distance = |a: u32, b: u32| -> u32 {
            rows[a as usize].iter().zip(&rows[b as usize]).map(|(x, y)| (x ^ y).count_ones()).sum()
        };
        let (everyone, near) = (|_: u32| true, |a: u32, b: u32| distance(a, b) <= most);
        let mut join = BandJoin::new(&everyone, Some(&near), rows.len());
        for table in 0..keys.tables() {
            join.add(table, rows.iter().map(|row| keys.key(table, |at| row[at])));
        }
        let count = u32::try_from(rows.len()).unwrap();
        let expected: Vec<(u32, u32)> =
            (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).filter(|&(a, b)| near(a, b)).collect();
        assert!(expected.len() > 20);
        assert_eq!(join.finish().pairs, expected);
    }

    #[test]
    fn the_join_equals_brute_force_for_swept_radii_layouts_and_adversarial_clusters() {
        let mut state = 2007;
        for radius in 0..=6 {
            let rows = adversarial_rows(64, radius, &mut state);
            for blocks in radius + 1..=radius + 3 {
                check_against_brute_force(&BitKeys::permuted(64, radius, blocks), &rows, radius);
            }
            check_against_brute_force(&BitKeys::for_rows(radius, 1 << 30), &rows, radius);
        }
        // The paper's 12 pieces miss nothing up to distance 11, our 13 nothing up to 12.
        for (bits, pieces) in [(384, 12), (384, 13), (192, 7), (100, 4)] {
            let rows = adversarial_rows(bits, pieces - 1, &mut state);
            check_against_brute_force(&BitKeys::pieces(bits, pieces), &rows, pieces - 1);
        }
    }

    proptest! {
        #[test]
        fn no_pair_within_the_bound_is_missed(seed in any::<u64>(), bits in 16u32..400, pieces in 1u32..16, radius in 0u32..6, extra in 1u32..4) {
            let mut state = seed;
            let words: Vec<u64> = (0..bits.div_ceil(64)).map(|_| next_random(&mut state)).collect();
            let keys = BitKeys::pieces(bits, pieces);
            let near = flip(&words, bits, keys.exact_to().min(bits), &mut state);
            prop_assert!(shares_a_key(&keys, &words, &near));
            let keys = BitKeys::permuted(bits, radius, radius + extra);
            let near = flip(&words, bits, radius, &mut state);
            prop_assert!(shares_a_key(&keys, &words, &near));
        }
    }
}
