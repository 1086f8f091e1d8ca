//! What an index is to others like it: whether it takes pages, who gets the groups that it writes, and how far behind
//! anybody is. `ship/` does the work; without it, an index is on its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::index::store::ChangeGroup;

/// Takes groups that are written.
pub(super) trait GroupSink: Send {
    /// Takes the group with this number, as bytes, before it is written: whoever is killed in between finds it here.
    fn prepare(&mut self, number: u64, bytes: &[u8]);

    /// The group with this number is on disk.
    fn commit(&mut self, number: u64);
}

/// What an index is to others.
#[derive(Default)]
pub(super) struct Replica {
    /// Why nothing is stored here, if nothing is.
    refusal: ArcSwapOption<String>,
    sink: Mutex<Option<Box<dyn GroupSink>>>,
    /// The number of the last group that is on disk, perhaps before it is visible.
    written: AtomicU64,
    stats: Mutex<Option<ReplicationStats>>,
}

impl Replica {
    /// Why nothing is stored here.
    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal.load().as_deref().cloned()
    }

    /// Nothing is stored from now on, for this reason; `None` lets pages in.
    pub(super) fn refuse(&self, reason: Option<String>) {
        self.refusal.store(reason.map(Into::into));
    }

    /// The number of the last group that is on disk, if one was written since the start.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Hands a group on that is on disk, and is not visible yet.
    pub(super) fn commit(&self, number: u64) {
        self.written.store(number, Ordering::Release);
        if let Some(sink) = self.sink.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            sink.commit(number);
        }
    }

    /// Shows a group that is about to be written.
    pub(super) fn prepare(&self, group: &ChangeGroup) {
        if let Some(sink) = self.sink.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            let bytes = postcard::to_stdvec(group).expect("writing to memory does not fail");
            sink.prepare(group.totals.groups, &bytes);
        }
    }

    pub(super) fn stats(&self) -> Option<ReplicationStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(feature = "remote")]
impl Replica {
    /// From now on groups go to `sink`.
    pub(super) fn set_sink(&self, sink: Option<Box<dyn GroupSink>>) {
        *self.sink.lock().unwrap_or_else(PoisonError::into_inner) = sink;
    }

    /// Changes what is known of others.
    pub(super) fn update(&self, change: impl FnOnce(&mut ReplicationStats)) {
        change(self.stats.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default());
    }
}

/// What an index is to others that hold the same pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicationRole {
    /// It is not known yet whether another one is the primary; nothing is stored meanwhile.
    #[default]
    Claiming,
    /// It takes pages, and ships them.
    Primary,
    /// Another one has taken over; nothing is stored here any more.
    Fenced,
    /// It applies what the primary has shipped.
    Follower,
}

/// How far an index is from others that hold the same pages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplicationStats {
    /// What it is to them.
    pub role: ReplicationRole,
    /// The epoch of the primary, as far as it is known here.
    pub epoch: u64,
    /// Who the primary is, as far as it is known here.
    pub primary: Option<String>,
    /// The number of the last group that is here.
    pub group: u64,
    /// The number of the last group that is known to be in the object store.
    pub shipped_group: u64,
    /// Groups that are here and not shipped, or shipped and not here.
    pub lag_groups: u64,
    /// Seconds since there was no such group.
    pub lag_seconds: f64,
    /// The group of the last base that was written or read.
    pub base_group: Option<u64>,
    /// What went wrong last; nothing if all is well. It is tried again by itself.
    pub last_error: Option<String>,
    /// Why it cannot go on until somebody does something.
    pub trouble: Option<String>,
}
