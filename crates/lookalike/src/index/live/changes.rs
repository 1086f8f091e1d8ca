//! Rows that come and go: each change makes a new state, with a small tail that becomes a segment in memory when it is long.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::error::{Error, Result};
use crate::index::bands::{BandMemory, BandRow, BandTail};
use crate::index::build::SegmentBuilder;
use crate::index::live::Index;
use crate::index::live::bulk::design;
use crate::index::live::state::{IndexState, Tail};
use crate::index::segment::ids::{Id, IdKind};
use crate::index::segment::{Segment, TableCodec, TableFormat};

/// Rows of a tail at the most: they are compared one by one.
const TAIL_ROWS: usize = 256;
/// Band keys in memory from which they are written to a file: those of about 60,000 texts.
const MEMORY_BAND_ROWS: usize = 1 << 20;

/// A row that comes or goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    /// One more row.
    Insert(u64, Id),
    /// Every row with this fingerprint and this id goes away.
    Delete(u64, Id),
    /// The keys of the bands of a page, whose number is that of the change.
    Bands(Box<[u64]>),
    /// The page with this number is gone.
    Gone(u32),
}

impl Index {
    /// Adds rows; readers that begin from now on see all of them. They are in memory until
    /// [`flush`](Self::flush) or a merge writes them.
    ///
    /// # Errors
    /// When the index was opened for reading, or ids are of the wrong kind.
    pub fn insert(&self, rows: &[(u64, Id)]) -> Result<()> {
        let changes = rows.iter().map(|(fingerprint, id)| RowChange::Insert(*fingerprint, id.clone()));
        self.apply(&changes.collect::<Vec<_>>(), 0)
    }

    /// Removes every row with this fingerprint and this id.
    ///
    /// # Errors
    /// When the index was opened for reading, or the id is of the wrong kind.
    pub fn delete(&self, fingerprint: u64, id: &Id) -> Result<()> {
        self.apply(&[RowChange::Delete(fingerprint, id.clone())], 0)
    }

    /// Makes changes in their order, of which the last has the number `last`; 0 where they have none. Readers that
    /// begin from now on see all of them.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn apply(&self, changes: &[RowChange], last: u64) -> Result<()> {
        let _writing = self.write_lock()?;
        self.apply_locked(changes, last)
    }

    /// [`apply`](Self::apply) for a caller that has the lock, or is the only one to know this index.
    pub(super) fn apply_locked(&self, changes: &[RowChange], last: u64) -> Result<()> {
        if self.config.has_bands() {
            return self.apply_bands(changes, last);
        }
        let state = self.state.load();
        let mut tail = Tail::clone(&state.tail);
        tail.last = tail.last.max(last);
        for change in changes {
            match change {
                RowChange::Insert(fingerprint, id) => {
                    self.check_id(id)?;
                    tail.rows.push((*fingerprint, id.clone()));
                }
                RowChange::Delete(fingerprint, id) => {
                    self.check_id(id)?;
                    tail.rows.retain(|row| row.0 != *fingerprint || row.1 != *id);
                    if !state.segments.is_empty() {
                        tail.deleted.push((*fingerprint, id.clone()));
                    }
                }
                RowChange::Bands(_) | RowChange::Gone(_) => {
                    return Err(Error::internal("band keys for an index of fingerprints"));
                }
            }
        }
        let next = if tail.rows.len() + tail.deleted.len() >= TAIL_ROWS {
            self.with_tail_as_segment(&state, &tail)?
        } else {
            state.with_rows(state.segments.clone(), Arc::new(tail))
        };
        self.state.store(Arc::new(next));
        Ok(())
    }

    /// The same for band keys.
    fn apply_bands(&self, changes: &[RowChange], last: u64) -> Result<()> {
        let mut tail = self.band_tail.lock().unwrap_or_else(PoisonError::into_inner);
        let from = tail.rows.len();
        for (number, change) in (last + 1 - changes.len() as u64..).zip(changes) {
            match change {
                RowChange::Bands(keys) => {
                    // The last number stands for nothing in a table in memory.
                    let number = u32::try_from(number).ok().filter(|number| *number < u32::MAX);
                    let number = number.ok_or_else(|| {
                        Error::conflict(
                            "collection",
                            "has had 4 billion changes, which is all that it can have; make another one",
                        )
                    })?;
                    tail.rows.extend(keys.iter().map(|&key| BandRow { key, number }));
                }
                RowChange::Gone(number) => tail.gone.push(*number),
                RowChange::Insert(..) | RowChange::Delete(..) => {
                    return Err(Error::internal("fingerprints for an index of band keys"));
                }
            }
        }
        tail.last = tail.last.max(last);
        let state = self.state.load();
        if let Some(larger) = tail.publish(from, &state.band_memory) {
            self.state.store(Arc::new(IndexState { band_memory: larger, ..IndexState::clone(&state) }));
        }
        if tail.rows.len() + tail.gone.len() >= MEMORY_BAND_ROWS {
            self.freeze_bands(&mut tail);
        }
        Ok(())
    }

    /// Sends the band keys in memory on their way into a file. The lock on writing is held by the caller.
    pub(super) fn freeze_bands(&self, tail: &mut BandTail) {
        if tail.is_empty() {
            return;
        }
        let state = self.state.load();
        let mut frozen = state.frozen.clone();
        frozen.push(Arc::new(tail.freeze(&state.band_memory)));
        let band_memory = Arc::new(BandMemory::new(0));
        self.state.store(Arc::new(IndexState { frozen, band_memory, ..IndexState::clone(&state) }));
    }

    /// Checks that an id is of the right kind, and that no row without one will get it.
    pub(super) fn check_id(&self, id: &Id) -> Result<()> {
        if id.kind() != self.config.ids {
            let expected = match self.config.ids {
                IdKind::Number => "must be a number, as all ids of this index are",
                IdKind::Text => "must be text, as all ids of this index are",
            };
            return Err(Error::invalid("id", id, expected));
        }
        if let Id::Number(number) = id {
            self.numbers.row.fetch_max(number.saturating_add(1), Ordering::Relaxed);
        }
        Ok(())
    }

    /// The state after `state`, in which the rows of `tail` are a segment in memory.
    pub(super) fn with_tail_as_segment(&self, state: &IndexState, tail: &Tail) -> Result<IndexState> {
        let mut segments = state.segments.clone();
        if !tail.is_empty() {
            let mut builder = SegmentBuilder::in_memory(self.config.ids);
            tail.rows.iter().try_for_each(|(fingerprint, id)| builder.push(*fingerprint, id))?;
            tail.deleted.iter().for_each(|(fingerprint, id)| builder.delete(*fingerprint, id.clone()));
            segments.push(Arc::new(self.finish_in_memory(builder, tail.last)?));
        }
        Ok(state.with_rows(segments, tail.emptied()))
    }

    /// A segment in memory, with changes up to the one with the number `last`.
    pub(super) fn finish_in_memory(&self, builder: SegmentBuilder, last: u64) -> Result<Segment> {
        let choose = |rows: u64| design(&self.config, rows, self.memory_bytes);
        let format = TableFormat { codec: TableCodec::Raw, ..self.config.table_format() };
        let (bytes, _) = builder.finish(self.config.hash(), format, choose, Vec::new(), Path::new(""))?;
        let mut segment = Segment::in_memory(bytes)?;
        segment.last = last;
        Ok(segment)
    }
}
