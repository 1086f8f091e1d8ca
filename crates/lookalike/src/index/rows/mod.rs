//! Where rows come from: pages, or ready-made fingerprints.

pub mod fingerprints;
pub mod pages;
