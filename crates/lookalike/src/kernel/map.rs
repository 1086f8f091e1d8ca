//! Files mapped into memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
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

/// Numbers that any bytes stand for.
pub(crate) trait AnyBits: Copy {}
impl AnyBits for u8 {}
impl AnyBits for u32 {}
impl AnyBits for u64 {}
impl AnyBits for u128 {}

/// The numbers in a file, in the byte order of this machine.
#[derive(Debug)]
pub(crate) struct MappedItems<T> {
    file: MappedFile,
    items: PhantomData<T>,
}

impl<T: AnyBits> MappedItems<T> {
    /// The numbers of a whole file.
    pub(crate) fn new(file: MappedFile) -> MappedItems<T> {
        MappedItems { file, items: PhantomData }
    }
}

impl<T: AnyBits> Deref for MappedItems<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: any bytes are a number. What is mapped begins at a page of memory, so nothing is left out before the first.
        unsafe { self.file.align_to::<T>() }.1
    }
}
