//! Sketches → candidate pairs: who is worth comparing.

pub mod band_join;
pub mod hamming_join;
pub mod inverted;
mod key_sort;
pub mod matching;
mod meetings;
pub mod pair_filter;
pub mod shared_lists;
