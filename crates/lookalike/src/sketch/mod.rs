//! Features → sketch: a few numbers that stand for a page.

pub mod bloom;
pub mod min_bytes;
pub mod minhash;
pub mod page_sets;
pub mod projection;
pub mod simhash;
pub mod supershingle;

/// What a page is compared by.
#[derive(Debug, Clone, Copy)]
pub struct PageSketch<'a> {
    /// Its features, ascending, each once.
    pub features: &'a [u64],
    /// What they weigh; nothing if each weighs 1.
    pub weights: &'a [u32],
    /// Its sketch, in the parts of the plan.
    pub sketch: &'a [u32],
}

impl PageSketch<'_> {
    /// What the feature at this place weighs.
    #[inline]
    #[must_use]
    pub fn weight(&self, at: usize) -> u32 {
        if self.weights.is_empty() { 1 } else { self.weights[at] }
    }
}
