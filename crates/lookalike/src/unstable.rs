//! The stages themselves, for benchmarks, fuzzing and comparisons with other tools. Anything in here may change at any
//! time.

pub mod fuzzing;

pub use crate::candidate::hamming_join::self_join;
pub use crate::feature::chunk::{ChunkPlan, Chunker};
pub use crate::feature::multiset::number_copies;
pub use crate::job::compare::by_config;
pub use crate::job::dedup::dedup_sources;
pub use crate::job::estimate::estimate_sources;
pub use crate::read::MadeBytes;
pub use crate::report::run::{cpu_seconds, peak_memory_bytes};
pub use crate::sketch::bloom::{FilterPlan, SharedBits};
pub use crate::sketch::min_bytes::{MinBytes, min_bytes, similarity};
pub use crate::sketch::minhash::MinHasher;
pub use crate::sketch::projection::{Projection, distance};
pub use crate::sketch::simhash::fingerprint;
pub use crate::text::charset::{Decoded, decode};
pub use crate::text::html::extract;
pub use crate::text::page_text::{ImageTerm, PageText};
pub use crate::text::tokenize::Words;
pub use crate::text::{PageReader, ReadPage, TextOptions};

/// Vector kernels and their safe twins.
pub mod kernel {
    pub use crate::kernel::*;
}
