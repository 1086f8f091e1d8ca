//! A page → its sketch, without allocation once the buffers have grown.
//!
//! In: a [`RawPage`]. Out: its token count, the hash of its token sequence, its min-values; on
//! request its shingle set. The plan is shared and immutable; a sketcher belongs to one thread.

use xxhash_rust::xxh3::xxh3_128;

use crate::feature::shingle::{into_set, shingles};
use crate::method::Plan;
use crate::page::RawPage;
use crate::spill::Fixed;
use crate::text::PageReader;

/// Titles longer than this are cut.
const TITLE_CHARS: usize = 200;

/// Sketches pages for a plan.
pub struct Sketcher<'p> {
    plan: &'p Plan,
    reader: PageReader,
    shingles: Vec<u64>,
    narrow: Vec<u32>,
    /// The min-values of the last page that was sketched.
    pub min_values: Vec<u32>,
    bytes: Vec<u8>,
    title: String,
}

/// What every page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFacts<'s> {
    /// Number of tokens.
    pub tokens: u32,
    /// Hash of the token sequence.
    pub identity: u128,
    /// The title in the markup.
    pub title: Option<&'s str>,
}

impl<'p> Sketcher<'p> {
    /// A sketcher for `plan`.
    #[must_use]
    pub fn new(plan: &'p Plan, keep_case: bool) -> Sketcher<'p> {
        Sketcher {
            plan,
            reader: PageReader::new(keep_case),
            shingles: Vec::new(),
            narrow: Vec::new(),
            min_values: Vec::new(),
            bytes: Vec::new(),
            title: String::new(),
        }
    }

    /// Reads a page: its facts, and its shingles for what follows.
    pub fn read(&mut self, page: &RawPage<'_>) -> PageFacts<'_> {
        let (tokens, title) = self.reader.tokens(page);
        self.title.clear();
        for word in title.or(page.title.as_deref()).unwrap_or_default().split_whitespace() {
            if self.title.chars().count() > TITLE_CHARS {
                break;
            }
            if !self.title.is_empty() {
                self.title.push(' ');
            }
            self.title.extend(word.chars().take(TITLE_CHARS));
        }
        self.bytes.clear();
        u64::encode(tokens, &mut self.bytes);
        shingles(tokens, self.plan.ngram, &mut self.shingles);
        PageFacts {
            tokens: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            identity: xxh3_128(&self.bytes),
            title: Some(self.title.as_str()).filter(|title| !title.is_empty()),
        }
    }

    /// The band keys of the page just read.
    pub fn keys(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.plan.hasher.min_values(&self.shingles, &mut self.narrow, &mut self.min_values);
        self.plan.bands.keys(&self.min_values, &mut self.bytes)
    }

    /// The shingle set and min-values of the page just read.
    pub fn set(&mut self) -> (&[u64], &[u32]) {
        self.plan.hasher.min_values(&self.shingles, &mut self.narrow, &mut self.min_values);
        into_set(&mut self.shingles);
        (&self.shingles, &self.min_values)
    }
}
