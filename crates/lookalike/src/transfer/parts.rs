//! The transfer in parts, for machines that share nothing but rows.
//!
//! In: units of both corpora. Out of the first: samples for frames, and the judged pages, which every machine then holds; out of the
//! second: counterparts. The judgments of the second corpus follow in one place, as there are few.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::config::{Config, KnownFrames};
use crate::error::{Error, Result};
use crate::job::dedup;
use crate::job::dedup::parts::frames::{SAMPLES, emit_samples};
use crate::job::dedup::parts::reading::{new_learner, temporary, unit};
use crate::job::dedup::parts::rows::Kind::{Bytes, Long, Text};
use crate::job::dedup::parts::rows::{Kind, RowBuilder, Rows, Value, ddl};
use crate::job::dedup::parts::{Emit, Part, UnitOfJob};
use crate::page::RawPage;
use crate::parallel::Event;
use crate::plan::Plan;
use crate::read::NotAPage;
use crate::text::PageReader;
use crate::text::frames::{FrameLearner, FrameRow, Frames};
use crate::transfer::counterparts::{BATCH, CounterpartSearch, Counterparts, OtherPage};
use crate::transfer::judged::{CorpusPage, JudgedPages, KeyedPage, url_hash};
use crate::transfer::side::{self, PageWorker, ReadCounts, Side};
use crate::transfer::{Counterpart, Report, TransferOptions, check_missing, output, start};

/// What is found in a unit: judged pages, or counterparts (`kind` 0); the URLs of pages (1); how many there are (2).
const FOUND: [(&str, Kind); 7] = [
    ("kind", Long),
    ("unit", Long),
    ("row", Long),
    ("found", Bytes),
    ("url_hash", Long),
    ("domain", Text),
    ("skipped", Long),
];
const FOUND_ROW: i64 = 0;
const URL_ROW: i64 = 1;
const COUNT_ROW: i64 = 2;
/// Rows that are sent at a time.
const BATCH_ROWS: usize = 4096;

/// A transfer before anything is read.
#[derive(Debug, Serialize)]
pub struct TransferInput {
    /// What all parts know.
    pub spec: serde_json::Value,
    /// The units of the first corpus.
    pub from: Vec<UnitOfJob>,
    /// The units of the second one.
    pub to: Vec<UnitOfJob>,
    /// Whether frames are learnt.
    pub learns_frames: bool,
}

/// What all parts know.
#[derive(Serialize, Deserialize)]
struct Spec {
    config: Config,
    threshold: f64,
    domains: String,
    /// Ids of the judged pages.
    wanted: Vec<String>,
    #[serde(default)]
    frames: Option<Vec<FrameRow>>,
    /// The judged pages, once they were found, as hexadecimal digits.
    #[serde(default)]
    judged: Option<String>,
}

/// What was found in the second corpus, beside counterparts.
#[derive(Debug, Default, Deserialize)]
pub struct TransferCounts {
    /// Pages of the first corpus.
    pub from_pages: u64,
    /// Records of it that could not be used.
    pub from_skipped: u64,
    /// Pages of the second one.
    pub to_pages: u64,
    /// Records of it that could not be used.
    pub to_skipped: u64,
    /// Pages of it whose URL the first has, too.
    pub shared_urls: u64,
    /// Domains of those.
    pub sites: BTreeMap<String, u64>,
}

impl TransferInput {
    /// Finds the files of both corpora.
    ///
    /// # Errors
    /// When something cannot be read, or one side is an index.
    pub fn open(options: &TransferOptions) -> Result<TransferInput> {
        let (judgments, _) = start(options)?;
        let read = &options.config.read;
        let (from, to) = (Side::new(&options.from, read)?, Side::new(&options.to, read)?);
        let config = side::common_config(&from, &to, &options.config)?;
        let units = |side: &Side| match side {
            Side::Index(_) => Err(Error::conflict("from", "is an index; a transfer in parts reads files of pages")),
            Side::Pages(files) => UnitOfJob::whole_files(files.corpus()),
        };
        let wanted: HashSet<&str> = judgments.iter().map(|row| row.page.as_str()).collect();
        let mut wanted: Vec<String> = wanted.into_iter().map(str::to_owned).collect();
        wanted.sort_unstable();
        let spec = Spec {
            config,
            threshold: options.threshold,
            domains: options.domains.to_string(),
            wanted,
            frames: None,
            judged: None,
        };
        let (from, to) = (units(&from)?, units(&to)?);
        let learns_frames = spec.config.corpus_needs().frames;
        let spec = serde_json::to_value(spec).map_err(|error| Error::internal(error.to_string()))?;
        Ok(TransferInput { spec, from, to, learns_frames })
    }
}

impl Spec {
    fn parse(json: &str) -> Result<Spec> {
        serde_json::from_str(json).map_err(|error| Error::internal(format!("a part cannot be understood: {error}")))
    }

    /// The config, with what was learnt about frames.
    fn config(&self) -> Result<Config> {
        let mut config = self.config.clone();
        if let Some(rows) = &self.frames {
            let frames = Frames::from_rows(rows.iter().cloned()).map_err(Error::internal)?;
            config.content.frames = Some(KnownFrames::new(Arc::new(frames)));
        }
        Ok(config)
    }

    fn options(&self) -> Result<TransferOptions> {
        let mut options = TransferOptions::new("-".into(), Vec::new(), Vec::new(), "-".into());
        options.threshold = self.threshold;
        options.domains = self.domains.parse().map_err(|_| Error::internal("domains cannot be understood"))?;
        Ok(options)
    }
}

/// A part by its name: of a transfer, or of the main job.
///
/// # Errors
/// When there is none of that name, or the job cannot be understood.
pub fn part(name: &str, spec: &str) -> Result<Box<dyn Part>> {
    Ok(match name {
        "transfer_sample" => Box::new(Sample::new(&Spec::parse(spec)?)?),
        "transfer_judged" => Box::new(FindJudged { spec: Spec::parse(spec)? }),
        "transfer_counterparts" => Box::new(FindCounterparts::new(Spec::parse(spec)?)?),
        other => return dedup::parts::part(other, spec),
    })
}

/// The columns of what a part puts out, as a list of names and types in SQL.
///
/// # Errors
/// When there is no part of that name.
pub fn columns(name: &str) -> Result<String> {
    match name {
        "transfer_sample" => Ok(ddl(&SAMPLES)),
        "transfer_judged" | "transfer_counterparts" => Ok(ddl(&FOUND)),
        other => dedup::parts::columns(other),
    }
}

/// Shows the pages of every unit, and counts what is none; returns the pages.
fn each_page<W, R: Send>(
    unit: &UnitOfJob,
    config: &Config,
    plan: &Plan,
    describe: impl Fn(&mut PageWorker<'_>, &RawPage<'_>) -> W + Sync,
    finish: impl Fn(&mut PageWorker<'_>, Vec<W>) -> R + Sync,
    mut collect: impl FnMut(R) -> Result<()>,
) -> Result<ReadCounts> {
    let (corpus, piece) = unit.open(config)?;
    let mut counts = ReadCounts::default();
    corpus.scan().for_each_unit(
        &[&piece],
        || PageWorker::new(&corpus, plan),
        |worker, records| {
            let (mut rows, mut skipped) = (Vec::new(), 0);
            records.for_each(|record| {
                match record {
                    Ok(page) if page.is_revisit() => {}
                    Ok(page) => rows.push(describe(worker, &page)),
                    Err(NotAPage::Skipped(_)) => skipped += 1,
                    Err(NotAPage::Other(_)) => {}
                }
                Ok(())
            })?;
            Ok((rows.len() as u64, skipped, finish(worker, rows)))
        },
        |event| {
            if let Event::Result(_, (pages, skipped, made)) = event {
                counts.pages += pages;
                counts.skipped += skipped;
                collect(made)?;
            }
            Ok(())
        },
    )?;
    Ok(counts)
}

fn units(rows: &RecordBatch) -> Result<Vec<UnitOfJob>> {
    Rows(rows).texts("spec")?.iter().flatten().map(unit).collect()
}

fn count_row(out: &mut RowBuilder, unit: usize, counts: ReadCounts) {
    out.push(&[
        Value::Long(Some(COUNT_ROW)),
        Value::count(unit as u64),
        Value::count(counts.pages),
        Value::Bytes(None),
        Value::Long(None),
        Value::Text(None),
        Value::count(counts.skipped),
    ]);
}

/// Pages that frames are learnt from.
struct Sample {
    config: Config,
    learner: Option<FrameLearner>,
    _directory: tempfile::TempDir,
}

impl Sample {
    fn new(spec: &Spec) -> Result<Sample> {
        let directory = temporary()?;
        Ok(Sample { config: spec.config.clone(), learner: Some(new_learner(&directory)), _directory: directory })
    }
}

impl Part for Sample {
    fn push(&mut self, rows: &RecordBatch, _: &mut Emit<'_>) -> Result<()> {
        let Some(learner) = &mut self.learner else { return Ok(()) };
        let mut reader = PageReader::new(self.config.content.text_options());
        for unit in units(rows)? {
            let (corpus, _) = unit.open(&self.config)?;
            let mut failed = Ok(());
            corpus.for_each(|page| {
                if let Ok(mut page) = page
                    && !page.is_revisit()
                    && failed.is_ok()
                {
                    // Of two corpora the hosts say nothing: the same site may have moved.
                    page.url = None;
                    let sample = reader.hold(&page, false, learner).and_then(|(held, _)| held.sample());
                    failed = sample.map_or(Ok(()), |sample| learner.add(sample));
                }
            })?;
            failed?;
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let Some(learner) = self.learner.take() else { return Ok(()) };
        emit_samples(learner, emit)
    }
}

/// The judged pages of the first corpus, and all its URLs.
struct FindJudged {
    spec: Spec,
}

fn stored<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|error| Error::internal(format!("a page cannot be written: {error}")))
}

fn read_stored<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| Error::internal(format!("a page cannot be read: {error}")))
}

impl Part for FindJudged {
    fn push(&mut self, rows: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let config = self.spec.config()?;
        let plan = config.plan();
        let wanted: HashSet<&str> = self.spec.wanted.iter().map(String::as_str).collect();
        let mut out = RowBuilder::new(&FOUND);
        for unit in units(rows)? {
            let mut number = 0u64;
            let describe = |worker: &mut PageWorker<'_>, page: &RawPage<'_>| CorpusPage::new(worker, page, &wanted);
            let collect = |pages: Vec<CorpusPage>| {
                for page in pages {
                    number += 1;
                    let (of_unit, of_row) = (Value::count(unit.unit as u64), Value::count(number));
                    if let Some(found) = page.judged {
                        let bytes = stored(&found)?;
                        let found = Value::Bytes(Some(&bytes));
                        let (none, zero) = (Value::Text(None), Value::Long(None));
                        out.push(&[Value::Long(Some(FOUND_ROW)), of_unit, of_row, found, zero, none, zero]);
                    }
                    if let Some(hash) = page.url_hash {
                        let (none, zero) = (Value::Bytes(None), Value::Long(None));
                        let (kind, hash) = (Value::Long(Some(URL_ROW)), Value::bits(hash));
                        out.push(&[kind, of_unit, of_row, none, hash, Value::Text(None), zero]);
                    }
                }
                if out.len() >= BATCH_ROWS { emit(out.take()?) } else { Ok(()) }
            };
            let counts = each_page(&unit, &config, &plan, describe, |_, rows| rows, collect)?;
            count_row(&mut out, unit.unit, counts);
        }
        emit(out.take()?)
    }

    fn finish(&mut self, _: &mut Emit<'_>) -> Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
    pairs.collect::<Option<_>>().ok_or_else(|| Error::internal("judged pages cannot be read"))
}

/// The judged pages as they are sent to every machine, from the rows that were found, in the order of the first corpus.
///
/// # Errors
/// When a row cannot be read.
pub fn judged_pages(found: &[Vec<u8>]) -> Result<String> {
    let pages: Vec<KeyedPage> = found.iter().map(|bytes| read_stored(bytes)).collect::<Result<_>>()?;
    Ok(hex(&stored(&pages)?))
}

fn judged_of(judged: &str) -> Result<JudgedPages> {
    let bytes = from_hex(judged)?;
    let pages: Vec<KeyedPage> = read_stored(&bytes)?;
    let mut judged = JudgedPages::default();
    pages.into_iter().for_each(|(page, key)| judged.push(page, key));
    Ok(judged)
}

/// The counterparts of judged pages in the second corpus.
struct FindCounterparts {
    spec: Spec,
    judged: JudgedPages,
}

impl FindCounterparts {
    fn new(spec: Spec) -> Result<FindCounterparts> {
        let judged = judged_of(spec.judged.as_deref().unwrap_or_default())?;
        Ok(FindCounterparts { spec, judged })
    }
}

impl Part for FindCounterparts {
    fn push(&mut self, rows: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let (config, options) = (self.spec.config()?, self.spec.options()?);
        let plan = config.plan();
        let search = CounterpartSearch::new(&self.judged, &config, &options);
        let tables = search.tables();
        let mut out = RowBuilder::new(&FOUND);
        for unit in units(rows)? {
            let finish = |worker: &mut PageWorker<'_>, pages: Vec<OtherPage>| {
                let chunks = pages.chunks(BATCH);
                let found: Vec<Counterpart> =
                    chunks.flat_map(|pages| search.counterparts(pages, &tables, &mut worker.scratch)).collect();
                let domain = |page: &OtherPage| page.url.as_deref().and_then(|url| options.domains.domain(url));
                let urls = pages.iter().filter_map(|page| Some((url_hash(page.key.as_deref()?), domain(page))));
                (found, urls.collect::<Vec<_>>())
            };
            let collect = |(found, urls): (Vec<Counterpart>, Vec<(u64, Option<String>)>)| {
                let (of_unit, zero) = (Value::count(unit.unit as u64), Value::Long(None));
                for row in found {
                    let bytes = stored(&row)?;
                    let kind = Value::Long(Some(FOUND_ROW));
                    out.push(&[kind, of_unit, zero, Value::Bytes(Some(&bytes)), zero, Value::Text(None), zero]);
                }
                for (hash, domain) in urls {
                    let (kind, domain) = (Value::Long(Some(URL_ROW)), Value::Text(domain.as_deref()));
                    out.push(&[kind, of_unit, zero, Value::Bytes(None), Value::bits(hash), domain, zero]);
                }
                if out.len() >= BATCH_ROWS { emit(out.take()?) } else { Ok(()) }
            };
            let counts = each_page(&unit, &config, &plan, OtherPage::new, finish, collect)?;
            count_row(&mut out, unit.unit, counts);
        }
        emit(out.take()?)
    }

    fn finish(&mut self, _: &mut Emit<'_>) -> Result<()> {
        Ok(())
    }
}

/// Writes the result of a transfer: the judged pages as [`judged_pages`] made them, and the counterparts that were found.
///
/// # Errors
/// When something cannot be written, or judged pages are missing that must not be.
pub fn finish(
    options: &TransferOptions,
    spec: &str,
    judged: &str,
    counterparts: &[Vec<u8>],
    counts: TransferCounts,
) -> Result<Report> {
    let config = Spec::parse(spec)?.config()?;
    let (judgments, work) = start(options)?;
    let mut judged = judged_of(judged)?;
    judged.counts = ReadCounts { pages: counts.from_pages, skipped: counts.from_skipped };
    check_missing(&judged, &judgments, options)?;
    let search = CounterpartSearch::new(&judged, &config, options);
    let found = Counterparts {
        rows: counterparts.iter().map(|bytes| read_stored(bytes)).collect::<Result<_>>()?,
        counts: ReadCounts { pages: counts.to_pages, skipped: counts.to_skipped },
        shared_urls: counts.shared_urls,
        sites: counts.sites,
        has_texts: !judged.pages.is_empty(),
    };
    let report = output::write(&judgments, &search, &found, options, work.path())?;
    work.publish()?;
    Ok(report)
}
