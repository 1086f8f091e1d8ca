//! The worker that turns pages into tokens.

use std::borrow::Cow;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::page::{Markup, RawPage, Token};
use crate::text::core::CoreFinder;
use crate::text::cut::{CutPage, hash_of_tokens, ranges};
use crate::text::frames::{Frames, Learns};
use crate::text::held::{HeldPage, HeldText};
use crate::text::html;
use crate::text::page_text::PageText;
use crate::text::parts::{BlockPart, PageBlock, StoryParts};
use crate::text::stored::StoredBlocks;
use crate::text::term::term_token;
use crate::text::tokenize::{Tokenizer, Words};
use crate::text::{Scope, TextOptions, blank_lines, is_html, main_content, one_line, site, unicode};

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
    /// A hash of the whole page's text; nothing where the tokens are all of it.
    pub text_hash: Option<u64>,
}

/// What of a page with markup was counted.
#[derive(Default)]
struct Counted {
    scope: Option<Scope>,
    site: Option<u64>,
    text_hash: Option<u64>,
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
        let (options, url) = (self.options, page.url.as_deref());
        let body = unicode(page);
        let has_markup = is_html(page.markup, &body);
        let mut counted = Counted::default();
        if options.scope == Scope::Links && !options.raw {
            counted = self.count_links(&body, url, has_markup);
        } else if has_markup && !options.raw && options.scope == Scope::Story {
            let held = self.cut_blocks(&body, url, false);
            counted = self.count_story(&held, None);
        } else if has_markup {
            html::extract_with(&body, url, options.scripts, &mut self.page);
        }
        if has_markup && !options.raw && ![Scope::Story, Scope::Links].contains(&options.scope) {
            counted = self.count_html(&body, url);
        } else if options.raw || !has_markup && options.scope != Scope::Links {
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
            scope: counted.scope,
            site: counted.site,
            text_hash: counted.text_hash,
        }
    }

    /// The tokens of the page that was read last.
    pub(crate) fn tokens(&self) -> &[Token] {
        &self.cut.tokens
    }

    /// Whether a page is held until the frames are known.
    fn is_held(&self, page: &RawPage<'_>) -> bool {
        self.options.scope == Scope::Story
            && !self.options.raw
            && (page.markup == Markup::Html || page.markup == Markup::Unknown && is_html(page.markup, &unicode(page)))
    }

    /// A page in its blocks, and its title; nothing where there is no frame to know. With `keeps_text` also its text, with
    /// a learner that wants it also what can be learnt from it.
    pub(crate) fn hold(
        &mut self,
        page: &RawPage<'_>,
        keeps_text: bool,
        learner: &dyn Learns,
    ) -> Option<(HeldPage, Option<&str>)> {
        if !self.is_held(page) {
            return None;
        }
        let mut held = self.cut_blocks(&unicode(page), page.url.as_deref(), keeps_text);
        held.add_examples(&self.page, &self.cut, learner);
        Some((held, self.page.title()))
    }

    /// A page in its blocks, with its text, and its title; nothing where there is no frame to know.
    pub(crate) fn hold_with_text(&mut self, page: &RawPage<'_>) -> Option<(HeldPage, Option<&str>)> {
        if !self.is_held(page) {
            return None;
        }
        let held = self.cut_blocks(&unicode(page), page.url.as_deref(), true);
        Some((held, self.page.title()))
    }

    /// A page that was stored, in its blocks.
    pub(crate) fn hold_stored(&mut self, stored: &StoredBlocks) -> HeldPage {
        let ends = &stored.ends[..stored.ends.len().saturating_sub(1)];
        // What is damaged was found before; ends that make no sense must do no harm all the same.
        let is_sound = ends.is_sorted() && ends.iter().all(|&end| stored.text.is_char_boundary(end));
        let ends = if is_sound { ends } else { &[] };
        self.cut.cut(self.options, true, &mut self.tokenizer, &stored.text, &[], ends);
        HeldPage::of_stored(stored, &self.cut)
    }

    /// Leaves out other frames from now on.
    pub(crate) fn set_frames(&mut self, frames: Option<Arc<Frames>>) {
        self.frames = frames;
    }

    /// Reads a page that was held.
    pub(crate) fn read_held<'a>(&'a mut self, held: &'a HeldPage) -> ReadPage<'a> {
        held.put_into(&mut self.cut);
        let counted = match self.options.scope {
            Scope::Story => self.count_story(held, held.text()),
            Scope::Core | Scope::Main => self.count_core(held),
            Scope::Page | Scope::Links => self.count_all(held),
        };
        ReadPage {
            tokens: &self.cut.tokens,
            block_ends: if self.options.blocks { &self.cut.block_ends } else { &[] },
            words: &self.cut.words,
            content: &self.content,
            text: Cow::Borrowed(held.text().map_or("", |held| held.text.as_str())),
            title: None,
            scope: counted.scope,
            site: counted.site,
            text_hash: counted.text_hash,
        }
    }

    /// Cuts markup into its blocks.
    fn cut_blocks(&mut self, html: &str, url: Option<&str>, keeps_text: bool) -> HeldPage {
        html::extract_with_places(html, url, self.options.scripts, &mut self.page);
        let page = &self.page;
        // Pictures are part of the frame as often as of the story.
        self.cut.cut(self.options, true, &mut self.tokenizer, &page.text, &[], &page.block_ends);
        HeldPage::new(page, &self.cut, url.and_then(site::host), keeps_text)
    }

    /// Leaves of a page what is not frame; `text` is that of the page, if it is not the one read last.
    fn count_story(&mut self, held: &HeldPage, text: Option<&HeldText>) -> Counted {
        let parts = StoryParts::of(held, &self.cut, self.frames.as_deref(), &mut self.core);
        self.chosen.clear();
        self.chosen.extend(parts.blocks.iter().map(|block| block.0 == BlockPart::Compared));
        let chosen = Some(self.chosen.as_slice()).filter(|chosen| parts.site.is_some() || chosen.contains(&false));
        let scope = match (parts.site, chosen) {
            (Some(_), _) => Scope::Story,
            (None, Some(_)) => Scope::Core,
            (None, None) => Scope::Page,
        };
        let text = text.map_or(self.page.text.as_str(), |held| held.text.as_str());
        keep_chosen(self.options, &mut self.tokenizer, &mut self.cut, &mut self.content, text, chosen);
        Counted { scope: Some(scope), site: parts.site, text_hash: Some(held.text_hash()) }
    }

    /// The core of a page that was held.
    fn count_core(&mut self, held: &HeldPage) -> Counted {
        let Some(chosen) = self.core.find(&self.cut.tokens, &self.cut.block_ends) else { return self.count_all(held) };
        let text_hash = Some(hash_of_tokens(&self.cut.tokens));
        let text = held.text().map_or("", |held| held.text.as_str());
        keep_chosen(self.options, &mut self.tokenizer, &mut self.cut, &mut self.content, text, Some(chosen));
        Counted { scope: Some(Scope::Core), site: None, text_hash }
    }

    /// All of a page that was held.
    fn count_all(&mut self, held: &HeldPage) -> Counted {
        let text = held.text().map_or("", |held| held.text.as_str());
        keep_chosen(self.options, &mut self.tokenizer, &mut self.cut, &mut self.content, text, None);
        Counted { scope: Some(Scope::Page), site: None, text_hash: None }
    }

    /// The hyperlinks of a page, each as one token. A page without markup has none.
    fn count_links(&mut self, body: &str, url: Option<&str>, has_markup: bool) -> Counted {
        html::extract_links(if has_markup { body } else { "" }, url, &mut self.page);
        self.cut.take_tokens(self.page.links.iter().map(|link| term_token(link.as_bytes())));
        self.content.clear();
        Counted { scope: has_markup.then_some(Scope::Links), site: None, text_hash: Some(xxh3_64(body.as_bytes())) }
    }

    /// The part of an HTML page that counts, if it is found page by page.
    fn count_html(&mut self, html: &str, url: Option<&str>) -> Counted {
        let options = self.options;
        let has_main = options.scope == Scope::Main && main_content::extract(html, url, &mut self.main);
        let page = if has_main { &self.main } else { &self.page };
        let wants_core = options.scope != Scope::Page && !has_main;
        let cut = &mut self.cut;
        let images = if options.no_images { &[][..] } else { &page.images };
        cut.cut(options, options.blocks || wants_core, &mut self.tokenizer, &page.text, images, &page.block_ends);
        let chosen = if wants_core { self.core.find(&cut.tokens, &cut.block_ends) } else { None };
        let scope = match (has_main, chosen) {
            (true, _) => Scope::Main,
            (false, Some(_)) => Scope::Core,
            (false, None) => Scope::Page,
        };
        let text_hash = match scope {
            Scope::Page => None,
            Scope::Main => Some(xxh3_64(self.page.text.as_bytes())),
            _ => Some(hash_of_tokens(&cut.tokens)),
        };
        keep_chosen(options, &mut self.tokenizer, cut, &mut self.content, &page.text, chosen);
        Counted { scope: Some(scope), site: None, text_hash }
    }

    /// The page block by block, each with whether it is compared.
    pub(crate) fn parts(&mut self, page: &RawPage<'_>) -> Vec<PageBlock> {
        let (body, url, options) = (unicode(page), page.url.as_deref(), self.options);
        let plain = |text: &str| PageBlock { part: BlockPart::Compared, text: one_line(text), pages: None, site: None };
        if options.scope == Scope::Links && !options.raw {
            self.count_links(&body, url, is_html(page.markup, &body));
            return self.page.links.iter().map(|link| plain(link)).collect();
        }
        if !is_html(page.markup, &body) || options.raw {
            let ends: Vec<usize> = blank_lines(&body).into_iter().chain([body.len()]).collect();
            return ranges(&ends).map(|range| plain(&body[range])).filter(|block| !block.text.is_empty()).collect();
        }
        if options.scope == Scope::Main && main_content::extract(&body, url, &mut self.main) {
            let ends = self.main.block_ends.iter().copied().chain([self.main.text.len()]).collect::<Vec<_>>();
            let blocks = ranges(&ends).map(|range| plain(&self.main.text[range]));
            return blocks.filter(|block| !block.text.is_empty()).collect();
        }
        let held = self.cut_blocks(&body, url, false);
        let page = &self.page;
        let parts: Vec<(BlockPart, Option<u32>)> = match options.scope {
            Scope::Story => StoryParts::of(&held, &self.cut, self.frames.as_deref(), &mut self.core).blocks,
            Scope::Page | Scope::Links => vec![(BlockPart::Compared, None); self.cut.block_ends.len()],
            Scope::Core | Scope::Main => match self.core.find(&self.cut.tokens, &self.cut.block_ends) {
                Some(core) => core.iter().map(|&is_core| (BlockPart::of_core(is_core), None)).collect(),
                None => vec![(BlockPart::Compared, None); self.cut.block_ends.len()],
            },
        };
        let host = url.and_then(site::host);
        let blocks = parts.into_iter().zip(ranges(&self.cut.text_ends)).map(|((part, pages), range)| {
            let site = host.clone().filter(|_| pages.is_some());
            PageBlock { part, text: one_line(&page.text[range]), pages, site }
        });
        blocks.filter(|block| !block.text.is_empty()).collect()
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

/// Keeps the chosen blocks of a page that was cut, or all of them, and what else is asked for of these.
fn keep_chosen(
    options: TextOptions,
    tokenizer: &mut Tokenizer,
    cut: &mut CutPage,
    content: &mut String,
    text: &str,
    chosen: Option<&[bool]>,
) {
    cut.add_words(options, tokenizer, text, chosen);
    content.clear();
    if options.content {
        match chosen {
            None => content.push_str(text),
            Some(chosen) => {
                for (range, _) in ranges(&cut.text_ends).zip(chosen).filter(|(_, is_chosen)| **is_chosen) {
                    content.push_str(&text[range]);
                    content.push('\n');
                }
            }
        }
    }
    if let Some(chosen) = chosen {
        cut.retain(chosen);
    }
}
