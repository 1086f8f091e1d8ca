//! Page → tokens: charset, markup, terms.
//!
//! In: a [`RawPage`]. Out: the sequence of its tokens, and its text for whoever cuts or shows it.
//! Everything that decides which terms a page has is in this folder.

pub mod canonical;
pub mod charset;
pub mod core;
pub(crate) mod frames;
pub mod html;
pub mod language;
mod main_content;
pub mod mask;
mod normalize;
mod outline;
mod parts;
pub mod site;
pub mod term;
pub mod tokenize;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use normalize::is_unspaced;
pub use parts::{BlockPart, PageBlock};

use self::core::CoreFinder;
use crate::error::{Error, Result};
use crate::names::named;
use crate::page::{Body, Markup, RawPage, Token, looks_like_html};
use frames::{BlockFacts, Frames, MarkupSignature, SamplePage};
use html::{ImageTerm, PageText};
use parts::StoryParts;
use tokenize::{TermSink, Tokenizer, TokensAt, Words};

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
}

impl Default for ContentConfig {
    fn default() -> ContentConfig {
        ContentConfig { scope: Scope::Core, scripts: false, keep_case: false, mask_volatile: false, language: None }
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
}

/// Turns pages into tokens; owns every buffer it needs, one per thread.
pub struct PageReader {
    options: TextOptions,
    tokenizer: Tokenizer,
    page: PageText,
    /// What a reader view would show, as text.
    main: PageText,
    core: CoreFinder,
    cut: CutPage,
    content: String,
    /// What is frame, where that was learnt.
    frames: Option<Arc<Frames>>,
    chosen: Vec<bool>,
    site: Option<u64>,
}

/// What a page was cut into.
#[derive(Default)]
struct CutPage {
    tokens: Vec<Token>,
    words: Words,
    /// Tokens before each end of a block.
    counts: Vec<usize>,
    /// Where blocks end: numbers of tokens.
    block_ends: Vec<usize>,
    /// The same places in the text.
    text_ends: Vec<usize>,
    /// Which of the page's blocks each is.
    numbers: Vec<usize>,
}

/// A page that was read.
pub struct ReadPage<'a> {
    /// Its tokens, in order, as far as they count.
    pub tokens: &'a [Token],
    /// Where blocks end: numbers of tokens, ascending. Only if asked for.
    pub block_ends: &'a [usize],
    /// The words that the tokens stand for, images left out. Only if asked for.
    pub words: &'a Words,
    /// Its text as far as it counts. Only if asked for.
    pub content: &'a str,
    /// Its text, as it is shown; nothing is left out of it.
    pub text: Cow<'a, str>,
    /// Its title, where the markup gives one.
    pub title: Option<&'a str>,
    /// Which part of it counts; nothing where it is not HTML.
    pub scope: Option<Scope>,
    /// What stands for its site, by its host or its markup. Only of pages that are compared without their frame.
    pub site: Option<u64>,
}

impl PageReader {
    /// A reader for some options.
    #[must_use]
    pub fn new(options: TextOptions) -> PageReader {
        PageReader {
            options,
            tokenizer: Tokenizer::new(options.keep_case),
            page: PageText::default(),
            main: PageText::default(),
            core: CoreFinder::default(),
            cut: CutPage::default(),
            content: String::new(),
            frames: None,
            chosen: Vec::new(),
            site: None,
        }
    }

    /// Leaves out what is frame.
    #[must_use]
    pub(crate) fn without(mut self, frames: Option<Arc<Frames>>) -> PageReader {
        self.frames = frames;
        self
    }

    /// Reads a page.
    pub fn read<'a>(&'a mut self, page: &'a RawPage<'_>) -> ReadPage<'a> {
        let options = self.options;
        let body = unicode(page);
        let has_markup = is_html(page.markup, &body);
        let is_html = !options.raw && has_markup;
        if has_markup && options.scope == Scope::Story {
            html::extract_with_places(&body, page.url.as_deref(), options.scripts, &mut self.page);
        } else if has_markup {
            html::extract_with(&body, page.url.as_deref(), options.scripts, &mut self.page);
        }
        let mut scope = None;
        self.site = None;
        if is_html {
            scope = Some(self.read_html(&body, page.url.as_deref()));
        } else {
            let block_ends = if options.blocks { blank_lines(&body) } else { Vec::new() };
            self.cut.cut(options, options.blocks, &mut self.tokenizer, &body, &[], &block_ends);
            self.cut.add_words(options, &mut self.tokenizer, &body, None);
            self.content.clear();
            if options.content {
                self.content.push_str(&body);
            }
        }
        ReadPage {
            tokens: &self.cut.tokens,
            block_ends: if options.blocks { &self.cut.block_ends } else { &[] },
            words: &self.cut.words,
            content: &self.content,
            // What a page with markup says is still what it shows.
            text: if has_markup { Cow::Borrowed(self.page.text.as_str()) } else { body },
            title: if has_markup { self.page.title() } else { None },
            scope,
            site: self.site,
        }
    }

    /// The part of an HTML page that counts; returns which it is.
    fn read_html(&mut self, html: &str, url: Option<&str>) -> Scope {
        let options = self.options;
        let has_main = options.scope == Scope::Main && main_content::extract(html, url, &mut self.main);
        let page = if has_main { &self.main } else { &self.page };
        let wants_core = options.scope != Scope::Page && !has_main;
        let cut = &mut self.cut;
        // Pictures are part of the frame as often as of the story.
        let images: &[ImageTerm] = if options.scope == Scope::Story { &[] } else { &page.images };
        cut.cut(options, options.blocks || wants_core, &mut self.tokenizer, &page.text, images, &page.block_ends);
        let mut story = Scope::Core;
        let chosen = if options.scope == Scope::Story {
            let parts = StoryParts::of(page, url, cut, self.frames.as_deref(), &mut self.core);
            (self.site, story) = (parts.site, if parts.site.is_some() { Scope::Story } else { Scope::Core });
            self.chosen.clear();
            self.chosen.extend(parts.blocks.iter().map(|block| block.0 == BlockPart::Compared));
            Some(self.chosen.as_slice()).filter(|chosen| parts.site.is_some() || chosen.contains(&false))
        } else if wants_core {
            self.core.find(&cut.tokens, &cut.block_ends)
        } else {
            None
        };
        cut.add_words(options, &mut self.tokenizer, &page.text, chosen);
        self.content.clear();
        if options.content {
            match chosen {
                None => self.content.push_str(&page.text),
                Some(chosen) => {
                    for (range, _) in ranges(&cut.text_ends).zip(chosen).filter(|(_, is_core)| **is_core) {
                        self.content.push_str(&page.text[range]);
                        self.content.push('\n');
                    }
                }
            }
        }
        if let Some(chosen) = chosen {
            cut.retain(chosen);
        }
        match (has_main, chosen) {
            (true, _) => Scope::Main,
            (false, Some(_)) => story,
            (false, None) => Scope::Page,
        }
    }

    /// The page block by block, each with whether it is compared.
    pub(crate) fn parts(&mut self, page: &RawPage<'_>) -> Vec<PageBlock> {
        let (body, url, options) = (unicode(page), page.url.as_deref(), self.options);
        let plain = |text: &str| PageBlock { part: BlockPart::Compared, text: one_line(text), pages: None };
        if !is_html(page.markup, &body) || options.raw {
            let ends: Vec<usize> = blank_lines(&body).into_iter().chain([body.len()]).collect();
            return ranges(&ends).map(|range| plain(&body[range])).filter(|block| !block.text.is_empty()).collect();
        }
        if options.scope == Scope::Main && main_content::extract(&body, url, &mut self.main) {
            let ends = self.main.block_ends.iter().copied().chain([self.main.text.len()]).collect::<Vec<_>>();
            let blocks = ranges(&ends).map(|range| plain(&self.main.text[range]));
            return blocks.filter(|block| !block.text.is_empty()).collect();
        }
        html::extract_with_places(&body, url, options.scripts, &mut self.page);
        let page = &self.page;
        self.cut.cut(options, true, &mut self.tokenizer, &page.text, &[], &page.block_ends);
        let parts: Vec<(BlockPart, Option<u32>)> = match options.scope {
            Scope::Story => StoryParts::of(page, url, &self.cut, self.frames.as_deref(), &mut self.core).blocks,
            Scope::Page => vec![(BlockPart::Compared, None); self.cut.block_ends.len()],
            Scope::Core | Scope::Main => match self.core.find(&self.cut.tokens, &self.cut.block_ends) {
                Some(core) => core.iter().map(|&is_core| (BlockPart::of_core(is_core), None)).collect(),
                None => vec![(BlockPart::Compared, None); self.cut.block_ends.len()],
            },
        };
        let blocks = parts.into_iter().zip(ranges(&self.cut.text_ends));
        let blocks = blocks.map(|((part, pages), range)| PageBlock { part, text: one_line(&page.text[range]), pages });
        blocks.filter(|block| !block.text.is_empty()).collect()
    }

    /// What can be learnt from a page about frames; nothing from what is not HTML.
    pub(crate) fn sample(&mut self, page: &RawPage<'_>) -> Option<SamplePage> {
        const EXAMPLE_CHARS: usize = 60;
        let body = unicode(page);
        if !is_html(page.markup, &body) {
            return None;
        }
        let url = page.url.as_deref();
        html::extract_with_places(&body, url, self.options.scripts, &mut self.page);
        let page = &self.page;
        self.cut.cut(self.options, true, &mut self.tokenizer, &page.text, &[], &page.block_ends);
        let blocks = self.cut.blocks(page);
        let signature = MarkupSignature::new(url.and_then(site::host).as_deref(), &page.names, &blocks);
        let texts = ranges(&self.cut.text_ends).map(|range| {
            let words: Vec<&str> = page.text[range].split_whitespace().take(EXAMPLE_CHARS).collect();
            words.join(" ").chars().take(EXAMPLE_CHARS).collect::<String>().into_boxed_str()
        });
        Some(SamplePage::new(signature, &blocks, texts.collect()))
    }

    /// The page's text as people read it, block by block.
    pub fn blocks(&mut self, page: &RawPage<'_>) -> Vec<String> {
        let body = unicode(page);
        if is_html(page.markup, &body) {
            html::extract(&body, page.url.as_deref(), &mut self.page);
            let ends: Vec<usize> = self.page.block_ends.iter().copied().chain([self.page.text.len()]).collect();
            ranges(&ends).map(|range| self.page.text[range].to_owned()).collect()
        } else {
            let ends: Vec<usize> = blank_lines(&body).into_iter().chain([body.len()]).collect();
            ranges(&ends).map(|range| body[range].to_owned()).collect()
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

impl CutPage {
    /// Takes a text apart where images stand and, if asked for, blocks end.
    fn cut(
        &mut self,
        options: TextOptions,
        by_block: bool,
        tokenizer: &mut Tokenizer,
        text: &str,
        images: &[ImageTerm],
        block_ends: &[usize],
    ) {
        self.tokens.clear();
        self.counts.clear();
        let places = if by_block { block_ends } else { &[] };
        let mut from = 0;
        for (end, image) in images.iter().map(|image| (image.at, Some(image.token))).chain([(text.len(), None)]) {
            let masked = piece(options, &text[from..end]);
            if let Cow::Owned(_) = masked {
                // Places in a masked text are not those in the text.
                self.cut_masked(options, tokenizer, text, from..end, places);
            } else {
                let places = &places[self.counts.len()..];
                let mut sink = TokensAt { tokens: &mut self.tokens, base: from, places, counts: &mut self.counts };
                tokenizer.tokenize(&masked, &mut sink);
                // An image at the end of a block is part of it.
                sink.run((end - from).saturating_sub(1));
            }
            self.tokens.extend(image);
            from = end;
        }
        self.counts.resize(places.len(), self.tokens.len());
        self.block_ends.clear();
        self.text_ends.clear();
        self.numbers.clear();
        if !by_block {
            return;
        }
        // A block without terms goes with the one before it.
        let ends = places.iter().copied().zip(self.counts.iter().copied()).chain([(text.len(), self.tokens.len())]);
        for (number, (end, count)) in ends.enumerate() {
            match self.block_ends.last() {
                Some(&last) if last == count => {
                    if let Some(last) = self.text_ends.last_mut() {
                        *last = end;
                    }
                }
                _ => {
                    self.block_ends.push(count);
                    self.text_ends.push(end);
                    self.numbers.push(number);
                }
            }
        }
    }

    /// What is known of the blocks of a page whose places were noted.
    fn blocks(&self, page: &PageText) -> Vec<BlockFacts> {
        let blocks = ranges(&self.block_ends).zip(ranges(&self.text_ends)).zip(&self.numbers);
        let facts = blocks.map(|((tokens, text), &number)| {
            let place = page.places[number];
            BlockFacts::new(&self.tokens[tokens], place.path, place.is_aside, place.link_bytes, text.len())
        });
        facts.collect()
    }

    /// Cuts a range of the text block by block.
    fn cut_masked(
        &mut self,
        options: TextOptions,
        tokenizer: &mut Tokenizer,
        text: &str,
        range: Range<usize>,
        places: &[usize],
    ) {
        let mut from = range.start;
        while let Some(&end) = places.get(self.counts.len()).filter(|&&end| end < range.end) {
            tokenizer.tokenize(&piece(options, &text[from..end]), &mut self.tokens);
            self.counts.push(self.tokens.len());
            from = end;
        }
        tokenizer.tokenize(&piece(options, &text[from..range.end]), &mut self.tokens);
    }

    /// The words of the text, or of the chosen blocks, if they are asked for.
    fn add_words(&mut self, options: TextOptions, tokenizer: &mut Tokenizer, text: &str, chosen: Option<&[bool]>) {
        self.words.clear();
        if !options.words {
            return;
        }
        match chosen {
            None => tokenizer.tokenize(&piece(options, text), &mut self.words),
            Some(chosen) => {
                for (range, _) in ranges(&self.text_ends).zip(chosen).filter(|(_, is_core)| **is_core) {
                    tokenizer.tokenize(&piece(options, &text[range]), &mut self.words);
                }
            }
        }
    }

    /// Keeps the tokens of chosen blocks.
    fn retain(&mut self, chosen: &[bool]) {
        let (mut kept, mut from, mut blocks) = (0, 0, 0);
        for (at, &is_chosen) in chosen.iter().enumerate() {
            let end = self.block_ends[at];
            if is_chosen {
                self.tokens.copy_within(from..end, kept);
                kept += end - from;
                self.block_ends[blocks] = kept;
                blocks += 1;
            }
            from = end;
        }
        self.tokens.truncate(kept);
        self.block_ends.truncate(blocks);
    }
}

/// A text with every run of white space as one blank.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A piece of text without what is masked.
fn piece(options: TextOptions, text: &str) -> Cow<'_, str> {
    if options.mask_volatile { mask::without_volatile(text) } else { Cow::Borrowed(text) }
}

/// Consecutive ranges by their ends.
fn ranges(ends: &[usize]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    ends.iter().map(move |&end| std::mem::replace(&mut start, end)..end)
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
