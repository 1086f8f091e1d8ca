//! Rows that come and go: a small tail in memory, segments in memory, segments in files.
//!
//! In: changes (rows to insert and to delete), one writer at a time. Out: a new state for readers after each, by
//! exchanging a pointer. Merging takes neighbours of like size together, beside readers and writers.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::index::build::planner::{self, Budget};
use crate::index::build::{MOST_ROWS, SegmentBuilder};
use crate::index::live::manifest::{Manifest, StoreEntry, segment_name, sync_directory};
use crate::index::live::store::{PageWriter, StoredPage, replace_store};
use crate::index::segment::ids::Id;
use crate::index::segment::{Segment, TableCodec};
use crate::index::{BUILDING, Index, IndexConfig, IndexState, NEW_STORE, STORE, open_segment};
use crate::plan::design::Design;

/// Rows that are looked at one by one, at the most.
const TAIL_ROWS: usize = 256;
/// Segments of a size that are merged.
const MERGED: usize = 4;
/// Rows in memory from which they are written to a file.
pub(crate) const MEMORY_ROWS: u64 = 1 << 18;

/// The rows that came last, and what was deleted since.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub(crate) rows: Vec<(u64, Id)>,
    /// Rows of the segments that are no longer there.
    pub(crate) deleted: Vec<(u64, Id)>,
    /// The number of the last change so far.
    pub(crate) last: u64,
}

/// A row that comes or goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    /// One more row.
    Insert(u64, Id),
    /// Every row with this fingerprint and this id goes away.
    Delete(u64, Id),
}

impl IndexState {
    /// Whether a row of segment `number` was deleted later.
    pub(crate) fn is_deleted(&self, number: usize, fingerprint: u64, id: &Id) -> bool {
        let mut later = self.segments[number + 1..].iter().filter_map(|segment| segment.deleted.get(&fingerprint));
        later.any(|deleted| deleted.contains(id))
            || self.tail.deleted.iter().any(|(deleted, of)| *deleted == fingerprint && of == id)
    }

    /// Whether anything was deleted from segment `number`.
    pub(crate) fn has_deleted(&self, number: usize, fingerprint: u64) -> bool {
        self.segments[number + 1..].iter().any(|segment| segment.deleted.contains_key(&fingerprint))
            || self.tail.deleted.iter().any(|(deleted, _)| *deleted == fingerprint)
    }
}

pub(crate) fn is_in_file(segment: &Segment) -> bool {
    segment.file().path().file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment-"))
}

/// The size of a segment, in steps of four.
fn class(segment: &Segment) -> u32 {
    (segment.meta.rows + segment.meta.deleted).max(1).ilog2() / 2
}

/// Neighbours that are to be merged: at least four of like size.
fn like_sizes(segments: &[Arc<Segment>]) -> Option<std::ops::Range<usize>> {
    let most = segments.iter().map(|segment| class(segment)).max()?;
    (0..=most).find_map(|most| {
        let mut from = 0;
        for at in 0..=segments.len() {
            let is_small = |at: usize| segments.get(at).is_some_and(|segment| class(segment) <= most);
            if !is_small(at) || is_in_file(&segments[at]) != is_in_file(&segments[from]) {
                let rows: u64 = segments[from..at].iter().map(|segment| segment.meta.rows).sum();
                if at - from >= MERGED && rows <= MOST_ROWS {
                    return Some(from..at);
                }
                from = if is_small(at) { at } else { at + 1 };
            }
        }
        None
    })
}

impl Index {
    pub(crate) fn write_lock(&self) -> Result<MutexGuard<'_, ()>> {
        if self.lock.is_none() {
            return Err(Error::Usage(format!("{}: was opened for reading only", self.directory.display())));
        }
        Ok(self.writing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds rows; readers that begin from now on see all of them. They are in memory until
    /// [`flush`](Self::flush) or a merge writes them.
    ///
    /// # Errors
    /// When the index was opened for reading, or ids are of the wrong kind.
    pub fn insert(&self, rows: &[(u64, Id)]) -> Result<()> {
        let changes = rows.iter().map(|(fingerprint, id)| RowChange::Insert(*fingerprint, id.clone()));
        self.apply(&changes.collect::<Vec<_>>(), 0)
    }

    /// An id of the right kind, which no row without one will get.
    fn check_id(&self, id: &Id) -> Result<()> {
        if id.kind() != self.config.ids {
            return Err(Error::Usage(format!("the id '{id}' is not of the kind of the others in this index")));
        }
        if let Id::Number(number) = id {
            self.next_id.fetch_max(number.saturating_add(1), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Removes every row with this fingerprint and this id.
    ///
    /// # Errors
    /// When the index was opened for reading, or the id is of the wrong kind.
    pub fn delete(&self, fingerprint: u64, id: &Id) -> Result<()> {
        self.apply(&[RowChange::Delete(fingerprint, id.clone())], 0)
    }

    /// Makes changes in their order, of which the last has the number `last`; 0 where they have none. Readers that
    /// begin from now on see all of them.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn apply(&self, changes: &[RowChange], last: u64) -> Result<()> {
        let _writing = self.write_lock()?;
        self.make(changes, last)
    }

    /// The same for whoever has the lock, or is the only one to know this index.
    pub(crate) fn make(&self, changes: &[RowChange], last: u64) -> Result<()> {
        let state = self.state.load();
        let mut tail = Tail::clone(&state.tail);
        tail.last = tail.last.max(last);
        for change in changes {
            match change {
                RowChange::Insert(fingerprint, id) => {
                    self.check_id(id)?;
                    tail.rows.push((*fingerprint, id.clone()));
                }
                RowChange::Delete(fingerprint, id) => {
                    self.check_id(id)?;
                    tail.rows.retain(|row| row.0 != *fingerprint || row.1 != *id);
                    if !state.segments.is_empty() {
                        tail.deleted.push((*fingerprint, id.clone()));
                    }
                }
            }
        }
        self.publish(&state, tail)
    }

    /// The number of the last change.
    pub(crate) fn last_change(&self) -> u64 {
        self.state.load().tail.last.max(self.covered())
    }

    /// The number of the last change that is in files, with all before it.
    #[must_use]
    pub fn covered(&self) -> u64 {
        self.covered.load(Ordering::Acquire)
    }

    /// Shows a tail to readers; as a segment, if it is long.
    fn publish(&self, state: &IndexState, tail: Tail) -> Result<()> {
        let mut segments = state.segments.clone();
        let tail = if tail.rows.len() + tail.deleted.len() >= TAIL_ROWS {
            let last = tail.last;
            segments.push(Arc::new(self.in_memory(tail)?));
            Tail { last, ..Tail::default() }
        } else {
            tail
        };
        self.state.store(Arc::new(IndexState { segments, tail: Arc::new(tail), damaged: state.damaged.clone() }));
        Ok(())
    }

    fn in_memory(&self, tail: Tail) -> Result<Segment> {
        let mut builder = builder(self, None, 0)?;
        tail.rows.iter().try_for_each(|(fingerprint, id)| builder.push(*fingerprint, id))?;
        tail.deleted.into_iter().for_each(|(fingerprint, id)| builder.delete(fingerprint, id));
        self.finish_in_memory(builder, tail.last)
    }

    fn finish_in_memory(&self, builder: SegmentBuilder, last: u64) -> Result<Segment> {
        let choose = |rows: u64| self.design(rows);
        let (bytes, _) = builder.finish(self.config.hash(), TableCodec::Raw, choose, Vec::new(), Path::new(""))?;
        let mut segment = Segment::in_memory(bytes)?;
        segment.last = last;
        Ok(segment)
    }

    fn design(&self, rows: u64) -> Result<Design> {
        design(&self.config, rows, self.memory_bytes)
    }

    /// Writes all rows that are only in memory to a file.
    ///
    /// # Errors
    /// When it cannot be written; the rows stay in memory.
    pub fn flush(&self) -> Result<()> {
        let _merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let last = {
            let _writing = self.write_lock()?;
            let state = self.state.load();
            let last = state.tail.last;
            if !state.tail.rows.is_empty() || !state.tail.deleted.is_empty() {
                let mut segments = state.segments.clone();
                segments.push(Arc::new(self.in_memory(Tail::clone(&state.tail))?));
                let damaged = state.damaged.clone();
                let tail = Arc::new(Tail { last, ..Tail::default() });
                self.state.store(Arc::new(IndexState { segments, tail, damaged }));
            }
            last
        };
        let state = self.state.load_full();
        let from = state.segments.iter().position(|segment| !is_in_file(segment)).unwrap_or(state.segments.len());
        if from < state.segments.len() {
            self.merge(from..state.segments.len(), true)?;
        }
        // Changes that leave nothing behind are covered too.
        let _writing = self.write_lock()?;
        if self.covered() < last || !Manifest::path(&self.directory).exists() {
            self.write_manifest(&self.state.load().segments, last)?;
        }
        Ok(())
    }

    /// Merges segments of like size, until there are none; gives how many merges that took.
    ///
    /// # Errors
    /// When a segment cannot be read or written; everything stays as it was.
    pub fn merge_like_sizes(&self) -> Result<usize> {
        let mut merges = 0;
        loop {
            let merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
            let state = self.state.load_full();
            let in_memory =
                state.segments.iter().position(|segment| !is_in_file(segment)).unwrap_or(state.segments.len());
            let in_memory_rows =
                state.segments[in_memory..].iter().map(|segment| segment.meta.rows + segment.meta.deleted);
            let rows: u64 = in_memory_rows.sum();
            let (range, to_file) = if rows >= self.memory_rows {
                (in_memory..state.segments.len(), true)
            } else if let Some(range) = like_sizes(&state.segments) {
                let to_file = is_in_file(&state.segments[range.start]);
                (range, to_file)
            } else {
                return Ok(merges);
            };
            self.merge(range, to_file)?;
            drop(merging);
            merges += 1;
        }
    }

    /// Makes one segment of all, without what was deleted.
    ///
    /// # Errors
    /// When a segment cannot be read or written; everything stays as it was.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let _merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.state.load().segments.len();
        if count > 0 { self.merge(0..count, true) } else { Ok(()) }
    }

    /// Puts one segment in the place of several neighbours. The lock on merging is held by the caller.
    fn merge(&self, range: std::ops::Range<usize>, to_file: bool) -> Result<()> {
        let state = self.state.load_full();
        let merged = &state.segments[range.clone()];
        let last = merged.iter().map(|segment| segment.last).max().unwrap_or(0);
        let mut builders = SegmentBuilders::new(self, to_file)?;
        let mut deleted = Vec::new();
        let only_these = IndexState { segments: merged.to_vec(), tail: Arc::default(), damaged: Vec::new() };
        for (number, segment) in merged.iter().enumerate() {
            segment.for_each_row(|fingerprint, id| {
                if only_these.has_deleted(number, fingerprint) && only_these.is_deleted(number, fingerprint, &id) {
                    return Ok(());
                }
                builders.push(fingerprint, &id)
            })?;
            // What it deletes from segments before all of these is still to be deleted.
            if range.start > 0 {
                for (&fingerprint, ids) in &segment.deleted {
                    deleted.extend(ids.iter().map(|id| (fingerprint, id.clone())));
                }
            }
        }
        // In the same order on every machine, and in the first of what is made, so that nothing in these is meant.
        deleted.sort_unstable();
        deleted.dedup();
        let first = builders.full.first_mut().unwrap_or(&mut builders.last);
        deleted.into_iter().for_each(|(fingerprint, id)| first.delete(fingerprint, id));
        let made = builders.finish(last)?;
        let _writing = self.write_lock()?;
        let state = self.state.load();
        let mut segments = state.segments.clone();
        // Others only append, so that the place is still the same.
        let replaced: Vec<Arc<Segment>> = segments.splice(range, made).collect();
        let damaged = state.damaged.clone();
        if to_file {
            self.write_manifest(&segments, last).inspect_err(|_| self.forget(&segments))?;
        }
        self.state.store(Arc::new(IndexState { segments, tail: Arc::clone(&state.tail), damaged }));
        for segment in replaced.iter().filter(|segment| is_in_file(segment)) {
            segment.file().remove_when_unused();
        }
        Ok(())
    }

    /// Says whether a store beside the segments has changes that they do not cover.
    pub(crate) fn set_store(&self, open: bool) -> Result<()> {
        let _writing = self.write_lock()?;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
        self.write_manifest(&self.state.load().segments, 0)
    }

    /// Gives up segments that no manifest lists, as it could not be written.
    fn forget(&self, segments: &[Arc<Segment>]) {
        // One that cannot be read may list them.
        let Ok(manifest) = Manifest::read(&self.directory) else { return };
        for segment in segments.iter().filter(|segment| is_in_file(segment)) {
            let name = segment.file().path().file_name().unwrap_or_default().to_string_lossy();
            if !manifest.segments.iter().any(|listed| *listed == name) {
                segment.file().remove_when_unused();
            }
        }
    }

    /// The manifest of some of the segments that there are, which cover changes up to `covered`.
    pub(crate) fn manifest(&self, segments: &[Arc<Segment>], covered: u64) -> Manifest {
        let mut manifest = Manifest::new(self.config.clone());
        let is_open = *self.store.lock().unwrap_or_else(PoisonError::into_inner);
        manifest.set_store(is_open.map(|open| StoreEntry { covered, open }));
        manifest.next = self.next.load(Ordering::Relaxed);
        manifest.next_id = self.next_id.load(Ordering::Relaxed);
        for segment in segments.iter().filter(|segment| is_in_file(segment)) {
            manifest.segments.extend(segment.file().path().file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        manifest
    }

    /// Writes the manifest; from then on changes up to `covered` count as covered, which are not before.
    fn write_manifest(&self, segments: &[Arc<Segment>], covered: u64) -> Result<()> {
        let covered = self.covered().max(covered);
        let manifest = self.manifest(segments, covered);
        if self.replaces.load(Ordering::Relaxed) {
            // Changes of the old index are none of the new one.
            replace_store(&self.directory)?;
        }
        manifest.write(&self.directory)?;
        self.covered.store(covered, Ordering::Release);
        if self.replaces.swap(false, Ordering::Relaxed) {
            manifest.remove_strangers(&self.directory)?;
        }
        Ok(())
    }

    /// Takes many rows at once, as one segment.
    ///
    /// # Errors
    /// When the index was opened for reading, or the directory cannot be written.
    pub fn bulk(&self) -> Result<BulkInsert<'_>> {
        drop(self.write_lock()?);
        Ok(BulkInsert { builders: SegmentBuilders::new(self, true)?, kept: None })
    }
}

/// The design of a segment with `rows` different fingerprints.
pub(crate) fn design(config: &IndexConfig, rows: u64, memory_bytes: u64) -> Result<Design> {
    if let Some(cut) = &config.cut {
        return Design::new(64, config.radius, cut.clone()).map_err(Error::Usage);
    }
    let budget = Budget { memory_bytes: Some(memory_bytes), ..Budget::default() };
    // A tight limit is on building; tables that are larger are still read from disk.
    planner::choose(rows, config.radius, budget)
        .or_else(|_| {
            planner::designs(rows, config.radius)?
                .into_iter()
                .next()
                .ok_or_else(|| Error::Usage("no design".to_owned()))
        })
        .map(|estimate| estimate.design)
}

/// A directory for what is being built, which goes away in the end, or when building fails.
struct BuildDirectory(PathBuf);

impl Drop for BuildDirectory {
    fn drop(&mut self) {
        // What stays is removed by the next writer.
        let _ = std::fs::remove_dir_all(&self.0);
        // Not empty if somebody else is building.
        let _ = self.0.parent().map(std::fs::remove_dir);
    }
}

/// Rows that are on their way into segments of bounded size.
struct SegmentBuilders<'i> {
    index: &'i Index,
    /// Where files are made; nowhere for segments in memory.
    place: Option<BuildDirectory>,
    full: Vec<SegmentBuilder>,
    last: SegmentBuilder,
}

impl<'i> SegmentBuilders<'i> {
    fn new(index: &'i Index, to_file: bool) -> Result<SegmentBuilders<'i>> {
        // A place of its own: others may be building at the same time.
        let place = to_file.then(|| {
            let number = index.builds.fetch_add(1, Ordering::Relaxed);
            BuildDirectory(index.directory.join(BUILDING).join(number.to_string()))
        });
        let last = builder(index, place.as_ref(), 0)?;
        Ok(SegmentBuilders { index, place, full: Vec::new(), last })
    }

    fn push(&mut self, fingerprint: u64, id: &Id) -> Result<()> {
        if self.last.rows() == MOST_ROWS {
            let next = builder(self.index, self.place.as_ref(), self.full.len() + 1)?;
            self.full.push(std::mem::replace(&mut self.last, next));
        }
        self.last.push(fingerprint, id)
    }

    /// Writes the segments; what stays in memory holds changes up to the one with the number `last`.
    fn finish(self, last: u64) -> Result<Vec<Arc<Segment>>> {
        let index = self.index;
        let builders = self.full.into_iter().chain([self.last]);
        let Some(place) = self.place else {
            return builders.map(|builder| index.finish_in_memory(builder, last).map(Arc::new)).collect();
        };
        let mut made = Vec::new();
        for builder in builders {
            let choose = |rows: u64| index.design(rows);
            let hash = index.config.hash();
            let name = segment_name(index.next.fetch_add(1, Ordering::Relaxed));
            let aside = place.0.join(&name);
            let file = File::create(&aside).map_err(Error::io(&aside, "create"))?;
            let out = BufWriter::with_capacity(1 << 20, file);
            let (out, _) = builder.finish(hash, index.config.codec, choose, out, &aside)?;
            let file = out.into_inner().map_err(|error| Error::Io {
                path: aside.clone(),
                action: "write",
                cause: error.into_error(),
            })?;
            file.sync_all().map_err(Error::io(&aside, "write"))?;
            let path = index.directory.join(&name);
            std::fs::rename(&aside, &path).map_err(Error::io(&path, "write"))?;
            made.push(Arc::new(open_segment(&path, hash)?));
        }
        sync_directory(&index.directory)?;
        Ok(made)
    }
}

/// A builder with a directory of its own in `place`; without one, all that it takes is in memory.
fn builder(index: &Index, place: Option<&BuildDirectory>, number: usize) -> Result<SegmentBuilder> {
    let Some(place) = place else {
        return Ok(SegmentBuilder::new(index.config.ids, Path::new(""), u64::MAX / 2));
    };
    let directory = place.0.join(number.to_string());
    std::fs::create_dir_all(&directory).map_err(Error::io(&directory, "create"))?;
    Ok(SegmentBuilder::new(index.config.ids, &directory, index.memory_bytes))
}

/// Many rows at once.
pub struct BulkInsert<'i> {
    builders: SegmentBuilders<'i>,
    /// What is kept of pages.
    kept: Option<PageWriter>,
}

impl BulkInsert<'_> {
    /// One more row.
    ///
    /// # Errors
    /// When a temporary file cannot be written, or the id is of the wrong kind.
    pub fn push(&mut self, fingerprint: u64, id: &Id) -> Result<()> {
        self.builders.index.check_id(id)?;
        self.builders.push(fingerprint, id)
    }

    /// Keeps what a service asks for of a page, beside its row.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep(&mut self, id: &Id, page: StoredPage) -> Result<()> {
        let index = self.builders.index;
        if self.kept.is_none() {
            // An index that is there keeps its store until it is replaced.
            let name = if index.replaces.load(Ordering::Relaxed) { NEW_STORE } else { STORE };
            self.kept = Some(PageWriter::new(&index.directory, name)?);
        }
        self.kept.as_mut().map_or(Ok(()), |kept| kept.push(id, page))
    }

    /// Sorts and writes them; readers that begin from now on see all of them.
    ///
    /// # Errors
    /// When the segment cannot be written.
    pub fn finish(self) -> Result<()> {
        let index = self.builders.index;
        let _merging = index.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let made = self.builders.finish(0)?;
        self.kept.map_or(Ok(()), PageWriter::finish)?;
        let _writing = index.write_lock()?;
        let state = index.state.load();
        let mut segments = state.segments.clone();
        // What was deleted before is not to be deleted from these.
        if !state.tail.rows.is_empty() || !state.tail.deleted.is_empty() {
            segments.push(Arc::new(index.in_memory(Tail::clone(&state.tail))?));
        }
        segments.extend(made);
        index.write_manifest(&segments, 0)?;
        let tail = Arc::new(Tail { last: state.tail.last, ..Tail::default() });
        index.state.store(Arc::new(IndexState { segments, tail, damaged: state.damaged.clone() }));
        Ok(())
    }
}
