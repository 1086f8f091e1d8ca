//! Have I seen this page? An index that answers while pages come and go, and loses nothing it has acknowledged.
//!
//! In: pages, to be looked up and perhaps stored. Out: an outcome for each: new, near or exact, of which stored pages,
//! and how near. Pages are found by the bands of their min-values, and decided as `dedup` decides: by the exact similarity
//! of their texts, which are stored, without the frames of their sites, which are learnt as pages come (`sites.rs`). A
//! collection may be searched by fingerprints instead, and keep no texts; then similarities are estimated from sketches.
//! Copies are found by a hash of what is compared, in any crowd. Lookups are
//! done by many threads at once; storing by one (`sequencer.rs`), which decides what is new, writes what has come in
//! the meantime as one group, syncs it, shows it to readers and only then answers.

mod backup;
#[cfg(feature = "faults")]
mod faults;
mod incoming;
mod jobs;
mod lookup;
mod outcome;
mod read_only;
mod rebuild;
mod replica;
mod sequencer;
mod served;
mod served_store;
#[cfg(feature = "remote")]
pub mod ship;
mod sites;
mod stats;

pub use backup::Backup;
pub use incoming::PageExtras;
pub use outcome::{CheckOutcome, ComparedCandidate, PageLength, PageVerdict};
pub use rebuild::Rebuild;
pub use replica::{ReplicationRole, ReplicationStats};
pub use stats::{OnlineStats, WriterStats};

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::config::{BandConfig, Config, Scope};
use crate::error::{Error, Result};
use crate::index::store::{AcknowledgedMark, Totals};
use crate::index::{
    FingerprintOrigin, FoundEntry, Index, IndexConfig, IndexReader, MergeThread, OpenOptions, PageEntry, Record,
    StoredPage, belongs_to_index,
};
use crate::page::RawPage;
use crate::plan::{CorpusStats, Decision, Plan};
use crate::sketcher::Sketcher;
use crate::text::frames::Frames;
use incoming::{IncomingPage, Worker, now};
use jobs::Jobs;
use rebuild::{RemovedIds, Replaced};
use replica::Replica;
use sequencer::{PendingGroup, Sequencer, SequencerJob};
use served_store::ServedStore;
use sites::Sites;

/// The most jobs that wait for the sequencer.
const MOST_WAITING: usize = 8192;

/// The most workers of a group of threads that are kept for the next page.
const MOST_WAITING_WORKERS: usize = 4;
/// Bytes of a page after which its worker is not kept.
const LARGE_PAGE: u64 = 1 << 20;
/// Groups of threads that share workers.
const LANES: usize = 16;

thread_local! {
    /// A thread keeps to the same workers: what they remember is in the cache of its core.
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
    pages: AtomicU64,
    all_groups: AtomicU64,
    store_bytes: AtomicU64,
    /// Jobs that wait for the sequencer.
    waiting: AtomicU64,
    /// When the sequencer began what it does now, in nanoseconds since the index was opened; 0 while it has nothing to do.
    busy_since: AtomicU64,
    /// How often the sequencer was started anew after a panic.
    restarted: AtomicU64,
}

/// What all threads share.
struct ServedIndex {
    index: Arc<Index>,
    config: Option<Config>,
    plan: Option<Plan>,
    /// What makes two pages near-duplicates.
    decision: Decision,
    threshold: f64,
    radius: u32,
    /// Columns of a page that are the keys of its bands.
    band_columns: usize,
    store: ServedStore,
    /// What is known of sites, where pages are compared without their frames.
    sites: Option<Sites>,
    /// Hosts whose stored pages are to be read again.
    refreshes: Sender<u64>,
    is_stopping: AtomicBool,
    /// What was removed while it is built anew.
    removed: RemovedIds,
    /// What it is to others that hold the same pages.
    replica: Replica,
    counters: OnlineCounters,
    opened: Instant,
}

/// An index that is asked and written to by many at once.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path();
/// use lookalike::config::BandConfig;
/// use lookalike::index::IndexConfig;
/// use lookalike::online::{OnlineOptions, PageVerdict, StorePolicy};
/// use lookalike::{Online, RawPage};
///
/// Online::create(directory, IndexConfig::bands(BandConfig::default(), 0.7))?;
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
    workers: [Mutex<Vec<Worker>>; LANES],
    jobs: Option<Jobs>,
    sequencer: Option<JoinHandle<()>>,
    refresher: Option<JoinHandle<()>>,
    merging: Option<Arc<MergeThread>>,
    is_read_only: bool,
    /// Held while a copy is made.
    copying: Mutex<()>,
    /// Where the copy of a store is that cannot be written to, and the lock on what it is a copy of.
    aside: Option<(tempfile::TempDir, Option<File>)>,
    /// The thread that ships or follows.
    #[cfg(feature = "remote")]
    replication: Mutex<Option<ship::ReplicationThread>>,
    /// Removes the files when another index is in the place of this one; the last to go, when they are closed.
    replaced: Replaced,
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
    /// What the store keeps in memory of its files; 0 for 64 MiB.
    pub cache_bytes: u64,
}

impl Online {
    /// Makes an empty index for pages in `directory`.
    ///
    /// # Errors
    /// When there is one, the config makes no sense, or the directory cannot be written.
    pub fn create(directory: &Path, config: IndexConfig) -> Result<()> {
        match &config.fingerprints {
            FingerprintOrigin::Pages(_) | FingerprintOrigin::Bands(_) => config.check()?,
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
        let store = index.open_store(options.skip_damaged, options.cache_bytes)?;
        let covered = index.covered();
        let totals = index.read_store(&store, options.skip_damaged)?;
        if !options.skip_damaged {
            index.mark_store_ahead()?;
        }
        let first = store.first()?.unwrap_or(covered + 1);
        // Where its files are.
        let directory = index.directory();
        let (refreshes, to_refresh) = mpsc::channel();
        let store = ServedStore::new(store, directory, options.cache_bytes);
        let served = Arc::new(ServedIndex::new(Arc::clone(&index), store, refreshes, totals));
        served.measure();
        let merging = Arc::new(index.merge_in_background()?);
        let (sender, received) = mpsc::sync_channel(MOST_WAITING);
        let jobs = Jobs::new(sender, Arc::clone(&served));
        let mark = AcknowledgedMark::open(directory)?;
        let worker = served.worker();
        let sequencer = Sequencer::new(Arc::clone(&served), Arc::clone(&merging), worker, mark, totals, first);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
            thread.map_err(Error::io(directory, "start a thread for"))
        };
        let sequencer = spawn("sequencer", Box::new(move || sequencer.run(&received)))?;
        let refresher = served.sites.is_some().then(|| {
            let (served, jobs) = (Arc::clone(&served), jobs.clone());
            let work = move || {
                let mut worker = served.worker();
                // What cannot be read again now is read again when its site is learnt from the next time.
                to_refresh.iter().take_while(|_| !served.is_stopping.load(Ordering::Relaxed)).for_each(|host| {
                    let _ = served.refresh_host(host, &jobs, &mut worker);
                });
            };
            spawn("refresh", Box::new(work))
        });
        Ok(Online {
            served,
            workers: Default::default(),
            jobs: Some(jobs),
            sequencer: Some(sequencer),
            refresher: refresher.transpose()?,
            merging: Some(merging),
            is_read_only: options.skip_damaged,
            copying: Mutex::default(),
            aside: None,
            replaced: Replaced::default(),
            #[cfg(feature = "remote")]
            replication: Mutex::default(),
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
        self.with_worker(page, |worker| {
            let incoming = self.served.read(page, PageExtras::default(), None, worker)?;
            self.served.lookup(&incoming, 0, &PendingGroup::default(), worker)
        })
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
        extras: PageExtras,
        done: impl FnOnce(Result<CheckOutcome>) + Send + 'static,
    ) -> Result<()> {
        let jobs = self.jobs()?;
        // What comes after this is looked up once more when the page is stored.
        let since = self.served.counters.last.load(Ordering::Acquire);
        let (incoming, found) = self.with_worker(page, |worker| {
            let incoming = self.served.read(page, extras, Some(jobs), worker)?;
            let found = self.served.lookup(&incoming, 0, &PendingGroup::default(), worker)?;
            Ok((incoming, found))
        })?;
        if policy == StorePolicy::IfNew && found.verdict != PageVerdict::New {
            // What readers see is on disk: nobody has to wait for this outcome.
            done(Ok(found));
            return Ok(());
        }
        let since = u32::try_from(since).unwrap_or(u32::MAX);
        jobs.send(SequencerJob::Put {
            incoming: Box::new(incoming),
            policy,
            since,
            found: Box::new(found),
            done: Box::new(done),
        })
    }

    /// Looks a page up and stores it, and returns when all that the outcome says is on disk. Many threads may do so at
    /// once: what waits is synced together.
    ///
    /// # Errors
    /// As [`put`](Online::put), and when nothing can be stored.
    pub fn insert(&self, page: &RawPage<'_>, policy: StorePolicy) -> Result<CheckOutcome> {
        let (sender, outcome) = mpsc::sync_channel(1);
        let send = move |outcome| sender.send(outcome).expect("insert waits for it");
        self.put(page, policy, PageExtras::default(), send)?;
        outcome.recv().map_err(|_| Error::internal("a page was neither stored nor refused"))?
    }

    /// Removes the page with an id; `done` is called with whether there was one, when it is gone from disk.
    ///
    /// # Errors
    /// When too many are waiting.
    pub fn delete(&self, id: &str, done: impl FnOnce(Result<bool>) + Send + 'static) -> Result<()> {
        self.jobs()?.send(SequencerJob::Delete { id: id.to_owned(), done: Box::new(done) })
    }

    /// The way to the thread that stores.
    fn jobs(&self) -> Result<&Jobs> {
        if self.is_read_only {
            return Err(self.read_only());
        }
        if let Some(reason) = self.served.replica.refusal() {
            return Err(Error::ReadOnly { path: self.served.index.directory().to_path_buf(), reason });
        }
        self.jobs.as_ref().ok_or_else(Jobs::ended)
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
        let Some(found) = self.served.store.entry(id)? else { return Ok(None) };
        let page = self.served.stored_page(id, found)?;
        Ok(page.filter(|page| page.expires_at.is_none_or(|time| time > now())))
    }

    /// Pages by their ids, in the order of their bytes: those with a prefix, after an id, at most `limit`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, StoredPage)>> {
        let (mut found, time) = (Vec::new(), now());
        let mut visit = |id: String, entry: FoundEntry| {
            // One that was removed, or whose time is over, is not there.
            let page = self.served.stored_page(&id, entry)?;
            let page = page.filter(|page| page.expires_at.is_none_or(|expires| expires > time));
            found.extend(page.map(|page| (id, page)));
            Ok(found.len() < limit)
        };
        if limit > 0 {
            self.served.store.for_each_entry(prefix, after, &mut visit)?;
        }
        Ok(found)
    }

    /// The text of the page with an id, as it is stored; nothing if texts are not kept, or there is no such page.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn text(&self, id: &str) -> Result<Option<String>> {
        let Some(FoundEntry::Entry(entry)) = self.served.store.entry(id)? else { return Ok(None) };
        let Some(record) = self.served.store.record(entry.number)? else { return Ok(None) };
        let content = record.text(&mut crate::text::ContentCodec::default());
        let content = content.map_err(|reason| Error::corrupt(self.served.index.directory(), reason))?;
        Ok(content.map(|content| content.text().0.to_owned()))
    }

    /// Reads the number of the last group of changes that is on disk. Where it is called by `done` of
    /// [`put`](Online::put), all that the outcome says is in groups up to that one.
    pub fn group_reader(&self) -> impl Fn() -> u64 + Send + Sync + use<> {
        let served = Arc::clone(&self.served);
        move || served.last_group()
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
            None => self.served.index.mark_store_settled(self.served.totals()),
        }
    }

    /// Ends all threads when they have done what was accepted.
    fn stop(&mut self) {
        self.served.is_stopping.store(true, Ordering::Relaxed);
        self.jobs = None;
        #[cfg(feature = "remote")]
        let replication = self.replication.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        #[cfg(feature = "remote")]
        replication.iter().for_each(ship::ReplicationThread::release_jobs);
        // It waits for hosts; none stands for an end.
        let _ = self.served.refreshes.send(0);
        for thread in [self.refresher.take(), self.sequencer.take()] {
            if let Some(Err(panic)) = thread.map(JoinHandle::join) {
                std::panic::resume_unwind(panic);
            }
        }
        #[cfg(feature = "remote")]
        replication.into_iter().for_each(ship::ReplicationThread::stop);
        // What could not be merged is in the store, and is merged another time.
        let _ = self.merging.take().and_then(Arc::into_inner).map(MergeThread::finish);
    }

    /// Works on a page.
    fn with_worker<T>(&self, page: &RawPage<'_>, work: impl FnOnce(&mut Worker) -> Result<T>) -> Result<T> {
        self.page_config()?;
        let workers = &self.workers[LANE.with(|lane| *lane)];
        let waiting = workers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = waiting.unwrap_or_else(|| self.served.worker());
        let done = work(&mut worker);
        let mut workers = workers.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has read a large page has grown with it.
        if workers.len() < MOST_WAITING_WORKERS && page.length < LARGE_PAGE {
            workers.push(worker);
        }
        done
    }
}

impl Drop for Online {
    /// What is in memory only stays in the store, as after a crash.
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
