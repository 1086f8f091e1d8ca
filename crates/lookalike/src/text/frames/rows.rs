//! What was learnt, as rows of a table, and back.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::text::frames::groups::{BINS, Groups, MarkupSignature};
use crate::text::frames::{FrameBlock, FrameLevel, Frames, GroupFrame, GroupedBy, HashedMap};

/// A group of pages with like markup, or a block of its frame, as they are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FrameRow {
    /// The host of the group's pages; empty where it is not known.
    pub(crate) site: String,
    /// What the pages of the group have in common.
    pub(crate) grouped_by: GroupedBy,
    /// The similarity from which pages are in the group.
    pub(crate) similarity: f64,
    /// The number of the group among those of its kind.
    pub(crate) group: u64,
    /// What the markup of the group is like; only in its first row, which is not about a block.
    pub(crate) markup: Option<String>,
    /// Whether what the markup calls aside is left out, in the same row, if that is known.
    pub(crate) believes_markup: Option<bool>,
    /// The hash of the block.
    pub(crate) block: Option<u64>,
    pub(crate) pages: u64,
    pub(crate) contexts: u64,
    pub(crate) example: String,
}

impl Frames {
    /// Stands for all that decides what is frame on a page: not for how often it was seen.
    pub(crate) fn decisive_hash(&self) -> u64 {
        let mut hasher = Xxh3::new();
        for level in &self.levels {
            hasher.update(format!("{:?} {}", level.by, level.groups.least).as_bytes());
            for (leader, frame) in level.groups.leaders.iter().zip(&level.frames) {
                hasher.update(format!("{} {:?} {:?}", leader.host, frame.is_known(), frame.believes_markup).as_bytes());
                leader.bins.iter().for_each(|bin| hasher.update(&bin.to_le_bytes()));
                let mut blocks: Vec<u64> = frame.blocks.keys().copied().collect();
                blocks.sort_unstable();
                blocks.iter().for_each(|block| hasher.update(&block.to_le_bytes()));
            }
        }
        hasher.digest()
    }

    /// Everything that was learnt, in an order that is always the same.
    pub(crate) fn rows(&self) -> impl Iterator<Item = FrameRow> + '_ {
        self.levels.iter().flat_map(|level| {
            level.groups.leaders.iter().zip(&level.frames).enumerate().flat_map(move |(group, (leader, frame))| {
                let row = move |block, found: Option<&FrameBlock>| FrameRow {
                    site: leader.host.to_string(),
                    grouped_by: level.by,
                    similarity: level.groups.least,
                    group: group as u64,
                    markup: None,
                    believes_markup: None,
                    block,
                    pages: found.map_or(0, |found| u64::from(found.pages)),
                    contexts: found.map_or(0, |found| u64::from(found.contexts)),
                    example: found.map_or_else(String::new, |found| found.example.to_string()),
                };
                let bins: String = leader.bins.iter().map(|bin| format!("{bin:08x}")).collect();
                let mut blocks: Vec<(&u64, &FrameBlock)> = frame.blocks.iter().collect();
                blocks.sort_unstable_by_key(|(hash, found)| (std::cmp::Reverse(found.pages), **hash));
                let believes_markup = frame.believes_markup;
                let first = FrameRow { markup: Some(bins), believes_markup, pages: frame.pages, ..row(None, None) };
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
            let is_of = |level: &FrameLevel| {
                level.by == row.grouped_by && level.groups.least.total_cmp(&row.similarity).is_eq()
            };
            if !levels.last().is_some_and(is_of) {
                let groups = Groups::new(row.similarity);
                levels.push(FrameLevel { by: row.grouped_by, groups, frames: Vec::new() });
            }
            let level = levels.last_mut().expect("one was just added");
            if let Some(markup) = &row.markup {
                let bins = (0..BINS).map(|bin| u32::from_str_radix(markup.get(bin * 8..bin * 8 + 8)?, 16).ok());
                let bins = bins.collect::<Option<Vec<u32>>>().filter(|_| markup.len() == BINS * 8);
                let bins = bins.ok_or("has a group whose markup cannot be understood")?;
                level.groups.add(MarkupSignature::of_bins(&row.site, bins));
                level.frames.push(GroupFrame {
                    pages: row.pages,
                    blocks: HashedMap::default(),
                    believes_markup: row.believes_markup,
                });
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
        Ok(Frames::new(levels))
    }
}
