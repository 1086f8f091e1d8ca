//! Files mapped into memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// The bytes of a file, paged in as they are touched.
#[derive(Debug)]
pub(crate) struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a whole file.
    ///
    /// # Errors
    /// When the system cannot map it.
    ///
    /// # Safety
    /// Nobody may change or shorten the file while it is mapped: its bytes are read as a plain slice, and
    /// reading what was cut off ends the process. Removing it and renaming another over it are fine, as
    /// both leave the mapped file as it is. The system offers no way to check this; whoever wrote the file must know it.
    pub(crate) unsafe fn open(file: &File) -> io::Result<MappedFile> {
        // SAFETY: the caller promises that nobody changes the file.
        unsafe { Mmap::map(file) }.map(MappedFile)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
