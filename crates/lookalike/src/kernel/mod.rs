//! The only unsafe code: loops compiled for wider vector units, chosen at run time, and files mapped
//! into memory.
//!
//! Every loop has a safe twin of plain Rust that a test holds equal to it.

mod byte_class;
mod hamming;
mod majority;
mod map;
mod min_values;

pub use byte_class::{ByteClasses, LANES, byte_classes, byte_classes_scalar};
pub use hamming::{Packed, WIDEST_PACKED, near_packed, near_packed_scalar, near_pairs, near_pairs_scalar, word_at};
pub use majority::{Mixer, majority, majority_mixed, majority_scalar};
pub use map::Map;
pub use min_values::{min_values, min_values_scalar};
