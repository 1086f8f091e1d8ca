//! Pages block by block, as they are compared, as a page for people (one file, no network).

use askama::Template;

use crate::error::Result;
use crate::names::Named;
use crate::report::numbers::{counted, thousands};
use crate::report::render;
use crate::text::{BlockPart, PageBlock};

#[derive(Template)]
#[template(path = "text.html")]
struct Page<'a> {
    pages: &'a [(String, Vec<PageBlock>)],
    parts: &'static [(BlockPart, &'static str, &'static str)],
    version: &'static str,
}

/// Pages, each with its name and its blocks, as HTML.
///
/// # Errors
/// When the template cannot be filled in.
pub fn blocks_html(pages: &[(String, Vec<PageBlock>)]) -> Result<String> {
    render::html(&Page { pages, parts: BlockPart::LIST, version: env!("CARGO_PKG_VERSION") })
}

/// How much of a page is compared, in words.
pub(crate) fn compared_words(blocks: &[PageBlock]) -> String {
    let words = |is_counted: &dyn Fn(&PageBlock) -> bool| -> usize {
        let counted = blocks.iter().filter(|block| is_counted(block));
        counted.map(|block| block.text.split_whitespace().count()).sum()
    };
    let (compared, all) = (words(&|block| block.part == BlockPart::Compared), words(&|_| true));
    format!("{} of {} are compared", thousands(compared), counted(all, "word"))
}

/// An explanation in the middle of a sentence.
pub(crate) fn lower(help: &str) -> String {
    let mut letters = help.trim().chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
