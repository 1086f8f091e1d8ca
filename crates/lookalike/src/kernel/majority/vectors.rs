//! The counters of [`super`] in vector registers.
//!
//! Every eight vectors give a vector of carries into the eights. Digit `d` of the eights changes only with
//! every `2^d`th of those: a carry waits in `pending` until a second one comes, and then a full adder takes
//! both. So a carry costs one full adder however long the counters are.

use super::{DIGITS, Mixer, above_half, digits_for};

/// Vectors added at once.
const TALL: usize = 8;
/// Digits below the eights.
const LOW_DIGITS: usize = 3;

/// The loop for one vector unit, whose vectors have `$lanes` words. Its steps are functions with the same
/// features, so that they are inlined.
macro_rules! majority_with {
    ($(#[$attribute:meta])* $name:ident, $lanes:literal, $unit:ident) => {
        $(#[$attribute])*
        pub(super) fn $name(words: &[u64], mixer: Option<Mixer>) -> u64 {
            use $unit::{full_adder, half_adder, load, masked, mix, store, zero, Functions};
            const BLOCK: usize = $lanes * TALL;
            // A window of it that starts `n` words before the middle keeps `n` words.
            const MASKS: [u64; 2 * BLOCK] = {
                let mut masks = [0; 2 * BLOCK];
                let mut at = 0;
                while at < BLOCK {
                    masks[at] = u64::MAX;
                    at += 1;
                }
                masks
            };
            let functions = mixer.map(|mixer| Functions::new(mixer));
            let (mut ones, mut twos, mut fours) = (zero(), zero(), zero());
            let (mut eights, mut pending) = ([zero(); DIGITS - LOW_DIGITS], [zero(); DIGITS - LOW_DIGITS]);
            let (blocks, rest) = words.as_chunks::<BLOCK>();
            // What is left is filled up with zeros, which count for nothing.
            let mut last = [0; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            let count = blocks.len() + usize::from(!rest.is_empty());
            for at in 0..count {
                let block = blocks.get(at).unwrap_or(&last).as_chunks::<$lanes>().0;
                let (mut v0, mut v1, mut v2, mut v3) = (load(&block[0]), load(&block[1]), load(&block[2]), load(&block[3]));
                let (mut v4, mut v5, mut v6, mut v7) = (load(&block[4]), load(&block[5]), load(&block[6]), load(&block[7]));
                if let Some(functions) = functions {
                    (v0, v1, v2, v3) = (mix(v0, functions), mix(v1, functions), mix(v2, functions), mix(v3, functions));
                    (v4, v5, v6, v7) = (mix(v4, functions), mix(v5, functions), mix(v6, functions), mix(v7, functions));
                    if at == blocks.len() {
                        let masks = MASKS[BLOCK - rest.len()..].as_chunks::<$lanes>().0;
                        (v0, v1) = (masked(v0, load(&masks[0])), masked(v1, load(&masks[1])));
                        (v2, v3) = (masked(v2, load(&masks[2])), masked(v3, load(&masks[3])));
                        (v4, v5) = (masked(v4, load(&masks[4])), masked(v5, load(&masks[5])));
                        (v6, v7) = (masked(v6, load(&masks[6])), masked(v7, load(&masks[7])));
                    }
                }
                let (two_a, two_b, four_a, four_b, mut carry);
                (ones, two_a) = full_adder(ones, v0, v1);
                (ones, two_b) = full_adder(ones, v2, v3);
                (twos, four_a) = full_adder(twos, two_a, two_b);
                let (two_a, two_b);
                (ones, two_a) = full_adder(ones, v4, v5);
                (ones, two_b) = full_adder(ones, v6, v7);
                (twos, four_b) = full_adder(twos, two_a, two_b);
                (fours, carry) = full_adder(fours, four_a, four_b);
                let digit = at.trailing_ones() as usize;
                for (sum, waiting) in eights.iter_mut().zip(&pending).take(digit) {
                    (*sum, carry) = full_adder(*sum, *waiting, carry);
                }
                pending[digit] = carry;
            }
            let mut carry = zero();
            for (digit, (sum, waiting)) in eights.iter_mut().zip(&pending).enumerate().take(digits_for(count as u64)) {
                (*sum, carry) = if count >> digit & 1 == 1 {
                    full_adder(*sum, *waiting, carry)
                } else {
                    half_adder(*sum, carry)
                };
            }
            let mut digits = [[0; $lanes]; DIGITS];
            let low = [ones, twos, fours];
            for (digit, vector) in digits.iter_mut().zip(low.iter().chain(&eights)).take(digits_for(words.len() as u64)) {
                store(digit, *vector);
            }
            above_half(&digits, words.len() as u64)
        }
    };
}

#[cfg(target_arch = "x86_64")]
majority_with!(
    #[target_feature(enable = "avx512f")]
    avx512,
    8,
    steps_of_avx512
);

#[cfg(target_arch = "x86_64")]
majority_with!(
    #[target_feature(enable = "avx2")]
    avx2,
    4,
    steps_of_avx2
);

#[cfg(target_arch = "aarch64")]
majority_with!(
    #[target_feature(enable = "neon")]
    neon,
    2,
    steps_of_neon
);

#[cfg(target_arch = "x86_64")]
mod steps_of_avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_loadu_si512, _mm512_mul_epu32, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
        _mm512_xor_si512,
    };

    use super::Mixer;

    /// A mixer in every lane.
    #[derive(Clone, Copy)]
    pub(super) struct Functions {
        low: __m512i,
        high: __m512i,
        offset: __m512i,
    }

    impl Functions {
        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(super) fn new(mixer: Mixer) -> Functions {
            Functions {
                low: _mm512_set1_epi64(i64::from(mixer.low)),
                high: _mm512_set1_epi64(i64::from(mixer.high)),
                offset: _mm512_set1_epi64(mixer.offset.cast_signed()),
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn zero() -> __m512i {
        _mm512_setzero_si512()
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn load(from: &[u64; 8]) -> __m512i {
        // SAFETY: the array has the 64 bytes of a vector; the load needs no alignment.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn store(to: &mut [u64; 8], vector: __m512i) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn masked(vector: __m512i, mask: __m512i) -> __m512i {
        _mm512_and_si512(vector, mask)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn mix(words: __m512i, functions: Functions) -> __m512i {
        let low = _mm512_mul_epu32(words, functions.low);
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(words), functions.high);
        let sum = _mm512_add_epi64(_mm512_add_epi64(low, high), functions.offset);
        let folded = _mm512_xor_si512(sum, _mm512_srli_epi64::<32>(sum));
        _mm512_xor_si512(folded, _mm512_slli_epi64::<17>(folded))
    }

    /// The sum and the carry.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn full_adder(a: __m512i, b: __m512i, c: __m512i) -> (__m512i, __m512i) {
        // The truth tables of "one or three" and of "two or three".
        (_mm512_ternarylogic_epi64::<0x96>(a, b, c), _mm512_ternarylogic_epi64::<0xe8>(a, b, c))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn half_adder(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        (_mm512_xor_si512(a, b), _mm512_and_si512(a, b))
    }
}

#[cfg(target_arch = "x86_64")]
mod steps_of_avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_loadu_si256, _mm256_mul_epu32, _mm256_or_si256,
        _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_storeu_si256,
        _mm256_xor_si256,
    };

    use super::Mixer;

    /// A mixer in every lane.
    #[derive(Clone, Copy)]
    pub(super) struct Functions {
        low: __m256i,
        high: __m256i,
        offset: __m256i,
    }

    impl Functions {
        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) fn new(mixer: Mixer) -> Functions {
            Functions {
                low: _mm256_set1_epi64x(i64::from(mixer.low)),
                high: _mm256_set1_epi64x(i64::from(mixer.high)),
                offset: _mm256_set1_epi64x(mixer.offset.cast_signed()),
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn zero() -> __m256i {
        _mm256_setzero_si256()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn load(from: &[u64; 4]) -> __m256i {
        // SAFETY: the array has the 32 bytes of a vector; the load needs no alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn store(to: &mut [u64; 4], vector: __m256i) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn masked(vector: __m256i, mask: __m256i) -> __m256i {
        _mm256_and_si256(vector, mask)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn mix(words: __m256i, functions: Functions) -> __m256i {
        let low = _mm256_mul_epu32(words, functions.low);
        let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(words), functions.high);
        let sum = _mm256_add_epi64(_mm256_add_epi64(low, high), functions.offset);
        let folded = _mm256_xor_si256(sum, _mm256_srli_epi64::<32>(sum));
        _mm256_xor_si256(folded, _mm256_slli_epi64::<17>(folded))
    }

    /// The sum and the carry.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn full_adder(a: __m256i, b: __m256i, c: __m256i) -> (__m256i, __m256i) {
        let partial = _mm256_xor_si256(a, b);
        let carry = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(partial, c));
        (_mm256_xor_si256(partial, c), carry)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn half_adder(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
        (_mm256_xor_si256(a, b), _mm256_and_si256(a, b))
    }
}

#[cfg(target_arch = "aarch64")]
mod steps_of_neon {
    use std::arch::aarch64::{
        uint32x2_t, uint64x2_t, vandq_u64, vbslq_u64, vdup_n_u32, vdupq_n_u64, veorq_u64, vld1q_u64, vmlal_u32,
        vmovn_u64, vshlq_n_u64, vshrn_n_u64, vshrq_n_u64, vst1q_u64,
    };

    use super::Mixer;

    /// A mixer in every lane.
    #[derive(Clone, Copy)]
    pub(super) struct Functions {
        low: uint32x2_t,
        high: uint32x2_t,
        offset: uint64x2_t,
    }

    impl Functions {
        #[inline]
        #[target_feature(enable = "neon")]
        pub(super) fn new(mixer: Mixer) -> Functions {
            Functions { low: vdup_n_u32(mixer.low), high: vdup_n_u32(mixer.high), offset: vdupq_n_u64(mixer.offset) }
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn zero() -> uint64x2_t {
        vdupq_n_u64(0)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn load(from: &[u64; 2]) -> uint64x2_t {
        // SAFETY: the array has the 16 bytes of a vector; the load needs no alignment.
        unsafe { vld1q_u64(from.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn store(to: &mut [u64; 2], vector: uint64x2_t) {
        // SAFETY: as above.
        unsafe { vst1q_u64(to.as_mut_ptr(), vector) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn masked(vector: uint64x2_t, mask: uint64x2_t) -> uint64x2_t {
        vandq_u64(vector, mask)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn mix(words: uint64x2_t, functions: Functions) -> uint64x2_t {
        let sum = vmlal_u32(functions.offset, vmovn_u64(words), functions.low);
        let sum = vmlal_u32(sum, vshrn_n_u64::<32>(words), functions.high);
        let folded = veorq_u64(sum, vshrq_n_u64::<32>(sum));
        veorq_u64(folded, vshlq_n_u64::<17>(folded))
    }

    /// The sum and the carry.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn full_adder(a: uint64x2_t, b: uint64x2_t, c: uint64x2_t) -> (uint64x2_t, uint64x2_t) {
        // Where the first two differ, the third decides whether there is a carry.
        let partial = veorq_u64(a, b);
        (veorq_u64(partial, c), vbslq_u64(partial, c, b))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn half_adder(a: uint64x2_t, b: uint64x2_t) -> (uint64x2_t, uint64x2_t) {
        (veorq_u64(a, b), vandq_u64(a, b))
    }
}
