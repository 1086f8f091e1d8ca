//! The features and sketches of the pages that are compared.
//!
//! In: pages, in any order, as they are read. Out: what any of them is compared by, also of two at a time. Lives in
//! memory up to a limit and in temporary files beyond it, which are mapped.

use std::ops::Range;
use std::path::Path;

use crate::error::Result;
use crate::page::PageId;
use crate::sketch::PageSketch;
use crate::spill::Column;

/// The features of many pages.
pub struct PageSets {
    /// In the order in which they came.
    pages: Vec<PageId>,
    /// The pages, ascending, each with its place among those above; empty if they came in this order.
    sorted: Vec<(PageId, u32)>,
    starts: Vec<u64>,
    features: Column<u64>,
    /// As many as features, or none at all.
    weights: Column<u32>,
    is_weighted: bool,
    sketches: Column<u32>,
    sketch_words: usize,
}

/// The memory of features, weights and sketches.
fn shares(limit_bytes: usize, is_weighted: bool) -> [usize; 3] {
    let eighth = limit_bytes / 8;
    [if is_weighted { eighth * 5 } else { eighth * 7 }, eighth * 2, eighth]
}

/// Some pages' features, on their way from a worker.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub struct SetBatch {
    /// Each page, and where its features and its sketch end.
    ends: Vec<(PageId, usize, usize)>,
    features: Vec<u64>,
    weights: Vec<u32>,
    sketches: Vec<u32>,
}

impl SetBatch {
    /// Adds a page.
    pub fn push(&mut self, page: PageId, sketch: PageSketch<'_>) {
        self.features.extend_from_slice(sketch.features);
        self.weights.extend_from_slice(sketch.weights);
        self.sketches.extend_from_slice(sketch.sketch);
        self.ends.push((page, self.features.len(), self.sketches.len()));
    }

    /// Adds the next page of another batch, of which `taken` were added before.
    pub fn push_of(&mut self, other: &SetBatch, taken: usize, page: PageId) {
        let (start, sketch_start) =
            taken.checked_sub(1).map_or((0, 0), |last| (other.ends[last].1, other.ends[last].2));
        let (_, end, sketch_end) = other.ends[taken];
        let weights = if other.weights.is_empty() { &[] } else { &other.weights[start..end] };
        let (features, sketch) = (&other.features[start..end], &other.sketches[sketch_start..sketch_end]);
        self.push(page, PageSketch { features, weights, sketch });
    }

    /// The page that comes after those that were taken, if there is one.
    #[must_use]
    pub fn page_after(&self, taken: usize) -> Option<PageId> {
        self.ends.get(taken).map(|row| row.0)
    }

    /// Bytes that features and sketches take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.features) + size_of_val(&*self.weights) + size_of_val(&*self.sketches)
    }

    /// Forgets all pages.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.features.clear();
        self.weights.clear();
        self.sketches.clear();
    }
}

impl PageSets {
    /// No pages yet; files go to `directory` when memory outgrows `limit_bytes`. A page has
    /// `sketch_words` words of sketch, and weights if `is_weighted`.
    #[must_use]
    pub fn new(directory: &Path, limit_bytes: usize, sketch_words: usize, is_weighted: bool) -> PageSets {
        let [features, weights, sketches] = shares(limit_bytes, is_weighted);
        PageSets {
            pages: Vec::new(),
            sorted: Vec::new(),
            starts: vec![0],
            features: Column::new(directory.join("page-features"), features),
            weights: Column::new(directory.join("page-weights"), weights),
            is_weighted,
            sketches: Column::new(directory.join("page-sketches"), sketches),
            sketch_words,
        }
    }

    /// Lowers the memory it may take, as of the next page.
    pub fn lower_limit(&mut self, limit_bytes: usize) {
        let [features, weights, sketches] = shares(limit_bytes, self.is_weighted);
        self.features.lower_limit(features);
        self.weights.lower_limit(weights);
        self.sketches.lower_limit(sketches);
    }

    /// Bytes that features take in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.features.memory_bytes() + self.weights.memory_bytes() + self.sketches.memory_bytes()
    }

    /// Makes room for `pages` with `features` in all, or a little less.
    pub fn reserve(&mut self, pages: usize, features: usize) {
        self.features.reserve(features);
        if self.is_weighted {
            self.weights.reserve(features);
        }
        self.sketches.reserve(pages * self.sketch_words);
    }

    /// Adds pages; in the batch they are counted from `start`.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn append(&mut self, batch: &SetBatch, start: usize) -> Result<()> {
        let (mut at, mut sketch_at) = (0, 0);
        for &(page, end, sketch_end) in &batch.ends {
            let weights = if batch.weights.is_empty() { &[] } else { &batch.weights[at..end] };
            self.push(
                page.from_start(start),
                &batch.features[at..end],
                weights,
                &batch.sketches[sketch_at..sketch_end],
            )?;
            (at, sketch_at) = (end, sketch_end);
        }
        Ok(())
    }

    /// Adds a page.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn push(&mut self, page: PageId, features: &[u64], weights: &[u32], sketch: &[u32]) -> Result<()> {
        debug_assert_eq!(weights.len(), if self.is_weighted { features.len() } else { 0 });
        self.pages.push(page);
        self.features.append(features)?;
        self.starts.push(self.features.len());
        self.weights.append(weights)?;
        self.sketches.append(sketch)?;
        Ok(())
    }

    /// To be called after the last page.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        if !self.pages.is_sorted() {
            self.sorted = self.pages.iter().copied().zip(0..).collect();
            self.sorted.sort_unstable();
        }
        self.features.finish()?;
        self.weights.finish()?;
        self.sketches.finish()
    }

    /// Whether features have weights.
    #[must_use]
    pub fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Features of all pages together.
    #[must_use]
    pub fn feature_count(&self) -> u64 {
        self.features.len()
    }

    /// Features of each page.
    pub fn feature_counts(&self) -> impl Iterator<Item = u64> {
        self.starts.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// Features of a page.
    ///
    /// # Panics
    /// If it was not pushed.
    #[must_use]
    pub fn feature_count_of(&self, page: PageId) -> u64 {
        let at = self.place(page);
        self.starts[at + 1] - self.starts[at]
    }

    /// Whether a page is in here.
    #[must_use]
    pub fn contains(&self, page: PageId) -> bool {
        self.find(page).is_some()
    }

    /// Whether anything is on disk.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.features.is_spilled() || self.weights.is_spilled() || self.sketches.is_spilled()
    }

    /// The features of a page.
    ///
    /// # Panics
    /// If it was not pushed, as all that follow.
    #[must_use]
    pub fn features(&self, page: PageId) -> &[u64] {
        &self.features.values()[self.range(self.place(page))]
    }

    /// The features of a page and their weights, of which there are none if each weighs 1.
    #[must_use]
    pub fn weighted_features(&self, page: PageId) -> (&[u64], &[u32]) {
        let range = self.range(self.place(page));
        (&self.features.values()[range.clone()], if self.is_weighted { &self.weights.values()[range] } else { &[] })
    }

    /// What a page is compared by.
    #[must_use]
    pub fn page(&self, page: PageId) -> PageSketch<'_> {
        let at = self.place(page);
        let range = self.range(at);
        PageSketch {
            features: &self.features.values()[range.clone()],
            weights: if self.is_weighted { &self.weights.values()[range] } else { &[] },
            sketch: &self.sketches.values()[at * self.sketch_words..(at + 1) * self.sketch_words],
        }
    }

    /// Where the features of a page are that is in this place.
    fn range(&self, at: usize) -> Range<usize> {
        let index = |start: u64| usize::try_from(start).expect("what is mapped has an address");
        index(self.starts[at])..index(self.starts[at + 1])
    }

    /// Where a page is.
    fn place(&self, page: PageId) -> usize {
        self.find(page).expect("only pages that were pushed are compared")
    }

    fn find(&self, page: PageId) -> Option<usize> {
        if self.sorted.is_empty() {
            return self.pages.binary_search(&page).ok();
        }
        let at = self.sorted.binary_search_by_key(&page, |row| row.0).ok()?;
        Some(self.sorted[at].1 as usize)
    }
}
