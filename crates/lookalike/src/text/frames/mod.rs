//! Frames, learnt from the pages at hand: what a site puts around its stories.
//!
//! In: the blocks of a sample of pages. Out: for groups of pages with like markup and menus, the blocks that are frame.
//! A block is frame if it stands on pages of its group whose other text differs, and if most pages that have its place
//! in the markup have it there. Contexts are counted, not occurrences: copies of one story have the same rest, so
//! that a story does not become frame however often it is copied. What is learnt depends neither on threads nor on
//! the order of pages.

mod group;
mod groups;
mod known;
mod learner;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};

use crate::names::named;
use crate::page::Token;
use crate::text::term::TokenHasher;
use groups::Groups;
pub(crate) use groups::markup_similarity;
pub(super) use groups::{MarkupSignature, PageSignatures};
pub use known::KnownFrames;
pub(super) use learner::{BETWEEN_EXAMPLES, sample_key};
pub(crate) use learner::{FrameLearner, Learns, SamplePage, host_hash};
pub(crate) use rows::FrameRow;

/// Different texts around a block that make it frame.
const LEAST_CONTEXTS: usize = 3;
/// Words of other text that a page has to have to be a context.
const LEAST_REST: u64 = 10;
/// Links in one place that are a list.
pub(super) const LEAST_LIST: usize = 4;
/// Words of a block of prose.
pub(super) const PROSE_WORDS: usize = 12;
/// Share of a page's prose in what its markup calls aside, from which the markup is not believed.
const MOST_ASIDE: f64 = 0.3;
/// Words of prose by which a page itself tells whether its markup can be believed.
const ENOUGH_PROSE: u64 = 100;
/// Pages from which on a group without a frame is known to have none.
const KNOWN_PAGES: usize = 8;
/// Bytes of what is known of a block.
const BLOCK_BYTES: usize = 21;

/// By numbers that are hashes already.
type HashedMap<T> = HashMap<u64, T, BuildHasherDefault<TokenHasher>>;

/// Marks of a block.
pub(super) const ASIDE: u8 = 1;
pub(super) const PROSE: u8 = 2;
pub(super) const LINKS: u8 = 4;

/// What is known of a block.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct BlockFacts {
    /// A hash of its tokens.
    pub(super) hash: u64,
    /// Its place in the markup.
    pub(super) path: u64,
    pub(super) words: u32,
    pub(super) is_aside: bool,
    pub(super) is_prose: bool,
    /// Whether most of it is links.
    pub(super) is_links: bool,
}

impl BlockFacts {
    /// Of the tokens, the place and the marks of a block.
    pub(super) fn new(tokens: &[Token], path: u64, marks: u8) -> BlockFacts {
        let hash = tokens.iter().fold(tokens.len() as u64, |hash, &token| {
            (hash.rotate_left(23) ^ token).wrapping_mul(0x9fb2_1c65_1e98_df25)
        });
        BlockFacts::hashed(hash, tokens.len(), path, marks)
    }

    /// The same of a hash of its tokens that is known.
    pub(super) fn hashed(hash: u64, words: usize, path: u64, marks: u8) -> BlockFacts {
        let words = u32::try_from(words).unwrap_or(u32::MAX);
        BlockFacts { hash, path, words, ..BlockFacts::marked(marks) }
    }

    fn marked(marks: u8) -> BlockFacts {
        let (is_aside, is_prose, is_links) = (marks & ASIDE != 0, marks & PROSE != 0, marks & LINKS != 0);
        BlockFacts { hash: 0, path: 0, words: 0, is_aside, is_prose, is_links }
    }

    /// What it is, as bits.
    pub(super) fn marks(&self) -> u8 {
        let mark = |is: bool, mark: u8| if is { mark } else { 0 };
        mark(self.is_aside, ASIDE) | mark(self.is_prose, PROSE) | mark(self.is_links, LINKS)
    }

    /// Appends its bytes.
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.hash.to_le_bytes());
        bytes.extend(self.path.to_le_bytes());
        bytes.extend(self.words.to_le_bytes());
        bytes.push(self.marks());
    }

    fn decode(bytes: &[u8]) -> BlockFacts {
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
        };
        let words = u32::try_from(number(16..20)).unwrap_or(u32::MAX);
        BlockFacts { hash: number(0..8), path: number(8..16), words, ..BlockFacts::marked(bytes[20]) }
    }
}

/// Whether the blocks that the markup calls aside are left out: not where much of the prose would go. `known` is what was
/// learnt from the pages of the site, for a page that has too little prose to tell.
pub(super) fn believes_markup(blocks: &[BlockFacts], known: Option<bool>) -> bool {
    let left = blocks.iter().filter(|block| !block.is_aside).map(|block| u64::from(block.words)).sum::<u64>();
    let own = ProseCount::of(blocks);
    let can_tell = own.aside >= ENOUGH_PROSE || own.all - own.aside >= ENOUGH_PROSE;
    let own = own.believes_markup();
    // What is left has to be something.
    match if can_tell { own } else { known.or(own) } {
        Some(believes) => believes && left > 0,
        None => left >= LEAST_REST,
    }
}

/// Words of prose, and those of it that the markup calls aside.
#[derive(Default)]
struct ProseCount {
    all: u64,
    aside: u64,
}

impl ProseCount {
    fn of(blocks: &[BlockFacts]) -> ProseCount {
        let mut count = ProseCount::default();
        count.add(blocks);
        count
    }

    fn add(&mut self, blocks: &[BlockFacts]) {
        for block in blocks.iter().filter(|block| block.is_prose) {
            self.all += u64::from(block.words);
            self.aside += if block.is_aside { u64::from(block.words) } else { 0 };
        }
    }

    /// Whether the names are believed; without prose nobody knows.
    fn believes_markup(&self) -> Option<bool> {
        (self.all > 0).then_some(self.aside as f64 <= MOST_ASIDE * self.all as f64)
    }
}

/// A block that is frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrameBlock {
    /// Pages of the sample that have it.
    pages: u32,
    /// Different texts around it.
    contexts: u32,
    /// The beginning of its text.
    example: Box<str>,
}

impl FrameBlock {
    /// Pages of the sample that have it.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }
}

named! {
    /// What the pages of a group have in common.
    pub enum GroupedBy {
        /// The host
        Host = "host",
        /// Names and places in the markup
        Markup = "markup",
        /// The same, and short blocks
        MarkupAndMenus = "markup and menus",
    }
}

/// Groups of one kind, and the frame of each.
#[derive(Debug, Clone)]
struct FrameLevel {
    by: GroupedBy,
    groups: Groups,
    frames: Vec<GroupFrame>,
}

impl FrameLevel {
    fn find(&self, page: &PageSignatures) -> Option<usize> {
        let signature = if self.by == GroupedBy::Markup { &page.markup } else { &page.markup_and_menus };
        self.groups.find(signature).map(|group| group as usize)
    }
}

/// The frame of a group.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupFrame {
    /// Pages of the sample that are in the group.
    pages: u64,
    blocks: HashedMap<FrameBlock>,
    /// Whether what the markup calls aside is left out, if that is known.
    believes_markup: Option<bool>,
}

impl GroupFrame {
    /// A block, if it is frame.
    pub(super) fn block(&self, hash: u64) -> Option<&FrameBlock> {
        self.blocks.get(&hash)
    }

    /// Whether enough pages were seen to say that what is not frame is not.
    fn is_known(&self) -> bool {
        self.pages >= KNOWN_PAGES as u64 || !self.blocks.is_empty()
    }
}

/// The frames of a corpus.
#[derive(Debug, Clone)]
pub struct Frames {
    levels: Vec<FrameLevel>,
    /// Whether hosts were known when they were learnt; otherwise those of pages do not count.
    has_hosts: bool,
}

/// What is known about the frame of a page.
pub(super) struct PageFrames<'f> {
    /// The frames of its groups.
    pub(super) frames: Vec<&'f GroupFrame>,
    /// What stands for its site, its host or pages with like markup; nothing if too little is known of pages like this one
    /// to say what is not frame.
    pub(super) site: Option<u64>,
    /// Whether what the markup calls aside is left out, if that is known of the site.
    pub(super) believes_markup: Option<bool>,
}

impl Default for Frames {
    /// Nothing is known of any page.
    fn default() -> Frames {
        Frames::new(Vec::new())
    }
}

impl Frames {
    fn new(levels: Vec<FrameLevel>) -> Frames {
        let mut leaders = levels.iter().flat_map(|level| &level.groups.leaders);
        let has_hosts = leaders.any(|leader| !leader.host.is_empty());
        Frames { levels, has_hosts }
    }

    /// What is known about the frame of a page.
    pub(super) fn of(&self, page: &PageSignatures) -> PageFrames<'_> {
        let without_host;
        let page = if self.has_hosts {
            page
        } else {
            without_host = page.without_host();
            &without_host
        };
        let (mut frames, mut is_known, mut site) = (Vec::new(), false, page.markup.site());
        let mut believes_markup = None;
        for level in &self.levels {
            let Some(group) = level.find(page) else { continue };
            match level.by {
                GroupedBy::Markup => {
                    site = level.groups.leaders[group].site();
                    believes_markup = level.frames[group].believes_markup;
                }
                GroupedBy::Host => frames.push(&level.frames[group]),
                GroupedBy::MarkupAndMenus if level.frames[group].is_known() => {
                    is_known = true;
                    frames.push(&level.frames[group]);
                }
                GroupedBy::MarkupAndMenus => {}
            }
        }
        PageFrames { frames, site: is_known.then_some(site), believes_markup }
    }
}
