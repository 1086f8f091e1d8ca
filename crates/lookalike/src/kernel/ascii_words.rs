//! Where the words of an ASCII text are.
//!
//! In: bytes. Out: every maximal run of ASCII letters and digits, in order, as far as the text is ASCII. 64 bytes are classified at
//! once; the loop over their words is compiled together with what is done with each, for the processor at hand.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::{mem::MaybeUninit, slice};

use super::byte_class::{ByteClasses, LANES, byte_classes_on};
#[cfg(target_arch = "x86_64")]
use super::byte_class::{avx2, avx512};
use super::vector_unit::{Level, VectorUnit};

/// What is done with words.
pub trait WordSink {
    /// A word, by where it starts and ends. Should be `inline(always)`.
    fn word(&mut self, start: usize, end: usize);
}

/// Shows the words of `bytes` from `from` on, where no word is under way, to `words`. Returns how far it came: to a place where no
/// word is under way, less than 64 bytes and a word before the end, or before a byte that is not ASCII.
#[inline]
pub fn ascii_words(bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    ascii_words_on(VectorUnit::widest(), bytes, from, words)
}

/// The same on the given unit.
#[inline]
pub fn ascii_words_on(unit: VectorUnit, bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    match unit.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the unit stands for a CPU that has the features.
        Level::Avx512Popcnt => unsafe { on_avx512_vbmi2(bytes, from, words) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 => unsafe { on_avx512(bytes, from, words) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { on_avx2(bytes, from, words) },
        _ => visit_blocks(bytes, from, |block| byte_classes_on(unit, block), words),
    }
}

/// Words that are found before they are shown: then nothing has to be foreseen about how many there are in 64 bytes.
#[cfg(target_arch = "x86_64")]
const FOUND: usize = 512;
/// Bytes in which they are found.
#[cfg(target_arch = "x86_64")]
const FOUND_BYTES: usize = 1 << 16;

/// Where words start, or end, counted from the first block of the found ones; room for those of one block more.
#[cfg(target_arch = "x86_64")]
type Places = [MaybeUninit<u32>; FOUND + LANES];

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")]
fn on_avx512_vbmi2(bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    let (mut starts, mut ends): (Places, Places) =
        ([const { MaybeUninit::uninit() }; FOUND + LANES], [const { MaybeUninit::uninit() }; FOUND + LANES]);
    let mut first = from;
    loop {
        let (mut at, mut started, mut ended, mut is_word_under_way, mut is_over) = (first, 0, 0, 0, false);
        while ended < FOUND && at - first < FOUND_BYTES {
            let block = bytes.get(at..at + LANES).and_then(|block| block.try_into().ok());
            let Some(ByteClasses { word, .. }) = block.map(|block| avx512(block)).filter(|classes| classes.wide == 0)
            else {
                is_over = true;
                break;
            };
            let behind_word = word << 1 | is_word_under_way;
            #[allow(clippy::cast_possible_truncation)] // no more than `FOUND_BYTES`
            let offset = (at - first) as u32;
            started += put_places(word & !behind_word, offset, &mut starts, started);
            ended += put_places(!word & behind_word, offset, &mut ends, ended);
            is_word_under_way = word >> 63;
            at += LANES;
        }
        // SAFETY: so many places were put there.
        let found =
            |places: &Places, count: usize| unsafe { slice::from_raw_parts(places[..count].as_ptr().cast(), count) };
        let (starts, ends): (&[u32], &[u32]) = (found(&starts, started), found(&ends, ended));
        for (&start, &end) in starts.iter().zip(ends) {
            words.word(first + start as usize, first + end as usize);
        }
        let end = starts.get(ended).map_or(at, |&start| first + start as usize);
        if is_over || end == first {
            return end;
        }
        first = end;
    }
}

/// Writes the places of the ones in `set` to `places` from `from` on, whatever follows there, and returns how many there are.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")]
#[inline]
fn put_places(set: u64, offset: u32, places: &mut Places, from: usize) -> usize {
    use std::arch::x86_64::{
        _mm512_add_epi32, _mm512_castsi512_si128, _mm512_cvtepu8_epi32, _mm512_extracti32x4_epi32, _mm512_loadu_si512,
        _mm512_maskz_compress_epi8, _mm512_set1_epi32, _mm512_storeu_si512,
    };
    const QUARTER: usize = LANES / 4;
    static NUMBERS: [u8; LANES] = {
        let mut numbers = [0; LANES];
        let mut at = 0;
        while at < LANES {
            #[allow(clippy::cast_possible_truncation)] // less than 64
            let number = at as u8;
            numbers[at] = number;
            at += 1;
        }
        numbers
    };
    let count = set.count_ones() as usize;
    // SAFETY: the array has the 64 bytes of a vector; the load needs no alignment.
    let numbers = unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().cast()) };
    let offset = _mm512_set1_epi32(offset.cast_signed());
    let found = _mm512_maskz_compress_epi8(set, numbers);
    // Words in 64 bytes, and blanks between them: at most 32.
    let room = &mut places[from..from + 2 * QUARTER];
    let low = _mm512_add_epi32(offset, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(found)));
    // SAFETY: the slice has room for two vectors; the store needs no alignment.
    unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), low) };
    if count > QUARTER {
        let high = _mm512_add_epi32(offset, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<1>(found)));
        // SAFETY: as above; this is the second vector.
        unsafe { _mm512_storeu_si512(room[QUARTER..].as_mut_ptr().cast(), high) };
    }
    count
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi1,bmi2")]
fn on_avx512(bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    visit_blocks(bytes, from, |block| avx512(block), words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn on_avx2(bytes: &[u8], from: usize, words: &mut impl WordSink) -> usize {
    visit_blocks(bytes, from, |block| avx2(block), words)
}

#[inline(always)]
fn visit_blocks(
    bytes: &[u8],
    from: usize,
    classes_of: impl Fn(&[u8; LANES]) -> ByteClasses,
    words: &mut impl WordSink,
) -> usize {
    let mut at = from;
    while let Some(block) = bytes.get(at..at + LANES).and_then(|block| block.try_into().ok()) {
        let ByteClasses { word, wide } = classes_of(block);
        if wide != 0 {
            return at;
        }
        let mut starts = word & !(word << 1);
        let mut ends = !word & (word << 1);
        while ends != 0 {
            words.word(at + starts.trailing_zeros() as usize, at + ends.trailing_zeros() as usize);
            starts &= starts - 1;
            ends &= ends - 1;
        }
        // The last word may go on in the next block.
        match starts.trailing_zeros() as usize {
            0 => return at,
            length => at += length,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Found(Vec<(usize, usize)>);

    impl WordSink for Found {
        #[inline(always)]
        fn word(&mut self, start: usize, end: usize) {
            self.0.push((start, end));
        }
    }

    /// The words that end before `until`, by the definition.
    fn words(bytes: &[u8], from: usize, until: usize) -> Vec<(usize, usize)> {
        let (mut found, mut start) = (Vec::new(), None);
        for (at, byte) in bytes.iter().enumerate().take(until).skip(from) {
            match (byte.is_ascii_alphanumeric(), start) {
                (true, None) => start = Some(at),
                (false, Some(from)) => {
                    found.push((from, at));
                    start = None;
                }
                _ => {}
            }
        }
        found
    }

    fn check(bytes: &[u8], from: usize) {
        for unit in VectorUnit::available() {
            let mut found = Found(Vec::new());
            let end = ascii_words_on(unit, bytes, from, &mut found);
            assert_eq!(found.0, words(bytes, from, end), "{unit}");
            let is_under_way = end > from && bytes[end - 1].is_ascii_alphanumeric();
            assert!(!is_under_way, "{unit} stopped in a word");
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
            let behind_word = end + bytes[end..].iter().take_while(|byte| is_word(byte)).count();
            let is_done = match bytes.get(behind_word..behind_word + LANES) {
                None => true,
                Some(block) => !block.is_ascii() || behind_word - end >= LANES,
            };
            assert!(is_done, "{unit} stopped at {end} of {}", bytes.len());
        }
    }

    #[test]
    fn words_that_fill_a_block_or_end_with_it_are_whole() {
        for length in 60..70 {
            let text = format!("a {} b {}", "x".repeat(length), " .".repeat(40));
            (0..text.len())
                .filter(|&from| from == 0 || !text.as_bytes()[from - 1].is_ascii_alphanumeric())
                .for_each(|from| check(text.as_bytes(), from));
        }
    }

    #[test]
    fn more_words_than_are_found_at_a_time() {
        for words in 1000..1100 {
            check("ab ".repeat(words).as_bytes(), 0);
            check(format!("{}{}", "a,".repeat(words), "b".repeat(600)).as_bytes(), 0);
            check(format!("a{}b c", " ".repeat(70 * words)).as_bytes(), 0);
            check(format!("a {} c", "b".repeat(70 * words)).as_bytes(), 0);
        }
    }

    proptest! {
        #[test]
        fn every_unit_finds_the_words_of_the_definition(text in "([a-zA-Z0-9]{1,90}|[ .,\\n]{1,20}|[é中ß“]{0,2}){0,40}") {
            check(text.as_bytes(), 0);
        }
    }
}
