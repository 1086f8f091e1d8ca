//! Rows → segments: sorted in bounded memory, with the table design that costs least.

pub mod planner;
mod segment_builder;
mod sort;

pub(crate) use segment_builder::{MOST_ROWS, SegmentBuilder};
