//! [`super`] on AVX-512 with its count of set bits: eight numbers at a time.

use std::arch::x86_64::{
    _mm512_and_si512, _mm512_cmple_epu64_mask, _mm512_loadu_si512, _mm512_mask_cmple_epu64_mask,
    _mm512_maskz_loadu_epi64, _mm512_permutexvar_epi8, _mm512_popcnt_epi64, _mm512_set1_epi64, _mm512_srlv_epi64,
    _mm512_xor_si512,
};
use std::ops::Range;

use super::{Packed, emit_group, groups, near_in_group};

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt")]
#[allow(clippy::cast_possible_truncation)] // lanes are few
pub(super) fn near_packed(packed: Packed<'_>, rows: Range<u32>, query: u64, radius: u32, found: &mut Vec<u32>) {
    if rows.is_empty() {
        return;
    }
    // Where the numbers of a group lie in it is the same for all groups.
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
    let mask = _mm512_set1_epi64(packed.mask().cast_signed());
    let query_lanes = _mm512_set1_epi64(query.cast_signed());
    let most = _mm512_set1_epi64(i64::from(radius));
    for group in groups(&rows) {
        let from = group as usize * packed.width as usize;
        let near = if let Some(window) = packed.bytes.get(from..from + 64) {
            // SAFETY: the window has 64 bytes.
            let window = unsafe { _mm512_loadu_si512(window.as_ptr().cast()) };
            let numbers = _mm512_and_si512(_mm512_srlv_epi64(_mm512_permutexvar_epi8(order, window), shifts), mask);
            _mm512_cmple_epu64_mask(_mm512_popcnt_epi64(_mm512_xor_si512(numbers, query_lanes)), most)
        } else {
            near_in_group(packed, group, query, radius)
        };
        emit_group(group, near, &rows, found);
    }
}

#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
#[allow(clippy::cast_possible_truncation)] // rows are 32 bits
pub(super) fn near_pairs(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    let most = _mm512_set1_epi64(i64::from(radius));
    let (groups, rest) = rows.as_chunks::<8>();
    let rest_lanes = (1u8 << rest.len()) - 1;
    for (query_at, &query) in (0..).zip(queries) {
        let query = _mm512_set1_epi64(query.cast_signed());
        let mut emit = |group: u32, mut near: u8| {
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
                (0..).zip(all).for_each(|(at, near)| emit(four * 4 + at, near));
            }
        }
        for (at, lanes) in (fours.len() as u32 * 4..).zip(single) {
            emit(at, near(lanes));
        }
        if rest_lanes != 0 {
            // SAFETY: only the lanes that are in the rest are loaded.
            let lanes = unsafe { _mm512_maskz_loadu_epi64(rest_lanes, rest.as_ptr().cast()) };
            let distance = _mm512_popcnt_epi64(_mm512_xor_si512(lanes, query));
            emit(groups.len() as u32, _mm512_mask_cmple_epu64_mask(rest_lanes, distance, most));
        }
    }
}
