//! Band keys: from memory into files, and few large files of many small ones.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::index::bands::{BandRow, BandTable, merge_tables, write_table};
use crate::index::live::bulk::BuildDirectory;
use crate::index::live::manifest::{bands_name, sync_directory};
use crate::index::live::merge::MERGED;
use crate::index::live::open::open_bands;
use crate::index::live::state::IndexState;
use crate::index::live::{BUILDING, Index};

/// The size of a table, in steps of four.
fn size_class(table: &BandTable) -> u32 {
    (table.meta.rows + table.meta.gone).max(1).ilog2() / 2
}

impl Index {
    /// Writes the oldest band keys that wait for it to a file; returns whether there were any. The lock on merging is held
    /// by the caller.
    pub(super) fn write_frozen(&self) -> Result<bool> {
        let Some(frozen) = self.state.load().frozen.first().cloned() else { return Ok(false) };
        let gone: HashSet<u32> = frozen.gone.iter().copied().collect();
        let mut rows: Vec<BandRow> = frozen.rows.iter().copied().filter(|row| !gone.contains(&row.number)).collect();
        rows.sort_unstable();
        rows.dedup();
        let is_first = self.state.load().bands.is_empty();
        let mut gone: Vec<u32> = if is_first { Vec::new() } else { gone.into_iter().collect() };
        gone.sort_unstable();
        let largest = rows.iter().map(|row| row.number).max().unwrap_or(0);
        let size = (rows.len() as u64, largest);
        let made = self.write_bands(rows.into_iter().map(Ok), size, &gone)?;
        let _writing = self.write_lock()?;
        let state = self.state.load();
        let mut bands = state.bands.clone();
        bands.push(made);
        // Others only append.
        let next = state.with_bands(bands, state.frozen[1..].to_vec());
        self.commit(IndexState { store: next.store.covering(frozen.last), ..next })?;
        Ok(true)
    }

    /// Merges tables of like size, if there are any; returns whether there were. The lock on merging is held by the caller.
    pub(super) fn merge_like_bands(&self) -> Result<bool> {
        let state = self.state.load_full();
        let classes: Vec<u32> = state.bands.iter().map(|table| size_class(table)).collect();
        let most = classes.iter().copied().max().unwrap_or(0);
        let like = (0..=most).find_map(|most| {
            let mut from = 0;
            for run in classes.chunk_by(|a, b| (*a <= most) == (*b <= most)) {
                if run[0] <= most && run.len() >= MERGED {
                    return Some(from..from + run.len());
                }
                from += run.len();
            }
            None
        });
        let Some(range) = like else { return Ok(false) };
        self.merge_bands(range)?;
        Ok(true)
    }

    /// Puts one table in the place of several neighbours, without rows that lead nowhere. The lock on merging is held by the
    /// caller.
    pub(super) fn merge_bands(&self, range: Range<usize>) -> Result<()> {
        let state = self.state.load_full();
        let merged = &state.bands[range.clone()];
        let mut gone = HashSet::new();
        for table in merged {
            gone.extend(table.gone()?);
        }
        let size = (
            merged.iter().map(|table| table.meta.rows).sum(),
            merged.iter().map(|table| table.largest_number()).max().unwrap_or(0),
        );
        // What is before all of these may still have rows of pages that are gone.
        let mut left: Vec<u32> = if range.start > 0 { gone.iter().copied().collect() } else { Vec::new() };
        left.sort_unstable();
        let is_live = |number: u32| !gone.contains(&number);
        let made = self.write_bands(merge_tables(merged, &is_live), size, &left)?;
        let _writing = self.write_lock()?;
        let state = self.state.load();
        let mut bands = state.bands.clone();
        let replaced: Vec<Arc<BandTable>> = bands.splice(range, [made]).collect();
        self.commit(state.with_bands(bands, state.frozen.clone()))?;
        replaced.iter().for_each(|table| table.file().remove_when_unused());
        Ok(())
    }

    /// Writes and opens a table.
    fn write_bands(
        &self,
        rows: impl Iterator<Item = Result<BandRow>>,
        size: (u64, u32),
        gone: &[u32],
    ) -> Result<Arc<BandTable>> {
        let number = self.numbers.build.fetch_add(1, Ordering::Relaxed);
        let directory = BuildDirectory(self.directory.join(BUILDING).join(number.to_string()));
        std::fs::create_dir_all(&directory.0).map_err(Error::io(&directory.0, "create"))?;
        let name = bands_name(self.numbers.segment.fetch_add(1, Ordering::Relaxed));
        let aside = directory.0.join(&name);
        let file = File::create(&aside).map_err(Error::io(&aside, "create"))?;
        let out = BufWriter::with_capacity(1 << 20, file);
        let out = write_table(rows, size, gone, self.config.hash(), out, &aside)?;
        let file = out.into_inner().map_err(|error| Error::io(&aside, "write")(error.into_error()))?;
        file.sync_all().map_err(Error::io(&aside, "write"))?;
        let path = self.directory.join(&name);
        std::fs::rename(&aside, &path).map_err(Error::io(&path, "write"))?;
        let opened = open_bands(&path, &self.config).and_then(|table| sync_directory(&self.directory).map(|()| table));
        // Nothing lists it yet.
        let removed = |_: &Error| drop(std::fs::remove_file(&path));
        opened.inspect_err(removed).map(Arc::new)
    }
}
