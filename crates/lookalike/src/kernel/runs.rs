//! Every run of `k` numbers, as one number.
//!
//! In: numbers, and `k`. Out: for each run the polynomial in its numbers, mixed; one fewer than `k` runs fewer than there are
//! numbers. The safe twin lets the polynomial roll, each value from the one before it; on AVX-512 eight are made from nothing at
//! once, which takes more multiplications and no waiting for the last one.
#![allow(unsafe_code)]

use super::vector_unit::{Level, VectorUnit};

/// Polynomials are in this number, and mixing multiplies by it, too.
const BASE: u64 = 0xd6e8_feb8_6659_fd93;

/// Longer runs are rolled over on every unit.
#[cfg(target_arch = "x86_64")]
const LONGEST_AT_ONCE: usize = 12;

/// A bijection on 64 bits in which every output bit depends on every input bit.
#[inline]
#[must_use]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(BASE);
    let value = (value ^ (value >> 32)).wrapping_mul(BASE);
    value ^ (value >> 32)
}

/// Adds every run of `k` of the `numbers` to `runs`; none if there are fewer, or if `k` is 0.
pub fn runs(numbers: &[u64], k: usize, runs: &mut Vec<u64>) {
    runs_on(VectorUnit::widest(), numbers, k, runs);
}

/// The same on the given unit.
pub fn runs_on(unit: VectorUnit, numbers: &[u64], k: usize, runs: &mut Vec<u64>) {
    if k == 0 || numbers.len() < k {
        return;
    }
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512 | Level::Avx512Popcnt if k <= LONGEST_AT_ONCE => unsafe { avx512(numbers, k, runs) },
        _ => runs_scalar(numbers, k, runs),
    }
}

/// The definition, in plain Rust for any machine; there is one run at least.
pub fn runs_scalar(numbers: &[u64], k: usize, runs: &mut Vec<u64>) {
    runs.reserve(numbers.len() - k + 1);
    let mut sum = numbers[..k].iter().fold(0u64, |sum, &number| sum.wrapping_mul(BASE).wrapping_add(number));
    runs.push(mix(sum));
    let leaving_weight = (0..k).fold(1u64, |power, _| power.wrapping_mul(BASE));
    runs.extend(numbers.iter().zip(&numbers[k..]).map(|(&leaving, &entering)| {
        sum = sum.wrapping_mul(BASE).wrapping_add(entering).wrapping_sub(leaving.wrapping_mul(leaving_weight));
        mix(sum)
    }));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn avx512(numbers: &[u64], k: usize, runs: &mut Vec<u64>) {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_loadu_si512, _mm512_mullo_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
        _mm512_srli_epi64, _mm512_storeu_si512, _mm512_xor_si512,
    };
    const LANES: usize = 8;
    let count = numbers.len() - k + 1;
    let Some(last) = count.checked_sub(LANES) else { return runs_scalar(numbers, k, runs) };
    runs.reserve(count);
    let out = &mut runs.spare_capacity_mut()[..count];
    let base = _mm512_set1_epi64(BASE.cast_signed());
    let fold = |value: __m512i| _mm512_xor_si512(value, _mm512_srli_epi64::<32>(value));
    let mut at = 0;
    loop {
        let (from, to) = (&numbers[at..at + k + LANES - 1], &mut out[at..at + LANES]);
        // SAFETY: a window has the 64 bytes of a vector; the load needs no alignment.
        let vectors = from.windows(LANES).map(|window| unsafe { _mm512_loadu_si512(window.as_ptr().cast()) });
        let sum = vectors.reduce(|sum, next| _mm512_add_epi64(_mm512_mullo_epi64(sum, base), next));
        let sum = sum.unwrap_or(_mm512_setzero_si512());
        let mixed = fold(_mm512_mullo_epi64(fold(_mm512_mullo_epi64(fold(sum), base)), base));
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), mixed) };
        if at == last {
            break;
        }
        // The last eight may be made twice in part.
        at = (at + LANES).min(last);
    }
    let filled = runs.len() + count;
    // SAFETY: so many are in the vector or were written behind them just now, the first to the last.
    unsafe { runs.set_len(filled) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the words above, each run on its own.
    fn defined(numbers: &[u64], k: usize) -> Vec<u64> {
        let power = |exponent: usize| (0..exponent).fold(1u64, |power, _| power.wrapping_mul(BASE));
        let polynomial = |run: &[u64]| {
            let terms = run.iter().enumerate().map(|(at, &number)| number.wrapping_mul(power(k - 1 - at)));
            terms.fold(0u64, u64::wrapping_add)
        };
        if k == 0 { Vec::new() } else { numbers.windows(k).map(|run| mix(polynomial(run))).collect() }
    }

    #[test]
    fn every_length_and_every_k_on_every_unit() {
        let numbers: Vec<u64> = (1..70u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for length in 0..numbers.len() {
            for k in 0..=20 {
                for unit in VectorUnit::available() {
                    let mut found = vec![7];
                    runs_on(unit, &numbers[..length], k, &mut found);
                    assert_eq!(found[0], 7, "what was there stays");
                    assert_eq!(found[1..], defined(&numbers[..length], k), "{unit}, {k} of {length}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_unit_equals_the_definition(numbers in prop::collection::vec(any::<u64>(), 0..90), k in 1usize..15) {
            for unit in VectorUnit::available() {
                let mut found = Vec::new();
                runs_on(unit, &numbers, k, &mut found);
                prop_assert_eq!(found, defined(&numbers, k));
            }
        }
    }
}
