//! Compressed bytes → bytes, recognised by their first bytes.

use std::io::{self, BufReader, Read, Write};

use bzip2::Compression as BzipLevel;
use bzip2::read::MultiBzDecoder;
use bzip2::write::BzEncoder;
use flate2::Compression as GzipLevel;
use flate2::write::GzEncoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use liblzma::write::XzEncoder;

use super::gzip::GzipMembers;
use super::side_by_side::SideBySide;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of one or many members.
    Gzip,
    /// Zstandard, of one or many frames.
    Zstd,
    /// bzip2, of one or many streams.
    Bzip2,
    /// xz, of one or many streams.
    Xz,
}

/// gzip level of the files in `kept/`.
pub(crate) const GZIP_LEVEL: u32 = 6;
/// zstd level of the files in `kept/`.
pub(crate) const ZSTD_LEVEL: i32 = 3;
/// bzip2 level of the files in `kept/`.
pub(crate) const BZIP2_LEVEL: u32 = 9;
/// xz level of the files in `kept/`.
pub(crate) const XZ_LEVEL: u32 = 6;
/// Memory that unpacking xz may take; what packs with more is rare.
const XZ_MEMORY: u64 = 1 << 30;

pub(crate) const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";

const READ_BYTES: usize = 128 << 10;

impl Compression {
    /// By the magic number at the start of a file.
    #[must_use]
    pub fn of(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            // A frame, or a skippable one in front of it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            // A block, or the end of nothing; the first letters alone could be text.
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
                if rest.starts_with(b"\x31\x41\x59\x26\x53\x59") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
            {
                Compression::Bzip2
            }
            _ if head.starts_with(XZ_MAGIC) => Compression::Xz,
            _ => Compression::None,
        }
    }

    /// The name used for settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
        }
    }

    /// Whether names of compressed files end with this.
    pub(crate) fn is_ending(ending: &str) -> bool {
        [".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz"].contains(&ending.to_ascii_lowercase().as_str())
    }

    /// What a file's name ends with.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
            Compression::Bzip2 => ".bz2",
            Compression::Xz => ".xz",
        }
    }

    /// A reader of the decompressed bytes of `file`.
    ///
    /// # Errors
    /// When the decoder cannot be set up.
    pub fn decode<'r>(self, file: impl Read + Send + 'r) -> io::Result<Box<dyn Read + Send + 'r>> {
        Ok(match self {
            Compression::None => Box::new(file),
            Compression::Gzip => Box::new(GzipMembers::new(BufReader::with_capacity(READ_BYTES, file))),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
            Compression::Bzip2 => Box::new(MultiBzDecoder::new(file)),
            Compression::Xz => Box::new(XzDecoder::new_stream(file, xz_stream(CONCATENATED)?)),
        })
    }

    /// The same, with as many threads for it, where the file can be taken apart.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub(crate) fn decode_with<'r>(
        self,
        file: impl Read + Send + 'r,
        threads: usize,
    ) -> io::Result<Box<dyn Read + Send + 'r>> {
        match self {
            Compression::Gzip => Ok(Box::new(SideBySide::new(file, threads))),
            _ => self.decode(file),
        }
    }

    /// `bytes` as a member of its own.
    ///
    /// # Errors
    /// When the encoder cannot be set up.
    pub fn pack(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut encoder = self.encoder(Vec::new(), None)?;
        encoder.write_all(bytes)?;
        encoder.finish()
    }

    /// A writer that compresses into `out`, at a level of its own or the usual one.
    ///
    /// # Errors
    /// When the encoder cannot be set up.
    pub(crate) fn encoder<W: Write>(self, out: W, level: Option<i32>) -> io::Result<Encoder<W>> {
        let or = |usual: u32| level.and_then(|level| u32::try_from(level).ok()).unwrap_or(usual);
        Ok(match self {
            Compression::None => Encoder::Plain(out),
            Compression::Gzip => Encoder::Gzip(GzEncoder::new(out, GzipLevel::new(or(GZIP_LEVEL)))),
            Compression::Zstd => Encoder::Zstd(zstd::stream::write::Encoder::new(out, level.unwrap_or(ZSTD_LEVEL))?),
            Compression::Bzip2 => Encoder::Bzip2(BzEncoder::new(out, BzipLevel::new(or(BZIP2_LEVEL)))),
            Compression::Xz => Encoder::Xz(XzEncoder::new(out, or(XZ_LEVEL))),
        })
    }
}

/// Compresses what is written; the stream is complete once it is finished.
pub(crate) enum Encoder<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
    Xz(XzEncoder<W>),
}

impl<W: Write> Encoder<W> {
    /// Closes the stream, and returns what it was written to.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Encoder::Plain(out) => Ok(out),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Bzip2(encoder) => encoder.finish(),
            Encoder::Xz(encoder) => encoder.finish(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Encoder::Plain(out) => out,
            Encoder::Gzip(encoder) => encoder,
            Encoder::Zstd(encoder) => encoder,
            Encoder::Bzip2(encoder) => encoder,
            Encoder::Xz(encoder) => encoder,
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

/// A decoder of xz, within bounded memory.
pub(crate) fn xz_stream(flags: u32) -> io::Result<Stream> {
    Ok(Stream::new_stream_decoder(XZ_MEMORY, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), GzipLevel::new(GZIP_LEVEL));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(packed: &[u8]) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let done = Compression::Gzip.decode(packed).unwrap().read_to_end(&mut bytes).is_ok();
        (bytes, done)
    }

    #[test]
    fn members_empty_members_and_padding_are_read_to_the_end() {
        let packed = [member(b"one "), member(b""), member(b"two"), vec![0; 1000]].concat();
        assert_eq!(unpack(&packed), (b"one two".to_vec(), true));
    }

    #[test]
    fn every_compression_is_recognised_and_gives_back_what_it_was_given() {
        let text = b"Once upon a time ".repeat(5000);
        for compression in [Compression::Gzip, Compression::Zstd, Compression::Bzip2, Compression::Xz] {
            let packed = compression.pack(&text).unwrap();
            assert_eq!(Compression::of(&packed), compression);
            let unpack = |packed: &[u8]| {
                let mut bytes = Vec::new();
                let read = compression.decode(packed).unwrap().read_to_end(&mut bytes);
                (bytes, read.is_ok())
            };
            let twice = [packed.clone(), packed.clone()].concat();
            assert_eq!(unpack(&twice), (text.repeat(2), true), "{compression:?}");
            assert!(!unpack(&packed[..packed.len() - 10]).1, "{compression:?}");
        }
        assert_eq!(Compression::of(b"BZh9 is how it begins"), Compression::None);
    }

    #[test]
    fn garbage_and_truncation_are_errors_after_what_was_good() {
        assert_eq!(unpack(&[member(b"good"), b"garbage".to_vec()].concat()), (b"good".to_vec(), false));
        let cut = member(&[b'x'; 1000]);
        assert!(!unpack(&cut[..cut.len() - 4]).1);
    }
}
