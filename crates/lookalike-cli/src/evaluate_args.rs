//! The arguments of `lookalike evaluate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::{ReadingArguments, TalkingArguments};
use crate::values::{EvaluatedMethods, MethodParser, MethodsParser, method_name, named};
use lookalike::config::{SiteRule, parse_bytes};
use lookalike::evaluate::audit::StratifyBy;
use lookalike::method::GridAxis;

const EVALUATE_HELP: &str = "\
Examples:
  Evaluate every method on pages with known clusters
    lookalike evaluate clusters --gold clusters.tsv pages/ --report report.html

  One method with several settings side by side, and all values of a parameter
    lookalike evaluate clusters --gold clusters.tsv pages/ --method minhash --method \"spotsigs threshold=0.4\"
    lookalike evaluate clusters --gold clusters.tsv pages/ --method minhash,simhash --grid ngram=1..8 --report grid.html

  Evaluate a clustering made by another tool
    lookalike evaluate clusters --gold clusters.tsv --found theirs.tsv

  Evaluate every method on graded pairs of texts
    lookalike evaluate pairs pairs.jsonl --positive 1

  One page against all others, from near to far
    lookalike evaluate page news/today.html pages/ --report today.html

  Without a gold standard, judge a sample of a result yourself
    lookalike evaluate audit out                     writes out/audit.html
    lookalike evaluate audit out --judgments judgments.jsonl";

#[derive(Debug, Args)]
#[command(after_help = EVALUATE_HELP, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct EvaluateArguments {
    #[command(subcommand)]
    pub(crate) command: EvaluateCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvaluateCommand {
    /// Evaluate methods on pages with known clusters: precision, recall, cost
    Clusters(Box<ClustersArguments>),
    /// Evaluate methods on labelled pairs of texts
    Pairs(PairsArguments),
    /// Compare one page with all others, and list them from near to far
    Page(Box<PageArguments>),
    /// Draw a sample of a result for a person to judge, and evaluate the judgments
    Audit(AuditArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "GOLD has a page, a tab and its cluster in each line, optionally with column names in the first line;\nor JSON lines with the fields page and cluster; or pairs: left, right and optionally a label.\ndocs/evaluation.md defines every number."
)]
pub(crate) struct ClustersArguments {
    /// Files, directories or glob patterns of pages
    #[arg(required_unless_present = "found", value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// File that says which pages belong together
    #[arg(long, value_name = "GOLD")]
    pub(crate) gold: PathBuf,

    /// Methods to evaluate: all, names separated by commas, or one with parameters such as "spotsigs threshold=0.4";
    /// can be repeated
    #[arg(short, long, value_name = "METHODS", value_parser = MethodsParser, default_value = "all")]
    pub(crate) method: Vec<EvaluatedMethods>,

    /// Evaluate with all values of a parameter: ngram=1..8, threshold=0.1..0.9/0.2 or weights=none,tf; twice for a surface
    #[arg(long, value_name = "PARAMETER=VALUES")]
    pub(crate) grid: Vec<GridAxis>,

    /// Evaluate this clustering instead of running methods: a result of lookalike dedup, or a file like GOLD
    #[arg(long, value_name = "PATH", conflicts_with = "inputs")]
    pub(crate) found: Option<PathBuf>,

    /// Judged pages may be missing from the input
    #[arg(long)]
    pub(crate) allow_missing: bool,

    /// Ranges of equal bits in which supershingles are counted, by where they begin
    #[arg(long, value_name = "BITS,…", value_delimiter = ',', default_value = "372,376,379,382")]
    pub(crate) bit_ranges: Vec<u32>,

    /// Also evaluate every method at the recall of this one
    #[arg(long, value_name = "METHOD", value_parser = method_name())]
    pub(crate) equal_recall: Option<String>,

    /// Minimum label of a near-duplicate, if GOLD has pairs
    #[arg(long, value_name = "LABEL", default_value_t = 1.0)]
    pub(crate) positive: f64,

    /// Rule that determines the site of a URL
    #[arg(long, value_name = "RULE", value_parser = named::<SiteRule>(), default_value_t = SiteRule::Paper)]
    pub(crate) site: SiteRule,

    #[command(flatten)]
    pub(crate) columns: ColumnArguments,

    #[command(flatten)]
    pub(crate) output: OutputArguments,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    /// Memory limit of each run [default: half of the available memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Worker threads [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Columns of the gold standard")]
pub(crate) struct ColumnArguments {
    /// Column with the page's id [default: page, id, path, docno, document or url]
    #[arg(long, value_name = "NAME")]
    pub(crate) page_column: Option<String>,

    /// Column with the cluster [default: cluster, group, gold or class]
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_column: Option<String>,

    /// Column with the kind of page, for scores by kind [default: kind]
    #[arg(long, value_name = "NAME")]
    pub(crate) kind_column: Option<String>,

    /// Column with the page's site [default: site, otherwise from its URL]
    #[arg(long, value_name = "NAME")]
    pub(crate) site_column: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Write an HTML report with tables and plots to this file, and everything as JSON beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PairsArguments {
    /// JSON lines, each with two texts and a label
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Minimum label of a near-duplicate
    #[arg(long, value_name = "LABEL", default_value_t = 1.0)]
    pub(crate) positive: f64,

    /// Methods to evaluate: all, names separated by commas, or one with parameters such as "spotsigs threshold=0.4";
    /// can be repeated
    #[arg(short, long, value_name = "METHODS", value_parser = MethodsParser, default_value = "all")]
    pub(crate) method: Vec<EvaluatedMethods>,

    /// Evaluate with all values of a parameter: ngram=1..8, threshold=0.1..0.9/0.2 or weights=none,tf; twice for a surface
    #[arg(long, value_name = "PARAMETER=VALUES")]
    pub(crate) grid: Vec<GridAxis>,

    /// Field with the first text
    #[arg(long, value_name = "FIELD", default_value = "text_a")]
    pub(crate) left_field: String,

    /// Field with the second text
    #[arg(long, value_name = "FIELD", default_value = "text_b")]
    pub(crate) right_field: String,

    /// Field with the label, a number
    #[arg(long, value_name = "FIELD", default_value = "label")]
    pub(crate) label_field: String,

    /// Also evaluate the similarity in this field, for example that of another tool
    #[arg(long, value_name = "FIELD")]
    pub(crate) score_field: Option<String>,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// The page: its id or URL in the input, or a file
    #[arg(value_name = "PAGE")]
    pub(crate) page: String,

    /// Files, directories or glob patterns of pages
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// Method that compares: a name, or a name with parameters
    #[arg(short, long, value_name = "METHOD", value_parser = MethodParser, default_value = "bloom decide_by=bits")]
    pub(crate) method: String,

    /// Number of pages in the table; JSON has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,

    /// Write an HTML report with the pages by rank to this file; JSON and CSV beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Worker threads [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// A result of lookalike dedup
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Write the page for judging to this file [default: DIR/audit.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,

    /// Number of pairs in the sample, divided among the strata
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sample: u32,

    /// What the sample is divided by, equally many pairs of each
    #[arg(long, value_name = "WHAT", value_parser = named::<StratifyBy>(), default_value_t = StratifyBy::Method)]
    pub(crate) by: StratifyBy,

    /// Rules for the judge instead of the built-in ones: a text file, one rule per line
    #[arg(long, value_name = "FILE")]
    pub(crate) rubric: Option<PathBuf>,

    /// Seed of the sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Read the judgments saved by the page, and report the precision
    #[arg(long, value_name = "FILE", conflicts_with = "page")]
    pub(crate) judgments: Option<PathBuf>,

    /// With --judgments, write a page with precision and recall from near to far to this file, and CSV beside it
    #[arg(long, value_name = "FILE", requires = "judgments")]
    pub(crate) report: Option<PathBuf>,

    /// Target precision of the suggested threshold
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    pub(crate) target: f64,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
