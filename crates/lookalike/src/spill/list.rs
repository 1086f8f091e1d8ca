//! Lists that live in memory up to a limit and in a file beyond it, and are used as slices all the same.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::kernel::FileRoom;

/// Items that grow by so many at least.
const LEAST_ITEMS: usize = 64;

/// A list with a bound on the memory it takes: as a slice it can be looked at, changed and sorted, wherever it is. Its file
/// has no name and goes away with it.
#[derive(Debug)]
pub(crate) struct LongList<T> {
    place: Place<T>,
    limit_bytes: usize,
    directory: PathBuf,
}

#[derive(Debug)]
enum Place<T> {
    Memory(Vec<T>),
    File(FileRoom<T>),
}

/// In memory, whatever it takes.
impl<T> Default for LongList<T> {
    fn default() -> LongList<T> {
        LongList::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for LongList<T> {
    fn from(items: Vec<T>) -> LongList<T> {
        LongList { place: Place::Memory(items), limit_bytes: usize::MAX, directory: PathBuf::new() }
    }
}

impl<T: Copy> LongList<T> {
    /// An empty list that moves to a file in `directory` before it takes more memory than `limit_bytes`.
    #[must_use]
    pub fn new(directory: &Path, limit_bytes: usize) -> LongList<T> {
        LongList { place: Place::Memory(Vec::new()), limit_bytes, directory: directory.to_path_buf() }
    }

    /// An empty list with the same limit.
    #[must_use]
    pub fn another<U: Copy>(&self) -> LongList<U> {
        LongList::new(&self.directory, self.limit_bytes)
    }

    /// Adds an item.
    ///
    /// # Errors
    /// When the file cannot be made or the disk is full.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<()> {
        self.extend_from_slice(&[item])
    }

    /// Adds items.
    ///
    /// # Errors
    /// When the file cannot be made or the disk is full.
    #[inline]
    pub fn extend_from_slice(&mut self, items: &[T]) -> Result<()> {
        self.reserve(items.len())?;
        match &mut self.place {
            Place::Memory(memory) => memory.extend_from_slice(items),
            Place::File(file) => file.extend(items),
        }
        Ok(())
    }

    /// Makes room for so many items more.
    ///
    /// # Errors
    /// When the file cannot be made or the disk is full.
    #[inline]
    pub fn reserve(&mut self, items: usize) -> Result<()> {
        let (length, capacity) = match &self.place {
            Place::Memory(memory) => (memory.len(), memory.capacity()),
            Place::File(file) => (file.len(), file.capacity()),
        };
        if length + items <= capacity { Ok(()) } else { self.grow(length + items, capacity) }
    }

    #[cold]
    fn grow(&mut self, needed: usize, capacity: usize) -> Result<()> {
        let grown = needed.max(capacity + capacity / 2).max(LEAST_ITEMS);
        if let Place::Memory(memory) = &mut self.place {
            // While it moves within memory, both places are taken.
            if (capacity + grown).saturating_mul(size_of::<T>()) <= self.limit_bytes {
                memory.reserve_exact(grown - memory.len());
                return Ok(());
            }
            let mut file = FileRoom::in_directory(&self.directory).map_err(Error::io(&self.directory, "create"))?;
            file.grow(grown).map_err(Error::io(&self.directory, "write"))?;
            file.extend(memory);
            self.place = Place::File(file);
            return Ok(());
        }
        if let Place::File(file) = &mut self.place {
            file.grow(grown).map_err(Error::io(&self.directory, "write"))?;
        }
        Ok(())
    }

    /// Leaves out items.
    pub fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        let mut kept = 0;
        for at in 0..self.len() {
            if is_kept(&self[at]) {
                self[kept] = self[at];
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Of neighbours with the same key, keeps the first.
    pub fn dedup_by_key<K: PartialEq>(&mut self, key: impl Fn(&T) -> K) {
        let mut kept = 0;
        for at in 0..self.len() {
            if at == 0 || key(&self[at]) != key(&self[kept - 1]) {
                self[kept] = self[at];
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Forgets all items but the first so many.
    pub fn truncate(&mut self, length: usize) {
        match &mut self.place {
            Place::Memory(memory) => memory.truncate(length),
            Place::File(file) => file.truncate(length),
        }
    }

    /// Whether the items are in a file.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        matches!(self.place, Place::File(_))
    }
}

impl<T: Copy> Deref for LongList<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.place {
            Place::Memory(memory) => memory,
            Place::File(file) => file,
        }
    }
}

impl<T: Copy> DerefMut for LongList<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.place {
            Place::Memory(memory) => memory,
            Place::File(file) => file,
        }
    }
}

impl<'a, T: Copy> IntoIterator for &'a LongList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_list_is_the_same_in_memory_and_in_a_file(
            runs in prop::collection::vec(prop::collection::vec((any::<u16>(), any::<u64>()), 0..60), 0..30),
            limit in 0usize..20_000,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut list = LongList::new(directory.path(), limit);
            let mut expected = Vec::new();
            for run in &runs {
                list.extend_from_slice(run).unwrap();
                expected.extend_from_slice(run);
                prop_assert_eq!(&*list, expected.as_slice());
            }
            prop_assert!(list.is_spilled() || list.len() * 16 <= limit);
            list.retain(|row| row.1 % 3 > 0);
            expected.retain(|row| row.1 % 3 > 0);
            list.sort_unstable();
            expected.sort_unstable();
            list.dedup_by_key(|row| row.0 % 16);
            expected.dedup_by_key(|row| row.0 % 16);
            prop_assert_eq!(&*list, expected.as_slice());
            list.push((7, 7)).unwrap();
            prop_assert_eq!(list.last(), Some(&(7, 7)));
            prop_assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
        }
    }

    #[test]
    fn a_list_that_grows_far_stays_in_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut list = LongList::new(directory.path(), 1000);
        (0..1_000_000u32).for_each(|item| list.push(item).unwrap());
        assert!(list.is_spilled());
        assert!(list.iter().copied().eq(0..1_000_000));
    }
}
