//! The only unsafe code: loops compiled for wider vector units, chosen at run time.
//!
//! Every kernel has a safe twin of plain Rust that a test holds equal to it.

mod min_values;

pub use min_values::{min_values, min_values_scalar};
