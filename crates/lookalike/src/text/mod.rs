//! Page → tokens: charset, markup, terms.
//!
//! In: a [`RawPage`]. Out: the sequence of its tokens, and its text for whoever shows it. Everything
//! that decides which terms a page has is in this folder.

pub mod charset;
pub mod html;
mod normalize;
pub mod site;
pub mod term;
pub mod tokenize;

use std::borrow::Cow;

pub(crate) use normalize::is_unspaced;

use crate::page::{Body, Markup, RawPage, Token};
use html::PageText;
use tokenize::Tokenizer;

/// Turns pages into tokens; owns every buffer it needs, one per thread.
pub struct PageReader {
    tokenizer: Tokenizer,
    page: PageText,
    tokens: Vec<Token>,
}

impl PageReader {
    /// A reader that folds case unless told to keep it.
    #[must_use]
    pub fn new(keep_case: bool) -> PageReader {
        PageReader { tokenizer: Tokenizer::new(keep_case), page: PageText::default(), tokens: Vec::new() }
    }

    /// The page's tokens, in order, and its title where the markup gives one.
    pub fn tokens(&mut self, page: &RawPage<'_>) -> (&[Token], Option<&str>) {
        self.tokens.clear();
        let text = unicode(&page.body);
        if !is_html(page.markup, &text) {
            self.tokenizer.tokenize(&text, &mut self.tokens);
            return (&self.tokens, None);
        }
        html::extract(&text, page.url.as_deref(), &mut self.page);
        let mut from = 0;
        for image in &self.page.images {
            self.tokenizer.tokenize(&self.page.text[from..image.at], &mut self.tokens);
            self.tokens.push(image.token);
            from = image.at;
        }
        self.tokenizer.tokenize(&self.page.text[from..], &mut self.tokens);
        (&self.tokens, self.page.title())
    }

    /// The page's text as people read it.
    pub fn text(&mut self, page: &RawPage<'_>) -> String {
        let text = unicode(&page.body);
        if is_html(page.markup, &text) {
            html::extract(&text, page.url.as_deref(), &mut self.page);
            self.page.text.clone()
        } else {
            text.into_owned()
        }
    }
}

/// A page's body as Unicode.
fn unicode<'a>(body: &'a Body<'_>) -> Cow<'a, str> {
    match body {
        Body::Text(text) => Cow::Borrowed(text),
        Body::Bytes(bytes) => charset::decode(bytes, None).text,
    }
}

fn is_html(markup: Markup, text: &str) -> bool {
    match markup {
        Markup::Html => true,
        Markup::Text => false,
        Markup::Unknown => html::looks_like_html(text.as_bytes()),
    }
}
