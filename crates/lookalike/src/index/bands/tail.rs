//! Rows that have no file yet.

use std::sync::Arc;

use crate::index::bands::{BandMemory, BandRow};

/// Rows for which a table in memory is made at first.
const FIRST_ROWS: usize = 1 << 12;

/// The rows that came last, for the thread that adds to them.
#[derive(Default)]
pub(crate) struct BandTail {
    pub(crate) rows: Vec<BandRow>,
    /// Pages that are gone.
    pub(crate) gone: Vec<u32>,
    /// The number of the last change so far.
    pub(crate) last: u64,
}

/// Rows that are on their way into a file.
pub(crate) struct FrozenBands {
    pub(crate) memory: Arc<BandMemory>,
    pub(crate) rows: Vec<BandRow>,
    pub(crate) gone: Vec<u32>,
    pub(crate) last: u64,
}

impl BandTail {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.gone.is_empty()
    }

    /// Makes the rows from `from` on found by `memory`; returns a larger one with all of them if it has too little room.
    pub(crate) fn publish(&self, from: usize, memory: &Arc<BandMemory>) -> Option<Arc<BandMemory>> {
        if self.rows.len() <= memory.capacity() {
            self.rows[from..].iter().for_each(|&row| memory.insert(row));
            return None;
        }
        let larger = BandMemory::new((self.rows.len() * 2).max(FIRST_ROWS));
        self.rows.iter().for_each(|&row| larger.insert(row));
        Some(Arc::new(larger))
    }

    /// All of it, to be written; what comes from now on comes after it.
    pub(crate) fn freeze(&mut self, memory: &Arc<BandMemory>) -> FrozenBands {
        let BandTail { rows, gone, last } = std::mem::take(self);
        self.last = last;
        FrozenBands { memory: Arc::clone(memory), rows, gone, last }
    }
}
