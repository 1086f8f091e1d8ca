//! The smallest value of each of many functions `x ↦ a·x + b mod 2^32` over a set of `x`.
//!
//! In: the `x`s and the functions' `a`s and `b`s. Out: a minimum each; `u32::MAX` where there is no
//! `x`. The same loop is compiled for AVX-512, AVX2 and the baseline; the functions of one block
//! stay in registers while all `x` pass by.
#![allow(unsafe_code)]

/// Functions held in registers at a time.
const BLOCK: usize = 32;

/// Writes the minimum of each function into `minima`, on the widest vector unit of this machine.
///
/// The three slices of functions must be of one length; the shortest counts.
pub fn min_values(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has the feature the function is compiled for.
            unsafe { avx512(values, multipliers, offsets, minima) };
            return;
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            unsafe { avx2(values, multipliers, offsets, minima) };
            return;
        }
    }
    min_values_scalar(values, multipliers, offsets, minima);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    blocks(values, multipliers, offsets, minima);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    blocks(values, multipliers, offsets, minima);
}

/// The definition, in plain Rust for any machine.
pub fn min_values_scalar(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    for ((minimum, &multiplier), &offset) in minima.iter_mut().zip(multipliers).zip(offsets) {
        *minimum = values.iter().map(|&x| x.wrapping_mul(multiplier).wrapping_add(offset)).min().unwrap_or(u32::MAX);
    }
}

#[inline(always)]
fn blocks(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    let functions = minima.len().min(multipliers.len()).min(offsets.len());
    let mut at = 0;
    while at + BLOCK <= functions {
        block::<BLOCK>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]);
        at += BLOCK;
    }
    while at + 8 <= functions {
        block::<8>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]);
        at += 8;
    }
    min_values_scalar(values, &multipliers[at..functions], &offsets[at..functions], &mut minima[at..functions]);
}

#[inline(always)]
fn block<const N: usize>(values: &[u32], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    let mut multiplier = [0u32; N];
    let mut offset = [0u32; N];
    multiplier.copy_from_slice(&multipliers[..N]);
    offset.copy_from_slice(&offsets[..N]);
    let mut smallest = [u32::MAX; N];
    for &x in values {
        for lane in 0..N {
            let value = x.wrapping_mul(multiplier[lane]).wrapping_add(offset[lane]);
            smallest[lane] = smallest[lane].min(value);
        }
    }
    minima[..N].copy_from_slice(&smallest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_width_equals_the_definition(
            values in prop::collection::vec(any::<u32>(), 0..50),
            functions in prop::collection::vec((any::<u32>(), any::<u32>()), 0..100),
        ) {
            let (multipliers, offsets): (Vec<u32>, Vec<u32>) = functions.into_iter().unzip();
            let mut expected = vec![0; multipliers.len()];
            min_values_scalar(&values, &multipliers, &offsets, &mut expected);
            let mut widest = vec![0; multipliers.len()];
            min_values(&values, &multipliers, &offsets, &mut widest);
            prop_assert_eq!(&widest, &expected);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                let mut narrower = vec![0; multipliers.len()];
                // SAFETY: the CPU has AVX2.
                unsafe { avx2(&values, &multipliers, &offsets, &mut narrower) };
                prop_assert_eq!(&narrower, &expected);
            }
        }
    }
}
