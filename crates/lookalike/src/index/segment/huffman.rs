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
use crate::kernel::word_at;

/// Bytes of a block, as in the paper.
pub(crate) const DEFAULT_BLOCK: u32 = 1024;
/// The shortest and the longest block.
const BLOCKS: RangeInclusive<u32> = 256..=65_536;
/// Places of a differing bit.
const SYMBOLS: usize = 64;
/// The longest code.
const LONGEST: u32 = 32;
/// Bits that are looked up at once.
const PEEK: u32 = 11;
/// Runs of more blocks than this are divided by their bits.
const MOST_BLOCKS: u32 = 16;

/// The lengths of the codes for what occurs `counts` times.
fn code_lengths(counts: &[u64; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut counts = *counts;
    loop {
        let lengths = unbounded_lengths(&counts);
        if lengths.iter().all(|&length| u32::from(length) <= LONGEST) {
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
    for length in 1..=LONGEST {
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
    /// Symbol and length for the next bits; length 0 where the code is longer than that.
    short: Vec<(u8, u8)>,
    /// Longer codes: code, length, symbol.
    long: Vec<(u64, u32, u8)>,
    blocks: u32,
    block_bytes: usize,
    key: Section,
    first: Section,
    block: Section,
}

impl HuffmanTable {
    pub(crate) fn open(file: &Arc<SegmentFile>, table: usize, rows: u32, block_bytes: u32) -> Result<HuffmanTable> {
        check_block(block_bytes)
            .map_err(|reason| file.corrupt(format!("has Huffman blocks of {block_bytes} bytes, which {reason}")))?;
        let block_bytes = block_bytes as usize;
        let section = |name: &str| file.section(&format!("{name}.{table}"));
        let (code, key, first, block) = (section("code"), section("key"), section("first"), section("block"));
        let blocks = key.len() / 8;
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
        if lengths.iter().any(|&length| u32::from(length) > LONGEST) {
            return Err(file.corrupt(format!("is damaged: the code of table {table} is too long")));
        }
        let (mut short, mut long) = (vec![(0, 0); 1 << PEEK], Vec::new());
        for (symbol, (code, length)) in (0u8..).zip(codes(&lengths)) {
            if length > PEEK {
                long.push((code, length, symbol));
            } else if length > 0 {
                for rest in 0..1usize << (PEEK - length) {
                    let at = usize::try_from(code).expect("no longer than its length") | rest << length;
                    short[at] = (symbol, lengths[usize::from(symbol)]);
                }
            }
        }
        Ok(HuffmanTable { short, long, blocks: block_count, block_bytes, key, first, block })
    }

    fn key_of(&self, block: u32) -> Result<u64> {
        self.key.number(block as usize, 8)
    }

    fn first_of(&self, block: u32) -> Result<u32> {
        Ok(u32::try_from(self.first.number(block as usize, 4)?).expect("four bytes"))
    }

    /// The first block whose last key is not below `key`: by interpolation, as keys are close to
    /// uniform, and by bisection where they are not.
    fn block_of(&self, key: u64) -> Result<u32> {
        let (mut from, mut to) = (0, self.blocks);
        let (mut low, mut high) = (0, u64::MAX);
        let mut steps = 0;
        while from < to {
            let share = if steps < 6 && high > low {
                u128::from(key.saturating_sub(low)) * u128::from(to - from) / (u128::from(high - low) + 1)
            } else {
                u128::from(to - from) / 2
            };
            // `low` is below the key and `high` is not, so that the share is less than the whole.
            let at = from + u32::try_from(share).expect("a number of blocks");
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

    /// Visits the rows whose first `prefix` bits are those of `probe` and that differ from
    /// `query` in at most `radius` bits.
    pub(crate) fn near(
        &self,
        probe: u64,
        prefix: u32,
        query: u64,
        radius: u32,
        visit: &mut impl FnMut(u32, u64),
    ) -> Result<()> {
        let rest = u64::MAX.unbounded_shr(prefix);
        let (from, to) = (probe & !rest, probe | rest);
        let first = self.block_of(from)?;
        if first >= self.blocks {
            return Ok(());
        }
        let last = self.block_of(to)?.min(self.blocks - 1);
        if last.saturating_sub(first) < MOST_BLOCKS || prefix == 64 {
            for block in first..=last {
                self.decode_block(block, &mut |row, key| {
                    if (from..=to).contains(&key) && (key ^ query).count_ones() <= radius {
                        visit(row, key);
                    }
                    key <= to
                })?;
            }
            return Ok(());
        }
        // A crowd: half of it differs in the next bit.
        let bit = 1u64 << (63 - prefix);
        for value in [0, bit] {
            let probe = from | value;
            let differing = ((probe ^ query) & !(rest >> 1)).count_ones();
            if differing <= radius {
                self.near(probe, prefix + 1, query, radius, visit)?;
            }
        }
        Ok(())
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
        let from = block as usize * self.block_bytes;
        let bytes = self.block.bytes(from..from + self.block_bytes)?;
        let rows = self.first_of(block)?..self.first_of(block + 1)?;
        let mut bits = BitReader { bytes, bit: 0 };
        let mut key = bits.take(64);
        for row in rows {
            if !visit(row, key) {
                break;
            }
            if bits.bit >= self.block_bytes * 8 {
                break;
            }
            let symbol = self.symbol(&mut bits);
            key = (key >> symbol | 1) << symbol | bits.take(u32::from(symbol));
        }
        Ok(())
    }

    #[inline]
    fn symbol(&self, bits: &mut BitReader<'_>) -> u8 {
        let next = bits.peek();
        #[allow(clippy::cast_possible_truncation)] // masked
        let (symbol, length) = self.short[(next & ((1 << PEEK) - 1)) as usize];
        if length > 0 {
            bits.bit += usize::from(length);
            return symbol;
        }
        for &(code, length, symbol) in &self.long {
            if next & ((1 << length) - 1) == code {
                bits.bit += length as usize;
                return symbol;
            }
        }
        bits.bit = usize::MAX / 2; // not a code: the end of a damaged block
        0
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl BitReader<'_> {
    /// At least the next 57 bits; zeros behind the end.
    #[inline]
    fn peek(&self) -> u64 {
        word_at(self.bytes, self.bit / 8) >> (self.bit % 8)
    }

    /// The next `count` bits.
    #[inline]
    fn take(&mut self, count: u32) -> u64 {
        if count > 32 {
            let low = self.take(32);
            return low | self.take(count - 32) << 32;
        }
        let bits = self.peek() & ((1u64 << count) - 1);
        self.bit += count as usize;
        bits
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
