//! A crawl file → records, one after the other, whatever is wrong with it.
//!
//! In: a WARC or ARC file, plain, compressed record by record, or compressed as a whole. Out: batches
//! of whole records with their places. Where every record is a member of its own, a place is that of the
//! compressed member in the file, as in the index files of archives; else it is one in the
//! decompressed file. A record over the limit is handed on without its end; damage is handed on as
//! such, and reading goes on with the next record that can be recognised.

use std::collections::VecDeque;

use memchr::memmem;

use crate::read::format::{arc, warc};
use crate::read::source::file::SourceFile;
use crate::read::split::batch::Cut;
use crate::read::split::units::{Stretch, UnitEnd};
use crate::read::split::unpack::{Step, Unpacker};
use crate::read::{Format, Source};

/// Bytes of records in a batch.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of a record over the limit that are kept: enough to see what it is.
const HEAD_BYTES: usize = 256 << 10;
/// A member that unpacks to more than this many times the limit is given up, not skipped.
const BOMB_FACTOR: u64 = 64;

/// What the head of a record says of its extent.
pub(super) enum Extent {
    /// Head and content have so many bytes.
    Known(u64),
    /// Where it ends is unknown, except that the next one begins there.
    Open,
    /// The head itself is not whole yet.
    Unfinished,
    /// No record begins here.
    None,
}

/// Which of the two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArchiveKind {
    Warc,
    Arc,
}

impl ArchiveKind {
    /// Of a source.
    pub(crate) fn of(source: &Source) -> ArchiveKind {
        if source.format == Format::ARC { ArchiveKind::Arc } else { ArchiveKind::Warc }
    }

    /// Whether a record begins here.
    pub(crate) fn is_start(self, bytes: &[u8]) -> bool {
        match self {
            ArchiveKind::Warc => warc::is_start(bytes),
            ArchiveKind::Arc => arc::head(bytes).is_some(),
        }
    }

    /// The same, as a plain function, behind any line ends.
    pub(crate) fn start_test(self) -> fn(&[u8]) -> bool {
        match self {
            ArchiveKind::Warc => |bytes| warc::is_start(&bytes[line_ends(bytes)..]),
            ArchiveKind::Arc => |bytes| arc::head(&bytes[line_ends(bytes)..]).is_some(),
        }
    }

    pub(super) fn extent(self, bytes: &[u8], is_all: bool) -> Extent {
        match self {
            ArchiveKind::Warc => match warc::head(bytes) {
                Some(head) => head
                    .content_length
                    .map_or(Extent::Open, |content| Extent::Known((head.length as u64).saturating_add(content))),
                None if warc::is_start(bytes) && is_all => Extent::Open,
                None if bytes.len() < warc::LONGEST_HEAD
                    && (warc::is_start(bytes) || b"WARC/0".len() > bytes.len()) =>
                {
                    if is_all {
                        Extent::None
                    } else {
                        Extent::Unfinished
                    }
                }
                None => Extent::None,
            },
            ArchiveKind::Arc => match arc::head(bytes) {
                Some(head) => Extent::Known((head.length as u64).saturating_add(head.content_length)),
                None if !is_all && bytes.len() < arc::LONGEST_LINE && !bytes.contains(&b'\n') => Extent::Unfinished,
                None => Extent::None,
            },
        }
    }

    /// The next place, from `from` on, where a record begins behind a line end.
    fn next_start(self, bytes: &[u8], from: usize) -> Option<usize> {
        match self {
            ArchiveKind::Warc => {
                let mut at = from;
                while let Some(found) = memmem::find(&bytes[at..], b"\nWARC/") {
                    let start = at + found + 1;
                    if warc::is_start(&bytes[start..]) {
                        return Some(start);
                    }
                    at = start;
                }
                None
            }
            ArchiveKind::Arc => memchr::memchr_iter(b'\n', &bytes[from..])
                .map(|found| from + found + 1)
                .find(|&start| arc::head(&bytes[start..]).is_some()),
        }
    }
}

/// How many bytes of line ends stand at the start.
pub(crate) fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count()
}

/// What a cutter finds: a batch of records, or damage.
pub(crate) enum Piece {
    Records(Vec<u8>, Vec<Cut>),
    Damage { record: u64, byte: u64, reason: String, first_bytes: Vec<u8> },
}

/// Cuts a crawl file into records.
pub(crate) struct Cutter<'r> {
    unpacker: Unpacker<'r>,
    kind: ArchiveKind,
    /// Whether every record is a member of its own.
    by_member: bool,
    limit: usize,
    buffer: Vec<u8>,
    cuts: Vec<Cut>,
    /// Where `buffer` begins in the decompressed file.
    offset: u64,
    /// Everything before this is cut.
    done: usize,
    record: u64,
    is_over: bool,
    /// Members at which to stop.
    stops: Vec<u64>,
    /// Damage behind what is in the buffer.
    broken: Option<String>,
    ready: VecDeque<Piece>,
}

impl<'r> Cutter<'r> {
    /// For a source whose records may have `max_page_bytes`.
    pub(crate) fn new(file: SourceFile<'r>, source: &Source, max_page_bytes: u64) -> std::io::Result<Cutter<'r>> {
        let kind = ArchiveKind::of(source);
        let limit = usize::try_from(max_page_bytes).unwrap_or(usize::MAX / 2).saturating_add(HEAD_BYTES);
        Ok(Cutter {
            unpacker: Unpacker::new(file, source.compression, kind.start_test())?,
            kind,
            by_member: source.by_member,
            limit,
            buffer: Vec::new(),
            cuts: Vec::new(),
            offset: 0,
            done: 0,
            record: 1,
            is_over: false,
            stops: Vec::new(),
            broken: None,
            ready: VecDeque::new(),
        })
    }

    /// Goes to the start of a stretch, and stops at its end.
    pub(super) fn restrict_to(&mut self, stretch: &Stretch) -> std::io::Result<()> {
        self.stops.clone_from(&stretch.stops);
        self.unpacker.seek(stretch.from)
    }

    /// Where a stretch ended.
    pub(super) fn end(&mut self) -> std::io::Result<UnitEnd> {
        let next = self.unpacker.next_member()?.unwrap_or(u64::MAX);
        Ok(UnitEnd { records: self.record - 1, next })
    }

    /// The next piece; `spare` is a buffer to be used again.
    pub(crate) fn next(&mut self, mut spare: impl FnMut() -> Vec<u8>) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.is_over && self.done == self.buffer.len() && self.cuts.is_empty() {
                return None;
            }
            if self.by_member { self.cut_member(&mut spare) } else { self.cut_stream(&mut spare) }
        }
    }

    /// Hands on what is cut.
    fn flush(&mut self, spare: &mut impl FnMut() -> Vec<u8>) {
        let mut rest = spare();
        rest.extend_from_slice(&self.buffer[self.done..]);
        self.buffer.truncate(self.done);
        self.offset += self.done as u64;
        self.done = 0;
        let bytes = std::mem::replace(&mut self.buffer, rest);
        let cuts = std::mem::take(&mut self.cuts);
        if !cuts.is_empty() {
            self.ready.push_back(Piece::Records(bytes, cuts));
        }
    }

    fn damage(&mut self, byte: u64, reason: String, first_bytes: &[u8], spare: &mut impl FnMut() -> Vec<u8>) {
        let first_bytes = first_bytes[..first_bytes.len().min(256)].to_vec();
        self.flush(spare);
        self.ready.push_back(Piece::Damage { record: self.record, byte, reason, first_bytes });
        self.record += 1;
    }

    fn cut(&mut self, from: usize, to: usize, offset: Option<u64>, length: u64, cut_short: Option<u64>) {
        self.cuts.push(Cut { from, to, record: self.record, offset, length, cut_short });
        self.record += 1;
    }

    // Every record a member.

    fn cut_member(&mut self, spare: &mut impl FnMut() -> Vec<u8>) {
        if let Ok(Some(start)) = self.unpacker.next_member()
            && self.stops.binary_search(&start).is_ok()
        {
            self.done = self.buffer.len();
            self.is_over = true;
            self.flush(spare);
            return;
        }
        let start = self.buffer.len();
        let mut dropped = 0u64;
        let end = loop {
            let step = self.unpacker.step(&mut self.buffer, CHUNK_BYTES);
            if self.buffer.len() - start > self.limit {
                dropped += (self.buffer.len() - start - HEAD_BYTES) as u64;
                self.buffer.truncate(start + HEAD_BYTES);
            }
            match step {
                Step::Data if dropped > BOMB_FACTOR.saturating_mul(self.limit as u64) => {
                    let reason = "the member unpacks to too much; it was given up".to_owned();
                    break Step::Damaged(reason);
                }
                Step::Data => {}
                step => break step,
            }
        };
        let place = self.unpacker.member();
        match end {
            Step::Damaged(reason) => {
                let first_bytes = self.buffer[start..].to_vec();
                self.buffer.truncate(start);
                self.done = start;
                let reason = format!("{reason}; reading goes on with the next record");
                self.damage(place, reason, &first_bytes, spare);
                self.unpacker.give_up_member();
            }
            Step::End => {
                self.done = self.buffer.len();
                self.is_over = true;
                self.flush(spare);
            }
            _ => {
                let length = self.unpacker.position() - place;
                self.cut_content(start, place, length, dropped, spare);
            }
        }
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush(spare);
        }
    }

    /// Cuts the content of one member.
    fn cut_content(
        &mut self,
        start: usize,
        place: u64,
        length: u64,
        dropped: u64,
        spare: &mut impl FnMut() -> Vec<u8>,
    ) {
        let end = self.buffer.len();
        let first = start + line_ends(&self.buffer[start..]);
        self.done = end;
        if first == end {
            return; // an empty member, or a dictionary
        }
        if !self.kind.is_start(&self.buffer[first..]) {
            let first_bytes = self.buffer[first..].to_vec();
            self.buffer.truncate(start);
            self.done = start;
            self.damage(place, "no record begins with this member".to_owned(), &first_bytes, spare);
            return;
        }
        if dropped > 0 {
            let total = (end - start) as u64 + dropped;
            self.cut(first, end, Some(place), length, Some(total));
            return;
        }
        let mut starts = vec![first];
        loop {
            let from = starts[starts.len() - 1];
            let Extent::Known(size) = self.kind.extent(&self.buffer[from..], true) else { break };
            let Some(next) = usize::try_from(size).ok().and_then(|size| from.checked_add(size)) else { break };
            let Some(rest) = self.buffer.get(next..) else { break };
            let next = next + line_ends(rest);
            // What is not a record belongs to the one before it, whose length is wrong then.
            if next == end || !self.kind.is_start(&self.buffer[next..]) {
                break;
            }
            starts.push(next);
        }
        let alone = starts.len() == 1;
        for at in 0..starts.len() {
            let to = starts.get(at + 1).copied().unwrap_or(end);
            let place = alone.then_some(place);
            let length = if alone { length } else { (to - starts[at]) as u64 };
            self.cut(starts[at], to, place, length, None);
        }
    }

    // Records in one stream.

    fn cut_stream(&mut self, spare: &mut impl FnMut() -> Vec<u8>) {
        let extent = loop {
            self.done += line_ends(&self.buffer[self.done..]);
            let is_all = self.is_over;
            let waiting = &self.buffer[self.done..];
            let extent = if waiting.is_empty() { Extent::Unfinished } else { self.kind.extent(waiting, is_all) };
            if !matches!(extent, Extent::Unfinished) || is_all {
                break extent;
            }
            if !self.fill(spare) {
                return;
            }
        };
        if self.done == self.buffer.len() {
            self.flush(spare);
            return;
        }
        match extent {
            Extent::Known(size) => self.cut_known(size, spare),
            Extent::Open => self.cut_to_next(spare, None),
            _ => {
                let found = "no record begins here; reading goes on with the next one that does".to_owned();
                self.cut_to_next(spare, Some(found));
            }
        }
        if self.done >= CHUNK_BYTES {
            self.flush(spare);
        }
    }

    /// Adds bytes. Damage is noted, so that whole records before it can be cut; if they have been, it
    /// takes what is left with it: false.
    fn fill(&mut self, spare: &mut impl FnMut() -> Vec<u8>) -> bool {
        if let Some(reason) = self.broken.take() {
            let byte = self.offset + self.buffer.len() as u64;
            let lost = self.buffer.split_off(self.done);
            self.damage(byte, reason, &lost, spare);
            self.offset += lost.len() as u64;
            return false;
        }
        loop {
            match self.unpacker.step(&mut self.buffer, CHUNK_BYTES) {
                Step::Data => return true,
                Step::MemberEnd => {}
                Step::End => {
                    self.is_over = true;
                    return true;
                }
                Step::Damaged(reason) => {
                    let at = self.unpacker.member();
                    self.broken =
                        Some(format!("{reason} (compressed byte {at} and on); what comes before it was read"));
                    return true;
                }
            }
        }
    }

    fn cut_known(&mut self, size: u64, spare: &mut impl FnMut() -> Vec<u8>) {
        let place = self.offset + self.done as u64;
        let size_here = usize::try_from(size).unwrap_or(usize::MAX);
        if size_here > self.limit {
            return self.cut_short(size, place, spare);
        }
        while self.buffer.len() - self.done < size_here {
            if self.is_over {
                let first_bytes = self.buffer.split_off(self.done);
                let reason = format!(
                    "the file ends inside this record, which should have {size} bytes and has {}",
                    first_bytes.len()
                );
                self.damage(place, reason, &first_bytes, spare);
                return;
            }
            if !self.fill(spare) {
                return;
            }
        }
        // The line ends behind a record belong to it.
        let mut to = self.done + size_here;
        if self.buffer.len() < to + 4 && !self.is_over && self.broken.is_none() && !self.fill(spare) {
            return;
        }
        let (done, most) = (self.done, if self.kind == ArchiveKind::Warc { 4 } else { 2 });
        to += line_ends(&self.buffer[to..]).min(most);
        self.cut(done, to, Some(self.offset + done as u64), (to - done) as u64, None);
        self.done = to;
    }

    /// Keeps the start of a record over the limit and skips the rest.
    fn cut_short(&mut self, size: u64, place: u64, spare: &mut impl FnMut() -> Vec<u8>) {
        while self.buffer.len() - self.done < HEAD_BYTES && !self.is_over {
            if !self.fill(spare) {
                return;
            }
        }
        let head = self.done + HEAD_BYTES.min(self.buffer.len() - self.done);
        let done = self.done;
        self.cut(done, head, Some(place), size, Some(size));
        let end = place + size;
        // Away with what is here, and then with what comes, up to the end.
        self.done = head;
        self.flush(spare);
        while self.offset < end {
            let here = usize::try_from(end - self.offset).unwrap_or(usize::MAX).min(self.buffer.len());
            self.buffer.drain(..here);
            self.offset += here as u64;
            if self.offset < end {
                if self.is_over {
                    let reason = "the file ends inside this record".to_owned();
                    self.record -= 1;
                    self.damage(place, reason, &[], spare);
                    return;
                }
                if !self.fill(spare) {
                    return;
                }
            }
        }
    }

    /// Everything up to the next start: a record without a length, or, with a reason, damage.
    fn cut_to_next(&mut self, spare: &mut impl FnMut() -> Vec<u8>, mut damage: Option<String>) {
        let place = self.offset + self.done as u64;
        let mut first_bytes = Vec::new();
        let mut from = self.done;
        loop {
            if let Some(next) = self.kind.next_start(&self.buffer, from) {
                self.end_at(next, place, &first_bytes, damage, spare);
                return;
            }
            if self.is_over {
                self.end_at(self.buffer.len(), place, &first_bytes, damage, spare);
                return;
            }
            // A start may be half there.
            let keep = arc::LONGEST_LINE.min(self.buffer.len() - self.done);
            if self.buffer.len() - self.done > self.limit {
                damage.get_or_insert_with(|| "this record has no length, and no end within `max_page`".to_owned());
                if first_bytes.is_empty() {
                    first_bytes = self.buffer[self.done..self.done + 256.min(keep)].to_vec();
                }
                let gone = self.buffer.len() - keep;
                self.buffer.drain(self.done..gone);
                self.offset += (gone - self.done) as u64;
            }
            from = self.buffer.len().saturating_sub(keep).max(self.done);
            if !self.fill(spare) {
                return;
            }
        }
    }

    fn end_at(
        &mut self,
        to: usize,
        place: u64,
        first_bytes: &[u8],
        damage: Option<String>,
        spare: &mut impl FnMut() -> Vec<u8>,
    ) {
        let done = self.done;
        if let Some(reason) = damage {
            let lost: Vec<u8> = self.buffer.drain(done..to).collect();
            let shown = if first_bytes.is_empty() { &lost[..] } else { first_bytes };
            self.damage(place, reason, shown, spare);
            self.offset += lost.len() as u64;
            return;
        }
        self.cut(done, to, Some(place), (to - done) as u64, None);
        self.done = to;
    }
}
