//! [`super`] on AVX2: four numbers at a time, whose bits are counted by looking up half bytes.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpgt_epi64, _mm256_loadu_si256,
    _mm256_loadu2_m128i, _mm256_movemask_pd, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_epi64x, _mm256_setr_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_srlv_epi64, _mm256_xor_si256,
};
use std::ops::Range;

use super::{Packed, PairPlaces, emit_group, groups, near_in_group};

/// All ones in each lane that differs from the query in more than `most` bits.
#[inline]
#[target_feature(enable = "avx2")]
fn far(numbers: __m256i, query: __m256i, most: __m256i) -> __m256i {
    let bits_set = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let half_bytes = _mm256_set1_epi8(0x0f);
    let different = _mm256_xor_si256(numbers, query);
    let low = _mm256_shuffle_epi8(bits_set, _mm256_and_si256(different, half_bytes));
    let high = _mm256_shuffle_epi8(bits_set, _mm256_and_si256(_mm256_srli_epi16::<4>(different), half_bytes));
    let distances = _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256());
    _mm256_cmpgt_epi64(distances, most)
}

/// A bit for each lane that is not far.
#[inline]
#[target_feature(enable = "avx2")]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // four bits
fn near_lanes(far: __m256i) -> u8 {
    !_mm256_movemask_pd(_mm256_castsi256_pd(far)) as u8 & 0xf
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[u64; 4]) -> __m256i {
    // SAFETY: the array has the 32 bytes of a vector; the load needs no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[target_feature(enable = "avx2,popcnt")]
pub(super) fn near_packed(packed: Packed<'_>, rows: Range<u32>, query: u64, radius: u32, found: &mut Vec<u32>) {
    if rows.is_empty() {
        return;
    }
    let PairPlaces { starts, orders, shifts, bytes } = PairPlaces::new(packed.width);
    // SAFETY: the orders have 64 bytes, and so have the shifts; no load needs alignment.
    let (low_order, high_order, low_shifts, high_shifts) = unsafe {
        let (orders, shifts) = (orders.as_ptr(), shifts.as_ptr());
        (
            _mm256_loadu_si256(orders.cast()),
            _mm256_loadu_si256(orders.add(2).cast()),
            _mm256_loadu_si256(shifts.cast()),
            _mm256_loadu_si256(shifts.add(4).cast()),
        )
    };
    let mask = _mm256_set1_epi64x(packed.mask().cast_signed());
    let query_lanes = _mm256_set1_epi64x(query.cast_signed());
    let most = _mm256_set1_epi64x(i64::from(radius));
    for group in groups(&rows) {
        let from = group as usize * packed.width as usize;
        let near = if let Some(window) = packed.bytes.get(from..from + bytes) {
            let pair = |at: usize| window.as_ptr().wrapping_add(starts[at]).cast();
            // SAFETY: each start is at least 16 before the end of the window; no load needs alignment.
            let (low, high) = unsafe { (_mm256_loadu2_m128i(pair(1), pair(0)), _mm256_loadu2_m128i(pair(3), pair(2))) };
            let low = _mm256_and_si256(_mm256_srlv_epi64(_mm256_shuffle_epi8(low, low_order), low_shifts), mask);
            let high = _mm256_and_si256(_mm256_srlv_epi64(_mm256_shuffle_epi8(high, high_order), high_shifts), mask);
            near_lanes(far(low, query_lanes, most)) | near_lanes(far(high, query_lanes, most)) << 4
        } else {
            near_in_group(packed, group, query, radius)
        };
        emit_group(group, near, &rows, found);
    }
}

#[target_feature(enable = "avx2,popcnt")]
#[allow(clippy::cast_possible_truncation)] // rows are 32 bits
pub(super) fn near_pairs(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    let most = _mm256_set1_epi64x(i64::from(radius));
    let (groups, rest) = rows.as_chunks::<4>();
    for (query_at, &query) in (0..).zip(queries) {
        let query_lanes = _mm256_set1_epi64x(query.cast_signed());
        let mut emit = |group: u32, mut near: u8| {
            while near != 0 {
                found.push((query_at, group * 4 + near.trailing_zeros()));
                near &= near - 1;
            }
        };
        // Four groups at a time: nothing is near in almost all of them.
        let (fours, single) = groups.as_chunks::<4>();
        for (four, [a, b, c, d]) in (0u32..).zip(fours) {
            let (a, b) = (far(load(a), query_lanes, most), far(load(b), query_lanes, most));
            let (c, d) = (far(load(c), query_lanes, most), far(load(d), query_lanes, most));
            let all_far = _mm256_and_si256(_mm256_and_si256(a, b), _mm256_and_si256(c, d));
            if near_lanes(all_far) != 0 {
                (0..).zip([a, b, c, d]).for_each(|(at, far)| emit(four * 4 + at, near_lanes(far)));
            }
        }
        for (at, lanes) in (fours.len() as u32 * 4..).zip(single) {
            emit(at, near_lanes(far(load(lanes), query_lanes, most)));
        }
        for (at, row) in (groups.len() as u32 * 4..).zip(rest) {
            if (row ^ query).count_ones() <= radius {
                found.push((query_at, at));
            }
        }
    }
}
