//! What the blocks of a page are: which are compared, and why the others are not.

use serde::Serialize;

use crate::names::named;
use crate::text::CutPage;
use crate::text::core::CoreFinder;
use crate::text::frames::{BlockFacts, Frames, MarkupSignature, believes_markup};
use crate::text::html::PageText;
use crate::text::site;

named! {
    /// What a block of a page is.
    pub enum BlockPart {
        /// It is compared
        Compared = "compared",
        /// The site repeats it around different texts
        Frame = "frame",
        /// The markup calls it navigation, or the like
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
    /// calls aside is left out in either case.
    pub(super) fn of(
        page: &PageText,
        url: Option<&str>,
        cut: &CutPage,
        frames: Option<&Frames>,
        core: &mut CoreFinder,
    ) -> StoryParts {
        let facts = cut.blocks(page);
        let signature = MarkupSignature::new(url.and_then(site::host).as_deref(), &page.names, &facts);
        let (known, site) = match frames.and_then(|frames| frames.of(&signature)) {
            Some((known, site)) => (known, Some(site)),
            None => (Vec::new(), None),
        };
        let core = if known.is_empty() { core.find(&cut.tokens, &cut.block_ends) } else { None };
        let believes_markup = believes_markup(&facts);
        let part = |(number, block): (usize, &BlockFacts)| {
            let frame = known.iter().find_map(|frame| frame.block(block.hash));
            match frame {
                Some(frame) => (BlockPart::Frame, Some(frame.pages())),
                None if believes_markup && block.is_aside => (BlockPart::Aside, None),
                None => (core.map_or(BlockPart::Compared, |core| BlockPart::of_core(core[number])), None),
            }
        };
        let blocks = facts.iter().enumerate().map(part).collect();
        StoryParts { blocks, site }
    }
}
