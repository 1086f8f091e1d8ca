//! Files mapped into memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::os::unix::fs::FileExt;
use std::path::Path;

use memmap2::{Advice, Mmap, MmapMut};

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

    /// Has the system read a part of the file while other work goes on, and only that part: a page that is touched without this is
    /// read with all that the system reads ahead, up to megabytes. Without effect where the system does not heed it.
    pub(crate) fn will_need(&self, range: Range<usize>) {
        let (from, to) = (range.start.min(self.0.len()), range.end.min(self.0.len()));
        if from < to {
            // Advice that fails changes nothing.
            let _ = self.0.advise_range(Advice::WillNeed, from, to - from);
        }
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

/// The bytes of numbers, in the byte order of this machine; where that is another
/// one than in files, they are written one number after the other.
pub(crate) fn bytes_of<T: AnyBits>(items: &[T]) -> &[u8] {
    // SAFETY: numbers have no padding, any bytes may be looked at, and these are borrowed as long as the numbers are.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast::<u8>(), size_of_val(items)) }
}

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

/// Room for items in a file that has no name: memory that the system can write out.
#[derive(Debug)]
pub(crate) struct FileRoom<T> {
    file: File,
    map: Option<MmapMut>,
    length: usize,
    items: PhantomData<T>,
}

/// Bytes that are written at once where room is made.
const ZEROS: usize = 1 << 20;

impl<T: Copy> FileRoom<T> {
    /// No items, in a directory for temporary files.
    ///
    /// # Errors
    /// When no file can be made there.
    pub(crate) fn in_directory(directory: &Path) -> io::Result<FileRoom<T>> {
        Ok(FileRoom { file: tempfile::tempfile_in(directory)?, map: None, length: 0, items: PhantomData })
    }

    /// Items that there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len() / size_of::<T>())
    }

    /// Makes room for so many items in all.
    ///
    /// # Errors
    /// When the disk is full.
    pub(crate) fn grow(&mut self, capacity: usize) -> io::Result<()> {
        let bytes = capacity.saturating_mul(size_of::<T>()).next_multiple_of(ZEROS);
        let mut at = self.map.as_ref().map_or(0, |map| map.len());
        // Written, as a hole in the file would end the process when it is touched and the disk is full.
        let zeros = vec![0; ZEROS];
        while at < bytes {
            self.file.write_all_at(&zeros, at as u64)?;
            at += ZEROS;
        }
        self.map = None;
        // SAFETY: the file has no name, so nobody else can change or shorten it, and this is the only map of it.
        self.map = Some(unsafe { MmapMut::map_mut(&self.file) }?);
        Ok(())
    }

    /// Adds items, for which there is room.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn extend(&mut self, items: &[T]) {
        assert!(self.length + items.len() <= self.capacity(), "room is made before items are added");
        let Some(map) = &mut self.map else { return };
        let start = map.as_mut_ptr().cast::<T>();
        // SAFETY: there is room for them, as was just checked; the map begins at a page of memory, so it is aligned for any
        // item; `items` is elsewhere, as this map is borrowed.
        unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), start.add(self.length), items.len()) };
        self.length += items.len();
    }

    /// Forgets all items but the first so many.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl<T: Copy> Deref for FileRoom<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let Some(map) = &self.map else { return &[] };
        // SAFETY: so many items were written there by this process, and by nobody else.
        unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<T>(), self.length) }
    }
}

impl<T: Copy> DerefMut for FileRoom<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let Some(map) = &mut self.map else { return &mut [] };
        // SAFETY: as above, and this is the only way to them while it is borrowed.
        unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast::<T>(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::reversed_empty_ranges)] // one of them is
    fn advice_of_any_range_leaves_the_bytes_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(directory.path().join("file"), &bytes).unwrap();
        let file = File::open(directory.path().join("file")).unwrap();
        // SAFETY: the directory has just been made, and nobody else knows it.
        let map = unsafe { MappedFile::open(&file) }.unwrap();
        for range in [0..1, 5..70_000, 4096..4096, 399_999..400_000, 300_000..usize::MAX, 500_000..600_000, 9..3] {
            map.will_need(range);
            assert_eq!(*map, bytes[..]);
        }
    }
}
