//! The only unsafe code: loops compiled for wider vector units, chosen at run time.
//!
//! Every kernel has a safe twin of plain Rust that a test holds equal to it.

mod byte_class;
mod majority;
mod min_values;

pub use byte_class::{ByteClasses, LANES, byte_classes, byte_classes_scalar};
pub use majority::{Mixer, majority, majority_mixed, majority_scalar};
pub use min_values::{min_values, min_values_scalar};
