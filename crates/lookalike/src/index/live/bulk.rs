//! Many rows at once, as segments of their own.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::index::build::planner::{self, Budget};
use crate::index::build::{MOST_ROWS, SegmentBuilder};
use crate::index::live::manifest::{IndexConfig, segment_name, sync_directory};
use crate::index::live::open::open_segment;
use crate::index::live::state::StoreState;
use crate::index::live::store::PageWriter;
use crate::index::live::{BUILDING, Index, NEW_STORE, STORE};
use crate::index::rows::StoredPage;
use crate::index::segment::Segment;
use crate::index::segment::ids::Id;
use crate::plan::design::Design;

/// The design of a segment with `rows` different fingerprints.
pub(super) fn design(config: &IndexConfig, rows: u64, memory_bytes: u64) -> Result<Design> {
    if let Some(cut) = &config.cut {
        // Checked when the index was made and when it was opened.
        return Design::new(64, config.radius, cut.clone()).map_err(Error::internal);
    }
    let budget = Budget { memory_bytes: Some(memory_bytes), ..Budget::default() };
    // A tight limit is on building; tables that are larger are still read from disk.
    planner::choose(planner::INDEXED_BITS, rows, config.radius, budget)
        .or_else(|_| {
            let smallest = planner::designs(planner::INDEXED_BITS, rows, config.radius)?.into_iter().next();
            smallest.ok_or_else(|| Error::internal(format!("no table design serves radius {}", config.radius)))
        })
        .map(|estimate| estimate.design)
}

/// A directory for what is being built, which goes away in the end, or when building fails.
pub(super) struct BuildDirectory(pub(super) PathBuf);

impl Drop for BuildDirectory {
    fn drop(&mut self) {
        // What stays is removed by the next writer.
        let _ = std::fs::remove_dir_all(&self.0);
        // Not empty if somebody else is building.
        let _ = self.0.parent().map(std::fs::remove_dir);
    }
}

/// Rows that are on their way into segments of bounded size.
pub(super) struct SegmentBuilders<'i> {
    index: &'i Index,
    /// Where files are made; nowhere for segments in memory.
    directory: Option<BuildDirectory>,
    full: Vec<SegmentBuilder>,
    last: SegmentBuilder,
}

impl<'i> SegmentBuilders<'i> {
    pub(super) fn new(index: &'i Index, to_file: bool) -> Result<SegmentBuilders<'i>> {
        // A directory of its own: others may be building at the same time.
        let directory = to_file.then(|| {
            let number = index.numbers.build.fetch_add(1, Ordering::Relaxed);
            BuildDirectory(index.directory.join(BUILDING).join(number.to_string()))
        });
        let last = builder(index, directory.as_ref(), 0)?;
        Ok(SegmentBuilders { index, directory, full: Vec::new(), last })
    }

    pub(super) fn push(&mut self, fingerprint: u64, id: &Id) -> Result<()> {
        if self.last.rows() == MOST_ROWS {
            let next = builder(self.index, self.directory.as_ref(), self.full.len() + 1)?;
            self.full.push(std::mem::replace(&mut self.last, next));
        }
        self.last.push(fingerprint, id)
    }

    /// Rows of older segments that are no longer there. They go into the first segment that is made, so that no row of
    /// these is meant.
    pub(super) fn delete(&mut self, rows: Vec<(u64, Id)>) {
        let first = self.full.first_mut().unwrap_or(&mut self.last);
        rows.into_iter().for_each(|(fingerprint, id)| first.delete(fingerprint, id));
    }

    /// Writes the segments; what stays in memory holds changes up to the one with the number `last`.
    pub(super) fn finish(self, last: u64) -> Result<Vec<Arc<Segment>>> {
        let index = self.index;
        let builders = self.full.into_iter().chain([self.last]);
        let Some(directory) = self.directory else {
            return builders.map(|builder| index.finish_in_memory(builder, last).map(Arc::new)).collect();
        };
        let mut made = Vec::new();
        for builder in builders {
            let choose = |rows: u64| design(&index.config, rows, index.memory_bytes);
            let name = segment_name(index.numbers.segment.fetch_add(1, Ordering::Relaxed));
            let aside = directory.0.join(&name);
            let file = File::create(&aside).map_err(Error::io(&aside, "create"))?;
            let out = BufWriter::with_capacity(1 << 20, file);
            let (out, _) = builder.finish(index.config.hash(), index.config.table_format(), choose, out, &aside)?;
            let file = out.into_inner().map_err(|error| Error::io(&aside, "write")(error.into_error()))?;
            file.sync_all().map_err(Error::io(&aside, "write"))?;
            let path = index.directory.join(&name);
            std::fs::rename(&aside, &path).map_err(Error::io(&path, "write"))?;
            // What was made goes with the failure: nothing lists it yet.
            let forget = |made: &[Arc<Segment>]| {
                drop(std::fs::remove_file(&path));
                made.iter().for_each(|segment| segment.file().remove_when_unused());
            };
            let opened = open_segment(&path, &index.config).inspect_err(|_| forget(&made))?;
            made.push(Arc::new(opened));
        }
        sync_directory(&index.directory)
            .inspect_err(|_| made.iter().for_each(|segment| segment.file().remove_when_unused()))?;
        Ok(made)
    }
}

/// A builder with a directory of its own in `directory`; without one, all that it takes is in memory.
fn builder(index: &Index, directory: Option<&BuildDirectory>, number: usize) -> Result<SegmentBuilder> {
    let Some(directory) = directory else { return Ok(SegmentBuilder::in_memory(index.config.ids)) };
    let directory = directory.0.join(number.to_string());
    std::fs::create_dir_all(&directory).map_err(Error::io(&directory, "create"))?;
    Ok(SegmentBuilder::new(index.config.ids, &directory, index.memory_bytes))
}

/// Many rows at once.
pub struct BulkInsert<'i> {
    builders: SegmentBuilders<'i>,
    /// What is kept of pages.
    pages: Option<PageWriter>,
}

impl Index {
    /// Takes many rows at once, as one segment.
    ///
    /// # Errors
    /// When the index was opened for reading, or the directory cannot be written.
    pub fn bulk_insert(&self) -> Result<BulkInsert<'_>> {
        drop(self.write_lock()?);
        Ok(BulkInsert { builders: SegmentBuilders::new(self, true)?, pages: None })
    }
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
        let pages = match &mut self.pages {
            Some(pages) => pages,
            none => {
                let index = self.builders.index;
                // An index that is there keeps its store until it is replaced.
                let is_new = index.state.load().store == StoreState::Unwritten;
                none.insert(PageWriter::new(&index.directory, if is_new { NEW_STORE } else { STORE })?)
            }
        };
        pages.push(id, page)
    }

    /// Sorts and writes them; readers that begin from now on see all of them.
    ///
    /// # Errors
    /// When the segment cannot be written.
    pub fn finish(self) -> Result<()> {
        let index = self.builders.index;
        let _merging = index.merge_lock();
        let made = self.builders.finish(0)?;
        self.pages.map_or(Ok(()), PageWriter::finish)?;
        let _writing = index.write_lock()?;
        let state = index.state.load();
        // What was deleted before is not to be deleted from these.
        let mut next = index.with_tail_as_segment(&state, &state.tail)?;
        next.segments.extend(made);
        index.commit(next)
    }
}
