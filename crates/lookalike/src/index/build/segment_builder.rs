//! Rows → a segment, in bounded memory.
//!
//! In: fingerprints and ids, in any order. Out: a segment: every fingerprint once in each table, the
//! ids once. Fingerprints are sorted for table 0, which has the bits as they are; equal ones become one
//! row with several ids. The other tables are sorted from its rows.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::index::build::sort::{KeyedId, SortBuffers, Sortable, SortedItems, Sorter};
use crate::index::segment::file::SegmentWriter;
use crate::index::segment::huffman;
use crate::index::segment::ids::{Id, IdKind, PendingIds};
use crate::index::segment::packed::{PackedShape, PackedWriter};
use crate::index::segment::{SegmentMeta, SortedKeys, TableCodec, TableFormat};
use crate::plan::design::Design;
use crate::spill::{Fixed, Scratch, Spill};

/// The most rows of a segment.
pub(crate) const MOST_ROWS: u64 = u32::MAX as u64;

/// Collects rows.
pub(crate) struct SegmentBuilder {
    sorter: Sorter<KeyedId>,
    ids: PendingIds,
    kind: IdKind,
    deleted: Vec<(u64, Id)>,
    directory: PathBuf,
    memory_bytes: u64,
}

impl SegmentBuilder {
    /// A builder that may use `memory_bytes` and puts what does not fit into files in `directory`.
    pub(crate) fn new(kind: IdKind, directory: &Path, memory_bytes: u64) -> SegmentBuilder {
        SegmentBuilder {
            sorter: Sorter::new(directory, "rows", memory_bytes / 2, SortBuffers::default()),
            ids: PendingIds::new(kind, directory, memory_bytes / 4),
            kind,
            deleted: Vec::new(),
            directory: directory.to_path_buf(),
            memory_bytes,
        }
    }

    /// A builder that keeps everything in memory.
    pub(crate) fn in_memory(kind: IdKind) -> SegmentBuilder {
        SegmentBuilder::new(kind, Path::new(""), u64::MAX / 2)
    }

    /// One more row.
    pub(crate) fn push(&mut self, fingerprint: u64, id: &Id) -> Result<()> {
        let id = self.ids.put(id)?;
        self.sorter.push(KeyedId { key: fingerprint, id })
    }

    /// A row of an older segment that is no longer there.
    pub(crate) fn delete(&mut self, fingerprint: u64, id: Id) {
        self.deleted.push((fingerprint, id));
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.sorter.count()
    }

    /// Writes the segment to `out`; `choose` returns the design for the number of different fingerprints.
    pub(crate) fn finish<W: Write>(
        self,
        config: u64,
        format: TableFormat,
        choose: impl FnOnce(u64) -> Result<Design>,
        out: W,
        path: &Path,
    ) -> Result<(W, u64)> {
        let SegmentBuilder { sorter, mut ids, kind, deleted, directory, memory_bytes } = self;
        let rows = sorter.count();
        let sorted = sorter.finish()?;
        let mut out = SegmentWriter::new(out, path)?;
        let id_width = ids.write(
            "id",
            rows,
            |visit| sorted.for_each(&mut |rows: &[KeyedId]| rows.iter().try_for_each(|row| visit(row.id))),
            &directory,
            &mut out,
        )?;
        let (keys, repeated) = write_repeats(&sorted, &directory, memory_bytes / 4, &mut out)?;
        drop(sorted);
        let fingerprints = keys.len();
        let design = choose(fingerprints)?;
        let (mut shapes, mut buffers) = (Vec::new(), SortBuffers::default());
        for (number, table) in design.tables().iter().enumerate() {
            if number == 0 {
                shapes.extend(write_table(format, number, fingerprints, table.prefix, &keys, &mut out)?);
                continue;
            }
            let mut sorter = Sorter::new(&directory, "keys", memory_bytes / 2, buffers);
            keys.visit(&mut |keys| keys.iter().try_for_each(|&key| sorter.push(table.permute(key))))?;
            let sorted = sorter.finish()?;
            shapes.extend(write_table(format, number, fingerprints, table.prefix, &sorted, &mut out)?);
            buffers = sorted.into_buffers();
        }
        let deleted_width = write_deleted(&deleted, kind, &directory, &mut out)?;
        out.finish(SegmentMeta {
            config: format!("{config:016x}"),
            radius: design.radius(),
            cut: design.cut().clone(),
            codec: format.codec,
            huffman_block: if format.codec == TableCodec::Huffman {
                format.huffman_block
            } else {
                huffman::DEFAULT_BLOCK
            },
            ids: kind,
            id_width,
            rows,
            fingerprints,
            repeated,
            shapes,
            deleted: deleted.len() as u64,
            deleted_width,
        })
    }
}

fn write_table<W: Write>(
    format: TableFormat,
    number: usize,
    rows: u64,
    prefix: u32,
    keys: &impl SortedKeys,
    out: &mut SegmentWriter<W>,
) -> Result<Option<PackedShape>> {
    let shape = match format.codec {
        TableCodec::Raw => PackedShape::raw(rows, prefix),
        TableCodec::EliasFano => PackedShape::elias_fano(rows, prefix),
        TableCodec::Huffman => {
            huffman::write(number, keys, format.huffman_block, out)?;
            return Ok(None);
        }
    };
    let mut table = PackedWriter::new(shape, number, out)?;
    keys.visit(&mut |keys| table.push(keys, out))?;
    table.finish(out)?;
    Ok(Some(shape))
}

/// Writes which keys have several rows, and how many more rows than keys there are up to each of them. Returns the
/// different keys, and how many of them have several rows.
fn write_repeats<W: Write>(
    sorted: &SortedItems<KeyedId>,
    directory: &Path,
    memory_bytes: u64,
    out: &mut SegmentWriter<W>,
) -> Result<(Spill<u64>, u64)> {
    // More than the address space is not a limit.
    let limit = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let mut keys = Spill::<u64>::new(directory.join("fingerprints"), limit);
    let mut repeated = Spill::<u32>::new(directory.join("repeated"), limit / 4);
    let mut more = Spill::<u32>::new(directory.join("more"), limit / 4);
    let (mut before, mut extra, mut last) = (None, 0u32, None);
    let mut count = 0u32;
    let mut buffer: Vec<u64> = Vec::with_capacity(4096);
    let mut take = |row: KeyedId| {
        if before.replace(row.key()) == Some(row.key()) {
            extra += 1;
            last = Some(count - 1);
            return Ok(());
        }
        if let Some(last) = last.take() {
            repeated.append(&[last])?;
            more.append(&[extra])?;
        }
        buffer.push(row.key());
        count += 1;
        if buffer.len() == buffer.capacity() {
            keys.append(&buffer)?;
            buffer.clear();
        }
        Ok(())
    };
    sorted.for_each(&mut |rows| rows.iter().try_for_each(|&row| take(row)))?;
    if let Some(last) = last {
        repeated.append(&[last])?;
        more.append(&[extra])?;
    }
    keys.append(&buffer)?;
    keys.finish()?;
    let repeats = repeated.len();
    for (name, numbers) in [("repeated", &mut repeated), ("repeated-more", &mut more)] {
        numbers.finish()?;
        out.begin(name)?;
        let (mut scratch, mut bytes, mut from) = (Scratch::default(), Vec::new(), 0);
        while from < repeats {
            let to = (from + (1 << 16)).min(repeats);
            bytes.clear();
            u32::encode(numbers.read(from..to, &mut scratch)?, &mut bytes);
            out.write(&bytes)?;
            from = to;
        }
    }
    Ok((keys, repeats))
}

fn write_deleted<W: Write>(
    deleted: &[(u64, Id)],
    kind: IdKind,
    directory: &Path,
    out: &mut SegmentWriter<W>,
) -> Result<usize> {
    if deleted.is_empty() {
        return Ok(0);
    }
    let mut waiting = PendingIds::new(kind, directory, u64::MAX);
    let places = deleted.iter().map(|(_, id)| waiting.put(id)).collect::<Result<Vec<u64>>>()?;
    let bytes: Vec<u8> = deleted.iter().flat_map(|(fingerprint, _)| fingerprint.to_le_bytes()).collect();
    out.section("deleted", &bytes)?;
    let count = deleted.len() as u64;
    waiting.write("deleted-id", count, |visit| places.iter().try_for_each(|&place| visit(place)), directory, out)
}
