//! Page → tokens: charset, markup, terms.
//!
//! In: a [`RawPage`]. Out: the sequence of its tokens, and its text for whoever cuts or shows it.
//! Everything that decides which terms a page has is in this folder.

pub mod canonical;
pub mod charset;
pub mod html;
pub mod language;
pub mod mask;
mod normalize;
pub mod site;
pub mod term;
pub mod tokenize;

use std::borrow::Cow;

pub(crate) use normalize::is_unspaced;

use crate::page::{Body, Markup, RawPage, Token};
use html::{ImageTerm, PageText};
use tokenize::{Tokenizer, Words};

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
}

/// Turns pages into tokens; owns every buffer it needs, one per thread.
pub struct PageReader {
    options: TextOptions,
    tokenizer: Tokenizer,
    page: PageText,
    tokens: Vec<Token>,
    block_ends: Vec<usize>,
    words: Words,
}

/// A page that was read.
pub struct ReadPage<'a> {
    /// Its tokens, in order.
    pub tokens: &'a [Token],
    /// Where blocks end: numbers of tokens, ascending. Only if asked for.
    pub block_ends: &'a [usize],
    /// The words that the tokens stand for, images left out. Only if asked for.
    pub words: &'a Words,
    /// Its text, as it is shown; nothing is left out of it.
    pub text: Cow<'a, str>,
    /// Its title, where the markup gives one.
    pub title: Option<&'a str>,
}

impl PageReader {
    /// A reader for some options.
    #[must_use]
    pub fn new(options: TextOptions) -> PageReader {
        PageReader {
            options,
            tokenizer: Tokenizer::new(options.keep_case),
            page: PageText::default(),
            tokens: Vec::new(),
            block_ends: Vec::new(),
            words: Words::default(),
        }
    }

    /// Reads a page.
    pub fn read<'a>(&'a mut self, page: &'a RawPage<'_>) -> ReadPage<'a> {
        self.tokens.clear();
        self.block_ends.clear();
        self.words.clear();
        let body = unicode(page);
        let has_markup = is_html(page.markup, &body);
        let is_html = !self.options.raw && has_markup;
        if has_markup {
            html::extract(&body, page.url.as_deref(), &mut self.page);
        }
        let mut cutter = Cutter {
            options: self.options,
            tokenizer: &mut self.tokenizer,
            tokens: &mut self.tokens,
            block_ends: &mut self.block_ends,
            words: &mut self.words,
        };
        let text = if is_html {
            cutter.cut(&self.page.text, &self.page.images, &self.page.block_ends);
            Cow::Borrowed(self.page.text.as_str())
        } else {
            let block_ends = if self.options.blocks { blank_lines(&body) } else { Vec::new() };
            cutter.cut(&body, &[], &block_ends);
            // What a page with markup says is still what it shows.
            if has_markup { Cow::Borrowed(self.page.text.as_str()) } else { body }
        };
        ReadPage {
            tokens: &self.tokens,
            block_ends: &self.block_ends,
            words: &self.words,
            text,
            title: if has_markup { self.page.title() } else { None },
        }
    }

    /// The page's text as people read it.
    pub fn text(&mut self, page: &RawPage<'_>) -> String {
        let text = unicode(page);
        if is_html(page.markup, &text) {
            html::extract(&text, page.url.as_deref(), &mut self.page);
            self.page.text.clone()
        } else {
            text.into_owned()
        }
    }
}

/// Takes a text apart where images stand and blocks end.
struct Cutter<'a> {
    options: TextOptions,
    tokenizer: &'a mut Tokenizer,
    tokens: &'a mut Vec<Token>,
    block_ends: &'a mut Vec<usize>,
    words: &'a mut Words,
}

impl Cutter<'_> {
    fn cut(&mut self, text: &str, images: &[ImageTerm], block_ends: &[usize]) {
        let (mut images, mut from) = (images.iter().peekable(), 0);
        let ends = if self.options.blocks { block_ends } else { &[] };
        for end in ends.iter().copied().chain([text.len()]) {
            while let Some(image) = images.next_if(|image| image.at <= end) {
                self.piece(&text[from..image.at]);
                self.tokens.push(image.token);
                from = image.at;
            }
            self.piece(&text[from..end]);
            from = end;
            if self.options.blocks && self.block_ends.last() != Some(&self.tokens.len()) {
                self.block_ends.push(self.tokens.len());
            }
        }
    }

    fn piece(&mut self, text: &str) {
        let masked;
        let text = if self.options.mask_volatile {
            masked = mask::without_volatile(text);
            &masked
        } else {
            text
        };
        self.tokenizer.tokenize(text, self.tokens);
        if self.options.words {
            self.tokenizer.tokenize(text, self.words);
        }
    }
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
        Markup::Unknown => html::looks_like_html(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
