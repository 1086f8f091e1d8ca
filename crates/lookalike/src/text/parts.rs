//! What the blocks of a page are: which are compared, and why the others are not.

use serde::Serialize;

use crate::names::named;
use crate::text::core::CoreFinder;
use crate::text::cut::CutPage;
use crate::text::frames::{BlockFacts, Frames, LEAST_LIST, believes_markup};
use crate::text::held::HeldPage;

named! {
    /// What a block of a page is.
    pub enum BlockPart {
        /// It is compared
        Compared = "compared",
        /// The site repeats it around different texts
        Frame = "frame",
        /// The markup calls it navigation, a title, or the like
        Aside = "aside",
        /// It does not read like prose
        Other = "other",
    }
}

/// A block of a page, as it is seen when pages are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageBlock {
    /// What it is.
    pub part: BlockPart,
    /// Its text.
    pub text: String,
    /// Of a frame, the pages of the sample that have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u32>,
    /// Of a frame, the host of these pages, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

impl BlockPart {
    pub(super) fn of_core(is_core: bool) -> BlockPart {
        if is_core { BlockPart::Compared } else { BlockPart::Other }
    }
}

/// What the blocks of a page are, where its story is asked for.
pub(super) struct StoryParts {
    /// With the pages of the sample that have it, of a frame.
    pub(super) blocks: Vec<(BlockPart, Option<u32>)>,
    /// What stands for the site, if its frame is known.
    pub(super) site: Option<u64>,
}

impl StoryParts {
    /// Without what was learnt to be frame; where nothing was learnt about pages like this one, the core. What the markup
    /// calls aside is left out in either case. `cut` has the page's tokens.
    pub(super) fn of(held: &HeldPage, cut: &CutPage, frames: Option<&Frames>, core: &mut CoreFinder) -> StoryParts {
        let facts = held.blocks();
        let known = frames.map(|frames| frames.of(&held.signatures()));
        let (known, site, believes) =
            known.map_or((Vec::new(), None, None), |known| (known.frames, known.site, known.believes_markup));
        let core = if site.is_none() { core.find(&cut.tokens, &cut.block_ends) } else { None };
        let believes_markup = believes_markup(&facts, believes);
        // What stands between the prose belongs to it, but for menus.
        let place = |is_core: &dyn Fn(usize) -> bool| (0..facts.len()).find(|&number| is_core(number));
        let first = core.and_then(|core| place(&|number| core[number]));
        let last = core.and_then(|core| place(&|number| core[facts.len() - 1 - number])).map(|at| facts.len() - 1 - at);
        let is_within = |number: usize| first.zip(last).is_some_and(|(first, last)| first <= number && number <= last);
        let menus = if core.is_some() { menus(&facts) } else { Vec::new() };
        let is_core = |number: usize| core.is_none_or(|core| core[number] || is_within(number) && !menus[number]);
        let part = |(number, block): (usize, &BlockFacts)| {
            let frame = known.iter().find_map(|frame| frame.block(block.hash));
            match frame {
                Some(frame) => (BlockPart::Frame, Some(frame.pages())),
                None if believes_markup && block.is_aside => (BlockPart::Aside, None),
                None => (BlockPart::of_core(is_core(number)), None),
            }
        };
        let blocks = facts.iter().enumerate().map(part).collect();
        StoryParts { blocks, site }
    }
}

/// Which blocks are part of a run of links.
fn menus(blocks: &[BlockFacts]) -> Vec<bool> {
    let runs = blocks.chunk_by(|one, other| one.is_links == other.is_links);
    runs.flat_map(|run| std::iter::repeat_n(run[0].is_links && run.len() >= LEAST_LIST, run.len())).collect()
}
