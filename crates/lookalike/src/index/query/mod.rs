//! Queries to an index: which rows are near, which pairs of rows are, and what the index holds.

pub(crate) mod matches;
pub(crate) mod reader;
pub mod stats;
