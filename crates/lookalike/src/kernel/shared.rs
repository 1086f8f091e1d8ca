//! How many numbers two ascending lists have in common.
//!
//! In: two lists, each ascending and without repeats, and the least count that is of interest. Out: the count, or nothing
//! where it is smaller. Blocks of one list are compared with blocks of the other, every number with every other one, which
//! needs no branch that depends on the numbers; the block that ends first gives way to the next one. What is left of the
//! lists bounds what can still be found: most pairs of pages are far apart and are given up half-way.
#![allow(unsafe_code)]

use super::vector_unit::{Level, VectorUnit};

/// Numbers that both lists have, on the widest vector unit of this machine; nothing if these are fewer than `least`.
#[must_use]
pub fn shared_at_least(left: &[u64], right: &[u64], least: usize) -> Option<usize> {
    shared_at_least_on(VectorUnit::widest(), left, right, least)
}

/// As [`shared_at_least`], on the given unit.
#[must_use]
pub fn shared_at_least_on(unit: VectorUnit, left: &[u64], right: &[u64], least: usize) -> Option<usize> {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512 | Level::Avx512Popcnt => unsafe { avx512(left, right, least) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2(left, right, least) },
        _ => shared_at_least_scalar(left, right, least),
    }
}

/// The definition, in plain Rust for any machine.
#[must_use]
pub fn shared_at_least_scalar(left: &[u64], right: &[u64], least: usize) -> Option<usize> {
    Some(merge(left, right)).filter(|&count| count >= least)
}

#[inline]
fn merge(left: &[u64], right: &[u64]) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < left.len() && j < right.len() {
        let (a, b) = (left[i], right[j]);
        // No branch: which of the two advances is as random as the hashes are.
        count += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    count
}

/// The loop over blocks for one vector unit, whose vectors have `$lanes` numbers. Its step is a function with the same
/// features, so that it is inlined.
#[cfg(target_arch = "x86_64")]
macro_rules! shared_with {
    ($(#[$attribute:meta])* $name:ident, $lanes:literal, $equal:path) => {
        $(#[$attribute])*
        fn $name(left: &[u64], right: &[u64], least: usize) -> Option<usize> {
            let (mut l, mut r, mut count) = (left, right, 0);
            while let (Some(a), Some(b)) = (l.first_chunk::<$lanes>(), r.first_chunk::<$lanes>()) {
                count += $equal(a, b);
                let (last_a, last_b) = (a[$lanes - 1], b[$lanes - 1]);
                l = &l[if last_a <= last_b { $lanes } else { 0 }..];
                r = &r[if last_b <= last_a { $lanes } else { 0 }..];
                if count + l.len().min(r.len()) < least {
                    return None;
                }
            }
            Some(count + merge(l, r)).filter(|&count| count >= least)
        }
    };
}

#[cfg(target_arch = "x86_64")]
shared_with!(
    #[target_feature(enable = "avx512f,popcnt")]
    avx512,
    8,
    equal_of_avx512
);

#[cfg(target_arch = "x86_64")]
shared_with!(
    #[target_feature(enable = "avx2,popcnt")]
    avx2,
    4,
    equal_of_avx2
);

/// How many numbers of a block are in the other one.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn equal_of_avx512(a: &[u64; 8], b: &[u64; 8]) -> usize {
    use std::arch::x86_64::{_mm512_alignr_epi64, _mm512_cmpeq_epi64_mask, _mm512_loadu_si512};
    // SAFETY: both arrays have the 64 bytes of a vector; the load needs no alignment.
    let (a, b) = unsafe { (_mm512_loadu_si512(a.as_ptr().cast()), _mm512_loadu_si512(b.as_ptr().cast())) };
    let (one, two) = (_mm512_cmpeq_epi64_mask(a, b), _mm512_cmpeq_epi64_mask(a, _mm512_alignr_epi64::<1>(b, b)));
    let three = _mm512_cmpeq_epi64_mask(a, _mm512_alignr_epi64::<2>(b, b));
    let four = _mm512_cmpeq_epi64_mask(a, _mm512_alignr_epi64::<3>(b, b));
    let five = _mm512_cmpeq_epi64_mask(a, _mm512_alignr_epi64::<4>(b, b));
    let six = _mm512_cmpeq_epi64_mask(a, _mm512_alignr_epi64::<5>(b, b));
    let seven = _mm512_cmpeq_epi64_mask(a, _mm512_alignr_epi64::<6>(b, b));
    let eight = _mm512_cmpeq_epi64_mask(a, _mm512_alignr_epi64::<7>(b, b));
    (((one | two) | (three | four)) | ((five | six) | (seven | eight))).count_ones() as usize
}

/// As [`equal_of_avx512`], for four numbers.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn equal_of_avx2(a: &[u64; 4], b: &[u64; 4]) -> usize {
    use std::arch::x86_64::{
        _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_or_si256,
        _mm256_permute4x64_epi64,
    };
    // SAFETY: both arrays have the 32 bytes of a vector; the load needs no alignment.
    let (a, b) = unsafe { (_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast())) };
    let one = _mm256_cmpeq_epi64(a, b);
    let two = _mm256_cmpeq_epi64(a, _mm256_permute4x64_epi64::<0b00_11_10_01>(b));
    let three = _mm256_cmpeq_epi64(a, _mm256_permute4x64_epi64::<0b01_00_11_10>(b));
    let four = _mm256_cmpeq_epi64(a, _mm256_permute4x64_epi64::<0b10_01_00_11>(b));
    let any = _mm256_or_si256(_mm256_or_si256(one, two), _mm256_or_si256(three, four));
    _mm256_movemask_pd(_mm256_castsi256_pd(any)).count_ones() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(left: &[u64], right: &[u64]) {
        let set: BTreeSet<u64> = left.iter().copied().collect();
        let count = right.iter().filter(|number| set.contains(number)).count();
        for unit in VectorUnit::available() {
            for least in [0, 1, count.saturating_sub(1), count, count + 1, left.len(), left.len() + right.len() + 1] {
                let expected = Some(count).filter(|&count| count >= least);
                assert_eq!(shared_at_least_on(unit, left, right, least), expected, "{unit}, {least}");
                assert_eq!(shared_at_least_on(unit, right, left, least), expected, "{unit}, {least}");
            }
        }
    }

    #[test]
    fn lists_of_every_length_that_share_all_some_or_none() {
        let numbers: Vec<u64> = (0..60).map(|n| n * n * 0x9e37_79b9 + 3).collect();
        for length in 0..60 {
            for start in [0, 1, 7, 8, 9, 31] {
                check(&numbers[..length], &numbers[start..]);
            }
            let odd: Vec<u64> = numbers[..length].iter().map(|n| n + 1).collect();
            check(&odd, &numbers);
        }
        check(&[0, u64::MAX], &[u64::MAX]);
    }

    proptest! {
        #[test]
        fn every_unit_equals_the_definition(
            left in prop::collection::btree_set(0u64..300, 0..120),
            right in prop::collection::btree_set(0u64..300, 0..120),
            shift in 0u32..56,
        ) {
            // Also numbers that differ in their highest bits alone.
            let list = |set: BTreeSet<u64>| set.into_iter().map(|number| number << shift).collect::<Vec<_>>();
            check(&list(left), &list(right));
        }
    }
}
