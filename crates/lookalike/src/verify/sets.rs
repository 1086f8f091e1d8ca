//! The shingle sets and min-values of the pages that are candidates.
//!
//! In: pages, ascending, as they are read again. Out: any two of them compared. Lives in memory up
//! to a limit and in temporary files beyond it.

use std::path::Path;

use crate::error::Result;
use crate::method::Plan;
use crate::page::{PageId, ScoredPair};
use crate::sketch::minhash::agreement;
use crate::spill::{Scratch, Spill};
use crate::verify::jaccard::{jaccard, share, shared};

/// The sets of many pages.
pub struct PageSets {
    pages: Vec<PageId>,
    starts: Vec<u64>,
    shingles: Spill<u64>,
    min_values: Spill<u32>,
    functions: usize,
}

/// Some pages' sets, on their way from a worker.
#[derive(Default)]
pub struct SetBatch {
    /// Each page, and where its shingles and min-values end.
    ends: Vec<(PageId, usize, usize)>,
    shingles: Vec<u64>,
    min_values: Vec<u32>,
}

impl SetBatch {
    /// Adds a page.
    pub fn push(&mut self, page: PageId, (shingle_set, min_values): (&[u64], &[u32])) {
        self.shingles.extend_from_slice(shingle_set);
        self.min_values.extend_from_slice(min_values);
        self.ends.push((page, self.shingles.len(), self.min_values.len()));
    }

    /// Forgets all pages.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.shingles.clear();
        self.min_values.clear();
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no page.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Room to compare in; one per thread.
#[derive(Default)]
pub struct Room {
    left: Scratch<u64>,
    right: Scratch<u64>,
    left_values: Scratch<u32>,
    right_values: Scratch<u32>,
}

impl PageSets {
    /// No pages yet; files go to `directory` when memory outgrows `limit_bytes`.
    #[must_use]
    pub fn new(directory: &Path, limit_bytes: usize, functions: usize) -> PageSets {
        PageSets {
            pages: Vec::new(),
            starts: vec![0],
            shingles: Spill::new(directory.join("candidate-shingles"), limit_bytes / 8 * 7),
            min_values: Spill::new(directory.join("candidate-min-values"), limit_bytes / 8),
            functions,
        }
    }

    /// Makes room for `pages` with `shingles` in all, or a little less.
    pub fn reserve(&mut self, pages: usize, shingles: usize) {
        self.shingles.reserve(shingles);
        self.min_values.reserve(pages * self.functions);
    }

    /// Adds pages, which must come after all before them.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn append(&mut self, batch: &SetBatch) -> Result<()> {
        let (mut shingles, mut min_values) = (0, 0);
        for &(page, shingles_end, values_end) in &batch.ends {
            self.push(page, &batch.shingles[shingles..shingles_end], &batch.min_values[min_values..values_end])?;
            (shingles, min_values) = (shingles_end, values_end);
        }
        Ok(())
    }

    /// Adds a page, which must come after all before it.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn push(&mut self, page: PageId, shingle_set: &[u64], min_values: &[u32]) -> Result<()> {
        debug_assert!(self.pages.last().is_none_or(|&last| last < page));
        self.pages.push(page);
        self.shingles.append(shingle_set)?;
        self.starts.push(self.shingles.len());
        self.min_values.append(min_values)?;
        Ok(())
    }

    /// To be called after the last page.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        self.shingles.finish()?;
        self.min_values.finish()
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether there is no page.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether a page is in here.
    #[must_use]
    pub fn contains(&self, page: PageId) -> bool {
        self.pages.binary_search(&page).is_ok()
    }

    /// Whether anything is on disk.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.shingles.is_spilled() || self.min_values.is_spilled()
    }

    /// Compares two pages exactly.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub fn compare(&self, left: PageId, right: PageId, plan: &Plan, room: &mut Room) -> Result<ScoredPair> {
        let (left, right) = (left.min(right), left.max(right));
        let (at_left, at_right) = (self.place(left), self.place(right));
        let left_set = self.shingles.read(self.starts[at_left]..self.starts[at_left + 1], &mut room.left)?;
        let right_set = self.shingles.read(self.starts[at_right]..self.starts[at_right + 1], &mut room.right)?;
        let functions = self.functions as u64;
        let values = |at: usize| at as u64 * functions..(at as u64 + 1) * functions;
        let left_values = self.min_values.read(values(at_left), &mut room.left_values)?;
        let right_values = self.min_values.read(values(at_right), &mut room.right_values)?;
        let both = shared(left_set, right_set);
        let similarity = jaccard(both, left_set.len(), right_set.len());
        Ok(ScoredPair {
            left,
            right,
            similarity,
            left_in_right: share(both, left_set.len()),
            right_in_left: share(both, right_set.len()),
            score: plan.decision.score(similarity, plan.bands.agreeing(left_values, right_values)),
            estimate: agreement(left_values, right_values),
        })
    }

    /// Where a page is; the pages compared are exactly those that were pushed.
    fn place(&self, page: PageId) -> usize {
        self.pages.binary_search(&page).unwrap_or_default()
    }
}
