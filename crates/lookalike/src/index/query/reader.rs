//! Queries: rows near one fingerprint, near many, near those of another index.

use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;

use crate::candidate::hamming_join::{CHUNK, QueryTables, join_design};
use crate::error::{Error, Result};
use crate::index::build::planner::{self, Budget};
use crate::index::live::Index;
use crate::index::live::state::IndexState;
use crate::index::segment::ids::Id;
use crate::index::segment::packed::ProbeScratch;
use crate::index::segment::{Hit, Segment};
use crate::names::named;
use crate::plan::design::MOST_RADIUS;

named! {
    /// Where batches and joins find what is near: both find the same.
    pub enum TablesOver {
        /// In tables over the queries; all stored rows are streamed past them
        Queries = "queries",
        /// In the stored tables, which are probed for each query
        Rows = "rows",
    }
}

/// Answers queries about what an index held when this was made. Cheap to make; each thread has its own.
pub struct IndexReader {
    state: Arc<IndexState>,
    tables_over: Option<TablesOver>,
    scratch: ProbeScratch,
    hits: Vec<Hit>,
    near: Vec<NearFingerprint>,
}

/// Rows of a chunk.
#[allow(clippy::cast_possible_truncation)] // 2^23
const CHUNK_ROWS: u32 = CHUNK as u32;

/// A fingerprint near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NearFingerprint {
    distance: u32,
    fingerprint: u64,
    /// The segment, or the number of segments for the tail.
    segment: usize,
    row: Option<u32>,
}

/// A row near a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowMatch {
    /// Its id.
    pub id: Id,
    /// Differing bits.
    pub distance: u32,
    /// Its fingerprint.
    pub fingerprint: u64,
}

/// The rows near a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryResult {
    /// How many there are.
    pub count: u64,
    /// The nearest of them, as many as were asked for; at the same distance by fingerprint, then in the
    /// order in which they came.
    pub matches: Vec<RowMatch>,
}

impl Index {
    /// What is there now, for queries; does not change when rows come or go.
    #[must_use]
    pub fn reader(&self) -> IndexReader {
        IndexReader {
            state: self.state(),
            tables_over: None,
            scratch: ProbeScratch::default(),
            hits: Vec::new(),
            near: Vec::new(),
        }
    }
}

impl IndexReader {
    /// The same reader, whose batches and joins use these tables; without it, what suits each segment.
    #[must_use]
    pub fn with_tables_over(mut self, tables: TablesOver) -> IndexReader {
        self.tables_over = Some(tables);
        self
    }

    /// All rows within `radius` of `fingerprint`: how many, and the first `limit`.
    ///
    /// # Errors
    /// When a segment is damaged where it is read, or the radius is beyond its tables.
    pub fn query(&mut self, fingerprint: u64, radius: u32, limit: usize) -> Result<QueryResult> {
        self.find(fingerprint, radius, false)?;
        self.near.sort_unstable();
        let mut result = QueryResult::default();
        for near in &self.near {
            self.add_rows(near, &mut result, limit)?;
        }
        Ok(result)
    }

    /// Whether any row is within `radius` of `fingerprint`; stops at the first one.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn any(&mut self, fingerprint: u64, radius: u32) -> Result<bool> {
        self.find(fingerprint, radius, true)?;
        let mut result = QueryResult::default();
        for near in &self.near {
            self.add_rows(near, &mut result, 0)?;
            if result.count > 0 {
                return Ok(true);
            }
        }
        // What was found first may all be deleted.
        let has_deleted = self.state.segments.iter().any(|segment| !segment.deleted.is_empty())
            || !self.state.tail.deleted.is_empty();
        Ok(has_deleted && self.query(fingerprint, radius, 0)?.count > 0)
    }

    fn find(&mut self, fingerprint: u64, radius: u32, is_any: bool) -> Result<()> {
        self.near.clear();
        for (number, segment) in self.state.segments.iter().enumerate() {
            check_served(segment, radius)?;
            self.hits.clear();
            segment.near(fingerprint, radius, is_any, &mut self.scratch, &mut self.hits)?;
            self.near.extend(self.hits.iter().map(|hit| NearFingerprint {
                distance: hit.distance,
                fingerprint: hit.fingerprint,
                segment: number,
                row: hit.row,
            }));
            if is_any && !self.near.is_empty() {
                return Ok(());
            }
        }
        let tail = self.state.segments.len();
        for (row, (stored, _)) in (0..).zip(&self.state.tail.rows) {
            let distance = (stored ^ fingerprint).count_ones();
            if distance <= radius {
                self.near.push(NearFingerprint { distance, fingerprint: *stored, segment: tail, row: Some(row) });
            }
        }
        Ok(())
    }

    /// Counts the rows of a fingerprint, and adds them to the result, up to `limit`.
    fn add_rows(&self, near: &NearFingerprint, result: &mut QueryResult, limit: usize) -> Result<()> {
        let NearFingerprint { distance, fingerprint, .. } = *near;
        let Some(segment) = self.state.segments.get(near.segment) else {
            result.count += 1;
            let row = near.row.and_then(|row| self.state.tail.rows.get(row as usize));
            if result.matches.len() < limit {
                result.matches.extend(row.map(|(_, id)| RowMatch { id: id.clone(), distance, fingerprint }));
            }
            return Ok(());
        };
        let has_deleted = self.state.has_deleted(near.segment, fingerprint);
        if segment.meta.rows == segment.meta.fingerprints && result.matches.len() >= limit && !has_deleted {
            result.count += 1;
            return Ok(());
        }
        let positions = segment.positions(&Hit { distance, fingerprint, row: near.row })?;
        if !has_deleted {
            result.count += positions.end - positions.start;
        }
        for position in positions {
            if !has_deleted && result.matches.len() >= limit {
                break;
            }
            let id = segment.id(position)?;
            if has_deleted {
                if self.state.is_deleted(near.segment, fingerprint, &id) {
                    continue;
                }
                result.count += 1;
            }
            if result.matches.len() < limit {
                result.matches.push(RowMatch { id, distance, fingerprint });
            }
        }
        Ok(())
    }

    /// The ids of a fingerprint, at most `limit`.
    ///
    /// # Errors
    /// When a segment is damaged where it is read.
    pub fn ids(&self, fingerprint: u64, limit: usize) -> Result<Vec<Id>> {
        let mut ids = Vec::new();
        for (number, segment) in self.state.segments.iter().enumerate() {
            let Some(row) = segment.find(fingerprint)? else { continue };
            let has_deleted = self.state.has_deleted(number, fingerprint);
            for position in segment.positions_of(row)? {
                if ids.len() >= limit {
                    return Ok(ids);
                }
                let id = segment.id(position)?;
                if !has_deleted || !self.state.is_deleted(number, fingerprint, &id) {
                    ids.push(id);
                }
            }
        }
        let tail = self.state.tail.rows.iter().filter(|(near, _)| *near == fingerprint);
        ids.extend(tail.map(|(_, id)| id.clone()).take(limit - ids.len()));
        Ok(ids)
    }

    /// Every row that is not deleted, segment by segment.
    ///
    /// # Errors
    /// When a segment is damaged, or `visit` fails.
    pub fn for_each_row(&self, visit: &mut dyn FnMut(u64, &Id) -> Result<()>) -> Result<()> {
        for (number, first) in self.chunks() {
            let Some(segment) = self.state.segments.get(number) else { continue };
            for (row, fingerprint) in (first..).zip(self.chunk((number, first))?) {
                let has_deleted = self.state.has_deleted(number, fingerprint);
                for position in segment.positions_of(row)? {
                    let id = segment.id(position)?;
                    if !has_deleted || !self.state.is_deleted(number, fingerprint, &id) {
                        visit(fingerprint, &id)?;
                    }
                }
            }
        }
        self.state.tail.rows.iter().try_for_each(|(fingerprint, id)| visit(*fingerprint, id))
    }

    /// Rows, and different fingerprints of each segment together.
    #[must_use]
    pub fn len(&self) -> (u64, u64) {
        let segments = self.state.segments.iter();
        let tail = self.state.tail.rows.len() as u64;
        segments.fold((tail, tail), |(rows, all), segment| (rows + segment.meta.rows, all + segment.meta.fingerprints))
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len().0 == 0
    }

    pub(crate) fn state(&self) -> &IndexState {
        &self.state
    }

    /// Where the chunks are: segment and first row; the tail is the last segment.
    fn chunks(&self) -> Vec<(usize, u32)> {
        let segments = self.state.segments.iter().enumerate();
        let mut chunks: Vec<(usize, u32)> = segments
            .flat_map(|(number, segment)| (0..segment.fingerprints()).step_by(CHUNK).map(move |row| (number, row)))
            .collect();
        if !self.state.tail.rows.is_empty() {
            chunks.push((self.state.segments.len(), 0));
        }
        chunks
    }

    /// The fingerprints of a chunk, sorted, each once.
    fn chunk(&self, (number, row): (usize, u32)) -> Result<Vec<u64>> {
        let mut fingerprints = Vec::new();
        match self.state.segments.get(number) {
            Some(segment) => {
                let to = row.saturating_add(CHUNK_ROWS).min(segment.fingerprints());
                fingerprints.reserve_exact((to - row) as usize);
                segment.decode(row..to, &mut fingerprints)?;
            }
            None => {
                fingerprints.extend(self.state.tail.rows.iter().map(|(fingerprint, _)| *fingerprint));
                fingerprints.sort_unstable();
                fingerprints.dedup();
            }
        }
        Ok(fingerprints)
    }

    /// Pairs of a query and a stored fingerprint within `radius`, sorted, each once.
    ///
    /// # Errors
    /// When a segment is damaged, or the radius is too large: beyond the stored tables, if only those are to be used.
    pub fn batch(&self, queries: &[u64], radius: u32) -> Result<Vec<(u64, u64)>> {
        let mut queries = queries.to_vec();
        queries.par_sort_unstable();
        queries.dedup();
        let mut pairs = Vec::new();
        for some in queries.chunks(CHUNK) {
            self.join_stored(some, radius, &mut pairs)?;
        }
        Ok(sorted(pairs))
    }

    /// Pairs of a fingerprint of `other` and one of this index within `radius`; sorted, each once.
    ///
    /// # Errors
    /// As [`batch`](Self::batch).
    pub fn join(&self, other: &IndexReader, radius: u32) -> Result<Vec<(u64, u64)>> {
        let mut pairs = Vec::new();
        for chunk in other.chunks() {
            self.join_stored(&other.chunk(chunk)?, radius, &mut pairs)?;
        }
        Ok(sorted(pairs))
    }

    /// Pairs of different fingerprints of the index within `radius`, the smaller first; sorted, each once.
    ///
    /// # Errors
    /// As [`batch`](Self::batch).
    pub fn self_join(&self, radius: u32) -> Result<Vec<(u64, u64)>> {
        check_radius(radius)?;
        let stored = self.len().1.min(CHUNK as u64);
        let design = join_design(stored, stored, radius);
        let (mut pairs, chunks) = (Vec::new(), self.chunks());
        for (at, &queries) in chunks.iter().enumerate() {
            let tables = QueryTables::new(&self.chunk(queries)?, &design);
            pairs.extend(tables.join_self(radius));
            for &chunk in &chunks[at + 1..] {
                let more = tables.join(&self.chunk(chunk)?, radius).into_iter();
                // The same fingerprint in two segments is not a pair.
                pairs.extend(more.map(|(a, b)| (a.min(b), a.max(b))).filter(|(a, b)| a < b));
            }
        }
        Ok(sorted(pairs))
    }

    /// Fingerprints with several rows, in no order, perhaps more than once.
    pub(crate) fn repeated(&self) -> Result<Vec<u64>> {
        let mut repeated = Vec::new();
        for segment in &self.state.segments {
            segment.repeated_fingerprints(&mut repeated)?;
        }
        let mut tail: Vec<u64> = self.state.tail.rows.iter().map(|row| row.0).collect();
        tail.sort_unstable();
        repeated.extend(tail.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        // The same in two segments.
        let chunks = self.chunks();
        for (at, &left) in chunks.iter().enumerate() {
            let others = chunks[at + 1..].iter().filter(|right| right.0 != left.0);
            let left = if others.clone().count() > 0 { self.chunk(left)? } else { Vec::new() };
            for &right in others {
                let right = self.chunk(right)?;
                let mut from = 0;
                for &fingerprint in &left {
                    while right.get(from).is_some_and(|&other| other < fingerprint) {
                        from += 1;
                    }
                    if right.get(from) == Some(&fingerprint) {
                        repeated.push(fingerprint);
                    }
                }
            }
        }
        Ok(repeated)
    }

    /// Compares `queries`, at most a chunk, with everything stored. Few queries are looked up in the tables of a
    /// segment, in the order of each; for many, or a radius beyond its tables, tables are made over the queries and
    /// the stored fingerprints are streamed past them (Manku et al. 2007, §3.3), unless the reader says which. Rows that
    /// are in no table yet are always streamed.
    fn join_stored(&self, queries: &[u64], radius: u32, pairs: &mut Vec<(u64, u64)>) -> Result<()> {
        check_radius(radius)?;
        let is_scanned = |number: usize| {
            let segment = self.state.segments.get(number);
            segment.is_none_or(|segment| match self.tables_over {
                Some(tables) => tables == TablesOver::Queries,
                None => radius > segment.design.radius() || queries.len() as u64 > segment.meta.fingerprints,
            })
        };
        for (number, segment) in self.state.segments.iter().enumerate() {
            if !is_scanned(number) {
                check_served(segment, radius)?;
                pairs.extend(segment.near_many(queries, radius)?);
            }
        }
        let design = join_design(queries.len() as u64, self.len().1.min(CHUNK as u64), radius);
        let mut tables = None;
        for chunk in self.chunks().into_iter().filter(|(number, _)| is_scanned(*number)) {
            let tables = tables.get_or_insert_with(|| QueryTables::new(queries, &design));
            pairs.extend(tables.join(&self.chunk(chunk)?, radius));
        }
        Ok(())
    }
}

fn check_radius(radius: u32) -> Result<()> {
    if radius > MOST_RADIUS {
        return Err(Error::invalid("radius", radius, format!("must be between 0 and {MOST_RADIUS} differing bits")));
    }
    Ok(())
}

/// Fails if the tables of a segment do not serve a radius, with what would.
#[inline]
fn check_served(segment: &Segment, radius: u32) -> Result<()> {
    if radius <= segment.design.radius() {
        return Ok(());
    }
    let design = planner::choose(planner::INDEXED_BITS, segment.meta.fingerprints, radius, Budget::default())?.design;
    let expected = format!(
        "must be at most {}, as the tables of {} serve no more; build the index again with `radius` {radius} (which would take the design {}, {} tables)",
        segment.design.radius(),
        segment.file().path().display(),
        design.cut(),
        design.tables().len()
    );
    Err(Error::invalid("radius", radius, expected))
}

fn sorted(mut pairs: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    pairs.par_sort_unstable();
    pairs.dedup();
    pairs
}
