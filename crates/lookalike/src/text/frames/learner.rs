//! A sample of pages → what is frame on pages like them.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::spill::{Scratch, Spill};
use crate::text::frames::groups::{Groups, MarkupSignature, PageSignatures};
use crate::text::frames::{
    BLOCK_BYTES, BlockFacts, FrameBlock, FrameLevel, Frames, GroupFrame, GroupedBy, KNOWN_PAGES, LEAST_LIST,
    LEAST_REST, ProseCount, believes_markup,
};
use crate::text::term::TokenHasher;

/// Groups, and the similarities from which pages are in one: hosts, sites, parts of sites and their sections.
const LEVELS: [(GroupedBy, f64); 4] = [
    (GroupedBy::Host, 0.0),
    (GroupedBy::Markup, 0.3),
    (GroupedBy::MarkupAndMenus, 0.3),
    (GroupedBy::MarkupAndMenus, 0.45),
];
/// Contexts that make a block frame.
const LEAST_CONTEXTS: usize = 3;
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
/// Pages of a host that are learnt from.
const HOST_PAGES: usize = 256;
/// Blocks of a page that are learnt from.
const PAGE_BLOCKS: usize = 1 << 14;
/// Blocks of a group that are looked at together.
const GROUP_BLOCKS: usize = 2 << 20;
/// What stands for the host of pages without one.
const NAMELESS: u64 = 0;
/// Pages that are learnt from: with more, fewer of each host, and then of fewer hosts. Pages without a host are one site or
/// many, and may be all of them.
const MOST_PAGES: usize = 4096;

/// What stands between the examples of a page.
pub(in crate::text) const BETWEEN_EXAMPLES: char = '\0';
/// Characters of a block that are shown as an example of it.
const EXAMPLE_CHARS: usize = 60;

/// Numbers that are hashes already.
type HashedMap<T> = HashMap<u64, T, BuildHasherDefault<TokenHasher>>;

/// A page that is learnt from.
#[derive(Debug, Clone)]
pub(crate) struct SamplePage {
    signatures: PageSignatures,
    blocks: Vec<BlockFacts>,
    /// How each block begins.
    examples: String,
    /// What it is chosen by.
    key: u64,
}

/// What a page is chosen by. Pages with the same key are the same to all that follows.
pub(in crate::text) fn sample_key(signature: &MarkupSignature, blocks: &[BlockFacts]) -> u64 {
    let facts = blocks.iter().flat_map(|block| [block.hash, block.path, u64::from(block.is_aside)]);
    let mut bytes: Vec<u8> = facts.flat_map(u64::to_le_bytes).collect();
    bytes.extend(signature.bins.iter().flat_map(|bin| bin.to_le_bytes()));
    bytes.extend(signature.host.as_bytes());
    xxh3_64(&bytes)
}

impl SamplePage {
    /// A page with its blocks, and how each begins.
    pub(in crate::text) fn new(
        key: u64,
        signatures: PageSignatures,
        blocks: &[BlockFacts],
        examples: &str,
    ) -> SamplePage {
        let learnt_from = blocks.iter().zip(examples.split(BETWEEN_EXAMPLES)).filter(|(block, _)| block.words > 0);
        let (blocks, examples): (Vec<BlockFacts>, Vec<&str>) = learnt_from.take(PAGE_BLOCKS).unzip();
        SamplePage { signatures, blocks, examples: examples.join(&BETWEEN_EXAMPLES.to_string()), key }
    }
}

/// A page of the sample; its blocks may be on disk.
#[derive(Debug)]
struct Sampled {
    signatures: PageSignatures,
    key: u64,
    blocks: usize,
    /// Where the facts about its blocks are, and then how they begin.
    place: Range<u64>,
}

/// Gathers pages to learn from: of each host those with the smallest hashes.
pub(crate) struct FrameLearner {
    /// Of each host, by a hash of its name, the pages by their keys.
    hosts: BTreeMap<u64, BTreeMap<u64, Sampled>>,
    /// Hosts from this hash on are not learnt from: there are too many.
    end: u64,
    pub(super) pages: usize,
    /// Pages of a host that are kept at the most; fewer where there are many hosts.
    host_pages: usize,
    /// The blocks of all pages.
    blocks: Spill<u8>,
}

/// A page of a group with its blocks.
struct Member<'s> {
    sampled: &'s Sampled,
    blocks: Vec<BlockFacts>,
}

fn host_hash(host: &str) -> u64 {
    if host.is_empty() { NAMELESS } else { xxh3_64(host.as_bytes()).clamp(NAMELESS + 1, u64::MAX - 1) }
}

impl FrameLearner {
    /// No pages yet; their blocks go to `blocks`.
    pub(crate) fn new(blocks: Spill<u8>) -> FrameLearner {
        FrameLearner { hosts: BTreeMap::new(), end: u64::MAX, pages: 0, host_pages: HOST_PAGES, blocks }
    }

    /// Pages of a host that are kept at the most.
    fn most_pages(&self, host: u64) -> usize {
        if host == NAMELESS { MOST_PAGES } else { self.host_pages }
    }

    /// Whether something would be learnt from a page, as far as can be said now. A page that is refused would also be
    /// refused later.
    pub(crate) fn wants(&self, host: &str, key: u64) -> bool {
        let host = host_hash(host);
        host < self.end
            && self.hosts.get(&host).is_none_or(|pages| {
                let is_last = pages.last_key_value().is_none_or(|(&last, _)| key >= last);
                !(pages.contains_key(&key) || pages.len() >= self.most_pages(host) && is_last)
            })
    }

    /// Adds a page. Copies of a page are one page.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub(crate) fn add(&mut self, page: SamplePage) -> Result<()> {
        if !self.wants(&page.signatures.markup.host, page.key) {
            return Ok(());
        }
        let host = host_hash(&page.signatures.markup.host);
        let mut bytes = Vec::with_capacity(page.blocks.len() * BLOCK_BYTES + page.examples.len());
        page.blocks.iter().for_each(|block| block.encode(&mut bytes));
        bytes.extend_from_slice(page.examples.as_bytes());
        let start = self.blocks.append(&bytes)?;
        let SamplePage { signatures, key, .. } = page;
        let sampled = Sampled { signatures, key, blocks: page.blocks.len(), place: start..self.blocks.len() };
        let most = self.most_pages(host);
        let pages = self.hosts.entry(host).or_default();
        self.pages += usize::from(pages.insert(key, sampled).is_none());
        if pages.len() > most {
            pages.pop_last();
            self.pages -= 1;
        }
        // Depends on how many pages the hosts have, not on the order in which they come.
        while self.pages > MOST_PAGES && self.host_pages >= 2 * LEAST_CONTEXTS {
            self.host_pages /= 2;
            for (_, pages) in self.hosts.iter_mut().filter(|(host, _)| **host != NAMELESS) {
                while pages.len() > self.host_pages {
                    pages.pop_last();
                    self.pages -= 1;
                }
            }
        }
        while self.pages > MOST_PAGES
            && let Some((host, pages)) = self.hosts.pop_last()
        {
            (self.end, self.pages) = (host, self.pages - pages.len());
        }
        Ok(())
    }

    /// What the pages have taught.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(crate) fn finish(mut self) -> Result<Frames> {
        self.blocks.finish()?;
        let mut pages: Vec<&Sampled> = self.hosts.values().flat_map(BTreeMap::values).collect();
        pages.sort_by_key(|page| page.key); // of equal ones, that of the first host comes first
        let mut levels = Vec::new();
        for (by, least) in LEVELS {
            let mut level = FrameLevel { by, groups: Groups::new(least), frames: Vec::new() };
            let mut members: Vec<Vec<&Sampled>> = Vec::new();
            for page in &pages {
                let group = level.find(&page.signatures).unwrap_or_else(|| {
                    let PageSignatures { markup, markup_and_menus } = &page.signatures;
                    let leader = if by == GroupedBy::Markup { markup } else { markup_and_menus };
                    level.groups.add(leader.clone()) as usize
                });
                if members.len() <= group {
                    members.push(Vec::new());
                }
                members[group].push(page);
            }
            level.frames = members.iter().map(|pages| self.frame(pages, by)).collect::<Result<_>>()?;
            levels.push(level);
        }
        Ok(Frames::new(levels))
    }

    /// The frame of a group; of a very large one, as far as its first pages tell.
    fn frame(&self, pages: &[&Sampled], by: GroupedBy) -> Result<GroupFrame> {
        let mut scratch = Scratch::default();
        let (mut members, mut blocks) = (Vec::new(), 0);
        for sampled in pages {
            blocks += sampled.blocks;
            if blocks > GROUP_BLOCKS && members.len() >= KNOWN_PAGES {
                break;
            }
            let facts = sampled.place.start..sampled.place.start + (sampled.blocks * BLOCK_BYTES) as u64;
            let facts = self.blocks.read(facts, &mut scratch)?;
            members.push(Member { sampled, blocks: facts.chunks_exact(BLOCK_BYTES).map(BlockFacts::decode).collect() });
        }
        let mut frame = GroupFrame { pages: pages.len() as u64, ..GroupFrame::default() };
        if by == GroupedBy::Markup {
            let mut prose = ProseCount::default();
            members.iter().for_each(|page| prose.add(&page.blocks));
            frame.believes_markup = prose.believes_markup();
        } else {
            // What is left out by its markup on one page may be all there is on another: it is learnt to be frame, and is
            // not what stands around a frame.
            for page in &mut members {
                let leaves_out_asides = believes_markup(&page.blocks, None);
                page.blocks.iter_mut().for_each(|block| block.is_aside &= leaves_out_asides);
            }
            frame.blocks = frames_of(&members, by);
            self.add_examples(&members, &mut frame.blocks)?;
        }
        Ok(frame)
    }

    /// Shows each block as the first page has it.
    fn add_examples(&self, pages: &[Member<'_>], frames: &mut HashMap<u64, FrameBlock>) -> Result<()> {
        let mut scratch = Scratch::default();
        for page in pages {
            let is_missing = |block: &BlockFacts| frames.get(&block.hash).is_some_and(|frame| frame.example.is_empty());
            if !page.blocks.iter().any(is_missing) {
                continue;
            }
            let place = &page.sampled.place;
            let examples = place.start + (page.blocks.len() * BLOCK_BYTES) as u64..place.end;
            let examples = String::from_utf8_lossy(self.blocks.read(examples, &mut scratch)?);
            for (block, example) in page.blocks.iter().zip(examples.split(BETWEEN_EXAMPLES)) {
                if let Some(frame) = frames.get_mut(&block.hash).filter(|frame| frame.example.is_empty()) {
                    let words: Vec<&str> = example.split_whitespace().collect();
                    frame.example = words.join(" ").chars().take(EXAMPLE_CHARS).collect::<String>().into();
                }
            }
        }
        Ok(())
    }
}

/// A block as it counts for its page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OwnBlock {
    hash: u64,
    /// How common it is: the largest power of two that its number of pages reaches.
    common: usize,
    /// None, if it is left out anyway.
    words: u64,
    is_prose: bool,
}

/// The blocks that are frame on the pages of a group.
fn frames_of(pages: &[Member<'_>], by: GroupedBy) -> HashMap<u64, FrameBlock> {
    if pages.len() < LEAST_CONTEXTS {
        return HashMap::new();
    }
    let (mut block_pages, mut place_pages) = (HashedMap::<u32>::default(), HashedMap::<u32>::default());
    let mut own = Vec::new();
    let mut count_once = |counts: &mut HashedMap<u32>, values: &mut dyn Iterator<Item = u64>| {
        own.clear();
        own.extend(values);
        own.sort_unstable();
        own.dedup();
        own.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
    };
    for page in pages {
        count_once(&mut block_pages, &mut page.blocks.iter().map(|block| block.hash));
        count_once(&mut place_pages, &mut page.blocks.iter().map(|block| block.path));
    }
    let is_repeated = |hash: u64| block_pages[&hash] as usize >= LEAST_CONTEXTS;
    let contexts = contexts(pages, &block_pages, &is_repeated);
    // Of all pages of a host, only menus are frame: whatever else is in one place is as different as the sections are.
    let is_menu_alone = by == GroupedBy::Host;
    let dominance = if is_menu_alone { HashedMap::default() } else { dominance(pages, &place_pages, &is_repeated) };
    let in_lists = repeated_lists(pages, &is_repeated);
    let is_frame = |(hash, texts, count): &(u64, u32, u32)| {
        *texts as usize >= LEAST_CONTEXTS
            && f64::from(*texts) >= CONTEXT_SHARE * f64::from(*count)
            && (dominance.get(hash).is_some_and(|best| best.1 >= LEAST_DOMINANCE)
                || in_lists.get(hash).is_some_and(|same| *same >= LEAST_SAME_LIST))
    };
    let frame = |(hash, contexts, _): (u64, u32, u32)| {
        (hash, FrameBlock { pages: block_pages[&hash], contexts, example: Box::default() })
    };
    contexts.into_iter().filter(is_frame).map(frame).collect()
}

/// Of each repeated block: how many different texts stand around it, and on how many pages that is known.
fn contexts(
    pages: &[Member<'_>],
    block_pages: &HashedMap<u32>,
    is_repeated: &dyn Fn(u64) -> bool,
) -> Vec<(u64, u32, u32)> {
    let most = pages.len().ilog2() as usize + 1;
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut own: Vec<OwnBlock> = Vec::new();
    for page in pages {
        own.clear();
        own.extend(page.blocks.iter().map(|block| {
            let (hash, words) = (block.hash, if block.is_aside { 0 } else { u64::from(block.words) });
            OwnBlock { hash, common: block_pages[&hash].ilog2() as usize, words, is_prose: block.is_prose }
        }));
        own.sort_unstable();
        own.dedup_by_key(|block| block.hash);
        // Words of prose that is as common.
        let mut prose = vec![0u64; most + 1];
        // What stands for the blocks that are rarer than a block, and how many words they have.
        let mut rest: Vec<(u128, u64, u64)> = vec![(u128::MAX, 0, 0); most + 1];
        for block in own.iter().filter(|block| block.words > 0) {
            prose[block.common] += if block.is_prose { block.words } else { 0 };
            let drawn = block.hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let draw = (u128::from(drawn) << 32) / u128::from(block.words.max(1));
            for rarer in &mut rest[block.common + 1..] {
                rarer.2 += block.words;
                if draw < rarer.0 {
                    (rarer.0, rarer.1) = (draw, block.hash);
                }
            }
        }
        for block in own.iter().filter(|block| is_repeated(block.hash)) {
            let (_, stands_for_rest, words) = rest[block.common];
            // A story with a few words of each copy's own is a story.
            let least = if block.is_prose { LEAST_REST.max(prose[block.common] / PROSE_TO_REST) } else { LEAST_REST };
            if words >= least {
                found.push((block.hash, stands_for_rest));
            }
        }
    }
    found.sort_unstable();
    let counted = found.chunk_by(|one, other| one.0 == other.0).map(|same| {
        let texts = same.chunk_by(|one, other| one.1 == other.1).count();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (same[0].0, number(texts), number(same.len()))
    });
    counted.collect()
}

/// Of each repeated block that is a link in a list of them: how much of the list is the same from page to page.
fn repeated_lists(pages: &[Member<'_>], is_repeated: &dyn Fn(u64) -> bool) -> HashedMap<f64> {
    // Of each list, the smallest hashes in a few bins; lists that have most in common agree in most of them.
    let mut last_list: HashedMap<[u64; LIST_BINS]> = HashedMap::default();
    let mut sums: HashedMap<(f64, u32)> = HashedMap::default();
    let mut lists: Vec<(u64, u64)> = Vec::new();
    for page in pages {
        lists.clear();
        lists.extend(page.blocks.iter().filter(|block| block.is_links).map(|block| (block.path, block.hash)));
        lists.sort_unstable();
        lists.dedup();
        for list in lists.chunk_by(|one, other| one.0 == other.0).filter(|list| list.len() >= LEAST_LIST) {
            let mut bins = [u64::MAX; LIST_BINS];
            for &(_, hash) in list {
                let mixed = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let bin = &mut bins[(mixed >> 59) as usize % LIST_BINS];
                *bin = mixed.min(*bin);
            }
            for &(_, hash) in list.iter().filter(|row| is_repeated(row.1)) {
                let sum = sums.entry(hash).or_default();
                if let Some(last) = last_list.insert(hash, bins) {
                    let filled = bins.iter().zip(&last).filter(|(one, other)| **one != u64::MAX || **other != u64::MAX);
                    let (same, all) =
                        filled.fold((0, 0), |(same, all), (one, other)| (same + u32::from(one == other), all + 1));
                    (sum.0, sum.1) = (sum.0 + f64::from(same) / f64::from(all), sum.1 + 1);
                }
            }
        }
    }
    sums.into_iter().filter(|(_, sum)| sum.1 > 0).map(|(hash, sum)| (hash, sum.0 / f64::from(sum.1))).collect()
}

/// Of each repeated block: on how many pages it has the place that it has most often, and on what share of the pages
/// with that place.
fn dominance(
    pages: &[Member<'_>],
    place_pages: &HashedMap<u32>,
    is_repeated: &dyn Fn(u64) -> bool,
) -> HashedMap<(u32, f64)> {
    let mut places: Vec<(u64, u64)> = Vec::new();
    for page in pages {
        let start = places.len();
        let repeated = page.blocks.iter().filter(|block| is_repeated(block.hash));
        places.extend(repeated.map(|block| (block.hash, block.path)));
        places[start..].sort_unstable();
        let mut kept = start;
        for at in start..places.len() {
            if at == start || places[at] != places[kept - 1] {
                places[kept] = places[at];
                kept += 1;
            }
        }
        places.truncate(kept);
    }
    places.sort_unstable();
    let mut dominance = HashedMap::<(u32, f64)>::default();
    for same in places.chunk_by(|one, other| one == other) {
        let (hash, path) = same[0];
        let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
        let share = f64::from(count) / f64::from(place_pages[&path]);
        let best = dominance.entry(hash).or_default();
        if (count, share) > *best {
            *best = (count, share);
        }
    }
    dominance
}
