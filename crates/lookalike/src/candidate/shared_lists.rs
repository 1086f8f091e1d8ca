//! Which pages share which features, as lists, in bounded memory.
//!
//! In: pages with their feature sets. Out: for every feature that several pages have among those they are looked up by, the
//! places of these pages in the order of weight, ascending. Rows (feature, place) are divided into parts by the feature's hash,
//! each part is sorted and gives its lists; what does not fit into memory is in files. A feature is known by 40 bits of its
//! hash, 8 for the part and 32 in the row: two features can become one, which makes pages share more than they do, never
//! less, and the same ones whatever the memory.

use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use crate::candidate::inverted::{Sharing, rarity_of};
use crate::error::{Error, Result};
use crate::feature::rarity::Prefix;
use crate::page::PageId;
use crate::plan::Measure;
use crate::sketch::page_sets::PageSets;
use crate::spill::{Scratch, Spill};

/// Pages that one thread takes at a time.
pub(super) const PAGES_PER_TASK: usize = 256;
/// Features of the pages whose rows are made before they are divided.
const FEATURES_AT_A_TIME: u64 = 1 << 18;
/// Rows that are collected before they are added to their part.
const STAGED_ROWS: usize = 1024;
/// Bits of a hash that say which part a feature belongs to. Parts may be files, which are open at the same time.
const PART_BITS: u32 = 8;
/// Words of lists that are read at a time.
const PIECE_WORDS: usize = 1 << 16;

/// The last of a list.
const LAST: u32 = 1;
/// The page is looked up by this feature.
const LOOKED_UP: u32 = 2;
/// A place stands above these two.
const PLACE_SHIFT: u32 = 2;

/// Memory for finding pages by features, and where what does not fit goes.
#[derive(Debug, Clone, Copy)]
pub struct Room<'a> {
    /// For temporary files.
    pub directory: &'a Path,
    /// Memory, beside a few numbers per page.
    pub bytes: usize,
}

/// Pages from light to heavy; a page's place in here is its number in the lists.
pub(super) struct PagesByWeight {
    pub(super) order: Vec<PageId>,
    pub(super) weighed: Vec<Weighed>,
}

/// What is known of a page.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weighed {
    /// The weight of all its features.
    pub(super) total: u64,
    /// Of those behind the prefix.
    pub(super) rest: u64,
    /// The last key of the prefix.
    pub(super) last: (u32, u64),
}

/// The pages that share a feature, of every feature.
pub(super) struct SharedLists {
    words: Spill<u32>,
    /// Where pieces of whole lists end.
    ends: Vec<u64>,
    is_weighted: bool,
}

/// A member of a list.
#[derive(Clone, Copy)]
pub(super) struct Member(u32);

impl Member {
    pub(super) fn place(self) -> u32 {
        self.0 >> PLACE_SHIFT
    }

    /// Whether the feature is one of those that the page is looked up by.
    pub(super) fn is_looked_up(self) -> bool {
        self.0 & LOOKED_UP != 0
    }
}

impl SharedLists {
    /// The lists of some pages, ascending.
    ///
    /// # Errors
    /// When a temporary file cannot be written or read.
    pub(super) fn new(
        sets: &PageSets,
        pages: &[PageId],
        sharing: Sharing,
        room: Room<'_>,
    ) -> Result<(PagesByWeight, SharedLists)> {
        if pages.len() >> (u32::BITS - PLACE_SHIFT) > 0 {
            let reason = "finds pages by the features that they share, among at most 2^30 pages; split the input, or use `method` minhash";
            return Err(Error::conflict("method", reason));
        }
        let (mut by_weight, place_of) = in_order(sets, pages)?;
        let parts = rows_in_parts(sets, pages, &place_of, &mut by_weight, sharing, room)?;
        drop(place_of);
        let mut lists = SharedLists {
            words: Spill::new(room.directory.join("shared-lists"), room.bytes / 6),
            ends: Vec::new(),
            is_weighted: sets.is_weighted(),
        };
        let mut parts = parts.into_iter();
        loop {
            let some: Vec<Spill<u64>> = parts.by_ref().take(rayon::current_num_threads()).collect();
            if some.is_empty() {
                break;
            }
            let found: Vec<Vec<u32>> =
                some.par_iter().map(|part| lists_of(part, lists.is_weighted)).collect::<Result<_>>()?;
            some.into_iter().for_each(Spill::remove);
            found.iter().try_for_each(|words| lists.append(words))?;
        }
        lists.words.finish()?;
        Ok((by_weight, lists))
    }

    /// Whether features have weights.
    pub(super) fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    fn append(&mut self, words: &[u32]) -> Result<()> {
        let mut from = 0;
        while from < words.len() {
            let mut to = (from + PIECE_WORDS).min(words.len());
            // Up to the end of a list. Weights have this bit never.
            while words[to - 1] & LAST == 0 {
                to += 1;
            }
            self.words.append(&words[from..to])?;
            self.ends.push(self.words.len());
            from = to;
        }
        Ok(())
    }

    /// Shows all lists, each with the weight of its feature, in an order that is always the same.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn for_each(&self, mut visit: impl FnMut(u32, &[Member])) -> Result<()> {
        let (mut scratch, mut members) = (Scratch::default(), Vec::new());
        let mut from = 0;
        for &to in &self.ends {
            let words = self.words.read(from..to, &mut scratch)?;
            for list in words.split_inclusive(|word| word & LAST != 0) {
                let (weight, list) = if self.is_weighted { (list[0] >> 1, &list[1..]) } else { (1, list) };
                members.clear();
                members.extend(list.iter().map(|&word| Member(word)));
                visit(weight, &members);
            }
            from = to;
        }
        Ok(())
    }
}

/// The pages by weight, and for each of them its place there.
fn in_order(sets: &PageSets, pages: &[PageId]) -> Result<(PagesByWeight, Vec<u32>)> {
    let mut sizes: Vec<(u64, u32)> = Vec::with_capacity(pages.len());
    for (number, &page) in (0u32..).zip(pages) {
        let total = if sets.is_weighted() {
            sets.weighted_features(page).1.iter().map(|&weight| u64::from(weight)).sum()
        } else {
            sets.feature_count_of(page)
        };
        sizes.push((total, number));
    }
    sizes.par_sort_unstable();
    let mut place_of = vec![0; pages.len()];
    for (place, row) in (0u32..).zip(&sizes) {
        place_of[row.1 as usize] = place;
    }
    let by_weight = PagesByWeight {
        order: sizes.iter().map(|row| pages[row.1 as usize]).collect(),
        weighed: sizes.iter().map(|row| Weighed { total: row.0, ..Weighed::default() }).collect(),
    };
    Ok((by_weight, place_of))
}

/// What some pages gave: rows with the number of their part, and what is behind each page's prefix.
type Made = (Vec<(u32, u64)>, Vec<(u64, (u32, u64))>);

/// Rows of all pages, divided by their features. A row is the hash of a feature, a place, and whether the page is looked up by it.
fn rows_in_parts(
    sets: &PageSets,
    pages: &[PageId],
    place_of: &[u32],
    by_weight: &mut PagesByWeight,
    sharing: Sharing,
    room: Room<'_>,
) -> Result<Vec<Spill<u64>>> {
    let rarity = rarity_of(sets, pages);
    let all_bytes = usize::try_from(sets.feature_count() * 8).unwrap_or(usize::MAX);
    let limit = if all_bytes <= room.bytes / 2 { usize::MAX } else { 0 };
    let mut parts: Vec<Spill<u64>> = (0..1 << PART_BITS)
        .map(|part| Spill::unbuffered(room.directory.join(format!("shared-rows-{part}")), limit))
        .collect();
    let mut staged: Vec<Vec<u64>> = vec![Vec::new(); parts.len()];
    let is_weighted = sets.is_weighted();
    let rows_of = |prefix: &mut Prefix, range: Range<usize>| -> Result<Made> {
        let (mut rows, mut rests) = (Vec::new(), Vec::with_capacity(range.len()));
        for at in range {
            let (features, weights) = sets.weighted_features(pages[at]);
            prefix.fill(features, weights, &rarity, sharing.prefix_threshold());
            // Coverage is looked up from the lighter page, which knows nothing of the heavier one's
            // rarest features: all of them are indexed.
            let indexed = if sharing.measure == Measure::Coverage { features.len() } else { prefix.length };
            for (number, &((_, feature), weight)) in prefix.ranked()[..indexed].iter().enumerate() {
                let looked_up = if number < prefix.length { LOOKED_UP } else { 0 };
                let (part, mut hash) = divided(feature);
                if is_weighted {
                    hash = hash & !0xff | u64::from(weight_code(weight));
                }
                rows.push((part, hash << 32 | u64::from(place_of[at] << PLACE_SHIFT | looked_up)));
            }
            let last = prefix.length.checked_sub(1).map_or((0, 0), |last| prefix.ranked()[last].0);
            rests.push((prefix.rest, last));
        }
        Ok((rows, rests))
    };
    let mut from = 0;
    while from < pages.len() {
        let (mut to, mut features) = (from, 0);
        while to < pages.len() && features < FEATURES_AT_A_TIME {
            features += sets.feature_count_of(pages[to]);
            to += 1;
        }
        let made: Vec<Made> = (from..to)
            .into_par_iter()
            .step_by(PAGES_PER_TASK)
            .map_init(Prefix::default, |prefix, start| rows_of(prefix, start..(start + PAGES_PER_TASK).min(to)))
            .collect::<Result<_>>()?;
        for (rows, rests) in made {
            for (part, row) in rows {
                let rows = &mut staged[part as usize];
                rows.push(row);
                if rows.len() == STAGED_ROWS {
                    parts[part as usize].append(rows)?;
                    rows.clear();
                }
            }
            for rest in rests {
                let page = &mut by_weight.weighed[place_of[from] as usize];
                (page.rest, page.last) = rest;
                from += 1;
            }
        }
    }
    for (part, rows) in parts.iter_mut().zip(staged) {
        part.append(&rows)?;
        part.finish()?;
    }
    Ok(parts)
}

/// The part that a feature belongs to, and 32 more bits of its hash.
#[allow(clippy::cast_possible_truncation)] // that few bits
fn divided(feature: u64) -> (u32, u64) {
    let hash = feature.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((hash >> (u64::BITS - PART_BITS)) as u32, hash << PART_BITS >> 32)
}

/// The lists of a part, one behind the other.
fn lists_of(part: &Spill<u64>, is_weighted: bool) -> Result<Vec<u32>> {
    let mut scratch = Scratch::default();
    let mut rows = part.read(0..part.len(), &mut scratch)?.to_vec();
    drop(scratch);
    sort_by_upper_half(&mut rows);
    let mut words = Vec::new();
    for list in rows.chunk_by(|a, b| a >> 32 == b >> 32) {
        // A feature that one page has brings nobody together, neither does one that nobody is looked up by.
        #[allow(clippy::cast_possible_truncation)] // the lower half
        let word = |row: &u64| *row as u32;
        if list.len() < 2 || list.iter().all(|row| word(row) & LOOKED_UP == 0) {
            continue;
        }
        if is_weighted {
            words.push(weight_of_code(list[0] >> 32 & 0xff) << 1);
        }
        let start = words.len();
        words.extend(list.iter().map(word));
        words[start..].sort_unstable();
        *words.last_mut().unwrap_or(&mut 0) |= LAST;
    }
    words.shrink_to_fit();
    Ok(words)
}

/// Sorts by the upper 32 bits; rows in which they are the same stay in order.
fn sort_by_upper_half(rows: &mut Vec<u64>) {
    const DIGIT_BITS: u32 = 11;
    let mut sorted = vec![0; rows.len()];
    for shift in [32, 32 + DIGIT_BITS, 32 + 2 * DIGIT_BITS] {
        #[allow(clippy::cast_possible_truncation)] // masked
        let digit = |row: u64| (row >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut starts = vec![0usize; 1 << DIGIT_BITS];
        rows.iter().for_each(|&row| starts[digit(row)] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        for &row in rows.iter() {
            let at = &mut starts[digit(row)];
            sorted[*at] = row;
            *at += 1;
        }
        std::mem::swap(rows, &mut sorted);
    }
}

/// A weight in eight bits: exact up to 31, and rounded up by at most a sixteenth beyond.
#[allow(clippy::cast_possible_truncation)] // exponents are small
fn weight_code(weight: u32) -> u8 {
    if weight < 16 {
        return weight as u8;
    }
    let exponent = weight.ilog2() - 4;
    let mantissa = weight.div_ceil(1 << exponent);
    // 32 sixteenths are one more in the exponent.
    u8::try_from(((exponent + 1) << 4) + (mantissa - 16)).unwrap_or(u8::MAX)
}

#[allow(clippy::cast_possible_truncation)] // a code has eight bits
fn weight_of_code(code: u64) -> u32 {
    let code = code as u32;
    if code < 16 { code } else { (16 + (code & 15)) << ((code >> 4) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_random;

    #[test]
    fn weights_are_rounded_up_by_little() {
        for weight in 1..=100_000 {
            let known = weight_of_code(u64::from(weight_code(weight)));
            assert!(known >= weight && (known - weight) * 16 <= weight && (weight > 31 || known == weight), "{weight}");
        }
    }

    #[test]
    fn rows_are_sorted_by_their_upper_half_and_stay_in_order() {
        let mut state = 5;
        let mut rows: Vec<u64> = (0..5000).map(|at| next_random(&mut state) >> 40 << 32 & !(0xff << 40) | at).collect();
        let mut expected = rows.clone();
        expected.sort_by_key(|row| row >> 32);
        sort_by_upper_half(&mut rows);
        assert_eq!(rows, expected);
    }

    #[test]
    fn parts_and_rows_tell_features_apart() {
        let mut found: Vec<(u32, u64)> = (0..100_000).map(|n| divided(n * 0x9e37_79b9)).collect();
        assert!(found.iter().all(|row| row.0 < 1 << PART_BITS && row.1 < 1 << 32));
        found.sort_unstable();
        found.dedup();
        assert!(found.len() > 99_990, "{} of 100,000", found.len());
    }
}
