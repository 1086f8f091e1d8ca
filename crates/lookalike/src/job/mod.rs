//! The jobs: what the stages are put together for.
//!
//! [`dedup`] is the main one, from files to evidence; [`recluster`] makes a stricter result from the pairs that it
//! verified, [`explain`] says why a page of it was dropped or kept, [`compare`] asks every method about two pages, and
//! [`estimate`] says what a run would take.

pub(crate) mod compare;
pub(crate) mod dedup;
pub(crate) mod estimate;
pub(crate) mod explain;
pub(crate) mod originals;
pub(crate) mod recluster;
mod run_options;

pub use run_options::RunOptions;
