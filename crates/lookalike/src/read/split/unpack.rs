//! A compressed file → bytes, with the places where its members begin and end.
//!
//! Crawlers compress every record by itself, so that a file is a chain of gzip members or zstd
//! frames ("members" here). Whoever reads one wants to know where each begins, and wants to go on behind a
//! damaged one. In: a file. Out: bytes, ends of members, damage; after damage, the next member that
//! can be recognised.

use std::io::{self, Read};

use bzip2::{Decompress as BzDecoder, Status as BzStatus};
use crc32fast::Hasher;
use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;
use liblzma::stream::{Action as XzAction, Status as XzStatus, Stream as XzDecoder};
use memchr::memmem;
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use crate::read::source::compression::{Compression, XZ_MAGIC, xz_stream};
use crate::read::source::file::SourceFile;
use crate::read::source::gzip::{GZIP_MAGIC, gzip_head, unpack_whole};

/// Bytes that are read from the file at a time.
const READ_BYTES: usize = 256 << 10;
/// Bytes that are decoded to see whether a member really begins somewhere.
const TRIAL_BYTES: usize = 4096;
/// Compressed bytes that are at hand for it.
const TRIAL_INPUT: usize = 64 << 10;
/// Bytes that are decoded at a time.
const ROOM_BYTES: usize = 64 << 10;

/// Compressed bytes in which the end of a gzip member is looked for, so that it can be unpacked at once.
const WHOLE_INPUT: usize = 256 << 10;

/// Bytes at hand for the head of a gzip member.
const LONGEST_GZIP_HEAD: usize = 68 << 10;

const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BZIP2_MAGIC: &[u8] = b"BZh";
const LONGEST_MAGIC: usize = 6;
/// A skippable frame that holds the dictionary of all frames behind it.
const ZSTD_DICTIONARY_MAGIC: &[u8] = &[0x5d, 0x2a, 0x4d, 0x18];
/// Dictionaries larger than this are not believed.
const MOST_DICTIONARY: usize = 64 << 20;

/// What came of one step.
#[derive(Debug)]
pub(crate) enum Step {
    /// Some bytes were added.
    Data,
    /// A member ended; nothing was added behind it.
    MemberEnd,
    /// The file is over.
    End,
    /// What was decoded since the last end of a member is broken off here; the next step goes on
    /// with the next member that can be recognised, if there is one.
    Damaged(String),
}

enum Codec {
    Plain,
    /// The data inside members; their heads and checksums are ours, so that the decoder and its tables
    /// can be used again for the next one.
    Gzip {
        state: Box<Decompress>,
        sum: Hasher,
        /// For members that are at hand as a whole.
        whole: Box<Decompressor>,
    },
    Zstd(ZstdDecoder<'static>),
    Bzip2(BzDecoder),
    Xz(Box<XzDecoder>),
}

/// Where in the file the codec is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    Inside,
    Lost,
    Over,
}

/// Decodes a file from a member's start on.
pub(crate) struct Unpacker<'r> {
    file: SourceFile<'r>,
    compression: Compression,
    codec: Codec,
    dictionary: Vec<u8>,
    /// What is decoded goes through here: room in the output would have to be cleared first.
    scratch: Vec<u8>,
    input: Vec<u8>,
    at: usize,
    /// Where `input` begins in the file.
    offset: u64,
    /// Where the member under way begins.
    member: u64,
    state: State,
    /// Whether bytes are the start of a member's content, for the search after damage.
    is_start: fn(&[u8]) -> bool,
}

impl<'r> Unpacker<'r> {
    /// Starts at the beginning of a file.
    pub(crate) fn new(
        file: SourceFile<'r>,
        compression: Compression,
        is_start: fn(&[u8]) -> bool,
    ) -> io::Result<Unpacker<'r>> {
        let mut unpacker = Unpacker {
            file,
            compression,
            codec: Codec::Plain,
            dictionary: Vec::new(),
            scratch: vec![0; ROOM_BYTES],
            input: Vec::new(),
            at: 0,
            offset: 0,
            member: 0,
            state: State::Between,
            is_start,
        };
        if compression == Compression::Zstd {
            unpacker.read_dictionary()?;
        }
        unpacker.codec = unpacker.new_codec()?;
        Ok(unpacker)
    }

    /// The whole file as a stream of bytes; what is damaged is left out.
    pub(crate) fn into_reader(self) -> UnpackedReader<'r> {
        UnpackedReader { unpacker: self, buffer: Vec::new(), at: 0 }
    }

    /// Goes to a place in the file, where a member begins.
    pub(crate) fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.file.seek_to(offset)?;
        self.input.clear();
        (self.at, self.offset, self.state) = (0, offset, State::Between);
        self.reset()
    }

    /// How far the file has been used up.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// The first member that can be recognised from `offset` on.
    pub(crate) fn find_from(&mut self, offset: u64) -> io::Result<Option<u64>> {
        self.member = offset.saturating_sub(1);
        self.state = State::Lost;
        self.next_member()
    }

    /// Where the next member begins, between two of them; nothing at the end of the file.
    pub(crate) fn next_member(&mut self) -> io::Result<Option<u64>> {
        if self.state == State::Lost {
            self.state = if self.find_member()? { State::Between } else { State::Over };
        }
        if self.state == State::Over {
            return Ok(None);
        }
        if matches!(self.compression, Compression::Gzip | Compression::Xz) {
            self.skip_zeros()?;
        }
        if self.waiting()?.is_empty() {
            self.state = State::Over;
            return Ok(None);
        }
        Ok(Some(self.position()))
    }

    /// Where the member under way, or the last one, begins.
    pub(crate) fn member(&self) -> u64 {
        self.member
    }

    /// Leaves the member under way; the next step looks for another one.
    pub(crate) fn give_up_member(&mut self) {
        if self.state == State::Inside {
            self.state = State::Lost;
        }
    }

    /// Adds some bytes to `out`, up to about `most`.
    pub(crate) fn step(&mut self, out: &mut Vec<u8>, most: usize) -> Step {
        match self.try_step(out, most) {
            Ok(step) => step,
            Err(error) => {
                // The file itself cannot be read: there is nothing to go on with.
                self.state = State::Over;
                Step::Damaged(format!("reading failed: {error}"))
            }
        }
    }

    fn try_step(&mut self, out: &mut Vec<u8>, most: usize) -> io::Result<Step> {
        if self.state != State::Inside {
            let Some(start) = self.next_member()? else { return Ok(Step::End) };
            self.member = start;
            self.state = State::Inside;
            self.at_least(LONGEST_MAGIC)?;
            let waiting = &self.input[self.at..];
            let begins = match self.compression {
                Compression::None => true,
                Compression::Gzip => waiting.starts_with(GZIP_MAGIC),
                // Skippable frames decode to nothing.
                Compression::Zstd => Compression::of(waiting) == Compression::Zstd,
                Compression::Bzip2 => waiting.starts_with(BZIP2_MAGIC),
                Compression::Xz => waiting.starts_with(XZ_MAGIC),
            };
            if !begins {
                return self.lose("a compressed member should begin here; there is something else".to_owned());
            }
            self.reset()?;
            if self.compression == Compression::Gzip {
                self.at_least(LONGEST_GZIP_HEAD)?;
                match gzip_head(&self.input[self.at..]) {
                    Some(length) => self.at += length,
                    None => return self.lose("the head of this gzip member is damaged or cut off".to_owned()),
                }
                if self.take_whole_member(out, most)? {
                    self.state = State::Between;
                    return Ok(Step::MemberEnd);
                }
            }
        }
        let before = out.len();
        let goal = before + most.max(1);
        while out.len() < goal {
            if self.waiting()?.is_empty() {
                if matches!(self.codec, Codec::Plain) {
                    self.state = State::Over;
                    return Ok(if out.len() > before { Step::Data } else { Step::End });
                }
                return self.lose("the file ends inside this member".to_owned());
            }
            match self.decode(out, goal) {
                Ok(true) => {
                    if let Some(reason) = self.wrong_checksum()? {
                        return self.lose(reason);
                    }
                    self.state = State::Between;
                    return Ok(Step::MemberEnd);
                }
                Ok(false) => {}
                Err(reason) => return self.lose(reason),
            }
        }
        Ok(Step::Data)
    }

    /// Unpacks a gzip member that is at hand as a whole, which is quicker; false where it is not, or where anything is
    /// wrong with it: then it is unpacked step by step, which says what.
    ///
    /// It ends where the next one seems to begin, or the file ends, if its length and its checksum stand there.
    fn take_whole_member(&mut self, out: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        let Some(end) = self.probable_end()? else { return Ok(false) };
        let Codec::Gzip { whole, .. } = &mut self.codec else { return Ok(false) };
        let is_whole = unpack_whole(whole, &self.input[self.at..end], out, most);
        if is_whole {
            self.at = end;
        }
        Ok(is_whole)
    }

    /// Where in the input the gzip member under way seems to end; nothing if it is long.
    fn probable_end(&mut self) -> io::Result<Option<usize>> {
        loop {
            let waiting = &self.input[self.at..];
            if let Some(found) = memmem::find(waiting, GZIP_MAGIC) {
                return Ok(Some(self.at + found));
            }
            if waiting.len() > WHOLE_INPUT {
                return Ok(None);
            }
            if self.read_on()? == 0 {
                return Ok(Some(self.input.len()));
            }
        }
    }

    /// What is wrong with the end of a gzip member, which is skipped.
    fn wrong_checksum(&mut self) -> io::Result<Option<String>> {
        self.at_least(8)?;
        let Codec::Gzip { state, sum, .. } = &self.codec else { return Ok(None) };
        let Some((end, _)) = self.input[self.at..].split_at_checked(8) else {
            return Ok(Some("the file ends inside this member".to_owned()));
        };
        let word = |at: usize| u32::from_le_bytes([end[at], end[at + 1], end[at + 2], end[at + 3]]);
        // Lengths count modulo 2^32.
        if word(0) != sum.clone().finalize() || u64::from(word(4)) != state.total_out() % (1 << 32) {
            return Ok(Some("the gzip data is damaged (its checksum is wrong)".to_owned()));
        }
        self.at += 8;
        Ok(None)
    }

    fn lose(&mut self, reason: String) -> io::Result<Step> {
        self.state = State::Lost;
        Ok(Step::Damaged(reason))
    }

    /// Decodes what is at hand; true at the end of a member.
    fn decode(&mut self, out: &mut Vec<u8>, goal: usize) -> Result<bool, String> {
        let input = &self.input[self.at..];
        let start = out.len();
        let room = (goal - start).clamp(1, ROOM_BYTES);
        match &mut self.codec {
            Codec::Plain => {
                let taken = input.len().min(goal - start);
                out.extend_from_slice(&input[..taken]);
                self.at += taken;
                Ok(false)
            }
            Codec::Gzip { state, sum, .. } => {
                let (read, written) = (state.total_in(), state.total_out());
                let status = state.decompress(input, &mut self.scratch[..room], FlushDecompress::None);
                let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(0);
                let (read, written) = (count(state.total_in(), read), count(state.total_out(), written));
                sum.update(&self.scratch[..written]);
                out.extend_from_slice(&self.scratch[..written]);
                self.at += read;
                match status {
                    Ok(Status::StreamEnd) => Ok(true),
                    Ok(_) if read == 0 && written == 0 => Err("the gzip data is damaged (no progress)".to_owned()),
                    Ok(_) => Ok(false),
                    Err(error) => Err(format!("the gzip data is damaged ({error})")),
                }
            }
            Codec::Zstd(decoder) => {
                let mut from = InBuffer::around(input);
                let mut to = OutBuffer::around(&mut self.scratch[..room]);
                let hint = decoder.run(&mut from, &mut to);
                let (read, written) = (from.pos(), to.pos());
                out.extend_from_slice(&self.scratch[..written]);
                self.at += read;
                match hint {
                    Ok(0) => Ok(true),
                    Ok(_) if read == 0 && written == 0 => Err("the zstd data is damaged (no progress)".to_owned()),
                    Ok(_) => Ok(false),
                    Err(error) => Err(format!("the zstd data is damaged ({error})")),
                }
            }
            Codec::Bzip2(decoder) => {
                let (read, written) = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(input, &mut self.scratch[..room]);
                let (read, written) = (decoder.total_in() - read, decoder.total_out() - written);
                let is_end = status.map(|status| status == BzStatus::StreamEnd);
                self.advance("bzip2", out, (read, written), is_end)
            }
            Codec::Xz(decoder) => {
                let (read, written) = (decoder.total_in(), decoder.total_out());
                let status = decoder.process(input, &mut self.scratch[..room], XzAction::Run);
                let (read, written) = (decoder.total_in() - read, decoder.total_out() - written);
                let is_end = status.map(|status| status == XzStatus::StreamEnd);
                self.advance("xz", out, (read, written), is_end)
            }
        }
    }

    /// What a decoder did with what is at hand: bytes that it read and wrote, and whether the member ended.
    fn advance(
        &mut self,
        name: &str,
        out: &mut Vec<u8>,
        (read, written): (u64, u64),
        is_end: Result<bool, impl std::fmt::Display>,
    ) -> Result<bool, String> {
        let count = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
        out.extend_from_slice(&self.scratch[..count(written)]);
        self.at += count(read);
        match is_end {
            Ok(true) => Ok(true),
            Ok(false) if read == 0 && written == 0 => Err(format!("the {name} data is damaged (no progress)")),
            Ok(false) => Ok(false),
            Err(error) => Err(format!("the {name} data is damaged ({error})")),
        }
    }

    fn new_codec(&self) -> io::Result<Codec> {
        Ok(match self.compression {
            Compression::None => Codec::Plain,
            Compression::Gzip => {
                Codec::Gzip { state: Box::new(Decompress::new(false)), sum: Hasher::new(), whole: Box::default() }
            }
            Compression::Zstd if self.dictionary.is_empty() => Codec::Zstd(ZstdDecoder::new()?),
            Compression::Zstd => Codec::Zstd(ZstdDecoder::with_dictionary(&self.dictionary)?),
            Compression::Bzip2 => Codec::Bzip2(BzDecoder::new(false)),
            Compression::Xz => Codec::Xz(Box::new(xz_stream(0)?)),
        })
    }

    fn reset(&mut self) -> io::Result<()> {
        match &mut self.codec {
            Codec::Plain => {}
            Codec::Zstd(decoder) => decoder.reinit()?,
            Codec::Gzip { state, sum, .. } => {
                state.reset(false);
                sum.reset();
            }
            Codec::Bzip2(decoder) => *decoder = BzDecoder::new(false),
            Codec::Xz(decoder) => **decoder = xz_stream(0)?,
        }
        Ok(())
    }

    /// What is at hand; reads on if that is nothing. Empty at the end of the file.
    fn waiting(&mut self) -> io::Result<&[u8]> {
        if self.at == self.input.len() {
            self.read_on()?;
        }
        Ok(&self.input[self.at..])
    }

    fn at_least(&mut self, bytes: usize) -> io::Result<()> {
        while self.input.len() - self.at < bytes {
            if self.read_on()? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Drops what was used, and adds bytes from the file; returns how many.
    fn read_on(&mut self) -> io::Result<usize> {
        self.offset += self.at as u64;
        self.input.drain(..self.at);
        self.at = 0;
        let before = self.input.len();
        self.input.resize(before + READ_BYTES, 0);
        let count = loop {
            match self.file.read(&mut self.input[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.input.truncate(before + *count.as_ref().unwrap_or(&0));
        count
    }

    /// Passes over zeros, as tapes and block devices leave them.
    fn skip_zeros(&mut self) -> io::Result<()> {
        loop {
            let waiting = self.waiting()?;
            let count = waiting.iter().take_while(|byte| **byte == 0).count();
            let all = count == waiting.len() && count > 0;
            self.at += count;
            if !all {
                return Ok(());
            }
        }
    }

    /// Looks for the next member behind the start of the damaged one.
    fn find_member(&mut self) -> io::Result<bool> {
        let magic = match self.compression {
            Compression::None => return Ok(false),
            Compression::Gzip => GZIP_MAGIC,
            Compression::Zstd => ZSTD_MAGIC,
            Compression::Bzip2 => BZIP2_MAGIC,
            Compression::Xz => XZ_MAGIC,
        };
        let from = self.member + 1;
        self.file.seek_to(from)?;
        self.input.clear();
        (self.at, self.offset) = (0, from);
        let finder = memmem::Finder::new(magic);
        loop {
            self.at_least(TRIAL_INPUT)?;
            let Some(found) = finder.find(&self.input[self.at..]) else {
                let kept = (magic.len() - 1).min(self.input.len() - self.at);
                self.at = self.input.len() - kept;
                if self.read_on()? == 0 {
                    return Ok(false);
                }
                continue;
            };
            self.at += found;
            self.at_least(TRIAL_INPUT)?;
            if self.is_member()? {
                return Ok(true);
            }
            self.at += 1;
        }
    }

    /// Whether what is at hand decodes to the start of a record.
    fn is_member(&mut self) -> io::Result<bool> {
        self.reset()?;
        let (at, mut out) = (self.at, Vec::new());
        let mut is_member = true;
        if self.compression == Compression::Gzip {
            let Some(length) = gzip_head(&self.input[at..]) else { return Ok(false) };
            self.at += length;
        }
        while out.len() < TRIAL_BYTES && self.at < self.input.len() {
            match self.decode(&mut out, TRIAL_BYTES) {
                Ok(false) => {}
                Ok(true) => break,
                Err(_) => {
                    is_member = false;
                    break;
                }
            }
        }
        self.at = at;
        self.reset()?;
        Ok(is_member && (self.is_start)(&out))
    }

    /// Reads the dictionary that may stand in front of all frames.
    fn read_dictionary(&mut self) -> io::Result<()> {
        self.at_least(8)?;
        let Some((head, _)) = self.input.split_at_checked(8) else { return Ok(()) };
        if !head.starts_with(ZSTD_DICTIONARY_MAGIC) {
            return Ok(());
        }
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if length > MOST_DICTIONARY {
            return Err(io::Error::other(format!("its dictionary has {length} bytes, which is too much")));
        }
        self.at_least(8 + length)?;
        let Some(dictionary) = self.input.get(8..8 + length) else {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ends inside its dictionary"));
        };
        self.dictionary = if dictionary.starts_with(ZSTD_MAGIC) {
            let mut unpacked = Vec::new();
            let limit = MOST_DICTIONARY as u64;
            zstd::stream::read::Decoder::new(dictionary)?.take(limit).read_to_end(&mut unpacked)?;
            unpacked
        } else {
            dictionary.to_vec()
        };
        // The frame stays in the stream: it decodes to nothing, and is the first member.
        Ok(())
    }
}

/// Decompressed bytes, as the cutter of crawls counts them: up to any damage, and on behind it.
pub(crate) struct UnpackedReader<'r> {
    unpacker: Unpacker<'r>,
    buffer: Vec<u8>,
    at: usize,
}

impl Read for UnpackedReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
            if matches!(self.unpacker.step(&mut self.buffer, READ_BYTES), Step::End) {
                return Ok(0);
            }
        }
        let count = out.len().min(self.buffer.len() - self.at);
        out[..count].copy_from_slice(&self.buffer[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
