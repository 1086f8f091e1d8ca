//! Sketches → candidate pairs: who is worth comparing.

pub mod band_join;
pub mod layout;
