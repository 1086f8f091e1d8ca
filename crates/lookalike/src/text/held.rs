//! A page of HTML in its blocks, while it is not yet known which of them are frame.
//!
//! In: a page that was cut. Out: its tokens, block by block, with all that tells a frame from a story; the text itself only
//! where a method needs it. It can be stored, and is read again without the markup.

use serde::{Deserialize, Serialize};

use crate::page::Token;
use crate::spill::as_bytes;
use crate::text::cut::{CutPage, hash_of_tokens, ranges};
use crate::text::frames::{
    BETWEEN_EXAMPLES, BlockFacts, Frames, Learns, MarkupSignature, PageSignatures, SamplePage, sample_key,
};
use crate::text::page_text::PageText;
use crate::text::stored::StoredBlocks;

/// Bytes of a block that are kept as an example of it.
const EXAMPLE_BYTES: usize = 80;

/// A page in its blocks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct HeldPage {
    #[serde(with = "as_bytes")]
    tokens: Vec<Token>,
    /// Where blocks end: numbers of tokens.
    block_ends: Vec<usize>,
    /// A hash of each block's tokens.
    #[serde(with = "as_bytes")]
    hashes: Vec<u64>,
    /// The place of each block in the markup.
    #[serde(with = "as_bytes")]
    paths: Vec<u64>,
    /// What is known of each block, as bits.
    #[serde(with = "as_bytes")]
    marks: Vec<u8>,
    host: String,
    /// The signatures of its markup.
    #[serde(with = "as_bytes")]
    markup: Vec<u32>,
    #[serde(with = "as_bytes")]
    markup_and_menus: Vec<u32>,
    text: Option<HeldText>,
    /// What it is chosen by, if frames are learnt from it.
    sample_key: u64,
    /// How each block begins; empty where nothing is learnt from it.
    examples: String,
}

/// The text of a page.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct HeldText {
    pub(super) text: String,
    /// Where blocks end in it.
    pub(super) ends: Vec<usize>,
}

impl HeldPage {
    /// Of a page that was cut by its blocks.
    pub(super) fn new(page: &PageText, cut: &CutPage, host: Option<String>, keeps_text: bool) -> HeldPage {
        let facts = cut.blocks(page);
        let markup = MarkupSignature::of_names(host.as_deref(), &page.names, &facts);
        let signature = markup.with_menus(&facts);
        let sample_key = sample_key(&signature, &facts);
        HeldPage {
            tokens: cut.tokens.clone(),
            block_ends: cut.block_ends.clone(),
            hashes: facts.iter().map(|block| block.hash).collect(),
            paths: facts.iter().map(|block| block.path).collect(),
            marks: facts.iter().map(BlockFacts::marks).collect(),
            host: host.unwrap_or_default(),
            markup: markup.into_bins(),
            markup_and_menus: signature.into_bins(),
            sample_key,
            text: keeps_text.then(|| HeldText { text: page.text.clone(), ends: cut.text_ends.clone() }),
            examples: String::new(),
        }
    }

    /// Of a page that was stored, whose text was cut where its blocks end.
    pub(super) fn of_stored(stored: &StoredBlocks, cut: &CutPage) -> HeldPage {
        let known = ranges(&cut.block_ends).zip(&stored.paths).zip(&stored.marks);
        let facts: Vec<BlockFacts> =
            known.map(|((tokens, &path), &marks)| BlockFacts::new(&cut.tokens[tokens], path, marks)).collect();
        let markup = MarkupSignature::of_bins(&stored.host, stored.markup.clone());
        let signature = markup.with_menus(&facts);
        HeldPage {
            tokens: cut.tokens.clone(),
            block_ends: cut.block_ends.clone(),
            hashes: facts.iter().map(|block| block.hash).collect(),
            paths: facts.iter().map(|block| block.path).collect(),
            marks: facts.iter().map(BlockFacts::marks).collect(),
            host: stored.host.clone(),
            sample_key: sample_key(&signature, &facts),
            markup: stored.markup.clone(),
            markup_and_menus: signature.into_bins(),
            text: Some(HeldText { text: stored.text.clone(), ends: cut.text_ends.clone() }),
            examples: String::new(),
        }
    }

    /// The page as it is stored; its text must have been kept.
    pub(crate) fn stored(&self) -> StoredBlocks {
        let HeldText { text, ends } = self.text.clone().unwrap_or_default();
        let (paths, marks) = (self.paths.clone(), self.marks.clone());
        StoredBlocks { text, ends, paths, marks, host: self.host.clone(), markup: self.markup.clone() }
    }

    #[cfg(test)]
    pub(super) fn without_examples(&self) -> HeldPage {
        HeldPage { examples: String::new(), ..self.clone() }
    }

    /// The signature of its markup.
    pub(crate) fn markup(&self) -> &[u32] {
        &self.markup
    }

    /// The host it is from; empty where that is not known.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// What is known of its blocks.
    pub(super) fn blocks(&self) -> Vec<BlockFacts> {
        let known = ranges(&self.block_ends).zip(&self.hashes).zip(&self.paths).zip(&self.marks);
        known.map(|(((tokens, &hash), &path), &marks)| BlockFacts::hashed(hash, tokens.len(), path, marks)).collect()
    }

    pub(super) fn signatures(&self) -> PageSignatures {
        let of_bins = |bins: &Vec<u32>| MarkupSignature::of_bins(&self.host, bins.clone());
        PageSignatures { markup: of_bins(&self.markup), markup_and_menus: of_bins(&self.markup_and_menus) }
    }

    /// About how many bytes it is stored in.
    pub(crate) fn expected_bytes(&self) -> usize {
        let numbers = size_of_val(&*self.tokens) + size_of_val(&*self.block_ends) + size_of_val(&*self.markup) * 2;
        let text = self.text.as_ref().map_or(0, |held| held.text.len() + size_of_val(&*held.ends));
        numbers + self.paths.len() * 17 + self.host.len() + self.examples.len() + text + 64
    }

    /// Its text, if it was kept.
    pub(super) fn text(&self) -> Option<&HeldText> {
        self.text.as_ref()
    }

    /// Puts its blocks into `cut`.
    pub(super) fn put_into(&self, cut: &mut CutPage) {
        cut.tokens.clone_from(&self.tokens);
        cut.block_ends.clone_from(&self.block_ends);
        cut.text_ends.clear();
        cut.text_ends.extend(self.text.iter().flat_map(|text| &text.ends));
    }

    /// A hash of all its words.
    pub(super) fn text_hash(&self) -> u64 {
        hash_of_tokens(&self.tokens)
    }

    /// Notes how the blocks of `page` begin, if `learner` wants it.
    pub(super) fn add_examples(&mut self, page: &PageText, cut: &CutPage, learner: &dyn Learns) {
        if !learner.wants(&self.host, self.sample_key) {
            return;
        }
        self.examples.reserve(cut.text_ends.len() * EXAMPLE_BYTES / 2);
        for (number, range) in ranges(&cut.text_ends).enumerate() {
            if number > 0 {
                self.examples.push(BETWEEN_EXAMPLES);
            }
            let blanks =
                page.text.as_bytes()[range.clone()].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let text = &page.text[range.start + blanks..range.end];
            self.examples.push_str(&text[..text.floor_char_boundary(EXAMPLE_BYTES)]);
        }
    }

    /// Whether frames say what is frame on pages like this one.
    pub(crate) fn is_known_to(&self, frames: &Frames) -> bool {
        frames.of(&self.signatures()).site.is_some()
    }

    /// What can be learnt from it about frames, without examples of its blocks.
    pub(crate) fn sample_of_blocks(&self) -> SamplePage {
        let blocks = self.blocks();
        let no_examples = BETWEEN_EXAMPLES.to_string().repeat(blocks.len().saturating_sub(1));
        SamplePage::new(self.sample_key, self.signatures(), &blocks, &no_examples)
    }

    /// What can be learnt from it about frames; nothing if nobody wanted it.
    pub(crate) fn sample(&self) -> Option<SamplePage> {
        let is_wanted = !self.examples.is_empty();
        is_wanted.then(|| SamplePage::new(self.sample_key, self.signatures(), &self.blocks(), &self.examples))
    }
}
