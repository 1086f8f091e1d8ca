//! What a served index tells about itself.

use std::sync::atomic::Ordering;

use crate::index::MergeStats;
use crate::online::{Online, ReplicationRole, ReplicationStats};

/// What has been done since the start, and what there is.
#[derive(Debug, Clone)]
pub struct OnlineStats {
    /// Pages that are stored.
    pub pages: u64,
    /// Rows in the index: pages, of which those that were deleted count until they are merged away where they are found by
    /// fingerprints.
    pub rows: u64,
    /// Rows that are in memory only, and in the store: fingerprints, or keys of bands.
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
    /// How far it is from others that hold the same pages; nothing if it neither ships nor follows.
    pub replication: Option<ReplicationStats>,
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

impl Online {
    /// What there is, and what has been done.
    #[must_use]
    pub fn stats(&self) -> OnlineStats {
        let counters = &self.served.counters;
        let tiers = self.served.index.tiers();
        OnlineStats {
            pages: counters.pages.load(Ordering::Relaxed),
            // The rows of bands are many to a page, and say nothing to whoever counts pages.
            rows: if self.config().has_bands() { counters.pages.load(Ordering::Relaxed) } else { tiers.rows },
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
            replication: self.replication(),
            failed: self.served.store.failure(),
            damaged: self.served.index.damaged(),
        }
    }

    /// How far it is from others that hold the same pages; nothing if it neither ships nor follows.
    #[must_use]
    pub fn replication(&self) -> Option<ReplicationStats> {
        let mut stats = self.served.replica.stats()?;
        stats.group = match stats.role {
            // What is visible: whoever waits for a group wants to see it.
            ReplicationRole::Follower => self.served.totals().groups,
            // What is on disk: no follower can be ahead of it.
            _ => self.served.last_group(),
        };
        stats.lag_groups = stats.group.abs_diff(stats.shipped_group);
        Some(stats)
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
}
