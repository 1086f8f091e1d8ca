//! Frames, learnt from the pages at hand: what a site puts around its stories.
//!
//! In: the blocks of a sample of pages. Out: for groups of pages with like markup and menus, the blocks that are frame.
//! A block is frame if it stands on pages of its group whose other text differs, and if most pages that have its place
//! in the markup have it there. Contexts are counted, not occurrences: copies of one story have the same rest, so
//! that a story does not become frame however often it is copied. What is learnt depends neither on threads nor on
//! the order of pages.

mod groups;
mod learner;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::page::Token;
use groups::Groups;
pub(super) use groups::MarkupSignature;
pub(crate) use learner::{FrameLearner, SamplePage};
pub(crate) use rows::FrameRow;

/// Words of other text that a page has to have to be a context.
const LEAST_REST: u64 = 20;
/// Words of a block of prose.
const PROSE_WORDS: usize = 12;
/// Share of a page's prose in what its markup calls aside, from which the markup is not believed.
const MOST_ASIDE: f64 = 0.3;
/// Pages from which on a group without a frame is known to have none.
const KNOWN_PAGES: u64 = 8;

/// What is known of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockFacts {
    /// A hash of its tokens.
    pub(super) hash: u64,
    /// Its place in the markup.
    pub(super) path: u64,
    pub(super) words: usize,
    pub(super) is_aside: bool,
    pub(super) is_prose: bool,
}

impl BlockFacts {
    pub(super) fn new(tokens: &[Token], path: u64, is_aside: bool, link_bytes: usize, text_bytes: usize) -> BlockFacts {
        let hash = tokens.iter().fold(tokens.len() as u64, |hash, &token| {
            (hash.rotate_left(23) ^ token).wrapping_mul(0x9fb2_1c65_1e98_df25)
        });
        let is_prose = tokens.len() >= PROSE_WORDS && link_bytes * 2 < text_bytes;
        BlockFacts { hash, path, words: tokens.len(), is_aside, is_prose }
    }
}

/// Whether the blocks that the markup calls aside are left out: not where most of the prose would go.
pub(super) fn believes_markup(blocks: &[BlockFacts]) -> bool {
    let prose = |is_counted: &dyn Fn(&BlockFacts) -> bool| -> usize {
        blocks.iter().filter(|block| block.is_prose && is_counted(block)).map(|block| block.words).sum()
    };
    let all = prose(&|_| true);
    if all == 0 {
        // Without prose, what is left has to be something.
        let left = blocks.iter().filter(|block| !block.is_aside).map(|block| block.words as u64).sum::<u64>();
        return left >= LEAST_REST;
    }
    prose(&|block| block.is_aside) as f64 <= MOST_ASIDE * all as f64
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

/// The groups at one similarity, and the frame of each.
#[derive(Debug, Clone)]
struct FrameLevel {
    groups: Groups,
    frames: Vec<GroupFrame>,
}

/// The frame of a group.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupFrame {
    /// Pages of the sample that are in the group.
    pages: u64,
    blocks: HashMap<u64, FrameBlock>,
}

impl GroupFrame {
    /// A block, if it is frame.
    pub(super) fn block(&self, hash: u64) -> Option<&FrameBlock> {
        self.blocks.get(&hash)
    }

    /// Whether enough pages were seen to say that what is not frame is not.
    fn is_known(&self) -> bool {
        self.pages >= KNOWN_PAGES || !self.blocks.is_empty()
    }
}

/// The frames of a corpus.
#[derive(Debug, Clone)]
pub struct Frames {
    levels: Vec<FrameLevel>,
}

impl Frames {
    /// The frames of a page's groups, and what stands for its site: its host, or the pages with like markup. Nothing if
    /// nothing is known of pages like this one.
    pub(super) fn of(&self, page: &MarkupSignature) -> Option<(Vec<&GroupFrame>, u64)> {
        let groups: Vec<Option<usize>> =
            self.levels.iter().map(|level| level.groups.find(page).map(|group| group as usize)).collect();
        let found = self.levels.iter().zip(&groups).filter_map(|(level, group)| Some(&level.frames[(*group)?]));
        let known: Vec<&GroupFrame> = found.filter(|frame| frame.is_known()).collect();
        let site = match (self.levels.first(), groups.first()) {
            (Some(level), Some(&Some(group))) => level.groups.leaders[group].site(),
            _ => page.site(),
        };
        (!known.is_empty()).then_some((known, site))
    }
}
