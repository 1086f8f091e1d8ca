//! Have I seen this page? An index that answers while pages come and go, and loses nothing it has acknowledged.
//!
//! In: pages, to be looked for and perhaps stored. Out: an answer for each: new, near or exact, of which stored pages,
//! and how near. Fingerprints find candidates; a small sketch that is stored with every page confirms them. Looking is
//! done by many threads at once; storing by one (`sequencer.rs`), which decides what is new, writes what has come in
//! the meantime as one group, syncs it, shows it to readers and only then answers.

mod backup;
mod lookup;
mod sequencer;

pub use backup::Backup;

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::index::pages;
use crate::index::store::{AcknowledgedMark, Store};
use crate::index::{
    FingerprintOrigin, Index, IndexConfig, IndexReader, MergeStats, MergeThread, OpenOptions, StoredPage, is_ours,
};
use crate::page::RawPage;
use crate::plan::Plan;
use crate::sketch::min_bytes::similarity;
use crate::sketcher::Sketcher;
use sequencer::{PendingGroup, Sequencer, SequencerJob};

/// Jobs that wait for the sequencer, at the most.
const MOST_WAITING: usize = 8192;

/// Sketchers of a group of threads that wait for the next page, and bytes of a page after which one does not.
const MOST_WAITING_SKETCHERS: usize = 4;
const LARGE_PAGE: u64 = 1 << 20;
/// Groups of threads that share sketchers.
const LANES: usize = 16;

thread_local! {
    /// A thread keeps to the same sketchers: what they remember is in the cache of its core.
    static LANE: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % LANES
    };
}

/// Whether a page is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorePolicy {
    /// If nothing that is stored is like it.
    IfNew,
    /// In any case, in the place of a page with the same id.
    Always,
}

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageVerdict {
    /// Like nothing that is stored.
    New,
    /// Like a page that is stored.
    Near,
    /// The same words in the same order as a page that is stored.
    Exact,
}

/// How much there is to go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLength {
    /// Enough.
    Enough,
    /// Too short to be like anything but its copy.
    Short,
    /// Nothing: like no page, not even another empty one.
    Empty,
}

/// A stored page that was compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCandidate {
    /// Its id.
    pub id: String,
    /// Differing bits of the fingerprints.
    pub distance: u32,
    /// Estimated similarity, 1 for a copy; nothing where no sketch is stored.
    pub similarity: Option<f64>,
    /// Whether the words are the same.
    pub is_exact: bool,
}

/// What is known of a page after looking for it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckOutcome {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// What it is.
    pub verdict: PageVerdict,
    /// The stored pages that it is like, the most similar first.
    pub of: Vec<ComparedCandidate>,
    /// Candidates that are not like it after all.
    pub rejected: Vec<ComparedCandidate>,
    /// Candidates of which nothing but the fingerprint is known; they do not count.
    pub unconfirmed: Vec<ComparedCandidate>,
    /// Candidates there are; at most 64 are compared, and 4,096 if none of those is confirmed.
    pub candidates: u64,
    /// Whether it is stored now, and was not before this call.
    pub stored: bool,
    /// Whether it took the place of a page with the same id.
    pub replaced: bool,
    /// Its tokens.
    pub tokens: u32,
    /// Its fingerprint; none where it is empty.
    pub fingerprint: Option<u64>,
    /// Whether there is enough to go by.
    pub length: PageLength,
}

/// A page that was read.
#[derive(Debug, Clone)]
struct IncomingPage {
    id: Option<String>,
    page: StoredPage,
}

impl IncomingPage {
    fn new(page: &RawPage<'_>, read: StoredPage) -> IncomingPage {
        // A URL is a name for a page that has no other.
        IncomingPage { id: page.id.as_deref().or(page.url.as_deref()).map(str::to_owned), page: read }
    }

    fn answer(&self) -> CheckOutcome {
        let length = match self.page.fingerprint {
            None => PageLength::Empty,
            Some(_) if self.page.is_short => PageLength::Short,
            Some(_) => PageLength::Enough,
        };
        CheckOutcome {
            id: self.id.clone(),
            verdict: PageVerdict::New,
            of: Vec::new(),
            rejected: Vec::new(),
            unconfirmed: Vec::new(),
            candidates: 0,
            stored: false,
            replaced: false,
            tokens: self.page.tokens,
            fingerprint: self.page.fingerprint,
            length,
        }
    }

    fn compare(&self, id: &str, distance: u32, page: Option<&StoredPage>) -> ComparedCandidate {
        let is_exact = page.is_some_and(|page| page.identity == self.page.identity);
        let estimate = |page: &StoredPage| if is_exact { 1.0 } else { similarity(&self.page.sketch, &page.sketch) };
        ComparedCandidate { id: id.to_owned(), distance, similarity: page.map(estimate), is_exact }
    }
}

/// What has been done since the start.
#[derive(Debug, Default)]
pub(crate) struct OnlineCounters {
    groups: AtomicU64,
    grouped: AtomicU64,
    sync_nanoseconds: AtomicU64,
    reopened: AtomicU64,
    last: AtomicU64,
    store_bytes: AtomicU64,
}

/// The same, and what there is.
#[derive(Debug, Clone)]
pub struct OnlineStats {
    /// Rows in the index; those that were deleted count until they are merged away.
    pub rows: u64,
    /// Rows that are in memory only, and in the store.
    pub rows_in_memory: u64,
    /// Segments in files.
    pub segments: usize,
    /// Segments in memory.
    pub segments_in_memory: usize,
    /// Bytes of segments in files.
    pub segment_bytes: u64,
    /// Bytes of the store.
    pub store_bytes: u64,
    /// The number of the last change.
    pub last_change: u64,
    /// The number of the last change that is in segments.
    pub covered: u64,
    /// Groups that were synced.
    pub groups: u64,
    /// Pages in them.
    pub grouped: u64,
    /// Time that syncs took.
    pub sync_seconds: f64,
    /// How often the store was opened anew after it had failed.
    pub reopened: u64,
    /// Merges.
    pub merging: MergeStats,
    /// Why nothing can be stored at the moment.
    pub failed: Option<String>,
    /// Segments that are left out.
    pub damaged: Vec<String>,
}

/// What all threads share.
pub(crate) struct ServedIndex {
    index: Arc<Index>,
    config: Option<Config>,
    threshold: f64,
    radius: u32,
    /// Not there while it is opened anew.
    store: RwLock<Option<Store>>,
    /// Why nothing can be stored at the moment.
    failed: Mutex<Option<String>>,
    counters: OnlineCounters,
}

/// An index that is asked and written to by many at once.
pub struct Online {
    shared: Arc<ServedIndex>,
    plan: OnceLock<Plan>,
    sketchers: [Mutex<Vec<Sketcher>>; LANES],
    jobs: Option<SyncSender<SequencerJob>>,
    sequencer: Option<JoinHandle<()>>,
    merging: Option<Arc<MergeThread>>,
    is_read_only: bool,
    /// Held while a copy is made.
    copying: Mutex<()>,
}

/// How an index is opened for serving.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnlineOptions {
    /// What is damaged is left out, and nothing is stored.
    pub skip_damaged: bool,
    /// What merging may use; 0 for 2 GiB.
    pub memory_bytes: u64,
    /// Rows in memory from which they are written to a segment; 0 for 262,144.
    pub memory_rows: u64,
}

impl Online {
    /// Makes an empty index for pages in `directory`.
    ///
    /// # Errors
    /// When there is one, the config makes no sense, or the directory cannot be written.
    pub fn create(directory: &Path, config: IndexConfig) -> Result<()> {
        match &config.fingerprints {
            FingerprintOrigin::Pages(config) => config.check()?,
            FingerprintOrigin::Given => {
                return Err(Error::Usage("an index that is served is made for pages".to_owned()));
            }
        }
        let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        if let Some(strange) = names.iter().find(|name| !is_ours(name)) {
            return Err(Error::Usage(format!(
                "{}: holds other things ({strange}), and is no index; choose another directory, which is made if it is not there",
                directory.display()
            )));
        }
        if let Some(part) = names.iter().find(|name| *name == "store" || name.ends_with(".seg")) {
            return Err(Error::BadResult {
                path: directory.to_path_buf(),
                reason: format!(
                    "has {part} but no manifest.json, without which it is no index; restore it whole, or remove what is there"
                ),
            });
        }
        Index::create(directory, config, 0, false)?.flush()
    }

    /// Opens the index in `directory`, with all that the store has.
    ///
    /// # Errors
    /// When there is none, a part of it is damaged, or another has it open.
    pub fn open(directory: &Path, options: OnlineOptions) -> Result<Online> {
        let open = OpenOptions {
            write: !options.skip_damaged,
            skip_damaged: options.skip_damaged,
            memory_bytes: options.memory_bytes,
            memory_rows: options.memory_rows,
            check: true,
        };
        let index = Arc::new(Index::open_to_serve(directory, open)?);
        let config = index.config().page_config();
        let store = index.open_store(options.skip_damaged)?;
        let covered = index.covered();
        let last = index.read_store(&store, options.skip_damaged)?;
        if !options.skip_damaged {
            index.set_store(true)?;
        }
        let first = store.first().unwrap_or(covered + 1);
        let shared = Arc::new(ServedIndex {
            threshold: index.config().threshold,
            radius: index.config().radius,
            config,
            store: RwLock::new(Some(store)),
            failed: Mutex::default(),
            counters: OnlineCounters { last: last.into(), ..OnlineCounters::default() },
            index: Arc::clone(&index),
        });
        shared.measure();
        let merging = Arc::new(index.merge_in_background()?);
        let (jobs, received) = std::sync::mpsc::sync_channel(MOST_WAITING);
        let mark = AcknowledgedMark::open(directory)?;
        let sequencer = Sequencer::new(Arc::clone(&shared), Arc::clone(&merging), mark, last + 1, first);
        let thread = std::thread::Builder::new().name("sequencer".to_owned());
        let thread =
            thread.spawn(move || sequencer.run(&received)).map_err(Error::io(directory, "start a thread for"))?;
        Ok(Online {
            shared,
            plan: OnceLock::new(),
            sketchers: Default::default(),
            jobs: Some(jobs),
            sequencer: Some(thread),
            merging: Some(merging),
            is_read_only: options.skip_damaged,
            copying: Mutex::default(),
        })
    }

    /// What the index is for.
    #[must_use]
    pub fn config(&self) -> &IndexConfig {
        self.shared.index.config()
    }

    /// How pages are read.
    ///
    /// # Errors
    /// When the index holds fingerprints of unknown making.
    pub fn page_config(&self) -> Result<&Config> {
        self.shared.config.as_ref().ok_or_else(|| {
            Error::Usage("this index holds fingerprints that were made elsewhere; it can be asked for fingerprints, not for pages".to_owned())
        })
    }

    /// What is there now, for questions about fingerprints.
    #[must_use]
    pub fn reader(&self) -> IndexReader {
        self.shared.index.reader()
    }

    /// Looks for a page, and stores nothing.
    ///
    /// # Errors
    /// When the index is damaged where it is read, or holds no pages.
    pub fn check(&self, page: &RawPage<'_>) -> Result<CheckOutcome> {
        let pending = PendingGroup::default();
        self.with_sketcher(page, |sketcher| {
            let mut asked = IncomingPage::new(page, pages::page_without_sketch(page, sketcher));
            let found = self.shared.find(&asked, &pending)?;
            if found.candidates() > 0 {
                asked.page.sketch = pages::sketch_of_read(sketcher);
            }
            self.shared.judge(&asked, found, &pending)
        })?
    }

    /// Looks for a page and stores it; `done` is called with the answer, perhaps by another thread, when all that
    /// the answer says is on disk.
    ///
    /// # Errors
    /// When it cannot be asked, or too many are waiting; `done` is not called then.
    pub fn put(
        &self,
        page: &RawPage<'_>,
        storing: StorePolicy,
        done: impl FnOnce(Result<CheckOutcome>) + Send + 'static,
    ) -> Result<()> {
        if self.is_read_only {
            return Err(self.read_only());
        }
        let asked = self.with_sketcher(page, |sketcher| IncomingPage::new(page, pages::stored_page(page, sketcher)))?;
        if storing == StorePolicy::IfNew {
            // What readers see is on disk: nobody has to wait for this answer.
            let answer = self.shared.look(&asked, &PendingGroup::default())?;
            if answer.verdict != PageVerdict::New {
                done(Ok(answer));
                return Ok(());
            }
        }
        self.send(SequencerJob::Put { asked: Box::new(asked), storing, done: Box::new(done) })
    }

    /// Removes the page with an id; `done` is told whether there was one, when it is gone from disk.
    ///
    /// # Errors
    /// When too many are waiting.
    pub fn delete(&self, id: &str, done: impl FnOnce(Result<bool>) + Send + 'static) -> Result<()> {
        if self.is_read_only {
            return Err(self.read_only());
        }
        self.send(SequencerJob::Delete { id: id.to_owned(), done: Box::new(done) })
    }

    fn read_only(&self) -> Error {
        Error::ReadOnly {
            path: self.shared.index.directory().to_path_buf(),
            reason: "it is served without its damaged parts; restore a backup".to_owned(),
        }
    }

    /// The page with an id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<StoredPage>> {
        self.shared.page(id)
    }

    /// What there is, and what has been done.
    #[must_use]
    pub fn stats(&self) -> OnlineStats {
        let counters = &self.shared.counters;
        let tiers = self.shared.index.tiers();
        OnlineStats {
            rows: tiers.rows,
            rows_in_memory: tiers.rows_in_memory,
            segments: tiers.segments,
            segments_in_memory: tiers.segments_in_memory,
            segment_bytes: tiers.segment_bytes,
            store_bytes: counters.store_bytes.load(Ordering::Relaxed),
            last_change: counters.last.load(Ordering::Relaxed),
            covered: self.shared.index.covered(),
            groups: counters.groups.load(Ordering::Relaxed),
            grouped: counters.grouped.load(Ordering::Relaxed),
            sync_seconds: counters.sync_nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            reopened: counters.reopened.load(Ordering::Relaxed),
            merging: self.merging.as_ref().map(|merging| merging.stats()).unwrap_or_default(),
            failed: self.shared.failed(),
            damaged: self.shared.index.damaged(),
        }
    }

    /// Does what was accepted, writes everything to segments and gives the index free.
    ///
    /// # Errors
    /// When it cannot be written; nothing that was acknowledged is lost.
    pub fn close(mut self) -> Result<()> {
        self.stop();
        if self.is_read_only {
            return Ok(());
        }
        self.shared.index.flush()?;
        match self.shared.failed() {
            // The store may have changes that nobody was told of.
            Some(_) => Ok(()),
            None => self.shared.index.set_store(false),
        }
    }

    /// Ends both threads when they have done what was accepted.
    fn stop(&mut self) {
        self.jobs = None;
        if let Some(Err(panic)) = self.sequencer.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        // What could not be merged is in the store, and is merged another time.
        let _ = self.merging.take().and_then(Arc::into_inner).map(MergeThread::finish);
    }

    fn send(&self, job: SequencerJob) -> Result<()> {
        match self.jobs.as_ref().map(|jobs| jobs.try_send(job)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(Error::Overloaded),
            Some(Err(TrySendError::Disconnected(_))) | None => {
                Err(Error::Store { path: self.shared.index.directory().to_path_buf(), reason: "is closed".to_owned() })
            }
        }
    }

    /// Does something with a page for which a sketcher is needed.
    fn with_sketcher<T>(&self, page: &RawPage<'_>, work: impl FnOnce(&mut Sketcher) -> T) -> Result<T> {
        let config = self.page_config()?;
        let plan = self.plan.get_or_init(|| config.plan());
        let sketchers = &self.sketchers[LANE.with(|lane| *lane)];
        let waiting = sketchers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sketcher = waiting.unwrap_or_else(|| Sketcher::new(plan));
        let done = work(&mut sketcher);
        let mut sketchers = sketchers.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has read a large page has grown with it.
        if sketchers.len() < MOST_WAITING_SKETCHERS && page.length < LARGE_PAGE {
            sketchers.push(sketcher);
        }
        Ok(done)
    }
}

impl Drop for Online {
    /// What is in memory only stays in the store, as after a crash.
    fn drop(&mut self) {
        self.stop();
    }
}

impl ServedIndex {
    /// Why nothing can be stored at the moment.
    fn failed(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the size of the store.
    fn measure(&self) {
        let bytes = self.store.read().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, Store::bytes);
        self.counters.store_bytes.store(bytes, Ordering::Relaxed);
    }

    fn set_failed(&self, reason: Option<String>) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// The page with an id.
    fn page(&self, id: &str) -> Result<Option<StoredPage>> {
        match self.store.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(store) => store.page(id),
            None => Err(self.closed()),
        }
    }

    fn closed(&self) -> Error {
        let reason = "it could not be opened again after a write had failed; it is tried with every page that comes";
        Error::Store { path: self.index.directory().to_path_buf(), reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests;
