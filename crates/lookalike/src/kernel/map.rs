//! Files mapped into memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// The bytes of a file, paged in as they are touched.
#[derive(Debug)]
pub struct Map(Mmap);

impl Map {
    /// Maps a whole file, which nobody may change or shorten while it is mapped.
    ///
    /// # Errors
    /// When the system cannot map it.
    pub fn open(file: &File) -> io::Result<Map> {
        // SAFETY: the files that are mapped are written once, under another name, and only ever
        // removed afterwards, which leaves the mapping intact.
        unsafe { Mmap::map(file) }.map(Map)
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
