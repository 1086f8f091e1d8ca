//! Sketches → candidate pairs: who is worth comparing.

pub mod band_join;
mod coverage;
pub mod design;
pub mod hamming_join;
pub mod inverted;
pub mod layout;
pub mod matching;
pub mod pair_filter;
pub mod rarity;
