//! Merging: few large segments of many small ones, beside readers and writers.
//!
//! Neighbours of like size are taken together, so that every row is written a number of times that grows with the
//! logarithm of the rows. What is deleted leaves with the merge that reaches the row.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use crate::error::Result;
use crate::index::build::MOST_ROWS;
use crate::index::live::Index;
use crate::index::live::bulk::SegmentBuilders;
use crate::index::live::manifest::Manifest;
use crate::index::live::state::IndexState;
use crate::index::segment::Segment;

/// Segments of a size that are merged.
pub(super) const MERGED: usize = 4;

/// The size of a segment, in steps of four.
fn size_class(segment: &Segment) -> u32 {
    (segment.meta.rows + segment.meta.deleted).max(1).ilog2() / 2
}

/// Neighbours that are to be merged: at least four of like size.
fn like_sizes(segments: &[Arc<Segment>]) -> Option<Range<usize>> {
    let most = segments.iter().map(|segment| size_class(segment)).max()?;
    (0..=most).find_map(|most| {
        let mut from = 0;
        for at in 0..=segments.len() {
            let is_small = |at: usize| segments.get(at).is_some_and(|segment| size_class(segment) <= most);
            if !is_small(at) || segments[at].is_in_file() != segments[from].is_in_file() {
                let rows: u64 = segments[from..at].iter().map(|segment| segment.meta.rows).sum();
                if at - from >= MERGED && rows <= MOST_ROWS {
                    return Some(from..at);
                }
                from = if is_small(at) { at } else { at + 1 };
            }
        }
        None
    })
}

impl Index {
    /// Writes all rows that are only in memory to a file.
    ///
    /// # Errors
    /// When it cannot be written; the rows stay in memory.
    pub fn flush(&self) -> Result<()> {
        let _merging = self.merge_lock();
        let last = {
            let _writing = self.write_lock()?;
            let state = self.state.load();
            self.state.store(Arc::new(self.with_tail_as_segment(&state, &state.tail)?));
            let mut bands = self.band_tail.lock().unwrap_or_else(PoisonError::into_inner);
            self.freeze_bands(&mut bands);
            state.tail.last.max(bands.last)
        };
        while self.write_frozen()? {}
        let state = self.state.load_full();
        let in_memory = state.first_in_memory()..state.segments.len();
        if !in_memory.is_empty() {
            self.merge(in_memory, true)?;
        }
        // Changes that leave nothing behind are covered, too.
        let _writing = self.write_lock()?;
        let state = self.state.load();
        if state.store.covered() < last || !Manifest::path(&self.directory).exists() {
            self.commit(state.with_store(state.store.covering(last)))?;
        }
        Ok(())
    }

    /// Merges segments of like size until there are none; returns how many merges that took.
    ///
    /// # Errors
    /// When a segment cannot be read or written; everything stays as it was.
    pub fn merge_like_sizes(&self) -> Result<usize> {
        let mut merges = 0;
        loop {
            let merging = self.merge_lock();
            if self.write_frozen()? || self.merge_like_bands()? {
                merges += 1;
                continue;
            }
            let state = self.state.load_full();
            let in_memory = state.first_in_memory()..state.segments.len();
            let in_memory_rows =
                state.segments[in_memory.clone()].iter().map(|segment| segment.meta.rows + segment.meta.deleted);
            let rows: u64 = in_memory_rows.sum();
            let (range, to_file) = if rows >= self.memory_rows {
                (in_memory, true)
            } else if let Some(range) = like_sizes(&state.segments) {
                let to_file = state.segments[range.start].is_in_file();
                (range, to_file)
            } else {
                return Ok(merges);
            };
            self.merge(range, to_file)?;
            drop(merging);
            merges += 1;
        }
    }

    /// Makes one segment of all, without what was deleted.
    ///
    /// # Errors
    /// When a segment cannot be read or written; everything stays as it was.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let _merging = self.merge_lock();
        let (segments, bands) = (self.state.load().segments.len(), self.state.load().bands.len());
        if bands > 0 {
            self.merge_bands(0..bands)?;
        }
        if segments > 0 { self.merge(0..segments, true) } else { Ok(()) }
    }

    /// Puts one segment in the place of several neighbours. The lock on merging is held by the caller.
    fn merge(&self, range: Range<usize>, to_file: bool) -> Result<()> {
        let state = self.state.load_full();
        let merged = &state.segments[range.clone()];
        let last = merged.iter().map(|segment| segment.last).max().unwrap_or(0);
        let mut builders = SegmentBuilders::new(self, to_file)?;
        let mut deleted = Vec::new();
        let only_these = state.with_rows(merged.to_vec(), Arc::default());
        for (number, segment) in merged.iter().enumerate() {
            segment.for_each_row(|fingerprint, id| {
                if only_these.has_deleted(number, fingerprint) && only_these.is_deleted(number, fingerprint, &id) {
                    return Ok(());
                }
                builders.push(fingerprint, &id)
            })?;
            // What it deletes from segments before all of these is still to be deleted.
            if range.start > 0 {
                for (&fingerprint, ids) in &segment.deleted {
                    deleted.extend(ids.iter().map(|id| (fingerprint, id.clone())));
                }
            }
        }
        // In the same order on every machine.
        deleted.sort_unstable();
        deleted.dedup();
        builders.delete(deleted);
        let made = builders.finish(last)?;
        let _writing = self.write_lock()?;
        let state = self.state.load();
        let mut segments = state.segments.clone();
        // Others only append, so that the place is still the same.
        let replaced: Vec<Arc<Segment>> = segments.splice(range, made).collect();
        let next = state.with_rows(segments, Arc::clone(&state.tail));
        if to_file {
            self.commit(IndexState { store: next.store.covering(last), ..next })?;
        } else {
            self.state.store(Arc::new(next));
        }
        for segment in replaced.iter().filter(|segment| segment.is_in_file()) {
            segment.file().remove_when_unused();
        }
        Ok(())
    }
}
