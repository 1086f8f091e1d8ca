//! One gzip file, unpacked by many threads.
//!
//! In: a file of gzip members one after the other, as crawlers, bgzip and `cat` make them. Out: the bytes in them, as one thread would
//! unpack them, up to any damage. Stretches that seem to end where a member begins are unpacked ahead, each as a whole; where one does
//! not consist of whole members, it and all behind it are read again here, step by step, until a member ends. What is
//! under way is bounded. A member that is longer than a stretch may be is unpacked step by step, too, so that files of
//! one member are read as ever.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use flate2::bufread::GzDecoder;
use libdeflater::Decompressor;
use memchr::memmem;

use super::gzip::{GZIP_MAGIC, RESERVED_FLAGS, gzip_head, skip_zeros, unpack_whole};

/// Bytes that are read from the file at a time.
const READ_BYTES: usize = 256 << 10;
/// A stretch has so many bytes, if members are shorter, and at the most.
const STRETCH_BYTES: usize = 256 << 10;
const LONGEST_STRETCH: usize = 2 << 20;
/// Bytes that a member may have unpacked, and about the most of a stretch; what is longer is unpacked step by step.
const MOST_UNPACKED: usize = 16 << 20;
/// Room that is used again.
const MOST_SPARE: usize = 8 << 20;
/// A longer head of a member is looked at step by step, as is one with a checksum of its own.
const LONGEST_HEAD: usize = 4096;
const HEAD_CHECKSUM: u8 = 2;
/// Members that are unpacked step by step, at the most, before stretches are tried again that could not be used before.
const MOST_ALONE: u32 = 1 << 12;
/// Stretches that are under way for each thread.
const AHEAD: usize = 2;
/// Bytes that are unpacked at a time, step by step.
const STEP_BYTES: usize = 64 << 10;

/// A gzip file as a stream of bytes, which `threads` threads unpack; one works here, several on their own.
pub(crate) struct SideBySide<R> {
    state: State<R>,
    unpackers: Unpackers,
    /// Unpacked, and read up to here.
    bytes: Vec<u8>,
    at: usize,
    /// Whether no member has ended yet.
    is_first: bool,
    /// Members that are unpacked step by step, and how many it were the last time that a stretch could not be used.
    alone: u32,
    last_alone: u32,
}

enum State<R> {
    /// Stretches are unpacked ahead; the file goes on behind them.
    Ahead(Packed<R>),
    /// What comes is looked at here.
    Stuck(Packed<R>),
    /// In a member that is unpacked here.
    Alone(Box<GzDecoder<Packed<R>>>),
    Over,
}

impl<R: Read> SideBySide<R> {
    pub(crate) fn new(file: R, threads: usize) -> SideBySide<R> {
        let packed = Packed { file, bytes: Vec::new(), at: 0, end: None };
        let unpackers = Unpackers::new(threads);
        let state = State::Ahead(packed);
        SideBySide { state, unpackers, bytes: Vec::new(), at: 0, is_first: true, alone: 0, last_alone: 0 }
    }

    /// Unpacks some bytes; false at the end.
    fn refill(&mut self) -> io::Result<bool> {
        self.at = 0;
        loop {
            self.bytes.clear();
            match std::mem::replace(&mut self.state, State::Over) {
                State::Ahead(mut packed) => {
                    self.unpackers.send_ahead(&mut packed);
                    let Some(stretch) = self.unpackers.next(std::mem::take(&mut self.bytes)) else {
                        self.state = State::Stuck(packed);
                        continue;
                    };
                    self.bytes = stretch.unpacked;
                    self.is_first &= stretch.used == 0;
                    self.state = if stretch.used < stretch.packed.len() {
                        // All that was sent behind it is in vain: the next time, that is tried later.
                        self.last_alone = (2 * self.last_alone).clamp(1, MOST_ALONE);
                        self.alone = self.last_alone;
                        packed.put_back(self.unpackers.take_back(stretch.packed, stretch.used));
                        State::Stuck(packed)
                    } else {
                        self.last_alone = 0;
                        State::Ahead(packed)
                    };
                    if !self.bytes.is_empty() {
                        return Ok(true);
                    }
                }
                State::Stuck(mut packed) => {
                    if !self.is_first && !skip_zeros(&mut packed)? {
                        return Ok(false);
                    }
                    self.state = State::Alone(Box::new(GzDecoder::new(packed)));
                }
                State::Alone(mut member) => {
                    self.bytes.resize(STEP_BYTES, 0);
                    let count = member.read(&mut self.bytes);
                    self.bytes.truncate(*count.as_ref().unwrap_or(&0));
                    if count? > 0 {
                        self.state = State::Alone(member);
                        return Ok(true);
                    }
                    self.is_first = false;
                    self.alone = self.alone.saturating_sub(1);
                    let packed = member.into_inner();
                    self.state = if self.alone > 0 { State::Stuck(packed) } else { State::Ahead(packed) };
                }
                State::Over => return Ok(false),
            }
        }
    }
}

impl<R: Read> Read for SideBySide<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.bytes.len() && (buffer.is_empty() || !self.refill()?) {
            return Ok(0);
        }
        let count = buffer.len().min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// A file, with what has been read of it and not been used.
struct Packed<R> {
    file: R,
    bytes: Vec<u8>,
    at: usize,
    /// How the file ended.
    end: Option<io::Result<()>>,
}

impl<R: Read> Packed<R> {
    /// Reads on, until so many bytes are at hand or the file is over.
    fn at_least(&mut self, bytes: usize) {
        if self.end.is_some() || self.bytes.len() - self.at >= bytes {
            return;
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        while self.bytes.len() < bytes && self.end.is_none() {
            match self.file.by_ref().take(READ_BYTES as u64).read_to_end(&mut self.bytes) {
                Ok(0) => self.end = Some(Ok(())),
                Ok(_) => {}
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    /// Takes bytes that seem to be whole members; nothing where there are none, or where they are long.
    fn take_members(&mut self) -> Option<Vec<u8>> {
        let (mut searched, mut wanted) = (STRETCH_BYTES, STRETCH_BYTES + READ_BYTES);
        loop {
            self.at_least(wanted);
            let waiting = &self.bytes[self.at..];
            if !waiting.starts_with(GZIP_MAGIC) {
                return None;
            }
            // No further than that, whatever is at hand: where stretches end must not depend on what was read before.
            let behind = waiting.get(searched..waiting.len().min(LONGEST_STRETCH)).unwrap_or_default();
            let mut starts = memmem::find_iter(behind, GZIP_MAGIC).map(|start| searched + start);
            let start = starts.find(|start| waiting.get(start + 3).is_none_or(|flags| flags & RESERVED_FLAGS == 0));
            let length = match start {
                Some(start) => start,
                None if matches!(self.end, Some(Ok(()))) && waiting.len() <= LONGEST_STRETCH => waiting.len(),
                None if self.end.is_some() || waiting.len() >= LONGEST_STRETCH => return None,
                None => {
                    searched = waiting.len() - (GZIP_MAGIC.len() - 1);
                    wanted = waiting.len() + READ_BYTES;
                    continue;
                }
            };
            let members = waiting[..length].to_vec();
            self.at += length;
            return Some(members);
        }
    }

    /// Takes back what stands before everything that is at hand.
    fn put_back(&mut self, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(&self.bytes[self.at..]);
        (self.bytes, self.at) = (bytes, 0);
    }
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for Packed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.at_least(1);
        if self.at == self.bytes.len()
            && let Some(Err(_)) = self.end
            && let Some(Err(error)) = self.end.replace(Ok(()))
        {
            return Err(error);
        }
        Ok(&self.bytes[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

/// A stretch of the file: the first `used` bytes of `packed` are whole members, and these are in `unpacked`.
struct Stretch {
    packed: Vec<u8>,
    used: usize,
    unpacked: Vec<u8>,
}

impl Stretch {
    fn new(packed: Vec<u8>, mut unpacked: Vec<u8>, unpacker: &mut Decompressor) -> Stretch {
        unpacked.clear();
        let mut used = 0;
        while unpacked.len() < MOST_UNPACKED
            && let Some(length) = unpack_member(&packed[used..], &mut unpacked, unpacker)
        {
            used += length;
            // Zeros may stand behind a member.
            used += packed[used..].iter().take_while(|byte| **byte == 0).count();
        }
        Stretch { packed, used, unpacked }
    }
}

/// Unpacks the first member; its length, or nothing if it is not whole or too long.
fn unpack_member(packed: &[u8], out: &mut Vec<u8>, unpacker: &mut Decompressor) -> Option<usize> {
    let head = gzip_head(packed)?;
    let seeming_end = memmem::find(&packed[head..], GZIP_MAGIC).map_or(packed.len(), |end| head + end);
    let is_plain = head <= LONGEST_HEAD && packed[3] & HEAD_CHECKSUM == 0;
    if is_plain && unpack_whole(unpacker, &packed[head..seeming_end], out, MOST_UNPACKED) {
        return Some(seeming_end);
    }
    let (start, mut member) = (out.len(), GzDecoder::new(packed));
    match member.by_ref().take(MOST_UNPACKED as u64 + 1).read_to_end(out) {
        Ok(count) if count <= MOST_UNPACKED => Some(packed.len() - member.into_inner().len()),
        _ => {
            out.truncate(start);
            None
        }
    }
}

/// Who unpacks stretches, and those that are under way, in their order.
struct Unpackers {
    threads: usize,
    /// They start when there is something to do.
    jobs: Option<Sender<Job>>,
    under_way: VecDeque<Receiver<Stretch>>,
    /// What is unpacked here, if there is one thread.
    waiting: Option<Vec<u8>>,
    unpacker: Decompressor,
    spare: Vec<Vec<u8>>,
}

/// A stretch to unpack, room for its bytes, and who waits for it.
type Job = (Vec<u8>, Vec<u8>, Sender<Stretch>);

impl Unpackers {
    fn new(threads: usize) -> Unpackers {
        let unpacker = Decompressor::new();
        Unpackers { threads, jobs: None, under_way: VecDeque::new(), waiting: None, unpacker, spare: Vec::new() }
    }

    /// Takes stretches of the file, as long as few are under way.
    fn send_ahead(&mut self, file: &mut Packed<impl Read>) {
        if self.threads <= 1 {
            self.waiting = file.take_members();
            return;
        }
        while self.under_way.len() < AHEAD * self.threads
            && let Some(packed) = file.take_members()
        {
            let jobs = self.jobs.get_or_insert_with(|| start(self.threads));
            let (sender, receiver) = mpsc::channel();
            self.under_way.push_back(receiver);
            // A thread that is not there any more shows where its stretch is waited for.
            let _ = jobs.send((packed, self.spare.pop().unwrap_or_default(), sender));
        }
    }

    /// The next stretch, unpacked; `spare` is room that is not needed any more.
    fn next(&mut self, spare: Vec<u8>) -> Option<Stretch> {
        if let Some(packed) = self.waiting.take() {
            return Some(Stretch::new(packed, spare, &mut self.unpacker));
        }
        let stretch = self.under_way.pop_front()?;
        self.spare.extend(Some(spare).filter(|spare| spare.capacity() <= MOST_SPARE));
        Some(stretch.recv().expect("threads that unpack do not panic"))
    }

    /// What was not used of a stretch, and all that was sent behind it.
    fn take_back(&mut self, mut packed: Vec<u8>, used: usize) -> Vec<u8> {
        packed.drain(..used);
        while let Some(stretch) = self.next(Vec::new()) {
            packed.extend_from_slice(&stretch.packed);
        }
        packed
    }
}

/// Starts threads, which end when nothing can come any more.
fn start(threads: usize) -> Sender<Job> {
    let (sender, jobs) = mpsc::channel::<Job>();
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..threads {
        let jobs = Arc::clone(&jobs);
        thread::spawn(move || {
            let mut unpacker = Decompressor::new();
            loop {
                let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((packed, room, waiting)) = job else { return };
                // Whoever waited may have gone.
                let _ = waiting.send(Stretch::new(packed, room, &mut unpacker));
            }
        });
    }
    sender
}

#[cfg(test)]
mod tests {
    use super::super::compression::Compression;
    use super::*;
    use proptest::prelude::*;

    /// What a reader gives, up to an error, and which that is.
    fn read_all(mut reader: impl Read) -> (Vec<u8>, Option<io::ErrorKind>) {
        let (mut bytes, mut step) = (Vec::new(), vec![0; STEP_BYTES]);
        loop {
            match reader.read(&mut step) {
                Ok(0) => return (bytes, None),
                Ok(count) => bytes.extend_from_slice(&step[..count]),
                Err(error) => return (bytes, Some(error.kind())),
            }
        }
    }

    fn check(packed: &[u8]) {
        let expected = read_all(Compression::Gzip.decode(packed).unwrap());
        let found = [1, 2, 3].map(|threads| read_all(SideBySide::new(packed, threads)));
        assert!(found[1..].iter().all(|other| other == &found[0]), "threads differ");
        let (found, length) = (&found[0], found[0].0.len().min(expected.0.len()));
        assert!(found.1 == expected.1 && found.0[..length] == expected.0[..length], "{:?} {:?}", found.1, expected.1);
        // How much comes of a step in which damage is met depends on how much is asked for at a time.
        let most = if expected.1.is_some() { STEP_BYTES } else { 0 };
        assert!(found.0.len().abs_diff(expected.0.len()) <= most, "{} and {}", found.0.len(), expected.0.len());
    }

    fn noise(length: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(2).wrapping_add(1);
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn members_of_every_size_are_unpacked_as_by_one_thread() {
        let sizes = [0, 1, 100, STRETCH_BYTES, 3 * STRETCH_BYTES, LONGEST_STRETCH + 100_000, 50, 0, 300_000];
        let members: Vec<Vec<u8>> =
            sizes.iter().map(|&size| Compression::Gzip.pack(&noise(size, 7)).unwrap()).collect();
        check(&members.concat());
        check(&members.concat().repeat(3));
        // Members that unpack to more than is unpacked at once.
        let long = Compression::Gzip.pack(&vec![b'a'; MOST_UNPACKED + 1]).unwrap();
        check(&[&members[2], &long, &members[3], &long].map(Vec::as_slice).concat());
        check(b"");
    }

    #[test]
    fn what_looks_like_the_start_of_a_member_and_is_none_changes_nothing() {
        // Bytes that cannot be compressed stand in the file as they are.
        let mut bytes = noise(5 * STRETCH_BYTES, 3);
        for at in (0..bytes.len()).step_by(70_001) {
            bytes.splice(at..at + 4, [0x1f, 0x8b, 8, 0]);
        }
        let member = Compression::Gzip.pack(&bytes).unwrap();
        assert!(memmem::find_iter(&member, GZIP_MAGIC).count() > 10);
        check(&[member.clone(), Compression::Gzip.pack(b"and on").unwrap(), member].concat());
    }

    #[test]
    fn damage_zeros_and_other_things_behind_members_are_met_where_one_thread_meets_them() {
        let members: Vec<u8> =
            (0..40).flat_map(|n| Compression::Gzip.pack(&noise(30_000 + n * 100, n as u64)).unwrap()).collect();
        for at in (0..members.len()).step_by(members.len() / 37) {
            let mut damaged = members.clone();
            damaged[at] ^= 0x55;
            check(&damaged);
            check(&members[..at]);
            check(&[&members[..], &vec![0; at % 5000], &members[..at]].concat());
            check(&[&members[..], b"something else", &members[..at]].concat());
        }
    }

    #[test]
    fn a_copy_of_a_member_with_a_damaged_head_is_missed() {
        let (same, other) = (Compression::Gzip.pack(b"the same").unwrap(), Compression::Gzip.pack(b"another").unwrap());
        for at in 0..3 {
            let mut damaged = same.clone();
            damaged[at] ^= 1;
            check(&[&same[..], &damaged, &other].concat());
        }
        // A head with a checksum, which is wrong.
        let mut checked = [&other[..10], &[0, 0], &other[10..]].concat();
        checked[3] |= HEAD_CHECKSUM;
        check(&[&same[..], &checked, &same].concat());
    }

    #[test]
    fn a_stretch_holds_no_more_than_it_may_and_passes_zeros() {
        let bomb = Compression::Gzip.pack(&vec![0; MOST_UNPACKED / 2]).unwrap();
        let stretch = Stretch::new(bomb.repeat(20), Vec::new(), &mut Decompressor::new());
        assert_eq!((stretch.used, stretch.unpacked.len()), (2 * bomb.len(), MOST_UNPACKED));
        check(&bomb.repeat(5));
        let member = Compression::Gzip.pack(b"once upon a time").unwrap();
        let padded = [&member[..], &[0; 512]].concat().repeat(9);
        let stretch = Stretch::new(padded.clone(), Vec::new(), &mut Decompressor::new());
        assert_eq!(stretch.used, padded.len());
        check(&padded);
    }

    #[test]
    fn an_error_of_the_file_comes_behind_all_bytes_before_it() {
        struct Failing<'a>(&'a [u8]);
        impl Read for Failing<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let count = self.0.read(buffer)?;
                if count == 0 { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(count) }
            }
        }
        let bytes: Vec<Vec<u8>> = (0..30).map(|n| noise(40_000, n)).collect();
        let members: Vec<u8> = bytes.iter().flat_map(|bytes| Compression::Gzip.pack(bytes).unwrap()).collect();
        for threads in [1, 2] {
            let found = read_all(SideBySide::new(Failing(&members), threads));
            assert!(found == (bytes.concat(), Some(io::ErrorKind::PermissionDenied)), "{:?}", found.1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_read_as_by_one_thread(
            pieces in prop::collection::vec((0u8..8, 0usize..400_000, any::<u64>()), 0..8),
        ) {
            let packed: Vec<u8> = pieces.iter().flat_map(|&(kind, size, seed)| match kind {
                0 => vec![0; size % 700],
                1 => GZIP_MAGIC.to_vec(),
                2 => noise(size % 40, seed),
                3 => Compression::Gzip.pack(&noise(size, seed)).unwrap()[..size / 2].to_vec(),
                4 => Compression::Gzip.pack(&b"text ".repeat(size)).unwrap(),
                _ => Compression::Gzip.pack(&noise(size, seed)).unwrap(),
            }).collect();
            check(&packed);
        }
    }
}
