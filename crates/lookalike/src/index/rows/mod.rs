//! Where rows come from: pages, or ready-made fingerprints; and what is kept beside them.

pub mod fingerprints;
pub mod pages;
mod record;
mod stored_page;

pub(crate) use record::{FoundEntry, PageEntry, Record};
pub use stored_page::StoredPage;
