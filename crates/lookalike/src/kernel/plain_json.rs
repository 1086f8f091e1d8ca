//! How far the plain part of a JSON string goes.
//!
//! In: bytes, and a place inside a string. Out: where the first byte stands that is not simply part of what the string says: a
//! quote, a backslash, a control character, or the end of the bytes.
#![allow(unsafe_code)]

use super::vector_unit::{Level, VectorUnit};

/// The first byte that is no control character.
const FIRST_PLAIN: u8 = 0x20;

/// Where the plain part ends that begins at `from`.
#[inline]
#[must_use]
pub fn plain_json_end(bytes: &[u8], from: usize) -> usize {
    plain_json_end_on(VectorUnit::widest(), bytes, from)
}

/// The same on the given unit.
#[inline]
#[must_use]
pub fn plain_json_end_on(unit: VectorUnit, bytes: &[u8], from: usize) -> usize {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512 | Level::Avx512Popcnt => unsafe { avx512(bytes, from) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2(bytes, from) },
        _ => plain_json_end_scalar(bytes, from),
    }
}

/// The definition, in plain Rust for any machine.
#[must_use]
pub fn plain_json_end_scalar(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let is_end = |&byte: &u8| byte == b'"' || byte == b'\\' || byte < FIRST_PLAIN;
    rest.iter().position(is_end).map_or(bytes.len(), |length| from + length)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi1,bmi2")]
fn avx512(bytes: &[u8], from: usize) -> usize {
    use std::arch::x86_64::{_mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_set1_epi8};
    const LANES: usize = 64;
    let mut at = from;
    while let Some(block) = bytes.get(at..at + LANES) {
        // SAFETY: the slice has the 64 bytes of a vector; the load needs no alignment.
        let input = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        let ends = _mm512_cmpeq_epi8_mask(input, _mm512_set1_epi8(b'"'.cast_signed()))
            | _mm512_cmpeq_epi8_mask(input, _mm512_set1_epi8(b'\\'.cast_signed()))
            | _mm512_cmplt_epu8_mask(input, _mm512_set1_epi8(FIRST_PLAIN.cast_signed()));
        if ends != 0 {
            return at + ends.trailing_zeros() as usize;
        }
        at += LANES;
    }
    plain_json_end_scalar(bytes, at)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn avx2(bytes: &[u8], from: usize) -> usize {
    use std::arch::x86_64::{
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_max_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    };
    const LANES: usize = 32;
    let last_control = _mm256_set1_epi8((FIRST_PLAIN - 1).cast_signed());
    let mut at = from;
    while let Some(block) = bytes.get(at..at + LANES) {
        // SAFETY: the slice has the 32 bytes of a vector; the load needs no alignment.
        let input = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
        let equals = |byte: u8| _mm256_cmpeq_epi8(input, _mm256_set1_epi8(byte.cast_signed()));
        let is_control = _mm256_cmpeq_epi8(_mm256_max_epu8(input, last_control), last_control);
        let is_end = _mm256_or_si256(_mm256_or_si256(equals(b'"'), equals(b'\\')), is_control);
        let ends = _mm256_movemask_epi8(is_end);
        if ends != 0 {
            return at + ends.trailing_zeros() as usize;
        }
        at += LANES;
    }
    plain_json_end_scalar(bytes, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], from: usize) {
        let expected = plain_json_end_scalar(bytes, from);
        for unit in VectorUnit::available() {
            assert_eq!(plain_json_end_on(unit, bytes, from), expected, "{unit}, from {from} of {bytes:?}");
        }
    }

    #[test]
    fn every_byte_in_every_lane_ends_the_plain_part_or_does_not() {
        for value in 0..=255u8 {
            for length in [31, 63, 64, 130] {
                for lane in 0..length {
                    let mut bytes = vec![b'm'; length];
                    bytes[lane] = value;
                    check(&bytes, 0);
                }
            }
        }
    }

    #[test]
    fn nothing_is_left_at_the_end_and_beyond() {
        check(b"abc", 3);
        assert_eq!(plain_json_end(b"abc", 7), 3);
    }

    proptest! {
        #[test]
        fn every_unit_equals_the_definition(
            bytes in prop::collection::vec(prop_oneof![40 => b' '..=b'~', 1 => any::<u8>()], 0..300),
            from in 0usize..80,
        ) {
            check(&bytes, from);
        }
    }
}
