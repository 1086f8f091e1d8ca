//! The real binary, from arguments to files.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // in a test, failing is the point

mod annotated;
mod bad_input;
mod captures;
mod ceiling;
mod common;
mod compare;
mod crawl;
mod crawl_damage;
mod decisions;
mod dedup;
mod evaluate;
mod formats;
mod help;
mod index;
mod inputs;
mod kept_formats;
mod kills;
mod methods;
mod notations;
mod old_files;
mod outputs;
mod papers;
mod refine;
mod remarks;
mod report;
mod resume;
mod safe_output;
mod same_bytes;
mod search;
mod story;
mod talk;
mod why;
