//! A sample of pages → what is frame on pages like them.

use std::collections::{BTreeMap, HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use crate::text::frames::groups::{Groups, MarkupSignature};
use crate::text::frames::{BlockFacts, FrameBlock, FrameLevel, Frames, GroupFrame, LEAST_REST, believes_markup};

/// Similarities of markup and menus from which pages are in one group: whole sites, and their sections.
const GROUP_SIMILARITIES: [f64; 2] = [0.3, 0.45];
/// Contexts that make a block frame.
const LEAST_CONTEXTS: usize = 3;
/// Contexts per page that make a block frame.
const CONTEXT_SHARE: f64 = 0.3;
/// Share of the pages with a place in the markup that have the same block there.
const LEAST_DOMINANCE: f64 = 0.5;
/// Words of prose that is as common, for each word of other text that a page has to have to be a context of prose.
const PROSE_TO_REST: u64 = 2;
/// Pages of a host that are learnt from.
const HOST_PAGES: usize = 256;
/// Pages without a host that are learnt from.
const NAMELESS_PAGES: usize = 4096;
/// Blocks of a page that are learnt from.
const PAGE_BLOCKS: usize = 2048;
/// What stands for the host of pages without one.
const NAMELESS: u64 = 0;
/// Pages that are learnt from: with more, fewer of each host, and then of fewer hosts.
const MOST_PAGES: usize = 8192;

/// A page that is learnt from.
#[derive(Debug, Clone)]
pub(crate) struct SamplePage {
    signature: MarkupSignature,
    blocks: Vec<BlockFacts>,
    /// How each block begins.
    texts: Vec<Box<str>>,
    /// What it is chosen by.
    key: u64,
}

impl SamplePage {
    /// A page with its blocks, each with the beginning of its text.
    pub(in crate::text) fn new(signature: MarkupSignature, blocks: &[BlockFacts], texts: Vec<Box<str>>) -> SamplePage {
        // Pages with the same key are the same to all that follows.
        let facts = blocks.iter().flat_map(|block| [block.hash, block.path, u64::from(block.is_aside)]);
        let mut bytes: Vec<u8> = facts.flat_map(u64::to_le_bytes).collect();
        bytes.extend(signature.bins.iter().flat_map(|bin| bin.to_le_bytes()));
        bytes.extend(signature.host.as_bytes());
        let leaves_out_asides = believes_markup(blocks);
        let is_learnt_from = |block: &BlockFacts| block.words > 0 && !(leaves_out_asides && block.is_aside);
        let learnt_from = blocks.iter().zip(texts).filter(|(block, _)| is_learnt_from(block)).take(PAGE_BLOCKS);
        let (blocks, texts) = learnt_from.map(|(block, text)| (*block, text)).unzip();
        SamplePage { signature, blocks, texts, key: xxh3_64(&bytes) }
    }
}

/// Gathers pages to learn from: of each host those with the smallest hashes.
#[derive(Debug)]
pub(crate) struct FrameLearner {
    /// Of each host, by a hash of its name, the pages by their keys.
    hosts: BTreeMap<u64, BTreeMap<u64, SamplePage>>,
    /// Hosts from this hash on are not learnt from: there are too many.
    end: u64,
    pub(super) pages: usize,
    /// Pages of a host that are kept at the most; fewer where there are many hosts.
    host_pages: usize,
}

impl Default for FrameLearner {
    fn default() -> FrameLearner {
        FrameLearner { hosts: BTreeMap::new(), end: u64::MAX, pages: 0, host_pages: HOST_PAGES }
    }
}

impl FrameLearner {
    /// Adds a page. Copies of a page are one page.
    pub(crate) fn add(&mut self, page: SamplePage) {
        let host = page.signature.host.as_bytes();
        let host = if host.is_empty() { NAMELESS } else { xxh3_64(host).clamp(NAMELESS + 1, u64::MAX - 1) };
        if host >= self.end {
            return;
        }
        let most = if host == NAMELESS { NAMELESS_PAGES } else { self.host_pages };
        let pages = self.hosts.entry(host).or_default();
        if pages.len() >= most && pages.last_key_value().is_some_and(|(&last, _)| page.key >= last) {
            return;
        }
        self.pages += usize::from(pages.insert(page.key, page).is_none());
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
    }

    /// What the pages have taught.
    pub(crate) fn finish(self) -> Frames {
        let mut pages: Vec<&SamplePage> = self.hosts.values().flat_map(BTreeMap::values).collect();
        pages.sort_by_key(|page| page.key); // of equal ones, that of the first host comes first
        let levels = GROUP_SIMILARITIES.into_iter().map(|least| {
            let mut groups = Groups::new(least);
            let mut members: Vec<Vec<&SamplePage>> = Vec::new();
            for page in &pages {
                let group = groups.find(&page.signature).unwrap_or_else(|| groups.add(page.signature.clone()));
                if members.len() <= group as usize {
                    members.push(Vec::new());
                }
                members[group as usize].push(page);
            }
            let frame = |pages: &Vec<&SamplePage>| GroupFrame { pages: pages.len() as u64, blocks: frames_of(pages) };
            let frames: Vec<GroupFrame> = members.iter().map(frame).collect();
            FrameLevel { groups, frames }
        });
        Frames { levels: levels.collect() }
    }
}

/// The blocks that are frame on the pages of a group.
fn frames_of(pages: &[&SamplePage]) -> HashMap<u64, FrameBlock> {
    let mut frames = HashMap::new();
    if pages.len() < LEAST_CONTEXTS {
        return frames;
    }
    let mut blocks: HashMap<u64, u32> = HashMap::new();
    let mut places: HashMap<u64, u32> = HashMap::new();
    let mut at_place: HashMap<(u64, u64), u32> = HashMap::new();
    for page in pages {
        let own: HashSet<u64> = page.blocks.iter().map(|block| block.hash).collect();
        own.into_iter().for_each(|hash| *blocks.entry(hash).or_default() += 1);
        let own: HashSet<u64> = page.blocks.iter().map(|block| block.path).collect();
        own.into_iter().for_each(|path| *places.entry(path).or_default() += 1);
        let own: HashSet<(u64, u64)> = page.blocks.iter().map(|block| (block.hash, block.path)).collect();
        own.into_iter().for_each(|both| *at_place.entry(both).or_default() += 1);
    }
    // A block is as common as the largest power of two that its number of pages reaches.
    let commonness = |hash: u64| blocks[&hash].ilog2() as usize;
    let most = pages.len().ilog2() as usize + 1;
    let mut contexts: HashMap<u64, (HashSet<u64>, u32)> = HashMap::new();
    for page in pages {
        let mut own: Vec<(u64, usize, u64, bool)> = page
            .blocks
            .iter()
            .map(|block| (block.hash, commonness(block.hash), block.words as u64, block.is_prose))
            .collect();
        own.sort_unstable();
        own.dedup_by_key(|block| block.0);
        // Words of prose that is as common.
        let mut prose = vec![0u64; most + 1];
        // What stands for the blocks that are rarer than a block, and how many words they have.
        let mut rest: Vec<(u128, u64, u64)> = vec![(u128::MAX, 0, 0); most + 1];
        for &(hash, common, words, is_prose) in &own {
            prose[common] += if is_prose { words } else { 0 };
            let draw = (u128::from(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 32) / u128::from(words.max(1));
            for rarer in &mut rest[common + 1..] {
                rarer.2 += words;
                if draw < rarer.0 {
                    (rarer.0, rarer.1) = (draw, hash);
                }
            }
        }
        for &(hash, common, _, is_prose) in &own {
            let (_, stands_for_rest, words) = rest[common];
            // A story with a few words of each copy's own is a story.
            let least = if is_prose { LEAST_REST.max(prose[common] / PROSE_TO_REST) } else { LEAST_REST };
            if words >= least && blocks[&hash] as usize >= LEAST_CONTEXTS {
                let seen = contexts.entry(hash).or_default();
                seen.0.insert(stands_for_rest);
                seen.1 += 1;
            }
        }
    }
    // The place that a block has most often.
    let mut dominance: HashMap<u64, (u32, f64)> = HashMap::new();
    for ((hash, path), &count) in &at_place {
        let share = f64::from(count) / f64::from(places[path]);
        let best = dominance.entry(*hash).or_default();
        if (count, share) > *best {
            *best = (count, share);
        }
    }
    for page in pages {
        for (block, text) in page.blocks.iter().zip(&page.texts) {
            let Some((texts, count)) = contexts.get(&block.hash) else { continue };
            let is_frame = texts.len() >= LEAST_CONTEXTS
                && texts.len() as f64 >= CONTEXT_SHARE * f64::from(*count)
                && dominance[&block.hash].1 >= LEAST_DOMINANCE;
            if is_frame {
                let found = frames.entry(block.hash).or_insert_with(|| FrameBlock {
                    pages: blocks[&block.hash],
                    contexts: u32::try_from(texts.len()).expect("there are fewer contexts than pages"),
                    example: text.clone(),
                });
                // The same words can be written in several ways.
                if *text < found.example {
                    found.example = text.clone();
                }
            }
        }
    }
    frames
}
