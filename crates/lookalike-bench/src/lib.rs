//! What the benchmarks and quality checks share: a generated corpus, an exact oracle, and a way to
//! read a result.

pub mod corpus;
pub mod labelled;
pub mod oracle;
pub mod quality;
pub mod recognised;
pub mod result_lists;
pub mod scopes;
pub mod sites;
