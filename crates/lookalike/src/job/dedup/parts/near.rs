//! Stored fingerprints, chunk by chunk → those that are near to one of some queries (Manku et al. 2007, §3.3).

use arrow_array::RecordBatch;
use serde::Deserialize;

use crate::candidate::hamming_join::{QueryTables, join_design};
use crate::error::{Error, Result};
use crate::job::dedup::parts::rows::Kind::Long;
use crate::job::dedup::parts::rows::{Kind, RowBuilder, Rows, Value};
use crate::job::dedup::parts::{Emit, Part};
use crate::plan::design::Design;

/// A stored fingerprint, a query near to it, and the bits in which they differ.
pub(super) const MATCHES: [(&str, Kind); 3] = [("fingerprint", Long), ("query", Long), ("distance", Long)];

/// Stored fingerprints that are looked at together.
const CHUNK: usize = 1 << 20;

#[derive(Deserialize)]
struct NearSpec {
    queries: Vec<u64>,
    radius: u32,
    /// About how many fingerprints there are in all.
    rows: u64,
}

/// Finds what is near to the queries.
pub(super) struct Near {
    queries: Vec<u64>,
    radius: u32,
    design: Design,
    chunk: Vec<u64>,
}

impl Near {
    pub(super) fn new(spec: &str) -> Result<Near> {
        let NearSpec { mut queries, radius, rows } =
            serde_json::from_str(spec).map_err(|error| Error::internal(error.to_string()))?;
        if radius > 63 {
            return Err(Error::invalid("radius", radius, "must be below 64, the bits of a fingerprint"));
        }
        queries.sort_unstable();
        queries.dedup();
        let design = join_design(queries.len() as u64, rows.min(CHUNK as u64), radius);
        Ok(Near { queries, radius, design, chunk: Vec::new() })
    }

    fn look(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        self.chunk.sort_unstable();
        self.chunk.dedup();
        let mut rows = RowBuilder::new(&MATCHES);
        for (query, fingerprint) in QueryTables::new(&self.queries, &self.design).join(&self.chunk, self.radius) {
            let distance = u64::from((query ^ fingerprint).count_ones());
            rows.push(&[Value::bits(fingerprint), Value::bits(query), Value::count(distance)]);
        }
        self.chunk.clear();
        emit(rows.take()?)
    }
}

impl Part for Near {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let stored = Rows(batch).longs("fingerprint")?;
        self.chunk.extend(stored.values().iter().map(|&fingerprint| fingerprint.cast_unsigned()));
        if self.chunk.len() >= CHUNK { self.look(emit) } else { Ok(()) }
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        self.look(emit)
    }
}
