//! lookalike finds the pages that are the same page: near-duplicates in web crawls, archives, search results and text
//! corpora, with exact evidence for every decision.
//!
//! | you have | you want | start with |
//! |---|---|---|
//! | files of pages | the same without near-duplicates, and why | [`dedup`], then [`recluster`] at other thresholds |
//! | two pages | what every method says of them | [`compare`](fn@compare) |
//! | a list of search results | near-duplicates folded | [`Refiner`] |
//! | fingerprints, or pages one by one | "have I seen this?" | [`Index`], [`Online`] |
//! | relevance judgments for another crawl | judgments for this one | [`transfer`](fn@transfer) |
//! | labelled pages | how good every method is on them | [`evaluate`](fn@evaluate) |
//!
//! A [`Config`] says what decides a result, [`RunOptions`] where it is read and written. The library never prints: it
//! returns counts, and reports progress to an [`Observer`].
//!
//! ```
//! # let directory = tempfile::tempdir().unwrap();
//! # let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
//! use lookalike::{Config, RunOptions, Silent};
//!
//! let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
//! let lines = [format!(r#"{{"id": "a", "text": "{story}"}}"#), format!(r#"{{"id": "b", "text": "{story} (Photo)"}}"#)];
//! std::fs::write(at("pages.jsonl"), lines.join("\n")).unwrap();
//!
//! let outcome = lookalike::dedup(&Config::default(), &RunOptions::new([at("pages.jsonl")], at("out")), &Silent)?;
//! assert_eq!((outcome.summary.pages, outcome.summary.kept), (2, 1));
//! # Ok::<(), lookalike::Error>(())
//! ```

#![deny(unnameable_types)]

mod candidate;
mod cluster;
mod corpus_stats;
mod error;
mod feature;
mod files;
mod job;
mod kernel;
mod machine;
mod names;
mod observe;
mod page;
mod page_table;
mod parallel;
mod plan;
mod random;
mod read;
mod report;
mod size;
mod sketch;
mod spill;
mod text;
mod union_find;
mod verify;
mod work_dir;

pub mod config;
pub mod evaluate;
pub mod index;
pub mod method;
pub mod online;
pub mod refine;
pub mod sketcher;
pub mod transfer;
#[doc(hidden)]
pub mod unstable;

pub use config::{Config, ContentConfig, GroupConfig, PairConfig, ReadConfig};
pub use error::{Error, Result};
pub use evaluate::evaluate;
pub use index::Index;
pub use job::RunOptions;
pub use job::compare::compare;
pub use job::dedup::dedup;
pub use job::estimate::estimate;
pub use job::recluster::{Regrouping, recluster};
pub use method::Method;
pub use observe::{Observer, Silent, Stage};
pub use online::Online;
pub use page::{Body, Markup, RawPage};
pub use read::Corpus;
pub use refine::Refiner;
pub use sketcher::Sketcher;
pub use transfer::transfer;

/// What a [`Corpus`] consists of, and passes over it.
pub mod corpus {
    pub use crate::page::{Capture, CaptureKeys, PageId, SourceId};
    pub use crate::read::compression::Compression;
    pub use crate::read::{Scan, Scanned, Source};
}

/// What [`compare`](fn@crate::compare) returns, and ways to find pages and to show differences.
pub mod compare {
    pub use crate::job::compare::{compare_pages, find_page, page_blocks};
    pub use crate::report::blocks::blocks_html;
    pub use crate::report::comparison::{ComparedPage, Comparison, MethodDecision, PageFate, ResultVerdict, html};
    pub use crate::report::diff::differences::{Difference, Differences};
    pub use crate::report::diff::{Piece, Row, SideBySide, Span, pieces, side_by_side};
    pub use crate::text::{BlockPart, PageBlock};
}

/// Jobs in parts, for machines that share nothing but rows. The Python package puts them together on Apache Spark.
pub mod parts {
    pub use crate::job::dedup::parts::{Emit, JobInput, Part, SourceOfJob, UnitOfJob, connected, learn};
    pub use crate::transfer::parts::{TransferCounts, TransferInput, columns, finish, judged_pages, part};
}

/// What a run leaves behind: the names of its files, its counts, what could not be read, its groups, and why a page was
/// dropped or kept.
pub mod result {
    /// The names of the files in a result directory.
    pub mod files {
        pub use crate::files::*;
    }

    pub use crate::cluster::decided::{DecisionReport, GroupDecision, read_decisions};
    pub use crate::error::{SkipKind, SkippedRecord};
    pub use crate::job::dedup::Outcome;
    pub use crate::job::estimate::Estimate;
    pub use crate::job::explain::{
        ChainLink, DroppedFor, Evidence, ExplainedPage, Explanation, Explanations, Rejected, explain,
    };
    pub use crate::job::originals::Originals;
    pub use crate::plan::layout::Layout;
    pub use crate::report::index_plots::index_plots;
    pub use crate::report::outputs::{KeptCompression, KeptFormat, OutputOptions};
    pub use crate::report::run::StageUse;
    pub use crate::report::stored::groups::{Cluster, ClusterPage, ClusterQuery, ClusterSort, clusters};
    pub use crate::report::stored::rows::{
        PagePlace, PageRow, PairRow, for_each_capture, for_each_page, for_each_page_fate, for_each_pair,
    };
    pub use crate::report::summary::{
        AgainstReport, Capped, FilterReport, LargeCluster, SizeFilterReport, SourceFile, Summary, TableReport,
        Thresholds, UnreadRanks,
    };
    pub use crate::sketch::supershingle::Bands;
    pub use crate::text::tokenize::fold_words;
}
