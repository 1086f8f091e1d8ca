//! Which of many bit strings differ from one in few places.
//!
//! In: strings, as words or packed without gaps. Out: the positions of those within a distance. The
//! same question for AVX-512 with its count of set bits, for machines that count bits in one
//! instruction, and in plain Rust.
#![allow(unsafe_code)]

use std::ops::Range;

/// Numbers of `width` bits each, one behind the other, the lowest bit first.
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
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the CPU has the features the function is compiled for.
            unsafe { avx512_packed(packed, rows, query, radius, found) };
            return;
        }
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: as above.
            unsafe { popcnt_packed(packed, rows, query, radius, found) };
            return;
        }
    }
    near_packed_scalar(packed, rows, query, radius, found);
}

/// Appends the positions of every query and every row that differ in at most `radius` bits, in order, on the
/// widest vector unit of this machine.
pub fn near_pairs(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the CPU has the features the function is compiled for.
            unsafe { avx512_pairs(queries, rows, radius, found) };
            return;
        }
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: as above.
            unsafe { popcnt_pairs(queries, rows, radius, found) };
            return;
        }
    }
    near_pairs_scalar(queries, rows, radius, found);
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
fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("avx512vbmi") && has!("avx512vpopcntdq")
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt")]
#[allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation)] // bits are bits; lanes are few
fn avx512_packed(packed: Packed<'_>, rows: Range<u32>, query: u64, radius: u32, found: &mut Vec<u32>) {
    use std::arch::x86_64::{
        _mm512_and_si512, _mm512_cmple_epu64_mask, _mm512_loadu_si512, _mm512_permutexvar_epi8, _mm512_popcnt_epi64,
        _mm512_set1_epi64, _mm512_srlv_epi64, _mm512_xor_si512,
    };
    if rows.is_empty() {
        return;
    }
    // Eight numbers of `width` bits are `width` bytes, so that every group of eight starts at a byte,
    // and where its numbers lie in it is the same for all groups.
    let mut order = [0u8; 64];
    let mut shifts = [0u64; 8];
    for lane in 0..8 {
        let bit = lane * packed.width as usize;
        shifts[lane] = (bit % 8) as u64;
        for byte in 0..8 {
            order[lane * 8 + byte] = (bit / 8 + byte).min(63) as u8;
        }
    }
    // SAFETY: both arrays have 64 bytes.
    let (order, shifts) =
        unsafe { (_mm512_loadu_si512(order.as_ptr().cast()), _mm512_loadu_si512(shifts.as_ptr().cast())) };
    let mask = _mm512_set1_epi64(packed.mask() as i64);
    let query_lanes = _mm512_set1_epi64(query as i64);
    let most = _mm512_set1_epi64(i64::from(radius));
    let (first, last) = (rows.start / 8, (rows.end - 1) / 8);
    for group in first..=last {
        let from = group as usize * packed.width as usize;
        let mut near: u8;
        if let Some(window) = packed.bytes.get(from..from + 64) {
            // SAFETY: the window has 64 bytes.
            let window = unsafe { _mm512_loadu_si512(window.as_ptr().cast()) };
            let numbers = _mm512_and_si512(_mm512_srlv_epi64(_mm512_permutexvar_epi8(order, window), shifts), mask);
            near = _mm512_cmple_epu64_mask(_mm512_popcnt_epi64(_mm512_xor_si512(numbers, query_lanes)), most);
        } else {
            near = 0;
            for lane in 0..8u32 {
                let number = packed.get((group * 8 + lane) as usize);
                near |= u8::from((number ^ query).count_ones() <= radius) << lane;
            }
        }
        if group == first {
            near &= u8::MAX << (rows.start % 8);
        }
        if group == last {
            near &= u8::MAX >> (7 - (rows.end - 1) % 8);
        }
        while near != 0 {
            found.push(group * 8 + near.trailing_zeros());
            near &= near - 1;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
#[allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation)] // bits are bits; rows are 32 bits
fn avx512_pairs(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    use std::arch::x86_64::{
        _mm512_cmple_epu64_mask, _mm512_loadu_si512, _mm512_mask_cmple_epu64_mask, _mm512_maskz_loadu_epi64,
        _mm512_popcnt_epi64, _mm512_set1_epi64, _mm512_xor_si512,
    };
    let most = _mm512_set1_epi64(i64::from(radius));
    let (groups, rest) = rows.as_chunks::<8>();
    let rest_lanes = (1u8 << rest.len()) - 1;
    for (query_at, &query) in (0..).zip(queries) {
        let query = _mm512_set1_epi64(query as i64);
        let mut tell = |group: u32, mut near: u8| {
            while near != 0 {
                found.push((query_at, group * 8 + near.trailing_zeros()));
                near &= near - 1;
            }
        };
        let near = |lanes: &[u64; 8]| {
            // SAFETY: a group has 64 bytes.
            let lanes = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
            _mm512_cmple_epu64_mask(_mm512_popcnt_epi64(_mm512_xor_si512(lanes, query)), most)
        };
        // Four groups at a time: nothing is near in almost all of them.
        let (fours, single) = groups.as_chunks::<4>();
        for (four, [a, b, c, d]) in (0u32..).zip(fours) {
            let all = [near(a), near(b), near(c), near(d)];
            if all != [0; 4] {
                (0..).zip(all).for_each(|(at, near)| tell(four * 4 + at, near));
            }
        }
        for (at, lanes) in (fours.len() as u32 * 4..).zip(single) {
            tell(at, near(lanes));
        }
        if rest_lanes != 0 {
            // SAFETY: only the lanes that are in the rest are loaded.
            let lanes = unsafe { _mm512_maskz_loadu_epi64(rest_lanes, rest.as_ptr().cast()) };
            let distance = _mm512_popcnt_epi64(_mm512_xor_si512(lanes, query));
            tell(groups.len() as u32, _mm512_mask_cmple_epu64_mask(rest_lanes, distance, most));
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
            for kernel in [near_packed, near_packed_scalar] {
                let mut found = Vec::new();
                kernel(packed, rows.clone(), query, radius, &mut found);
                prop_assert_eq!(&found, &expected);
            }
            let queries = [query, !query, numbers[0]];
            let mut expected = Vec::new();
            for (query_at, query) in (0..).zip(queries) {
                let near = (0..count).filter(|&at| (numbers[at as usize] ^ query).count_ones() <= radius);
                expected.extend(near.map(|at| (query_at, at)));
            }
            for kernel in [near_pairs, near_pairs_scalar] {
                let mut found = Vec::new();
                kernel(&queries, &numbers, radius, &mut found);
                prop_assert_eq!(&found, &expected);
            }
        }

        #[test]
        fn rows_behind_the_bytes_are_zero(bytes in prop::collection::vec(any::<u8>(), 0..100), width in 1u32..=WIDEST_PACKED) {
            let packed = Packed::new(&bytes, width);
            let mut found = Vec::new();
            near_packed(packed, 0..1000, 0, 64, &mut found);
            prop_assert_eq!(found.len(), 1000);
            prop_assert_eq!(packed.get(1000), 0);
        }
    }
}
