//! Where rows come from: pages, or ready-made fingerprints.

pub mod fingerprints;
pub mod pages;
mod stored_page;

pub use stored_page::StoredPage;
