//! Rows in a file: sorted by key, behind a directory of the first bits of keys. `docs/index-format.md` has the bytes.
//!
//! A directory entry says where the rows begin whose keys have these first bits, about eight of them; each row is
//! the rest of its key and the number of its page, in as few whole bytes as hold the largest.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::index::bands::{BandRow, KEY_BITS, MOST_ROWS_OF_KEY};
use crate::index::segment::file::{Section, SegmentFile, SegmentWriter};
use crate::kernel::word_at;
use crate::spill::Fixed;

/// Average number of rows per entry of the directory.
const BUCKET_ROWS: u64 = 8;
/// Rows that are read at once where all are read.
const RUN: usize = 4096;
/// Bytes that are read at once.
const WORD: usize = 8;
/// What the footer says the file is.
const KIND: &str = "bands";

/// What the footer of a table says about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BandMeta {
    kind: String,
    /// What the keys are made by, as 16 hex digits.
    pub(crate) config: String,
    pub(crate) rows: u64,
    directory_bits: u32,
    rest_bytes: usize,
    number_bytes: usize,
    /// Pages whose rows in older tables lead nowhere.
    pub(crate) gone: u64,
}

/// A table for lookups.
pub(crate) struct BandTable {
    pub(crate) meta: BandMeta,
    file: Arc<SegmentFile>,
    directory: Section,
    rows: Section,
}

/// Bytes that hold `bits` bits, at least one.
fn bytes_of(bits: u32) -> usize {
    bits.div_ceil(8).max(1) as usize
}

fn directory_bits(rows: u64) -> u32 {
    (rows / BUCKET_ROWS).max(1).ilog2().min(KEY_BITS - 8)
}

/// Writes a table of rows that come in their order, each once; `most` is how many come at the most, `largest` the largest
/// number. `gone` are pages, ascending, whose rows in older tables lead nowhere. Returns what it was written on.
pub(crate) fn write_table<W: Write>(
    rows: impl Iterator<Item = Result<BandRow>>,
    (most, largest): (u64, u32),
    gone: &[u32],
    config: u64,
    out: W,
    path: &Path,
) -> Result<W> {
    let directory_bits = directory_bits(most);
    let (rest_bits, number_bits) = (KEY_BITS - directory_bits, 32 - largest.leading_zeros());
    let (rest_bytes, number_bytes) = (bytes_of(rest_bits), bytes_of(number_bits));
    let mut writer = SegmentWriter::new(out, path)?;
    writer.begin("rows")?;
    let mut directory: Vec<u8> = Vec::new();
    let (mut count, mut same, mut last_key) = (0u64, 0, u64::MAX);
    let mut bytes = Vec::with_capacity(RUN * 12);
    let mut next_bucket = 0u64;
    for row in rows {
        let BandRow { key, number } = row?;
        same = if key == last_key { same + 1 } else { 0 };
        if same >= MOST_ROWS_OF_KEY {
            continue;
        }
        last_key = key;
        let bucket = key >> rest_bits;
        while next_bucket <= bucket {
            directory.extend(count.to_le_bytes()[..5].iter());
            next_bucket += 1;
        }
        bytes.extend_from_slice(&(key & ((1 << rest_bits) - 1)).to_le_bytes()[..rest_bytes]);
        bytes.extend_from_slice(&number.to_le_bytes()[..number_bytes]);
        count += 1;
        if bytes.len() >= RUN * 8 {
            writer.write(&bytes)?;
            bytes.clear();
        }
    }
    writer.write(&bytes)?;
    while next_bucket <= 1 << directory_bits {
        directory.extend(count.to_le_bytes()[..5].iter());
        next_bucket += 1;
    }
    writer.section("directory", &directory)?;
    let mut bytes = Vec::new();
    u32::encode(gone, &mut bytes);
    writer.section("gone", &bytes)?;
    let config = format!("{config:016x}");
    let kind = KIND.to_owned();
    let meta =
        BandMeta { kind, config, rows: count, directory_bits, rest_bytes, number_bytes, gone: gone.len() as u64 };
    writer.finish(meta).map(|(out, _)| out)
}

/// The rows of several tables in their order, without those that `is_live` does not want.
pub(crate) fn merge_tables<'t>(
    tables: &'t [Arc<BandTable>],
    is_live: &'t dyn Fn(u32) -> bool,
) -> impl Iterator<Item = Result<BandRow>> + 't {
    let mut sources: Vec<TableRows<'t>> = tables.iter().map(|table| TableRows::new(table)).collect();
    std::iter::from_fn(move || {
        loop {
            let mut least: Option<(BandRow, usize)> = None;
            for (at, source) in sources.iter_mut().enumerate() {
                match source.peek() {
                    Ok(Some(row)) if least.is_none_or(|(other, _)| row < other) => least = Some((row, at)),
                    Ok(_) => {}
                    Err(error) => return Some(Err(error)),
                }
            }
            let (row, at) = least?;
            sources[at].next += 1;
            if is_live(row.number) {
                return Some(Ok(row));
            }
        }
    })
}

/// The rows of a table, one after the other.
struct TableRows<'t> {
    table: &'t BandTable,
    /// The number of the next row.
    next: u64,
    run: Vec<BandRow>,
    /// The number of the first row of the run.
    first: u64,
    bucket: u64,
    /// The number of the first row of the bucket after `bucket`.
    bucket_end: u64,
}

impl<'t> TableRows<'t> {
    fn new(table: &'t BandTable) -> TableRows<'t> {
        TableRows { table, next: 0, run: Vec::new(), first: 0, bucket: 0, bucket_end: u64::MAX }
    }

    fn peek(&mut self) -> Result<Option<BandRow>> {
        if self.next >= self.table.meta.rows {
            return Ok(None);
        }
        let at = self.next - self.first;
        if at >= self.run.len() as u64 {
            self.read_run()?;
            return Ok(self.run.first().copied());
        }
        Ok(usize::try_from(at).ok().and_then(|at| self.run.get(at).copied()))
    }

    fn read_run(&mut self) -> Result<()> {
        let table = self.table;
        self.run.clear();
        self.first = self.next;
        if self.bucket_end == u64::MAX {
            self.bucket_end = table.bucket_start(1)?;
        }
        let end = (self.next + RUN as u64).min(table.meta.rows);
        let bytes = table.row_bytes(self.next, end)?;
        for (row, bytes) in (self.next..end).zip(bytes.chunks_exact(table.row_width())) {
            while row >= self.bucket_end {
                self.bucket += 1;
                self.bucket_end = table.bucket_start(self.bucket + 1)?;
            }
            let (rest, number) = table.split(bytes);
            self.run.push(BandRow { key: self.bucket << table.rest_bits() | rest, number });
        }
        Ok(())
    }
}

impl BandTable {
    /// Maps the table at `path`.
    pub(crate) fn open(path: &Path) -> Result<BandTable> {
        let (file, meta) = SegmentFile::open(path)?;
        BandTable::new(file, meta)
    }

    fn new(file: Arc<SegmentFile>, meta: BandMeta) -> Result<BandTable> {
        let (directory, rows) = (file.section("directory"), file.section("rows"));
        let widths = meta.rest_bytes <= 8 && (1..=4).contains(&meta.number_bytes) && meta.directory_bits < KEY_BITS;
        let makes_sense = meta.kind == KIND
            && widths
            && meta.rest_bytes == bytes_of(KEY_BITS - meta.directory_bits)
            && meta.rows.checked_mul((meta.rest_bytes + meta.number_bytes) as u64) == Some(rows.len() as u64)
            && meta.gone.checked_mul(4) == Some(file.section("gone").len() as u64)
            && 1u64.checked_shl(meta.directory_bits).map(|buckets| (buckets + 1) * 5) == Some(directory.len() as u64);
        if !makes_sense {
            return Err(file.corrupt("is damaged: its parts do not fit what its footer says"));
        }
        Ok(BandTable { meta, file, directory, rows })
    }

    pub(crate) fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// The name of its file.
    pub(crate) fn file_name(&self) -> String {
        self.file.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn rest_bits(&self) -> u32 {
        KEY_BITS - self.meta.directory_bits
    }

    fn row_width(&self) -> usize {
        self.meta.rest_bytes + self.meta.number_bytes
    }

    fn bucket_start(&self, bucket: u64) -> Result<u64> {
        self.directory.number(usize::try_from(bucket).unwrap_or(usize::MAX), 5).map(|start| start & ((1 << 40) - 1))
    }

    fn row_bytes(&self, from: u64, to: u64) -> Result<&[u8]> {
        let at = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).saturating_mul(self.row_width());
        let bytes = self.rows.bytes(at(from)..at(to))?;
        if from > to || bytes.len() != at(to) - at(from) {
            return Err(self.file.corrupt("is damaged: its directory leads outside of its rows"));
        }
        Ok(bytes)
    }

    /// The rest of the key and the number of the row that `bytes` begin with; quickest with a word more than it needs.
    fn split(&self, bytes: &[u8]) -> (u64, u32) {
        let masked = |at: usize, width: usize| word_at(bytes, at) & u64::MAX >> (64 - 8 * width);
        let (rest, number) = (self.meta.rest_bytes, self.meta.number_bytes);
        (masked(0, rest), u32::try_from(masked(rest, number)).unwrap_or(u32::MAX))
    }

    /// Pages whose rows in older tables lead nowhere, ascending.
    pub(crate) fn gone(&self) -> Result<Vec<u32>> {
        let section = self.file.section("gone");
        let mut gone = Vec::new();
        u32::decode(section.bytes(0..section.len())?, &mut gone);
        Ok(gone)
    }

    /// The largest number that its rows can have.
    pub(crate) fn largest_number(&self) -> u32 {
        u32::MAX >> (32 - 8 * u32::try_from(self.meta.number_bytes).unwrap_or(4))
    }

    /// Where the rows of the bucket of a key are.
    fn bucket_of(&self, key: u64) -> Result<Range<u64>> {
        let bucket = key >> self.rest_bits();
        let at = usize::try_from(bucket).unwrap_or(usize::MAX).saturating_mul(5);
        let entry = self.directory.bytes(at..at.saturating_add(5 + WORD))?;
        if entry.len() < 10 {
            return Err(self.file.corrupt("is damaged: its directory is too short"));
        }
        let start = |at: usize| word_at(entry, at) & ((1 << 40) - 1);
        Ok(start(0)..start(5))
    }

    /// Appends the numbers of the rows with each of some keys, at most `most` of a key, from old to new.
    ///
    /// A large table is in no cache. So that the processor waits for many places at once, first all entries of the directory
    /// are read, then an end of every bucket that they lead to, and only then rows are compared.
    pub(crate) fn find(&self, keys: &[u64], most: usize, numbers: &mut Vec<u32>) -> Result<()> {
        let mut buckets = Vec::with_capacity(keys.len());
        for &key in keys {
            buckets.push(self.bucket_of(key)?);
        }
        let mut touched = 0;
        for bucket in &buckets {
            let rows = self.row_bytes(bucket.start, bucket.end)?;
            touched ^= rows.first().unwrap_or(&0) ^ rows.last().unwrap_or(&0);
        }
        std::hint::black_box(touched);
        let width = self.row_width();
        for (key, bucket) in keys.iter().zip(buckets) {
            let rest = key & ((1 << self.rest_bits()) - 1);
            let end = numbers.len() + most;
            let length = self.row_bytes(bucket.start, bucket.end)?.len();
            let from = usize::try_from(bucket.start).unwrap_or(usize::MAX).saturating_mul(width);
            // With what follows, so that every row is read in whole words.
            let rows = self.rows.bytes(from..from.saturating_add(length + WORD))?;
            for at in (0..length).step_by(width) {
                let (other, number) = self.split(&rows[at..]);
                if other >= rest {
                    if other > rest || numbers.len() == end {
                        break;
                    }
                    numbers.push(number);
                }
            }
        }
        Ok(())
    }

    /// All that is wrong with it.
    pub(crate) fn verify(&self) -> Vec<Error> {
        let mut wrong = self.file.check_all();
        if !wrong.is_empty() {
            return wrong;
        }
        let (mut rows, mut last) = (TableRows::new(self), None);
        loop {
            match rows.peek() {
                Ok(None) => return wrong,
                Ok(Some(row)) => {
                    if last.is_some_and(|last| last >= row) {
                        wrong.push(self.file.corrupt(format!("is damaged: row {} is not in its order", rows.next)));
                        return wrong;
                    }
                    last = Some(row);
                    rows.next += 1;
                }
                Err(error) => {
                    wrong.push(error);
                    return wrong;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::random::next_random;

    fn table(rows: &[BandRow]) -> BandTable {
        let largest = rows.iter().map(|row| row.number).max().unwrap_or(0);
        let rows = rows.iter().map(|row| Ok(*row));
        let most = rows.len() as u64;
        let bytes = write_table(rows, (most, largest), &[2, 9], 7, Vec::new(), Path::new("")).unwrap();
        let (file, meta) = SegmentFile::in_memory(bytes).unwrap();
        BandTable::new(file, meta).unwrap()
    }

    fn rows(count: u32, seed: u64, keys: u64) -> Vec<BandRow> {
        let mut state = seed;
        let mut rows: Vec<BandRow> = (0..count)
            .map(|number| {
                let random = next_random(&mut state) >> 16;
                BandRow { key: if keys > 0 { (random % keys) << 20 } else { random }, number }
            })
            .collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn what_was_written_is_found_and_nothing_else() {
        for (count, keys) in [(0, 0), (1, 0), (9, 0), (1000, 0), (30_000, 0), (5000, 40)] {
            let rows = rows(count, 3, keys);
            let table = table(&rows);
            assert!(table.verify().is_empty() && table.gone().unwrap() == [2, 9]);
            assert_eq!(table.meta.rows, u64::from(count));
            for of_key in rows.chunk_by(|a, b| a.key == b.key) {
                let mut found = Vec::new();
                table.find(&[of_key[0].key], 100_000, &mut found).unwrap();
                assert_eq!(found, of_key.iter().map(|row| row.number).collect::<Vec<_>>());
                found.clear();
                table.find(&[of_key[0].key], 1, &mut found).unwrap();
                assert_eq!(found, [of_key[0].number]);
            }
            let mut found = Vec::new();
            table.find(&[12345], 10, &mut found).unwrap();
            table.find(&[(1 << KEY_BITS) - 1], 10, &mut found).unwrap();
            assert!(found.is_empty());
        }
    }

    #[test]
    fn tables_are_merged_without_what_is_gone() {
        let mut all = rows(9000, 5, 0);
        let mut parts = [Vec::new(), Vec::new(), Vec::new()];
        all.iter().for_each(|row| parts[row.number as usize % 3].push(*row));
        let tables = parts.map(|rows| Arc::new(table(&rows)));
        let is_live = |number: u32| !number.is_multiple_of(5);
        let merged: Vec<BandRow> = merge_tables(&tables, &is_live).map(Result::unwrap).collect();
        all.retain(|row| is_live(row.number));
        assert_eq!(merged, all);
    }

    #[test]
    fn the_oldest_of_a_crowd_stay() {
        let crowd: Vec<BandRow> = (0..1000).map(|number| BandRow { key: 99, number }).collect();
        let table = table(&crowd);
        let mut found = Vec::new();
        table.find(&[99], 5000, &mut found).unwrap();
        assert_eq!(found, (0..256).collect::<Vec<_>>());
    }

    #[test]
    fn the_bytes_are_the_same_on_every_machine_and_damage_is_found() {
        let rows = rows(2000, 1, 0);
        let bytes =
            write_table(rows.iter().map(|row| Ok(*row)), (2000, 1999), &[5], 7, Vec::new(), Path::new("")).unwrap();
        assert_eq!(xxh3_64(&bytes), 0x6dab_84c6_2064_7453, "a change needs a new version");
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            let found = SegmentFile::in_memory(damaged).and_then(|(file, meta)| BandTable::new(file, meta));
            // What is between sections belongs to no table, but has a checksum, too.
            assert!(found.map_or(true, |table| !table.verify().is_empty()), "{at}");
        }
        for length in (0..bytes.len()).step_by(53) {
            let cut = SegmentFile::in_memory(bytes[..length].to_vec());
            assert!(cut.and_then(|(file, meta)| BandTable::new(file, meta)).is_err(), "{length}");
        }
    }
}
