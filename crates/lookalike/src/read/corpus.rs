//! All pages of the inputs, as a stream.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result, SkippedRecord};
use crate::page::{RawPage, SourceId};
use crate::parallel::in_order;
use crate::read::chosen::Chosen;
use crate::read::fields::{FieldNames, Fields, RankField};
use crate::read::scan::Scan;
use crate::read::split::buffer::BufferPool;
use crate::read::{Batch, CaptureFilter, Format, NotAPage, ReadConfig, Source, SourceFile, Sources, discover};

/// The pages of some inputs: files, directories, patterns, objects in stores.
///
/// Nothing of them is held in memory: every pass reads them anew. [`for_each`](Corpus::for_each) is the simple way to see
/// them all; [`scan`](Corpus::scan) works on them with many threads.
///
/// ```
/// use lookalike::{Corpus, ReadConfig};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages.jsonl").to_string_lossy().into_owned();
/// std::fs::write(&path, "{\"id\": \"a\", \"text\": \"Once upon a time\"}\nnot a page\n").unwrap();
/// let corpus = Corpus::open(&[path], &ReadConfig::default())?;
/// let (mut ids, mut skipped) = (Vec::new(), Vec::new());
/// corpus.for_each(|page| match page {
///     Ok(page) => ids.push(corpus.id_of(&page)),
///     Err(record) => skipped.push(record),
/// })?;
/// assert_eq!((ids, skipped.len()), (vec!["a".to_owned()], 1));
/// # Ok::<(), lookalike::Error>(())
/// ```
#[derive(Debug)]
pub struct Corpus {
    /// The sources; pages name theirs by its index.
    pub sources: Vec<Source>,
    /// Files in directories that are clearly not pages (images, style sheets, …).
    pub ignored_files: u64,
    /// Results of earlier runs in the directories that were named; they are not read unless they are named themselves.
    pub results_not_read: Vec<String>,
    /// Files that patterns leave out.
    pub left_out_files: u64,
    /// Files that could not be looked at, or are in no format that is read.
    pub problems: Vec<SkippedRecord>,
    /// Which pages take part, if not all.
    pub(crate) chosen: Option<Chosen>,
    /// Which field is what.
    pub(crate) names: FieldNames,
    fields: Fields,
    /// Which records of a crawl are pages.
    pub(crate) captures: CaptureFilter,
    /// Records larger than this are skipped.
    pub(crate) max_page_bytes: u64,
    bytes_read: AtomicU64,
    /// Threads that unpack files, if these are fewer.
    threads: usize,
    /// Buffers that batches have been done with.
    pub(super) buffers: Arc<BufferPool>,
}

impl Corpus {
    /// Finds the sources that `inputs` name. What can be read only once, such as standard input, is refused.
    ///
    /// # Errors
    /// When an input does not exist, is in no known format, or cannot be read.
    pub fn open(inputs: &[impl AsRef<str>], config: &ReadConfig) -> Result<Corpus> {
        let inputs: Vec<String> = inputs.iter().map(|input| input.as_ref().to_owned()).collect();
        Ok(Corpus::new(discover(&inputs, config, Path::new(""), None)?, config))
    }

    /// The pages of known sources.
    #[must_use]
    pub(crate) fn new(sources: impl Into<Sources>, config: &ReadConfig) -> Corpus {
        let Sources { list, ignored, results, left_out, mut problems } = sources.into();
        let chosen = Chosen::new(config, &list, &mut problems);
        Corpus {
            sources: list,
            ignored_files: ignored,
            results_not_read: results,
            left_out_files: left_out,
            problems,
            chosen,
            names: FieldNames::new(&config.fields, RankField::None).reading_as(config.read_as),
            fields: config.fields.clone(),
            captures: config.captures.clone(),
            max_page_bytes: config.max_page_bytes,
            bytes_read: AtomicU64::new(0),
            threads: 1,
            buffers: Arc::default(),
        }
    }

    /// Also reads the field that pages are ranked by.
    #[must_use]
    pub(crate) fn ranked_by(mut self, rank: RankField<'_>) -> Corpus {
        self.names = FieldNames::new(&self.fields, rank).reading_as(self.names.read_as);
        self
    }

    /// Unpacks a file with this many threads, less one for each other file there is.
    #[must_use]
    pub(crate) fn unpacked_by(self, threads: usize) -> Corpus {
        Corpus { threads, ..self }
    }

    /// A source by its number.
    #[must_use]
    pub fn source(&self, source: SourceId) -> &Source {
        &self.sources[source.index()]
    }

    /// The size of all sources on disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.bytes).sum()
    }

    /// Bytes that have been taken from disk, by all passes so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// The id of a page: its own, or its file and record.
    #[must_use]
    pub fn id_of(&self, page: &RawPage<'_>) -> String {
        let numbered = || format!("{}:{}", self.source(page.source).name, page.record);
        page.id.as_deref().map_or_else(numbered, str::to_owned)
    }

    /// Shows every page to `visit`, in order, and every record that cannot be used; those of a crawl that are not pages
    /// are left out. Reading goes on meanwhile in another thread.
    ///
    /// # Errors
    /// Never for bad records.
    pub fn for_each(&self, mut visit: impl FnMut(Result<RawPage<'_>, SkippedRecord>)) -> Result<()> {
        in_order(
            1,
            |jobs| self.read_all(jobs),
            || (),
            |(), batch: Batch| Ok(batch),
            |batch| {
                batch.visit(self, &mut |found| {
                    match found {
                        Ok(page) => visit(Ok(page)),
                        Err(NotAPage::Skipped(record)) => visit(Err(record)),
                        Err(NotAPage::Other(_)) => {}
                    }
                    Ok(())
                })?;
                Ok(ControlFlow::Continue(()))
            },
        )
    }

    /// A pass over the pages with worker threads, progress and early stop.
    pub fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    /// Says that there are no pages at all, and what may be the reason; `skipped` are some of the skipped records.
    #[must_use]
    pub fn no_pages(&self, inputs: &[String], skipped: &[SkippedRecord]) -> Error {
        let hint = match (skipped.first(), self.sources.len(), self.ignored_files) {
            (Some(first), ..) => format!(": every record had to be skipped; the first one:\n  {first}"),
            (None, 0, _) if !self.results_not_read.is_empty() => {
                format!(
                    ": only results of earlier runs are there; to read what one of them kept, name it: {}",
                    self.results_not_read[0]
                )
            }
            (None, 0, _) if self.left_out_files > 0 => {
                format!(": `include` and `exclude` leave out all {} files", self.left_out_files)
            }
            (None, 0, 0) => ": there are no files to read".to_owned(),
            (None, 0, ignored) => {
                format!(": {ignored} files are there, none of a format that is read ({})", Format::list())
            }
            (None, ..) if self.chosen.is_some() => ": none of the pages was chosen".to_owned(),
            (None, ..) => ": the files hold no records".to_owned(),
        };
        Error::NoPages { inputs: inputs.join(", "), hint }
    }
}

/// What readers need.
impl Corpus {
    /// If some pages were chosen, a corpus of all pages of a source.
    pub(crate) fn with_all_pages(&self, source: SourceId) -> Option<Corpus> {
        self.chosen.as_ref()?;
        let config = ReadConfig {
            fields: self.fields.clone(),
            captures: self.captures.clone(),
            max_page_bytes: self.max_page_bytes,
            ..ReadConfig::default()
        };
        Some(Corpus::new(vec![self.source(source).clone()], &config))
    }

    pub(super) fn file(&self, source: &Source) -> std::io::Result<SourceFile<'_>> {
        source.location.open_counted(&self.bytes_read)
    }

    pub(super) fn open_source(&self, source: &Source) -> std::io::Result<Box<dyn Read + Send + '_>> {
        self.unpack(source, self.file(source)?)
    }

    /// A source whose records are copied: what is read of it is not counted.
    pub(crate) fn open_to_copy<'s>(&self, source: &'s Source) -> std::io::Result<Box<dyn Read + Send + 's>> {
        self.unpack(source, source.location.open()?)
    }

    fn unpack<'r>(&self, source: &Source, file: impl Read + Send + 'r) -> std::io::Result<Box<dyn Read + Send + 'r>> {
        if source.format.is_page_file() {
            return source.compression.decode(file);
        }
        let others = self.sources.len() - 1;
        source.compression.decode_with(file, self.threads.saturating_sub(others).max(1))
    }

    /// For readers that do not read through [`Corpus::file`].
    pub(super) fn count_bytes_read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }
}
