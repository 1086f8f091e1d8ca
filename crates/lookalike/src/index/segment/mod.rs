//! An immutable part of an index: rows, with the tables over their fingerprints.

pub(crate) mod file;
pub(crate) mod huffman;
pub(crate) mod ids;
pub(crate) mod packed;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::index::segment::file::{Section, SegmentFile};
use crate::index::segment::huffman::{HuffmanTable, near_in_runs};
use crate::index::segment::ids::{Id, IdKind, Ids};
use crate::index::segment::packed::{PackedShape, PackedTable, ProbeScratch};
use crate::names::named;
use crate::plan::design::{Cut, Design, MOST_RADIUS};

/// Keys in ascending order, some at a time, as often as wanted.
pub(crate) trait SortedKeys {
    fn visit(&self, visit: &mut dyn FnMut(&[u64]) -> Result<()>) -> Result<()>;
}

named! {
    /// How the keys of a table are stored.
    #[derive(Hash)]
    pub enum TableCodec {
        /// Eight bytes per fingerprint
        Raw = "raw",
        /// Small, and slower to search
        Huffman = "huffman",
        /// Smallest, and as fast as raw
        EliasFano = "elias-fano",
    }
}

impl TableCodec {
    /// All of them.
    pub const ALL: [TableCodec; 3] = [TableCodec::Raw, TableCodec::Huffman, TableCodec::EliasFano];
}

/// How the tables of a segment are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableFormat {
    pub(crate) codec: TableCodec,
    /// Bytes of a block of the code of the paper.
    pub(crate) huffman_block: u32,
}

/// Bytes of a block where nothing else is said.
pub(crate) fn default_huffman_block() -> u32 {
    huffman::DEFAULT_BLOCK
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
pub(crate) fn is_default_huffman_block(bytes: &u32) -> bool {
    *bytes == huffman::DEFAULT_BLOCK
}

/// What the footer of a segment says about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SegmentMeta {
    pub(crate) config: String,
    pub(crate) radius: u32,
    pub(crate) cut: Cut,
    pub(crate) codec: TableCodec,
    #[serde(default = "default_huffman_block", skip_serializing_if = "is_default_huffman_block")]
    pub(crate) huffman_block: u32,
    pub(crate) ids: IdKind,
    pub(crate) id_width: usize,
    pub(crate) rows: u64,
    pub(crate) fingerprints: u64,
    /// Fingerprints with several rows.
    pub(crate) repeated: u64,
    pub(crate) shapes: Vec<PackedShape>,
    pub(crate) deleted: u64,
    pub(crate) deleted_width: usize,
}

enum SegmentTable {
    Packed(PackedTable),
    Huffman(HuffmanTable),
}

/// A segment for queries.
pub(crate) struct Segment {
    pub(crate) meta: SegmentMeta,
    pub(crate) design: Design,
    file: Arc<SegmentFile>,
    tables: Vec<(SegmentTable, Vec<u64>)>,
    ids: Ids,
    /// The fingerprints with several rows, ascending.
    repeated: Section,
    /// How many more rows than fingerprints there are up to each of those.
    more: Section,
    /// Rows of older segments that are no longer there.
    pub(crate) deleted: HashMap<u64, HashSet<Id>>,
    /// The number of the last change in it, while it has no file.
    pub(crate) last: u64,
}

/// A fingerprint near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) distance: u32,
    pub(crate) fingerprint: u64,
    /// Its row in table 0, if it was found there.
    pub(crate) row: Option<u32>,
}

/// What a table has near a query.
struct Found {
    table: usize,
    /// The query, in the order of the table.
    key: u64,
    /// The row in the table.
    row: u32,
    /// The bits that differ, where they are in fingerprints.
    difference: u64,
}

/// Probes of a query for which all is read beforehand: more would push each other out of the caches.
const MOST_FORESEEN: u64 = 128;
/// Blocks that wait to be decoded side by side, at most, until they are: their list is small.
const MOST_RUNS: usize = 256;
/// Numbers that are searched without checking checksums in between.
const NARROW: usize = 4096;

impl Segment {
    /// Maps the segment at `path`.
    pub(crate) fn open(path: &Path) -> Result<Segment> {
        let (file, meta) = SegmentFile::open(path)?;
        Segment::new(file, meta)
    }

    /// Opens a segment that is in memory.
    pub(crate) fn in_memory(bytes: Vec<u8>) -> Result<Segment> {
        let (file, meta) = SegmentFile::in_memory(bytes)?;
        Segment::new(file, meta)
    }

    fn new(file: Arc<SegmentFile>, meta: SegmentMeta) -> Result<Segment> {
        let design = if meta.radius <= MOST_RADIUS {
            Design::new(64, meta.radius, meta.cut.clone())
        } else {
            Err(format!("radius {} is beyond {MOST_RADIUS}", meta.radius))
        };
        let design = design.map_err(|reason| file.corrupt(format!("has a design that makes no sense: {reason}")))?;
        let fingerprints = u32::try_from(meta.fingerprints).ok().filter(|_| meta.rows <= u64::from(u32::MAX));
        let Some(fingerprints) = fingerprints.filter(|_| meta.fingerprints <= meta.rows) else {
            return Err(file.corrupt("is damaged: the numbers of rows and fingerprints make no sense"));
        };
        let mut tables = Vec::new();
        for (number, shape) in design.tables().iter().enumerate() {
            let table = match (meta.codec, meta.shapes.get(number)) {
                (TableCodec::Huffman, _) => {
                    SegmentTable::Huffman(HuffmanTable::open(&file, number, fingerprints, meta.huffman_block)?)
                }
                (_, Some(&packed)) => SegmentTable::Packed(PackedTable::open(&file, number, packed, fingerprints)?),
                (_, None) => return Err(file.corrupt(format!("is damaged: table {number} is missing"))),
            };
            tables.push((table, shape.patterns()));
        }
        let ids = Ids::open(&file, "id", meta.ids, meta.id_width, meta.rows)?;
        let (repeated, more) = (file.section("repeated"), file.section("repeated-more"));
        let length = meta.repeated.checked_mul(4);
        if [&repeated, &more].iter().any(|section| Some(section.len() as u64) != length) {
            return Err(file.corrupt("is damaged: repeated fingerprints are not as many as it says"));
        }
        let mut deleted: HashMap<u64, HashSet<Id>> = HashMap::new();
        if meta.deleted > 0 {
            let section = file.section("deleted");
            let deleted_ids = Ids::open(&file, "deleted-id", meta.ids, meta.deleted_width, meta.deleted)?;
            if Some(section.len() as u64) != meta.deleted.checked_mul(8) {
                return Err(file.corrupt("is damaged: deleted rows are not as many as their ids"));
            }
            let mut bytes = 0;
            for at in 0..section.len() / 8 {
                let id = deleted_ids.get(at as u64)?;
                bytes += if let Id::Text(text) = &id { text.len() as u64 } else { 0 };
                if bytes > 3 * file.length() {
                    return Err(file.corrupt("is damaged: the ids of deleted rows overlap"));
                }
                deleted.entry(section.number(at, 8)?).or_default().insert(id);
            }
        }
        Ok(Segment { meta, design, file, tables, ids, repeated, more, deleted, last: 0 })
    }

    pub(crate) fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// Different fingerprints.
    pub(crate) fn fingerprints(&self) -> u32 {
        u32::try_from(self.meta.fingerprints).expect("checked when it was opened")
    }

    /// Whether there is a file, and not only memory.
    pub(crate) fn is_in_file(&self) -> bool {
        self.file.is_mapped()
    }

    /// The name of the file, if there is one.
    pub(crate) fn file_name(&self) -> Option<String> {
        let name = self.file.path().file_name().filter(|_| self.is_in_file());
        name.map(|name| name.to_string_lossy().into_owned())
    }

    /// Appends everything within `radius`, which the design must serve, each once; with `is_any`, at least one of it.
    pub(crate) fn near(
        &self,
        query: u64,
        radius: u32,
        is_any: bool,
        scratch: &mut ProbeScratch,
        hits: &mut Vec<Hit>,
    ) -> Result<()> {
        let before = hits.len();
        let collect = |hits: &mut Vec<Hit>, found: Found| {
            hits.push(Hit {
                distance: found.difference.count_ones(),
                fingerprint: query ^ found.difference,
                row: (found.table == 0).then_some(found.row),
            });
        };
        self.foresee(query)?;
        for (number, shape) in self.design.tables().iter().enumerate() {
            self.probe(number, shape.permute(query), radius, scratch, &mut |found| collect(hits, found))?;
            if is_any {
                self.look_through(radius, scratch, &mut |found| collect(hits, found))?;
                if hits.len() > before {
                    return Ok(());
                }
            }
        }
        self.look_through(radius, scratch, &mut |found| collect(hits, found))
    }

    /// Has read what all tables need for a query, before the first of them waits for it.
    fn foresee(&self, query: u64) -> Result<()> {
        if self.design.probes() > MOST_FORESEEN {
            return Ok(());
        }
        let probes = || {
            self.design.tables().iter().zip(&self.tables).flat_map(|(shape, (table, patterns))| {
                let key = shape.permute(query);
                patterns.iter().map(move |pattern| (shape.prefix, table, key ^ pattern))
            })
        };
        for (prefix, table, probe) in probes() {
            match table {
                SegmentTable::Packed(table) => table.foresee(probe),
                SegmentTable::Huffman(table) => table.foresee(probe, prefix),
            }
        }
        // The blocks of Huffman code all wait anyway, and are asked for when they are found.
        for (_, table, probe) in probes() {
            if let SegmentTable::Packed(table) = table {
                table.foresee_rows(probe)?;
            }
        }
        Ok(())
    }

    /// Pairs of a query and a fingerprint within `radius`, each once, in no order. Each table is probed in its own order,
    /// so that queries with the same bucket find it in the cache.
    pub(crate) fn near_many(&self, queries: &[u64], radius: u32) -> Result<Vec<(u64, u64)>> {
        let mut all = Vec::new();
        for (number, shape) in self.design.tables().iter().enumerate() {
            let mut keys: Vec<u64> = queries.iter().map(|&query| shape.permute(query)).collect();
            keys.par_sort_unstable();
            let probe_all = |keys: &[u64]| -> Result<Vec<(u64, u64)>> {
                let (mut scratch, mut pairs) = (ProbeScratch::default(), Vec::new());
                let mut add = |found: Found| {
                    let query = shape.restore(found.key);
                    pairs.push((query, query ^ found.difference));
                };
                for &key in keys {
                    self.probe(number, key, radius, &mut scratch, &mut add)?;
                }
                self.look_through(radius, &mut scratch, &mut add)?;
                Ok(pairs)
            };
            let pairs = keys.par_chunks(1 << 14).map(probe_all).collect::<Result<Vec<Vec<(u64, u64)>>>>()?;
            all.extend(pairs.into_iter().flatten());
        }
        Ok(all)
    }

    /// Visits everything within `radius` of a key of table `number` that no earlier table finds; of a table in Huffman code, later:
    /// [`look_through`](Self::look_through) decodes blocks of several probes side by side.
    #[inline]
    fn probe(
        &self,
        number: usize,
        key: u64,
        radius: u32,
        scratch: &mut ProbeScratch,
        visit: &mut impl FnMut(Found),
    ) -> Result<()> {
        let shape = &self.design.tables()[number];
        let (table, patterns) = &self.tables[number];
        let prefix = !u64::MAX.unbounded_shr(shape.prefix);
        for &pattern in patterns {
            let probe = key ^ pattern;
            match table {
                SegmentTable::Packed(table) => {
                    let mut found = |row: u32, near: u64| {
                        // Rows of the same bucket with another prefix are found by another probe.
                        if (near ^ probe) & prefix == 0 {
                            self.visit_first(number, key, row, near, visit);
                        }
                    };
                    table.near(probe, key, radius, scratch, &mut found)?;
                }
                SegmentTable::Huffman(table) => {
                    table.runs(number, probe, shape.prefix, key, radius, &mut scratch.runs)?;
                    if scratch.runs.len() >= MOST_RUNS {
                        self.look_through(radius, scratch, visit)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Visits everything within `radius` in the blocks that wait in `scratch`.
    fn look_through(&self, radius: u32, scratch: &mut ProbeScratch, visit: &mut impl FnMut(Found)) -> Result<()> {
        if scratch.runs.is_empty() {
            return Ok(());
        }
        let table_of = |number: usize| match self.tables.get(number) {
            Some((SegmentTable::Huffman(table), _)) => Some(table),
            _ => None,
        };
        let runs = std::mem::take(&mut scratch.runs);
        let result = near_in_runs(table_of, &runs, radius, &mut scratch.near, &mut |run, row, near| {
            self.visit_first(run.table, run.query, row, near, visit);
        });
        scratch.runs = runs;
        scratch.runs.clear();
        result
    }

    /// Visits a key near another one, unless an earlier table finds it.
    #[inline]
    fn visit_first(&self, table: usize, key: u64, row: u32, near: u64, visit: &mut impl FnMut(Found)) {
        let difference = self.design.tables()[table].restore(near ^ key);
        if self.design.first_table(difference) == Some(table) {
            visit(Found { table, key, row, difference });
        }
    }

    /// The row of a fingerprint.
    pub(crate) fn find(&self, fingerprint: u64) -> Result<Option<u32>> {
        // Table 0 has the bits as they are.
        match &self.tables[0].0 {
            SegmentTable::Packed(table) => table.find(fingerprint),
            SegmentTable::Huffman(table) => table.find(fingerprint),
        }
    }

    /// Where the ids of a hit are.
    pub(crate) fn positions(&self, hit: &Hit) -> Result<Range<u64>> {
        let row = match hit.row {
            Some(row) => row,
            None => match self.find(hit.fingerprint)? {
                Some(row) => row,
                None => return Err(self.file.corrupt("is damaged: its tables hold different fingerprints")),
            },
        };
        self.positions_of(row)
    }

    /// Where the ids of a row are.
    pub(crate) fn positions_of(&self, row: u32) -> Result<Range<u64>> {
        // The first repeated fingerprint that is not before this one.
        let count = self.repeated.len() / 4;
        let (mut from, mut to) = (0, count);
        while to - from > NARROW {
            let middle = from.midpoint(to);
            if self.repeated.number(middle, 4)? < u64::from(row) { from = middle + 1 } else { to = middle }
        }
        let (numbers, _) = self.repeated.bytes(from * 4..to * 4)?.as_chunks::<4>();
        from += numbers.partition_point(|&number| u32::from_le_bytes(number) < row);
        let before = if from == 0 { 0 } else { self.more.number(from - 1, 4)? };
        let is_repeated = from < count && self.repeated.number(from, 4)? == u64::from(row);
        let until = if is_repeated { self.more.number(from, 4)? } else { before };
        let row = u64::from(row);
        let end = (row + until.max(before) + 1).min(self.meta.rows);
        Ok((row + before).min(end)..end)
    }

    /// Appends the fingerprints with several rows.
    pub(crate) fn repeated_fingerprints(&self, fingerprints: &mut Vec<u64>) -> Result<()> {
        let (mut keys, mut from, mut next) = (Vec::new(), 0, 0);
        let count = self.repeated.len() / 4;
        while from < self.fingerprints() && next < count {
            let to = from.saturating_add(1 << 16).min(self.fingerprints());
            keys.clear();
            self.decode(from..to, &mut keys)?;
            while next < count {
                let row = self.repeated.number(next, 4)?;
                let Some(key) = row.checked_sub(u64::from(from)).and_then(|at| keys.get(usize::try_from(at).ok()?))
                else {
                    break;
                };
                fingerprints.push(*key);
                next += 1;
            }
            from = to;
        }
        Ok(())
    }

    /// The id at a position.
    pub(crate) fn id(&self, position: u64) -> Result<Id> {
        self.ids.get(position)
    }

    /// The fingerprints of `rows`, ascending.
    pub(crate) fn decode(&self, rows: Range<u32>, fingerprints: &mut Vec<u64>) -> Result<()> {
        self.decode_table(0, rows, fingerprints)
    }

    pub(crate) fn decode_table(&self, table: usize, rows: Range<u32>, keys: &mut Vec<u64>) -> Result<()> {
        match &self.tables[table].0 {
            SegmentTable::Packed(table) => table.decode(rows, keys),
            SegmentTable::Huffman(table) => table.decode(rows, keys),
        }
    }

    /// Visits every row: fingerprint and id.
    pub(crate) fn for_each_row(&self, mut visit: impl FnMut(u64, Id) -> Result<()>) -> Result<()> {
        let (mut keys, mut from) = (Vec::new(), 0);
        while from < self.fingerprints() {
            let to = from.saturating_add(1 << 16).min(self.fingerprints());
            keys.clear();
            self.decode(from..to, &mut keys)?;
            for (row, &key) in (from..to).zip(&keys) {
                for position in self.positions_of(row)? {
                    visit(key, self.id(position)?)?;
                }
            }
            from = to;
        }
        Ok(())
    }

    /// Everything that is wrong with the segment: checksums, order, the same fingerprints in all tables,
    /// a design that misses nothing.
    pub(crate) fn verify(&self) -> Vec<Error> {
        let mut errors = self.file.check_all();
        if !errors.is_empty() {
            return errors;
        }
        let wrong = |reason: String| self.file.corrupt(reason);
        if let Some(gap) = self.design.gap() {
            errors.push(wrong(format!("has a design that misses fingerprints which differ in the bits {gap:?}")));
        }
        let mut sums = Vec::new();
        for number in 0..self.tables.len() {
            match self.check_table(number) {
                Ok((rows, sum)) if rows == self.meta.fingerprints => sums.push(sum),
                Ok((rows, _)) => {
                    let reason = format!("has {rows} rows in table {number} instead of {}", self.meta.fingerprints);
                    errors.push(wrong(reason));
                }
                Err(error) => errors.push(error),
            }
        }
        if sums.windows(2).any(|pair| pair[0] != pair[1]) {
            errors.push(wrong("has tables with different fingerprints".to_owned()));
        }
        let mut rows = 0;
        for row in 0..self.fingerprints() {
            match self.positions_of(row) {
                Ok(positions) if positions.start == rows && positions.end > rows => rows = positions.end,
                _ => {
                    errors.push(wrong(format!("has fingerprints without rows, from number {row} on")));
                    break;
                }
            }
        }
        if rows != self.meta.rows {
            errors.push(wrong(format!("has {} ids for {rows} rows", self.meta.rows)));
        }
        errors
    }

    /// Rows of a table, and a number that depends on its fingerprints alone, not on their order.
    fn check_table(&self, number: usize) -> Result<(u64, u64)> {
        let shape = &self.design.tables()[number];
        let (mut keys, mut from, mut rows, mut sum, mut before) = (Vec::new(), 0, 0, 0u64, None);
        while from < self.fingerprints() {
            let to = from.saturating_add(1 << 16).min(self.fingerprints());
            keys.clear();
            self.decode_table(number, from..to, &mut keys)?;
            for &key in &keys {
                if before.replace(key).is_some_and(|before| before >= key) {
                    return Err(self.file.corrupt(format!("is out of order in table {number}, near row {rows}")));
                }
                rows += 1;
                let mut state = shape.restore(key);
                sum = sum.wrapping_add(crate::random::next_random(&mut state));
            }
            from = to;
        }
        Ok((rows, sum))
    }
}
