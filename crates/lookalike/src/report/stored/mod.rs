//! A result directory → its findings, for jobs that work on results.

pub(crate) mod groups;
pub(crate) mod rows;
pub(crate) mod stricter;
pub(crate) mod texts;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::Deserialize;

use crate::config::{Config, ConfigV1};
use crate::error::{Error, Result};
use crate::names::Named;
use crate::page::{Captured, PageId, PageOrigin, PageVec, ScoredPair, SourceId};
use crate::page_table::{NewPage, PageStrings, PageTable};
use crate::plan::decision::SHORT_STORY_WORDS;
use crate::report::OutputOptions;
use crate::report::comparison::PageFate;
use crate::report::files::{self, TableFiles};
use crate::report::summary::{
    AgainstReport, Capped, FORMAT_VERSION, FilterReport, SizeFilterReport, SourceFile, TableReport, Thresholds,
};
use crate::report::table::cannot_read;
use crate::text::Scope;
use crate::text::frames::{FrameRow, Frames};

/// The parts of `summary.json` that other commands need.
#[derive(Debug, Deserialize)]
pub(crate) struct StoredSummary {
    pub(crate) config: Config,
    pub(crate) config_hash: String,
    /// The thresholds of the last clustering, if it was made again.
    #[serde(default)]
    pub(crate) reclustered: Option<Thresholds>,
    #[serde(default)]
    pub(crate) outputs: OutputOptions,
    pub(crate) files: Vec<SourceFile>,
    /// Pages of the input: in the tables, what comes behind them are examples, or pages of another corpus.
    pub(crate) pages: u64,
    pub(crate) sources: u64,
    pub(crate) source_bytes: u64,
    pub(crate) capped_buckets: u64,
    pub(crate) capped: Vec<Capped>,
    pub(crate) ignored_files: u64,
    #[serde(default)]
    pub(crate) results_not_read: Vec<String>,
    #[serde(default, alias = "passed_over")]
    pub(crate) other_records: BTreeMap<String, u64>,
    #[serde(default)]
    pub(crate) compared: BTreeMap<String, u64>,
    pub(crate) repeated_ids: u64,
    pub(crate) candidate_pairs: u64,
    pub(crate) candidate_pages: u64,
    pub(crate) compared_pairs: u64,
    pub(crate) against: Option<AgainstReport>,
    #[serde(default)]
    pub(crate) antecedents: Vec<String>,
    pub(crate) tables: Option<TableReport>,
    pub(crate) size_filter: Option<SizeFilterReport>,
    pub(crate) filters: Option<FilterReport>,
}

/// Whether a source of a result is an index, which has no texts.
fn is_index(display: &str) -> bool {
    Path::new(display).join("manifest.json").exists()
}

/// The pages of a result.
pub(crate) struct StoredPages {
    pub(crate) pages: PageTable,
    /// The sources' names, by index; rows of an index have a number that none of them has.
    pub(crate) sources: Vec<String>,
    /// For each page the first of its identity set.
    pub(crate) first: PageVec<PageId>,
    pub(crate) ids: PageIds,
    /// What was learnt to be frame, if anything was.
    pub(crate) frames: Option<Arc<Frames>>,
}

impl StoredPages {
    /// Reads a table of pairs, with what decided about each.
    pub(crate) fn pairs(&self, directory: &Path, table: TableFiles) -> Result<Vec<ScoredPair>> {
        let mut pairs = Vec::new();
        self.for_each_pair(directory, table, |pair| {
            pairs.push(pair);
            Ok(())
        })?;
        Ok(pairs)
    }

    /// Shows the pairs of a table in its order, with what decided about each.
    pub(crate) fn for_each_pair(
        &self,
        directory: &Path,
        table: TableFiles,
        mut visit: impl FnMut(ScoredPair) -> Result<()>,
    ) -> Result<()> {
        self.ids.for_each_pair(directory, table, |mut pair| {
            let ends = [pair.left, pair.right];
            // The table has a site for all pages with URLs; it decides about stories alone.
            pair.same_site =
                pair.same_site.filter(|_| ends.iter().all(|&page| self.pages.scope[page] == Some(Scope::Story)));
            pair.is_short = ends.iter().any(|&page| self.pages.tokens[page] < SHORT_STORY_WORDS);
            visit(pair)
        })
    }
}

/// Pages by their ids.
#[derive(Default)]
pub(crate) struct PageIds(HashMap<String, PageId>);

/// Reads `summary.json`.
pub(crate) fn summary(directory: &Path) -> Result<StoredSummary> {
    let path = directory.join(files::SUMMARY);
    if !path.exists() {
        let reason = format!("is not a complete lookalike result (it has no {})", files::SUMMARY);
        return Err(Error::corrupt(directory, reason));
    }
    let bytes = std::fs::read(&path).map_err(Error::io(&path, "read"))?;
    let damaged = |reason: String| Error::corrupt(&path, reason);
    let unclear = |error: serde_json::Error| damaged(format!("is not the summary of a result: {error}"));
    let mut value: serde_json::Value = serde_json::from_slice(&bytes).map_err(unclear)?;
    match value["format_version"].as_u64() {
        Some(1) => {
            // The config of 0.1.0, and the hash that it had there.
            let config: ConfigV1 = serde_json::from_value(value["config"].take()).map_err(unclear)?;
            if value["config_hash"] == format!("{:016x}", config.hash()) {
                let config = config.upgrade()?;
                value["config_hash"] = format!("{:016x}", config.hash()).into();
                value["config"] = serde_json::to_value(&config).map_err(unclear)?;
            }
        }
        Some(version) if version == u64::from(FORMAT_VERSION) => {}
        version => {
            let version = version.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
            return Err(damaged(format!("has {version}; this program reads versions 1 to {FORMAT_VERSION}")));
        }
    }
    let summary: StoredSummary = serde_json::from_value(value).map_err(unclear)?;
    let hash = format!("{:016x}", summary.config.hash());
    if hash != summary.config_hash {
        return Err(damaged(format!(
            "its config has the hash {hash}, not the recorded {}: it was edited, or written by another version",
            summary.config_hash
        )));
    }
    Ok(summary)
}

/// Opens the result in `directory`, with scratch files in `work`.
///
/// # Errors
/// When it is not a complete result.
pub(crate) fn open(directory: &Path, work: &Path) -> Result<(StoredSummary, StoredPages)> {
    Ok((summary(directory)?, pages(directory, work, usize::MAX / 2)?))
}

/// Reads `pages.parquet`.
pub(crate) fn pages(directory: &Path, work: &Path, limit_bytes: usize) -> Result<StoredPages> {
    let mut stored = StoredPages {
        pages: PageTable::new(work, limit_bytes),
        sources: Vec::new(),
        first: PageVec::new(),
        ids: PageIds::default(),
        frames: frames(directory)?,
    };
    let summary = summary(directory)?;
    let index = summary.against.as_ref().map(|against| against.path.as_str()).filter(|path| is_index(path));
    let mut identities: Vec<String> = Vec::new();
    let mut revisits: Vec<(PageId, String)> = Vec::new();
    for_each_batch(&directory.join(files::PAGES.parquet), |batch| {
        let (id, source, identity) = (text(batch, "id")?, text(batch, "source")?, text(batch, "identity")?);
        let (url, title) = (text(batch, "url")?, text(batch, "title")?);
        let (record, offset, length, tokens) =
            (whole(batch, "record")?, whole(batch, "offset")?, whole(batch, "length")?, whole(batch, "tokens")?);
        // Results of the first version have no such column.
        let revisit_of = text(batch, "revisit_of").ok();
        let (text_hash, content) = (text(batch, "text_hash").ok(), text(batch, "content").ok());
        for row in 0..batch.num_rows() {
            let page = PageId::from_index(stored.pages.len());
            let origin = if (page.index() as u64) < summary.pages {
                PageOrigin::Input
            } else if index == Some(source.value(row)) {
                PageOrigin::IndexRow
            } else if summary.against.is_some() {
                PageOrigin::OtherCorpus
            } else {
                PageOrigin::Example
            };
            // A file can be part of the input and of what it is held against.
            let is_next = page.index() as u64 == summary.pages
                || stored.sources.last().is_none_or(|last| last != source.value(row));
            if is_next && origin != PageOrigin::IndexRow {
                stored.sources.push(source.value(row).to_owned());
            }
            let number = stored.sources.len() - usize::from(origin != PageOrigin::IndexRow);
            stored.ids.0.insert(id.value(row).to_owned(), page);
            identities.push(identity.value(row).to_owned());
            let optional =
                |column: &arrow_array::StringArray| column.is_valid(row).then(|| column.value(row).to_owned());
            let (url, title) = (optional(url), optional(title));
            revisits.extend(revisit_of.and_then(optional).map(|original| (page, original)));
            stored.pages.push(&NewPage {
                origin,
                source: SourceId::from_index(number),
                record: record.value(row),
                offset: offset.is_valid(row).then(|| offset.value(row)),
                length: length.value(row),
                tokens: u32::try_from(tokens.value(row)).map_err(|_| "has a page of 2^32 tokens or more".to_owned())?,
                identity: None,
                text_hash: text_hash.and_then(optional).map_or(Ok(0), |hash| hash_number(&hash))?,
                scope: content.and_then(optional).and_then(|name| <Scope as Named>::named(&name)),
                rank_key: None,
                strings: PageStrings { id: id.value(row), url: url.as_deref(), title: title.as_deref() },
            })?;
        }
        Ok(())
    })?;
    stored.pages.finish()?;
    for (page, original) in revisits {
        let original = stored.ids.page(&original, directory)?;
        stored.pages.set_revisit(page, Some(original));
    }
    stored.pages.captured = stored.ids.captured(directory)?;
    stored.first = identities.iter().map(|identity| stored.ids.page(identity, directory)).collect::<Result<_>>()?;
    Ok(stored)
}

/// Reads `frames.parquet`, if there is one.
pub(crate) fn frames(directory: &Path) -> Result<Option<Arc<Frames>>> {
    let path = directory.join(files::FRAMES.parquet);
    if !path.exists() {
        if summary(directory)?.config.leaves_out_frames() {
            let reason =
                "is missing: without it, pages cannot be seen as they were compared; run lookalike dedup again";
            return Err(Error::corrupt(&path, reason));
        }
        return Ok(None);
    }
    let mut rows = Vec::new();
    for_each_batch(&path, |batch| {
        let (site, markup, block, example) =
            (text(batch, "site")?, text(batch, "markup")?, text(batch, "block")?, text(batch, "example")?);
        let (group, pages, contexts) = (whole(batch, "group")?, whole(batch, "pages")?, whole(batch, "contexts")?);
        let (similarity, grouped_by) = (real(batch, "similarity")?, text(batch, "grouped_by")?);
        let believes_markup = truth(batch, "believes_markup")?;
        for row in 0..batch.num_rows() {
            let hash = block.is_valid(row).then(|| hash_number(block.value(row))).transpose()?;
            rows.push(FrameRow {
                site: site.value(row).to_owned(),
                grouped_by: grouped_by
                    .value(row)
                    .parse()
                    .map_err(|expected| format!("has a group that is not {expected}"))?,
                similarity: similarity.value(row),
                group: group.value(row),
                markup: markup.is_valid(row).then(|| markup.value(row).to_owned()),
                believes_markup: believes_markup.is_valid(row).then(|| believes_markup.value(row)),
                block: hash,
                pages: pages.value(row),
                contexts: contexts.value(row),
                example: example.value(row).to_owned(),
            });
        }
        Ok(())
    })?;
    Ok(Some(Arc::new(Frames::from_rows(rows).map_err(|reason| Error::corrupt(&path, reason))?)))
}

/// What became of the page with an id or a URL, from `clusters.parquet`.
pub(crate) fn fate(directory: &Path, name: &str, url: Option<&str>) -> Result<Option<PageFate>> {
    let mut id = None;
    for_each_batch(&directory.join(files::PAGES.parquet), |batch| {
        let (ids, urls) = (text(batch, "id")?, text(batch, "url")?);
        for row in 0..batch.num_rows() {
            let is_named = ids.value(row) == name;
            let is_there = id.is_none() && url == Some(name) && urls.is_valid(row) && urls.value(row) == name;
            if is_named || is_there {
                id = Some(ids.value(row).to_owned());
            }
        }
        Ok(())
    })?;
    let Some(id) = id else { return Ok(None) };
    let mut found = None;
    groups::for_each_fate(directory, |fate| {
        if fate.id == id {
            found = Some(fate);
        }
    })?;
    Ok(found)
}

/// A hash from its digits.
fn hash_number(digits: &str) -> std::result::Result<u64, String> {
    u64::from_str_radix(digits, 16).map_err(|_| format!("has '{digits}' where a hash is expected"))
}

impl PageIds {
    /// The page with an id.
    pub(crate) fn find(&self, id: &str) -> Option<PageId> {
        self.0.get(id).copied()
    }

    fn page(&self, id: &str, directory: &Path) -> Result<PageId> {
        self.find(id).ok_or_else(|| {
            Error::corrupt(directory, format!("the tables do not belong together: no page has the id '{id}'"))
        })
    }

    /// For each page the page that is kept in its place, from `clusters.parquet`.
    pub(crate) fn kept(&self, directory: &Path) -> Result<PageVec<PageId>> {
        let mut kept = PageVec::new();
        for_each_batch(&directory.join(files::CLUSTERS.parquet), |batch| {
            let names = text(batch, "kept_id")?;
            for row in 0..batch.num_rows() {
                kept.push(self.page(names.value(row), directory)?);
            }
            Ok(())
        })?;
        Ok(kept)
    }

    /// What pages of another corpus are called there, by their numbers here, from `against.parquet`.
    pub(crate) fn against_names(&self, directory: &Path) -> Result<HashMap<PageId, String>> {
        let mut names = HashMap::new();
        let path = directory.join(files::AGAINST.parquet);
        if !path.exists() {
            return Ok(names);
        }
        let kept = self.kept(directory)?;
        for_each_batch(&path, |batch| {
            let (ids, theirs) = (text(batch, "id")?, text(batch, "against_id")?);
            for row in 0..batch.num_rows() {
                let page = self.page(ids.value(row), directory)?;
                let kept = kept.get(page).ok_or_else(|| {
                    Error::corrupt(directory, "the tables do not belong together: clusters are missing")
                })?;
                names.insert(*kept, theirs.value(row).to_owned());
            }
            Ok(())
        })?;
        Ok(names)
    }

    /// When pages were captured, from `captures.parquet`.
    fn captured(&self, directory: &Path) -> Result<Vec<(PageId, Captured)>> {
        let mut captured = Vec::new();
        let path = directory.join(files::CAPTURES.parquet);
        if !path.exists() {
            return Ok(captured);
        }
        for_each_batch(&path, |batch| {
            let (id, seconds, payload) = (text(batch, "id")?, whole(batch, "seconds")?, text(batch, "payload")?);
            for row in 0..batch.num_rows() {
                let payload = payload.is_valid(row).then(|| hash_number(payload.value(row))).transpose()?;
                let seconds = seconds.is_valid(row).then(|| seconds.value(row));
                captured
                    .push((self.page(id.value(row), directory)?, Captured { seconds, payload: payload.unwrap_or(0) }));
            }
            Ok(())
        })?;
        captured.sort_unstable_by_key(|row| row.0);
        Ok(captured)
    }

    /// Shows the pairs of a table as they are.
    fn for_each_pair(
        &self,
        directory: &Path,
        table: TableFiles,
        mut visit: impl FnMut(ScoredPair) -> Result<()>,
    ) -> Result<()> {
        for_each_batch(&directory.join(table.parquet), |batch| {
            let (left, right) = (text(batch, "left")?, text(batch, "right")?);
            let (similarity, left_in_right, right_in_left) =
                (real(batch, "similarity")?, real(batch, "left_in_right")?, real(batch, "right_in_left")?);
            let (score, estimate) = (real(batch, "score")?, real(batch, "estimate")?);
            // Results of the first version have no such columns.
            let (page_similarity, same_site) = (real(batch, "page_similarity").ok(), truth(batch, "same_site").ok());
            for row in 0..batch.num_rows() {
                visit(ScoredPair {
                    left: self.page(left.value(row), directory)?,
                    right: self.page(right.value(row), directory)?,
                    similarity: similarity.value(row),
                    left_in_right: left_in_right.value(row),
                    right_in_left: right_in_left.value(row),
                    score: score.value(row),
                    estimate: estimate.value(row),
                    page_similarity: page_similarity.filter(|of| of.is_valid(row)).map(|of| of.value(row)),
                    same_site: same_site.filter(|of| of.is_valid(row)).map(|of| of.value(row)),
                    is_short: false,
                })?;
            }
            Ok(())
        })
    }
}

/// What is wrong with a batch: a sentence about the file, or an error of its own.
enum BatchProblem {
    File(String),
    Other(Error),
}

impl From<String> for BatchProblem {
    fn from(reason: String) -> BatchProblem {
        BatchProblem::File(reason)
    }
}

impl From<Error> for BatchProblem {
    fn from(error: Error) -> BatchProblem {
        BatchProblem::Other(error)
    }
}

fn for_each_batch(path: &Path, mut visit: impl FnMut(&RecordBatch) -> Result<(), BatchProblem>) -> Result<()> {
    let file = File::open(path).map_err(Error::io(path, "read"))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(cannot_read(path))?;
    for batch in reader {
        let batch = batch.map_err(|error| Error::corrupt(path, format!("cannot be read: {error}")))?;
        match visit(&batch) {
            Ok(()) => {}
            Err(BatchProblem::File(reason)) => return Err(Error::corrupt(path, reason)),
            Err(BatchProblem::Other(error)) => return Err(error),
        }
    }
    Ok(())
}

fn text<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b arrow_array::StringArray, String> {
    let column = batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
    column.ok_or_else(|| format!("has no column '{name}' of text"))
}

fn truth<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b arrow_array::BooleanArray, String> {
    let column = batch.column_by_name(name).and_then(|column| column.as_boolean_opt());
    column.ok_or_else(|| format!("has no column '{name}' of yes and no"))
}

fn whole<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b arrow_array::UInt64Array, String> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<UInt64Type>());
    column.ok_or_else(|| format!("has no column '{name}' of whole numbers"))
}

fn real<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b arrow_array::Float64Array, String> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<Float64Type>());
    column.ok_or_else(|| format!("has no column '{name}' of numbers"))
}
