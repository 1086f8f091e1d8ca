//! Which of many bit strings differ from one in few places.
//!
//! In: strings, as words or packed without gaps. Out: the positions of those within a distance. Packed
//! numbers are looked at in groups of eight, which start at a byte whatever the width.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

use std::ops::Range;

use super::vector_unit::{Level, VectorUnit};

/// Numbers of `width` bits each, one after the other, the lowest bit first.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    bytes: &'a [u8],
    width: u32,
}

/// Numbers wider than this, but for whole words, could lie in nine bytes.
pub const WIDEST_PACKED: u32 = 57;

impl<'a> Packed<'a> {
    /// Numbers of `width` bits, at most [`WIDEST_PACKED`] or 64; what lies behind the bytes is 0.
    #[must_use]
    pub fn new(bytes: &'a [u8], width: u32) -> Packed<'a> {
        debug_assert!(width <= WIDEST_PACKED || width == 64);
        Packed { bytes, width }
    }

    /// Bytes that `count` numbers take.
    #[must_use]
    pub fn bytes_for(count: u64, width: u32) -> u64 {
        (count * u64::from(width)).div_ceil(8)
    }

    fn mask(self) -> u64 {
        1u64.unbounded_shl(self.width).wrapping_sub(1)
    }

    /// The number at `at`.
    #[inline]
    #[must_use]
    pub fn get(self, at: usize) -> u64 {
        let bit = at * self.width as usize;
        let word = word_at(self.bytes, bit / 8);
        (word >> (bit % 8)) & self.mask()
    }
}

/// The eight bytes from `byte` on as a number, the lowest first; what lies behind the end is 0.
#[inline]
#[must_use]
pub fn word_at(bytes: &[u8], byte: usize) -> u64 {
    let mut word = [0; 8];
    match bytes.get(byte..byte.saturating_add(8)) {
        Some(window) => word.copy_from_slice(window),
        None => {
            let rest = bytes.get(byte..).unwrap_or_default();
            word[..rest.len()].copy_from_slice(rest);
        }
    }
    u64::from_le_bytes(word)
}

/// Appends the positions in `rows` of the numbers that differ from `query` in at most `radius` bits,
/// ascending, on the widest vector unit of this machine.
pub fn near_packed(packed: Packed<'_>, rows: Range<u32>, query: u64, radius: u32, found: &mut Vec<u32>) {
    near_packed_on(VectorUnit::widest(), packed, rows, query, radius, found);
}

/// As [`near_packed`], on the given unit.
pub fn near_packed_on(
    unit: VectorUnit,
    packed: Packed<'_>,
    rows: Range<u32>,
    query: u64,
    radius: u32,
    found: &mut Vec<u32>,
) {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512Popcnt => unsafe { avx512::near_packed(packed, rows, query, radius, found) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above; a unit with AVX-512 has AVX2, too.
        Level::Avx512 | Level::Avx2 => unsafe { avx2::near_packed(packed, rows, query, radius, found) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Popcnt => unsafe { popcnt_packed(packed, rows, query, radius, found) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { neon::near_packed(packed, rows, query, radius, found) },
        _ => near_packed_scalar(packed, rows, query, radius, found),
    }
}

/// Appends the positions of every query and every row that differ in at most `radius` bits, in order, on the
/// widest vector unit of this machine.
pub fn near_pairs(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    near_pairs_on(VectorUnit::widest(), queries, rows, radius, found);
}

/// As [`near_pairs`], on the given unit.
pub fn near_pairs_on(unit: VectorUnit, queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512Popcnt => unsafe { avx512::near_pairs(queries, rows, radius, found) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 | Level::Avx2 => unsafe { avx2::near_pairs(queries, rows, radius, found) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Popcnt => unsafe { popcnt_pairs(queries, rows, radius, found) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { neon::near_pairs(queries, rows, radius, found) },
        _ => near_pairs_scalar(queries, rows, radius, found),
    }
}

/// The definition of [`near_packed`], in plain Rust for any machine.
#[inline(always)]
pub fn near_packed_scalar(packed: Packed<'_>, rows: Range<u32>, query: u64, radius: u32, found: &mut Vec<u32>) {
    for row in rows {
        if (packed.get(row as usize) ^ query).count_ones() <= radius {
            found.push(row);
        }
    }
}

/// The definition of [`near_pairs`], in plain Rust for any machine.
#[inline(always)]
pub fn near_pairs_scalar(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    for (query_at, &query) in (0..).zip(queries) {
        for (row_at, &row) in (0..).zip(rows) {
            if (row ^ query).count_ones() <= radius {
                found.push((query_at, row_at));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn popcnt_packed(packed: Packed<'_>, rows: Range<u32>, query: u64, radius: u32, found: &mut Vec<u32>) {
    near_packed_scalar(packed, rows, query, radius, found);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn popcnt_pairs(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    near_pairs_scalar(queries, rows, radius, found);
}

/// Groups of eight that hold `rows`, of which there are some.
#[inline]
fn groups(rows: &Range<u32>) -> std::ops::RangeInclusive<u32> {
    rows.start / 8..=(rows.end - 1) / 8
}

/// A bit for each number of a group that is near, one by one: for groups at the very end of the bytes.
#[cold]
fn near_in_group(packed: Packed<'_>, group: u32, query: u64, radius: u32) -> u8 {
    (0..8).fold(0, |near, lane| {
        let number = packed.get(group as usize * 8 + lane);
        near | u8::from((number ^ query).count_ones() <= radius) << lane
    })
}

/// Appends the numbers of a group whose bits are set in `near`, as far as they are in `rows`.
#[inline]
fn emit_group(group: u32, mut near: u8, rows: &Range<u32>, found: &mut Vec<u32>) {
    if group == rows.start / 8 {
        near &= u8::MAX << (rows.start % 8);
    }
    if group == (rows.end - 1) / 8 {
        near &= u8::MAX >> (7 - (rows.end - 1) % 8);
    }
    while near != 0 {
        found.push(group * 8 + near.trailing_zeros());
        near &= near - 1;
    }
}

/// Where the numbers of a group lie, for units that shuffle bytes within 16: two numbers at a time.
struct PairPlaces {
    /// Where the 16 bytes of each two numbers start.
    starts: [usize; 4],
    /// Which of the 16 bytes go where: eight for each number.
    orders: [[u8; 16]; 4],
    /// By how many bits the numbers are to be shifted down.
    shifts: [u64; 8],
    /// Bytes from the start of a group that are looked at; at most 64.
    bytes: usize,
}

impl PairPlaces {
    #[allow(clippy::cast_possible_truncation)] // below 16, as a number ends within eight bytes of its first
    fn new(width: u32) -> PairPlaces {
        let width = width as usize;
        let starts = std::array::from_fn(|pair| pair * 2 * width / 8);
        let byte = |pair: usize, at: usize| (pair * 2 + at / 8) * width / 8 - starts[pair] + at % 8;
        PairPlaces {
            starts,
            orders: std::array::from_fn(|pair| std::array::from_fn(|at| byte(pair, at) as u8)),
            shifts: std::array::from_fn(|lane| (lane * width % 8) as u64),
            bytes: starts[3] + 16,
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(numbers: &[u64], width: u32) -> Vec<u8> {
        let mut bytes = vec![0u8; numbers.len() * width as usize / 8 + 1];
        for (at, number) in numbers.iter().enumerate() {
            for bit in (0..width as usize).filter(|bit| number >> bit & 1 == 1) {
                let place = at * width as usize + bit;
                bytes[place / 8] |= 1 << (place % 8);
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn every_width_equals_the_definition(
            numbers in prop::collection::vec(any::<u64>(), 1..200),
            width in prop_oneof![1u32..=WIDEST_PACKED, Just(64)],
            query in any::<u64>(),
            radius in 0u32..40,
            from in 0u32..200,
            to in 0u32..200,
        ) {
            let numbers: Vec<u64> = numbers.iter().map(|number| number & 1u64.unbounded_shl(width).wrapping_sub(1)).collect();
            let query = query & 1u64.unbounded_shl(width).wrapping_sub(1);
            let count = numbers.len() as u32;
            let rows = from.min(count)..to.clamp(from.min(count), count);
            let bytes = pack(&numbers, width);
            let packed = Packed::new(&bytes, width);
            for (at, &number) in numbers.iter().enumerate() {
                prop_assert_eq!(packed.get(at), number);
            }
            let near = |at: &u32| (numbers[*at as usize] ^ query).count_ones() <= radius;
            let expected: Vec<u32> = rows.clone().filter(near).collect();
            let mut found = Vec::new();
            near_packed_scalar(packed, rows.clone(), query, radius, &mut found);
            prop_assert_eq!(&found, &expected);
            for unit in VectorUnit::available() {
                found.clear();
                near_packed_on(unit, packed, rows.clone(), query, radius, &mut found);
                prop_assert_eq!(&found, &expected, "{}, width {}", unit, width);
            }
            let queries = [query, !query, numbers[0]];
            let mut expected = Vec::new();
            for (query_at, query) in (0..).zip(queries) {
                let near = (0..count).filter(|&at| (numbers[at as usize] ^ query).count_ones() <= radius);
                expected.extend(near.map(|at| (query_at, at)));
            }
            let mut found = Vec::new();
            near_pairs_scalar(&queries, &numbers, radius, &mut found);
            prop_assert_eq!(&found, &expected);
            for unit in VectorUnit::available() {
                found.clear();
                near_pairs_on(unit, &queries, &numbers, radius, &mut found);
                prop_assert_eq!(&found, &expected, "{}", unit);
            }
        }

        #[test]
        fn rows_behind_the_bytes_are_zero(bytes in prop::collection::vec(any::<u8>(), 0..100), width in 1u32..=WIDEST_PACKED) {
            let packed = Packed::new(&bytes, width);
            for unit in VectorUnit::available() {
                let mut found = Vec::new();
                near_packed_on(unit, packed, 0..1000, 0, 64, &mut found);
                prop_assert_eq!(found.len(), 1000);
            }
            prop_assert_eq!(packed.get(1000), 0);
        }
    }

    #[test]
    fn every_number_of_rows_on_every_unit_from_any_address() {
        let numbers: Vec<u64> = (0..210u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let query = numbers[40];
        for length in 0..=200u32 {
            let rows = &numbers[length as usize % 9..][..length as usize];
            for radius in [0, 28, 64, 255, 256, u32::MAX] {
                let mut expected = Vec::new();
                near_pairs_scalar(&[query, 0], rows, radius, &mut expected);
                for unit in VectorUnit::available() {
                    let mut found = Vec::new();
                    near_pairs_on(unit, &[query, 0], rows, radius, &mut found);
                    assert_eq!(found, expected, "{unit}, {length} rows, radius {radius}");
                }
            }
            for width in [1, 7, 8, 9, 31, 33, 56, WIDEST_PACKED, 64] {
                let packed = Packed::new(&bytes[length as usize % 5..], width);
                let mut expected = Vec::new();
                near_packed_scalar(packed, length % 3..length, query, 30, &mut expected);
                for unit in VectorUnit::available() {
                    let mut found = Vec::new();
                    near_packed_on(unit, packed, length % 3..length, query, 30, &mut found);
                    assert_eq!(found, expected, "{unit}, {length} rows of width {width}");
                }
            }
        }
    }
}
