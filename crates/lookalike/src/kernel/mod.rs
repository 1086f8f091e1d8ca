//! The only unsafe code: loops written for the vector units of today's machines, chosen at run time, and
//! files mapped into memory.
//!
//! Every loop has a safe twin of plain Rust; a test holds all versions that the machine can run equal to it.
// On other machines only the twins are used.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, unused_macros, clippy::match_single_binding)
)]

mod ascii_words;
mod byte_class;
mod hamming;
mod key_runs;
mod majority;
mod map;
mod min_values;
mod plain_json;
mod runs;
mod shared;
mod utf8;
mod vector_unit;

pub use ascii_words::{WordSink, ascii_words, ascii_words_on};
pub use byte_class::{ByteClasses, LANES, byte_classes_on, byte_classes_scalar};
pub use hamming::{
    Packed, WIDEST_PACKED, near_packed, near_packed_on, near_packed_scalar, near_pairs, near_pairs_on,
    near_pairs_scalar, word_at,
};
pub use key_runs::{
    KeyCode, LANES as RUN_LANES, LONGEST_CODE, Lane, NearKey, SYMBOLS, near_keys, near_keys_on, near_keys_scalar,
    prefetch,
};
pub use majority::{Mixer, majority, majority_mixed, majority_on, majority_scalar};
pub(crate) use map::{AnyBits, FileRoom, MappedFile, MappedItems, bytes_of};
pub use min_values::{min_values, min_values_on, min_values_scalar};
pub use plain_json::{plain_json_end, plain_json_end_on, plain_json_end_scalar};
pub use runs::{mix, runs, runs_on, runs_scalar};
pub use shared::{shared_at_least, shared_at_least_on, shared_at_least_scalar};
pub use utf8::text_of_utf8;
pub use vector_unit::VectorUnit;
