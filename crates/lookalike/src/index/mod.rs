//! The index on disk: which fingerprints are near this one?
//!
//! In: rows, each with a fingerprint of 64 bits and an id. Out: the rows within a distance of a query, exactly.
//! An index is a directory: a manifest, and segments, which are immutable files with sorted tables
//! ([`Design`](crate::plan::design::Design)) that are mapped into memory. New rows gather in memory, in a
//! small tail and in segments that have no file yet; merging makes few large segments of many small ones.
//! Readers hold what was there when they began; they wait for nobody.
//!
//! A folder knows only those before it: `segment/` (an immutable part), `bands/` (tables of another kind, by which pages
//! are found that share a band of their min-values), `rows/` (where rows come from), `build/` (rows →
//! segments), `live/` (an index that changes), `query/`.

mod bands;
mod build;
mod live;
mod query;
mod rows;
mod segment;

pub(crate) use bands::short_key;
pub use build::planner;
pub(crate) use live::IndexSnapshot;
#[cfg(feature = "remote")]
pub(crate) use live::SHIPPING;
pub(crate) use live::backup_list::BackupList;
pub(crate) use live::manifest::{belongs_to_index, sync_directory};
pub(crate) use live::place;
pub(crate) use live::store;
pub use live::{
    BulkInsert, COLLECTIONS, FingerprintOrigin, Index, IndexConfig, MergeStats, MergeThread, OpenOptions, RowChange,
};
pub use query::matches::MatchCounts;
pub use query::reader::{IndexReader, QueryResult, RowMatch, TablesOver};
pub use query::stats;
pub(crate) use rows::{FoundEntry, PageEntry, Record};
pub use rows::{StoredPage, fingerprints, pages};
pub use segment::TableCodec;
pub use segment::file::FORMAT_VERSION;
pub use segment::ids::{Id, IdKind};
pub use segment::packed::PackedShape;

use segment::Segment;

/// What fuzzing calls: any bytes as a segment.
pub(crate) fn try_segment(bytes: &[u8], sealed: bool) -> usize {
    let bytes = if sealed { segment::file::seal(bytes) } else { bytes.to_vec() };
    let Ok(segment) = Segment::in_memory(bytes) else { return 0 };
    let (mut scratch, mut hits, mut keys) = (segment::packed::ProbeScratch::default(), Vec::new(), Vec::new());
    // Errors are fine; panics and endless loops are not.
    let _ = segment.decode(0..segment.fingerprints().min(1000), &mut keys);
    let queries = keys.iter().copied().take(50).chain([0, u64::MAX, 0x0123_4567_89ab_cdef]);
    for query in queries.collect::<Vec<u64>>() {
        let _ = segment.near(query, segment.design.radius(), false, &mut scratch, &mut hits);
        let _ = segment.find(query);
        hits.truncate(1000);
    }
    for hit in &hits {
        if let Ok(positions) = segment.positions(hit) {
            let _ = segment.id(positions.start);
        }
    }
    let wrong = if segment.design.radius() <= 3 { segment.verify().len() } else { 0 };
    hits.len() + wrong
}

#[cfg(test)]
mod tests;
