//! Band keys of pages → the numbers of the pages that share one: the index behind banded min-values.
//!
//! In: rows, each a key and the number of a page. Out: the numbers of the pages with a key. Rows are never taken back:
//! a page that is gone, or was read anew under another number, is missing where the numbers lead, and its rows are left out
//! when tables are merged. The newest rows are in a hash table in memory ([`BandMemory`]), the others in sorted
//! files ([`BandTable`]).

mod memory;
mod table;
mod tail;

pub(crate) use memory::BandMemory;
pub(crate) use table::{BandTable, merge_tables, write_table};
pub(crate) use tail::{BandTail, FrozenBands};

/// Bits of a key that are kept: two different ones are equal once in 2⁴⁸.
pub(crate) const KEY_BITS: u32 = 48;

/// Rows of one key in a table, at the most; a crowd is represented by its oldest pages. Copies are not found by bands.
pub(crate) const MOST_ROWS_OF_KEY: usize = 256;

/// A key and the number of a page that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BandRow {
    /// Below 2⁴⁸.
    pub(crate) key: u64,
    pub(crate) number: u32,
}

/// What is kept of the key of a band; `None` for the key of a band that a page does not have.
pub(crate) fn short_key(key: u64) -> Option<u64> {
    (key != crate::sketcher::NO_KEY).then_some(key >> (64 - KEY_BITS))
}
