//! The bytes of a segment: sections, checksums, footer. `docs/index-format.md` describes them.
//!
//! In: sections, written once one after the other. Out: any part of a section, checked against the
//! checksums of its blocks when it is first touched, so that opening takes no longer for a large file
//! and nothing damaged is used.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::kernel::{MappedFile, prefetch, word_at};

/// The first and the last bytes of a segment.
const MAGIC: &[u8; 8] = b"LKALSEG\n";
/// The format that is written; readers refuse newer ones.
pub const FORMAT_VERSION: u32 = 1;
const HEAD_BYTES: usize = 16;
const TAIL_BYTES: usize = 24;
/// Bytes that share a checksum.
const BLOCK_BYTES: usize = 16 << 10;
/// Blocks that are asked for at once, at most: who reads more reads from front to back.
const MOST_ASKED: usize = 64;
/// So many blocks one after the other are a scan.
const SCAN: usize = 3;
/// Bytes at the end of a file that are read at once: the footer and the end of the checksums.
const END_BYTES: usize = 64 << 10;
/// Sections start at multiples of this.
const ALIGNMENT: usize = 64;
/// Footers are small: a longer one is damage.
const MOST_FOOTER_BYTES: u64 = 16 << 20;

/// What stands at the end of a segment, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Footer<M> {
    #[serde(flatten)]
    meta: M,
    sections: Vec<SectionPlace>,
    checksums: Checksums,
}

/// Where a section is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SectionPlace {
    name: String,
    offset: u64,
    length: u64,
}

/// Where the checksums are, and their own.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Checksums {
    offset: u64,
    blocks: u64,
    /// xxh3 of the checksums, 16 hex digits.
    xxh3: String,
}

/// Writes a segment.
pub(crate) struct SegmentWriter<W> {
    out: W,
    path: PathBuf,
    /// What is not written yet: less than a block.
    block: Vec<u8>,
    /// Bytes before `block`.
    written: u64,
    checksums: Vec<u8>,
    sections: Vec<SectionPlace>,
}

impl<W: Write> SegmentWriter<W> {
    /// A segment on `out`; `path` is for errors.
    pub(crate) fn new(out: W, path: &Path) -> Result<SegmentWriter<W>> {
        let mut writer = SegmentWriter {
            out,
            path: path.to_path_buf(),
            block: Vec::with_capacity(BLOCK_BYTES),
            written: 0,
            checksums: Vec::new(),
            sections: Vec::new(),
        };
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        writer.put(&head)?;
        Ok(writer)
    }

    fn position(&self) -> u64 {
        self.written + self.block.len() as u64
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK_BYTES {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.checksums.extend_from_slice(&xxh3_64(&self.block).to_le_bytes());
            self.out.write_all(&self.block).map_err(Error::io(&self.path, "write"))?;
            self.written += self.block.len() as u64;
            self.block.clear();
        }
        Ok(())
    }

    /// Starts a section; what is written from now on belongs to it.
    pub(crate) fn begin(&mut self, name: impl Into<String>) -> Result<()> {
        let gap = self.position().next_multiple_of(ALIGNMENT as u64) - self.position();
        self.put(&[0; ALIGNMENT][..to_usize(gap)])?;
        self.sections.push(SectionPlace { name: name.into(), offset: self.position(), length: 0 });
        Ok(())
    }

    /// More of the section.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sections.last_mut().expect("a section was begun").length += bytes.len() as u64;
        self.put(bytes)
    }

    /// A whole section.
    pub(crate) fn section(&mut self, name: impl Into<String>, bytes: &[u8]) -> Result<()> {
        self.begin(name)?;
        self.write(bytes)
    }

    /// Ends the segment; returns what it was written on, and its length.
    pub(crate) fn finish<M: Serialize>(mut self, meta: M) -> Result<(W, u64)> {
        self.end_block()?;
        let checksums = Checksums {
            offset: self.written,
            blocks: self.checksums.len() as u64 / 8,
            xxh3: format!("{:016x}", xxh3_64(&self.checksums)),
        };
        let footer = Footer { meta, sections: self.sections, checksums };
        let footer = serde_json::to_vec(&footer)
            .map_err(|cause| Error::internal(format!("a footer cannot be serialised: {cause}")))?;
        let mut tail = Vec::with_capacity(TAIL_BYTES);
        tail.extend_from_slice(&(footer.len() as u64).to_le_bytes());
        tail.extend_from_slice(&xxh3_64(&footer).to_le_bytes());
        tail.extend_from_slice(MAGIC);
        let mut length = self.written;
        for part in [&self.checksums, &footer, &tail] {
            self.out.write_all(part).map_err(Error::io(&self.path, "write"))?;
            length += part.len() as u64;
        }
        self.out.flush().map_err(Error::io(&self.path, "write"))?;
        Ok((self.out, length))
    }
}

/// A segment with the sections and the footer of `bytes`, and checksums that match, for fuzzing: the first two bytes say
/// how long the footer is, which is what comes behind them.
pub(crate) fn seal(bytes: &[u8]) -> Vec<u8> {
    let (length, rest) = bytes.split_at(bytes.len().min(2));
    let length = to_usize(number(length)).min(rest.len());
    let (footer, data) = rest.split_at(length);
    let mut all = [MAGIC.as_slice(), &FORMAT_VERSION.to_le_bytes(), &[0; 4], data].concat();
    let checksums: Vec<u8> = all.chunks(BLOCK_BYTES).flat_map(|block| xxh3_64(block).to_le_bytes()).collect();
    // Bytes that are not JSON become null, which opening must refuse.
    let mut footer: serde_json::Value = serde_json::from_slice(footer).unwrap_or_default();
    if let Some(fields) = footer.as_object_mut() {
        let xxh3 = format!("{:016x}", xxh3_64(&checksums));
        let checksums = Checksums { offset: all.len() as u64, blocks: checksums.len() as u64 / 8, xxh3 };
        let checksums = serde_json::to_value(checksums).expect("numbers and a string serialise");
        fields.insert("checksums".to_owned(), checksums);
    }
    let footer = serde_json::to_vec(&footer).expect("a JSON value serialises");
    all.extend_from_slice(&checksums);
    all.extend_from_slice(&footer);
    all.extend_from_slice(&(footer.len() as u64).to_le_bytes());
    all.extend_from_slice(&xxh3_64(&footer).to_le_bytes());
    all.extend_from_slice(MAGIC);
    all
}

/// Where the bytes are.
enum SegmentBytes {
    Mapped(MappedFile),
    Memory(Vec<u8>),
}

impl SegmentBytes {
    #[inline]
    fn all(&self) -> &[u8] {
        match self {
            SegmentBytes::Mapped(map) => map,
            SegmentBytes::Memory(bytes) => bytes,
        }
    }
}

/// A segment that can be read.
pub(crate) struct SegmentFile {
    bytes: SegmentBytes,
    path: PathBuf,
    checksums: Range<usize>,
    /// A bit for every block whose checksum was found to match.
    checked: Box<[AtomicU64]>,
    /// A bit for every block that the system was asked to read.
    asked: Box<[AtomicU64]>,
    sections: Vec<SectionPlace>,
    /// The file goes away with its last reader.
    is_replaced: AtomicBool,
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        if self.is_replaced.load(Ordering::Acquire) {
            // A file that stays is not listed anywhere, and is removed by the next writer.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    word_at(bytes, 0)
}

/// A position or a length in a file that is mapped, and so fits.
fn to_usize(value: u64) -> usize {
    usize::try_from(value).expect("within a file that is in the address space")
}

impl SegmentFile {
    /// Maps the segment at `path`, which no other program may change while it is open.
    #[allow(unsafe_code)] // the one place that knows how the mapped files were made
    pub(crate) fn open<M: DeserializeOwned>(path: &Path) -> Result<(Arc<SegmentFile>, M)> {
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        let length = file.metadata().map_err(Error::io(path, "open"))?.len();
        if length == 0 {
            return Err(Error::corrupt(path, "is empty: it was never finished"));
        }
        // SAFETY: a segment is written once, in a directory of its own that only the holder of the index's lock
        // writes to, and gets its name here when it is complete. From then on this program only ever removes it;
        // no name is given twice. The documentation of `Index::open` asks the same of other programs.
        let map = unsafe { MappedFile::open(&file) }.map_err(Error::io(path, "map"))?;
        map.will_need(0..HEAD_BYTES);
        map.will_need(map.len().saturating_sub(END_BYTES)..map.len());
        SegmentFile::parse(SegmentBytes::Mapped(map), path)
    }

    /// Takes bytes for a segment.
    pub(crate) fn in_memory<M: DeserializeOwned>(bytes: Vec<u8>) -> Result<(Arc<SegmentFile>, M)> {
        SegmentFile::parse(SegmentBytes::Memory(bytes), Path::new("(in memory)"))
    }

    fn parse<M: DeserializeOwned>(bytes: SegmentBytes, path: &Path) -> Result<(Arc<SegmentFile>, M)> {
        let all = bytes.all();
        if all.get(..8) != Some(MAGIC) {
            return Err(Error::corrupt(path, "is not a segment of an index: it begins with other bytes"));
        }
        let cut = || Error::corrupt(path, "is cut off: its end is missing; copy it again, or rebuild the index");
        let version = all.get(8..12).map(number).ok_or_else(cut)?;
        if version != u64::from(FORMAT_VERSION) {
            let reason = format!(
                "has the format {version}, and this program reads {FORMAT_VERSION}; use the version of lookalike that wrote it, or a newer one"
            );
            return Err(Error::corrupt(path, reason));
        }
        let tail_at = all.len().checked_sub(TAIL_BYTES).filter(|&at| at >= HEAD_BYTES).ok_or_else(cut)?;
        let tail = &all[tail_at..];
        if &tail[16..] != MAGIC {
            return Err(cut());
        }
        let footer_length = number(&tail[..8]);
        let footer_at = (tail_at as u64).checked_sub(footer_length).filter(|_| footer_length <= MOST_FOOTER_BYTES);
        let footer = footer_at.map(|at| &all[to_usize(at)..tail_at]);
        let Some(footer) = footer.filter(|footer| xxh3_64(footer) == number(&tail[8..16])) else {
            return Err(Error::corrupt(path, "is damaged: its footer does not match its checksum"));
        };
        let footer: Footer<M> = serde_json::from_slice(footer)
            .map_err(|cause| Error::corrupt(path, format!("has a footer that makes no sense ({cause})")))?;
        let places = footer.checksums;
        let data_end = places.offset;
        let checksums = places.blocks.checked_mul(8).and_then(|bytes| data_end.checked_add(bytes));
        let checksums = checksums.filter(|&end| end <= tail_at as u64).map(|end| to_usize(data_end)..to_usize(end));
        let checksums = checksums.filter(|_| places.blocks == data_end.div_ceil(BLOCK_BYTES as u64));
        if let (SegmentBytes::Mapped(map), Some(range)) = (&bytes, &checksums) {
            map.will_need(range.clone());
        }
        let Some(checksums) = checksums.filter(|range| format!("{:016x}", xxh3_64(&all[range.clone()])) == places.xxh3)
        else {
            return Err(Error::corrupt(path, "is damaged: its list of checksums does not match its own"));
        };
        for place in &footer.sections {
            if place.offset.checked_add(place.length).is_none_or(|end| end > data_end) {
                let reason = format!("is damaged: the section {} lies outside of it", place.name);
                return Err(Error::corrupt(path, reason));
            }
        }
        let bits = || (0..to_usize(places.blocks).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let file = SegmentFile {
            path: path.to_path_buf(),
            checksums,
            checked: bits(),
            asked: bits(),
            sections: footer.sections,
            is_replaced: AtomicBool::new(false),
            bytes,
        };
        Ok((Arc::new(file), footer.meta))
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub(crate) fn length(&self) -> u64 {
        self.bytes.all().len() as u64
    }

    /// Removes the file when nobody reads it any more.
    pub(crate) fn remove_when_unused(&self) {
        self.is_replaced.store(true, Ordering::Release);
    }

    /// Whether there is a file, and not only memory.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.bytes, SegmentBytes::Mapped(_))
    }

    /// An error about this segment.
    pub(crate) fn corrupt(&self, reason: impl Into<String>) -> Error {
        Error::corrupt(&self.path, reason)
    }

    /// The section of this name; an empty one if there is none.
    pub(crate) fn section(self: &Arc<SegmentFile>, name: &str) -> Section {
        let place = self.sections.iter().find(|place| place.name == name);
        let (offset, length) = place.map_or((0, 0), |place| (to_usize(place.offset), to_usize(place.length)));
        Section { file: Arc::clone(self), offset, length }
    }

    /// Bytes of every section, by name.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (&str, u64)> {
        self.sections.iter().map(|place| (place.name.as_str(), place.length))
    }

    /// Whether the bit of a block is set.
    #[inline]
    fn is_set(bits: &[AtomicU64], block: usize) -> bool {
        // Sections lie within the blocks: that was checked when the file was opened.
        bits[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    /// Checks the blocks that hold `range`, unless that was done before.
    #[inline]
    fn check(&self, range: Range<usize>) -> Result<()> {
        for block in range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES) {
            if !SegmentFile::is_set(&self.checked, block) {
                self.read_block(block, &range)?;
            }
        }
        Ok(())
    }

    /// Has the blocks that hold `range` read from the disk, as far as they were never touched, and does not wait for them. Whether
    /// all were asked for before.
    #[inline]
    fn will_need(&self, range: &Range<usize>) -> bool {
        let end = range.end.div_ceil(BLOCK_BYTES);
        let first = (range.start / BLOCK_BYTES..end).find(|&block| !SegmentFile::is_set(&self.asked, block));
        if let Some(first) = first {
            self.ask_for(first..end.min(first + MOST_ASKED));
        }
        first.is_none()
    }

    #[cold]
    fn ask_for(&self, blocks: Range<usize>) {
        if let SegmentBytes::Mapped(map) = &self.bytes {
            map.will_need(blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES);
        }
        for block in blocks {
            self.asked[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
    }

    /// Checks a block that is touched first, for the sake of `range`.
    #[cold]
    fn read_block(&self, block: usize, range: &Range<usize>) -> Result<()> {
        // Who comes from the blocks before is reading one after the other: the system reads ahead by itself, and more at once.
        let is_scan = block >= SCAN && (block - SCAN..block).all(|before| SegmentFile::is_set(&self.checked, before));
        if !is_scan {
            self.will_need(range);
        }
        self.check_block(block)
    }

    fn check_block(&self, block: usize) -> Result<()> {
        let all = self.bytes.all();
        let from = block * BLOCK_BYTES;
        let bytes = &all[from..(from + BLOCK_BYTES).min(self.checksums.start)];
        let checksum = &all[self.checksums.clone()][block * 8..block * 8 + 8];
        if number(checksum) != xxh3_64(bytes) {
            return Err(self.corrupt(format!(
                "is damaged: bytes {from} to {} do not match their checksum; restore the file from a copy, or rebuild the index",
                from + bytes.len()
            )));
        }
        self.checked[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        Ok(())
    }

    /// Checks every block; returns all that is wrong.
    pub(crate) fn check_all(&self) -> Vec<Error> {
        let blocks = self.checksums.len() / 8;
        (0..blocks).filter_map(|block| self.check_block(block).err()).collect()
    }
}

/// A part of a segment.
pub(crate) struct Section {
    file: Arc<SegmentFile>,
    offset: usize,
    length: usize,
}

impl Section {
    /// Bytes in it.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Some of its bytes; fewer where it ends.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Result<&[u8]> {
        let (from, to) = (range.start.min(self.length), range.end.min(self.length));
        if from >= to {
            return Ok(&[]);
        }
        let range = self.offset + from..self.offset + to;
        self.file.check(range.clone())?;
        Ok(&self.file.bytes.all()[range])
    }

    /// Where some of its bytes, which are checked now, are in the file; fewer where it ends.
    #[inline]
    pub(crate) fn place(&self, range: Range<usize>) -> Result<Range<usize>> {
        let (from, to) = (range.start.min(self.length), range.end.min(self.length));
        let range = self.offset + from..self.offset + to.max(from);
        self.file.check(range.clone())?;
        Ok(range)
    }

    /// Has some of its bytes read from the disk, or, once that was done, into the processor's cache; does not wait for them.
    #[inline]
    pub(crate) fn will_need(&self, range: Range<usize>) {
        let (from, to) = (range.start.min(self.length), range.end.min(self.length));
        if from < to {
            let range = self.offset + from..self.offset + to;
            if self.file.will_need(&range) {
                prefetch(&self.file_bytes()[range]);
            }
        }
    }

    /// All bytes of the file, checked or not.
    #[inline]
    pub(crate) fn file_bytes(&self) -> &[u8] {
        self.file.bytes.all()
    }

    /// All its bytes, of which only those in `range` are checked.
    #[inline]
    pub(crate) fn whole_checked_at(&self, range: Range<usize>) -> Result<&[u8]> {
        self.bytes(range)?;
        Ok(&self.file.bytes.all()[self.offset..self.offset + self.length])
    }

    /// The number of `width` bytes at `at`.
    #[inline]
    pub(crate) fn number(&self, at: usize, width: usize) -> Result<u64> {
        let from = at.saturating_mul(width);
        let bytes = self.bytes(from..from.saturating_add(width))?;
        if bytes.len() < width {
            return Err(self.file.corrupt("is damaged: a number lies outside of its section"));
        }
        Ok(number(bytes))
    }
}
