//! [`super`] on NEON: eight numbers at a time in four vectors.

use std::arch::aarch64::{
    uint8x8_t, uint8x16_t, uint64x2_t, vandq_u64, vcle_u8, vcntq_u8, vdup_n_u8, vdupq_n_u64, veorq_u64, vget_lane_u64,
    vget_low_u8, vld1q_u8, vld1q_u64, vnegq_s64, vpaddq_u8, vqtbl1q_u8, vreinterpret_u64_u8, vreinterpretq_s64_u64,
    vreinterpretq_u8_u64, vreinterpretq_u64_u8, vshlq_u64,
};
use std::ops::Range;

use super::{Packed, PairPlaces, emit_group, groups, near_in_group};

/// A byte of all ones for each of eight numbers that differs from the query in at most `most` bits, the first
/// one lowest.
#[inline]
#[target_feature(enable = "neon")]
fn near_bytes(numbers: [uint64x2_t; 4], query: uint64x2_t, most: uint8x8_t) -> u64 {
    let counted = |two: uint64x2_t| vcntq_u8(vreinterpretq_u8_u64(veorq_u64(two, query)));
    let [a, b, c, d] = numbers;
    // Adding neighbours thrice makes one byte of the eight counts of each number.
    let fours: uint8x16_t = vpaddq_u8(vpaddq_u8(counted(a), counted(b)), vpaddq_u8(counted(c), counted(d)));
    let distances = vget_low_u8(vpaddq_u8(fours, fours));
    vget_lane_u64::<0>(vreinterpret_u64_u8(vcle_u8(distances, most)))
}

/// The radius in every lane; no distance is above 64.
#[inline]
#[target_feature(enable = "neon")]
fn most_lanes(radius: u32) -> uint8x8_t {
    vdup_n_u8(u8::try_from(radius).unwrap_or(u8::MAX))
}

#[inline]
#[target_feature(enable = "neon")]
fn load(from: &[u64; 2]) -> uint64x2_t {
    // SAFETY: the array has the 16 bytes of a vector; the load needs no alignment.
    unsafe { vld1q_u64(from.as_ptr()) }
}

#[target_feature(enable = "neon")]
pub(super) fn near_packed(packed: Packed<'_>, rows: Range<u32>, query: u64, radius: u32, found: &mut Vec<u32>) {
    if rows.is_empty() {
        return;
    }
    let PairPlaces { starts, orders, shifts, bytes } = PairPlaces::new(packed.width);
    let shifts = shifts.as_chunks::<2>().0;
    let (mask, query_lanes, most) = (vdupq_n_u64(packed.mask()), vdupq_n_u64(query), most_lanes(radius));
    for group in groups(&rows) {
        let from = group as usize * packed.width as usize;
        let near = if let Some(window) = packed.bytes.get(from..from + bytes) {
            let pair = |at: usize| {
                // SAFETY: each start is at least 16 before the end of the window, and an order has 16 bytes.
                let (window, order) =
                    unsafe { (vld1q_u8(window.as_ptr().add(starts[at])), vld1q_u8(orders[at].as_ptr())) };
                let down = vnegq_s64(vreinterpretq_s64_u64(load(&shifts[at])));
                vandq_u64(vshlq_u64(vreinterpretq_u64_u8(vqtbl1q_u8(window, order)), down), mask)
            };
            // The lowest bit of each byte, gathered in the highest byte.
            let near = near_bytes([pair(0), pair(1), pair(2), pair(3)], query_lanes, most);
            ((near & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
        } else {
            near_in_group(packed, group, query, radius)
        };
        emit_group(group, near, &rows, found);
    }
}

#[target_feature(enable = "neon")]
#[allow(clippy::cast_possible_truncation)] // rows are 32 bits
pub(super) fn near_pairs(queries: &[u64], rows: &[u64], radius: u32, found: &mut Vec<(u32, u32)>) {
    let most = most_lanes(radius);
    let (groups, rest) = rows.as_chunks::<8>();
    for (query_at, &query) in (0..).zip(queries) {
        let query_lanes = vdupq_n_u64(query);
        for (group, lanes) in (0u32..).zip(groups) {
            let two = lanes.as_chunks::<2>().0;
            let numbers = [load(&two[0]), load(&two[1]), load(&two[2]), load(&two[3])];
            let mut near = near_bytes(numbers, query_lanes, most);
            while near != 0 {
                let lane = near.trailing_zeros() / 8;
                found.push((query_at, group * 8 + lane));
                near &= !(0xff << (lane * 8));
            }
        }
        for (at, row) in (groups.len() as u32 * 8..).zip(rest) {
            if (row ^ query).count_ones() <= radius {
                found.push((query_at, at));
            }
        }
    }
}
