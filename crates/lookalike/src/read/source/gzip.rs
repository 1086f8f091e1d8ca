//! gzip members: heads, whole members, and one member after the other.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;
use libdeflater::Decompressor;
use memchr::memmem;

/// How a member begins.
pub(crate) const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b, 0x08];

/// Flags of a member's head that mean nothing yet.
pub(super) const RESERVED_FLAGS: u8 = 0xe0;

/// The length of the head of a gzip member; nothing if it is none, or not whole.
pub(crate) fn gzip_head(bytes: &[u8]) -> Option<usize> {
    let flags = *bytes.get(3).filter(|_| bytes.starts_with(GZIP_MAGIC))?;
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    }
    // A name and a comment, each with a zero behind it.
    for flag in [8, 16] {
        if flags & flag != 0 {
            at += memchr::memchr(0, bytes.get(at..)?)? + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    (flags & RESERVED_FLAGS == 0 && at <= bytes.len()).then_some(at)
}

/// Bytes at the end of a member: a checksum and a length.
const TRAILER_BYTES: usize = 8;

/// Adds to `out` what is in a member of which `member` is all behind the head, which is quicker than step by step. False, and nothing is added, if
/// that is wrong, empty, or more than `most` bytes.
pub(crate) fn unpack_whole(unpacker: &mut Decompressor, member: &[u8], out: &mut Vec<u8>, most: usize) -> bool {
    let Some((data, trailer)) = member.split_last_chunk::<TRAILER_BYTES>() else { return false };
    let &[a, b, c, d, e, f, g, h] = trailer;
    let (sum, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]) as usize);
    // The same end earlier: it may be there that the member ends, and something else stand behind it.
    if length == 0 || length > most || memmem::find(data, trailer).is_some() {
        return false;
    }
    let start = out.len();
    out.resize(start + length, 0);
    let is_whole =
        unpacker.deflate_decompress(data, &mut out[start..]) == Ok(length) && libdeflater::crc32(&out[start..]) == sum;
    if !is_whole {
        out.truncate(start);
    }
    is_whole
}

/// Passes over zeros, as tapes and block devices leave them behind the last member; false at the end of the data.
pub(super) fn skip_zeros(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let (length, zeros) = match reader.fill_buf()? {
            [] => return Ok(false),
            waiting => (waiting.len(), waiting.iter().take_while(|byte| **byte == 0).count()),
        };
        reader.consume(zeros);
        if zeros < length {
            return Ok(true);
        }
    }
}

/// gzip members one after another, and zeros after the last one.
pub(super) struct GzipMembers<R> {
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    pub(super) fn new(reader: R) -> GzipMembers<R> {
        GzipMembers { member: Some(GzDecoder::new(reader)) }
    }

    /// Goes on to the next member; none is left at the end of the data.
    fn next_member(&mut self) -> io::Result<()> {
        let Some(member) = self.member.take() else { return Ok(()) };
        let mut reader = member.into_inner();
        self.member = skip_zeros(&mut reader)?.then(|| GzDecoder::new(reader));
        Ok(())
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.next_member()?;
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_gzip_members_are_as_long_as_their_flags_say() {
        let head = |flags: u8, rest: &[u8]| [&[0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3][..], rest].concat();
        assert_eq!(gzip_head(&head(0, b"data")), Some(10));
        assert_eq!(gzip_head(&head(4, b"\x03\x00abcdata")), Some(15));
        assert_eq!(gzip_head(&head(8 | 16, b"name\0comment\0data")), Some(23));
        assert_eq!(gzip_head(&head(2, b"\x01\x02data")), Some(12));
        assert_eq!(gzip_head(&head(8, b"no end")), None);
        assert_eq!(gzip_head(&head(4, b"\xff\xffshort")), None);
        assert_eq!(gzip_head(&head(0x20, b"reserved")), None);
        assert_eq!(gzip_head(b"\x1f\x8b"), None);
    }
}
