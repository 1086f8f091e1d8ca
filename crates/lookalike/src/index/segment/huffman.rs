//! A sorted table of keys as in Manku et al. (2007), §3.2.
//!
//! In: keys, ascending. Out: the rows near a query. Blocks of equal length, 1024 bytes in the paper: the first key of a block whole, then
//! for each the place of the highest bit in which it differs from the one before, in a Huffman code of its own
//! for each table, and the bits behind that place. The last key of every block stands apart, for an
//! interpolation search.

use std::collections::BinaryHeap;
use std::io::Write;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use crate::error::Result;
use crate::index::segment::SortedKeys;
use crate::index::segment::file::{Section, SegmentFile, SegmentWriter};
use crate::index::segment::packed::BitWriter;
use crate::kernel::{KeyCode, LONGEST_CODE, Lane, NearKey, RUN_LANES as LANES, SYMBOLS, near_keys, word_at};

/// Bytes of a block, as in the paper.
pub(crate) const DEFAULT_BLOCK: u32 = 1024;
/// The shortest and the longest block.
const BLOCKS: RangeInclusive<u32> = 256..=65_536;
/// Keys that are decoded before it is asked whether what is wanted has ended.
const STRETCH: u32 = 32;
/// Runs of more blocks than this are divided by their bits.
const MOST_BLOCKS: u32 = 16;

/// The lengths of the codes for what occurs `counts` times.
fn code_lengths(counts: &[u64; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut counts = *counts;
    loop {
        let lengths = unbounded_lengths(&counts);
        if lengths.iter().all(|&length| u32::from(length) <= LONGEST_CODE) {
            return lengths;
        }
        // Flatter counts have shorter longest codes.
        counts.iter_mut().filter(|count| **count > 0).for_each(|count| *count = count.isqrt().max(1));
    }
}

fn unbounded_lengths(counts: &[u64; SYMBOLS]) -> [u8; SYMBOLS] {
    use std::cmp::Reverse;
    let mut lengths = [0; SYMBOLS];
    // The rarest two become one, again and again; every code in them gets one bit longer.
    let mut heap: BinaryHeap<Reverse<(u64, Vec<usize>)>> =
        (0..SYMBOLS).filter(|&at| counts[at] > 0).map(|at| Reverse((counts[at], vec![at]))).collect();
    if let (1, Some(Reverse((_, only)))) = (heap.len(), heap.peek()) {
        lengths[only[0]] = 1;
    }
    while let (Some(Reverse((rare, mut one))), Some(Reverse((common, other)))) = (heap.pop(), heap.pop()) {
        one.extend(other);
        one.iter().for_each(|&at| lengths[at] += 1);
        heap.push(Reverse((rare.saturating_add(common), one)));
        if heap.len() == 1 {
            break;
        }
    }
    lengths
}

/// The code of every symbol, first bit lowest, and its length.
fn codes(lengths: &[u8; SYMBOLS]) -> [(u64, u32); SYMBOLS] {
    let mut codes = [(0, 0); SYMBOLS];
    let mut next = 0u64;
    for length in 1..=LONGEST_CODE {
        for (symbol, _) in lengths.iter().enumerate().filter(|(_, known)| u32::from(**known) == length) {
            codes[symbol] = (next.reverse_bits().unbounded_shr(64 - length), length);
            next += 1;
        }
        next <<= 1;
    }
    codes
}

/// Fails if blocks cannot have this many bytes, with what they can have.
pub(crate) fn check_block(bytes: u32) -> std::result::Result<(), String> {
    if bytes.is_power_of_two() && BLOCKS.contains(&bytes) {
        return Ok(());
    }
    Err(format!("must be a power of two from {} to {}", BLOCKS.start(), BLOCKS.end()))
}

/// Writes a table in blocks of `block_bytes`.
pub(crate) fn write<W: Write>(
    table: usize,
    keys: &impl SortedKeys,
    block_bytes: u32,
    out: &mut SegmentWriter<W>,
) -> Result<()> {
    let block_bytes = block_bytes as usize;
    let mut counts = [0u64; SYMBOLS];
    let mut before = None;
    keys.visit(&mut |keys| {
        for &key in keys {
            if let Some(before) = before.replace(key) {
                counts[place(before, key) as usize] += 1;
            }
        }
        Ok(())
    })?;
    let lengths = code_lengths(&counts);
    let codes = codes(&lengths);
    let (mut last_keys, mut firsts) = (Vec::new(), Vec::new());
    let (mut row, mut before, mut bits) = (0u32, 0u64, 0usize);
    let mut block = BitWriter::default();
    out.begin(format!("block.{table}"))?;
    let mut end = |block: &mut BitWriter, last: u64| {
        last_keys.extend_from_slice(&last.to_le_bytes());
        block.finish();
        block.bytes.resize(block_bytes, 0);
        out.write(&block.bytes)?;
        block.bytes.clear();
        Ok::<(), crate::error::Error>(())
    };
    let mut put = |key: u64| {
        let h = if row == 0 { 0 } else { place(before, key) };
        let (code, length) = codes[h as usize];
        let needed = (length + h) as usize;
        if row == 0 || bits + needed > block_bytes * 8 {
            if row > 0 {
                end(&mut block, before)?;
            }
            firsts.extend_from_slice(&row.to_le_bytes());
            block.put(key, 64);
            bits = 64;
        } else {
            block.put(code, length);
            block.put(key & ((1 << h) - 1), h);
            bits += needed;
        }
        before = key;
        row += 1;
        Ok(())
    };
    keys.visit(&mut |keys| keys.iter().try_for_each(|&key| put(key)))?;
    if row > 0 {
        end(&mut block, before)?;
    }
    firsts.extend_from_slice(&row.to_le_bytes());
    out.section(format!("code.{table}"), &lengths)?;
    out.section(format!("key.{table}"), &last_keys)?;
    out.section(format!("first.{table}"), &firsts)
}

/// The place of the highest bit in which two different keys differ.
fn place(before: u64, key: u64) -> u32 {
    (before ^ key).ilog2()
}

/// A table for queries.
pub(crate) struct HuffmanTable {
    code: Box<KeyCode>,
    blocks: u32,
    block_bytes: usize,
    key: Section,
    first: Section,
    block: Section,
}

/// A block of a table that may have keys near a query.
pub(crate) struct Run {
    /// The number of the table.
    pub(crate) table: usize,
    /// The query in the order of the table.
    pub(crate) query: u64,
    block: u32,
    /// Keys that are wanted.
    from: u64,
    to: u64,
}

/// Where a lane is in its run.
#[derive(Clone, Copy, Default)]
struct Progress {
    run: usize,
    /// The row of the last key that was decoded.
    row: u32,
    /// Keys that come after it.
    left: u32,
}

impl HuffmanTable {
    pub(crate) fn open(file: &Arc<SegmentFile>, table: usize, rows: u32, block_bytes: u32) -> Result<HuffmanTable> {
        check_block(block_bytes)
            .map_err(|reason| file.corrupt(format!("has Huffman blocks of {block_bytes} bytes, which {reason}")))?;
        let block_bytes = block_bytes as usize;
        let section = |name: &str| file.section(&format!("{name}.{table}"));
        let (code, key, first, block) = (section("code"), section("key"), section("first"), section("block"));
        let blocks = key.len() / 8;
        code.will_need(0..SYMBOLS);
        first.will_need(blocks * 4..blocks * 4 + 4);
        let fits = code.len() == SYMBOLS
            && key.len() == blocks * 8
            && first.len() == (blocks + 1) * 4
            && block.len() == blocks * block_bytes
            && first.number(blocks, 4)? == u64::from(rows);
        let Some(block_count) = u32::try_from(blocks).ok().filter(|_| fits) else {
            return Err(file.corrupt(format!("is damaged: the parts of table {table} do not fit together")));
        };
        let mut lengths = [0; SYMBOLS];
        lengths.copy_from_slice(code.bytes(0..SYMBOLS)?);
        if lengths.iter().any(|&length| u32::from(length) > LONGEST_CODE) {
            return Err(file.corrupt(format!("is damaged: the code of table {table} is too long")));
        }
        Ok(HuffmanTable { code: KeyCode::new(&codes(&lengths)), blocks: block_count, block_bytes, key, first, block })
    }

    fn key_of(&self, block: u32) -> Result<u64> {
        self.key.number(block as usize, 8)
    }

    fn first_of(&self, block: u32) -> Result<u32> {
        Ok(u32::try_from(self.first.number(block as usize, 4)?).expect("four bytes"))
    }

    /// Has what a search for a probe begins with read.
    #[inline]
    pub(crate) fn foresee(&self, probe: u64, prefix: u32) {
        let from = probe & !u64::MAX.unbounded_shr(prefix);
        let guess = ((from >> 32) * u64::from(self.blocks)) >> 32;
        let at = usize::try_from(guess).unwrap_or(0) * 8;
        self.key.will_need(at..at + 8);
        self.first.will_need(at / 2..at / 2 + 8);
    }

    /// The first block whose last key is not below `key`: by interpolation, as keys are close to
    /// uniform, and by bisection where they are not.
    fn block_of(&self, key: u64) -> Result<u32> {
        self.block_among(0..self.blocks, key)
    }

    /// The same among some blocks; their end if there is none.
    fn block_among(&self, among: Range<u32>, key: u64) -> Result<u32> {
        let Range { start: mut from, end: mut to } = among;
        let (mut low, mut high) = (if from == 0 { 0 } else { self.key_of(from - 1)? }, u64::MAX);
        let mut steps = 0;
        while from < to {
            let share = if steps < 6 && high > low {
                // The upper half of the words is enough, and is divided in one instruction.
                let shift = 32u32.saturating_sub((high - low).leading_zeros());
                let part = key.saturating_sub(low) >> shift;
                part.min(u64::from(u32::MAX)) * u64::from(to - from) / (((high - low) >> shift) + 1)
            } else {
                u64::from(to - from) / 2
            };
            let at = from.saturating_add(u32::try_from(share).unwrap_or(u32::MAX)).min(to - 1);
            let found = self.key_of(at)?;
            if found < key {
                (from, low) = (at + 1, found);
            } else {
                (to, high) = (at, found);
            }
            steps += 1;
        }
        Ok(from)
    }

    /// Appends the blocks that can hold keys whose first `prefix` bits are those of `probe` and that differ from `query` in at
    /// most `radius` bits.
    pub(crate) fn runs(
        &self,
        table: usize,
        probe: u64,
        prefix: u32,
        query: u64,
        radius: u32,
        runs: &mut Vec<Run>,
    ) -> Result<()> {
        let rest = u64::MAX.unbounded_shr(prefix);
        let (from, to) = (probe & !rest, probe | rest);
        let first = self.block_of(from)?;
        if first >= self.blocks {
            return Ok(());
        }
        let end = first.saturating_add(MOST_BLOCKS).min(self.blocks);
        let mut last = first;
        while last < end && self.key_of(last)? < to {
            last += 1;
        }
        if last >= end && end < self.blocks {
            if prefix < 64 {
                // A crowd: half of it differs in the next bit.
                let bit = 1u64 << (63 - prefix);
                for value in [0, bit] {
                    let probe = from | value;
                    let differing = ((probe ^ query) & !(rest >> 1)).count_ones();
                    if differing <= radius {
                        self.runs(table, probe, prefix + 1, query, radius, runs)?;
                    }
                }
                return Ok(());
            }
            last = self.block_among(end..self.blocks, to)?;
        }
        let last = last.min(self.blocks - 1);
        self.block.will_need(first as usize * self.block_bytes..(last as usize + 1) * self.block_bytes);
        self.first.will_need(first as usize * 4..(last as usize + 2) * 4);
        runs.extend((first..=last).map(|block| Run { table, query, block, from, to }));
        Ok(())
    }

    /// Where a block is in the file, in bytes, its rows, and its first key.
    fn enter(&self, block: u32) -> Result<(usize, Range<u32>, u64)> {
        let from = block as usize * self.block_bytes;
        let place = self.block.place(from..from + self.block_bytes)?;
        let (first, end) = (self.first_of(block)?, self.first_of(block + 1)?);
        // In a damaged table no more than fit.
        let most = u32::try_from(self.block_bytes * 8).unwrap_or(u32::MAX);
        let rows = first..end.max(first).min(first.saturating_add(most));
        Ok((place.start, rows, word_at(self.block.file_bytes(), place.start)))
    }

    /// The row of a key.
    pub(crate) fn find(&self, key: u64) -> Result<Option<u32>> {
        let mut row = None;
        let block = self.block_of(key)?;
        if block < self.blocks {
            self.decode_block(block, &mut |at, found| {
                if found == key {
                    row = Some(at);
                }
                found < key
            })?;
        }
        Ok(row)
    }

    /// Appends the keys of `rows`, ascending.
    pub(crate) fn decode(&self, rows: Range<u32>, keys: &mut Vec<u64>) -> Result<()> {
        let (mut from, mut to) = (0, self.blocks);
        while from + 1 < to {
            let middle = from.midpoint(to);
            if self.first_of(middle)? <= rows.start { from = middle } else { to = middle }
        }
        for block in from..self.blocks {
            if self.first_of(block)? >= rows.end {
                break;
            }
            self.decode_block(block, &mut |row, key| {
                if rows.contains(&row) {
                    keys.push(key);
                }
                row < rows.end
            })?;
        }
        Ok(())
    }

    /// Visits the rows of a block while `visit` says to go on.
    fn decode_block(&self, block: u32, visit: &mut impl FnMut(u32, u64) -> bool) -> Result<()> {
        let (byte, rows, mut key) = self.enter(block)?;
        let bytes = self.block.file_bytes().get(..byte + self.block_bytes).unwrap_or_default();
        let mut bit = byte as u64 * 8 + 64;
        for row in rows {
            if !visit(row, key) || bit >= bytes.len() as u64 * 8 {
                break;
            }
            self.code.next_key(bytes, &mut bit, &mut key);
        }
        Ok(())
    }
}

/// Visits the keys in `runs` that differ from their queries in at most `radius` bits: the run, the row and the key.
pub(crate) fn near_in_runs<'a>(
    table_of: impl Fn(usize) -> Option<&'a HuffmanTable>,
    runs: &[Run],
    radius: u32,
    near: &mut Vec<NearKey>,
    visit: &mut impl FnMut(&Run, u32, u64),
) -> Result<()> {
    let mut waiting = runs.iter().enumerate();
    let Some(table) = runs.first().and_then(|run| table_of(run.table)) else { return Ok(()) };
    let bytes = table.block.file_bytes();
    let mut lanes = [Lane { code: &table.code, bit: 0, key: 0, query: 0 }; LANES];
    let (mut progress, mut open) = ([Progress::default(); LANES], 0);
    loop {
        while open < LANES
            && let Some((number, run)) = waiting.next()
        {
            let Some(table) = table_of(run.table) else { continue };
            let (byte, rows, key) = table.enter(run.block)?;
            if rows.is_empty() {
                continue;
            }
            if (run.from..=run.to).contains(&key) && (key ^ run.query).count_ones() <= radius {
                visit(run, rows.start, key);
            }
            let left = rows.end - rows.start - 1;
            if left > 0 && key < run.to {
                lanes[open] = Lane { code: &table.code, bit: byte as u64 * 8 + 64, key, query: run.query };
                progress[open] = Progress { run: number, row: rows.start, left };
                open += 1;
            }
        }
        let Some(count) = progress[..open].iter().map(|lane| lane.left.min(STRETCH)).min() else { return Ok(()) };
        near.clear();
        near_keys(bytes, &mut lanes[..open], count, radius, near);
        for &(lane, at, key) in near.iter() {
            let run = &runs[progress[lane].run];
            if (run.from..=run.to).contains(&key) {
                visit(run, progress[lane].row + 1 + at, key);
            }
        }
        let mut at = 0;
        while at < open {
            let lane = &mut progress[at];
            (lane.row, lane.left) = (lane.row + count, lane.left - count);
            if lane.left == 0 || lanes[at].key >= runs[lane.run].to {
                open -= 1;
                lanes.swap(at, open);
                progress.swap(at, open);
            } else {
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_free_of_prefixes_and_short_where_they_are_frequent() {
        let mut counts = [0; SYMBOLS];
        for (at, count) in counts.iter_mut().enumerate() {
            *count = 1 << (at % 50);
        }
        let lengths = code_lengths(&counts);
        assert!(lengths[49] <= lengths[0]);
        let codes = codes(&lengths);
        for (a, &(code, length)) in codes.iter().enumerate() {
            for &(other, longer) in codes.iter().skip(a + 1) {
                let common = length.min(longer);
                assert_ne!(code & ((1 << common) - 1), other & ((1 << common) - 1));
            }
        }
    }

    #[test]
    fn a_single_symbol_has_a_code() {
        let mut counts = [0; SYMBOLS];
        counts[7] = 100;
        assert_eq!(code_lengths(&counts)[7], 1);
    }
}
