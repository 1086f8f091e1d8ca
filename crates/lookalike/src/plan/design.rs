//! Which bits a table looks at, so that nothing within a distance is missed.
//!
//! In: the number of bits, a radius, and how the bits are cut. Out: tables, each with the bits that
//! come first in it (its prefix) and how many of those may differ. Two ways to cut:
//!
//! - Blocks (Manku et al. 2007, §3.1): of `r` blocks at most `k` hold a differing bit, so some choice
//!   of `r − k` of them is equal in both; a table for each choice. The blocks that were not chosen can
//!   be cut again. With `r = k + 1` these are the pieces of Henzinger (2006), §2.
//! - Flips: of `m ≤ k` pieces one has at most `⌊k / m⌋` differing bits; a table for each piece, which
//!   is asked for every prefix that is that near. Fewer tables, more probes.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How bits are cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Cut {
    /// Into this many blocks; those not chosen again into as many as the next number says.
    Blocks(Vec<u32>),
    /// Into this many pieces, which are asked for with some bits flipped.
    Flips(u32),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Blocks(levels) => {
                let levels: Vec<String> = levels.iter().map(ToString::to_string).collect();
                write!(f, "{}", levels.join("x"))
            }
            Cut::Flips(pieces) => write!(f, "flip{pieces}"),
        }
    }
}

impl FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Cut, String> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|&number| number > 0);
        let cut = match text.strip_prefix("flip") {
            Some(pieces) => number(pieces).map(Cut::Flips),
            None => text.split('x').map(number).collect::<Option<Vec<u32>>>().map(Cut::Blocks),
        };
        cut.ok_or_else(|| {
            format!("'{text}' is not a table design; write the number of blocks (4), nested blocks (4x4), or flip2")
        })
    }
}

impl From<Cut> for String {
    fn from(cut: Cut) -> String {
        cut.to_string()
    }
}

impl TryFrom<String> for Cut {
    type Error = String;

    fn try_from(text: String) -> Result<Cut, String> {
        text.parse()
    }
}

/// The tables for a radius.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    bits: u32,
    pub(super) radius: u32,
    cut: Cut,
    pub(super) tables: Vec<TableShape>,
}

/// One table: bits in an order, of which the first must be equal, or nearly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    /// All bits, the prefix first. Bit 0 is the highest of the first word.
    pub(super) order: Vec<Range<u32>>,
    /// Bits in the prefix.
    pub prefix: u32,
    /// Bits of the prefix that may differ.
    pub flips: u32,
    /// The bits of the prefix, where they are.
    pub(super) mask: Vec<u64>,
    /// By how much 64 bits are rotated, where that is all that the order does.
    rotation: Option<u32>,
}

/// The largest radius for which tables are made: beyond it, prefixes are so short that a query compares nearly every row.
pub const MOST_RADIUS: u32 = 15;
/// The most tables of a design, so that a slip does not ask for millions.
pub const MOST_TABLES: u64 = 2048;
/// The most probes into one table.
const MOST_PROBES: u64 = 1 << 16;

impl Design {
    /// The tables for `radius` among strings of `bits` bits.
    ///
    /// # Errors
    /// With the reason, when the cut cannot serve this radius.
    pub fn new(bits: u32, radius: u32, cut: Cut) -> Result<Design, String> {
        let tables = match &cut {
            Cut::Blocks(levels) => {
                let too_few = levels.iter().find(|&&blocks| blocks <= radius);
                if levels.is_empty() || too_few.is_some() {
                    return Err(format!(
                        "radius {radius} needs at least {} blocks: with {cut}, every block may hold a differing bit",
                        radius + 1
                    ));
                }
                if let Some(blocks) = levels.iter().find(|&&blocks| blocks > bits) {
                    return Err(format!("{bits} bits cannot be cut into {blocks} blocks"));
                }
                let count = levels.iter().map(|&blocks| binomial(blocks, radius)).fold(1, u64::saturating_mul);
                if count > MOST_TABLES {
                    return Err(format!(
                        "{cut} blocks at radius {radius} make {count} tables; {MOST_TABLES} is the most"
                    ));
                }
                let mut tables = Vec::new();
                nest(levels, radius, &[], vec![whole(bits)], &mut tables)?;
                tables.into_iter().map(|(prefix, rest)| TableShape::new(bits, prefix, rest, 0)).collect()
            }
            &Cut::Flips(pieces) => {
                if pieces > bits {
                    return Err(format!("{bits} bits cannot be cut into {pieces} pieces"));
                }
                let (flips, over) = (radius / pieces, radius % pieces);
                let parts: Vec<Vec<Range<u32>>> = parts(&[whole(bits)], pieces).collect();
                // Pieces behind the first `over + 1` need one flip less; without any, they need no table.
                let shapes = (0..parts.len()).filter_map(|at| {
                    let flips = if at as u64 <= u64::from(over) { Some(flips) } else { flips.checked_sub(1) };
                    flips.map(|flips| TableShape::new(bits, parts[at].clone(), others(&parts, &[at]), flips))
                });
                let shapes: Vec<TableShape> = shapes.collect();
                if let Some(shape) = shapes.iter().find(|shape| shape.probes() > MOST_PROBES) {
                    return Err(format!("{cut} at radius {radius} takes {} probes into a table", shape.probes()));
                }
                shapes
            }
        };
        Ok(Design { bits, radius, cut, tables })
    }

    /// A table for each of `pieces` pieces, at least one of which must be equal.
    #[must_use]
    pub fn pieces(bits: u32, pieces: u32) -> Design {
        let parts: Vec<Vec<Range<u32>>> = parts(&[whole(bits)], pieces).collect();
        let shape = |at: usize| TableShape::new(bits, parts[at].clone(), others(&parts, &[at]), 0);
        let tables = (0..parts.len()).map(shape).collect();
        Design { bits, radius: pieces.saturating_sub(1), cut: Cut::Blocks(vec![pieces]), tables }
    }

    /// Bits of a string.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// No pair at this distance or below is missed.
    #[must_use]
    pub fn radius(&self) -> u32 {
        self.radius
    }

    /// How the bits are cut.
    #[must_use]
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &[TableShape] {
        &self.tables
    }

    /// The shortest prefix.
    #[must_use]
    pub fn shortest_prefix(&self) -> u32 {
        self.tables.iter().map(|table| table.prefix).min().unwrap_or(0)
    }

    /// Probes of a query, into all tables together.
    #[must_use]
    pub fn probes(&self) -> u64 {
        self.tables.iter().map(TableShape::probes).sum()
    }

    /// The first table that finds two 64-bit strings which differ by `difference`.
    #[inline]
    #[must_use]
    pub fn first_table(&self, difference: u64) -> Option<usize> {
        self.tables.iter().position(|table| table.finds(difference))
    }
}

impl TableShape {
    fn new(bits: u32, prefix: Vec<Range<u32>>, rest: Vec<Range<u32>>, flips: u32) -> TableShape {
        let mut mask = vec![0u64; bits.div_ceil(64) as usize];
        for bit in prefix.iter().cloned().flatten() {
            mask[bit as usize / 64] |= bit_of(bit);
        }
        let length = prefix.iter().map(|range| range.end - range.start).sum();
        let mut order: Vec<Range<u32>> = Vec::new();
        for range in prefix.into_iter().chain(rest) {
            match order.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => order.push(range),
            }
        }
        let rotation = match order.as_slice() {
            [all] if all.len() == 64 => Some(0),
            [first, second] if bits == 64 && first.end == 64 && second.start == 0 => Some(first.start),
            _ => None,
        };
        TableShape { order, prefix: length, flips, mask, rotation }
    }

    /// Prefixes that a query asks for.
    #[must_use]
    pub fn probes(&self) -> u64 {
        (0..=self.flips).map(|flips| binomial(self.prefix, flips)).fold(0, u64::saturating_add)
    }

    /// Whether two 64-bit strings which differ by `difference` are found here.
    #[inline]
    #[must_use]
    pub fn finds(&self, difference: u64) -> bool {
        (difference & self.mask[0]).count_ones() <= self.flips
    }

    /// A 64-bit string with its bits in the order of the table.
    #[inline]
    #[must_use]
    pub fn permute(&self, value: u64) -> u64 {
        if let Some(rotation) = self.rotation {
            return value.rotate_left(rotation);
        }
        let mut key = 0u64;
        for range in &self.order {
            let length = range.end - range.start;
            key = key.unbounded_shl(length) | (value >> (64 - range.end)) & low_mask(length);
        }
        key
    }

    /// The string of a key.
    #[inline]
    #[must_use]
    pub fn restore(&self, key: u64) -> u64 {
        if let Some(rotation) = self.rotation {
            return key.rotate_right(rotation);
        }
        let (mut value, mut taken) = (0, 0);
        for range in &self.order {
            let length = range.end - range.start;
            taken += length;
            value |= ((key >> (64 - taken)) & low_mask(length)) << (64 - range.end);
        }
        value
    }

    /// What a query's key is changed by for each of its probes; nothing comes first.
    #[must_use]
    pub fn patterns(&self) -> Vec<u64> {
        let mut patterns = vec![0u64];
        let mut from = 0;
        for _ in 0..self.flips {
            let until = patterns.len();
            for at in from..until {
                let pattern = patterns[at];
                // Only behind the last bit, so that every set of bits comes once.
                let next = 64 - pattern.trailing_zeros();
                let next = if pattern == 0 { 0 } else { next };
                patterns.extend((next..self.prefix).map(|bit| pattern | bit_of(bit)));
            }
            from = until;
        }
        patterns
    }

    /// A number that is equal iff the bits of the prefix are, up to collisions; `word` gives the words.
    #[inline]
    pub fn key(&self, word: impl Fn(usize) -> u64) -> u64 {
        // Most masks lie in one or two words, so that the bits themselves fit a key; a sum of
        // products stands for longer ones.
        let mut key = 0u64;
        for (at, &mask) in self.mask.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            key = (key ^ (word(at) & mask)).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29);
        }
        key
    }
}

/// `of` things, `chosen` of them: in how many ways.
#[must_use]
pub fn binomial(of: u32, chosen: u32) -> u64 {
    let chosen = chosen.min(of.saturating_sub(chosen));
    if chosen > of {
        return 0;
    }
    let ways = (0..u128::from(chosen)).fold(1u128, |ways, at| ways * (u128::from(of) - at) / (at + 1));
    u64::try_from(ways).unwrap_or(u64::MAX)
}

pub(super) fn bit_of(bit: u32) -> u64 {
    1 << (63 - bit % 64)
}

fn low_mask(length: u32) -> u64 {
    1u64.unbounded_shl(length).wrapping_sub(1)
}

fn whole(bits: u32) -> Range<u32> {
    0..bits
}

/// Where part `part` of `count` parts of `bits` bits begins; their lengths differ by at most one.
fn part_start(bits: u32, count: u32, part: u32) -> u32 {
    #[allow(clippy::cast_possible_truncation)] // at most `bits`
    let at = (u64::from(bits) * u64::from(part) / u64::from(count)) as u32;
    at
}

/// The bits of `ranges`, in order, cut into `count` parts.
fn parts(ranges: &[Range<u32>], count: u32) -> impl Iterator<Item = Vec<Range<u32>>> {
    let bits = ranges.iter().map(|range| range.end - range.start).sum();
    (0..count).map(move |part| {
        let (from, to) = (part_start(bits, count, part), part_start(bits, count, part + 1));
        let mut before = 0;
        let mut inside = Vec::new();
        for range in ranges {
            let length = range.end - range.start;
            let (start, end) = (from.max(before), to.min(before + length));
            if start < end {
                inside.push(range.start + start - before..range.start + end - before);
            }
            before += length;
        }
        inside
    })
}

/// The parts that were not chosen, beginning behind the last one that was.
fn others(parts: &[Vec<Range<u32>>], chosen: &[usize]) -> Vec<Range<u32>> {
    let first = chosen.last().map_or(0, |last| last + 1);
    let around = (first..parts.len()).chain(0..first.min(parts.len()));
    around.filter(|part| !chosen.contains(part)).flat_map(|part| parts[part].clone()).collect()
}

type Ordered = (Vec<Range<u32>>, Vec<Range<u32>>);

/// A table for every choice of blocks at every level: what is chosen, and the rest.
fn nest(
    levels: &[u32],
    radius: u32,
    chosen: &[Range<u32>],
    rest: Vec<Range<u32>>,
    tables: &mut Vec<Ordered>,
) -> Result<(), String> {
    let Some((&blocks, deeper)) = levels.split_first() else {
        tables.push((chosen.to_vec(), rest));
        return Ok(());
    };
    let bits: u32 = rest.iter().map(|range| range.end - range.start).sum();
    if blocks > bits {
        return Err(format!("{bits} bits cannot be cut into {blocks} blocks"));
    }
    let parts: Vec<Vec<Range<u32>>> = parts(&rest, blocks).collect();
    for choice in choices(parts.len(), (blocks - radius) as usize) {
        let mut prefix = chosen.to_vec();
        prefix.extend(choice.iter().flat_map(|&part| parts[part].clone()));
        nest(deeper, radius, &prefix, others(&parts, &choice), tables)?;
    }
    Ok(())
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
    use crate::page::PageId;
    use crate::random::next_random;
    use crate::spill::LongList;
    use proptest::prelude::*;

    fn shares_a_key(design: &Design, left: &[u64], right: &[u64]) -> bool {
        design.tables().iter().any(|table| table.key(|at| left[at]) == table.key(|at| right[at]))
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
        let length = |part: Vec<Range<u32>>| part.iter().map(|range| range.end - range.start).sum::<u32>();
        let lengths: Vec<u32> = parts(&[whole(384)], 13).map(length).collect();
        assert_eq!(lengths.iter().sum::<u32>(), 384);
        assert!(lengths.iter().all(|length| (29..=30).contains(length)), "{lengths:?}");
        assert!(parts(&[whole(384)], 12).all(|part| length(part) == 32));
    }

    fn blocks(radius: u32, blocks: &[u32]) -> Design {
        Design::new(64, radius, Cut::Blocks(blocks.to_vec())).unwrap()
    }

    #[test]
    fn the_designs_of_example_3_1() {
        let prefixes = |levels: &[u32]| {
            let design = blocks(3, levels);
            let mut prefixes: Vec<u32> = design.tables().iter().map(|table| table.prefix).collect();
            prefixes.sort_unstable();
            (prefixes.len(), prefixes[0], prefixes[prefixes.len() - 1])
        };
        assert_eq!(prefixes(&[6]), (20, 31, 33));
        assert_eq!(prefixes(&[4, 4]), (16, 28, 28));
        assert_eq!(prefixes(&[5]), (10, 25, 26));
        assert_eq!(prefixes(&[4]), (4, 16, 16));
        // The slides' example: 8 bits, distance 2, 4 blocks: 6 tables of 4 bits.
        let slides = Design::new(8, 2, Cut::Blocks(vec![4])).unwrap();
        assert_eq!(slides.tables().len(), 6);
        assert!(slides.tables().iter().all(|table| table.prefix == 4));
    }

    #[test]
    fn cuts_are_written_and_read() {
        for text in ["4", "4x4", "flip2"] {
            assert_eq!(text.parse::<Cut>().unwrap().to_string(), text);
        }
        for text in ["", "x", "4x", "flip", "0", "flip0", "-1", "4 x 4"] {
            assert!(text.parse::<Cut>().is_err(), "{text}");
        }
        assert!(Design::new(64, 3, Cut::Blocks(vec![3])).unwrap_err().contains("at least 4 blocks"));
        assert!(Design::new(64, 3, Cut::Blocks(vec![60])).unwrap_err().contains("tables"));
        assert!(Design::new(64, 1, Cut::Blocks(vec![65])).is_err());
    }

    #[test]
    fn twelve_pieces_find_distant_pairs_with_the_known_chance() {
        // Distance 12: 0.99994, 16: 0.9915, 29: 0.637.
        let keys = Design::pieces(384, 12);
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
    fn check_against_brute_force(design: &Design, rows: &[Vec<u64>], most: u32) {
        let distance = |a: PageId, b: PageId| -> u32 {
            rows[a.index()].iter().zip(&rows[b.index()]).map(|(x, y)| (x ^ y).count_ones()).sum()
        };
        let (everyone, near) = (|_: PageId| true, |a: PageId, b: PageId| distance(a, b) <= most);
        let mut join = BandJoin::new(&everyone, Some(&near), rows.len(), LongList::default());
        for (number, table) in design.tables().iter().enumerate() {
            join.add(number, rows.iter().map(|row| table.key(|at| row[at])).zip(PageId::counting())).unwrap();
        }
        let pages = || PageId::first(rows.len());
        let expected: Vec<(PageId, PageId)> = pages()
            .flat_map(|a| pages().skip(a.index() + 1).map(move |b| (a, b)))
            .filter(|&(a, b)| near(a, b))
            .collect();
        assert!(expected.len() > 20);
        assert_eq!(&*join.finish().unwrap().pairs, expected);
    }

    #[test]
    fn the_join_equals_brute_force_for_swept_radii_layouts_and_adversarial_clusters() {
        let mut state = 2007;
        for radius in 1..=6 {
            let rows = adversarial_rows(64, radius, &mut state);
            for extra in 1..=3 {
                check_against_brute_force(&blocks(radius, &[radius + extra]), &rows, radius);
            }
            check_against_brute_force(&blocks(radius, &[radius + 2, radius + 1]), &rows, radius);
        }
        // The paper's 12 pieces miss nothing up to distance 11, our 13 nothing up to 12.
        for (bits, pieces) in [(384, 12), (384, 13), (192, 7), (100, 4)] {
            let rows = adversarial_rows(bits, pieces - 1, &mut state);
            check_against_brute_force(&Design::pieces(bits, pieces), &rows, pieces - 1);
        }
    }

    proptest! {
        #[test]
        fn no_pair_within_the_bound_is_missed(seed in any::<u64>(), bits in 16u32..400, pieces in 1u32..16, radius in 0u32..6, extra in 1u32..4) {
            let mut state = seed;
            let words: Vec<u64> = (0..bits.div_ceil(64)).map(|_| next_random(&mut state)).collect();
            let keys = Design::pieces(bits, pieces);
            let near = flip(&words, bits, keys.radius().min(bits), &mut state);
            prop_assert!(shares_a_key(&keys, &words, &near));
            let keys = Design::new(bits, radius, Cut::Blocks(vec![radius + extra])).unwrap();
            let near = flip(&words, bits, radius, &mut state);
            prop_assert!(shares_a_key(&keys, &words, &near));
        }
    }
}
