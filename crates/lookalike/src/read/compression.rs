//! Compressed bytes → bytes, recognised by their first bytes.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression as GzipLevel;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

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
}

/// gzip level of the files in `kept/`.
pub const GZIP_LEVEL: u32 = 6;
/// zstd level of the files in `kept/`.
pub const ZSTD_LEVEL: i32 = 3;

const READ_BYTES: usize = 128 << 10;

impl Compression {
    /// By the magic number at the start of a file.
    #[must_use]
    pub fn of(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// A reader of the decompressed bytes of the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.decode(File::open(path)?)
    }

    /// A reader of the decompressed bytes of `file`.
    ///
    /// # Errors
    /// When the decoder cannot be set up.
    pub fn decode<'r>(self, file: impl Read + Send + 'r) -> io::Result<Box<dyn Read + Send + 'r>> {
        Ok(match self {
            Compression::None => Box::new(file),
            Compression::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ_BYTES, file))),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
        })
    }

    /// Runs `fill` with a writer that compresses into `file`, and closes the stream.
    ///
    /// # Errors
    /// What `fill` or the writing gives.
    pub fn write(self, file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut file = io::BufWriter::with_capacity(READ_BYTES, file);
        match self {
            Compression::None => fill(&mut file)?,
            Compression::Gzip => {
                let mut encoder = GzEncoder::new(&mut file, GzipLevel::new(GZIP_LEVEL));
                fill(&mut encoder)?;
                encoder.finish()?;
            }
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(&mut file, ZSTD_LEVEL)?;
                fill(&mut encoder)?;
                encoder.finish()?;
            }
        }
        file.flush()
    }
}
