//! What an index holds at one moment: readers keep it as long as they need it; writers publish the next one.

use std::sync::Arc;

use crate::error::Result;
use crate::index::bands::{BandMemory, BandTable, FrozenBands};
use crate::index::segment::Segment;
use crate::index::segment::ids::Id;

/// Segments, the rows that came after them, and where the store stands. Never changed, only replaced by the next one.
#[derive(Clone)]
pub(crate) struct IndexState {
    /// From old to new; most of those without a file come last.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) tail: Arc<Tail>,
    /// Tables of band keys in files, from old to new.
    pub(crate) bands: Vec<Arc<BandTable>>,
    /// Band keys that are on their way into a file, from old to new.
    pub(crate) frozen: Vec<Arc<FrozenBands>>,
    /// Those that came last.
    pub(crate) band_memory: Arc<BandMemory>,
    /// Segments that could not be opened, and were left out.
    pub(crate) damaged: Vec<String>,
    pub(crate) store: StoreState,
}

/// The rows that came last, and what was deleted since.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub(crate) rows: Vec<(u64, Id)>,
    /// Rows of the segments that are no longer there.
    pub(crate) deleted: Vec<(u64, Id)>,
    /// The number of the last change so far.
    pub(crate) last: u64,
}

impl Tail {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.deleted.is_empty()
    }

    /// What is left of a tail whose rows have become a segment.
    pub(crate) fn emptied(&self) -> Arc<Tail> {
        Arc::new(Tail { last: self.last, ..Tail::default() })
    }
}

/// How the segments of an index and the store beside them fit together.
///
/// Transitions, each of which is on disk (a manifest was written and synced) before readers or the store see it:
///
/// | from | when | to |
/// |---|---|---|
/// | | an index is created | `Unwritten` |
/// | | an index is opened | what its manifest says; never `Unwritten` |
/// | `Unwritten` | the first manifest is written; the store and the segments of an index that was there are removed | `Absent` |
/// | `Absent`, `Settled` | the index is served: the store gets changes | `Ahead` |
/// | `Ahead` | segments are written that hold more of its changes | `Ahead`, `covered` grows |
/// | `Ahead` | the last change is in segments, and no more will come | `Settled` |
///
/// A server that was killed leaves `Ahead` behind, so that whoever opens the index next reads the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreState {
    /// Nothing of this index is listed on disk yet; what the directory holds belongs to one that it replaces.
    Unwritten,
    /// No changes come from a store. There may be one with what is kept of pages.
    Absent,
    /// All changes of the store are in segments; `covered` is the number of the last.
    Settled { covered: u64 },
    /// The store may have changes after the one with the number `covered`.
    Ahead { covered: u64 },
}

impl StoreState {
    /// The number of the last change that is in segments in files, with all before it.
    pub(crate) fn covered(self) -> u64 {
        match self {
            StoreState::Unwritten | StoreState::Absent => 0,
            StoreState::Settled { covered } | StoreState::Ahead { covered } => covered,
        }
    }

    /// The state when changes up to `last` are in segments in files, too.
    pub(crate) fn covering(self, last: u64) -> StoreState {
        match self {
            StoreState::Unwritten | StoreState::Absent => self,
            StoreState::Settled { covered } => StoreState::Settled { covered: covered.max(last) },
            StoreState::Ahead { covered } => StoreState::Ahead { covered: covered.max(last) },
        }
    }

    /// The state when the store may get changes.
    pub(crate) fn ahead(self) -> StoreState {
        StoreState::Ahead { covered: self.covered() }
    }

    /// The state when all changes of the store are in segments.
    pub(crate) fn settled(self) -> StoreState {
        StoreState::Settled { covered: self.covered() }
    }

    /// The state when a manifest is on disk.
    pub(crate) fn written(self) -> StoreState {
        match self {
            StoreState::Unwritten => StoreState::Absent,
            written => written,
        }
    }
}

impl IndexState {
    /// The state after this one, with other rows.
    pub(crate) fn with_rows(&self, segments: Vec<Arc<Segment>>, tail: Arc<Tail>) -> IndexState {
        IndexState { segments, tail, ..self.clone() }
    }

    /// The state after this one, with other band keys.
    pub(crate) fn with_bands(&self, bands: Vec<Arc<BandTable>>, frozen: Vec<Arc<FrozenBands>>) -> IndexState {
        IndexState { bands, frozen, ..self.clone() }
    }

    /// The numbers of pages with any of some band keys, at most `most` of each key and part, among those after `since`.
    pub(crate) fn pages_with(&self, keys: &[u64], since: u32, most: usize, numbers: &mut Vec<u32>) -> Result<()> {
        self.band_memory.find(keys, most, numbers);
        for frozen in self.frozen.iter().rev().filter(|frozen| frozen.last > u64::from(since)) {
            frozen.memory.find(keys, most, numbers);
        }
        // Changes after that one may be in a file by now.
        if since == 0 || self.store.covered() > u64::from(since) {
            for table in self.bands.iter().rev() {
                table.find(keys, most, numbers)?;
            }
        }
        Ok(())
    }

    /// The state after this one, with another store.
    pub(crate) fn with_store(&self, store: StoreState) -> IndexState {
        IndexState { store, ..self.clone() }
    }

    /// Where segments without a file begin; the number of segments if there are none.
    pub(crate) fn first_in_memory(&self) -> usize {
        self.segments.iter().position(|segment| !segment.is_in_file()).unwrap_or(self.segments.len())
    }

    /// Whether a row of segment `number` was deleted later.
    pub(crate) fn is_deleted(&self, number: usize, fingerprint: u64, id: &Id) -> bool {
        let mut later = self.segments[number + 1..].iter().filter_map(|segment| segment.deleted.get(&fingerprint));
        later.any(|deleted| deleted.contains(id))
            || self.tail.deleted.iter().any(|(deleted, of)| *deleted == fingerprint && of == id)
    }

    /// Whether any row with this fingerprint was deleted after segment `number` was written.
    pub(crate) fn has_deleted(&self, number: usize, fingerprint: u64) -> bool {
        self.segments[number + 1..].iter().any(|segment| segment.deleted.contains_key(&fingerprint))
            || self.tail.deleted.iter().any(|(deleted, _)| *deleted == fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::StoreState::{self, Absent, Ahead, Settled, Unwritten};

    #[test]
    fn the_state_of_a_store_changes_only_as_the_table_says() {
        let all = [Unwritten, Absent, Settled { covered: 5 }, Ahead { covered: 5 }];
        assert_eq!(all.map(StoreState::written), [Absent, Absent, Settled { covered: 5 }, Ahead { covered: 5 }]);
        assert_eq!(all.map(StoreState::covered), [0, 0, 5, 5]);
        assert_eq!(all.map(StoreState::ahead), [0, 0, 5, 5].map(|covered| Ahead { covered }));
        assert_eq!(all.map(StoreState::settled), [0, 0, 5, 5].map(|covered| Settled { covered }));
        assert_eq!(all.map(|state| state.covering(3)), all, "what is covered stays covered");
        assert_eq!(all.map(|state| state.covering(7).covered()), [0, 0, 7, 7]);
    }
}
