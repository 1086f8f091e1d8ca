//! What the readers of both formats do: a file → batches of records → pages.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Result, SkipKind};
use crate::read::crawl::capture;
use crate::read::crawl::cutter::{ArchiveKind, Cutter, Extent, Piece, line_ends};
use crate::read::format::reader::{Input, Members};
use crate::read::source::compression::Compression;
use crate::read::split::batch::{BatchSender, Content, Cut, Only, Visit, unreadable};
use crate::read::split::buffer::Buffer;
use crate::read::split::units::{Stretch, UnitEnd};
use crate::read::split::unpack::{Step, Unpacker};
use crate::read::{Source, WantedRecord};

/// Batches of records.
pub(crate) fn split(kind: ArchiveKind, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
    match open(input) {
        Ok(mut cutter) => send_all(kind, input, &mut cutter, batches),
        Err(error) => batches.send(input.unopened(&error)),
    }
}

/// Chosen records, each read from its place.
pub(crate) fn seek(kind: ArchiveKind, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
    batches.send_places(records, |records| CapturesAtPlaces { kind, records })
}

fn open<'c>(input: &Input<'c>) -> std::io::Result<Cutter<'c>> {
    Cutter::new(input.file()?, input.source(), input.corpus.max_page_bytes)
}

fn send_all(
    kind: ArchiveKind,
    input: &Input<'_>,
    cutter: &mut Cutter<'_>,
    batches: &mut BatchSender<'_, '_>,
) -> ControlFlow<()> {
    let pool = &input.corpus.buffers;
    while let Some(piece) = cutter.next(|| pool.take()) {
        match piece {
            Piece::Records(bytes, cuts) => {
                batches.send(Captures { kind, bytes: Buffer::new(bytes, Arc::clone(pool)), cuts })?;
            }
            Piece::Damage { record, byte, reason, first_bytes } => {
                let problem = (SkipKind::Damaged, reason);
                batches.send(input.skipped(Some(record), Some(byte), problem, &first_bytes))?;
            }
        }
    }
    ControlFlow::Continue(())
}

struct Captures {
    kind: ArchiveKind,
    bytes: Buffer,
    cuts: Vec<Cut>,
}

impl Content for Captures {
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()> {
        let wanted = self.cuts.iter().filter(|cut| only.contains(cut.record));
        { wanted }.try_for_each(|cut| visit(capture::record(self.kind, input, cut, &self.bytes[cut.from..cut.to])))
    }
}

struct CapturesAtPlaces {
    kind: ArchiveKind,
    records: Vec<WantedRecord>,
}

impl Content for CapturesAtPlaces {
    fn visit(&self, input: &Input<'_>, _: &Only, visit: Visit<'_>) -> Result<()> {
        let source = input.source();
        let mut unpacker =
            input.file().and_then(|file| Unpacker::new(file, source.compression, self.kind.start_test()));
        let mut bytes = Vec::new();
        for wanted in &self.records {
            bytes.clear();
            let read = match &mut unpacker {
                Ok(unpacker) => read_record(unpacker, source.by_member, wanted, &mut bytes),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = read {
                visit(Err(unreadable(input, wanted, &error)))?;
                continue;
            }
            let WantedRecord { record, offset, length, .. } = *wanted;
            let cut = Cut { from: 0, to: bytes.len(), record, offset, length, cut_short: None };
            visit(capture::record(self.kind, input, &cut, &bytes[line_ends(&bytes)..]))?;
        }
        Ok(())
    }
}

/// Reads one record from its place: a member, or a stretch of a plain file.
fn read_record(
    unpacker: &mut Unpacker<'_>,
    by_member: bool,
    wanted: &WantedRecord,
    bytes: &mut Vec<u8>,
) -> Result<(), String> {
    const CHUNK_BYTES: usize = 1 << 20;
    let offset = wanted.offset.expect("only records that have places are read from them");
    unpacker.seek(offset).map_err(|error| error.to_string())?;
    // Of a record that does not fit into memory, what does is read.
    let length = usize::try_from(wanted.length).unwrap_or(usize::MAX);
    loop {
        let room = if by_member { CHUNK_BYTES } else { (length - bytes.len()).min(CHUNK_BYTES) };
        match unpacker.step(bytes, room) {
            Step::Data if by_member || bytes.len() < length => {}
            Step::Data | Step::MemberEnd | Step::End => return Ok(()),
            Step::Damaged(reason) => return Err(reason),
        }
    }
}

impl Members for ArchiveKind {
    fn is_by_member(&self, source: &Source) -> bool {
        is_by_member(*self, source)
    }

    fn starts(&self, source: &Source, bytes: u64) -> Vec<u64> {
        let mut starts = vec![0];
        let opened = source.location.open();
        let unpacker = opened.and_then(|file| Unpacker::new(file, source.compression, self.start_test()));
        let Ok(mut unpacker) = unpacker else { return starts };
        let mut from = bytes;
        while from < source.bytes {
            match unpacker.find_from(from) {
                Ok(Some(start)) => {
                    starts.push(start);
                    from = start + bytes;
                }
                _ => break,
            }
        }
        starts
    }

    fn split(
        &self,
        input: &Input<'_>,
        stretch: &Stretch,
        batches: &mut BatchSender<'_, '_>,
    ) -> std::io::Result<UnitEnd> {
        let mut cutter = open(input)?;
        cutter.restrict_to(stretch)?;
        // Whoever stops the pass does not ask where the stretch ends.
        let _ = send_all(*self, input, &mut cutter, batches);
        cutter.end()
    }
}

/// Bytes of the first member that are looked at.
const FIRST_MEMBER_BYTES: usize = 1 << 20;

/// Whether every record is a member of its own: the first member holds one record, and another member
/// follows it.
fn is_by_member(kind: ArchiveKind, source: &Source) -> bool {
    if source.compression == Compression::None {
        return false;
    }
    let opened = source.location.open().and_then(|file| Unpacker::new(file, source.compression, kind.start_test()));
    let Ok(mut unpacker) = opened else { return false };
    let mut bytes = Vec::new();
    loop {
        match unpacker.step(&mut bytes, FIRST_MEMBER_BYTES) {
            Step::MemberEnd if bytes.is_empty() => {} // a dictionary
            Step::MemberEnd => break,
            _ => return false,
        }
    }
    let start = line_ends(&bytes);
    let Extent::Known(size) = kind.extent(&bytes[start..], true) else { return false };
    let behind = usize::try_from(size).ok().and_then(|size| bytes.get(start + size..));
    let is_alone = behind.is_some_and(|behind| line_ends(behind) == behind.len());
    is_alone && matches!(unpacker.step(&mut bytes, 1), Step::Data | Step::MemberEnd)
}
