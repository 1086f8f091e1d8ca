//! Page → tokens: charset, markup, terms.
//!
//! In: a [`RawPage`]. Out: the sequence of its tokens, and its text for whoever cuts or shows it.
//! Everything that decides which terms a page has is in this folder.

pub mod canonical;
pub mod charset;
pub mod core;
mod cut;
mod entities;
pub(crate) mod frames;
mod held;
pub mod html;
pub mod language;
mod main_content;
pub mod mask;
mod normalize;
mod outline;
pub mod page_text;
mod parts;
mod reader;
pub mod site;
mod stored;
mod tag_name;
pub mod term;
pub mod tokenize;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use frames::KnownFrames;
pub(crate) use held::HeldPage;
pub(crate) use normalize::is_unspaced;
pub use parts::{BlockPart, PageBlock};
pub use reader::{PageReader, ReadPage};
pub(crate) use stored::{ContentCodec, StoredBlocks, StoredContent};

use crate::error::{Error, Result};
use crate::names::named;
use crate::page::{Body, Markup, RawPage, looks_like_html};

named! {
    /// Which part of an HTML page counts.
    pub enum Scope default Page {
        /// All of its text
        Page = "page",
        /// The blocks that read like prose; all of it where there are too few
        Core = "core",
        /// What a reader view would show; slow
        Main = "main",
        /// All but the frame: blocks that a site repeats around different texts, learnt from the pages at hand
        Story = "story",
        /// Its hyperlinks, each as one word
        Links = "links",
    }
}

/// What of a page is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ContentConfig {
    /// Which part of an HTML page counts.
    pub scope: Scope,
    /// Text in scripts counts, where it is the page's own.
    pub scripts: bool,
    /// Upper and lower case are different.
    pub keep_case: bool,
    /// Volatile tokens are left out before anything else.
    pub mask_volatile: bool,
    /// The language of all pages, by its code (`eng`); without one, each page's is detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Languages are also told from a line, and by guesses that are not sure, where words are reduced to their stems: as 0.1.0
    /// did, whose indexes are read in this way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guesses_language: bool,
    /// What sites put around their texts, if it is known and not learnt from the pages at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<KnownFrames>,
}

impl Default for ContentConfig {
    fn default() -> ContentConfig {
        ContentConfig {
            scope: Scope::Story,
            scripts: false,
            keep_case: false,
            mask_volatile: false,
            language: None,
            guesses_language: false,
            frames: None,
        }
    }
}

impl ContentConfig {
    /// How pages are read, before a method asks for more.
    #[must_use]
    pub fn text_options(&self) -> TextOptions {
        TextOptions {
            keep_case: self.keep_case,
            mask_volatile: self.mask_volatile,
            scope: self.scope,
            scripts: self.scripts,
            ..TextOptions::default()
        }
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] for an unknown language.
    pub fn check(&self) -> Result<()> {
        match self.language.as_deref() {
            Some(name) if language::by_name(name).is_none() => {
                let expected = "must be a known language, by its code of three letters, such as eng or deu";
                Err(Error::invalid("language", name, expected))
            }
            _ => Ok(()),
        }
    }
}

/// How pages are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Upper and lower case are kept apart.
    pub keep_case: bool,
    /// Volatile tokens are left out.
    pub mask_volatile: bool,
    /// Markup is text like any other.
    pub raw: bool,
    /// It is noted where blocks end.
    pub blocks: bool,
    /// The terms themselves are wanted, not only their fingerprints.
    pub words: bool,
    /// The text itself is wanted, as far as it counts.
    pub content: bool,
    /// Which part of an HTML page counts.
    pub scope: Scope,
    /// Text in scripts counts, where it is the page's own.
    pub scripts: bool,
    /// Pictures do not count.
    pub no_images: bool,
}

/// A text with every run of white space as one blank.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where the paragraphs of a plain text end.
fn blank_lines(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() && at > 0 {
            ends.push(at);
        }
        at += line.len();
    }
    ends.dedup();
    ends
}

/// A page's body as Unicode.
fn unicode<'a>(page: &'a RawPage<'_>) -> Cow<'a, str> {
    match &page.body {
        Body::Text(text) => Cow::Borrowed(text),
        Body::Bytes(bytes) => charset::decode(bytes, page.charset.as_deref()).text,
    }
}

fn is_html(markup: Markup, text: &str) -> bool {
    match markup {
        Markup::Html => true,
        Markup::Text => false,
        Markup::Unknown => looks_like_html(text.as_bytes()),
    }
}

impl RawPage<'_> {
    /// Its body as Unicode, whatever charset it is in.
    #[must_use]
    pub fn unicode(&self) -> Cow<'_, str> {
        unicode(self)
    }

    /// Whether its body, which `unicode` returned, is markup.
    #[must_use]
    pub fn is_html(&self, unicode: &str) -> bool {
        is_html(self.markup, unicode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Token;
    use term::term_token;

    fn page(html: &str) -> RawPage<'_> {
        RawPage::new(Body::Text(Cow::Borrowed(html)), Markup::Unknown)
    }

    fn terms(words: &[&str]) -> Vec<Token> {
        words.iter().map(|word| term_token(word.as_bytes())).collect()
    }

    #[test]
    fn blocks_end_at_block_tags_and_blank_lines_only() {
        let mut reader = PageReader::new(TextOptions { blocks: true, ..TextOptions::default() });
        let html = page("<html><p>one\ntwo <b>three</b></p><div>four<img src=x.png></div>");
        let read = reader.read(&html);
        assert_eq!(read.tokens, terms(&["one", "two", "three", "four", "x.png"]));
        assert_eq!(read.block_ends.iter().copied().filter(|&end| end > 0).collect::<Vec<_>>(), [3, 5]);
        let plain = page("one two\nthree\n\n\n four\n \n five");
        assert_eq!(reader.read(&plain).block_ends, [3, 4, 5]);
    }

    #[test]
    fn raw_markup_is_text() {
        let mut reader = PageReader::new(TextOptions { raw: true, ..TextOptions::default() });
        assert_eq!(reader.read(&page("<html><p>one")).tokens, terms(&["html", "p", "one"]));
    }

    #[test]
    fn masked_pages_that_differ_in_the_time_are_the_same_page() {
        let mut reader = PageReader::new(TextOptions { mask_volatile: true, words: true, ..TextOptions::default() });
        let one = reader.read(&page("<html><p>It was 12:31 in town")).tokens.to_vec();
        let two = page("<html><p>It was 09:59 in town");
        let read = reader.read(&two);
        assert_eq!(read.tokens, one);
        assert_eq!(read.words.iter().collect::<Vec<_>>(), ["it", "was", "in", "town"]);
    }
}
