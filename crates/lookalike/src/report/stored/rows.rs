//! The tables of a result, row by row: for programs that keep what they need of them in a form of their own.

use std::path::Path;

use arrow_array::Array;

use crate::error::Result;
use crate::report::comparison::PageFate;
use crate::report::files;
use crate::report::stored::groups::for_each_fate;
use crate::report::stored::{for_each_batch, real, text, whole};

/// Where a page of a result is, and how many words it had.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PagePlace {
    /// Its source, as `pages.parquet` names it.
    pub source: String,
    /// The number of its record.
    pub record: u64,
    /// Where the record starts, if it has such a place.
    pub offset: Option<u64>,
    /// Bytes of the record.
    pub length: u64,
    /// Words that are compared.
    pub tokens: u32,
}

/// A row of `pages.parquet`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PageRow<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its URL.
    pub url: Option<&'a str>,
    /// Its title.
    pub title: Option<&'a str>,
    /// Its source.
    pub source: &'a str,
    /// The number of its record.
    pub record: u64,
    /// Where the record starts.
    pub offset: Option<u64>,
    /// Bytes of the record.
    pub length: u64,
    /// Words that are compared.
    pub tokens: u32,
    /// The first page with the same words.
    pub identity: &'a str,
    /// For a revisit, the page that has its text.
    pub revisit_of: Option<&'a str>,
}

impl PageRow<'_> {
    /// Where it is.
    #[must_use]
    pub fn place(&self) -> PagePlace {
        let PageRow { source, record, offset, length, tokens, .. } = *self;
        PagePlace { source: source.to_owned(), record, offset, length, tokens }
    }
}

/// A row of `pairs.parquet` or `near_misses.parquet`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PairRow<'a> {
    /// The first page.
    pub left: &'a str,
    /// The second.
    pub right: &'a str,
    /// Exact similarity of what was compared.
    pub similarity: f64,
    /// Similarity of the whole pages.
    pub page_similarity: Option<f64>,
    /// Whether the pair was accepted.
    pub is_accepted: bool,
}

/// Shows every page of the result in `directory`, in the order of the table.
///
/// # Errors
/// When the directory is not a complete result.
pub fn for_each_page(directory: &Path, mut visit: impl FnMut(PageRow<'_>)) -> Result<()> {
    for_each_batch(&directory.join(files::PAGES.parquet), |batch| {
        let (id, source, identity) = (text(batch, "id")?, text(batch, "source")?, text(batch, "identity")?);
        let (url, title) = (text(batch, "url")?, text(batch, "title")?);
        let (record, offset, length, tokens) =
            (whole(batch, "record")?, whole(batch, "offset")?, whole(batch, "length")?, whole(batch, "tokens")?);
        // Results of the first version have no such column.
        let revisit_of = text(batch, "revisit_of").ok();
        for row in 0..batch.num_rows() {
            visit(PageRow {
                id: id.value(row),
                url: url.is_valid(row).then(|| url.value(row)),
                title: title.is_valid(row).then(|| title.value(row)),
                source: source.value(row),
                record: record.value(row),
                offset: offset.is_valid(row).then(|| offset.value(row)),
                length: length.value(row),
                tokens: u32::try_from(tokens.value(row)).unwrap_or(u32::MAX),
                identity: identity.value(row),
                revisit_of: revisit_of.filter(|column| column.is_valid(row)).map(|column| column.value(row)),
            });
        }
        Ok(())
    })
}

/// Shows what became of every page, in the order of the table.
///
/// # Errors
/// As [`for_each_page`].
pub fn for_each_page_fate(directory: &Path, visit: impl FnMut(PageFate)) -> Result<()> {
    for_each_fate(directory, visit)
}

/// Shows every accepted pair, then every pair that was close.
///
/// # Errors
/// As [`for_each_page`].
pub fn for_each_pair(directory: &Path, mut visit: impl FnMut(PairRow<'_>)) -> Result<()> {
    for (table, is_accepted) in [(files::PAIRS, true), (files::NEAR_MISSES, false)] {
        for_each_batch(&directory.join(table.parquet), |batch| {
            let (left, right, similarity) = (text(batch, "left")?, text(batch, "right")?, real(batch, "similarity")?);
            let page_similarity = real(batch, "page_similarity").ok();
            for row in 0..batch.num_rows() {
                visit(PairRow {
                    left: left.value(row),
                    right: right.value(row),
                    similarity: similarity.value(row),
                    page_similarity: page_similarity.filter(|of| of.is_valid(row)).map(|of| of.value(row)),
                    is_accepted,
                });
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Shows when pages were captured, in seconds since 1970, as far as the result is of a web archive and says it.
///
/// # Errors
/// As [`for_each_page`].
pub fn for_each_capture(directory: &Path, mut visit: impl FnMut(&str, u64)) -> Result<()> {
    let path = directory.join(files::CAPTURES.parquet);
    if !path.exists() {
        return Ok(());
    }
    for_each_batch(&path, |batch| {
        let (id, seconds) = (text(batch, "id")?, whole(batch, "seconds")?);
        (0..batch.num_rows())
            .filter(|&row| seconds.is_valid(row))
            .for_each(|row| visit(id.value(row), seconds.value(row)));
        Ok(())
    })
}
