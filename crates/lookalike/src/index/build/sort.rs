//! Sorting in bounded memory: radix sort, and a merge of sorted runs in files beyond the limit.
//!
//! In: items with a 64-bit key, in any order. Out: the items by key, those with equal keys in the order
//! in which they came; as often as wanted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::index::segment::SortedKeys;
use crate::spill::{Fixed, Scratch, Spill};

/// What is sorted.
pub(crate) trait Sortable: Fixed + Send + Sync {
    /// What it is sorted by.
    fn key(&self) -> u64;
}

impl Sortable for u64 {
    #[inline]
    fn key(&self) -> u64 {
        *self
    }
}

/// A key and what belongs to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeyedId {
    pub(crate) key: u64,
    pub(crate) id: u64,
}

impl Sortable for KeyedId {
    #[inline]
    fn key(&self) -> u64 {
        self.key
    }
}

impl Fixed for KeyedId {
    const BYTES: usize = 16;

    fn encode(items: &[KeyedId], bytes: &mut Vec<u8>) {
        for row in items {
            bytes.extend_from_slice(&row.key.to_le_bytes());
            bytes.extend_from_slice(&row.id.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8], items: &mut Vec<KeyedId>) {
        let mut words = Vec::with_capacity(bytes.len() / 8);
        u64::decode(bytes, &mut words);
        items.extend(words.chunks_exact(2).map(|pair| KeyedId { key: pair[0], id: pair[1] }));
    }
}

/// Bits of the first digit: as many places as the processor can keep the addresses of.
const FIRST: u32 = 10;
/// Bits of the others, in parts that fit the cache.
const DIGIT: u32 = 11;
/// Fewer items are left to the standard library.
const FEW: usize = 512;

#[inline]
fn digit(key: u64, shift: u32, bits: u32) -> usize {
    #[allow(clippy::cast_possible_truncation)] // masked
    let digit = (key >> shift) as usize & ((1 << bits) - 1);
    digit
}

/// Sorts by the first digit into parts, which are sorted side by side; `sorted` is scratch.
fn sort<T: Sortable>(items: &mut Vec<T>, sorted: &mut Vec<T>) {
    if items.len() <= FEW * 8 {
        items.sort_by_key(Sortable::key);
        return;
    }
    sorted.resize(items.len(), T::default());
    let ends = scatter(items, sorted, 64 - FIRST, FIRST);
    // Parts of both arrays, so that each part has its own scratch.
    let mut parts = Vec::with_capacity(1 << FIRST);
    let (mut rest, mut rest_scratch, mut from) = (sorted.as_mut_slice(), items.as_mut_slice(), 0);
    for end in ends {
        let (part, behind) = rest.split_at_mut(end - from);
        let (scratch, scratch_behind) = rest_scratch.split_at_mut(end - from);
        parts.push((part, scratch));
        (rest, rest_scratch, from) = (behind, scratch_behind, end);
    }
    parts.into_par_iter().for_each(|(part, scratch)| sort_part(part, scratch));
    std::mem::swap(items, sorted);
}

/// Moves items to where their digit belongs; returns the end of each digit's items.
fn scatter<T: Sortable>(from: &[T], to: &mut [T], shift: u32, bits: u32) -> Vec<usize> {
    let mut places = vec![0usize; 1 << bits];
    for item in from {
        places[digit(item.key(), shift, bits)] += 1;
    }
    let mut start = 0;
    for place in &mut places {
        start += std::mem::replace(place, start);
    }
    for item in from {
        let place = &mut places[digit(item.key(), shift, bits)];
        to[*place] = *item;
        *place += 1;
    }
    places
}

/// Sorts items with a common first digit: by the next two, and where those are equal by comparing.
fn sort_part<T: Sortable>(part: &mut [T], scratch: &mut [T]) {
    if part.len() <= FEW {
        part.sort_by_key(Sortable::key);
        return;
    }
    const KNOWN: u32 = FIRST + 2 * DIGIT;
    scatter(part, scratch, 64 - KNOWN, DIGIT);
    scatter(scratch, part, 64 - KNOWN + DIGIT, DIGIT);
    let known = |item: &T| item.key() >> (64 - KNOWN);
    for run in part.chunk_by_mut(|left, right| known(left) == known(right)) {
        if run.len() > 1 {
            run.sort_by_key(Sortable::key);
        }
    }
}

/// Takes items and sorts them.
pub(crate) struct Sorter<T> {
    items: Vec<T>,
    /// Where they are moved to.
    scratch: Vec<T>,
    /// Items that are sorted in memory at once.
    limit: usize,
    directory: PathBuf,
    name: String,
    runs: Vec<PathBuf>,
    count: u64,
}

impl<T: Sortable> Sorter<T> {
    /// A sorter with `memory_bytes`, which puts what does not fit into files in `directory`.
    pub(crate) fn new(directory: &Path, name: &str, memory_bytes: u64, buffers: SortBuffers<T>) -> Sorter<T> {
        // The items, and as much again for moving them; more than the address space is not a limit.
        let limit = usize::try_from(memory_bytes / (2 * T::BYTES as u64)).unwrap_or(usize::MAX).max(1024);
        let SortBuffers { mut items, scratch } = buffers;
        items.clear();
        Sorter {
            items,
            scratch,
            limit,
            directory: directory.to_path_buf(),
            name: name.to_owned(),
            runs: Vec::new(),
            count: 0,
        }
    }

    /// One more item.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Result<()> {
        if self.items.len() >= self.limit {
            self.write_run()?;
        }
        if self.items.len() == self.items.capacity() {
            // Doubling, but never beyond the limit.
            let more = self.items.len().max(1024).min(self.limit - self.items.len());
            self.items.reserve_exact(more);
        }
        self.items.push(item);
        self.count += 1;
        Ok(())
    }

    /// Items so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    fn write_run(&mut self) -> Result<()> {
        sort(&mut self.items, &mut self.scratch);
        let path = self.directory.join(format!("{}-{}", self.name, self.runs.len()));
        let file = File::create(&path).map_err(Error::io(&path, "create"))?;
        self.runs.push(path.clone());
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let mut bytes = Vec::new();
        for some in self.items.chunks(4096) {
            bytes.clear();
            T::encode(some, &mut bytes);
            out.write_all(&bytes).map_err(Error::io(&path, "write"))?;
        }
        out.flush().map_err(Error::io(&path, "write"))?;
        self.items.clear();
        Ok(())
    }

    /// All items, sorted.
    pub(crate) fn finish(mut self) -> Result<SortedItems<T>> {
        if self.runs.is_empty() {
            sort(&mut self.items, &mut self.scratch);
        } else {
            self.write_run()?;
        }
        Ok(SortedItems { items: self.items, scratch: self.scratch, runs: self.runs })
    }
}

/// Sorted items; files that hold them go away with this.
pub(crate) struct SortedItems<T> {
    items: Vec<T>,
    scratch: Vec<T>,
    runs: Vec<PathBuf>,
}

impl<T> Drop for SortedItems<T> {
    fn drop(&mut self) {
        for run in &self.runs {
            // The directory goes away in the end, and the file with it.
            let _ = std::fs::remove_file(run);
        }
    }
}

impl<T: Sortable> SortedItems<T> {
    /// Visits all items in order, some at a time.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[T]) -> Result<()>) -> Result<()> {
        if !self.items.is_empty() {
            visit(&self.items)?;
        }
        let mut runs = self.runs.iter().map(|path| RunReader::open(path)).collect::<Result<Vec<RunReader<'_, T>>>>()?;
        let mut heap = BinaryHeap::new();
        for (at, run) in runs.iter_mut().enumerate() {
            heap.extend(run.peek()?.map(|item| Reverse((item.key(), at))));
        }
        let mut merged = Vec::with_capacity(4096);
        // While one run has the smallest key, there is no need to ask the others.
        while let Some(Reverse((_, at))) = heap.pop() {
            let bound = heap.peek().map(|&Reverse(other)| other);
            while let Some(item) = runs[at].peek()? {
                if bound.is_some_and(|bound| (item.key(), at) > bound) {
                    heap.push(Reverse((item.key(), at)));
                    break;
                }
                if merged.len() == merged.capacity() {
                    visit(&merged)?;
                    merged.clear();
                }
                merged.push(item);
                runs[at].next += 1;
            }
        }
        if merged.is_empty() { Ok(()) } else { visit(&merged) }
    }

    /// The memory it has, for what is sorted next.
    pub(crate) fn into_buffers(mut self) -> SortBuffers<T> {
        SortBuffers { items: std::mem::take(&mut self.items), scratch: std::mem::take(&mut self.scratch) }
    }
}

/// Memory of what was sorted before.
pub(crate) struct SortBuffers<T> {
    items: Vec<T>,
    scratch: Vec<T>,
}

impl<T> Default for SortBuffers<T> {
    fn default() -> SortBuffers<T> {
        SortBuffers { items: Vec::new(), scratch: Vec::new() }
    }
}

impl SortedKeys for SortedItems<u64> {
    fn visit(&self, visit: &mut dyn FnMut(&[u64]) -> Result<()>) -> Result<()> {
        self.for_each(visit)
    }
}

impl SortedKeys for Spill<u64> {
    fn visit(&self, visit: &mut dyn FnMut(&[u64]) -> Result<()>) -> Result<()> {
        let mut scratch = Scratch::default();
        let mut from = 0;
        while from < self.len() {
            let to = (from + (1 << 17)).min(self.len());
            visit(self.read(from..to, &mut scratch)?)?;
            from = to;
        }
        Ok(())
    }
}

/// Reads a sorted file from front to back.
struct RunReader<'a, T> {
    path: &'a Path,
    file: File,
    bytes: Vec<u8>,
    items: Vec<T>,
    next: usize,
}

/// Bytes of a run in memory.
const RUN_BYTES: u64 = 256 << 10;

impl<'a, T: Sortable> RunReader<'a, T> {
    fn open(path: &'a Path) -> Result<RunReader<'a, T>> {
        let file = File::open(path).map_err(Error::io(path, "read"))?;
        Ok(RunReader { path, file, bytes: Vec::new(), items: Vec::new(), next: 0 })
    }

    #[inline]
    fn peek(&mut self) -> Result<Option<T>> {
        if self.next == self.items.len() {
            self.bytes.clear();
            self.items.clear();
            self.next = 0;
            (&self.file).take(RUN_BYTES).read_to_end(&mut self.bytes).map_err(Error::io(self.path, "read"))?;
            T::decode(&self.bytes, &mut self.items);
        }
        Ok(self.items.get(self.next).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_random;
    use proptest::prelude::*;

    fn sorted<T: Sortable>(items: &[T], memory: u64) -> Vec<T> {
        let directory = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(directory.path(), "run", memory, SortBuffers::default());
        items.iter().for_each(|&item| sorter.push(item).unwrap());
        let sorted = sorter.finish().unwrap();
        // As often as wanted.
        let [once, again] = [(); 2].map(|()| {
            let mut out = Vec::new();
            let mut take = |items: &[T]| {
                out.extend_from_slice(items);
                Ok(())
            };
            sorted.for_each(&mut take).unwrap();
            out
        });
        assert!(once.iter().map(Sortable::key).eq(again.iter().map(Sortable::key)));
        drop(sorted);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "runs are left");
        once
    }

    #[test]
    fn many_rows_skewed_rows_and_runs_in_files_come_out_sorted_and_stable() {
        let mut state = 11;
        for spread in [0, 3, 20, 40, 64] {
            let rows: Vec<KeyedId> = (0..60_000)
                .map(|id| KeyedId {
                    key: next_random(&mut state).unbounded_shr(64 - spread).rotate_right(spread / 2),
                    id,
                })
                .collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| row.key);
            assert!(sorted(&rows, 1 << 30) == expected, "in memory, {spread} bits");
            assert!(sorted(&rows, 100_000) == expected, "from runs, {spread} bits");
        }
    }

    proptest! {
        #[test]
        fn keys_come_out_sorted(keys in prop::collection::vec(any::<u64>(), 0..3000), memory in 1u64..100_000) {
            let mut expected = keys.clone();
            expected.sort_unstable();
            prop_assert_eq!(sorted(&keys, memory), expected);
        }
    }
}
