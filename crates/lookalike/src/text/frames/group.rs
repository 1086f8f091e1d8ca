//! The pages of a group → the blocks that are frame on them.
//!
//! Blocks and places are numbered in the order in which they are met, so that whatever is counted about them is counted
//! in arrays.

use std::collections::HashMap;

use crate::text::frames::{BlockFacts, FrameBlock, GroupedBy, HashedMap, LEAST_CONTEXTS, LEAST_LIST, LEAST_REST};

/// Contexts per page that make a block frame.
const CONTEXT_SHARE: f64 = 0.1;
/// Share of the pages with a place in the markup that have the same block there.
const LEAST_DOMINANCE: f64 = 0.5;
/// Bins by which two lists are compared.
const LIST_BINS: usize = 32;
/// Share of a list of links that is the same from page to page, if it is a menu.
const LEAST_SAME_LIST: f64 = 0.5;
/// Words of prose that is as common, for each word of other text that a page has to have to be a context of prose.
const PROSE_TO_REST: u64 = 2;
/// No page, or no list.
const NONE: u32 = u32::MAX;

/// A block of a page, by numbers.
#[derive(Clone, Copy)]
struct NumberedBlock {
    block: u32,
    place: u32,
    words: u32,
    is_aside: bool,
    is_prose: bool,
    is_links: bool,
}

/// Numbers for hashes, and on how many pages each was met.
#[derive(Default)]
struct Numbering {
    numbers: HashedMap<u32>,
    hashes: Vec<u64>,
    pages: Vec<u32>,
    last_page: Vec<u32>,
}

impl Numbering {
    /// The number of a hash that is met on a page.
    fn meet(&mut self, hash: u64, page: u32) -> u32 {
        let next = count(self.hashes.len());
        let number = *self.numbers.entry(hash).or_insert(next);
        if number == next {
            self.hashes.push(hash);
            self.pages.push(0);
            self.last_page.push(NONE);
        }
        let at = number as usize;
        if self.last_page[at] != page {
            self.last_page[at] = page;
            self.pages[at] += 1;
        }
        number
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).expect("a group has fewer blocks than that")
}

/// The pages of a group.
#[derive(Default)]
pub(super) struct GroupPages {
    pages: Vec<Vec<NumberedBlock>>,
    blocks: Numbering,
    places: Numbering,
}

/// A block as it counts for its page.
#[derive(Clone, Copy)]
struct OwnBlock {
    block: u32,
    /// How common it is: the largest power of two that its number of pages reaches.
    common: usize,
    /// None, if it is left out anyway.
    words: u64,
    is_prose: bool,
}

/// What stands for the blocks of a page that are rarer than a block, and how many words they have.
#[derive(Clone, Copy)]
struct Rest {
    least_draw: u128,
    block: u32,
    words: u64,
}

impl GroupPages {
    /// Adds a page. What its markup calls aside counts as such with `leaves_out_asides` alone.
    pub(super) fn add(&mut self, blocks: &[BlockFacts], leaves_out_asides: bool) {
        let page = count(self.pages.len());
        let numbered = blocks.iter().map(|block| NumberedBlock {
            block: self.blocks.meet(block.hash, page),
            place: self.places.meet(block.path, page),
            words: block.words,
            is_aside: block.is_aside && leaves_out_asides,
            is_prose: block.is_prose,
            is_links: block.is_links,
        });
        self.pages.push(numbered.collect());
    }

    /// The blocks that are frame, without examples.
    pub(super) fn frame(&self, by: GroupedBy) -> HashedMap<FrameBlock> {
        if self.pages.len() < LEAST_CONTEXTS {
            return HashMap::default();
        }
        // Of all pages of a host, only menus are frame: whatever else is in one place is as different as the sections are.
        let dominance = if by == GroupedBy::Host { Vec::new() } else { self.dominance() };
        let in_lists = self.repeated_lists();
        let is_frame = |(block, texts, count): &(u32, u32, u32)| {
            let at = *block as usize;
            *texts as usize >= LEAST_CONTEXTS
                && f64::from(*texts) >= CONTEXT_SHARE * f64::from(*count)
                && (dominance.get(at).is_some_and(|best| best.1 >= LEAST_DOMINANCE) || in_lists[at] >= LEAST_SAME_LIST)
        };
        let frame = |(block, contexts, _): (u32, u32, u32)| {
            let at = block as usize;
            (self.blocks.hashes[at], FrameBlock { pages: self.blocks.pages[at], contexts, example: Box::default() })
        };
        self.contexts().into_iter().filter(is_frame).map(frame).collect()
    }

    fn is_repeated(&self, block: u32) -> bool {
        self.blocks.pages[block as usize] as usize >= LEAST_CONTEXTS
    }

    /// Of each repeated block: how many different texts stand around it, and on how many pages that is known.
    fn contexts(&self) -> Vec<(u32, u32, u32)> {
        let most = self.pages.len().ilog2() as usize + 1;
        // A block, and what stands for the rest of a page with it.
        let mut found: Vec<u64> = Vec::new();
        let mut own: Vec<OwnBlock> = Vec::new();
        let mut own_at = vec![(NONE, 0); self.blocks.hashes.len()];
        for (page, blocks) in (0..).zip(&self.pages) {
            own.clear();
            for block in blocks {
                let words = if block.is_aside { 0 } else { u64::from(block.words) };
                let (last_page, at) = &mut own_at[block.block as usize];
                if *last_page == page {
                    let known = &mut own[*at];
                    (known.words, known.is_prose) = (known.words, known.is_prose).min((words, block.is_prose));
                } else {
                    (*last_page, *at) = (page, own.len());
                    let common = self.blocks.pages[block.block as usize].ilog2() as usize;
                    own.push(OwnBlock { block: block.block, common, words, is_prose: block.is_prose });
                }
            }
            // Words of prose that is as common.
            let mut prose = vec![0u64; most + 1];
            let mut rest = vec![Rest { least_draw: u128::MAX, block: NONE, words: 0 }; most + 1];
            for block in own.iter().filter(|block| block.words > 0) {
                prose[block.common] += if block.is_prose { block.words } else { 0 };
                let drawn = self.blocks.hashes[block.block as usize].wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let draw = (u128::from(drawn) << 32) / u128::from(block.words);
                for rarer in &mut rest[block.common + 1..] {
                    rarer.words += block.words;
                    if draw < rarer.least_draw {
                        (rarer.least_draw, rarer.block) = (draw, block.block);
                    }
                }
            }
            for block in own.iter().filter(|block| self.is_repeated(block.block)) {
                let rest = &rest[block.common];
                // A story with a few words of each copy's own is a story.
                let least =
                    if block.is_prose { LEAST_REST.max(prose[block.common] / PROSE_TO_REST) } else { LEAST_REST };
                if rest.words >= least {
                    found.push(u64::from(block.block) << 32 | u64::from(rest.block));
                }
            }
        }
        found.sort_unstable();
        let counted = found.chunk_by(|one, other| one >> 32 == other >> 32).map(|same| {
            let texts = same.chunk_by(|one, other| one == other).count();
            (count((same[0] >> 32) as usize), count(texts), count(same.len()))
        });
        counted.collect()
    }

    /// Of each block: how much of the lists of links that it is in is the same from page to page, if it is repeated.
    fn repeated_lists(&self) -> Vec<f64> {
        // Of each list, the smallest hashes in a few bins; lists that have most in common agree in most of them.
        let mut bins_of_lists: Vec<[u64; LIST_BINS]> = Vec::new();
        let mut last_list = vec![NONE; self.blocks.hashes.len()];
        let mut sums = vec![(0.0, 0u32); self.blocks.hashes.len()];
        let mut lists: Vec<(u64, u32)> = Vec::new();
        for page in &self.pages {
            lists.clear();
            let links = page.iter().filter(|block| block.is_links);
            lists.extend(links.map(|block| (self.places.hashes[block.place as usize], block.block)));
            lists.sort_unstable();
            lists.dedup();
            for list in lists.chunk_by(|one, other| one.0 == other.0).filter(|list| list.len() >= LEAST_LIST) {
                let mut bins = [u64::MAX; LIST_BINS];
                for &(_, block) in list {
                    let mixed = self.blocks.hashes[block as usize].wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    let bin = &mut bins[(mixed >> 59) as usize % LIST_BINS];
                    *bin = mixed.min(*bin);
                }
                let number = count(bins_of_lists.len());
                for &(_, block) in list.iter().filter(|row| self.is_repeated(row.1)) {
                    let last = std::mem::replace(&mut last_list[block as usize], number);
                    if let Some(last) = bins_of_lists.get(last as usize) {
                        let sum = &mut sums[block as usize];
                        *sum = (sum.0 + same_share(&bins, last), sum.1 + 1);
                    }
                }
                bins_of_lists.push(bins);
            }
        }
        sums.into_iter().map(|(sum, pages)| if pages > 0 { sum / f64::from(pages) } else { 0.0 }).collect()
    }

    /// Of each block: on how many pages it has the place that it has most often, and on what share of the pages with that
    /// place, if it is repeated.
    fn dominance(&self) -> Vec<(u32, f64)> {
        // Of a block in a place: on how many pages, and the last of them.
        let mut placed: HashedMap<(u32, u32, u32, u32)> = HashedMap::default();
        for (page, blocks) in (0..).zip(&self.pages) {
            for block in blocks.iter().filter(|block| self.is_repeated(block.block)) {
                let key = (u64::from(block.block) << 32 | u64::from(block.place)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let row = placed.entry(key).or_insert((block.block, block.place, 0, NONE));
                if row.3 != page {
                    (row.2, row.3) = (row.2 + 1, page);
                }
            }
        }
        let mut dominance = vec![(0, 0.0); self.blocks.hashes.len()];
        for (block, place, pages, _) in placed.into_values() {
            let share = f64::from(pages) / f64::from(self.places.pages[place as usize]);
            let best = &mut dominance[block as usize];
            if (pages, share) > *best {
                *best = (pages, share);
            }
        }
        dominance
    }
}

/// How much of two lists is the same, by their bins.
fn same_share(one: &[u64; LIST_BINS], other: &[u64; LIST_BINS]) -> f64 {
    let filled = one.iter().zip(other).filter(|(one, other)| **one != u64::MAX || **other != u64::MAX);
    let (same, all) = filled.fold((0, 0), |(same, all), (one, other)| (same + u32::from(one == other), all + 1));
    f64::from(same) / f64::from(all)
}
