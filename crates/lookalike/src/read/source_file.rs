//! The bytes of a source, wherever they are.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::read::Source;

/// An open source: read on, or from a place. What is read is counted.
pub(crate) struct SourceFile<'r> {
    file: File,
    bytes_read: Option<&'r AtomicU64>,
}

impl<'r> SourceFile<'r> {
    /// Opens a source; what is read is added to `bytes_read`.
    pub(crate) fn counted(source: &Source, bytes_read: &'r AtomicU64) -> io::Result<SourceFile<'r>> {
        Ok(SourceFile { file: File::open(&source.path)?, bytes_read: Some(bytes_read) })
    }

    /// Opens a source; nothing is counted.
    pub(crate) fn open(source: &Source) -> io::Result<SourceFile<'static>> {
        Ok(SourceFile { file: File::open(&source.path)?, bytes_read: None })
    }

    /// Goes on reading from `offset`.
    pub(crate) fn seek_to(&mut self, offset: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset)).map(|_| ())
    }

    /// Fills `bytes` from `offset` on.
    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)?;
        self.count(bytes.len());
        Ok(())
    }

    fn count(&self, bytes: usize) {
        if let Some(total) = self.bytes_read {
            total.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

impl Read for SourceFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.count(count);
        Ok(count)
    }
}
