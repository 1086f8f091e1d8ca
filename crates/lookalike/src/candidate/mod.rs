//! Sketches → candidate pairs: who is worth comparing.

pub mod band_join;
pub mod hamming_join;
pub mod inverted;
pub mod matching;
pub mod pair_filter;
