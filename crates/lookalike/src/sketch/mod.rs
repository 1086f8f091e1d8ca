//! Features → sketch: a few numbers that stand for a page.

pub mod minhash;
pub mod sketcher;
pub mod supershingle;
