//! What sites put around their stories, learnt from the pages that come.
//!
//! In: every page in blocks that is to be stored, whatever becomes of it. Out: for each host what is frame on its pages.
//! Pages without a URL are learnt from together: their sites are told apart by their markup. A sample of each host is kept
//! in the store. It is learnt from again when enough pages have come of which nothing is known, or when the sample has
//! grown by half. Stored pages of the host are then read again, so that they are found by what they are compared by now.
//! The page that makes this due waits for it: pages that are sent one by one are answered the same way each time.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::index::FoundEntry;
use crate::online::incoming::Worker;
use crate::online::sequencer::{PendingGroup, SequencerJob};
use crate::online::{Jobs, ServedIndex};
use crate::spill::Spill;
use crate::text::HeldPage;
use crate::text::frames::{FrameLearner, Frames, KnownFrames, SamplePage};

/// Pages of a host that are learnt from.
const HOST_PAGES: usize = 192;
/// The same of all pages without a host, which may be of many sites.
const NAMELESS_PAGES: usize = 2048;
/// What stands for the host of pages without one.
pub(super) const NAMELESS: u64 = 0;
/// Pages of which nothing is known that make learning due, at first; more where the sample is large.
const FIRST_UNKNOWN: usize = 8;
/// As a share of the sample.
const UNKNOWN_SHARE: usize = 16;
/// And at the most, where learning does not help.
const MOST_UNKNOWN: usize = 4096;
/// Hosts that are remembered; the others are read from the store when one of their pages comes.
const MOST_HOSTS: usize = 1 << 16;
/// Stored pages that are read again at once.
const CHUNK: usize = 256;
/// Stored pages of a host up to which the page that makes this due waits for it.
const MOST_AT_ONCE: usize = 4096;

/// What is known of all hosts.
#[derive(Default)]
pub(super) struct Sites {
    hosts: Mutex<HashMap<u64, Arc<Host>>>,
    clock: AtomicU64,
}

/// What is known of a host.
struct Host {
    frames: ArcSwapOption<Frames>,
    sample: Mutex<Sample>,
    /// Held while it is learnt from.
    learning: Mutex<()>,
    /// When it was last asked for.
    used: AtomicU64,
}

/// The pages of a host that are learnt from.
#[derive(Default)]
struct Sample {
    keys: BTreeSet<u64>,
    /// Pages that were offered.
    seen: u64,
    /// The same when half of the sample makes room for newer pages.
    refresh_at: u64,
    /// Pages since it was last learnt from.
    since: usize,
    /// Those of which nothing was known.
    unknown: usize,
    /// How many of those make learning due.
    needed: usize,
    version: u64,
}

/// What was learnt of a host, as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredFrames {
    version: u64,
    seen: u64,
    needed: usize,
    /// Compressed lines.
    #[serde(with = "crate::spill::as_bytes")]
    lines: Vec<u8>,
    length: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sample {
    /// Whether it is time to learn.
    fn is_due(&self) -> bool {
        self.unknown >= self.needed.max(FIRST_UNKNOWN) || self.since >= (self.keys.len() / 2).max(2 * FIRST_UNKNOWN)
    }
}

#[cfg(feature = "remote")]
impl Sites {
    /// Forgets what is known of a host, which is read from the store again.
    pub(super) fn forget(&self, host: u64) {
        lock(&self.hosts).remove(&host);
    }
}

impl ServedIndex {
    fn host(&self, sites: &Sites, host: u64) -> Result<Arc<Host>> {
        let tick = sites.clock.fetch_add(1, Ordering::Relaxed);
        if let Some(known) = lock(&sites.hosts).get(&host) {
            known.used.store(tick, Ordering::Relaxed);
            return Ok(Arc::clone(known));
        }
        let loaded = Arc::new(self.load_host(host, tick)?);
        let mut hosts = lock(&sites.hosts);
        if hosts.len() >= MOST_HOSTS {
            let mut used: Vec<u64> = hosts.values().map(|host| host.used.load(Ordering::Relaxed)).collect();
            used.sort_unstable();
            let oldest = used[used.len() / 2];
            hosts.retain(|_, host| host.used.load(Ordering::Relaxed) > oldest);
        }
        Ok(Arc::clone(hosts.entry(host).or_insert(loaded)))
    }

    fn load_host(&self, host: u64, tick: u64) -> Result<Host> {
        let mut sample = Sample::default();
        let mut take = |key: u64, _: &[u8]| {
            sample.keys.insert(key);
            Ok(())
        };
        self.store.for_each_sample(host, &mut take)?;
        sample.seen = sample.keys.len() as u64;
        let mut frames = None;
        if let Some(bytes) = self.store.frames(host)? {
            let wrong = |reason: String| Error::corrupt(self.index.directory(), format!("the store: {reason}"));
            let stored: StoredFrames =
                postcard::from_bytes(&bytes).map_err(|cause| wrong(format!("frames make no sense: {cause}")))?;
            let lines = zstd::bulk::decompress(&stored.lines, stored.length)
                .map_err(|cause| wrong(format!("frames make no sense: {cause}")))?;
            frames = Some(KnownFrames::parse(&lines).map_err(wrong)?);
            (sample.version, sample.seen, sample.needed) = (stored.version, stored.seen, stored.needed);
        }
        Ok(Host {
            frames: ArcSwapOption::from(frames.map(Arc::new)),
            sample: Mutex::new(sample),
            learning: Mutex::default(),
            used: AtomicU64::new(tick),
        })
    }

    /// What is known to be frame on the pages of a host.
    pub(super) fn frames_of(&self, host: u64) -> Result<Option<Arc<Frames>>> {
        let Some(sites) = &self.sites else { return Ok(None) };
        Ok(self.host(sites, host)?.frames.load_full())
    }

    /// Learns from a page that is to be stored, if it is time to.
    pub(super) fn learn_from(&self, number: u64, held: &HeldPage, jobs: &Jobs, worker: &mut Worker) -> Result<()> {
        let Some(sites) = &self.sites else { return Ok(()) };
        let host = self.host(sites, number)?;
        let is_known = host.frames.load().as_ref().is_some_and(|frames| held.is_known_to(frames));
        if !self.offer(number, &host, held, is_known)? {
            return Ok(());
        }
        // Whoever comes while it is learnt goes on with what is known.
        let Ok(_learning) = host.learning.try_lock() else { return Ok(()) };
        let (frames, lines) = self.learn(number)?;
        let version = frames.decisive_hash();
        let stored = {
            let mut sample = lock(&host.sample);
            (sample.since, sample.unknown) = (0, 0);
            let least = FIRST_UNKNOWN.max(sample.keys.len() / UNKNOWN_SHARE);
            // Where nothing can be learnt of such pages, it is tried less and less often.
            sample.needed =
                if held.is_known_to(&frames) { least } else { (sample.needed * 2).clamp(least, MOST_UNKNOWN) };
            if std::mem::replace(&mut sample.version, version) == version {
                return Ok(());
            }
            let packed = zstd::bulk::compress(&lines, 3).map_err(|cause| Error::internal(format!("zstd: {cause}")))?;
            StoredFrames { version, seen: sample.seen, needed: sample.needed, lines: packed, length: lines.len() }
        };
        let bytes = postcard::to_stdvec(&stored).expect("writing to memory does not fail");
        jobs.wait_for(|done| SequencerJob::Frames { host: number, bytes, done })?;
        host.frames.store(Some(Arc::new(frames)));
        if self.store.numbers_of_host(number, 0, MOST_AT_ONCE)?.len() < MOST_AT_ONCE {
            return self.refresh_host(number, jobs, worker);
        }
        let _ = self.refreshes.send(number);
        Ok(())
    }

    /// Puts a page into the sample, if it belongs there; returns whether it is time to learn.
    fn offer(&self, number: u64, host: &Host, held: &HeldPage, is_known: bool) -> Result<bool> {
        let most = if number == NAMELESS { NAMELESS_PAGES } else { HOST_PAGES };
        let mut sample = lock(&host.sample);
        let page = held.sample_of_blocks();
        if sample.keys.contains(&page.key()) {
            return Ok(false);
        }
        sample.seen += 1;
        if sample.keys.len() >= most {
            // A site that changes is learnt again: from time to time half of the sample makes room for what is new.
            let drop_from = if sample.seen >= sample.refresh_at { most / 2 } else { most - 1 };
            let dropped: Vec<u64> = sample.keys.iter().copied().skip(drop_from).collect();
            if drop_from == most - 1 && dropped.first().is_none_or(|last| page.key() > *last) {
                return Ok(false);
            }
            for key in dropped {
                sample.keys.remove(&key);
                self.store.forget_sample(number, key)?;
            }
            if drop_from < most - 1 {
                sample.refresh_at = sample.seen * 2;
            }
        }
        sample.keys.insert(page.key());
        sample.since += 1;
        sample.unknown += usize::from(!is_known);
        let bytes = postcard::to_stdvec(&page).expect("writing to memory does not fail");
        self.store.keep_sample(number, page.key(), bytes)?;
        Ok(sample.is_due())
    }

    /// What the sample of a host teaches, and the same as lines.
    fn learn(&self, host: u64) -> Result<(Frames, Vec<u8>)> {
        let mut learner = FrameLearner::new(Spill::new(self.index.directory().join("frames"), usize::MAX));
        let mut add = |_: u64, bytes: &[u8]| {
            let page: SamplePage = postcard::from_bytes(bytes).map_err(|cause| {
                Error::corrupt(self.index.directory(), format!("the store: a sample makes no sense: {cause}"))
            })?;
            learner.add(page)
        };
        self.store.for_each_sample(host, &mut add)?;
        let frames = learner.finish()?;
        let lines = KnownFrames::lines(&frames);
        Ok((frames, lines))
    }

    /// Reads the stored pages of a host again, with what is known now.
    pub(super) fn refresh_host(&self, host: u64, jobs: &Jobs, worker: &mut Worker) -> Result<()> {
        let mut from = 0;
        loop {
            let numbers = self.store.numbers_of_host(host, from, CHUNK)?;
            let Some(&last) = numbers.last() else { return Ok(()) };
            let (sender, answers) = sync_channel(numbers.len());
            let mut sent = 0;
            for number in numbers {
                if self.is_stopping.load(Ordering::Relaxed) {
                    return Ok(());
                }
                sent += usize::from(self.refresh(number, jobs, worker, &sender)?);
            }
            drop(sender);
            // What was replaced meanwhile is not touched.
            answers.iter().take(sent).collect::<Result<Vec<bool>>>()?;
            from = last.saturating_add(1);
        }
    }

    /// Reads a stored page again; returns whether it is put in the place of what is stored.
    fn refresh(
        &self,
        number: u32,
        jobs: &Jobs,
        worker: &mut Worker,
        sender: &SyncSender<Result<bool>>,
    ) -> Result<bool> {
        let Some(record) = self.store.record(number)? else { return Ok(false) };
        let entry = match self.entry(&record.id, &PendingGroup::default())? {
            Some(FoundEntry::Entry(entry)) if entry.number == number => entry,
            _ => return Ok(false),
        };
        let Some(page) = self.read_again(&record, &entry, worker)? else { return Ok(false) };
        let same = page.record.identity == record.identity
            && page.record.site == record.site
            && page.record.sketch() == record.sketch();
        if same {
            return Ok(false);
        }
        let sender = sender.clone();
        let done = Box::new(move |refreshed| drop(sender.send(refreshed)));
        jobs.send_waiting(SequencerJob::Refresh { number, page: Box::new(page), done })?;
        Ok(true)
    }
}
