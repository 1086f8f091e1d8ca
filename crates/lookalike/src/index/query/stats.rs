//! What an index holds: rows, bytes, and how its fingerprints are spread (Manku et al. 2007, §4.2).

use serde::Serialize;

use crate::error::Result;
use crate::index::live::Index;
use crate::index::live::state::IndexState;
use crate::names::Named;

/// Parts of the space of fingerprints that are counted: by the first bits.
const SPACE_PARTS: usize = 1 << SPACE_BITS;
const SPACE_BITS: u32 = 7;

/// An index in numbers.
#[derive(Debug, Serialize)]
pub struct IndexStats {
    /// Rows.
    pub rows: u64,
    /// Different fingerprints of each segment, together.
    pub fingerprints: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of ids.
    pub id_bytes: u64,
    /// Segments.
    pub segments: Vec<SegmentStats>,
    /// How many neighbours in table 0 differ first in bit 0, 1, … 63, counted from the lowest. Equal fingerprints are
    /// one there, as they differ in none.
    pub leading_bits: Vec<u64>,
    /// Rows in each 1/128 of the space: a fingerprint counts once for every row that has it.
    pub parts: Vec<u64>,
    /// What could not be opened.
    pub damaged: Vec<String>,
}

/// A segment in numbers.
#[derive(Debug, Serialize)]
pub struct SegmentStats {
    /// The file.
    pub file: String,
    /// Rows.
    pub rows: u64,
    /// Different fingerprints.
    pub fingerprints: u64,
    /// Rows of older segments that it deletes.
    pub deleted: u64,
    /// How tables are stored.
    pub codec: String,
    /// How bits are cut.
    pub design: String,
    /// Differing bits up to which nothing is missed.
    pub radius: u32,
    /// Tables.
    pub tables: usize,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes per fingerprint and table.
    #[serde(rename = "bytes_a_row_and_table")]
    pub bytes_per_row_and_table: f64,
}

/// Where the rows are: in memory, or in files.
#[derive(Debug, Default)]
pub(crate) struct Tiers {
    pub(crate) rows: u64,
    pub(crate) rows_in_memory: u64,
    pub(crate) segments: usize,
    pub(crate) segments_in_memory: usize,
    pub(crate) segment_bytes: u64,
}

/// The part of the space that a fingerprint is in.
fn part_of(fingerprint: u64) -> usize {
    usize::try_from(fingerprint >> (64 - SPACE_BITS)).expect("the first bits")
}

/// Rows of the fingerprint at `row` of segment `number` that are not deleted.
fn live_rows(state: &IndexState, number: usize, row: u32, fingerprint: u64) -> Result<u64> {
    let segment = &state.segments[number];
    let has_deleted = state.has_deleted(number, fingerprint);
    if segment.meta.rows == segment.meta.fingerprints && !has_deleted {
        return Ok(1);
    }
    let positions = segment.positions_of(row)?;
    if !has_deleted {
        return Ok(positions.end - positions.start);
    }
    let mut live = 0;
    for position in positions {
        live += u64::from(!state.is_deleted(number, fingerprint, &segment.id(position)?));
    }
    Ok(live)
}

impl Index {
    /// Where the rows are; costs nothing.
    pub(crate) fn tiers(&self) -> Tiers {
        let state = self.state();
        let tail = state.tail.rows.len() as u64;
        let mut tiers = Tiers { rows: tail, rows_in_memory: tail, ..Tiers::default() };
        for segment in &state.segments {
            tiers.rows += segment.meta.rows;
            if segment.is_in_file() {
                tiers.segments += 1;
                tiers.segment_bytes += segment.file().length();
            } else {
                tiers.segments_in_memory += 1;
                tiers.rows_in_memory += segment.meta.rows;
            }
        }
        for table in &state.bands {
            tiers.rows += table.meta.rows;
            tiers.segments += 1;
            tiers.segment_bytes += table.file().length();
        }
        let rows: u64 =
            state.frozen.iter().map(|frozen| frozen.rows.len() as u64).sum::<u64>() + self.band_rows_in_memory();
        tiers.segments_in_memory += state.frozen.len();
        (tiers.rows, tiers.rows_in_memory) = (tiers.rows + rows, tiers.rows_in_memory + rows);
        tiers
    }

    /// The index in numbers; reads all fingerprints once.
    ///
    /// # Errors
    /// When a segment is damaged.
    pub fn stats(&self) -> Result<IndexStats> {
        let reader = self.reader();
        let state = reader.state();
        let (rows, fingerprints) = reader.len();
        let mut stats = IndexStats {
            rows,
            fingerprints,
            bytes: 0,
            id_bytes: 0,
            segments: Vec::new(),
            leading_bits: vec![0; 64],
            parts: vec![0; SPACE_PARTS],
            damaged: state.damaged.clone(),
        };
        if self.config().has_bands() {
            // Each has many keys.
            stats.rows = self.stored_pages();
        }
        for (number, segment) in state.segments.iter().enumerate() {
            let is_id =
                |name: &str| name.starts_with("id") || name.starts_with("repeated") || name.starts_with("deleted");
            let id_bytes: u64 = segment.file().sections().filter(|(name, _)| is_id(name)).map(|(_, bytes)| bytes).sum();
            let bytes = segment.file().length();
            let tables = segment.design.tables().len();
            stats.bytes += bytes;
            stats.id_bytes += id_bytes;
            stats.segments.push(SegmentStats {
                file: segment.file_name().unwrap_or_else(|| segment.file().path().display().to_string()),
                rows: segment.meta.rows,
                fingerprints: segment.meta.fingerprints,
                deleted: segment.meta.deleted,
                codec: segment.meta.codec.name().to_owned(),
                design: segment.design.cut().to_string(),
                radius: segment.design.radius(),
                tables,
                bytes,
                bytes_per_row_and_table: (bytes - id_bytes) as f64
                    / (segment.meta.fingerprints.max(1) * tables as u64) as f64,
            });
            let (mut keys, mut from, mut before) = (Vec::new(), 0, None);
            while from < segment.fingerprints() {
                let to = from.saturating_add(1 << 20).min(segment.fingerprints());
                keys.clear();
                segment.decode(from..to, &mut keys)?;
                for (row, &key) in (from..).zip(&keys) {
                    stats.parts[part_of(key)] += live_rows(state, number, row, key)?;
                    if let Some(place) = before.replace(key).and_then(|before: u64| (before ^ key).checked_ilog2()) {
                        stats.leading_bits[place as usize] += 1;
                    }
                }
                from = to;
            }
        }
        for table in &state.bands {
            let bytes = table.file().length();
            stats.bytes += bytes;
            stats.segments.push(SegmentStats {
                file: table.file_name(),
                rows: table.meta.rows,
                fingerprints: 0,
                deleted: table.meta.gone,
                codec: "bands".to_owned(),
                design: "bands".to_owned(),
                radius: 0,
                tables: 1,
                bytes,
                bytes_per_row_and_table: bytes as f64 / table.meta.rows.max(1) as f64,
            });
        }
        state.tail.rows.iter().for_each(|(key, _)| stats.parts[part_of(*key)] += 1);
        Ok(stats)
    }

    /// Everything that is wrong with the index: checksums, order, tables that do not hold the same
    /// fingerprints, designs that would miss some, pages that are missing from the store.
    #[must_use]
    pub fn verify(&self) -> Vec<String> {
        let state = self.state();
        let mut wrong = state.damaged.clone();
        for segment in &state.segments {
            wrong.extend(segment.verify().iter().map(ToString::to_string));
        }
        for table in &state.bands {
            wrong.extend(table.verify().iter().map(ToString::to_string));
        }
        wrong.extend(self.verify_store());
        wrong
    }
}
