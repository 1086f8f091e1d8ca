//! Which of 64 bytes are ASCII letters or digits, and which are not ASCII at all.
//!
//! In: 64 bytes. Out: two sets of 64 bits, the first byte in the lowest bit.
#![allow(unsafe_code)]

use super::vector_unit::{Level, VectorUnit};

/// Bytes that are looked at together.
pub const LANES: usize = 64;

/// What 64 bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteClasses {
    /// ASCII letters and digits.
    pub word: u64,
    /// Bytes of characters beyond ASCII.
    pub wide: u64,
}

/// Classifies on the given unit.
#[inline]
#[must_use]
pub fn byte_classes_on(unit: VectorUnit, bytes: &[u8; LANES]) -> ByteClasses {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512 | Level::Avx512Popcnt => unsafe { avx512(bytes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2(bytes) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { neon(bytes) },
        _ => byte_classes_scalar(bytes),
    }
}

/// The definition, in plain Rust for any machine.
#[must_use]
pub fn byte_classes_scalar(bytes: &[u8; LANES]) -> ByteClasses {
    let mut classes = ByteClasses { word: 0, wide: 0 };
    for (at, byte) in bytes.iter().enumerate() {
        classes.word |= u64::from(byte.is_ascii_alphanumeric()) << at;
        classes.wide |= u64::from(!byte.is_ascii()) << at;
    }
    classes
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn avx512(bytes: &[u8; LANES]) -> ByteClasses {
    use std::arch::x86_64::{
        _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_movepi8_mask, _mm512_or_si512, _mm512_set1_epi8,
        _mm512_sub_epi8,
    };
    // SAFETY: the pointer is to 64 readable bytes; the load needs no alignment.
    let input = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    let folded = _mm512_or_si512(input, _mm512_set1_epi8(0x20));
    let letters = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(folded, _mm512_set1_epi8(0x61)), _mm512_set1_epi8(26));
    let digits = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(input, _mm512_set1_epi8(0x30)), _mm512_set1_epi8(10));
    ByteClasses { word: letters | digits, wide: _mm512_movepi8_mask(input) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn avx2(bytes: &[u8; LANES]) -> ByteClasses {
    use std::arch::x86_64::{
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8, _mm256_sub_epi8,
    };
    let mut classes = ByteClasses { word: 0, wide: 0 };
    for half in 0..2 {
        // SAFETY: both halves are 32 readable bytes; the load needs no alignment.
        let input = unsafe { _mm256_loadu_si256(bytes.as_ptr().add(half * 32).cast()) };
        let at_most = |value, most: i8| _mm256_cmpeq_epi8(_mm256_min_epu8(value, _mm256_set1_epi8(most)), value);
        let folded = _mm256_or_si256(input, _mm256_set1_epi8(0x20));
        let letters = at_most(_mm256_sub_epi8(folded, _mm256_set1_epi8(0x61)), 25);
        let digits = at_most(_mm256_sub_epi8(input, _mm256_set1_epi8(0x30)), 9);
        let word = _mm256_movemask_epi8(_mm256_or_si256(letters, digits)).cast_unsigned();
        let wide = _mm256_movemask_epi8(input).cast_unsigned();
        classes.word |= u64::from(word) << (half * 32);
        classes.wide |= u64::from(wide) << (half * 32);
    }
    classes
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn neon(bytes: &[u8; LANES]) -> ByteClasses {
    use std::arch::aarch64::{
        uint8x16_t, vandq_u8, vcgeq_u8, vcltq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8,
        vreinterpretq_u64_u8, vsubq_u8,
    };
    const BIT_OF_LANE: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: the array has 16 bytes.
    let bit_of_lane = unsafe { vld1q_u8(BIT_OF_LANE.as_ptr()) };
    // One bit of each of 64 bytes, which are all ones or all zeros: adding neighbours thrice gathers eight.
    let bits = |[a, b, c, d]: [uint8x16_t; 4]| {
        let low = vpaddq_u8(vandq_u8(a, bit_of_lane), vandq_u8(b, bit_of_lane));
        let high = vpaddq_u8(vandq_u8(c, bit_of_lane), vandq_u8(d, bit_of_lane));
        let all = vpaddq_u8(low, high);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(all, all)))
    };
    let word_bytes = |input: uint8x16_t| {
        let folded = vorrq_u8(input, vdupq_n_u8(0x20));
        let letters = vcltq_u8(vsubq_u8(folded, vdupq_n_u8(b'a')), vdupq_n_u8(26));
        let digits = vcltq_u8(vsubq_u8(input, vdupq_n_u8(b'0')), vdupq_n_u8(10));
        vorrq_u8(letters, digits)
    };
    let wide_bytes = |input: uint8x16_t| vcgeq_u8(input, vdupq_n_u8(0x80));
    let quarters = bytes.as_chunks::<16>().0;
    // SAFETY: a quarter has 16 bytes.
    let load = |at: usize| unsafe { vld1q_u8(quarters[at].as_ptr()) };
    let (a, b, c, d) = (load(0), load(1), load(2), load(3));
    ByteClasses {
        word: bits([word_bytes(a), word_bytes(b), word_bytes(c), word_bytes(d)]),
        wide: bits([wide_bytes(a), wide_bytes(b), wide_bytes(c), wide_bytes(d)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8; LANES]) {
        let expected = byte_classes_scalar(bytes);
        for unit in VectorUnit::available() {
            assert_eq!(byte_classes_on(unit, bytes), expected, "{unit}, {bytes:?}");
        }
    }

    #[test]
    fn every_byte_in_every_lane_is_classified_as_defined() {
        for value in 0..=255u8 {
            for lane in 0..LANES {
                for others in [0, b'm', 0xff] {
                    let mut bytes = [others; LANES];
                    bytes[lane] = value;
                    check(&bytes);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_unit_equals_the_definition_from_any_address(bytes in prop::collection::vec(any::<u8>(), LANES..200)) {
            for window in bytes.windows(LANES) {
                check(window.first_chunk().expect("a window of 64 bytes"));
            }
        }
    }
}
