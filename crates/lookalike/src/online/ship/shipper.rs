//! The thread of a primary: claims an epoch, ships groups, makes bases, and stops when another one has taken over.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::index::store::{AcknowledgedMark, Totals};
use crate::online::ServedIndex;
use crate::online::replica::ReplicationRole;
use crate::online::sequencer::SequencerJob;
use crate::online::ship::base::Base;
use crate::online::ship::bucket::Bucket;
use crate::online::ship::layout::{LogObject, PrimaryRecord, encode_groups, is_valid_base, last_shipped};
use crate::online::ship::outbox::Outbox;
use crate::online::ship::{OUTBOX, OutboxSink, PARTS, SHIPPING, Shared, ShipOptions, lock};

/// How long groups are gathered, unless somebody waits for them.
const INTERVAL: Duration = Duration::from_millis(200);
/// Bytes of an object of the log, about.
const OBJECT_BYTES: usize = 4 << 20;
/// How often a primary that ships nothing looks whether it still is one.
const CHECKED_EVERY: Duration = Duration::from_secs(2);
/// How long to wait after the first error; it doubles up to the other.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Bytes of the log before a new base is worth it, even if the last one is smaller.
const LEAST_LOG: u64 = 64 << 20;
/// Objects of the log before a new base is made, however small they are.
const MOST_OBJECTS: u64 = 5000;

/// Waits longer after each error.
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) fn new() -> Backoff {
        Backoff(FIRST_PAUSE)
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// A base that is being made by a thread of its own.
type BaseThread = JoinHandle<(Result<Base>, HashSet<String>)>;

/// What a primary has to do.
pub(super) struct Shipper {
    pub(super) served: Arc<ServedIndex>,
    pub(super) shared: Arc<Shared>,
    pub(super) bucket: Bucket,
    pub(super) options: ShipOptions,
    pub(super) owner: String,
    /// What makes this the primary.
    pub(super) record: Option<PrimaryRecord>,
    /// Groups that were sent and perhaps not received.
    sent: Option<Vec<(u64, Vec<u8>)>>,
    /// Files of bases of this epoch that are there.
    uploaded: HashSet<String>,
    making: Option<BaseThread>,
    needs_base: bool,
    /// Whether the log cannot go on before there is a base: groups are missing, or there is none at all.
    is_blocked: bool,
    base_bytes: u64,
    log_bytes: u64,
    log_objects: u64,
    checked: Instant,
    caught_up: Instant,
}

impl Shipper {
    pub(super) fn new(
        served: Arc<ServedIndex>,
        shared: Arc<Shared>,
        bucket: Bucket,
        options: &ShipOptions,
    ) -> Result<Shipper> {
        Ok(Shipper {
            owner: served.owner(&options.name)?,
            served,
            shared,
            bucket,
            options: options.clone(),
            record: None,
            sent: None,
            uploaded: HashSet::new(),
            making: None,
            needs_base: false,
            is_blocked: false,
            base_bytes: 0,
            log_bytes: 0,
            log_objects: 0,
            checked: Instant::now(),
            caught_up: Instant::now(),
        })
    }

    /// Ships until it is stopped or fenced off.
    pub(super) fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let is_last = self.shared.is_stopping();
            let stepped = self.step();
            self.note(stepped.as_ref().err());
            let is_fenced = self.served.replica.stats().is_some_and(|stats| stats.role == ReplicationRole::Fenced);
            if is_fenced || is_last && !matches!(stepped, Ok(true)) {
                break;
            }
            match stepped {
                Ok(true) => {}
                Ok(false) => {
                    backoff = Backoff::new();
                    self.shared.wait(INTERVAL);
                }
                Err(_) => self.shared.wait(backoff.next()),
            }
        }
        if let Some(making) = self.making.take() {
            // It sees that all is to stop.
            drop(making.join());
        }
    }

    /// Says how it is.
    fn note(&mut self, error: Option<&Error>) {
        let (group, shipped) = (self.served.totals().groups, self.shared.shipped.load(Ordering::Relaxed));
        if shipped >= group {
            self.caught_up = Instant::now();
        }
        let (epoch, lag) = (self.record.as_ref().map(|record| record.epoch), self.caught_up.elapsed());
        self.served.replica.update(|stats| {
            stats.shipped_group = shipped;
            stats.lag_seconds = lag.as_secs_f64();
            stats.epoch = epoch.unwrap_or(stats.epoch);
            stats.last_error = error.map(ToString::to_string);
        });
    }

    /// Does what is next; returns whether there is more to do at once.
    fn step(&mut self) -> Result<bool> {
        if self.record.is_none() && !self.shared.is_stopping() {
            self.claim()?;
        }
        if self.record.is_none() {
            return Ok(false);
        }
        self.finish_base()?;
        if self.needs_base && self.making.is_none() && !self.shared.is_stopping() {
            self.begin_base()?;
        }
        let has_more = self.ship_groups()?;
        if self.checked.elapsed() >= CHECKED_EVERY {
            self.check_epoch()?;
        }
        let is_due = self.log_bytes > self.base_bytes.max(LEAST_LOG) || self.log_objects > MOST_OBJECTS;
        self.needs_base |= is_due && self.making.is_none();
        Ok(has_more)
    }

    /// Becomes the primary, unless another one is.
    fn claim(&mut self) -> Result<()> {
        let before = PrimaryRecord::read(&self.bucket)?;
        if let Some(other) = before.as_ref().filter(|before| before.owner != self.owner) {
            self.fence(other);
            return Ok(());
        }
        let (log, bases) = (LogObject::list(&self.bucket)?, Base::list(&self.bucket)?);
        let shipped = before.as_ref().map_or(0, |before| last_shipped(before, &log, &bases));
        let group = self.served.totals().groups;
        if group < shipped {
            let reason = format!(
                "{} has {shipped} groups of changes, and this directory only the first {group}: it is an older copy; follow and promote it, or restore a newer one",
                self.bucket.url()
            );
            self.served.replica.refuse(Some(reason.clone()));
            self.served.replica.update(|stats| stats.trouble = Some(reason.clone()));
            return Err(Error::conflict("ship", reason));
        }
        let goes_on = self.open_outbox(shipped, group)?;
        let has_base = before.as_ref().is_some_and(|record| bases.iter().any(|base| is_valid_base(record, *base)));
        self.needs_base = !goes_on || !has_base;
        self.is_blocked = self.needs_base;
        let owner = self.owner.clone();
        let mut other = None;
        let claimed = PrimaryRecord::change(&self.bucket, |now| {
            other = now.filter(|now| now.owner != owner).cloned();
            match &other {
                Some(_) => Err(Error::conflict("ship", "another index has become the primary meanwhile")),
                None => Ok(PrimaryRecord::next(now, &owner, Some(shipped + 1))),
            }
        });
        match (claimed, other) {
            (_, Some(other)) => self.fence(&other),
            (claimed, None) => self.begin(claimed?, shipped, &log),
        }
        Ok(())
    }

    /// Opens what waits to be shipped; returns whether it goes on where the log ends.
    fn open_outbox(&self, shipped: u64, group: u64) -> Result<bool> {
        let mut outbox = Outbox::open(&self.served.index.directory().join(SHIPPING).join(OUTBOX))?;
        // What was never written to the store does not count.
        outbox.drop_after(group);
        outbox.commit(group);
        outbox.forget_until(shipped);
        let ends = outbox.waiting().unwrap_or((shipped + 1, shipped));
        let goes_on = !outbox.has_gap() && ends == (shipped + 1, group);
        if !goes_on {
            outbox.begin_anew();
        }
        *lock(&self.shared.outbox) = Some(outbox);
        Ok(goes_on)
    }

    /// Lets pages in: this is the primary, and all groups up to `shipped` are in the object store.
    fn begin(&mut self, record: PrimaryRecord, shipped: u64, log: &[LogObject]) {
        self.log_bytes = log.iter().map(|object| object.size).sum();
        self.log_objects = log.len() as u64;
        self.base_bytes = self.served.counters.store_bytes.load(Ordering::Relaxed);
        self.shared.note_shipped(shipped);
        let (replica, epoch) = (&self.served.replica, record.epoch);
        replica.set_sink(Some(Box::new(OutboxSink(Arc::clone(&self.shared)))));
        replica.update(|stats| {
            (stats.role, stats.epoch, stats.trouble) = (ReplicationRole::Primary, epoch, None);
            stats.primary = Some(self.owner.clone());
        });
        replica.refuse(None);
        self.checked = Instant::now();
        self.record = Some(record);
    }

    /// The same for a follower that is promoted.
    pub(super) fn begin_promoted(&mut self, record: PrimaryRecord, group: u64, log: &[LogObject]) -> Result<()> {
        self.open_outbox(group, group)?;
        self.begin(record, group, log);
        Ok(())
    }

    /// Nothing is stored here any more: another one is the primary.
    fn fence(&mut self, other: &PrimaryRecord) {
        let reason = format!("fenced off: another primary has epoch {}: {}", other.epoch, other.owner);
        let replica = &self.served.replica;
        replica.refuse(Some(reason.clone()));
        replica.set_sink(None);
        replica.update(|stats| {
            (stats.role, stats.epoch) = (ReplicationRole::Fenced, other.epoch);
            (stats.primary, stats.trouble) = (Some(other.owner.clone()), Some(reason.clone()));
        });
        let path = self.served.index.directory().to_path_buf();
        self.shared.refuse_waiting(|| Error::ReadOnly { path: path.clone(), reason: reason.clone() });
        self.record = None;
    }

    /// Whether this is still the primary; if not, it is fenced off.
    fn check_epoch(&mut self) -> Result<bool> {
        let now = PrimaryRecord::read(&self.bucket)?;
        self.checked = Instant::now();
        match (&self.record, now) {
            (Some(own), Some(now)) if own.epoch == now.epoch && own.owner == now.owner => Ok(true),
            (Some(_), Some(other)) => {
                self.fence(&other);
                Ok(false)
            }
            (_, None) => Err(Error::conflict("ship", format!("{} has no primary.json any more", self.bucket.url()))),
            (None, _) => Ok(false),
        }
    }

    /// Ships the oldest groups; returns whether there are more.
    fn ship_groups(&mut self) -> Result<bool> {
        let Some(epoch) = self.record.as_ref().map(|record| record.epoch) else { return Ok(false) };
        if self.sent.is_none() {
            let mut outbox = lock(&self.shared.outbox);
            let Some(outbox) = outbox.as_mut() else { return Ok(false) };
            let groups = outbox.peek(OBJECT_BYTES);
            self.is_blocked |= outbox.has_gap();
            if self.is_blocked {
                self.needs_base |= self.making.is_none();
                return Ok(false);
            }
            self.sent = Some(groups).filter(|groups| !groups.is_empty());
        }
        let Some(groups) = &self.sent else { return Ok(false) };
        let [(first, _), .., (last, _)] = &groups[..] else {
            let [(first, _)] = &groups[..] else { return Ok(false) };
            return self.ship_object(LogObject { epoch, first: *first, last: *first, size: 0 });
        };
        self.ship_object(LogObject { epoch, first: *first, last: *last, size: 0 })
    }

    fn ship_object(&mut self, object: LogObject) -> Result<bool> {
        let Some(groups) = self.sent.take() else { return Ok(false) };
        let bytes = encode_groups(&object, self.served.index.config().hash(), &groups);
        let created = self.bucket.create(&object.name(), &bytes);
        match created {
            Ok(true) => {}
            Ok(false) => {
                return Err(Error::conflict("ship", format!("{} exists with another content", object.name())));
            }
            Err(error) => {
                // It may be there: the same object is put again.
                self.sent = Some(groups);
                return Err(error);
            }
        }
        match self.check_epoch() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => {
                self.sent = Some(groups);
                return Err(error);
            }
        }
        self.log_bytes += bytes.len() as u64;
        self.log_objects += 1;
        let mut has_more = false;
        if let Some(outbox) = lock(&self.shared.outbox).as_mut() {
            outbox.shipped(&groups);
            has_more = outbox.waiting().is_some();
        }
        self.shared.note_shipped(object.last);
        let is_urgent =
            self.shared.is_stopping() || bytes.len() >= OBJECT_BYTES || !lock(&self.shared.waiting).is_empty();
        Ok(has_more && is_urgent)
    }

    /// Starts to make a base, in a thread of its own.
    fn begin_base(&mut self) -> Result<()> {
        let Some(record) = self.record.clone() else { return Ok(()) };
        if let Some(outbox) = lock(&self.shared.outbox).as_mut().filter(|outbox| outbox.has_gap()) {
            // The base has all that was written until now, and what comes from now on waits again.
            outbox.begin_anew();
        }
        let (served, shared, bucket) = (Arc::clone(&self.served), Arc::clone(&self.shared), self.bucket.clone());
        let (mut uploaded, keep) = (std::mem::take(&mut self.uploaded), self.options.keep_bases);
        let work = move || {
            let made = make_base(&served, &shared, &bucket, &record, keep, &mut uploaded);
            (made, uploaded)
        };
        let thread = std::thread::Builder::new().name("base".to_owned()).spawn(work);
        self.making = Some(thread.map_err(Error::io(self.served.index.directory(), "start a thread for"))?);
        self.needs_base = false;
        Ok(())
    }

    /// Takes note of a base that is made.
    fn finish_base(&mut self) -> Result<()> {
        let Some(making) = self.making.take_if(|making| making.is_finished()) else { return Ok(()) };
        let Ok((made, uploaded)) = making.join() else {
            self.needs_base = true;
            return Err(Error::internal("the thread that makes a base has panicked"));
        };
        self.uploaded = uploaded;
        let base = made.inspect_err(|_| self.needs_base = true)?;
        if !self.check_epoch()? {
            return Ok(());
        }
        (self.base_bytes, self.log_bytes, self.log_objects) = (base.bytes(), 0, 0);
        if let Some(outbox) = lock(&self.shared.outbox).as_mut() {
            if self.is_blocked {
                // What the log lacks is in the base; the rest follows it.
                outbox.forget_until(base.group);
                self.sent = None;
            }
            self.is_blocked = outbox.has_gap();
        }
        self.shared.note_shipped(base.group);
        self.served.replica.update(|stats| stats.base_group = Some(base.group));
        Ok(())
    }
}

/// Makes a copy of the index, uploads it, and removes what is older than it has to be.
fn make_base(
    served: &ServedIndex,
    shared: &Shared,
    bucket: &Bucket,
    record: &PrimaryRecord,
    keep: usize,
    uploaded: &mut HashSet<String>,
) -> Result<Base> {
    let (snapshot, store_snapshot) = shared.jobs()?.wait_for(|done| SequencerJob::Snapshot { done })?;
    let directory = served.index.directory().join(SHIPPING).join(PARTS);
    let remove = || match std::fs::remove_dir_all(&directory) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&directory, "remove")(cause)),
        _ => Ok(()),
    };
    remove()?;
    std::fs::create_dir_all(&directory).map_err(Error::io(&directory, "create"))?;
    let may_go_on = || if shared.is_stopping() { Err(Error::Cancelled) } else { Ok(()) };
    let made = (|| {
        store_snapshot.copy_to(&directory, snapshot.covered())?;
        snapshot.copy_to(&directory)?;
        let totals = store_snapshot.totals()?;
        drop((snapshot, store_snapshot));
        let group = totals.map_or(0, |totals| totals.groups);
        if let Some(totals) = totals {
            AcknowledgedMark::open(&directory)?.write(totals);
        }
        let base = Base::upload(bucket, &directory, group, record.epoch, uploaded, &may_go_on)?;
        // Whoever was fenced off meanwhile publishes and removes nothing.
        match PrimaryRecord::read(bucket)? {
            Some(now) if now.epoch == record.epoch => {}
            _ => return Err(Error::conflict("ship", "another primary has taken over")),
        }
        base.publish(bucket)?;
        Base::remove_old(bucket, record, keep)?;
        Ok(base)
    })();
    remove()?;
    made
}

/// What an index that is not open has had, as far as its mark shows.
pub(super) fn marked_totals(directory: &std::path::Path) -> Totals {
    AcknowledgedMark::read(directory).unwrap_or_default()
}
