//! Have I seen this page? An index that answers while pages come and go, and loses nothing it has acknowledged.
//!
//! In: pages, to be looked up and perhaps stored. Out: an outcome for each: new, near or exact, of which stored pages,
//! and how near. Fingerprints find candidates; a small sketch that is stored with every page confirms them. Lookups are
//! done by many threads at once; storing by one (`sequencer.rs`), which decides what is new, writes what has come in
//! the meantime as one group, syncs it, shows it to readers and only then answers.

mod backup;
mod lookup;
mod outcome;
mod sequencer;
mod served_store;

pub use backup::Backup;
pub use outcome::{CheckOutcome, ComparedCandidate, PageLength, PageVerdict};

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::index::store::AcknowledgedMark;
use crate::index::{
    FingerprintOrigin, Index, IndexConfig, IndexReader, MergeStats, MergeThread, OpenOptions, StoredPage,
    belongs_to_index, pages,
};
use crate::page::RawPage;
use crate::plan::Plan;
use crate::sketcher::Sketcher;
use outcome::IncomingPage;
use sequencer::{PendingGroup, Sequencer, SequencerJob};
use served_store::ServedStore;

/// The most jobs that wait for the sequencer.
const MOST_WAITING: usize = 8192;

/// The most sketchers of a group of threads that are kept for the next page.
const MOST_WAITING_SKETCHERS: usize = 4;
/// Bytes of a page after which its sketcher is not kept.
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

/// What has been done since the start.
#[derive(Debug, Default)]
struct OnlineCounters {
    groups: AtomicU64,
    grouped: AtomicU64,
    sync_nanoseconds: AtomicU64,
    reopened: AtomicU64,
    last: AtomicU64,
    store_bytes: AtomicU64,
    /// Jobs that wait for the sequencer.
    waiting: AtomicU64,
    /// When the sequencer began what it does now, in nanoseconds since the index was opened; 0 while it has nothing to do.
    busy_since: AtomicU64,
    /// How often the sequencer was started anew after a panic.
    restarted: AtomicU64,
}

/// What has been done since the start, and what there is.
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
    /// How often the store was reopened after it had failed.
    pub reopened: u64,
    /// The thread that stores.
    pub writer: WriterStats,
    /// Merges.
    pub merging: MergeStats,
    /// Why nothing can be stored at the moment.
    pub failed: Option<String>,
    /// Segments that are left out.
    pub damaged: Vec<String>,
}

/// What the thread that stores is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriterStats {
    /// Whether it is there.
    pub is_alive: bool,
    /// How long it has been busy with what it does now, if it does anything: a sync that hangs shows here.
    pub busy_seconds: Option<f64>,
    /// Jobs that wait for it.
    pub waiting: u64,
    /// How often it was started anew after a panic.
    pub restarted: u64,
}

/// What all threads share.
struct ServedIndex {
    index: Arc<Index>,
    config: Option<Config>,
    threshold: f64,
    radius: u32,
    store: ServedStore,
    counters: OnlineCounters,
    opened: Instant,
}

/// An index that is asked and written to by many at once.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path();
/// use lookalike::config::FingerprintConfig;
/// use lookalike::index::IndexConfig;
/// use lookalike::online::{OnlineOptions, PageVerdict, StorePolicy};
/// use lookalike::{Online, RawPage};
///
/// Online::create(directory, IndexConfig::pages(FingerprintConfig::default(), 3))?;
/// let online = Online::open(directory, OnlineOptions::default())?;
/// let mut page = RawPage::text("The ferry had left the harbour before the storm reached the town. ".repeat(5));
/// page.id = Some("ferry".into());
/// assert_eq!(online.insert(&page, StorePolicy::IfNew)?.verdict, PageVerdict::New);
/// let again = online.check(&page)?;
/// assert_eq!((again.verdict, again.of[0].id.as_str()), (PageVerdict::Exact, "ferry"));
/// online.close()?;
/// # Ok::<(), lookalike::Error>(())
/// ```
pub struct Online {
    served: Arc<ServedIndex>,
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
                let reason = "an index that is served is made for pages, not for ready-made fingerprints";
                return Err(Error::conflict("fingerprints", reason));
            }
        }
        let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        if let Some(strange) = names.iter().find(|name| !belongs_to_index(name)) {
            let reason = format!(
                "holds other things ({strange}), and is not an index; choose another directory, which is made if it does not exist"
            );
            return Err(Error::bad_input(directory, reason));
        }
        if let Some(part) = names.iter().find(|name| *name == "store" || name.ends_with(".seg")) {
            let reason = format!(
                "has {part} but no manifest.json, without which it is not an index; restore all of it, or remove what is there"
            );
            return Err(Error::corrupt(directory, reason));
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
            index.mark_store_ahead()?;
        }
        let first = store.first()?.unwrap_or(covered + 1);
        let served = Arc::new(ServedIndex {
            threshold: index.config().threshold,
            radius: index.config().radius,
            config,
            store: ServedStore::new(store, directory),
            counters: OnlineCounters { last: last.into(), ..OnlineCounters::default() },
            index: Arc::clone(&index),
            opened: Instant::now(),
        });
        served.measure();
        let merging = Arc::new(index.merge_in_background()?);
        let (jobs, received) = std::sync::mpsc::sync_channel(MOST_WAITING);
        let mark = AcknowledgedMark::open(directory)?;
        let sequencer = Sequencer::new(Arc::clone(&served), Arc::clone(&merging), mark, last + 1, first);
        let thread = std::thread::Builder::new().name("sequencer".to_owned());
        let thread =
            thread.spawn(move || sequencer.run(&received)).map_err(Error::io(directory, "start a thread for"))?;
        Ok(Online {
            served,
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
        self.served.index.config()
    }

    /// How pages are read.
    ///
    /// # Errors
    /// When the index holds fingerprints of unknown making.
    pub fn page_config(&self) -> Result<&Config> {
        self.served.config.as_ref().ok_or_else(|| {
            let reason =
                "this index holds fingerprints that were made elsewhere; it answers questions about fingerprints, not about pages";
            Error::conflict("fingerprints", reason)
        })
    }

    /// What is there now, for questions about fingerprints.
    #[must_use]
    pub fn reader(&self) -> IndexReader {
        self.served.index.reader()
    }

    /// Looks a page up, and stores nothing.
    ///
    /// # Errors
    /// When the index is damaged where it is read, or holds no pages.
    pub fn check(&self, page: &RawPage<'_>) -> Result<CheckOutcome> {
        let pending = PendingGroup::default();
        self.with_sketcher(page, |sketcher| {
            let mut incoming = IncomingPage::new(page, pages::page_without_sketch(page, sketcher));
            let near = self.served.near_rows(&incoming, &pending)?;
            if near.count() > 0 {
                incoming.page.sketch = pages::sketch_of_read(sketcher);
            }
            self.served.confirm(&incoming, near, &pending)
        })?
    }

    /// Looks a page up and stores it; `done` is called with the outcome, perhaps by another thread, when all that
    /// it says is on disk.
    ///
    /// # Errors
    /// When the index holds no pages or is read-only, or too many are waiting; `done` is not called then.
    pub fn put(
        &self,
        page: &RawPage<'_>,
        policy: StorePolicy,
        done: impl FnOnce(Result<CheckOutcome>) + Send + 'static,
    ) -> Result<()> {
        if self.is_read_only {
            return Err(self.read_only());
        }
        let incoming =
            self.with_sketcher(page, |sketcher| IncomingPage::new(page, pages::stored_page(page, sketcher)))?;
        if policy == StorePolicy::IfNew {
            // What readers see is on disk: nobody has to wait for this outcome.
            let outcome = self.served.lookup(&incoming, &PendingGroup::default())?;
            if outcome.verdict != PageVerdict::New {
                done(Ok(outcome));
                return Ok(());
            }
        }
        self.send(SequencerJob::Put { incoming: Box::new(incoming), policy, done: Box::new(done) })
    }

    /// Looks a page up and stores it, and returns when all that the outcome says is on disk. Many threads may do so at
    /// once: what waits is synced together.
    ///
    /// # Errors
    /// As [`put`](Online::put), and when nothing can be stored.
    pub fn insert(&self, page: &RawPage<'_>, policy: StorePolicy) -> Result<CheckOutcome> {
        let (sender, outcome) = std::sync::mpsc::sync_channel(1);
        let send = move |outcome| sender.send(outcome).expect("insert waits for it");
        self.put(page, policy, send)?;
        outcome.recv().map_err(|_| Error::internal("a page was neither stored nor refused"))?
    }

    /// Removes the page with an id; `done` is called with whether there was one, when it is gone from disk.
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
            path: self.served.index.directory().to_path_buf(),
            reason: "it is served without its damaged parts; restore a backup".to_owned(),
        }
    }

    /// The page with an id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<StoredPage>> {
        self.served.page(id)
    }

    /// What there is, and what has been done.
    #[must_use]
    pub fn stats(&self) -> OnlineStats {
        let counters = &self.served.counters;
        let tiers = self.served.index.tiers();
        OnlineStats {
            rows: tiers.rows,
            rows_in_memory: tiers.rows_in_memory,
            segments: tiers.segments,
            segments_in_memory: tiers.segments_in_memory,
            segment_bytes: tiers.segment_bytes,
            store_bytes: counters.store_bytes.load(Ordering::Relaxed),
            last_change: counters.last.load(Ordering::Relaxed),
            covered: self.served.index.covered(),
            groups: counters.groups.load(Ordering::Relaxed),
            grouped: counters.grouped.load(Ordering::Relaxed),
            sync_seconds: counters.sync_nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            reopened: counters.reopened.load(Ordering::Relaxed),
            writer: self.writer(),
            merging: self.merging.as_ref().map(|merging| merging.stats()).unwrap_or_default(),
            failed: self.served.store.failure(),
            damaged: self.served.index.damaged(),
        }
    }

    /// What the thread that stores is doing.
    #[must_use]
    pub fn writer(&self) -> WriterStats {
        let counters = &self.served.counters;
        let busy_since = counters.busy_since.load(Ordering::Relaxed);
        WriterStats {
            is_alive: self.sequencer.as_ref().is_some_and(|thread| !thread.is_finished()),
            busy_seconds: (busy_since > 0).then(|| self.served.nanoseconds().saturating_sub(busy_since) as f64 / 1e9),
            waiting: counters.waiting.load(Ordering::Relaxed),
            restarted: counters.restarted.load(Ordering::Relaxed),
        }
    }

    /// Does what was accepted, writes everything to segments and releases the index.
    ///
    /// # Errors
    /// When it cannot be written; nothing that was acknowledged is lost.
    pub fn close(mut self) -> Result<()> {
        self.stop();
        if self.is_read_only {
            return Ok(());
        }
        self.served.index.flush()?;
        match self.served.store.failure() {
            // The store may have changes that nobody has heard of.
            Some(_) => Ok(()),
            None => self.served.index.mark_store_settled(),
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
        let waiting = &self.served.counters.waiting;
        waiting.fetch_add(1, Ordering::Relaxed);
        let sent = match self.jobs.as_ref().map(|jobs| jobs.try_send(job)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(Error::Overloaded),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(Online::sequencer_ended()),
        };
        if sent.is_err() {
            waiting.fetch_sub(1, Ordering::Relaxed);
        }
        sent
    }

    fn sequencer_ended() -> Error {
        Error::internal("the thread that stores pages has ended")
    }

    /// Works on a page with a sketcher.
    fn with_sketcher<T>(&self, page: &RawPage<'_>, work: impl FnOnce(&mut Sketcher) -> T) -> Result<T> {
        let config = self.page_config()?;
        let plan = self.plan.get_or_init(|| config.plan());
        let sketchers = &self.sketchers[LANE.with(|lane| *lane)];
        let waiting = sketchers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut sketcher = waiting.unwrap_or_else(|| Sketcher::of_plan(plan));
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
    /// Time since the index was opened; never 0.
    fn nanoseconds(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_nanos()).expect("less than five centuries").max(1)
    }

    /// Measures the store.
    fn measure(&self) {
        if let Some(bytes) = self.store.bytes() {
            self.counters.store_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// The page with an id.
    fn page(&self, id: &str) -> Result<Option<StoredPage>> {
        self.store.page(id)
    }
}

#[cfg(test)]
mod tests;
