//! The arguments of `lookalike refine` and `lookalike transfer`: for whoever searches, and whoever evaluates search.

use std::path::PathBuf;

use clap::Args;
use lookalike::config::ClusterMode;
use lookalike::transfer::OnConflict;

use crate::args::{ReadingArguments, TalkingArguments};
use crate::values::{method_name, named};

const REFINE_HELP: &str = "\
Examples:
  The answer of Elasticsearch or OpenSearch, folded
    curl -s localhost:9200/pages/_search -d @query.json … | lookalike refine -

  The same as JSON, for a front end
    lookalike refine answer.json --json

  A TREC run and its corpus; the run without near-duplicates
    lookalike refine run.txt --corpus crawl/*.warc.gz --run folded.txt

  Sketches into the search index once, so that folding takes no texts
    lookalike refine pages.json --write-sketches pages-with-sketches.json

Our own form: {\"results\": [{\"url\": …, \"title\": …, \"text\" or \"html\": …}, …]}, best first.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some results had no text and stay by themselves.";

#[derive(Debug, Args)]
#[command(after_help = REFINE_HELP)]
pub(crate) struct RefineArguments {
    /// A file of search results, best first, or - for standard input
    #[arg(value_name = "RESULTS")]
    pub(crate) results: PathBuf,

    /// How near-duplicates are found
    #[arg(short, long, value_parser = method_name(), default_value = "bloom")]
    pub(crate) method: String,

    /// Similarity, 0..1, from which results are near-duplicates [default: 0.7; spotsigs: 0.25]
    /// (minhash, bloom, spotsigs)
    #[arg(short, long, value_name = "T")]
    pub(crate) threshold: Option<f64>,

    /// How pairs become groups: star compares every result with the one it is folded under; components
    /// follows chains, as the paper does
    #[arg(long, value_parser = named::<ClusterMode>(), default_value_t = ClusterMode::Star)]
    pub(crate) cluster: ClusterMode,

    /// Look at the first N results of each list only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: Option<u32>,

    /// Files of pages that a TREC run is about
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    pub(crate) corpus: Vec<String>,

    /// Results of a run may be missing from the corpus
    #[arg(long)]
    pub(crate) allow_missing: bool,

    /// Where sketches made before are: a field of the results [default: sketch, where they have it], or
    /// an index of fingerprints that has the results' ids (simhash)
    #[arg(long, value_name = "FIELD|DIR")]
    pub(crate) sketches: Option<String>,

    /// Write the results with a field of sketches here, and fold nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) write_sketches: Option<PathBuf>,

    /// Write the best result of each group as a TREC run here
    #[arg(long, value_name = "FILE")]
    pub(crate) run: Option<PathBuf>,

    /// Write a page here with groups against threshold and length of the list, and JSON beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write the folded list as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) fields: ResultFieldArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Fields of the results; a dot leads into an object")]
pub(crate) struct ResultFieldArguments {
    /// The list of results [default: hits.hits, results]
    #[arg(long, value_name = "FIELD")]
    pub(crate) results_field: Option<String>,

    /// The text or HTML [default: text, html, content, body, raw_content]
    #[arg(long, value_name = "FIELD")]
    pub(crate) text_field: Option<String>,

    /// The URL [default: url, link]
    #[arg(long, value_name = "FIELD")]
    pub(crate) url_field: Option<String>,

    /// The title [default: title, name]
    #[arg(long, value_name = "FIELD")]
    pub(crate) title_field: Option<String>,

    /// The id [default: id, _id, docno]
    #[arg(long, value_name = "FIELD")]
    pub(crate) id_field: Option<String>,
}

const TRANSFER_HELP: &str = "\
Example:
  lookalike transfer --qrels qrels.txt --from crawl-2009/*.warc.gz --to crawl-2012/*.warc.gz --output carried

What is written to DIR: qrels.txt (judgments of pages of B), mapping.parquet (every counterpart: both ids, the
way it was found, distance and exact similarity), conflicts.jsonl, report.html and summary.json.";

#[derive(Debug, Args)]
#[command(after_help = TRANSFER_HELP)]
pub(crate) struct TransferArguments {
    /// Relevance judgments in TREC format: topic, iteration, page, grade
    #[arg(long, value_name = "FILE")]
    pub(crate) qrels: PathBuf,

    /// The corpus that they are about: files of pages, or an index of lookalike
    #[arg(long, value_name = "A", num_args = 1.., required = true)]
    pub(crate) from: Vec<String>,

    /// The corpus that they are carried to
    #[arg(long, value_name = "B", num_args = 1.., required = true)]
    pub(crate) to: Vec<String>,

    /// Directory for the result; made if it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// Similarity of word 5-grams, 0..1, from which pages are near-duplicates
    #[arg(short, long, value_name = "T", default_value_t = 0.7)]
    pub(crate) threshold: f64,

    /// Differing bits of fingerprints up to which pages are compared exactly
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) radius: u32,

    /// Carry judgments only between near-duplicates, not on a URL alone
    #[arg(long)]
    pub(crate) verified_only: bool,

    /// Carry judgments to every near-duplicate of a judged page, not to the most similar alone
    #[arg(long)]
    pub(crate) all_near: bool,

    /// Which judgment counts where several differ about a page
    #[arg(long, value_name = "RULE", value_parser = named::<OnConflict>(), default_value_t = OnConflict::Nearest)]
    pub(crate) on_conflict: OnConflict,

    /// Judged pages may be missing from A
    #[arg(long)]
    pub(crate) allow_missing: bool,

    /// Write into a directory that holds other things (they stay)
    #[arg(long)]
    pub(crate) force: bool,

    /// Worker threads [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}
