//! Tokens → features: what two pages can have in common.

pub mod shingle;
