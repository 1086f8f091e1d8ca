//! What a page of HTML shows, as the parser of its markup notes it down.

use std::ops::Range;

use crate::page::Token;
use crate::text::outline::{BlockPlace, Outline};

/// A page's text and what stands in it beside words. Reusable.
#[derive(Debug, Default)]
pub struct PageText {
    /// The text; entities decoded.
    pub text: String,
    /// The images: where in `text`, and the term each contributes.
    pub images: Vec<ImageTerm>,
    /// Where the title stands in `text`; empty if there is none.
    pub title: Range<usize>,
    /// Where blocks end in `text`, ascending.
    pub block_ends: Vec<usize>,
    /// Where the blocks stand in the markup: one place for each end, and one for what follows the last. Only if asked
    /// for.
    pub(super) places: Vec<BlockPlace>,
    /// Hashes of the names that the markup gives its elements. Only if asked for.
    pub(super) names: Vec<u64>,
    /// Where its hyperlinks lead, in their order, repetitions included. Only if asked for.
    pub(super) links: Vec<String>,
    /// Finds places; kept from page to page with what it knows of names.
    pub(super) outline: Outline,
}

/// One `<img>`: a term at a place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageTerm {
    /// Offset into the text, at a break between terms.
    pub at: usize,
    /// The fingerprint of its URL or file name.
    pub token: Token,
}

impl PageText {
    /// Forgets the page.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.images.clear();
        self.block_ends.clear();
        self.places.clear();
        self.names.clear();
        self.links.clear();
        self.title = 0..0;
    }

    /// The title, trimmed.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.text.get(self.title.clone()).map(str::trim).filter(|title| !title.is_empty())
    }
}
