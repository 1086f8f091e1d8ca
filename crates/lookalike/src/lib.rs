//! lookalike finds the pages that are the same page.
//!
//! Pages come in as files ([`read`]), become tokens ([`text`]), features ([`feature`]) and sketches
//! ([`sketch`]); pages with sketches in common are candidates ([`candidate`]), are compared exactly
//! ([`verify`]), grouped ([`cluster`]) and reported with evidence ([`report`]). [`pipeline`] wires
//! these stages; read it first.
//!
//! ```no_run
//! use lookalike::config::{Config, RunOptions};
//! use lookalike::observe::Silent;
//!
//! let options = RunOptions::new(vec!["pages.jsonl".to_owned()], "out".into());
//! let outcome = lookalike::pipeline::dedup(&Config::default(), &options, &Silent)?;
//! assert!(outcome.summary.kept <= outcome.summary.pages);
//! # Ok::<(), lookalike::error::Error>(())
//! ```

pub mod candidate;
pub mod cluster;
pub mod compare;
pub mod config;
pub mod error;
pub mod estimate;
pub mod evaluate;
#[doc(hidden)]
pub mod exercise;
pub mod feature;
pub mod index;
pub mod kernel;
pub mod method;
pub mod observe;
pub mod online;
pub mod page;
pub mod page_table;
pub mod parallel;
pub mod pipeline;
mod random;
pub mod read;
pub mod recluster;
pub mod refine;
pub mod report;
mod run_options;
pub mod size;
pub mod sketch;
pub mod spill;
pub mod survey;
pub mod text;
pub mod transfer;
pub mod union_find;
pub mod verify;
pub mod work_dir;
