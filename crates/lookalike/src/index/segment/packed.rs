//! A sorted table of keys behind a directory of their first bits: whole (`raw`), or as Elias–Fano.
//!
//! In: keys, ascending. Out: the rows near a query that share its first bits. The directory says where
//! the keys with the same first bits, a bucket, begin; there is no search. Of what follows, Elias–Fano
//! keeps the high part as a run of bits (a one for each key, a zero at the end of each value) and the
//! low part packed; a query looks at the low parts alone and asks for the high part of the few that
//! are near.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::index::segment::file::{Section, SegmentFile, SegmentWriter};
use crate::index::segment::huffman::Run;
use crate::kernel::{NearKey, Packed, WIDEST_PACKED, near_packed, word_at};

/// How a key is cut into what the directory, the high part and the low part hold of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedShape {
    /// Bits of the directory.
    pub directory_bits: u32,
    /// Bits of the high part.
    pub high_bits: u32,
    /// Bits of the low part; with 64 the whole key.
    pub low_bits: u32,
}

/// Average number of keys per entry of the directory, at least.
const LEAST_BUCKET: u64 = 64;
/// Rows that are scanned one after the other; larger runs are divided by their bits.
const LONGEST_SCAN: u32 = 4096;
/// Runs below this are not divided further.
const LEAF: u32 = 512;

impl PackedShape {
    /// Whole keys.
    #[must_use]
    pub fn raw(rows: u64, prefix: u32) -> PackedShape {
        PackedShape { directory_bits: directory_bits(rows, prefix), high_bits: 0, low_bits: 64 }
    }

    /// The shape of the fewest bytes.
    #[must_use]
    pub fn elias_fano(rows: u64, prefix: u32) -> PackedShape {
        let directory_bits = directory_bits(rows, prefix);
        let log = rows.max(1).ilog2();
        let shape = |upper: u32| {
            let upper = upper.max(directory_bits);
            PackedShape { directory_bits, high_bits: upper - directory_bits, low_bits: 64 - upper }
        };
        let best = [log, log + 1].map(shape).into_iter().min_by_key(|shape| shape.bytes(rows));
        // Low parts of 58 to 63 bits would not lie in eight bytes; such tables are tiny.
        best.filter(|shape| shape.low_bits <= WIDEST_PACKED).unwrap_or(PackedShape::raw(rows, prefix))
    }

    /// Bytes of a table.
    #[must_use]
    pub fn bytes(self, rows: u64) -> u64 {
        self.part_bytes(rows).iter().sum()
    }

    /// Bytes of the directory, the high and the low parts.
    fn part_bytes(self, rows: u64) -> [u64; 3] {
        let directory = ((1u64 << self.directory_bits) + 1) * 4;
        let high =
            if self.high_bits == 0 { 0 } else { (rows + (1u64 << (self.directory_bits + self.high_bits))).div_ceil(8) };
        [directory, high, Packed::bytes_for(rows, self.low_bits)]
    }

    fn is_raw(self) -> bool {
        self.low_bits == 64
    }

    fn makes_sense(self) -> bool {
        let upper = self.directory_bits.saturating_add(self.high_bits);
        let low_fits = self.low_bits <= WIDEST_PACKED && upper.saturating_add(self.low_bits) == 64;
        self.directory_bits <= 32 && upper <= 40 && (low_fits || self.is_raw() && self.high_bits == 0)
    }

    fn bucket_of(self, key: u64) -> u64 {
        key.unbounded_shr(64 - self.directory_bits)
    }

    fn high_of(self, key: u64) -> u64 {
        key.unbounded_shl(self.directory_bits).unbounded_shr(64 - self.high_bits)
    }

    fn low_mask(self) -> u64 {
        1u64.unbounded_shl(self.low_bits).wrapping_sub(1)
    }

    fn key(self, bucket: u64, high: u64, low: u64) -> u64 {
        if self.is_raw() {
            return low;
        }
        let high = high.unbounded_shl(self.low_bits);
        bucket.unbounded_shl(64 - self.directory_bits) | high | low
    }
}

fn directory_bits(rows: u64, prefix: u32) -> u32 {
    prefix.min((rows / LEAST_BUCKET).max(1).ilog2()).min(28)
}

/// Writes a table.
pub(crate) struct PackedWriter {
    shape: PackedShape,
    table: usize,
    rows: u32,
    directory: Vec<u8>,
    next_bucket: u64,
    high: BitWriter,
    next_high: u64,
    low: BitWriter,
}

/// Bits of the low part that are collected before they are written.
const LOW_BYTES: usize = 64 << 10;

impl PackedWriter {
    pub(crate) fn new<W: Write>(shape: PackedShape, table: usize, out: &mut SegmentWriter<W>) -> Result<PackedWriter> {
        out.begin(format!("low.{table}"))?;
        Ok(PackedWriter {
            shape,
            table,
            rows: 0,
            directory: Vec::new(),
            next_bucket: 0,
            high: BitWriter::default(),
            next_high: 0,
            low: BitWriter::default(),
        })
    }

    /// The next keys, each larger than the one before.
    pub(crate) fn push<W: Write>(&mut self, keys: &[u64], out: &mut SegmentWriter<W>) -> Result<()> {
        let shape = self.shape;
        for some in keys.chunks(1024) {
            for &key in some {
                let bucket = shape.bucket_of(key);
                if bucket >= self.next_bucket {
                    self.go_to(bucket);
                }
                if shape.high_bits > 0 {
                    let high = shape.high_of(key);
                    self.high.zeros_and_one(high - self.next_high);
                    self.next_high = high;
                }
                self.low.put(key & shape.low_mask(), shape.low_bits);
                self.rows += 1;
            }
            if self.low.bytes.len() >= LOW_BYTES {
                out.write(&self.low.bytes)?;
                self.low.bytes.clear();
            }
        }
        Ok(())
    }

    /// Ends all buckets before `bucket`.
    fn go_to(&mut self, bucket: u64) {
        while self.next_bucket <= bucket {
            if self.next_bucket > 0 && self.shape.high_bits > 0 {
                self.high.zeros((1 << self.shape.high_bits) - self.next_high);
                self.next_high = 0;
            }
            self.directory.extend_from_slice(&self.rows.to_le_bytes());
            self.next_bucket += 1;
        }
    }

    pub(crate) fn finish<W: Write>(mut self, out: &mut SegmentWriter<W>) -> Result<()> {
        self.go_to(1u64 << self.shape.directory_bits);
        out.write(self.low.finish())?;
        out.section(format!("directory.{}", self.table), &self.directory)?;
        out.section(format!("high.{}", self.table), self.high.finish())
    }
}

/// Bits, the lowest of each byte first.
#[derive(Default)]
pub(crate) struct BitWriter {
    pub(crate) bytes: Vec<u8>,
    open: u64,
    used: u32,
}

impl BitWriter {
    /// The lowest `count` bits of `bits`; the others are 0.
    #[inline]
    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        self.open |= bits.unbounded_shl(self.used);
        let used = self.used + count;
        if used < 64 {
            self.used = used;
            return;
        }
        self.bytes.extend_from_slice(&self.open.to_le_bytes());
        self.open = bits.unbounded_shr(64 - self.used);
        self.used = used - 64;
    }

    /// Zeros, and a one behind them.
    #[inline]
    fn zeros_and_one(&mut self, zeros: u64) {
        if zeros < 64 {
            self.put(1 << zeros, u32::try_from(zeros).expect("less than 64") + 1);
        } else {
            self.zeros(zeros);
            self.put(1, 1);
        }
    }

    pub(crate) fn zeros(&mut self, mut count: u64) {
        while count > 0 {
            let now = count.min(64);
            self.put(0, u32::try_from(now).expect("at most 64"));
            count -= now;
        }
    }

    /// All bytes that were not taken yet.
    pub(crate) fn finish(&mut self) -> &[u8] {
        let rest = self.open.to_le_bytes();
        self.bytes.extend_from_slice(&rest[..self.used.div_ceil(8) as usize]);
        (self.open, self.used) = (0, 0);
        &self.bytes
    }
}

/// A table for queries.
pub(crate) struct PackedTable {
    shape: PackedShape,
    rows: u32,
    directory: Section,
    high: Section,
    low: Section,
}

/// Buffers of a thread that probes tables.
#[derive(Default)]
pub(crate) struct ProbeScratch {
    rows: Vec<u32>,
    slots: Vec<(u64, Range<u32>)>,
    /// Of tables in Huffman code: blocks to look through, and what was found.
    pub(crate) runs: Vec<Run>,
    pub(crate) near: Vec<NearKey>,
}

/// The rows of a bucket and where its high parts begin.
#[derive(Clone)]
struct PackedBucket {
    number: u64,
    rows: Range<u32>,
}

impl PackedTable {
    pub(crate) fn open(file: &Arc<SegmentFile>, table: usize, shape: PackedShape, rows: u32) -> Result<PackedTable> {
        let section = |name: &str| file.section(&format!("{name}.{table}"));
        let opened =
            PackedTable { shape, rows, directory: section("directory"), high: section("high"), low: section("low") };
        let lengths = [&opened.directory, &opened.high, &opened.low].map(|part| part.len() as u64);
        if !shape.makes_sense() || lengths != shape.part_bytes(u64::from(rows)) {
            return Err(file.corrupt(format!("is damaged: table {table} is not as long as its shape says")));
        }
        Ok(opened)
    }

    fn bucket(&self, number: u64) -> Result<PackedBucket> {
        let at = to_usize(number * 4);
        // The directory has one more entry than there are buckets: checked when it was opened.
        let (entries, _) = self.directory.bytes(at..at + 8)?.as_chunks::<4>();
        let entry = |at: usize| u32::from_le_bytes(entries[at]).min(self.rows);
        let (start, end) = (entry(0), entry(1));
        Ok(PackedBucket { number, rows: start..end.max(start) })
    }

    /// Has the entry of a probe's bucket read.
    #[inline]
    pub(crate) fn foresee(&self, probe: u64) {
        let at = to_usize(self.shape.bucket_of(probe) * 4);
        self.directory.will_need(at..at + 8);
    }

    /// Has the low parts of a probe's bucket read.
    #[inline]
    pub(crate) fn foresee_rows(&self, probe: u64) -> Result<()> {
        let bucket = self.bucket(self.shape.bucket_of(probe))?;
        if bucket.rows.end - bucket.rows.start <= LONGEST_SCAN {
            self.low.will_need(self.low_bytes(&bucket.rows));
        }
        Ok(())
    }

    /// Where the low parts of `rows` are, with all that is read for them.
    fn low_bytes(&self, rows: &Range<u32>) -> Range<usize> {
        let width = u64::from(self.shape.low_bits);
        let byte = |row: u64| to_usize(row * width / 8);
        // Groups of eight are read whole, and the last one together with some bytes behind it.
        let from = byte(u64::from(rows.start) / 8 * 8);
        let to = byte(u64::from(rows.end).next_multiple_of(8)) + 64;
        from..to
    }

    /// The low parts, as far as `rows` need them.
    fn lows(&self, rows: &Range<u32>) -> Result<Packed<'_>> {
        Ok(Packed::new(self.low.whole_checked_at(self.low_bytes(rows))?, self.shape.low_bits))
    }

    /// Visits the row and the key of everything in the bucket of `probe` whose key differs from
    /// `query` in at most `radius` bits.
    pub(crate) fn near(
        &self,
        probe: u64,
        query: u64,
        radius: u32,
        scratch: &mut ProbeScratch,
        visit: &mut impl FnMut(u32, u64),
    ) -> Result<()> {
        let bucket = self.bucket(self.shape.bucket_of(probe))?;
        if bucket.rows.is_empty() {
            return Ok(());
        }
        let lows = self.lows(&bucket.rows)?;
        let low = query & self.shape.low_mask();
        scratch.rows.clear();
        if bucket.rows.end - bucket.rows.start <= LONGEST_SCAN {
            near_packed(lows, bucket.rows.clone(), low, radius, &mut scratch.rows);
            return self.resolve(&bucket, lows, query, radius, &scratch.rows, visit);
        }
        // A crowd: first by the high part, then by the bits of the low part, which is sorted.
        scratch.slots.clear();
        let high = self.shape.high_of(query);
        if self.shape.high_bits == 0 {
            scratch.slots.push((0, bucket.rows.clone()));
        } else {
            let slots = &mut scratch.slots;
            self.walk(&bucket, |value, rows| {
                if (value ^ high).count_ones() <= radius {
                    slots.push((value, rows));
                }
            })?;
        }
        for (value, rows) in std::mem::take(&mut scratch.slots) {
            scratch.rows.clear();
            let budget = if self.shape.high_bits == 0 { radius } else { radius - (value ^ high).count_ones() };
            divide(lows, rows, self.shape.low_bits, (low, budget), budget, &mut scratch.rows);
            for &row in &scratch.rows {
                let key = self.shape.key(bucket.number, value, lows.get(row as usize));
                if (key ^ query).count_ones() <= radius {
                    visit(row, key);
                }
            }
        }
        Ok(())
    }

    /// The keys of `rows`, ascending rows of one bucket, that are near.
    fn resolve(
        &self,
        bucket: &PackedBucket,
        lows: Packed<'_>,
        query: u64,
        radius: u32,
        rows: &[u32],
        visit: &mut impl FnMut(u32, u64),
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut high = HighCursor::new(self, bucket)?;
        for &row in rows {
            let value = if self.shape.high_bits == 0 { 0 } else { high.value_of(row - bucket.rows.start) };
            let key = self.shape.key(bucket.number, value, lows.get(row as usize));
            if (key ^ query).count_ones() <= radius {
                visit(row, key);
            }
        }
        Ok(())
    }

    /// The bits of a bucket's high parts.
    fn high_bits(&self, bucket: &PackedBucket) -> Result<(&[u8], usize)> {
        let values = 1u64 << self.shape.high_bits;
        let from = u64::from(bucket.rows.start) + bucket.number * values;
        let to = u64::from(bucket.rows.end) + (bucket.number + 1) * values;
        let bytes = self.high.bytes(to_usize(from / 8)..to_usize(to.div_ceil(8)))?;
        Ok((bytes, to_usize(from % 8)))
    }

    /// Visits every value of the high part that has rows.
    fn walk(&self, bucket: &PackedBucket, mut visit: impl FnMut(u64, Range<u32>)) -> Result<()> {
        if self.shape.high_bits == 0 {
            visit(0, bucket.rows.clone());
            return Ok(());
        }
        let (bytes, offset) = self.high_bits(bucket)?;
        let (mut value, mut row, mut first) = (0, bucket.rows.start, bucket.rows.start);
        let mut bit = offset;
        let values = 1u64 << self.shape.high_bits;
        while value < values && bit < bytes.len() * 8 {
            let (word, count) = bits_at(bytes, bit);
            // Ones up to the next zero, all at once.
            let ones = word.trailing_ones().min(count);
            row = (row + ones).min(bucket.rows.end);
            bit += ones as usize;
            if ones < count {
                if row > first {
                    visit(value, first..row);
                }
                (value, first) = (value + 1, row);
                bit += 1;
            }
        }
        Ok(())
    }

    /// The row of a key.
    pub(crate) fn find(&self, key: u64) -> Result<Option<u32>> {
        let bucket = self.bucket(self.shape.bucket_of(key))?;
        let lows = self.lows(&bucket.rows)?;
        let rows = if self.shape.high_bits == 0 {
            bucket.rows
        } else {
            HighCursor::new(self, &bucket)?.rows_of(self.shape.high_of(key), &bucket)
        };
        let low = key & self.shape.low_mask();
        let row = partition(rows.clone(), |row| lows.get(row as usize) < low);
        Ok((row < rows.end && lows.get(row as usize) == low).then_some(row))
    }

    /// Appends the keys of `rows`, ascending.
    pub(crate) fn decode(&self, rows: Range<u32>, keys: &mut Vec<u64>) -> Result<()> {
        let buckets = 1u64 << self.shape.directory_bits;
        let rows = rows.start..rows.end.min(self.rows);
        // The bucket of the first row: the last one that does not begin behind it.
        let (mut from, mut to) = (0, buckets);
        while from + 1 < to {
            let middle = from.midpoint(to);
            if self.bucket(middle)?.rows.start <= rows.start { from = middle } else { to = middle }
        }
        let mut next = rows.start;
        for number in from..buckets {
            if next >= rows.end {
                break;
            }
            let bucket = self.bucket(number)?;
            let lows = self.lows(&bucket.rows)?;
            self.walk(&bucket, |value, slot| {
                for row in slot.start.max(next)..slot.end.min(rows.end) {
                    keys.push(self.shape.key(number, value, lows.get(row as usize)));
                }
            })?;
            next = next.max(bucket.rows.end);
        }
        Ok(())
    }
}

/// A place in a table, which is in memory.
#[inline]
fn to_usize(place: u64) -> usize {
    usize::try_from(place).expect("within the address space")
}

/// At most 64 bits from `bit` on, and how many.
#[inline]
fn bits_at(bytes: &[u8], bit: usize) -> (u64, u32) {
    let left = (bytes.len() - bit / 8).min(8) * 8 - bit % 8;
    (word_at(bytes, bit / 8) >> (bit % 8), u32::try_from(left).expect("at most 64"))
}

/// Reads the high parts of a bucket from front to back.
struct HighCursor<'a> {
    bytes: &'a [u8],
    bit: usize,
    /// Ones and zeros before `bit`.
    ones: u32,
    zeros: u64,
}

impl<'a> HighCursor<'a> {
    fn new(table: &'a PackedTable, bucket: &PackedBucket) -> Result<HighCursor<'a>> {
        let (bytes, bit) = if table.shape.high_bits == 0 { (&[][..], 0) } else { table.high_bits(bucket)? };
        Ok(HighCursor { bytes, bit, ones: 0, zeros: 0 })
    }

    /// The high part of the row at `at` in the bucket; rows are asked for in ascending order.
    fn value_of(&mut self, at: u32) -> u64 {
        while self.bit < self.bytes.len() * 8 {
            let (word, count) = bits_at(self.bytes, self.bit);
            let ones = word.count_ones();
            if self.ones + ones > at {
                let place = select(word, at - self.ones);
                return self.zeros + u64::from(place) - u64::from(at - self.ones);
            }
            self.ones += ones;
            self.zeros += u64::from(count - ones);
            self.bit += count as usize;
        }
        self.zeros
    }

    /// The rows whose high part is `value`.
    fn rows_of(&mut self, value: u64, bucket: &PackedBucket) -> Range<u32> {
        let start = self.ones_before_zero(value);
        let end = self.ones_before_zero(value + 1);
        let row = |ones: u32| bucket.rows.start.saturating_add(ones).min(bucket.rows.end);
        row(start)..row(end)
    }

    /// Ones before the `count`-th zero.
    fn ones_before_zero(&mut self, count: u64) -> u32 {
        if count == 0 {
            return 0;
        }
        while self.bit < self.bytes.len() * 8 {
            let (word, bits) = bits_at(self.bytes, self.bit);
            let inverse = !word & 1u64.unbounded_shl(bits).wrapping_sub(1);
            let zeros = inverse.count_ones();
            if self.zeros + u64::from(zeros) >= count {
                let nth = u32::try_from(count - self.zeros - 1).expect("one of the zeros of a word");
                let place = select(inverse, nth);
                return self.ones + place - nth;
            }
            self.zeros += u64::from(zeros);
            self.ones += bits - zeros;
            self.bit += bits as usize;
        }
        self.ones
    }
}

/// The place of the `nth` one of a word, from 0.
#[inline]
fn select(mut word: u64, nth: u32) -> u32 {
    for _ in 0..nth {
        word &= word.wrapping_sub(1);
    }
    word.trailing_zeros()
}

/// The first of `rows` for which `is_before` does not hold.
fn partition(rows: Range<u32>, is_before: impl Fn(u32) -> bool) -> u32 {
    let (mut from, mut to) = (rows.start, rows.end);
    while from < to {
        let middle = from.midpoint(to);
        if is_before(middle) { from = middle + 1 } else { to = middle }
    }
    from
}

/// Rows within `most` bits of `query` among sorted rows that agree in all but the last `bits` bits: half
/// of them differ in the next bit, and that half is left out when nothing is left of the budget.
fn divide(lows: Packed<'_>, rows: Range<u32>, bits: u32, (query, most): (u64, u32), budget: u32, found: &mut Vec<u32>) {
    if rows.end - rows.start <= LEAF || bits == 0 {
        near_packed(lows, rows, query, most, found);
        return;
    }
    let bit = 1u64 << (bits - 1);
    let middle = partition(rows.clone(), |row| lows.get(row as usize) & bit == 0);
    for (half, value) in [(rows.start..middle, 0), (middle..rows.end, bit)] {
        let left = if query & bit == value { Some(budget) } else { budget.checked_sub(1) };
        if let Some(left) = left.filter(|_| !half.is_empty()) {
            divide(lows, half, bits - 1, (query, most), left, found);
        }
    }
}
