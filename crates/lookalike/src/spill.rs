//! Long arrays that live in memory up to a limit and in a temporary file beyond it.
//!
//! In: items, appended in runs. Out: any run again, from several threads at once. What was appended
//! is never changed. The file is little-endian, has no name that matters, and goes away with the
//! work directory. Runs that are read one after the other are read from the file in larger ones.

mod list;

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::ops::{Deref, Index, Range};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::kernel::{AnyBits, MappedFile, MappedItems, bytes_of};
use crate::page::PageId;
pub(crate) use list::LongList;

/// Items with a fixed little-endian form.
pub trait Fixed: Copy + Default {
    /// Bytes per item.
    const BYTES: usize;
    /// Appends the items' bytes.
    fn encode(items: &[Self], bytes: &mut Vec<u8>);
    /// The items' bytes, as they are where they have this form in memory.
    fn bytes(items: &[Self]) -> Cow<'_, [u8]> {
        let mut bytes = Vec::with_capacity(items.len() * Self::BYTES);
        Self::encode(items, &mut bytes);
        bytes.into()
    }
    /// Appends the items the bytes stand for.
    fn decode(bytes: &[u8], items: &mut Vec<Self>);
}

macro_rules! fixed {
    ($($item:ty),*) => {$(
        impl Fixed for $item {
            const BYTES: usize = size_of::<$item>();
            fn encode(items: &[Self], bytes: &mut Vec<u8>) {
                if cfg!(target_endian = "little") {
                    bytes.extend_from_slice(bytes_of(items));
                } else {
                    bytes.extend(items.iter().flat_map(|item| item.to_le_bytes()));
                }
            }
            fn bytes(items: &[Self]) -> Cow<'_, [u8]> {
                if cfg!(target_endian = "little") {
                    return Cow::Borrowed(bytes_of(items));
                }
                let mut bytes = Vec::with_capacity(size_of_val(items));
                Self::encode(items, &mut bytes);
                bytes.into()
            }
            fn decode(bytes: &[u8], items: &mut Vec<Self>) {
                items.extend(bytes.chunks_exact(Self::BYTES).map(|chunk| {
                    let mut item = [0; size_of::<$item>()];
                    item.copy_from_slice(chunk);
                    <$item>::from_le_bytes(item)
                }));
            }
        }
    )*};
}
fixed!(u8, u32, u64, u128);

/// Serialises numbers by their bytes, for `#[serde(with = "as_bytes")]`: hashes are no shorter as varints, and slower.
pub(crate) mod as_bytes {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    use super::Fixed;

    pub(crate) fn serialize<T: Fixed, S: Serializer>(items: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&T::bytes(items))
    }

    pub(crate) fn deserialize<'de, T: Fixed, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        struct Items<T>(PhantomData<T>);
        impl<T: Fixed> Visitor<'_> for Items<T> {
            type Value = Vec<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "items of {} bytes", T::BYTES)
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<T>, E> {
                if !bytes.len().is_multiple_of(T::BYTES) {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                let mut items = Vec::with_capacity(bytes.len() / T::BYTES);
                T::decode(bytes, &mut items);
                Ok(items)
            }
        }
        deserializer.deserialize_bytes(Items(PhantomData))
    }
}

/// An append-only array with a bound on the memory it takes.
pub struct Spill<T> {
    memory: Vec<T>,
    limit_bytes: usize,
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
    write_bytes: usize,
    length: u64,
    /// No other array has it: by this, scratch space knows whose items it has.
    number: u64,
}

/// Bytes that are collected before they are written.
const WRITE_BYTES: usize = 256 << 10;

/// Bytes that are read at once where runs are read one after the other.
const READ_BYTES: usize = 64 << 10;

/// The number of the next array.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl<T: Fixed> Spill<T> {
    /// An empty array that moves to `path` when it outgrows `limit_bytes`.
    #[must_use]
    pub fn new(path: PathBuf, limit_bytes: usize) -> Spill<T> {
        Spill {
            memory: Vec::new(),
            limit_bytes,
            path,
            file: None,
            buffer: Vec::new(),
            write_bytes: WRITE_BYTES,
            length: 0,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The same, written at every [`append`](Self::append): for many arrays at a time, whose items are collected elsewhere.
    #[must_use]
    pub fn unbuffered(path: PathBuf, limit_bytes: usize) -> Spill<T> {
        Spill { write_bytes: 0, ..Spill::new(path, limit_bytes) }
    }

    /// Lowers the memory it may take; it moves when more is appended.
    pub fn lower_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = self.limit_bytes.min(limit_bytes);
    }

    /// Items in all.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Bytes that it takes in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory.capacity() * T::BYTES + self.buffer.capacity()
    }

    /// Whether the items are in a file.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.file.is_some()
    }

    /// Makes room for `items` more, as far as they may stay in memory: growing step by step would
    /// copy everything several times.
    pub fn reserve(&mut self, items: usize) {
        if self.file.is_none() {
            self.memory.reserve_exact(items.min(self.limit_bytes / T::BYTES));
        }
    }

    /// Appends `items`; returns where they start.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub fn append(&mut self, items: &[T]) -> Result<u64> {
        let start = self.length;
        self.length += items.len() as u64;
        if self.file.is_none() {
            let needed = self.memory.len() + items.len();
            if needed * T::BYTES <= self.limit_bytes {
                if needed > self.memory.capacity() {
                    // It grows by half, and never beyond what it may take.
                    let grown = (self.memory.capacity() * 3 / 2).clamp(needed, self.limit_bytes / T::BYTES);
                    self.memory.reserve_exact(grown - self.memory.len());
                }
                self.memory.extend_from_slice(items);
                return Ok(start);
            }
            let file = File::options().create(true).truncate(true).read(true).write(true).open(&self.path);
            self.file = Some(file.map_err(Error::io(&self.path, "create"))?);
            let memory = std::mem::take(&mut self.memory);
            for run in memory.chunks(WRITE_BYTES) {
                T::encode(run, &mut self.buffer);
                self.write_out()?;
            }
        }
        T::encode(items, &mut self.buffer);
        if self.buffer.len() >= self.write_bytes {
            self.write_out()?;
        }
        Ok(start)
    }

    /// To be called once after the last [`append`](Self::append) and before the first read.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        self.write_out()?;
        self.buffer = Vec::new();
        Ok(())
    }

    /// Forgets all items, and their file.
    pub fn remove(self) {
        if self.file.is_some() {
            // If not now, it goes away with the work directory.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn write_out(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer).map_err(Error::io(&self.path, "write"))?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// The items in `range`, from memory or through `scratch`.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    ///
    /// # Panics
    /// If there are no such items.
    pub fn read<'a>(&'a self, range: Range<u64>, scratch: &'a mut Scratch<T>) -> Result<&'a [T]> {
        let index = |at: u64| usize::try_from(at).expect("a run fits the memory it is read into");
        let Some(file) = &self.file else {
            return Ok(&self.memory[index(range.start)..index(range.end)]);
        };
        let known = if scratch.owner == self.number { scratch.start..scratch.end() } else { 0..0 };
        if range.start < known.start || range.end > known.end {
            // Whoever reads on where the last run ended will read on.
            let is_next = known.end > 0 && (known.start..=known.end).contains(&range.start);
            let ahead = if is_next { (READ_BYTES / T::BYTES) as u64 } else { 0 };
            let end = range.end.max((range.start + ahead).min(self.length));
            scratch.owner = 0;
            scratch.bytes.resize(index(end - range.start) * T::BYTES, 0);
            let at = range.start * T::BYTES as u64;
            file.read_exact_at(&mut scratch.bytes, at).map_err(Error::io(&self.path, "read"))?;
            scratch.items.clear();
            T::decode(&scratch.bytes, &mut scratch.items);
            (scratch.owner, scratch.start) = (self.number, range.start);
        }
        Ok(&scratch.items[index(range.start - scratch.start)..index(range.end - scratch.start)])
    }
}

impl<T: Fixed + AnyBits> Spill<T> {
    /// All items at once, from memory or, where they are in a file, from there as they are looked at.
    ///
    /// # Errors
    /// When the temporary file cannot be mapped.
    pub(crate) fn all(&self) -> Result<AllItems<'_, T>> {
        Ok(self.of_file()?.unwrap_or(AllItems::Memory(&self.memory)))
    }

    /// All items if they are in a file. To be called after [`finish`](Self::finish).
    ///
    /// # Errors
    /// When the temporary file cannot be mapped.
    #[allow(unsafe_code)] // the one place that knows how the file was made
    fn of_file<'a>(&self) -> Result<Option<AllItems<'a, T>>> {
        let Some(file) = &self.file else { return Ok(None) };
        if cfg!(target_endian = "big") {
            let mut scratch = Scratch::default();
            self.read(0..self.length, &mut scratch)?;
            return Ok(Some(AllItems::Decoded(scratch.items)));
        }
        // SAFETY: the file is in a work directory that is locked, written by this array alone, and not any more.
        let map = unsafe { MappedFile::open(file) }.map_err(Error::io(&self.path, "map"))?;
        Ok(Some(AllItems::Mapped(MappedItems::new(map))))
    }
}

/// All items of an array.
pub(crate) enum AllItems<'a, T> {
    /// They are in memory.
    Memory(&'a [T]),
    /// They are in a file.
    Mapped(MappedItems<T>),
    /// They are in a file, in another byte order than this machine's.
    Decoded(Vec<T>),
}

impl<T: AnyBits> Deref for AllItems<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            AllItems::Memory(items) => items,
            AllItems::Mapped(items) => items,
            AllItems::Decoded(items) => items,
        }
    }
}

/// Values of all pages, in their order: in memory up to a limit, and in a file beyond it, from which they are read as they
/// are looked at.
pub(crate) struct Column<T: 'static> {
    values: Spill<T>,
    mapped: Option<AllItems<'static, T>>,
}

impl<T: Fixed + AnyBits> Column<T> {
    /// An empty column that moves to `path` when it outgrows `limit_bytes`.
    #[must_use]
    pub(crate) fn new(path: PathBuf, limit_bytes: usize) -> Column<T> {
        Column { values: Spill::new(path, limit_bytes), mapped: None }
    }

    /// Lowers the memory it may take; it moves when more is added.
    pub(crate) fn lower_limit(&mut self, limit_bytes: usize) {
        self.values.lower_limit(limit_bytes);
    }

    /// Bytes that it takes in memory.
    #[must_use]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.values.memory_bytes()
    }

    /// Adds the value of the next page.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn push(&mut self, value: T) -> Result<()> {
        self.values.append(&[value]).map(|_| ())
    }

    /// Adds values.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn append(&mut self, values: &[T]) -> Result<()> {
        self.values.append(values).map(|_| ())
    }

    /// Makes room for so many values more, as far as they may stay in memory.
    pub(crate) fn reserve(&mut self, values: usize) {
        self.values.reserve(values);
    }

    /// Values in all.
    #[must_use]
    pub(crate) fn len(&self) -> u64 {
        self.values.len()
    }

    /// Whether the values are in a file.
    #[must_use]
    pub(crate) fn is_spilled(&self) -> bool {
        self.values.is_spilled()
    }

    /// To be called after the last [`push`](Self::push).
    ///
    /// # Errors
    /// When the temporary file cannot be written or mapped.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.values.finish()?;
        self.mapped = self.values.of_file()?;
        Ok(())
    }

    /// The values.
    pub(crate) fn values(&self) -> &[T] {
        self.mapped.as_deref().unwrap_or(&self.values.memory)
    }
}

impl<T: Fixed + AnyBits> Index<PageId> for Column<T> {
    type Output = T;

    #[inline]
    fn index(&self, page: PageId) -> &T {
        &self.values()[page.index()]
    }
}

/// Scratch space for what is read back from a file.
#[derive(Default)]
pub struct Scratch<T> {
    bytes: Vec<u8>,
    /// The number of the array whose items these are; 0 for none.
    owner: u64,
    /// Which item the first one is.
    start: u64,
    items: Vec<T>,
}

impl<T> Scratch<T> {
    fn end(&self) -> u64 {
        self.start + self.items.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_in_several_steps_comes_out_whole() {
        let directory = tempfile::tempdir().unwrap();
        let items: Vec<u64> = (0..WRITE_BYTES as u64).collect();
        let mut spill = Spill::new(directory.path().join("items"), 1000);
        for run in items.chunks(777) {
            spill.append(run).unwrap();
        }
        spill.finish().unwrap();
        assert!(spill.is_spilled());
        assert_eq!(spill.read(0..spill.len(), &mut Scratch::default()).unwrap(), items);
    }

    proptest! {
        #[test]
        fn bytes_of_items_are_those_of_one_after_the_other(
            long in prop::collection::vec(any::<u128>(), 0..20),
            words in prop::collection::vec(any::<u64>(), 0..20),
            halves in prop::collection::vec(any::<u32>(), 0..20),
        ) {
            let expected = |items: &mut dyn Iterator<Item = Vec<u8>>| items.flatten().collect::<Vec<u8>>();
            prop_assert_eq!(&*u128::bytes(&long), expected(&mut long.iter().map(|item| item.to_le_bytes().to_vec())));
            prop_assert_eq!(&*u64::bytes(&words), expected(&mut words.iter().map(|item| item.to_le_bytes().to_vec())));
            prop_assert_eq!(&*u32::bytes(&halves), expected(&mut halves.iter().map(|item| item.to_le_bytes().to_vec())));
            let mut decoded = Vec::new();
            u64::decode(&u64::bytes(&words), &mut decoded);
            prop_assert_eq!(decoded, words);
        }

        #[test]
        fn what_went_in_comes_out_in_memory_and_from_a_file(
            runs in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..40), 0..20),
            limit in 0usize..4000,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut spill = Spill::new(directory.path().join("items"), limit);
            let starts: Vec<u64> = runs.iter().map(|run| spill.append(run).unwrap()).collect();
            spill.finish().unwrap();
            let items: usize = runs.iter().map(Vec::len).sum();
            prop_assert_eq!(spill.len(), items as u64);
            prop_assert_eq!(spill.is_spilled(), items * 8 > limit);
            let mut scratch = Scratch::default();
            for (run, start) in runs.iter().zip(starts) {
                prop_assert_eq!(spill.read(start..start + run.len() as u64, &mut scratch).unwrap(), run.as_slice());
            }
        }
    }
}
