//! The arguments of `lookalike refine` and `lookalike transfer`.

use std::path::PathBuf;

use clap::Args;
use lookalike::config::ClusterMode;
use lookalike::refine::{EvidenceSet, GROUP_FIELD};
use lookalike::transfer::{DomainRule, OnConflict, TransferOptions};

use crate::args::{ReadingArguments, TalkingArguments};
use crate::parameters::ParameterFlags;
use crate::values::{MethodParser, named};

const REFINE_HELP: &str = "\
Examples:
  Fold the response of Elasticsearch or OpenSearch
    curl -s localhost:9200/pages/_search -d @query.json … | lookalike refine -

  For a front end: the same response, folded, with groups in a field
    lookalike refine answer.json --json

  Write a TREC run without its near-duplicates, and measure it before and after
    lookalike refine run.txt --corpus crawl/*.warc.gz --run folded.txt --qrels qrels.txt

  Store sketches in the search index, so that folding needs no texts
    lookalike refine pages.json --write-sketches pages-with-sketches.json

JSON format: {\"results\": [{\"url\": …, \"title\": …, \"text\" or \"html\": …}, …]}, best first.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done, but some results had no text and were not grouped.";

#[derive(Debug, Args)]
#[command(after_help = REFINE_HELP)]
pub(crate) struct RefineArguments {
    /// A file of search results, best first, or - for standard input
    #[arg(value_name = "RESULTS")]
    pub(crate) results: PathBuf,

    /// Method that finds near-duplicates: a name, or a name with parameters; chunks of bloom have 64 bytes here
    #[arg(short, long, value_parser = MethodParser, default_value = "bloom")]
    pub(crate) method: String,

    #[command(flatten)]
    pub(crate) parameters: ParameterFlags,

    /// How pairs form groups: star folds a result only under one that it was compared with; components
    /// also follows chains
    #[arg(long, value_parser = named::<ClusterMode>(), default_value_t = ClusterMode::Star)]
    pub(crate) cluster: ClusterMode,

    /// What can show that two results are the same page: text, and title and url where a text is short (fewer than 100
    /// words); texts of any length need less similarity if titles or URLs agree
    #[arg(long, value_name = "LIST", default_value_t = EvidenceSet::ALL)]
    pub(crate) evidence: EvidenceSet,

    /// Use only the first N results of each list
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: Option<u32>,

    /// Files with the pages of a TREC run
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    pub(crate) corpus: Vec<String>,

    /// Results of a run may be missing from the corpus
    #[arg(long)]
    pub(crate) allow_missing: bool,

    /// Where stored sketches are: a field of the results [default: sketch, if present], or an index of
    /// fingerprints with the results' ids (simhash)
    #[arg(long, value_name = "FIELD|DIR")]
    pub(crate) sketches: Option<String>,

    /// Write the results with a field of sketches to this file, and fold nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) write_sketches: Option<PathBuf>,

    /// Write the best result of each group to this file, as a TREC run; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) run: Option<PathBuf>,

    /// Relevance judgments: measure the run before and after folding
    #[arg(long, value_name = "FILE")]
    pub(crate) qrels: Option<PathBuf>,

    /// Write judgments in which near-duplicates of a better result are not relevant to this file
    #[arg(long, value_name = "FILE", requires = "qrels")]
    pub(crate) write_qrels: Option<PathBuf>,

    /// Write an HTML report of groups and near-duplicates by similarity, list and length to this file; JSON and CSV beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Print the response in the shape it came in, without the folded results; each result has its group in a field
    #[arg(long)]
    pub(crate) json: bool,

    /// With --json, keep the folded results and only say which group each belongs to
    #[arg(long, requires = "json")]
    pub(crate) mark: bool,

    /// The field that --json adds to each result and to the response
    #[arg(long, value_name = "FIELD", requires = "json", default_value = GROUP_FIELD)]
    pub(crate) group_field: String,

    #[command(flatten)]
    pub(crate) fields: ResultFieldArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Fields of the results; a dot descends into an object")]
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

Files written to DIR: qrels.txt (judgments of pages of B), mapping.parquet (every counterpart: both
ids, how it was found, distance and exact similarity), conflicts.jsonl, contradictions.jsonl (judged
pages that are alike and have different grades), report.html, summary.json.";

#[derive(Debug, Args)]
#[command(after_help = TRANSFER_HELP)]
pub(crate) struct TransferArguments {
    /// Relevance judgments in TREC format: topic, iteration, page, grade
    #[arg(long, value_name = "FILE")]
    pub(crate) qrels: PathBuf,

    /// The judged corpus: files of pages, or a lookalike index
    #[arg(long, value_name = "A", num_args = 1.., required = true)]
    pub(crate) from: Vec<String>,

    /// The corpus to carry the judgments to: files of pages, or a lookalike index
    #[arg(long, value_name = "B", num_args = 1.., required = true)]
    pub(crate) to: Vec<String>,

    /// Directory for the result; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// Minimum similarity of near-duplicates, 0..1, by word 5-grams
    #[arg(short, long, value_name = "T", default_value_t = TransferOptions::THRESHOLD)]
    pub(crate) threshold: f64,

    /// Differing bits of fingerprints up to which pages are compared exactly
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) radius: u32,

    /// Carry judgments only between near-duplicates, not on a URL alone
    #[arg(long)]
    pub(crate) verified_only: bool,

    /// Carry judgments to every near-duplicate of a judged page, not only to that with its URL or the most similar one
    #[arg(long)]
    pub(crate) all_near: bool,

    /// Which judgment counts if several disagree about a page
    #[arg(long, value_name = "RULE", value_parser = named::<OnConflict>(), default_value_t = OnConflict::Nearest)]
    pub(crate) on_conflict: OnConflict,

    /// What the report counts shared URLs by: host, registrable (the registrable domain), or how URLs begin, such as
    /// en.wikipedia.org/wiki,example.org
    #[arg(long, value_name = "RULE", default_value_t = DomainRule::Host)]
    pub(crate) domains: DomainRule,

    /// Judged pages may be missing from A
    #[arg(long)]
    pub(crate) allow_missing: bool,

    /// Overwrite a result of other judgments, corpora or settings
    #[arg(long)]
    pub(crate) replace: bool,

    /// Write into a directory with other files (they are not touched)
    #[arg(long)]
    pub(crate) force: bool,

    /// Worker threads [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}
