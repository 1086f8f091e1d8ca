//! A sample of pages → what is frame on pages like them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::spill::{Fixed, Scratch, Spill};
use crate::text::frames::group::GroupPages;
use crate::text::frames::groups::{Groups, MarkupSignature, PageSignatures};
use crate::text::frames::{
    BLOCK_BYTES, BlockFacts, FrameBlock, FrameLevel, Frames, GroupFrame, GroupedBy, HashedMap, KNOWN_PAGES,
    LEAST_CONTEXTS, ProseCount, believes_markup,
};

/// Groups, and the similarities from which pages are in one: hosts, sites, parts of sites and their sections.
const LEVELS: [(GroupedBy, f64); 4] = [
    (GroupedBy::Host, 0.0),
    (GroupedBy::Markup, 0.3),
    (GroupedBy::MarkupAndMenus, 0.3),
    (GroupedBy::MarkupAndMenus, 0.45),
];
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

/// A page that is learnt from.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    let bytes_of_bins = size_of_val(&*signature.bins);
    let mut bytes = Vec::with_capacity(blocks.len() * 24 + bytes_of_bins + signature.host.len());
    for block in blocks {
        for fact in [block.hash, block.path, u64::from(block.is_aside)] {
            bytes.extend_from_slice(&fact.to_le_bytes());
        }
    }
    u32::encode(&signature.bins, &mut bytes);
    bytes.extend_from_slice(signature.host.as_bytes());
    xxh3_64(&bytes)
}

impl SamplePage {
    /// What it is chosen by.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

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

/// Who says which pages are worth learning from. It is asked when a page has been cut, and not held on to before.
pub(crate) trait Learns {
    /// Whether something would be learnt from a page.
    fn wants(&self, host: &str, key: u64) -> bool;
}

impl Learns for FrameLearner {
    fn wants(&self, host: &str, key: u64) -> bool {
        FrameLearner::wants(self, host, key)
    }
}

impl Learns for RwLock<FrameLearner> {
    fn wants(&self, host: &str, key: u64) -> bool {
        self.read().unwrap_or_else(PoisonError::into_inner).wants(host, key)
    }
}

/// What stands for a host; 0 for pages without one.
pub(crate) fn host_hash(host: &str) -> u64 {
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

    /// The pages that were gathered, each with a hash of its host: others may learn from them.
    ///
    /// # Errors
    /// When a temporary file cannot be read, or the one of `visit`.
    pub(crate) fn into_samples(mut self, mut visit: impl FnMut(u64, SamplePage) -> Result<()>) -> Result<()> {
        self.blocks.finish()?;
        let (mut scratch, mut facts) = (Scratch::default(), Vec::new());
        for (&host, pages) in &self.hosts {
            for page in pages.values() {
                self.read_blocks(page, &mut scratch, &mut facts)?;
                let examples = page.place.start + (page.blocks * BLOCK_BYTES) as u64..page.place.end;
                let examples = String::from_utf8_lossy(self.blocks.read(examples, &mut scratch)?).into_owned();
                let signatures = page.signatures.clone();
                visit(host, SamplePage { signatures, blocks: facts.clone(), examples, key: page.key })?;
            }
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
        let (mut levels, mut groups) = (Vec::new(), Vec::new());
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
            groups.extend(members.into_iter().map(|pages| (levels.len(), by, pages)));
            levels.push(level);
        }
        // Side by side as long as that takes no more memory than one large group.
        let blocks_of = |pages: &Vec<&Sampled>| pages.iter().map(|page| page.blocks).sum::<usize>();
        let most_blocks = groups.iter().map(|group| blocks_of(&group.2)).max().unwrap_or(0);
        let at_once = (GROUP_BLOCKS / most_blocks.max(1)).clamp(1, groups.len().max(1));
        for groups in groups.chunks(at_once) {
            let frames = groups.par_iter().map(|(_, by, pages)| self.frame(pages, *by)).collect::<Result<Vec<_>>>()?;
            groups.iter().zip(frames).for_each(|(group, frame)| levels[group.0].frames.push(frame));
        }
        Ok(Frames::new(levels))
    }

    /// The frame of a group; of a very large one, as far as its first pages tell.
    fn frame(&self, pages: &[&Sampled], by: GroupedBy) -> Result<GroupFrame> {
        let mut scratch = Scratch::default();
        let (mut group, mut prose) = (GroupPages::default(), ProseCount::default());
        let (mut facts, mut blocks, mut looked_at) = (Vec::new(), 0, 0);
        for sampled in pages {
            blocks += sampled.blocks;
            if blocks > GROUP_BLOCKS && looked_at >= KNOWN_PAGES {
                break;
            }
            looked_at += 1;
            self.read_blocks(sampled, &mut scratch, &mut facts)?;
            if by == GroupedBy::Markup {
                prose.add(&facts);
            } else {
                // What is left out by its markup on one page may be all there is on another: it is learnt to be frame, and
                // is not what stands around a frame.
                group.add(&facts, believes_markup(&facts, None));
            }
        }
        let mut frame = GroupFrame { pages: pages.len() as u64, ..GroupFrame::default() };
        if by == GroupedBy::Markup {
            frame.believes_markup = prose.believes_markup();
        } else {
            frame.blocks = group.frame(by);
            self.add_examples(&pages[..looked_at], &mut frame.blocks)?;
        }
        Ok(frame)
    }

    /// What is known of the blocks of a page.
    fn read_blocks(&self, page: &Sampled, scratch: &mut Scratch<u8>, facts: &mut Vec<BlockFacts>) -> Result<()> {
        let place = page.place.start..page.place.start + (page.blocks * BLOCK_BYTES) as u64;
        let bytes = self.blocks.read(place, scratch)?;
        facts.clear();
        facts.extend(bytes.chunks_exact(BLOCK_BYTES).map(BlockFacts::decode));
        Ok(())
    }

    /// Shows each block as the first page has it.
    fn add_examples(&self, pages: &[&Sampled], frames: &mut HashedMap<FrameBlock>) -> Result<()> {
        let (mut scratch, mut facts) = (Scratch::default(), Vec::new());
        let mut missing = frames.len();
        for page in pages {
            if missing == 0 {
                break;
            }
            self.read_blocks(page, &mut scratch, &mut facts)?;
            let is_missing = |block: &BlockFacts| frames.get(&block.hash).is_some_and(|frame| frame.example.is_empty());
            if !facts.iter().any(is_missing) {
                continue;
            }
            let examples = page.place.start + (page.blocks * BLOCK_BYTES) as u64..page.place.end;
            let examples = String::from_utf8_lossy(self.blocks.read(examples, &mut scratch)?);
            for (block, example) in facts.iter().zip(examples.split(BETWEEN_EXAMPLES)) {
                if let Some(frame) = frames.get_mut(&block.hash).filter(|frame| frame.example.is_empty()) {
                    let words: Vec<&str> = example.split_whitespace().collect();
                    frame.example = words.join(" ").chars().take(EXAMPLE_CHARS).collect::<String>().into();
                    missing -= usize::from(!frame.example.is_empty());
                }
            }
        }
        Ok(())
    }
}
