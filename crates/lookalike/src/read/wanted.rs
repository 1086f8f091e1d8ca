//! Records that are read again.

use crate::page::{PageId, SourceId};

/// A record that is to be read again.
#[derive(Debug, Clone, Copy)]
pub struct WantedRecord {
    /// Index of its source.
    pub source: SourceId,
    /// Its number in the source.
    pub record: u64,
    /// Where it starts, if it has such a place.
    pub offset: Option<u64>,
    /// Its length.
    pub length: u64,
    /// The page it is.
    pub page: PageId,
}

/// Records to be read again, in the order of their pages.
#[derive(Debug, Default)]
pub struct Wanted(pub Vec<WantedRecord>);

impl Wanted {
    /// The page that is record `record` of source `source`.
    #[must_use]
    pub fn page_of(&self, source: SourceId, record: u64) -> Option<PageId> {
        self.0
            .binary_search_by_key(&(source, record), |wanted| (wanted.source, wanted.record))
            .ok()
            .map(|at| self.0[at].page)
    }
}
