//! A text cut into tokens and blocks.

use std::borrow::Cow;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::page::Token;
use crate::spill::Fixed;
use crate::text::frames::{ASIDE, BlockFacts, LINKS, PROSE, PROSE_WORDS};
use crate::text::page_text::{ImageTerm, PageText};
use crate::text::tokenize::{TermSink, Tokenizer, TokensAt, Words};
use crate::text::{TextOptions, mask};

/// What a page was cut into.
#[derive(Default)]
pub(super) struct CutPage {
    pub(super) tokens: Vec<Token>,
    pub(super) words: Words,
    /// Tokens before each end of a block.
    counts: Vec<usize>,
    /// Where blocks end: numbers of tokens.
    pub(super) block_ends: Vec<usize>,
    /// The same places in the text.
    pub(super) text_ends: Vec<usize>,
    /// Which of the page's blocks each is.
    numbers: Vec<usize>,
}

impl CutPage {
    /// Takes a text apart where images stand and, if asked for, blocks end.
    pub(super) fn cut(
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

    /// Tokens that were found by other means, as one block.
    pub(super) fn take_tokens(&mut self, tokens: impl Iterator<Item = Token>) {
        self.tokens.clear();
        self.tokens.extend(tokens);
        self.words.clear();
        self.block_ends.clear();
        self.block_ends.push(self.tokens.len());
        self.text_ends.clear();
        self.numbers.clear();
    }

    /// What is known of the blocks of a page whose places were noted.
    pub(super) fn blocks(&self, page: &PageText) -> Vec<BlockFacts> {
        let blocks = ranges(&self.block_ends).zip(ranges(&self.text_ends)).zip(&self.numbers);
        let facts = blocks.map(|((tokens, text), &number)| {
            let place = page.places[number];
            // Half of it is the name of the site, and the other half is said again in the page.
            let is_title = !page.title.is_empty() && text.contains(&page.title.start);
            let is_links = place.link_bytes * 2 >= text.len();
            // Mostly links is not prose, however long.
            let is_prose = tokens.len() >= PROSE_WORDS && !is_links;
            let mark = |is: bool, mark: u8| if is { mark } else { 0 };
            let marks = mark(place.is_aside || is_title, ASIDE) | mark(is_prose, PROSE) | mark(is_links, LINKS);
            BlockFacts::new(&self.tokens[tokens], place.path, marks)
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
    pub(super) fn add_words(
        &mut self,
        options: TextOptions,
        tokenizer: &mut Tokenizer,
        text: &str,
        chosen: Option<&[bool]>,
    ) {
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
    pub(super) fn retain(&mut self, chosen: &[bool]) {
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

/// A piece of text without what is masked.
fn piece(options: TextOptions, text: &str) -> Cow<'_, str> {
    if options.mask_volatile { mask::without_volatile(text) } else { Cow::Borrowed(text) }
}

/// Consecutive ranges by their ends.
pub(super) fn ranges(ends: &[usize]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    ends.iter().map(move |&end| std::mem::replace(&mut start, end)..end)
}

/// A hash of a sequence of tokens.
pub(super) fn hash_of_tokens(tokens: &[Token]) -> u64 {
    xxh3_64(&u64::bytes(tokens))
}
