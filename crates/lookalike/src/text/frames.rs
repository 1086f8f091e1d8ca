//! Frames, learnt from the pages at hand: what a site puts around its stories.
//!
//! In: the blocks of a sample of pages. Out: for groups of pages with like markup and menus, the blocks that are frame.
//! A block is frame if it stands on pages of its group whose other text differs, and if most pages that have its place
//! in the markup have it there. Contexts are counted, not occurrences: copies of one story have the same rest, so
//! that a story does not become frame however often it is copied. What is learnt depends neither on threads nor on
//! the order of pages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::page::Token;

/// Bins of a signature.
const BINS: usize = 128;
/// A bin that nothing fell into.
const EMPTY_BIN: u32 = u32::MAX;
/// Similarities of markup and menus from which pages are in one group: whole sites, and their sections.
const GROUP_SIMILARITIES: [f64; 2] = [0.3, 0.45];
/// Blocks of at most so many words are what a menu consists of.
const MENU_WORDS: usize = 6;
/// Contexts that make a block frame.
const LEAST_CONTEXTS: usize = 3;
/// Contexts per page that make a block frame.
const CONTEXT_SHARE: f64 = 0.3;
/// Share of the pages with a place in the markup that have the same block there.
const LEAST_DOMINANCE: f64 = 0.5;
/// Words of other text that a page has to have to be a context.
const LEAST_REST: u64 = 20;
/// Words of prose that is as common, for each word of other text that a page has to have to be a context of prose.
const PROSE_TO_REST: u64 = 2;
/// Words of a block of prose.
const PROSE_WORDS: usize = 12;
/// Share of a page's prose in what its markup calls aside, from which the markup is not believed.
const MOST_ASIDE: f64 = 0.3;
/// Pages of a host that are learnt from.
const HOST_PAGES: usize = 256;
/// Pages without a host that are learnt from.
const NAMELESS_PAGES: usize = 4096;
/// Pages from which on a group without a frame is known to have none.
const KNOWN_PAGES: u64 = 8;
/// Blocks of a page that are learnt from.
const PAGE_BLOCKS: usize = 2048;
/// What stands for the host of pages without one.
const NAMELESS: u64 = 0;
/// Pages that are learnt from: with more, fewer of each host, and then of fewer hosts.
const MOST_PAGES: usize = 8192;

/// What is known of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockFacts {
    /// A hash of its tokens.
    pub(super) hash: u64,
    /// Its place in the markup.
    pub(super) path: u64,
    pub(super) words: usize,
    pub(super) is_aside: bool,
    pub(super) is_prose: bool,
}

impl BlockFacts {
    pub(super) fn new(tokens: &[Token], path: u64, is_aside: bool, link_bytes: usize, text_bytes: usize) -> BlockFacts {
        let hash = tokens.iter().fold(tokens.len() as u64, |hash, &token| {
            (hash.rotate_left(23) ^ token).wrapping_mul(0x9fb2_1c65_1e98_df25)
        });
        let is_prose = tokens.len() >= PROSE_WORDS && link_bytes * 2 < text_bytes;
        BlockFacts { hash, path, words: tokens.len(), is_aside, is_prose }
    }
}

/// Whether the blocks that the markup calls aside are left out: not where most of the prose would go.
pub(super) fn believes_markup(blocks: &[BlockFacts]) -> bool {
    let prose = |is_counted: &dyn Fn(&BlockFacts) -> bool| -> usize {
        blocks.iter().filter(|block| block.is_prose && is_counted(block)).map(|block| block.words).sum()
    };
    let all = prose(&|_| true);
    if all == 0 {
        // Without prose, what is left has to be something.
        let left = blocks.iter().filter(|block| !block.is_aside).map(|block| block.words as u64).sum::<u64>();
        return left >= LEAST_REST;
    }
    prose(&|block| block.is_aside) as f64 <= MOST_ASIDE * all as f64
}

/// The markup and the menus of a page, as numbers that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkupSignature {
    /// Pages of different hosts have nothing in common; empty where it is not known.
    host: Arc<str>,
    bins: Vec<u32>,
    /// The bins that something fell into, as bits.
    filled: u128,
}

impl MarkupSignature {
    /// Of the names in the markup, the places of blocks, and short blocks.
    pub(super) fn new(host: Option<&str>, names: &[u64], blocks: &[BlockFacts]) -> MarkupSignature {
        let mut bins = vec![EMPTY_BIN; BINS];
        let mut add = |feature: u64, kind: u64| {
            let hash = (feature ^ kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let hash = hash ^ (hash >> 32);
            #[allow(clippy::cast_possible_truncation)] // the lower half, and seven bits of the upper one
            let (value, bin) = (hash as u32, (hash >> 57) as usize);
            bins[bin] = bins[bin].min(value.min(EMPTY_BIN - 1));
        };
        names.iter().for_each(|&name| add(name, 1));
        for block in blocks {
            add(block.path, 2);
            if block.words <= MENU_WORDS {
                add(block.hash, 3);
            }
        }
        MarkupSignature::of_bins(host.unwrap_or_default(), bins)
    }

    /// What stands for the site of a page of which nothing else is known.
    pub(super) fn site(&self) -> u64 {
        let bytes: Vec<u8> = match self.host.is_empty() {
            true => self.bins.iter().flat_map(|bin| bin.to_le_bytes()).collect(),
            false => self.host.as_bytes().to_vec(),
        };
        xxh3_64(&bytes).max(1)
    }

    fn of_bins(host: &str, bins: Vec<u32>) -> MarkupSignature {
        let filled = bins.iter().enumerate().filter(|(_, value)| **value != EMPTY_BIN);
        let filled = filled.fold(0, |bits, (bin, _)| bits | 1 << bin);
        MarkupSignature { host: host.into(), bins, filled }
    }
}

/// A page that is learnt from.
#[derive(Debug, Clone)]
pub(crate) struct SamplePage {
    signature: MarkupSignature,
    blocks: Vec<BlockFacts>,
    /// How each block begins.
    texts: Vec<Box<str>>,
    /// What it is chosen by.
    key: u64,
}

impl SamplePage {
    /// A page with its blocks, each with the beginning of its text.
    pub(super) fn new(signature: MarkupSignature, blocks: &[BlockFacts], texts: Vec<Box<str>>) -> SamplePage {
        // Pages with the same key are the same to all that follows.
        let facts = blocks.iter().flat_map(|block| [block.hash, block.path, u64::from(block.is_aside)]);
        let mut bytes: Vec<u8> = facts.flat_map(u64::to_le_bytes).collect();
        bytes.extend(signature.bins.iter().flat_map(|bin| bin.to_le_bytes()));
        bytes.extend(signature.host.as_bytes());
        let leaves_out_asides = believes_markup(blocks);
        let is_learnt_from = |block: &BlockFacts| block.words > 0 && !(leaves_out_asides && block.is_aside);
        let learnt_from = blocks.iter().zip(texts).filter(|(block, _)| is_learnt_from(block)).take(PAGE_BLOCKS);
        let (blocks, texts) = learnt_from.map(|(block, text)| (*block, text)).unzip();
        SamplePage { signature, blocks, texts, key: xxh3_64(&bytes) }
    }
}

/// Gathers pages to learn from: of each host those with the smallest hashes.
#[derive(Debug)]
pub(crate) struct FrameLearner {
    /// Of each host, by a hash of its name, the pages by their keys.
    hosts: BTreeMap<u64, BTreeMap<u64, SamplePage>>,
    /// Hosts from this hash on are not learnt from: there are too many.
    end: u64,
    pages: usize,
    /// Pages of a host that are kept at the most; fewer where there are many hosts.
    host_pages: usize,
}

impl Default for FrameLearner {
    fn default() -> FrameLearner {
        FrameLearner { hosts: BTreeMap::new(), end: u64::MAX, pages: 0, host_pages: HOST_PAGES }
    }
}

impl FrameLearner {
    /// Adds a page. Copies of a page are one page.
    pub(crate) fn add(&mut self, page: SamplePage) {
        let host = page.signature.host.as_bytes();
        let host = if host.is_empty() { NAMELESS } else { xxh3_64(host).clamp(NAMELESS + 1, u64::MAX - 1) };
        if host >= self.end {
            return;
        }
        let most = if host == NAMELESS { NAMELESS_PAGES } else { self.host_pages };
        let pages = self.hosts.entry(host).or_default();
        if pages.len() >= most && pages.last_key_value().is_some_and(|(&last, _)| page.key >= last) {
            return;
        }
        self.pages += usize::from(pages.insert(page.key, page).is_none());
        if pages.len() > most {
            pages.pop_last();
            self.pages -= 1;
        }
        // Depends on how many pages the hosts have, not on the order in which they come.
        while self.pages > MOST_PAGES && self.host_pages >= 2 * LEAST_CONTEXTS {
            self.host_pages /= 2;
            for (_, pages) in self.hosts.iter_mut().filter(|(host, _)| **host != NAMELESS) {
                while pages.len() > self.host_pages {
                    pages.pop_last();
                    self.pages -= 1;
                }
            }
        }
        while self.pages > MOST_PAGES
            && let Some((host, pages)) = self.hosts.pop_last()
        {
            (self.end, self.pages) = (host, self.pages - pages.len());
        }
    }

    /// What the pages have taught.
    pub(crate) fn finish(self) -> Frames {
        let mut pages: Vec<&SamplePage> = self.hosts.values().flat_map(BTreeMap::values).collect();
        pages.sort_by_key(|page| page.key); // of equal ones, that of the first host comes first
        let levels = GROUP_SIMILARITIES.into_iter().map(|least| {
            let mut groups = Groups::new(least);
            let mut members: Vec<Vec<&SamplePage>> = Vec::new();
            for page in &pages {
                let group = groups.find(&page.signature).unwrap_or_else(|| groups.add(page.signature.clone()));
                if members.len() <= group as usize {
                    members.push(Vec::new());
                }
                members[group as usize].push(page);
            }
            let frame = |pages: &Vec<&SamplePage>| GroupFrame { pages: pages.len() as u64, blocks: frames_of(pages) };
            let frames: Vec<GroupFrame> = members.iter().map(frame).collect();
            FrameLevel { groups, frames }
        });
        Frames { levels: levels.collect() }
    }
}

/// A block that is frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrameBlock {
    /// Pages of the sample that have it.
    pages: u32,
    /// Different texts around it.
    contexts: u32,
    /// The beginning of its text.
    example: Box<str>,
}

impl FrameBlock {
    /// Pages of the sample that have it.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }
}

/// The blocks that are frame on the pages of a group.
fn frames_of(pages: &[&SamplePage]) -> HashMap<u64, FrameBlock> {
    let mut frames = HashMap::new();
    if pages.len() < LEAST_CONTEXTS {
        return frames;
    }
    let mut blocks: HashMap<u64, u32> = HashMap::new();
    let mut places: HashMap<u64, u32> = HashMap::new();
    let mut at_place: HashMap<(u64, u64), u32> = HashMap::new();
    for page in pages {
        let own: HashSet<u64> = page.blocks.iter().map(|block| block.hash).collect();
        own.into_iter().for_each(|hash| *blocks.entry(hash).or_default() += 1);
        let own: HashSet<u64> = page.blocks.iter().map(|block| block.path).collect();
        own.into_iter().for_each(|path| *places.entry(path).or_default() += 1);
        let own: HashSet<(u64, u64)> = page.blocks.iter().map(|block| (block.hash, block.path)).collect();
        own.into_iter().for_each(|both| *at_place.entry(both).or_default() += 1);
    }
    // A block is as common as the largest power of two that its number of pages reaches.
    let commonness = |hash: u64| blocks[&hash].ilog2() as usize;
    let most = pages.len().ilog2() as usize + 1;
    let mut contexts: HashMap<u64, (HashSet<u64>, u32)> = HashMap::new();
    for page in pages {
        let mut own: Vec<(u64, usize, u64, bool)> = page
            .blocks
            .iter()
            .map(|block| (block.hash, commonness(block.hash), block.words as u64, block.is_prose))
            .collect();
        own.sort_unstable();
        own.dedup_by_key(|block| block.0);
        // Words of prose that is as common.
        let mut prose = vec![0u64; most + 1];
        // What stands for the blocks that are rarer than a block, and how many words they have.
        let mut rest: Vec<(u128, u64, u64)> = vec![(u128::MAX, 0, 0); most + 1];
        for &(hash, common, words, is_prose) in &own {
            prose[common] += if is_prose { words } else { 0 };
            let draw = (u128::from(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 32) / u128::from(words.max(1));
            for rarer in &mut rest[common + 1..] {
                rarer.2 += words;
                if draw < rarer.0 {
                    (rarer.0, rarer.1) = (draw, hash);
                }
            }
        }
        for &(hash, common, _, is_prose) in &own {
            let (_, stands_for_rest, words) = rest[common];
            // A story with a few words of each copy's own is a story.
            let least = if is_prose { LEAST_REST.max(prose[common] / PROSE_TO_REST) } else { LEAST_REST };
            if words >= least && blocks[&hash] as usize >= LEAST_CONTEXTS {
                let seen = contexts.entry(hash).or_default();
                seen.0.insert(stands_for_rest);
                seen.1 += 1;
            }
        }
    }
    // The place that a block has most often.
    let mut dominance: HashMap<u64, (u32, f64)> = HashMap::new();
    for ((hash, path), &count) in &at_place {
        let share = f64::from(count) / f64::from(places[path]);
        let best = dominance.entry(*hash).or_default();
        if (count, share) > *best {
            *best = (count, share);
        }
    }
    for page in pages {
        for (block, text) in page.blocks.iter().zip(&page.texts) {
            let Some((texts, count)) = contexts.get(&block.hash) else { continue };
            let is_frame = texts.len() >= LEAST_CONTEXTS
                && texts.len() as f64 >= CONTEXT_SHARE * f64::from(*count)
                && dominance[&block.hash].1 >= LEAST_DOMINANCE;
            if is_frame {
                let found = frames.entry(block.hash).or_insert_with(|| FrameBlock {
                    pages: blocks[&block.hash],
                    contexts: u32::try_from(texts.len()).expect("there are fewer contexts than pages"),
                    example: text.clone(),
                });
                // The same words can be written in several ways.
                if *text < found.example {
                    found.example = text.clone();
                }
            }
        }
    }
    frames
}

/// Groups of pages with like markup, each by the first page that was in it.
#[derive(Debug, Clone)]
struct Groups {
    least: f64,
    leaders: Vec<MarkupSignature>,
    /// For each host, the leaders by the value of a bin.
    by_bin: HashMap<Arc<str>, LeadersByBin>,
}

/// Leaders by a bin and its value.
type LeadersByBin = HashMap<(usize, u32), Vec<u32>>;

impl Groups {
    fn new(least: f64) -> Groups {
        Groups { least, leaders: Vec::new(), by_bin: HashMap::new() }
    }

    fn add(&mut self, leader: MarkupSignature) -> u32 {
        let group = u32::try_from(self.leaders.len()).expect("there are fewer groups than pages");
        let by_bin = self.by_bin.entry(Arc::clone(&leader.host)).or_default();
        for (bin, &value) in leader.bins.iter().enumerate().filter(|(_, value)| **value != EMPTY_BIN) {
            by_bin.entry((bin, value)).or_default().push(group);
        }
        self.leaders.push(leader);
        group
    }

    /// The group that a page belongs to: the one with the most similar leader.
    fn find(&self, page: &MarkupSignature) -> Option<u32> {
        let by_bin = self.by_bin.get(&page.host)?;
        let mut shared = vec![0u32; self.leaders.len()];
        let mut met = Vec::new();
        for (bin, &value) in page.bins.iter().enumerate().filter(|(_, value)| **value != EMPTY_BIN) {
            for &group in by_bin.get(&(bin, value)).into_iter().flatten() {
                if shared[group as usize] == 0 {
                    met.push(group);
                }
                shared[group as usize] += 1;
            }
        }
        let similarity = |group: u32| {
            let all = (page.filled | self.leaders[group as usize].filled).count_ones();
            f64::from(shared[group as usize]) / f64::from(all)
        };
        let near = met.into_iter().map(|group| (similarity(group), group));
        near.filter(|row| row.0 >= self.least)
            .max_by(|one, two| one.0.total_cmp(&two.0).then(two.1.cmp(&one.1)))
            .map(|row| row.1)
    }
}

/// The groups at one similarity, and the frame of each.
#[derive(Debug, Clone)]
struct FrameLevel {
    groups: Groups,
    frames: Vec<GroupFrame>,
}

/// The frame of a group.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupFrame {
    /// Pages of the sample that are in the group.
    pages: u64,
    blocks: HashMap<u64, FrameBlock>,
}

impl GroupFrame {
    /// A block, if it is frame.
    pub(super) fn block(&self, hash: u64) -> Option<&FrameBlock> {
        self.blocks.get(&hash)
    }

    /// Whether enough pages were seen to say that what is not frame is not.
    fn is_known(&self) -> bool {
        self.pages >= KNOWN_PAGES || !self.blocks.is_empty()
    }
}

/// The frames of a corpus.
#[derive(Debug, Clone)]
pub struct Frames {
    levels: Vec<FrameLevel>,
}

/// A group of pages with like markup, or a block of its frame, as they are stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FrameRow {
    /// The host of the group's pages; empty where it is not known.
    pub(crate) site: String,
    /// The similarity of markup from which pages are in the group.
    pub(crate) similarity: f64,
    /// The number of the group among those of this similarity.
    pub(crate) group: u64,
    /// What the markup of the group is like; only in its first row, which is not about a block.
    pub(crate) markup: Option<String>,
    /// The hash of the block.
    pub(crate) block: Option<u64>,
    pub(crate) pages: u64,
    pub(crate) contexts: u64,
    pub(crate) example: String,
}

impl Frames {
    /// Everything that was learnt, in an order that is always the same.
    pub(crate) fn rows(&self) -> impl Iterator<Item = FrameRow> + '_ {
        self.levels.iter().flat_map(|level| {
            level.groups.leaders.iter().zip(&level.frames).enumerate().flat_map(move |(group, (leader, frame))| {
                let row = move |block, found: Option<&FrameBlock>| FrameRow {
                    site: leader.host.to_string(),
                    similarity: level.groups.least,
                    group: group as u64,
                    markup: None,
                    block,
                    pages: found.map_or(0, |found| u64::from(found.pages)),
                    contexts: found.map_or(0, |found| u64::from(found.contexts)),
                    example: found.map_or_else(String::new, |found| found.example.to_string()),
                };
                let bins: String = leader.bins.iter().map(|bin| format!("{bin:08x}")).collect();
                let mut blocks: Vec<(&u64, &FrameBlock)> = frame.blocks.iter().collect();
                blocks.sort_unstable_by_key(|(hash, found)| (std::cmp::Reverse(found.pages), **hash));
                let first = FrameRow { markup: Some(bins), pages: frame.pages, ..row(None, None) };
                [first].into_iter().chain(blocks.into_iter().map(move |(&hash, found)| row(Some(hash), Some(found))))
            })
        })
    }

    /// From stored rows.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn from_rows(rows: impl IntoIterator<Item = FrameRow>) -> Result<Frames, String> {
        let mut levels: Vec<FrameLevel> = Vec::new();
        for row in rows {
            if levels.last().is_none_or(|level| level.groups.least.total_cmp(&row.similarity).is_ne()) {
                levels.push(FrameLevel { groups: Groups::new(row.similarity), frames: Vec::new() });
            }
            let level = levels.last_mut().expect("one was just added");
            if let Some(markup) = &row.markup {
                let bins = (0..BINS).map(|bin| u32::from_str_radix(markup.get(bin * 8..bin * 8 + 8)?, 16).ok());
                let bins = bins.collect::<Option<Vec<u32>>>().filter(|_| markup.len() == BINS * 8);
                let bins = bins.ok_or("has a group whose markup cannot be understood")?;
                level.groups.add(MarkupSignature::of_bins(&row.site, bins));
                level.frames.push(GroupFrame { pages: row.pages, blocks: HashMap::new() });
            }
            if level.frames.len() as u64 != row.group + 1 {
                return Err("has groups that are not in order".to_owned());
            }
            let count = |number: u64| u32::try_from(number).map_err(|_| "has a number that is too large".to_owned());
            if let Some(block) = row.block {
                let (pages, contexts, example) = (count(row.pages)?, count(row.contexts)?, row.example.into());
                let frame = level.frames.last_mut().expect("its group comes first");
                frame.blocks.insert(block, FrameBlock { pages, contexts, example });
            }
        }
        Ok(Frames { levels })
    }

    /// What stands for the site of a page: its host, or the pages with like markup.
    pub(super) fn site(&self, page: &MarkupSignature) -> u64 {
        let like = self.levels.first().and_then(|level| Some(&level.groups.leaders[level.groups.find(page)? as usize]));
        like.unwrap_or(page).site()
    }

    /// The frames of a page's groups; nothing if nothing is known of pages like this one.
    pub(super) fn of(&self, page: &MarkupSignature) -> Vec<&GroupFrame> {
        let frames = self.levels.iter().filter_map(|level| Some(&level.frames[level.groups.find(page)? as usize]));
        frames.filter(|frame| frame.is_known()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::RawPage;
    use crate::text::{PageReader, Scope, TextOptions};

    const OPTIONS: TextOptions = TextOptions {
        scope: Scope::Story,
        content: true,
        keep_case: false,
        mask_volatile: false,
        raw: false,
        blocks: false,
        words: false,
        scripts: false,
    };

    /// Sentences that no other number has.
    fn story(number: usize) -> String {
        let sentence = |n: usize| {
            format!(
                "<p>Story {number} tells in part {n} what happened to keeper{number}x{n} of lamp{number}x{n} that day."
            )
        };
        (0..8).map(sentence).collect()
    }

    fn page(story: &str) -> String {
        format!(
            "<html><head><title>The Daily Lamp</title></head><body><div class='top'>The Daily Lamp</div>\
             <div class='links'><ul><li>Home<li>World<li>Sports<li>Weather today</ul></div>\
             <div class='text'>{story}</div>\
             <div class='bottom'><p>The Daily Lamp has been published at the harbour since the year the lighthouse was lit.</div>"
        )
    }

    fn learn<'p>(pages: impl IntoIterator<Item = &'p String>) -> Arc<Frames> {
        let mut learner = FrameLearner::default();
        let mut reader = PageReader::new(OPTIONS);
        pages.into_iter().for_each(|page| learner.add(reader.sample(&RawPage::html(page)).unwrap()));
        Arc::new(learner.finish())
    }

    /// What is left of a page.
    fn left(frames: &Arc<Frames>, page: &str) -> String {
        let mut reader = PageReader::new(OPTIONS).without(Some(Arc::clone(frames)));
        let page = RawPage::html(page);
        reader.read(&page).content.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_frame_of_different_stories_is_left_out_and_the_stories_stay() {
        let pages: Vec<String> = (0..12).map(|number| page(&story(number))).collect();
        let frames = learn(&pages);
        for (number, page) in pages.iter().enumerate() {
            let left = left(&frames, page);
            assert!(!left.contains("Daily Lamp") && !left.contains("Sports") && !left.contains("harbour"), "{left}");
            assert!(left.starts_with(&format!("Story {number} tells in part 0")), "{left}");
            assert_eq!(left.matches("tells in part").count(), 8, "{left}");
        }
        // Also of a page that was not learnt from; a stub has its few words and nothing else.
        assert!(left(&frames, &page(&story(99))).starts_with("Story 99"));
        assert_eq!(left(&frames, &page("<p>This page has moved.")), "This page has moved.");
    }

    #[test]
    fn copies_of_a_story_do_not_become_frame() {
        // Forty copies that differ in a date, among few other stories of the site.
        let copy = |day: usize| page(&format!("<p>Printed on day {day}{}", story(1)));
        let pages: Vec<String> = (0..40).map(copy).chain((2..12).map(|number| page(&story(number)))).collect();
        let frames = learn(&pages);
        assert_eq!(left(&frames, &pages[0]).matches("tells in part").count(), 8);
        // The same without any other story: nothing says what is frame.
        let frames = learn(&pages[..40]);
        assert!(left(&frames, &pages[0]).contains("tells in part 7"));
    }

    #[test]
    fn little_is_learnt_from_little() {
        for pages in [vec![], vec![page(&story(1))], vec![page(&story(1)), page(&story(1))], vec![page("a"), page("b")]]
        {
            let frames = learn(&pages);
            assert!(frames.rows().all(|row| row.block.is_none()));
            assert!(left(&frames, &page(&story(1))).contains("tells in part 7"));
        }
        assert_eq!(left(&learn(&[]), ""), "");
    }

    #[test]
    fn one_template_with_one_word_changed_is_not_a_frame() {
        // The rest of such a page is too little to say that it is another page.
        let pages: Vec<String> = (0..30).map(|number| page(&format!("<p>Number {number}"))).collect();
        assert!(left(&learn(&pages), &pages[0]).contains("lighthouse"));
    }

    #[test]
    fn sites_that_look_different_are_learnt_apart() {
        let other = |number: usize| {
            format!(
                "<html><body><table class='shell'><tr><td class='navi'>News Archive Contact</td><td class='main'>{}</td></tr>\
                 <tr><td class='imprint'>Published by Valley Press</td></tr></table>",
                story(number)
            )
        };
        // Each story stands on both sites, in two different frames: it is the story all the same.
        let pages: Vec<String> = (0..12).flat_map(|number| [page(&story(number)), other(number)]).collect();
        let frames = learn(&pages);
        assert_eq!(left(&frames, &pages[0]), left(&frames, &pages[1]));
        assert!(left(&frames, &pages[0]).starts_with("Story 0"));
    }

    #[test]
    fn what_is_learnt_does_not_depend_on_the_order_and_survives_storing() {
        let pages: Vec<String> = (0..20).map(|number| page(&story(number))).collect();
        let one: Vec<FrameRow> = learn(&pages).rows().collect();
        let other: Vec<FrameRow> = learn(pages.iter().rev()).rows().collect();
        assert_eq!(one, other);
        assert!(one.iter().any(|row| row.example == "Sports" && row.pages == 20 && row.contexts == 20), "{one:?}");
        let again = Frames::from_rows(one.clone()).unwrap();
        assert_eq!(again.rows().collect::<Vec<_>>(), one);
        let mut wrong = one.clone();
        wrong[0].markup = Some("xyz".to_owned());
        assert!(Frames::from_rows(wrong).is_err());
        assert!(Frames::from_rows(one[1..].to_vec()).is_err());
    }

    #[test]
    fn markup_is_not_believed_where_it_calls_the_story_an_aside() {
        let pages: Vec<String> =
            (0..12).map(|number| page(&format!("<div class='sidebar'>{}</div>", story(number)))).collect();
        assert!(left(&learn(&pages), &pages[3]).contains("Story 3 tells in part 7"));
        let with_menu: Vec<String> =
            (0..12).map(|number| page(&format!("<div class='menu'>Topic {number}</div>{}", story(number)))).collect();
        assert!(!left(&learn(&with_menu), &with_menu[3]).contains("Topic"));
    }

    #[test]
    fn copies_with_a_few_words_of_their_own_do_not_become_frame() {
        let own = |day: usize| (0..25).map(|n| format!("reader{day}x{n} ")).collect::<String>();
        for copies in [3, 8, 40] {
            let copy = |day: usize| page(&format!("{}<p>{}", story(1), own(day)));
            let pages: Vec<String> = (0..copies).map(copy).chain([page(&story(2))]).collect();
            assert_eq!(left(&learn(&pages), &pages[0]).matches("tells in part").count(), 8, "{copies} copies");
        }
    }

    #[test]
    fn a_page_that_is_all_form_or_menu_is_not_emptied() {
        let table =
            |number: usize| (0..30).map(|n| format!("<tr><td>item {number}-{n}<td>{}", number * n)).collect::<String>();
        let pages: Vec<String> = (0..12)
            .map(|number| {
                format!("<html><body><p>Quote of the day<div class='menu'><table>{}</table></div>", table(number))
            })
            .collect();
        assert!(left(&learn(&pages), &pages[5]).contains("item 5-29"));
    }

    #[test]
    fn many_hosts_are_learnt_from_in_little_memory_whatever_their_order() {
        let add = |learner: &mut FrameLearner, host: usize, number: usize| {
            let html = page(&story(number));
            let mut page = RawPage::html(&html);
            page.url = Some(format!("https://host{host}.example/").into());
            learner.add(PageReader::new(OPTIONS).sample(&page).unwrap());
        };
        let hosts: Vec<(usize, usize)> = (0..60).flat_map(|host| (0..6).map(move |number| (host, number))).collect();
        let (mut one, mut other) = (FrameLearner::default(), FrameLearner::default());
        hosts.iter().for_each(|&(host, number)| add(&mut one, host, number));
        hosts.iter().rev().for_each(|&(host, number)| add(&mut other, host, number));
        assert_eq!(one.pages, 360);
        let (one, other) = (one.finish(), other.finish());
        assert!(one.rows().eq(other.rows()));
        assert_eq!(one.levels[0].groups.leaders.len(), 60, "hosts have nothing in common");
    }
}
