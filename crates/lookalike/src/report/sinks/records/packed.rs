//! Bytes → a file that is compressed as it is written.
//!
//! Files of gzip and bzip2 consist of members of about a mebibyte each, which are compressed side by side. Where they begin depends on the
//! bytes alone, so that the file is the same whatever the number of threads.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use libdeflater::{CompressionLvl, Compressor};
use rayon::prelude::*;

use crate::read::compression::{Compression, Encoder, GZIP_LEVEL};
use crate::report::sinks::records::target::Packing;

/// Bytes of a gzip member.
const GZIP_BLOCK: usize = 1 << 20;
/// Bytes of a bzip2 member: it compresses so many at a time.
const BZIP2_BLOCK: usize = 900_000;
/// Members that are compressed at a time, at the most.
const MOST_MEMBERS: usize = 16;
const BUFFER_BYTES: usize = 128 << 10;

/// A file that is compressed as it is written; it is complete once it is closed.
pub(super) enum PackedFile {
    Members(Members),
    Stream(Encoder<BufWriter<File>>),
}

impl Packing {
    /// A file that other programs may take for one stream.
    pub(super) fn open(self, file: File) -> io::Result<PackedFile> {
        Ok(match self.compression {
            Compression::Gzip => PackedFile::Members(Members::new(file, self, GZIP_BLOCK)),
            Compression::Bzip2 => PackedFile::Members(Members::new(file, self, BZIP2_BLOCK)),
            Compression::None | Compression::Zstd | Compression::Xz => PackedFile::Stream(self.open_stream(file)?),
        })
    }

    /// A file that is one stream.
    pub(super) fn open_stream(self, file: File) -> io::Result<Encoder<BufWriter<File>>> {
        self.compression.encoder(BufWriter::with_capacity(BUFFER_BYTES, file), self.level)
    }
}

impl PackedFile {
    pub(super) fn close(self) -> io::Result<()> {
        match self {
            PackedFile::Members(members) => members.close(),
            PackedFile::Stream(stream) => stream.finish()?.flush(),
        }
    }
}

impl Write for PackedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            PackedFile::Members(members) => members.write(bytes),
            PackedFile::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            PackedFile::Members(members) => members.flush(),
            PackedFile::Stream(stream) => stream.flush(),
        }
    }
}

/// Bytes that wait until there is a member for each thread.
pub(super) struct Members {
    file: File,
    packing: Packing,
    /// Bytes of a member.
    block: usize,
    bytes: Vec<u8>,
    /// Bytes that are compressed at a time.
    most: usize,
    is_empty: bool,
}

impl Members {
    fn new(file: File, packing: Packing, block: usize) -> Members {
        let most = block * rayon::current_num_threads().min(MOST_MEMBERS);
        Members { file, packing, block, bytes: Vec::with_capacity(most), most, is_empty: true }
    }

    fn pack(&mut self) -> io::Result<()> {
        let packing = self.packing;
        let blocks = self.bytes.par_chunks(self.block).with_max_len(1);
        let members: Vec<io::Result<Vec<u8>>> = blocks.map(|block| member(block, packing)).collect();
        self.is_empty &= members.is_empty();
        for packed in members {
            self.file.write_all(&packed?)?;
        }
        self.bytes.clear();
        Ok(())
    }

    fn close(mut self) -> io::Result<()> {
        self.pack()?;
        if self.is_empty {
            self.file.write_all(&member(&[], self.packing)?)?;
        }
        Ok(())
    }
}

impl Write for Members {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.most - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        if self.bytes.len() == self.most {
            self.pack()?;
        }
        Ok(taken)
    }

    /// A member that is not full is not written before the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes as a member.
fn member(bytes: &[u8], packing: Packing) -> io::Result<Vec<u8>> {
    let level = CompressionLvl::new(packing.level.unwrap_or(GZIP_LEVEL.cast_signed()));
    match (packing.compression, level) {
        (Compression::Gzip, Ok(level)) => {
            let mut compressor = Compressor::new(level);
            let mut packed = vec![0; compressor.gzip_compress_bound(bytes.len())];
            let length = compressor.gzip_compress(bytes, &mut packed);
            packed.truncate(length.map_err(|error| io::Error::other(error.to_string()))?);
            Ok(packed)
        }
        (compression, _) => {
            let mut encoder = compression.encoder(Vec::new(), packing.level)?;
            encoder.write_all(bytes)?;
            encoder.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;

    #[test]
    fn what_is_written_comes_back_and_files_do_not_depend_on_threads() {
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..700_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        for (compression, block) in [(Compression::Gzip, GZIP_BLOCK), (Compression::Bzip2, BZIP2_BLOCK)] {
            for length in [0, 1, block - 1, block, block + 1, 2 * block, bytes.len()] {
                let written = [1, 2, 3].map(|threads| {
                    let path = directory.path().join(threads.to_string());
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| {
                        let packing = Packing { compression, level: None, is_same: true };
                        let mut file = packing.open(File::create(&path).unwrap()).unwrap();
                        bytes[..length].chunks(300_001).for_each(|piece| file.write_all(piece).unwrap());
                        file.close().unwrap();
                    });
                    fs::read(path).unwrap()
                });
                assert!(written[0] == written[1] && written[0] == written[2], "{length}");
                let mut unpacked = Vec::new();
                compression.decode(&written[0][..]).unwrap().read_to_end(&mut unpacked).unwrap();
                assert!(unpacked == bytes[..length], "{length}");
            }
        }
    }

    #[test]
    fn every_level_packs() {
        let directory = tempfile::tempdir().unwrap();
        for level in 0..=9 {
            let path = directory.path().join("packed");
            let packing = Packing { compression: Compression::Gzip, level: Some(level), is_same: false };
            let mut file = packing.open(File::create(&path).unwrap()).unwrap();
            file.write_all(b"once upon a time").unwrap();
            file.close().unwrap();
            let mut text = String::new();
            Compression::Gzip.decode(File::open(&path).unwrap()).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "once upon a time", "{level}");
        }
    }
}
