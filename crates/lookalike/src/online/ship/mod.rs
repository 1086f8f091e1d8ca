//! More than one machine: an index that ships what it writes to an object store, and others that follow it.
//!
//! In: groups of changes, after they are on the disk of the primary. Out: the same groups in the object store (`layout.rs`),
//! and from there, in the same order, in the indexes of followers. What is guaranteed:
//!
//! - A follower never has what its primary does not have on disk, and applies every group once, in order.
//! - What was acknowledged as shipped is in every index that is promoted later. A primary acknowledges only after it
//!   has put a group and then still finds its own epoch in `primary.json`; whoever takes over raises the epoch first and
//!   lists the log then, so that it sees that group.
//! - There is one line of groups. `primary.json` says at which group an epoch begins; what an older primary wrote from there
//!   on counts for nobody. It stops storing as soon as it sees the newer epoch. What it has stored meanwhile, and was not
//!   acknowledged as shipped, is in its own directory alone.
//! - Nothing of this holds up writers: groups wait in files of the index (`outbox.rs`), and where too many do, a base (a
//!   copy of the index, `base.rs`) is shipped in their place.
//!
//! Pages that frames are learnt from are not shipped beyond the last base: a follower that is promoted learns from the
//! pages that come then.

mod base;
mod bucket;
mod follower;
mod layout;
mod outbox;
mod shipper;
#[cfg(test)]
mod tests;

pub use follower::{is_follower, prepare_follower};

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Error, Result};
pub(crate) use crate::index::SHIPPING;
use crate::online::jobs::Jobs;
use crate::online::replica::{GroupSink, ReplicationRole};
use crate::online::{Online, ServedIndex};
use bucket::Bucket;
use follower::Follower;
use outbox::Outbox;
use shipper::Shipper;

/// Where groups wait.
const OUTBOX: &str = "outbox";
/// Where a base is put together, or downloaded.
const PARTS: &str = "base.part";
/// The name of an index among those that share an object store.
const OWNER: &str = "owner";

/// How an index is shipped or followed.
#[derive(Debug, Clone)]
pub struct ShipOptions {
    /// The folder in an object store, as in `s3://bucket/prefix`.
    pub url: String,
    /// What this machine is called, for people.
    pub name: String,
    /// Bases that are kept, at least one, with the log since the oldest of them.
    pub keep_bases: usize,
}

impl ShipOptions {
    /// The same for a collection of a service.
    #[must_use]
    pub fn for_collection(&self, name: &str) -> ShipOptions {
        let url = format!("{}/collections/{name}", self.url.trim_end_matches('/'));
        ShipOptions { url, ..self.clone() }
    }
}

/// The collections that are shipped to a folder, besides the one of the folder itself.
///
/// # Errors
/// When the object store cannot be asked.
pub fn shipped_collections(url: &str) -> Result<Vec<String>> {
    Bucket::open(url)?.folders("collections")
}

type ShippedDone = Box<dyn FnOnce(Result<()>) + Send>;

/// What the thread that ships or follows shares with others.
#[derive(Default)]
pub(super) struct Shared {
    is_stopping: Arc<AtomicBool>,
    woken: Mutex<bool>,
    wake: Condvar,
    /// The way to the thread that stores, while it is there.
    jobs: Mutex<Option<Jobs>>,
    outbox: Mutex<Option<Outbox>>,
    shipped: AtomicU64,
    /// Callers that wait until a group is shipped.
    waiting: Mutex<Vec<(u64, ShippedDone)>>,
    /// Who wants this index to be promoted.
    promote: Mutex<Option<Sender<Result<u64>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    fn wake(&self) {
        *lock(&self.woken) = true;
        self.wake.notify_all();
    }

    /// Waits until it is woken, or for so long.
    fn wait(&self, time: Duration) {
        let woken = lock(&self.woken);
        let waited = self.wake.wait_timeout_while(woken, time, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn jobs(&self) -> Result<Jobs> {
        lock(&self.jobs).clone().ok_or_else(Jobs::ended)
    }

    /// All groups up to this one are shipped.
    fn note_shipped(&self, group: u64) {
        self.shipped.fetch_max(group, Ordering::Relaxed);
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let (done, still): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(wanted, _)| *wanted <= group);
        lock(&self.waiting).extend(still);
        done.into_iter().for_each(|(_, done)| done(Ok(())));
    }

    /// Tells all who wait that it will not be.
    fn refuse_waiting(&self, error: impl Fn() -> Error) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_iter().for_each(|(_, done)| done(Err(error())));
    }
}

/// Takes groups for the outbox.
struct OutboxSink(Arc<Shared>);

impl GroupSink for OutboxSink {
    fn prepare(&mut self, number: u64, bytes: &[u8]) {
        if let Some(outbox) = lock(&self.0.outbox).as_mut() {
            outbox.push(number, bytes);
        }
    }

    fn commit(&mut self, number: u64) {
        if let Some(outbox) = lock(&self.0.outbox).as_mut() {
            outbox.commit(number);
        }
    }
}

/// The thread that ships or follows.
pub(super) struct ReplicationThread {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl ReplicationThread {
    /// Lets go of the thread that stores, which is about to end.
    pub(super) fn release_jobs(&self) {
        *lock(&self.shared.jobs) = None;
    }

    /// Ships what can be shipped at once, and ends.
    pub(super) fn stop(self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        self.shared.wake();
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Online {
    /// Ships all that is stored to an object store from now on. Until it is sure that no other index is the primary there,
    /// nothing is stored.
    ///
    /// # Errors
    /// When the URL makes no sense, or the index is read-only, ships or follows already.
    pub fn ship(&self, options: &ShipOptions) -> Result<()> {
        let bucket = Bucket::open(&options.url)?;
        self.ship_to(bucket, options)
    }

    fn ship_to(&self, bucket: Bucket, options: &ShipOptions) -> Result<()> {
        let reason = format!("it is not known yet whether another index is the primary of {}", options.url);
        self.start(bucket, options, reason, ReplicationRole::Claiming, Shipper::run)
    }

    /// Applies what the primary has shipped to an object store, and stores nothing else, until it is promoted.
    /// [`prepare_follower`] must have made the directory.
    ///
    /// # Errors
    /// As [`ship`](Online::ship).
    pub fn follow(&self, options: &ShipOptions) -> Result<()> {
        let bucket = Bucket::open(&options.url)?;
        self.follow_from(bucket, options)
    }

    fn follow_from(&self, bucket: Bucket, options: &ShipOptions) -> Result<()> {
        let reason = format!("it follows the primary of {}; send pages there", options.url);
        self.start(bucket, options, reason, ReplicationRole::Follower, |shipper| Follower::new(shipper).run())
    }

    fn start(
        &self,
        bucket: Bucket,
        options: &ShipOptions,
        reason: String,
        role: ReplicationRole,
        work: impl FnOnce(Shipper) + Send + 'static,
    ) -> Result<()> {
        let jobs = self.jobs()?.clone();
        let mut replication = lock(&self.replication);
        if replication.is_some() {
            return Err(Error::conflict("ship", "the index ships or follows already"));
        }
        let directory = self.served.index.directory().join(SHIPPING);
        std::fs::create_dir_all(&directory).map_err(Error::io(&directory, "create"))?;
        let shared = Arc::new(Shared { jobs: Mutex::new(Some(jobs)), ..Shared::default() });
        let replica = &self.served.replica;
        replica.refuse(Some(reason));
        replica.update(|stats| stats.role = role);
        let bucket = bucket.until(&shared.is_stopping);
        let shipper = Shipper::new(Arc::clone(&self.served), Arc::clone(&shared), bucket, options)?;
        let thread = std::thread::Builder::new().name("replication".to_owned()).spawn(move || work(shipper));
        let thread = thread.map_err(Error::io(&directory, "start a thread for"))?;
        *replication = Some(ReplicationThread { shared, thread });
        Ok(())
    }

    /// Makes a follower the primary, when it has all that was shipped; returns its epoch. The old primary is fenced off.
    ///
    /// # Errors
    /// When it does not follow, or the object store cannot be asked; it stays a follower then.
    pub fn promote(&self) -> Result<u64> {
        let (sender, answer) = mpsc::channel();
        {
            let replication = lock(&self.replication);
            let is_follower = self.replication().is_some_and(|stats| stats.role == ReplicationRole::Follower);
            let Some(replication) = replication.as_ref().filter(|_| is_follower) else {
                return Err(Error::conflict("promote", "this index does not follow another one"));
            };
            let mut wanted = lock(&replication.shared.promote);
            if wanted.is_some() {
                return Err(Error::conflict("promote", "it is being promoted"));
            }
            *wanted = Some(sender);
            replication.shared.wake();
        }
        loop {
            match answer.recv_timeout(Duration::from_millis(200)) {
                Ok(promoted) => return promoted,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("the thread that follows has ended"));
                }
                // Another caller was a moment faster.
                Err(RecvTimeoutError::Timeout) => {
                    let now = self.replication().filter(|stats| stats.role == ReplicationRole::Primary);
                    if let Some(stats) = now {
                        return Ok(stats.epoch);
                    }
                }
            }
        }
    }

    /// Calls `done` when all groups up to one (see [`group_reader`](Online::group_reader)) are shipped, or are known never to
    /// be; not at all if the index is closed before.
    ///
    /// # Errors
    /// When nothing is shipped from here.
    pub fn when_shipped(&self, group: u64, done: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let replication = lock(&self.replication);
        let Some(replication) = replication.as_ref() else {
            return Err(Error::conflict("ack", "nothing is shipped from here; start the service with `ship`"));
        };
        if let Some(reason) = self.served.replica.refusal() {
            return Err(Error::ReadOnly { path: self.served.index.directory().to_path_buf(), reason });
        }
        let shared = &replication.shared;
        lock(&shared.waiting).push((group, Box::new(done)));
        let shipped = shared.shipped.load(Ordering::Relaxed);
        if shipped >= group {
            shared.note_shipped(shipped);
        } else {
            shared.wake();
        }
        Ok(())
    }
}

impl ServedIndex {
    /// The name of this index among those that share an object store; it is made when it is first needed.
    fn owner(&self, name: &str) -> Result<String> {
        use std::hash::{BuildHasher, RandomState};
        let path = self.index.directory().join(SHIPPING).join(OWNER);
        if let Some(owner) = read_owner(self.index.directory()) {
            return Ok(owner);
        }
        // The keys of hash maps are random.
        let random = RandomState::new().hash_one(std::process::id());
        let owner = format!("{name}-{random:016x}");
        std::fs::write(&path, &owner).map_err(Error::io(&path, "write"))?;
        Ok(owner)
    }
}

fn read_owner(directory: &Path) -> Option<String> {
    std::fs::read_to_string(directory.join(SHIPPING).join(OWNER)).ok().filter(|owner| !owner.is_empty())
}
