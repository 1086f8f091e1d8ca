//! lookalike finds the pages that are the same page.
//!
//! Pages come in as files ([`read`]), become tokens ([`text`]), features ([`feature`]) and sketches
//! ([`sketch`]); pages with sketches in common are candidates ([`candidate`]), are compared exactly
//! ([`verify`]), grouped ([`cluster`]) and reported with evidence ([`report`]). [`job::dedup`]
//! wires these stages; read it first.
//!
//! ```no_run
//! use lookalike::config::Config;
//! use lookalike::job::RunOptions;
//! use lookalike::observe::Silent;
//!
//! let options = RunOptions::new(vec!["pages.jsonl".to_owned()], "out".into());
//! let outcome = lookalike::job::dedup::dedup(&Config::default(), &options, &Silent)?;
//! assert!(outcome.summary.kept <= outcome.summary.pages);
//! # Ok::<(), lookalike::error::Error>(())
//! ```

pub mod candidate;
pub mod cluster;
pub mod config;
pub mod corpus_stats;
pub mod error;
pub mod evaluate;
pub mod feature;
#[doc(hidden)]
pub mod fuzzing;
pub mod index;
pub mod job;
pub mod kernel;
pub mod machine;
pub mod method;
pub mod names;
pub mod observe;
pub mod online;
pub mod page;
pub mod page_table;
pub mod parallel;
pub mod plan;
mod random;
pub mod read;
pub mod refine;
pub mod report;
pub mod size;
pub mod sketch;
pub mod sketcher;
pub mod spill;
pub mod text;
pub mod transfer;
pub mod union_find;
pub mod verify;
pub mod work_dir;
