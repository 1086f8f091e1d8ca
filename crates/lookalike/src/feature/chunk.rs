//! Content-defined chunks: text cut where a rolling fingerprint says so.
//!
//! In: bytes. Out: the ends of chunks. A chunk ends behind the byte at which the low bits of the
//! Rabin fingerprint of the last 48 bytes equal a marker, so that an insertion moves boundaries but
//! changes only the chunks around it. Jain et al. 2005, §2.2; Rabin 1981.

use xxhash_rust::xxh3::xxh3_64;

/// An irreducible polynomial of degree 63 over GF(2); a test proves it.
const POLYNOMIAL: u64 = 0xbfe6_b8a5_bf37_8d83;
/// Bits of a fingerprint.
const DEGREE: u32 = 63;
/// Texts longer than this are rolled over in several places at once.
const LANE_BYTES: usize = 4096;
const LANES: usize = 4;

/// Where text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChunkPlan {
    /// Bytes the fingerprint looks back over.
    pub window: usize,
    /// The low bits that end a chunk.
    pub marker: u64,
    /// Expected bytes of a chunk; a power of two.
    pub size: u64,
    /// A chunk ends here at the latest.
    pub longest: usize,
}

impl Default for ChunkPlan {
    /// The paper's: 48 bytes, 0x78, 256, 64 KB.
    fn default() -> ChunkPlan {
        ChunkPlan { window: 48, marker: 0x78, size: 256, longest: 64 << 10 }
    }
}

/// Rolls over text; the tables are made once.
#[derive(Clone)]
pub struct Chunker {
    plan: ChunkPlan,
    /// What a leading byte comes to, reduced.
    reduce: Box<[u64; 256]>,
    /// What a byte that leaves the window comes to, reduced.
    leave: Box<[u64; 256]>,
}

impl std::fmt::Debug for Chunker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunker").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Chunker {
    /// A chunker for `plan`.
    #[must_use]
    pub fn new(plan: ChunkPlan) -> Chunker {
        let mut reduce = Box::new([0u64; 256]);
        for (byte, entry) in (0u64..).zip(reduce.iter_mut()) {
            *entry = times_x(byte, DEGREE);
        }
        let mut chunker = Chunker { plan, reduce, leave: Box::new([0u64; 256]) };
        for byte in 0..=255u8 {
            let mut fingerprint = chunker.append(0, byte);
            for _ in 0..plan.window {
                fingerprint = chunker.append(fingerprint, 0);
            }
            chunker.leave[usize::from(byte)] = fingerprint;
        }
        chunker
    }

    /// The fingerprint of a text with one more byte.
    #[inline(always)]
    fn append(&self, fingerprint: u64, byte: u8) -> u64 {
        #[allow(clippy::cast_possible_truncation)] // eight bits
        let top = (fingerprint >> (DEGREE - 8)) as u8;
        (fingerprint << 8 & ((1 << DEGREE) - 1) | u64::from(byte)) ^ self.reduce[usize::from(top)]
    }

    #[inline(always)]
    fn roll(&self, fingerprint: u64, entering: u8, leaving: u8) -> u64 {
        self.append(fingerprint, entering) ^ self.leave[usize::from(leaving)]
    }

    /// Replaces `ends` by the ends of the chunks of `text`.
    pub fn ends(&self, text: &[u8], ends: &mut Vec<usize>) {
        ends.clear();
        let mut marked: [Vec<usize>; LANES] = Default::default();
        let lanes = if text.len() >= LANE_BYTES { LANES } else { 1 };
        self.marked(text, text.len().div_ceil(lanes).max(1), &mut marked);
        let mut start = 0;
        for &end in marked.iter().flatten().chain([&text.len()]) {
            while end - start > self.plan.longest {
                start += self.plan.longest;
                ends.push(start);
            }
            if end > start {
                ends.push(end);
                start = end;
            }
        }
    }

    /// The places where the fingerprint has the marker. It depends on the window alone, so the text
    /// is taken in several parts side by side: the processor need not wait for a table lookup.
    fn marked(&self, text: &[u8], part: usize, marked: &mut [Vec<usize>; LANES]) {
        let window = self.plan.window;
        let mask = self.plan.size.max(1) - 1;
        let marker = self.plan.marker & mask;
        let mut fingerprint = [0u64; LANES];
        for (lane, fingerprint) in fingerprint.iter_mut().enumerate() {
            let start = (lane * part).min(text.len());
            for &byte in &text[start.saturating_sub(window)..start] {
                *fingerprint = self.append(*fingerprint, byte);
            }
        }
        let leaving = |at: usize| if at >= window { text[at - window] } else { 0 };
        // All lanes together, as far as the last one goes.
        let together = if part < text.len() { text.len().saturating_sub((LANES - 1) * part).min(part) } else { 0 };
        let alone = window.min(together);
        for step in 0..alone {
            for lane in 0..LANES {
                let at = lane * part + step;
                fingerprint[lane] = self.roll(fingerprint[lane], text[at], leaving(at));
                if fingerprint[lane] & mask == marker {
                    marked[lane].push(at + 1);
                }
            }
        }
        // From here on every lane has a whole window behind it: two slices of one length each.
        if together > alone {
            let length = together - alone;
            let entering: [&[u8]; LANES] = std::array::from_fn(|lane| &text[lane * part + alone..][..length]);
            let behind: [&[u8]; LANES] = std::array::from_fn(|lane| &text[lane * part..][..length]);
            for step in 0..length {
                for lane in 0..LANES {
                    fingerprint[lane] = self.roll(fingerprint[lane], entering[lane][step], behind[lane][step]);
                    if fingerprint[lane] & mask == marker {
                        marked[lane].push(lane * part + alone + step + 1);
                    }
                }
            }
        }
        for (lane, (fingerprint, marked)) in fingerprint.iter_mut().zip(marked).enumerate() {
            let end = ((lane + 1) * part).min(text.len());
            let start = (lane * part + together).min(end);
            for (at, &byte) in (start..).zip(&text[start..end]) {
                *fingerprint = self.roll(*fingerprint, byte, leaving(at));
                if *fingerprint & mask == marker {
                    marked.push(at + 1);
                }
            }
        }
    }

    /// Replaces `chunks` by the hashes of the chunks of `text`, in order; `ends` is scratch space.
    pub fn chunks(&self, text: &[u8], ends: &mut Vec<usize>, chunks: &mut Vec<u64>) {
        self.ends(text, ends);
        chunks.clear();
        let mut start = 0;
        chunks.extend(ends.iter().map(|&end| {
            let chunk = xxh3_64(&text[start..end]);
            start = end;
            chunk
        }));
    }
}

/// `value · x^power` modulo the polynomial.
fn times_x(value: u64, power: u32) -> u64 {
    (0..power).fold(value, |value, _| {
        let shifted = value << 1;
        if shifted >> DEGREE & 1 == 1 { (shifted ^ POLYNOMIAL) & ((1 << DEGREE) - 1) } else { shifted }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_random;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ends(plan: ChunkPlan, text: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        Chunker::new(plan).ends(text, &mut ends);
        ends
    }

    fn random_text(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        (0..bytes).map(|_| b'a' + u8::try_from(next_random(&mut state) % 26).unwrap()).collect()
    }

    /// A product of two residues, bit by bit.
    fn times(a: u64, b: u64) -> u64 {
        (0..DEGREE).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ times_x(a, bit))
    }

    #[test]
    fn the_polynomial_is_irreducible() {
        // Rabin's test: x^(2^63) = x, and x^(2^(63/p)) − x has no factor in common, p in {3, 7}.
        let frobenius = |times_squared: u32| (0..times_squared).fold(2u64, |value, _| times(value, value));
        assert_eq!(frobenius(63), 2);
        for power in [21, 9] {
            // A residue has an inverse iff it has no factor in common with the polynomial.
            let (mut a, mut b) = (u128::from(POLYNOMIAL), u128::from(frobenius(power) ^ 2));
            while b != 0 {
                while a != 0 && a.leading_zeros() <= b.leading_zeros() {
                    a ^= b << (b.leading_zeros() - a.leading_zeros());
                }
                std::mem::swap(&mut a, &mut b);
            }
            assert_eq!(a, 1, "power {power}");
        }
    }

    #[test]
    fn golden_ends() {
        let text = random_text(3000, 4);
        assert_eq!(ends(ChunkPlan::default(), &text), GOLDEN);
        let odd = ChunkPlan { window: 11, marker: 0x5, size: 512, longest: 700 };
        assert_eq!(ends(odd, &text), GOLDEN_ODD);
        let (mut room, mut chunks) = (Vec::new(), Vec::new());
        Chunker::new(ChunkPlan::default()).chunks(b"short", &mut room, &mut chunks);
        assert_eq!(chunks, [xxh3_64(b"short")]);
    }

    const GOLDEN: [usize; 10] = [161, 615, 763, 1205, 1210, 1333, 1565, 1630, 2401, 3000];
    const GOLDEN_ODD: [usize; 8] = [152, 439, 799, 1455, 2113, 2212, 2453, 3000];

    #[test]
    fn chunks_are_of_the_expected_size() {
        let text = random_text(1 << 20, 9);
        for size in [64, 256, 1024] {
            let found = ends(ChunkPlan { size, ..ChunkPlan::default() }, &text).len() as f64;
            let expected = (1 << 20) as f64 / size as f64;
            assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{found} chunks instead of {expected}");
        }
    }

    #[test]
    fn an_insertion_changes_only_the_chunks_around_it() {
        let text = random_text(60_000, 17);
        let before: BTreeSet<Vec<u8>> = cut(&text);
        for at in [0, 1000, 30_011, 59_999] {
            let mut longer = text[..at].to_vec();
            longer.extend_from_slice(b"some words that were not there");
            longer.extend_from_slice(&text[at..]);
            let changed = cut(&longer).difference(&before).count();
            // The window reaches into at most a few chunks behind the insertion.
            assert!(changed <= 4, "{changed} chunks changed at {at}");
        }
    }

    fn cut(text: &[u8]) -> BTreeSet<Vec<u8>> {
        let mut start = 0;
        ends(ChunkPlan::default(), text)
            .into_iter()
            .map(|end| text[std::mem::replace(&mut start, end)..end].to_vec())
            .collect()
    }

    proptest! {
        #[test]
        fn ends_equal_the_definition(bytes in 0usize..9000, seed in any::<u64>(), window in 1usize..60, size in 3u32..9, longest in 1usize..400) {
            let text = random_text(bytes, seed);
            let plan = ChunkPlan { window, marker: 0x78, size: 1 << size, longest };
            let mut expected = Vec::new();
            let mut start = 0;
            for at in 0..text.len() {
                // The fingerprint of the window from scratch.
                let fingerprint = text[(at + 1).saturating_sub(window)..=at]
                    .iter()
                    .fold(0, |value, &byte| times_x(value, 8) ^ u64::from(byte));
                let mask = plan.size - 1;
                if fingerprint & mask == plan.marker & mask || at + 1 - start == longest || at + 1 == text.len() {
                    expected.push(at + 1);
                    start = at + 1;
                }
            }
            prop_assert_eq!(ends(plan, &text), expected);
        }
    }
}
