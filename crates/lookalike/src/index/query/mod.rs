//! Questions to an index: what is near, which pairs of rows are, what the index is like.

pub(crate) mod matches;
pub(crate) mod reader;
pub mod stats;
