//! Which of 64 bytes are ASCII letters or digits, and which are not ASCII at all.
//!
//! In: 64 bytes. Out: two sets of 64 bits, the first byte in the lowest bit. Compiled for AVX-512
//! and AVX2 and for the baseline.
#![allow(unsafe_code)]

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

/// Classifies on the widest vector unit of this machine.
#[inline]
#[must_use]
pub fn byte_classes(bytes: &[u8; LANES]) -> ByteClasses {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512bw") {
            // SAFETY: the CPU has the feature the function is compiled for.
            return unsafe { avx512(bytes) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(bytes) };
        }
    }
    byte_classes_scalar(bytes)
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
fn avx512(bytes: &[u8; LANES]) -> ByteClasses {
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
fn avx2(bytes: &[u8; LANES]) -> ByteClasses {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_in_every_lane_is_classified_as_defined() {
        for shift in 0..=255u8 {
            let mut bytes = [0u8; LANES];
            for (at, byte) in (0u8..).zip(&mut bytes) {
                *byte = at.wrapping_mul(37).wrapping_add(shift);
            }
            let expected = byte_classes_scalar(&bytes);
            assert_eq!(byte_classes(&bytes), expected);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the CPU has AVX2.
                assert_eq!(unsafe { avx2(&bytes) }, expected);
            }
        }
    }
}
