//! Long arrays that live in memory up to a limit and in a temporary file beyond it.
//!
//! In: items, appended in runs. Out: any run again, from several threads at once. What was appended
//! is never changed. The file is little-endian, has no name that matters, and goes away with the
//! work directory.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Items with a fixed little-endian form.
pub trait Fixed: Copy + Default {
    /// Bytes per item.
    const BYTES: usize;
    /// Appends the items' bytes.
    fn encode(items: &[Self], bytes: &mut Vec<u8>);
    /// Appends the items the bytes stand for.
    fn decode(bytes: &[u8], items: &mut Vec<Self>);
}

macro_rules! fixed {
    ($($item:ty),*) => {$(
        impl Fixed for $item {
            const BYTES: usize = size_of::<$item>();
            fn encode(items: &[Self], bytes: &mut Vec<u8>) {
                // Fixed-size copies into room that is already there: this becomes one plain copy.
                let start = bytes.len();
                bytes.resize(start + items.len() * Self::BYTES, 0);
                for (room, item) in bytes[start..].chunks_exact_mut(Self::BYTES).zip(items) {
                    room.copy_from_slice(&item.to_le_bytes());
                }
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
fixed!(u8, u32, u64);

/// Serialises numbers by their bytes, for `#[serde(with = "as_bytes")]`: hashes are no shorter as varints, and slower.
pub(crate) mod as_bytes {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    use super::Fixed;

    pub(crate) fn serialize<T: Fixed, S: Serializer>(items: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(items.len() * T::BYTES);
        T::encode(items, &mut bytes);
        serializer.serialize_bytes(&bytes)
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
}

/// Bytes that are collected before they are written.
const WRITE_BYTES: usize = 256 << 10;

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
            if (self.memory.len() + items.len()) * T::BYTES <= self.limit_bytes {
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
        let Some(file) = &self.file else {
            let index = |at: u64| usize::try_from(at).expect("what is in memory is numbered by usize");
            return Ok(&self.memory[index(range.start)..index(range.end)]);
        };
        let count = usize::try_from(range.end - range.start).expect("a run fits the memory it is read into");
        scratch.bytes.resize(count * T::BYTES, 0);
        file.read_exact_at(&mut scratch.bytes, range.start * T::BYTES as u64).map_err(Error::io(&self.path, "read"))?;
        scratch.items.clear();
        T::decode(&scratch.bytes, &mut scratch.items);
        Ok(&scratch.items)
    }
}

/// Scratch space for what is read back from a file.
#[derive(Default)]
pub struct Scratch<T> {
    bytes: Vec<u8>,
    items: Vec<T>,
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
