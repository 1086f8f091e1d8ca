//! Features → sketch: a few numbers that stand for a page.

pub mod bloom;
pub mod min_bytes;
pub mod minhash;
pub mod projection;
pub mod simhash;
pub mod supershingle;
