//! Readers, the text stage and segments on any bytes at all, in one thread: what fuzzing calls, and the tests that
//! replay what it found. Nothing here is for users.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::error::Result;
use crate::page::{PageOrigin, RawPage, SourceId};
use crate::page_table::{NewPage, PageStrings, PageTable};
use crate::read::{Corpus, Format, ReadConfig, Source, Wanted};
use crate::text::{PageReader, Scope, TextOptions};

/// The limit on pages here: small, so that it is met.
const MAX_PAGE_BYTES: u64 = 64 << 10;

/// Reads all records of a file, and then all pages again from their places; returns how many there are.
///
/// # Errors
/// When the bytes are in no format that is read.
///
/// # Panics
/// When a page is not the same the second time, or there is no such format.
pub fn reader(format: &str, bytes: Vec<u8>) -> Result<usize> {
    let format: Format = format.parse().expect("the name of a format");
    let config = ReadConfig { max_page_bytes: MAX_PAGE_BYTES, ..ReadConfig::default() };
    let corpus = Corpus::new(vec![Source::in_memory("fuzz", bytes, Some(format))?], &config);
    let mut table = PageTable::new(&std::env::temp_dir(), usize::MAX / 2);
    let first = pages(&corpus, None, Some(&mut table))?;
    let all: Vec<_> = table.all().collect();
    let second = pages(&corpus, Some(&table.wanted(&all)), None)?;
    assert!(first == second, "pages differ when they are read again");
    Ok(first.len())
}

/// The text of every page by its number.
fn pages(corpus: &Corpus, wanted: Option<&Wanted>, mut table: Option<&mut PageTable>) -> Result<BTreeMap<u64, String>> {
    let mut found = BTreeMap::new();
    let new_reader = || PageReader::new(TextOptions::default());
    let text = |reader: &mut PageReader, page: RawPage<'_>| {
        Ok(Some((page.record, page.offset, page.length, reader.text(&page))))
    };
    let collect = |(record, offset, length, text)| {
        if let Some(table) = &mut table {
            let strings = PageStrings { id: "", url: None, title: None };
            let (source, tokens, identity, rank_key) = (SourceId::from_index(0), 0, None, None);
            table.push(&NewPage {
                origin: PageOrigin::Input,
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
            })?;
        }
        found.insert(record, text);
        Ok(ControlFlow::Continue(()))
    };
    match wanted {
        Some(wanted) => corpus.scan().for_each_of(wanted, new_reader, |reader, _, page| text(reader, page), collect)?,
        None => corpus.scan().for_each(new_reader, text, collect)?,
    };
    Ok(found)
}

/// Reads a page in every way there is; returns how many tokens it has.
#[must_use]
pub fn page(bytes: &[u8], charset: Option<&str>) -> usize {
    use crate::page::{Body, Markup};
    let body = || Body::Bytes(bytes.into());
    let mut count = 0;
    for (scope, scripts, raw, words) in [
        (Scope::Page, false, false, false),
        (Scope::Core, true, false, true),
        (Scope::Main, false, false, false),
        (Scope::Story, true, false, true),
        (Scope::Page, false, true, true),
    ] {
        let options = TextOptions {
            no_images: false,
            scope,
            scripts,
            raw,
            words,
            blocks: true,
            content: true,
            mask_volatile: scripts,
            keep_case: raw,
        };
        for markup in [Markup::Html, Markup::Text, Markup::Unknown] {
            let page = RawPage { charset: charset.map(Into::into), ..RawPage::new(body(), markup) };
            count = PageReader::new(options).read(&page).tokens.len();
        }
    }
    count
}

/// Takes a response apart and decodes its body.
#[must_use]
pub fn response(bytes: &[u8]) -> usize {
    crate::read::response_body_bytes(bytes, MAX_PAGE_BYTES)
}

/// Opens bytes as a segment of an index and asks it everything there is to ask; returns how many rows were found.
/// With `sealed`, the checksums are made to fit first, so that what is behind them is met.
pub fn segment(bytes: &[u8], sealed: bool) -> usize {
    crate::index::try_segment(bytes, sealed)
}
