//! The table of all pages of a run: numbers in memory, strings in a file where there are many.
//!
//! In: pages in the order (source, record), as they are sketched. Out: where each page is, how long
//! it is, what it is called. Costs [`BYTES_PER_PAGE`] of memory a page; this is the floor of
//! `memory`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::page::{Captured, PageId, PageOrigin, PageRange, PageVec, SourceId};
use crate::read::{Wanted, WantedRecord};
use crate::spill::{Scratch, Spill};
use crate::text::Scope;

/// Memory a page takes through the whole run, with room for sorting: the columns below, the
/// identity sets, one band of keys while it is joined, the clusters.
pub const BYTES_PER_PAGE: u64 = 176;

const NO_OFFSET: u64 = u64::MAX;
const NO_STRING: u32 = u32::MAX;

/// All pages of a run.
pub struct PageTable {
    /// Where pages come from: each row holds from its page on, up to the next row.
    origins: Vec<(PageId, PageOrigin)>,
    source: PageVec<SourceId>,
    record: PageVec<u64>,
    offset: PageVec<u64>,
    length: PageVec<u64>,
    /// Tokens of each page.
    pub tokens: PageVec<u32>,
    /// Hash of each page's token sequence; empty if they are not known.
    pub identity: PageVec<u128>,
    /// Hash of each page's whole text; 0 where it is not known.
    pub text_hash: PageVec<u64>,
    /// Which part of each page is compared; nothing where it is not HTML.
    pub scope: PageVec<Option<Scope>>,
    /// What the keep policy orders by, ascending; empty if it is the position alone.
    pub rank_keys: PageVec<f64>,
    strings: Spill<u8>,
    string_starts: Vec<u64>,
    renamed: HashMap<PageId, String>,
    /// Pages that are captures, ascending, with when they were taken.
    pub captured: Vec<(PageId, Captured)>,
    /// Revisits, each with the page that has its text; none if that is not in the input.
    revisits: BTreeMap<PageId, Option<PageId>>,
}

/// One page's row, on its way into the table.
pub struct NewPage<'a> {
    /// Where it comes from.
    pub origin: PageOrigin,
    /// Number of the source; rows of an index have one that no source has.
    pub source: SourceId,
    /// Number of the record.
    pub record: u64,
    /// Where the record starts.
    pub offset: Option<u64>,
    /// Bytes of the record.
    pub length: u64,
    /// Number of tokens.
    pub tokens: u32,
    /// Hash of the token sequence, if it is known.
    pub identity: Option<u128>,
    /// Hash of the whole text; 0 where it is not known.
    pub text_hash: u64,
    /// Which part is compared; nothing where it is not HTML.
    pub scope: Option<Scope>,
    /// The keep policy's key, if it has one.
    pub rank_key: Option<f64>,
    /// Id, URL and title.
    pub strings: PageStrings<'a>,
}

/// What a page is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStrings<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its URL.
    pub url: Option<&'a str>,
    /// Its title.
    pub title: Option<&'a str>,
}

impl PageTable {
    /// An empty table; strings go to `directory` when they outgrow `limit_bytes`.
    #[must_use]
    pub fn new(directory: &Path, limit_bytes: usize) -> PageTable {
        PageTable {
            origins: Vec::new(),
            source: PageVec::new(),
            record: PageVec::new(),
            offset: PageVec::new(),
            length: PageVec::new(),
            tokens: PageVec::new(),
            identity: PageVec::new(),
            text_hash: PageVec::new(),
            scope: PageVec::new(),
            rank_keys: PageVec::new(),
            strings: Spill::new(directory.join("page-strings"), limit_bytes),
            string_starts: vec![0],
            renamed: HashMap::new(),
            captured: Vec::new(),
            revisits: BTreeMap::new(),
        }
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// All pages, ascending.
    #[must_use]
    pub fn all(&self) -> PageRange {
        self.source.pages()
    }

    /// Whether strings are on disk.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.strings.is_spilled()
    }

    /// Adds a page.
    ///
    /// # Errors
    /// When the file of strings cannot be written.
    pub fn push(&mut self, page: &NewPage<'_>) -> Result<()> {
        if self.origins.last().is_none_or(|last| last.1 != page.origin) {
            self.origins.push((PageId::from_index(self.len()), page.origin));
        }
        self.source.push(page.source);
        self.record.push(page.record);
        self.offset.push(page.offset.unwrap_or(NO_OFFSET));
        self.length.push(page.length);
        self.tokens.push(page.tokens);
        self.identity.extend(page.identity);
        self.text_hash.push(page.text_hash);
        self.scope.push(page.scope);
        self.rank_keys.extend(page.rank_key);
        let PageStrings { id, url, title } = page.strings;
        for text in [Some(id), url, title] {
            let length = text.map_or(NO_STRING, |text| u32::try_from(text.len()).unwrap_or(NO_STRING));
            self.strings.append(&length.to_le_bytes())?;
            self.strings.append(text.unwrap_or_default().as_bytes())?;
        }
        self.string_starts.push(self.strings.len());
        Ok(())
    }

    /// To be called after the last page.
    ///
    /// # Errors
    /// When the file of strings cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        self.strings.finish()
    }

    /// Id, URL and title of a page.
    ///
    /// # Errors
    /// When the file of strings cannot be read.
    pub fn strings<'a>(&'a self, page: PageId, scratch: &'a mut Scratch<u8>) -> Result<PageStrings<'a>> {
        let at = page.index();
        let mut bytes = self.strings.read(self.string_starts[at]..self.string_starts[at + 1], scratch)?;
        let mut next = || {
            let (length, rest) = bytes.split_at_checked(4)?;
            let length = u32::from_le_bytes(length.try_into().ok()?);
            if length == NO_STRING {
                bytes = rest;
                return None;
            }
            let (text, rest) = rest.split_at_checked(length as usize)?;
            bytes = rest;
            std::str::from_utf8(text).ok()
        };
        let (id, url, title) = (next().unwrap_or_default(), next(), next());
        Ok(PageStrings { id: self.renamed.get(&page).map_or(id, String::as_str), url, title })
    }

    /// The id of a page.
    ///
    /// # Errors
    /// When the file of strings cannot be read.
    pub fn id(&self, page: PageId) -> Result<String> {
        Ok(self.strings(page, &mut Scratch::default())?.id.to_owned())
    }

    /// Gives a page another id.
    pub fn rename(&mut self, page: PageId, id: String) {
        self.renamed.insert(page, id);
    }

    /// Gives every page but the first of an id another one, `id@source:record`; returns how many. `name` says what
    /// a source is called.
    ///
    /// # Errors
    /// When the file of strings cannot be read.
    pub fn rename_repeated_ids<'n>(&mut self, name: impl Fn(SourceId) -> &'n str) -> Result<u64> {
        let mut scratch = Scratch::default();
        let mut hashes = Vec::with_capacity(self.len());
        for page in self.all() {
            hashes.push((xxh3_64(self.strings(page, &mut scratch)?.id.as_bytes()), page));
        }
        hashes.par_sort_unstable();
        let mut renamed = Vec::new();
        for same in hashes.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            let mut seen = HashSet::new();
            for &(_, page) in same {
                let id = self.id(page)?;
                if !seen.insert(id.clone()) {
                    renamed.push((page, id));
                }
            }
        }
        renamed.sort_unstable();
        let mut taken = HashSet::new();
        for (page, id) in &renamed {
            let mut new = format!("{id}@{}:{}", name(self.source[*page]), self.record[*page]);
            let is_taken = |id: &str| hashes.binary_search_by_key(&xxh3_64(id.as_bytes()), |row| row.0).is_ok();
            while is_taken(&new) || taken.contains(&new) {
                new.push('@');
            }
            taken.insert(new.clone());
            self.renamed.insert(*page, new);
        }
        Ok(renamed.len() as u64)
    }

    /// Says that a page is a revisit of another one, whose text it shares. Without that one it is no
    /// page.
    pub fn set_revisit(&mut self, page: PageId, original: Option<PageId>) {
        if let Some(original) = original {
            self.tokens[page] = self.tokens[original];
            if let Some(&identity) = self.identity.get(original) {
                self.identity[page] = identity;
            }
            self.text_hash[page] = self.text_hash[original];
            self.scope[page] = self.scope[original];
        }
        self.revisits.insert(page, original);
    }

    /// All revisits, each with the page that has its text.
    pub fn revisits(&self) -> impl Iterator<Item = (PageId, Option<PageId>)> + '_ {
        self.revisits.iter().map(|(&page, &original)| (page, original))
    }

    /// The page that has the text of a revisit.
    #[must_use]
    pub fn original(&self, page: PageId) -> Option<PageId> {
        self.revisits.get(&page).copied().flatten()
    }

    /// The page that has the text of this one: its original if it is a revisit, else itself.
    #[must_use]
    pub fn with_text(&self, page: PageId) -> PageId {
        self.original(page).unwrap_or(page)
    }

    /// Whether this is a revisit.
    #[must_use]
    pub fn is_revisit(&self, page: PageId) -> bool {
        self.revisits.contains_key(&page)
    }

    /// Whether this row is a page: all are, but revisits of something that is not in the input.
    #[must_use]
    pub fn is_page(&self, page: PageId) -> bool {
        self.revisits.get(&page) != Some(&None)
    }

    /// Number of rows that are pages.
    #[must_use]
    pub fn page_count(&self) -> u64 {
        (self.len() - self.revisits.values().filter(|original| original.is_none()).count()) as u64
    }

    /// Where a page comes from.
    #[must_use]
    pub fn origin(&self, page: PageId) -> PageOrigin {
        self.origins[self.origins.partition_point(|row| row.0 <= page) - 1].1
    }

    /// Whether a page is part of the input, and not something that the input is compared with.
    #[must_use]
    pub fn is_input(&self, page: PageId) -> bool {
        self.origin(page) == PageOrigin::Input
    }

    /// What ranks pages before any policy does: what the input is held against, then pages with a text of their own, then the
    /// place of their source in the order of preferred ones.
    #[must_use]
    pub fn rank_class(&self, page: PageId, preference: usize) -> (bool, bool, usize) {
        (self.is_input(page), self.is_revisit(page), preference)
    }

    /// Whether every page is part of the input.
    #[must_use]
    pub fn is_all_input(&self) -> bool {
        self.origins.iter().all(|row| row.1 == PageOrigin::Input)
    }

    /// The record a page is.
    #[must_use]
    pub fn place(&self, page: PageId) -> WantedRecord {
        WantedRecord {
            source: self.source[page],
            record: self.record[page],
            offset: Some(self.offset[page]).filter(|&offset| offset != NO_OFFSET),
            length: self.length[page],
            page,
        }
    }

    /// The records of `pages`, which are ascending. Rows of an index have none.
    #[must_use]
    pub fn wanted(&self, pages: &[PageId]) -> Wanted {
        let has_record = |page: PageId| self.origin(page) != PageOrigin::IndexRow;
        Wanted(pages.iter().filter(|&&page| has_record(page)).map(|&page| self.place(page)).collect())
    }

    /// The pages of a source, which are consecutive.
    #[must_use]
    pub fn pages_of(&self, source: SourceId) -> PageRange {
        let sources = self.source.as_slice();
        let start = sources.partition_point(|&known| known < source);
        let end = sources.partition_point(|&known| known <= source);
        PageId::from_index(start).up_to(PageId::from_index(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revisit_has_the_words_of_its_original() {
        let directory = tempfile::tempdir().unwrap();
        let mut table = PageTable::new(directory.path(), 1 << 20);
        for record in 0..3 {
            let strings = PageStrings { id: "x", url: None, title: None };
            let (tokens, identity) = (if record == 0 { 10 } else { 0 }, Some(u128::from(record)));
            let (source, offset, length, rank_key) = (SourceId::from_index(0), None, 1, None);
            let origin = PageOrigin::Input;
            table
                .push(&NewPage {
                    origin,
                    source,
                    record,
                    offset,
                    length,
                    tokens,
                    identity,
                    text_hash: 0,
                    scope: None,
                    rank_key,
                    strings,
                })
                .unwrap();
        }
        let page = PageId::new;
        table.set_revisit(page(1), Some(page(0)));
        table.set_revisit(page(2), None);
        assert_eq!((table.identity[page(1)], table.tokens[page(1)], table.with_text(page(1))), (0, 10, page(0)));
        assert!(table.is_page(page(1)) && !table.is_page(page(2)));
    }

    #[test]
    fn pages_know_where_they_come_from() {
        let directory = tempfile::tempdir().unwrap();
        let mut table = PageTable::new(directory.path(), 1 << 20);
        use PageOrigin::{Example, IndexRow, Input};
        let origins = [Input, Input, Example, IndexRow, IndexRow];
        assert!(table.is_all_input());
        for (record, origin) in (1..).zip(origins) {
            let strings = PageStrings { id: "x", url: None, title: None };
            let (source, offset, length, tokens) = (SourceId::from_index(0), None, 1, 1);
            let (identity, rank_key) = (None, None);
            table
                .push(&NewPage {
                    origin,
                    source,
                    record,
                    offset,
                    length,
                    tokens,
                    identity,
                    text_hash: 0,
                    scope: None,
                    rank_key,
                    strings,
                })
                .unwrap();
        }
        let found: Vec<PageOrigin> = table.all().map(|page| table.origin(page)).collect();
        assert_eq!(found, origins);
        assert!(table.is_input(PageId::new(1)) && !table.is_input(PageId::new(2)) && !table.is_all_input());
    }

    #[test]
    fn repeated_ids_get_names_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        // Also with strings on disk, and with a name that is already taken.
        for limit in [0, 1 << 20] {
            let mut table = PageTable::new(directory.path(), limit);
            for (id, record) in [("x", 1), ("y", 2), ("x", 3), ("x@a.jsonl:5", 4), ("x", 5)] {
                let strings = PageStrings { id, url: None, title: Some("t") };
                table
                    .push(&NewPage {
                        origin: PageOrigin::Input,
                        source: SourceId::from_index(0),
                        record,
                        offset: None,
                        length: 1,
                        tokens: 1,
                        identity: Some(0),
                        text_hash: 0,
                        scope: None,
                        rank_key: None,
                        strings,
                    })
                    .unwrap();
            }
            table.finish().unwrap();
            assert_eq!(table.rename_repeated_ids(|_| "a.jsonl").unwrap(), 2);
            let ids: Vec<String> = table.all().map(|page| table.id(page).unwrap()).collect();
            assert_eq!(ids, ["x", "y", "x@a.jsonl:3", "x@a.jsonl:5", "x@a.jsonl:5@"]);
            let mut scratch = Scratch::default();
            assert_eq!(
                table.strings(PageId::new(1), &mut scratch).unwrap(),
                PageStrings { id: "y", url: None, title: Some("t") }
            );
            assert_eq!(table.is_spilled(), limit == 0);
            let pages_of = |source| table.pages_of(SourceId::from_index(source));
            assert_eq!((pages_of(0), pages_of(1).len()), (PageId::first(5), 0));
        }
    }
}
