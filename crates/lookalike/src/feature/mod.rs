//! Tokens → features: what two pages can have in common.

pub mod chunk;
pub mod hash_set;
pub mod multiset;
pub mod rarity;
pub mod shingle;
pub mod spot;
pub mod words;
