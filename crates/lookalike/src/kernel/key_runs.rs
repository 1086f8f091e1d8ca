//! Runs of ascending keys, of which each says in a code of its own how it differs from the one before.
//!
//! In: bytes, and where in them some runs go on. Out: the keys that are near the query of their run. Where a key ends is
//! known only when its code has been looked up, so that a run alone waits for that most of the time; several are decoded
//! side by side. The loop is plain Rust, compiled for processors that count and cut out bits in one instruction.
#![allow(unsafe_code)]

use super::hamming::word_at;
use super::vector_unit::{Level, VectorUnit};

/// Places of a differing bit.
pub const SYMBOLS: usize = 64;
/// The longest code.
pub const LONGEST_CODE: u32 = 32;
/// Bits that are looked up at once.
const PEEK: u32 = 10;
const STEPS: usize = 1 << PEEK;
/// Bits of a code and of what follows it that are read at once: as many as a word has, wherever it begins in a byte.
const MOST_AT_ONCE: u32 = 57;
/// Runs that are decoded side by side at most: as many as fit the registers.
pub const LANES: usize = 3;

/// Bytes that a cache loads at once.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// What the next bits stand for: in the lower byte how many bits the key takes, with its code, and in the upper one how many of them
/// come after the code. 0 where the code is longer, or more than can be read at once.
type Step = u16;

/// A code for the highest bit in which a key differs from the one before; the bits below it follow the code.
pub struct KeyCode {
    steps: [Step; STEPS],
    /// All codes, first bit lowest, their lengths and what they stand for; shorter ones first.
    codes: Vec<(u64, u32, u32)>,
}

impl KeyCode {
    /// A code of these codes, the first bit lowest, and their lengths, at most [`LONGEST_CODE`]; those of length 0 do not occur.
    #[must_use]
    pub fn new(codes: &[(u64, u32); SYMBOLS]) -> Box<KeyCode> {
        let mut all: Vec<(u64, u32, u32)> = (0u32..)
            .zip(codes)
            .filter(|(_, code)| code.1 > 0)
            .map(|(symbol, &(code, length))| (code, length, symbol))
            .collect();
        all.sort_by_key(|&(_, length, _)| length);
        let mut steps = [0; STEPS];
        for (at, step) in (0u64..).zip(steps.iter_mut()) {
            let found = all.iter().find(|&&(code, length, _)| length <= PEEK && at & low_bits(length) == code);
            if let Some(&(_, length, symbol)) = found.filter(|(_, length, symbol)| length + symbol <= MOST_AT_ONCE) {
                *step = u16::try_from(symbol << 8 | (length + symbol)).unwrap_or(0);
            }
        }
        Box::new(KeyCode { steps, codes: all })
    }

    /// Goes on to the next key, whose code is at `bit`.
    #[inline(always)]
    pub fn next_key(&self, bytes: &[u8], bit: &mut u64, key: &mut u64) {
        let at = to_byte(*bit);
        if let Some(&[a, b, c, d, e, f, g, h]) = bytes.get(at..at.wrapping_add(8)) {
            let word = u64::from_le_bytes([a, b, c, d, e, f, g, h]) >> (*bit % 8);
            #[allow(clippy::cast_possible_truncation)] // masked
            let step = self.steps[(word as usize) % STEPS];
            if step != 0 {
                let (bits, symbol) = (u32::from(step & 0xff), u32::from(step >> 8));
                let rest = (word >> ((bits - symbol) % 64)) & low_bits(symbol);
                *key = (*key >> (symbol % 64) | 1) << (symbol % 64) | rest;
                *bit += u64::from(bits);
                return;
            }
        }
        (*bit, *key) = self.long_key(bytes, *bit, *key);
    }

    /// The same where the code is long, or much follows it, or the bytes end.
    #[cold]
    #[inline(never)]
    fn long_key(&self, bytes: &[u8], bit: u64, key: u64) -> (u64, u64) {
        let bits_at = |bit: u64| word_at(bytes, to_byte(bit)) >> (bit % 8);
        let next = bits_at(bit);
        let Some(&(_, length, symbol)) = self.codes.iter().find(|&&(code, length, _)| next & low_bits(length) == code)
        else {
            // Not a code: a damaged run. Nothing comes after it.
            return (u64::MAX / 2, key);
        };
        let bit = bit + u64::from(length);
        let rest = bits_at(bit) & low_bits(32) | bits_at(bit.saturating_add(32)) << 32;
        let mask = low_bits(symbol);
        (bit + u64::from(symbol), key & !mask | rest & mask | 1 << symbol)
    }
}

/// A word whose lowest `count` bits are set, at most 63.
#[inline(always)]
fn low_bits(count: u32) -> u64 {
    (1 << (count % 64)) - 1
}

/// The byte of a bit; the last one there can be where it is beyond memory.
#[inline(always)]
fn to_byte(bit: u64) -> usize {
    usize::try_from(bit / 8).unwrap_or(usize::MAX)
}

/// Has the memory of `bytes` brought into the cache while other work goes on. Changes nothing else, and does nothing where the
/// processor has no such instruction that Rust knows.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of this kind has the instruction, and it does not fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// A run of keys that is being decoded.
#[derive(Clone, Copy)]
pub struct Lane<'a> {
    /// The code of its keys.
    pub code: &'a KeyCode,
    /// Where the next key begins, in bits.
    pub bit: u64,
    /// The last key that was decoded.
    pub key: u64,
    /// What keys are compared with.
    pub query: u64,
}

/// A key near its query: its lane, how many keys of the lane came before it in this call, and what it is.
pub type NearKey = (usize, u32, u64);

/// Decodes the next `count` keys of each lane, at most [`LANES`], and appends those that differ from its query in at most `radius` bits.
pub fn near_keys(bytes: &[u8], lanes: &mut [Lane<'_>], count: u32, radius: u32, found: &mut Vec<NearKey>) {
    near_keys_on(VectorUnit::widest(), bytes, lanes, count, radius, found);
}

/// As [`near_keys`], on the given unit.
pub fn near_keys_on(
    unit: VectorUnit,
    bytes: &[u8],
    lanes: &mut [Lane<'_>],
    count: u32,
    radius: u32,
    found: &mut Vec<NearKey>,
) {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512Popcnt | Level::Avx512 | Level::Avx2 => unsafe { bits_keys(bytes, lanes, count, radius, found) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Popcnt => unsafe { popcnt_keys(bytes, lanes, count, radius, found) },
        _ => near_keys_scalar(bytes, lanes, count, radius, found),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
fn bits_keys(bytes: &[u8], lanes: &mut [Lane<'_>], count: u32, radius: u32, found: &mut Vec<NearKey>) {
    near_keys_scalar(bytes, lanes, count, radius, found);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn popcnt_keys(bytes: &[u8], lanes: &mut [Lane<'_>], count: u32, radius: u32, found: &mut Vec<NearKey>) {
    near_keys_scalar(bytes, lanes, count, radius, found);
}

/// The definition of [`near_keys`], in plain Rust for any machine.
#[inline(always)]
pub fn near_keys_scalar(bytes: &[u8], lanes: &mut [Lane<'_>], count: u32, radius: u32, found: &mut Vec<NearKey>) {
    for (group, some) in lanes.chunks_mut(LANES).enumerate() {
        let first = group * LANES;
        // Each number of lanes has a loop of its own, in which they stay in registers.
        if let Ok(lanes) = <&mut [Lane<'_>; 3]>::try_from(&mut *some) {
            side_by_side(bytes, lanes, first, count, radius, found);
        } else if let Ok(lanes) = <&mut [Lane<'_>; 2]>::try_from(&mut *some) {
            side_by_side(bytes, lanes, first, count, radius, found);
        } else if let Ok(lanes) = <&mut [Lane<'_>; 1]>::try_from(some) {
            side_by_side(bytes, lanes, first, count, radius, found);
        }
    }
}

#[inline(always)]
fn side_by_side<const N: usize>(
    bytes: &[u8],
    lanes: &mut [Lane<'_>; N],
    first: usize,
    count: u32,
    radius: u32,
    found: &mut Vec<NearKey>,
) {
    // A copy can stay in registers.
    let mut now = *lanes;
    for at in 0..count {
        for (number, lane) in now.iter_mut().enumerate() {
            lane.code.next_key(bytes, &mut lane.bit, &mut lane.key);
            if (lane.key ^ lane.query).count_ones() <= radius {
                add((first + number, at, lane.key), found);
            }
        }
    }
    *lanes = now;
}

/// Few keys are near: they stay out of the loop.
#[cold]
#[inline(never)]
fn add(near: NearKey, found: &mut Vec<NearKey>) {
    found.push(near);
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Codes of six bits each; or of 1, 2, … bits for the places 20 to 49, so that some are longer than what is looked up.
    fn codes(is_flat: bool) -> [(u64, u32); SYMBOLS] {
        std::array::from_fn(|symbol| match (is_flat, symbol) {
            (true, _) => (symbol as u64, 6),
            (false, 20..50) => (1 << (symbol - 20), symbol as u32 - 19),
            (false, _) => (0, 0),
        })
    }

    /// The bits of a run behind its first key, from `bit` on.
    fn encode(keys: &[u64], codes: &[(u64, u32); SYMBOLS], bit: usize, bytes: &mut Vec<u8>) {
        let mut at = bit;
        let mut put = |bits: u64, count: u32| {
            for place in 0..count {
                bytes.resize(bytes.len().max(at / 8 + 1), 0);
                bytes[at / 8] |= ((bits >> place & 1) as u8) << (at % 8);
                at += 1;
            }
        };
        for pair in keys.windows(2) {
            let place = (pair[0] ^ pair[1]).ilog2();
            let (code, length) = codes[place as usize];
            put(code, length);
            put(pair[1], place);
        }
    }

    /// Ascending keys, of which neighbours differ first in one of `places`.
    fn keys(first: u64, places: &[u32]) -> Vec<u64> {
        let (mut keys, mut state) = (vec![first], first);
        for &place in places {
            let (last, rest) = (keys[keys.len() - 1], crate::random::next_random(&mut state));
            if last >> place & 1 == 0 {
                keys.push((last >> place | 1) << place | rest & ((1 << place) - 1));
            }
        }
        keys
    }

    proptest! {
        #[test]
        fn every_unit_finds_the_keys_of_the_definition(
            is_flat in any::<bool>(),
            runs in prop::collection::vec((any::<u64>(), prop::collection::vec(20u32..50, 0..300)), 1..10),
            gap in 0usize..40,
            radius in 0u32..30,
        ) {
            let (codes, mut bytes) = (codes(is_flat), Vec::new());
            let code = KeyCode::new(&codes);
            let runs: Vec<Vec<u64>> = runs.iter().map(|(first, places)| keys(*first, places)).collect();
            let mut lanes = Vec::new();
            for keys in &runs {
                let bit = bytes.len() * 8 + gap;
                encode(keys, &codes, bit, &mut bytes);
                let query = keys[keys.len() / 2] ^ 5;
                lanes.push(Lane { code: &code, bit: bit as u64, key: keys[0], query });
            }
            let count = runs.iter().map(Vec::len).min().unwrap() as u32 - 1;
            let mut expected = Vec::new();
            for (lane, keys) in runs.iter().enumerate() {
                let near = |at: &u32| (keys[*at as usize + 1] ^ lanes[lane].query).count_ones() <= radius;
                expected.extend((0..count).filter(near).map(|at| (lane, at, keys[at as usize + 1])));
            }
            for unit in VectorUnit::available() {
                let (mut lanes, mut found) = (lanes.clone(), Vec::new());
                // In two steps: a lane goes on where it was.
                near_keys_on(unit, &bytes, &mut lanes, count / 2, radius, &mut found);
                let mut more = Vec::new();
                near_keys_on(unit, &bytes, &mut lanes, count - count / 2, radius, &mut more);
                found.extend(more.into_iter().map(|(lane, at, key)| (lane, at + count / 2, key)));
                found.sort_unstable();
                prop_assert_eq!(&found, &expected, "{}", unit);
                for (lane, keys) in lanes.iter().zip(&runs) {
                    prop_assert_eq!(lane.key, keys[count as usize]);
                }
            }
        }

        #[test]
        fn any_bytes_are_decoded_to_something(bytes in prop::collection::vec(any::<u8>(), 0..200), key in any::<u64>()) {
            for is_flat in [true, false] {
                let code = KeyCode::new(&codes(is_flat));
                let lanes = [Lane { code: &code, bit: 3, key, query: 0 }; 7];
                let mut expected = Vec::new();
                near_keys_scalar(&bytes, &mut lanes.clone(), 300, 20, &mut expected);
                for unit in VectorUnit::available() {
                    let mut found = Vec::new();
                    near_keys_on(unit, &bytes, &mut lanes.clone(), 300, 20, &mut found);
                    prop_assert_eq!(&found, &expected, "{}", unit);
                }
                prefetch(&bytes);
            }
        }
    }
}
