//! The thread of a follower: gets groups from the object store and applies them, until it is stopped or promoted.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::index::store::ChangeGroup;
use crate::online::sequencer::SequencerJob;
use crate::online::ship::base::{Base, install, log_goes_on};
use crate::online::ship::bucket::Bucket;
use crate::online::ship::layout::{LogObject, PrimaryRecord, damaged, decode_groups, last_shipped};
use crate::online::ship::shipper::{Backoff, Shipper, marked_totals};
use crate::online::ship::{SHIPPING, lock, read_owner};

/// How often a follower asks for more.
const POLLED_EVERY: Duration = Duration::from_millis(250);
/// How often it looks at all of the log, and not only at what should come next.
const LISTED_EVERY: Duration = Duration::from_secs(5);
/// Objects of the log, and bytes, that are applied at once.
const MOST_OBJECTS: usize = 64;
const MOST_BYTES: usize = 16 << 20;
/// What says that a directory is a copy.
const FOLLOWING: &str = "following.json";

/// What a directory is a copy of.
#[derive(Debug, Serialize, Deserialize)]
struct FollowMark {
    url: String,
    /// Whether a base is being put in its place.
    is_installing: bool,
}

impl FollowMark {
    fn read(directory: &Path) -> Option<FollowMark> {
        serde_json::from_slice(&std::fs::read(directory.join(SHIPPING).join(FOLLOWING)).ok()?).ok()
    }

    fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(SHIPPING).join(FOLLOWING);
        let bytes = serde_json::to_vec(self).expect("plain fields serialise");
        std::fs::write(&path, bytes).and_then(|()| File::open(&path)?.sync_all()).map_err(Error::io(&path, "write"))
    }
}

/// Whether a directory is a copy of what others ship.
#[must_use]
pub fn is_follower(directory: &Path) -> bool {
    directory.join(SHIPPING).join(FOLLOWING).exists()
}

/// Makes a directory ready to follow what is shipped to a URL: downloads the newest base, unless the directory is a copy
/// that can go on from where it is. Returns whether there is one now; there is none as long as nothing is shipped.
///
/// # Errors
/// When the directory holds something else, is in use, a base is damaged, or the object store cannot be asked and there is
/// no copy yet.
pub fn prepare_follower(directory: &Path, url: &str) -> Result<bool> {
    prepare(directory, &Bucket::open(url)?)
}

pub(super) fn prepare(directory: &Path, bucket: &Bucket) -> Result<bool> {
    let has_index = directory.join("manifest.json").exists();
    let mark = FollowMark::read(directory);
    if let Some(mark) = mark.as_ref().filter(|mark| mark.url != bucket.url()) {
        let reason = format!("follows {}; choose another directory to follow {}", mark.url, bucket.url());
        return Err(Error::bad_input(directory, reason));
    }
    if has_index && mark.is_none() {
        let reason = format!(
            "holds an index that is not a copy of {}; choose another directory, which is made if it does not exist",
            bucket.url()
        );
        return Err(Error::bad_input(directory, reason));
    }
    let shipping = directory.join(SHIPPING);
    std::fs::create_dir_all(&shipping).map_err(Error::io(&shipping, "create"))?;
    let lock_path = directory.join("lock");
    let locked = File::create(&lock_path).map_err(Error::io(&lock_path, "create"))?;
    match locked.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::IndexLocked { path: directory.to_path_buf() }),
        Err(TryLockError::Error(cause)) => return Err(Error::Io { path: lock_path, action: "lock", cause }),
    }
    let is_copy = has_index && mark.is_some_and(|mark| !mark.is_installing);
    let record = match PrimaryRecord::read(bucket) {
        // It goes on with what it has.
        Err(_) if is_copy => return Ok(true),
        record => record?,
    };
    let Some(record) = record else { return Ok(is_copy) };
    if record.from.is_some() && read_owner(directory).as_ref() == Some(&record.owner) {
        let reason = format!("is the primary of {}; start it with `ship`", bucket.url());
        return Err(Error::bad_input(directory, reason));
    }
    if is_copy {
        let (log, bases) = (LogObject::list(bucket)?, Base::list(bucket)?);
        let shipped = last_shipped(&record, &log, &bases);
        if log_goes_on(&record, &log, marked_totals(directory).groups, shipped) {
            return Ok(true);
        }
    }
    let Some(base) = Base::newest(bucket, &record)? else { return Ok(is_copy) };
    let parts = base.download(bucket, directory)?;
    let mark = |is_installing| FollowMark { url: bucket.url().to_owned(), is_installing }.write(directory);
    mark(true)?;
    install(&parts, directory)?;
    mark(false)?;
    Ok(true)
}

/// What a follower has to do.
pub(super) struct Follower {
    /// What it becomes when it is promoted.
    shipper: Shipper,
    /// The last group that was seen in the object store.
    seen: u64,
    listed: Option<Instant>,
    caught_up: Instant,
}

impl Follower {
    pub(super) fn new(shipper: Shipper) -> Follower {
        Follower { shipper, seen: 0, listed: None, caught_up: Instant::now() }
    }

    fn group(&self) -> u64 {
        self.shipper.served.totals().groups
    }

    /// Follows until it is stopped, or becomes the primary.
    pub(super) fn run(mut self) {
        let mut backoff = Backoff::new();
        while !self.shipper.shared.is_stopping() {
            let wanted = lock(&self.shipper.shared.promote).take();
            if let Some(answer) = wanted {
                let promoted = self.promote();
                let is_promoted = promoted.is_ok();
                // Nobody waits for it if the client is gone.
                let _ = answer.send(promoted);
                if is_promoted {
                    return self.shipper.run();
                }
            }
            let polled = self.poll();
            self.note(polled.as_ref().err());
            match polled {
                Ok(true) => {}
                Ok(false) => {
                    backoff = Backoff::new();
                    self.shipper.shared.wait(POLLED_EVERY);
                }
                Err(_) => self.shipper.shared.wait(backoff.next()),
            }
        }
    }

    /// Says how it is.
    fn note(&mut self, error: Option<&Error>) {
        let group = self.group();
        self.seen = self.seen.max(group);
        if error.is_none() && self.seen == group {
            self.caught_up = Instant::now();
        }
        let (seen, lag) = (self.seen, self.caught_up.elapsed());
        self.shipper.served.replica.update(|stats| {
            stats.shipped_group = seen;
            stats.lag_seconds = lag.as_secs_f64();
            stats.last_error = error.map(ToString::to_string);
        });
    }

    /// Applies what comes next; returns whether there is more to do at once.
    fn poll(&mut self) -> Result<bool> {
        let bucket = &self.shipper.bucket;
        let Some(record) = PrimaryRecord::read(bucket)? else {
            return Err(Error::conflict("follow", format!("{} has no primary", bucket.url())));
        };
        let reason = format!("it follows the primary of {}, which is {}; send pages there", bucket.url(), record.owner);
        self.shipper.served.replica.refuse(Some(reason));
        self.shipper.served.replica.update(|stats| {
            (stats.epoch, stats.primary) = (record.epoch, Some(record.owner.clone()));
        });
        let group = self.group();
        let mut log = LogObject::list_from(bucket, record.epoch_of(group + 1), group + 1)?;
        let is_listing = self.listed.is_none_or(|listed| listed.elapsed() >= LISTED_EVERY);
        if is_listing || !log.is_empty() && !log_goes_on(&record, &log, group, u64::MAX) {
            log = LogObject::list(bucket)?;
            let shipped = last_shipped(&record, &log, &Base::list(bucket)?);
            self.seen = self.seen.max(shipped);
            self.listed = Some(Instant::now());
            if !log_goes_on(&record, &log, group, shipped) {
                let reason = format!(
                    "the log of {} does not go on after group {group}, which is the last one here; restart this follower, so that it downloads a newer base",
                    bucket.url()
                );
                self.shipper.served.replica.update(|stats| stats.trouble = Some(reason.clone()));
                return Err(Error::conflict("follow", reason));
            }
        }
        let valid = log.iter().filter_map(|object| record.last_valid(object.epoch, object.first, object.last));
        self.seen = self.seen.max(valid.max().unwrap_or(0));
        self.apply_next(&record, &log)
    }

    /// Applies the objects with the next groups, as far as they are there; returns whether there were any.
    fn apply_next(&mut self, record: &PrimaryRecord, log: &[LogObject]) -> Result<bool> {
        let (bucket, group) = (&self.shipper.bucket, self.group());
        let (mut fetched, mut next, mut bytes) = (Vec::new(), group + 1, 0);
        while fetched.len() < MOST_OBJECTS && bytes < MOST_BYTES {
            let last_of = |object: &&LogObject| record.last_valid(object.epoch, object.first, object.last);
            let has_next =
                |object: &&LogObject| object.first <= next && last_of(object).is_some_and(|last| last >= next);
            let Some(object) = log.iter().find(has_next) else { break };
            // It was removed because a base has it; the next look at the log shows that.
            let Some(content) = bucket.get(&object.name())? else { break };
            next = last_of(&object).map_or(next, |last| last + 1);
            bytes += content.bytes.len();
            fetched.push((object, content.bytes));
        }
        if fetched.is_empty() {
            return Ok(false);
        }
        // Whoever takes over after this look at the epoch lists the log later, and sees what was read here.
        let Some(record) = PrimaryRecord::read(bucket)? else { return Ok(false) };
        if record.from.is_none() && record.owner != self.shipper.owner {
            // Somebody is about to take over; what counts is not known yet.
            return Ok(false);
        }
        let (config, mut wanted, mut decoded) = (self.shipper.served.index.config().hash(), group + 1, Vec::new());
        for (object, content) in fetched {
            let Some(last) = record.last_valid(object.epoch, object.first, object.last) else { break };
            let groups = decode_groups(object, config, &content);
            let groups = groups.map_err(|reason| damaged(bucket, &object.name(), reason))?;
            for (number, bytes) in groups.into_iter().filter(|(number, _)| *number <= last) {
                if number != wanted {
                    continue;
                }
                let group: ChangeGroup = postcard::from_bytes(&bytes).map_err(|cause| {
                    damaged(bucket, &object.name(), format!("group {number} makes no sense: {cause}"))
                })?;
                decoded.push(group);
                wanted += 1;
            }
        }
        if decoded.is_empty() {
            return Ok(false);
        }
        self.shipper.shared.jobs()?.wait_for(|done| SequencerJob::Apply { groups: decoded, done })?;
        Ok(true)
    }

    /// Becomes the primary: fences the old one off, applies what it had shipped, and lets pages in.
    fn promote(&mut self) -> Result<u64> {
        let (bucket, owner) = (self.shipper.bucket.clone(), self.shipper.owner.clone());
        let claimed = PrimaryRecord::change(&bucket, |before| match before {
            Some(before) => Ok(PrimaryRecord::next(Some(before), &owner, None)),
            None => Err(Error::conflict("promote", format!("{} has no primary", bucket.url()))),
        })?;
        // From here on the old primary acknowledges nothing as shipped.
        let log = LogObject::list(&bucket)?;
        while self.apply_next(&claimed, &log)? {}
        let (group, shipped) = (self.group(), last_shipped(&claimed, &log, &Base::list(&bucket)?));
        if shipped > group {
            let reason = format!(
                "{shipped} groups were shipped, and the log does not go on after group {group}, which is the last one here; restart this follower, so that it downloads a newer base, and promote it then"
            );
            return Err(Error::conflict("promote", reason));
        }
        let begun = PrimaryRecord::change(&bucket, |now| match now {
            Some(now) if now.epoch == claimed.epoch => Ok(PrimaryRecord { from: Some(group + 1), ..claimed.clone() }),
            _ => Err(Error::conflict("promote", "another index has been promoted meanwhile")),
        })?;
        let path = self.shipper.served.index.directory().join(SHIPPING).join(FOLLOWING);
        std::fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
        let epoch = begun.epoch;
        self.shipper.begin_promoted(begun, group, &log)?;
        Ok(epoch)
    }
}
