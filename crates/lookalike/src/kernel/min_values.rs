//! The smallest value of each of many functions `x ↦ a·x + b mod 2^32` over a set of `x`.
//!
//! In: the `x`s and the functions' `a`s and `b`s. Out: one minimum per function; `u32::MAX` where there is
//! no `x`. The functions of four vectors stay in registers while all `x` pass by. Written with intrinsics:
//! left to the compiler, the same loop ran at full speed or at a seventh of it, depending on how the
//! program was cut into codegen units.
#![allow(unsafe_code)]

use super::vector_unit::{Level, VectorUnit};

/// Writes the minimum of each function into `minima`, on the widest vector unit of this machine.
///
/// The three slices of functions must be of one length; the shortest counts.
pub fn min_values(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    min_values_on(VectorUnit::widest(), values, multipliers, offsets, minima);
}

/// As [`min_values`], on the given unit.
pub fn min_values_on(unit: VectorUnit, values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    let functions = minima.len().min(multipliers.len()).min(offsets.len());
    let (multipliers, offsets, minima) = (&multipliers[..functions], &offsets[..functions], &mut minima[..functions]);
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512 | Level::Avx512Popcnt => unsafe { avx512(values, multipliers, offsets, minima) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2(values, multipliers, offsets, minima) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { neon(values, multipliers, offsets, minima) },
        _ => min_values_scalar(values, multipliers, offsets, minima),
    }
}

/// The definition, in plain Rust for any machine.
pub fn min_values_scalar(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    for ((minimum, &multiplier), &offset) in minima.iter_mut().zip(multipliers).zip(offsets) {
        *minimum = values.iter().map(|&x| x.wrapping_mul(multiplier).wrapping_add(offset)).min().unwrap_or(u32::MAX);
    }
}

/// The loop over functions and values for one vector unit, whose vectors have `$lanes` numbers. Its steps
/// are functions with the same features, so that they are inlined.
macro_rules! min_values_with {
    ($(#[$attribute:meta])* $name:ident, $lanes:literal, $unit:ident) => {
        $(#[$attribute])*
        fn $name(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
            use $unit::{load, smaller, splat, store};
            let (four_multipliers, multipliers) = multipliers.as_chunks::<{ $lanes * 4 }>();
            let (four_offsets, offsets) = offsets.as_chunks::<{ $lanes * 4 }>();
            let (four_minima, minima) = minima.as_chunks_mut::<{ $lanes * 4 }>();
            for ((multipliers, offsets), minima) in four_multipliers.iter().zip(four_offsets).zip(four_minima) {
                // Not arrays: whether those stay in registers is up to the compiler.
                let (a, b) = (multipliers.as_chunks::<$lanes>().0, offsets.as_chunks::<$lanes>().0);
                let (a0, a1, a2, a3) = (load(&a[0]), load(&a[1]), load(&a[2]), load(&a[3]));
                let (b0, b1, b2, b3) = (load(&b[0]), load(&b[1]), load(&b[2]), load(&b[3]));
                let (mut least0, mut least1) = (splat(u32::MAX), splat(u32::MAX));
                let (mut least2, mut least3) = (splat(u32::MAX), splat(u32::MAX));
                for &x in values {
                    let x = splat(x);
                    least0 = smaller(least0, x, a0, b0);
                    least1 = smaller(least1, x, a1, b1);
                    least2 = smaller(least2, x, a2, b2);
                    least3 = smaller(least3, x, a3, b3);
                }
                let minima = minima.as_chunks_mut::<$lanes>().0;
                store(&mut minima[0], least0);
                store(&mut minima[1], least1);
                store(&mut minima[2], least2);
                store(&mut minima[3], least3);
            }
            let rest = multipliers.chunks($lanes).zip(offsets.chunks($lanes)).zip(minima.chunks_mut($lanes));
            for ((multipliers, offsets), minima) in rest {
                let mut out = [0; $lanes];
                if minima.len() > $lanes / 2 {
                    // The vector is filled up with functions that nobody asked for.
                    let (mut a, mut b) = ([0; $lanes], [0; $lanes]);
                    a[..multipliers.len()].copy_from_slice(multipliers);
                    b[..offsets.len()].copy_from_slice(offsets);
                    let (a, b, mut least) = (load(&a), load(&b), splat(u32::MAX));
                    for &x in values {
                        least = smaller(least, splat(x), a, b);
                    }
                    store(&mut out, least);
                    minima.copy_from_slice(&out[..minima.len()]);
                    continue;
                }
                // Few functions: many values at a time instead. A value may be looked at twice.
                let (many_values, last_values) = values.as_chunks::<$lanes>();
                let mut last = [last_values.first().copied().unwrap_or(0); $lanes];
                last[..last_values.len()].copy_from_slice(last_values);
                for ((&a, &b), minimum) in multipliers.iter().zip(offsets).zip(minima) {
                    let (a, b, mut least) = (splat(a), splat(b), splat(u32::MAX));
                    for x in many_values {
                        least = smaller(least, load(x), a, b);
                    }
                    if !last_values.is_empty() {
                        least = smaller(least, load(&last), a, b);
                    }
                    store(&mut out, least);
                    *minimum = out.iter().fold(u32::MAX, |least, &value| least.min(value));
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
min_values_with!(
    #[target_feature(enable = "avx512f")]
    avx512,
    16,
    steps_of_avx512
);

#[cfg(target_arch = "x86_64")]
min_values_with!(
    #[target_feature(enable = "avx2")]
    avx2,
    8,
    steps_of_avx2
);

#[cfg(target_arch = "aarch64")]
min_values_with!(
    #[target_feature(enable = "neon")]
    neon,
    4,
    steps_of_neon
);

#[cfg(target_arch = "x86_64")]
mod steps_of_avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_min_epu32, _mm512_mullo_epi32, _mm512_set1_epi32,
        _mm512_storeu_si512,
    };

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn load(from: &[u32; 16]) -> __m512i {
        // SAFETY: the array has the 64 bytes of a vector; the load needs no alignment.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn store(to: &mut [u32; 16], vector: __m512i) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn splat(x: u32) -> __m512i {
        _mm512_set1_epi32(x.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn smaller(least: __m512i, x: __m512i, a: __m512i, b: __m512i) -> __m512i {
        _mm512_min_epu32(least, _mm512_add_epi32(_mm512_mullo_epi32(x, a), b))
    }
}

#[cfg(target_arch = "x86_64")]
mod steps_of_avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_mullo_epi32, _mm256_set1_epi32,
        _mm256_storeu_si256,
    };

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn load(from: &[u32; 8]) -> __m256i {
        // SAFETY: the array has the 32 bytes of a vector; the load needs no alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn store(to: &mut [u32; 8], vector: __m256i) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn splat(x: u32) -> __m256i {
        _mm256_set1_epi32(x.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn smaller(least: __m256i, x: __m256i, a: __m256i, b: __m256i) -> __m256i {
        _mm256_min_epu32(least, _mm256_add_epi32(_mm256_mullo_epi32(x, a), b))
    }
}

#[cfg(target_arch = "aarch64")]
mod steps_of_neon {
    use std::arch::aarch64::{uint32x4_t, vdupq_n_u32, vld1q_u32, vminq_u32, vmlaq_u32, vst1q_u32};

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn load(from: &[u32; 4]) -> uint32x4_t {
        // SAFETY: the array has the 16 bytes of a vector; the load needs no alignment.
        unsafe { vld1q_u32(from.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn store(to: &mut [u32; 4], vector: uint32x4_t) {
        // SAFETY: as above.
        unsafe { vst1q_u32(to.as_mut_ptr(), vector) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn splat(x: u32) -> uint32x4_t {
        vdupq_n_u32(x)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn smaller(least: uint32x4_t, x: uint32x4_t, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        vminq_u32(least, vmlaq_u32(b, x, a))
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(values: &[u32], multipliers: &[u32], offsets: &[u32]) {
        let mut expected = vec![0; multipliers.len()];
        min_values_scalar(values, multipliers, offsets, &mut expected);
        for unit in VectorUnit::available() {
            let mut minima = vec![0; multipliers.len()];
            min_values_on(unit, values, multipliers, offsets, &mut minima);
            assert_eq!(minima, expected, "{unit}, {} functions of {} values", multipliers.len(), values.len());
        }
    }

    #[test]
    fn every_number_of_functions_and_values_on_every_unit_from_any_address() {
        let numbers: Vec<u32> = (0..1000u32).map(|n| n.wrapping_mul(0x9e37_79b1).rotate_left(n % 31)).collect();
        for functions in 0..=200 {
            let start = functions % 7;
            let (multipliers, offsets) = (&numbers[start..start + functions], &numbers[500..500 + functions]);
            check(&numbers[700..700 + functions % 60], multipliers, offsets);
            check(&numbers[start..start + functions], &numbers[300..401], &numbers[499..600]);
        }
    }

    #[test]
    fn the_largest_numbers_and_no_values() {
        check(&[], &[1; 100], &[7; 100]);
        check(&[u32::MAX; 3], &[u32::MAX; 100], &[u32::MAX; 100]);
        check(&[0, 1 << 31, u32::MAX], &[1; 33], &[(1 << 31) - 1; 33]);
    }

    #[test]
    fn the_shortest_slice_of_functions_counts() {
        for unit in VectorUnit::available() {
            let mut minima = [9; 40];
            min_values_on(unit, &[5], &[2; 39], &[1; 30], &mut minima);
            assert_eq!(minima[..30], [11; 30]);
            assert_eq!(minima[30..], [9; 10]);
        }
    }

    proptest! {
        #[test]
        fn every_unit_equals_the_definition(
            values in prop::collection::vec(any::<u32>(), 0..50),
            functions in prop::collection::vec((any::<u32>(), any::<u32>()), 0..200),
        ) {
            let (multipliers, offsets): (Vec<u32>, Vec<u32>) = functions.into_iter().unzip();
            check(&values, &multipliers, &offsets);
        }
    }
}
