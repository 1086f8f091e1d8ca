//! What is on half of the pages of a corpus is its frame: menus, headers, footers.
//!
//! Pages with prose are compared by it, whatever surrounds it. Of pages without, whose few words would drown in
//! the frame, the frame is left out; another version of the same site has another one.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::config::Config;
use crate::error::Result;
use crate::page::{RawPage, Token};
use crate::read::Corpus;
use crate::text::{PageReader, Scope, TextOptions};
use crate::transfer::ngrams::sequence_hash;

/// At most so many pages are examined for frames.
const SAMPLE: u64 = 20_000;
/// A corpus of fewer pages has no frame.
const FEWEST_PAGES: u64 = 8;

/// The blocks of a corpus's frame, and the words of half of its titles.
#[derive(Default)]
pub(super) struct Frame {
    blocks: HashSet<u64>,
    title: HashSet<Token>,
}

/// The blocks of a page, as ranges of its tokens.
fn blocks(tokens: usize, ends: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let mut start = 0;
    let ends = ends.iter().copied().chain([tokens]);
    ends.map(move |end| std::mem::replace(&mut start, end)..end).filter(|range| !range.is_empty())
}

impl Frame {
    /// Examines the first pages of a corpus.
    pub(super) fn find(corpus: &Corpus, config: &Config, threads: usize) -> Result<Frame> {
        let options = TextOptions { blocks: true, words: false, scope: Scope::Page, ..config.plan().text };
        let (mut counts, mut titles, mut pages) = (HashMap::<u64, u64>::new(), HashMap::<Token, u64>::new(), 0u64);
        corpus.scan().threads(threads).for_each_batch(
            || PageReader::new(options),
            |reader, records| {
                let mut found = Vec::new();
                records.for_each_page(|page| {
                    let read = reader.read(&page);
                    if read.scope.is_some() {
                        let ranges = blocks(read.tokens.len(), read.block_ends);
                        let mut hashes: Vec<u64> = ranges.map(|range| sequence_hash(&read.tokens[range])).collect();
                        hashes.sort_unstable();
                        hashes.dedup();
                        let has_title = read.title.is_some();
                        let first = blocks(read.tokens.len(), read.block_ends).next().filter(|_| has_title);
                        let mut title = first.map_or_else(Vec::new, |range| read.tokens[range].to_vec());
                        title.sort_unstable();
                        title.dedup();
                        found.push((hashes, title));
                    }
                    Ok(())
                })?;
                Ok(found)
            },
            |found| {
                pages += found.len() as u64;
                for (hashes, title) in found {
                    hashes.into_iter().for_each(|hash| *counts.entry(hash).or_default() += 1);
                    title.into_iter().for_each(|token| *titles.entry(token).or_default() += 1);
                }
                Ok(if pages < SAMPLE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            },
        )?;
        if pages < FEWEST_PAGES {
            return Ok(Frame::default());
        }
        let common = |counts: HashMap<u64, u64>| {
            counts.into_iter().filter(|(_, count)| count * 2 >= pages).map(|row| row.0).collect()
        };
        Ok(Frame { blocks: common(counts), title: common(titles) })
    }

    /// The words by which a page is compared: its prose; without prose, everything but the frame.
    pub(super) fn without(&self, page: &RawPage<'_>, reader: &mut PageReader) -> Vec<Token> {
        let read = reader.read(page);
        if read.scope != Some(Scope::Page) || self.blocks.is_empty() {
            return read.tokens.to_vec();
        }
        let mut kept = Vec::new();
        for (at, range) in blocks(read.tokens.len(), read.block_ends).enumerate() {
            let block = &read.tokens[range];
            if self.blocks.contains(&sequence_hash(block)) {
                continue;
            }
            let is_title = at == 0 && read.title.is_some();
            kept.extend(block.iter().filter(|token| !is_title || !self.title.contains(token)));
        }
        // A page that is nothing but frame is compared by it.
        if kept.is_empty() { read.tokens.to_vec() } else { kept }
    }
}
