//! The table of all pages of a run.
//!
//! In: pages in the order (source, record), as they are sketched. Out: where each page is, how long
//! it is, what it is called. What is looked at all the time is in memory, the rest in files where there is much of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::page::{Captured, PageId, PageOrigin, PageRange, PageVec, SourceId};
use crate::read::{Wanted, WantedRecord};
use crate::spill::{Column, Scratch, Spill};
use crate::text::Scope;

/// Memory a page takes through the whole run, with room for sorting: what of the table is always in memory, the
/// identity sets, one band of keys while it is joined, the clusters. This is the floor of `memory`.
pub const BYTES_PER_PAGE: u64 = 80;

/// What a page takes beside that, in memory or in files: where it is, its hashes, and what it is called, more or less.
pub const TABLE_BYTES_PER_PAGE: u64 = 112;

const NO_OFFSET: u64 = u64::MAX;
const NO_STRING: u32 = u32::MAX;

/// All pages of a run.
pub struct PageTable {
    /// Where pages come from: each row holds from its page on, up to the next row.
    origins: Vec<(PageId, PageOrigin)>,
    /// The source of pages: each row holds from its page on, up to the next row.
    sources: Vec<(PageId, SourceId)>,
    record: Column<u64>,
    offset: Column<u64>,
    length: Column<u64>,
    /// Tokens of each page.
    pub tokens: PageVec<u32>,
    /// Hash of each page's token sequence; empty if they are not known.
    identity: Column<u128>,
    /// Hash of each page's whole text; 0 where it is not known.
    text_hash: Column<u64>,
    /// Which part of each page is compared; nothing where it is not HTML.
    pub scope: PageVec<Option<Scope>>,
    /// What the keep policy orders by, ascending; empty if it is the position alone.
    pub rank_keys: PageVec<f64>,
    strings: Spill<u8>,
    string_starts: Column<u64>,
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

/// How the memory of what can be in files is divided.
struct Shares {
    strings: usize,
    /// Of each column of numbers.
    numbers: usize,
    identities: usize,
}

impl Shares {
    fn of(limit_bytes: usize) -> Shares {
        // A page has 40 bytes of numbers, an identity of 16, and about as many bytes of strings.
        let sixteenth = limit_bytes / 16;
        Shares { strings: sixteenth * 8, numbers: sixteenth / 8 * 9, identities: sixteenth / 4 * 9 }
    }
}

impl PageTable {
    /// An empty table; what is not always in memory goes to `directory` when it outgrows `limit_bytes`.
    #[must_use]
    pub fn new(directory: &Path, limit_bytes: usize) -> PageTable {
        let shares = Shares::of(limit_bytes);
        let numbers = |name: &str| Column::new(directory.join(name), shares.numbers);
        PageTable {
            origins: Vec::new(),
            sources: Vec::new(),
            record: numbers("page-records"),
            offset: numbers("page-offsets"),
            length: numbers("page-lengths"),
            tokens: PageVec::new(),
            identity: Column::new(directory.join("page-identities"), shares.identities),
            text_hash: numbers("page-text-hashes"),
            scope: PageVec::new(),
            rank_keys: PageVec::new(),
            strings: Spill::new(directory.join("page-strings"), shares.strings),
            string_starts: numbers("page-string-starts"),
            renamed: HashMap::new(),
            captured: Vec::new(),
            revisits: BTreeMap::new(),
        }
    }

    /// Lowers the memory that what can be in files may take, as of the next page.
    pub fn lower_limit(&mut self, limit_bytes: usize) {
        let shares = Shares::of(limit_bytes);
        let numbers =
            [&mut self.record, &mut self.offset, &mut self.length, &mut self.text_hash, &mut self.string_starts];
        { numbers }.into_iter().for_each(|column| column.lower_limit(shares.numbers));
        self.identity.lower_limit(shares.identities);
        self.strings.lower_limit(shares.strings);
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// All pages, ascending.
    #[must_use]
    pub fn all(&self) -> PageRange {
        self.tokens.pages()
    }

    /// Bytes that what can be in files takes in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let numbers = [&self.record, &self.offset, &self.length, &self.text_hash, &self.string_starts];
        let numbers = numbers.map(Column::memory_bytes).iter().sum::<usize>();
        numbers + self.identity.memory_bytes() + self.strings.memory_bytes()
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
        if self.sources.last().is_none_or(|last| last.1 != page.source) {
            self.sources.push((PageId::from_index(self.len()), page.source));
        }
        self.record.push(page.record)?;
        self.offset.push(page.offset.unwrap_or(NO_OFFSET))?;
        self.length.push(page.length)?;
        self.tokens.push(page.tokens);
        if let Some(identity) = page.identity {
            self.identity.push(identity)?;
        }
        self.text_hash.push(page.text_hash)?;
        self.string_starts.push(self.strings.len())?;
        self.scope.push(page.scope);
        self.rank_keys.extend(page.rank_key);
        let PageStrings { id, url, title } = page.strings;
        for text in [Some(id), url, title] {
            let length = text.map_or(NO_STRING, |text| u32::try_from(text.len()).unwrap_or(NO_STRING));
            self.strings.append(&length.to_le_bytes())?;
            self.strings.append(text.unwrap_or_default().as_bytes())?;
        }
        Ok(())
    }

    /// To be called after the last page.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        let numbers =
            [&mut self.record, &mut self.offset, &mut self.length, &mut self.text_hash, &mut self.string_starts];
        { numbers }.into_iter().try_for_each(Column::finish)?;
        self.identity.finish()?;
        self.strings.finish()
    }

    /// Id, URL and title of a page.
    ///
    /// # Errors
    /// When the file of strings cannot be read.
    pub fn strings<'a>(&'a self, page: PageId, scratch: &'a mut Scratch<u8>) -> Result<PageStrings<'a>> {
        let starts = self.string_starts.values();
        let end = starts.get(page.index() + 1).copied().unwrap_or(self.strings.len());
        let mut bytes = self.strings.read(starts[page.index()]..end, scratch)?;
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
            hashes.push(xxh3_64(self.strings(page, &mut scratch)?.id.as_bytes()));
        }
        hashes.par_sort_unstable();
        let repeated: HashSet<u64> = hashes.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect();
        if repeated.is_empty() {
            return Ok(0);
        }
        let mut renamed = Vec::new();
        let mut seen = HashSet::new();
        for page in self.all() {
            let id = self.strings(page, &mut scratch)?.id;
            if repeated.contains(&xxh3_64(id.as_bytes())) && !seen.insert(id.to_owned()) {
                renamed.push((page, id.to_owned()));
            }
        }
        let mut taken = HashSet::new();
        for (page, id) in &renamed {
            let mut new = format!("{id}@{}:{}", name(self.source_of(*page)), self.record[*page]);
            let is_taken = |id: &str| hashes.binary_search(&xxh3_64(id.as_bytes())).is_ok();
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

    /// The hash of a page's token sequence, if it is known.
    #[must_use]
    pub fn identity(&self, page: PageId) -> Option<u128> {
        self.identity.values().get(self.with_text(page).index()).copied()
    }

    /// The hash of a page's whole text; 0 where it is not known.
    #[must_use]
    pub fn text_hash(&self, page: PageId) -> u64 {
        self.text_hash[self.with_text(page)]
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

    /// The source of a page.
    #[must_use]
    pub fn source_of(&self, page: PageId) -> SourceId {
        self.sources[self.sources.partition_point(|row| row.0 <= page) - 1].1
    }

    /// The record a page is.
    #[must_use]
    pub fn place(&self, page: PageId) -> WantedRecord {
        WantedRecord {
            source: self.source_of(page),
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
        let at = self.sources.partition_point(|row| row.1 < source);
        let start = |at: usize| self.sources.get(at).map_or(self.len(), |row| row.0.index());
        let is_there = self.sources.get(at).is_some_and(|row| row.1 == source);
        let (start, end) = (start(at), start(at + usize::from(is_there)));
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
        assert_eq!((table.identity(page(1)), table.tokens[page(1)], table.with_text(page(1))), (Some(0), 10, page(0)));
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
