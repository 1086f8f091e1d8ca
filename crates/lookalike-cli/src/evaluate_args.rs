//! The arguments of `lookalike evaluate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::{ReadingArguments, TalkingArguments};
use crate::values::{EvaluatedMethods, method_name, named};
use lookalike::size::parse_bytes;
use lookalike::text::site::SiteRule;

const EVALUATE_HELP: &str = "\
Examples:
  Every method on pages that somebody sorted into clusters
    lookalike evaluate clusters --gold clusters.tsv pages/ --report report.html

  A clustering that another tool made
    lookalike evaluate clusters --gold clusters.tsv --found theirs.tsv

  Pairs of texts that people graded
    lookalike evaluate pairs pairs.jsonl --positive 1

  No gold standard at hand: judge a sample of a result yourself
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
    /// Methods on pages whose clusters are known: precision, recall, cost
    Clusters(Box<ClustersArguments>),
    /// Methods on labelled pairs of texts
    Pairs(PairsArguments),
    /// A sample of a result for a person to judge, and what the judgments say
    Audit(AuditArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "GOLD holds a page and its cluster in each line, with a tab between them and perhaps a line of names above;\nor JSON lines with the fields page and cluster; or pairs: left, right and perhaps a label.\ndocs/evaluation.md defines every number."
)]
pub(crate) struct ClustersArguments {
    /// Files, directories or glob patterns of pages
    #[arg(required_unless_present = "found", value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// Which pages belong together
    #[arg(long, value_name = "GOLD")]
    pub(crate) gold: PathBuf,

    /// The methods: all, or names with commas between them
    #[arg(short, long, value_name = "METHODS", default_value = "all")]
    pub(crate) method: EvaluatedMethods,

    /// Judge this clustering instead of running methods: a result of lookalike dedup, or a file like GOLD
    #[arg(long, value_name = "PATH", conflicts_with = "inputs")]
    pub(crate) found: Option<PathBuf>,

    /// Judged pages may be missing from the input
    #[arg(long)]
    pub(crate) allow_missing: bool,

    /// Also set every method to the recall that this one has
    #[arg(long, value_name = "METHOD", value_parser = method_name())]
    pub(crate) equal_recall: Option<String>,

    /// From which label on a judged pair is a near-duplicate, where GOLD has pairs
    #[arg(long, value_name = "LABEL", default_value_t = 1.0)]
    pub(crate) positive: f64,

    /// What a site is
    #[arg(long, value_name = "RULE", value_parser = named::<SiteRule>(), default_value_t = SiteRule::Paper)]
    pub(crate) site: SiteRule,

    #[command(flatten)]
    pub(crate) columns: ColumnArguments,

    #[command(flatten)]
    pub(crate) told: ToldArguments,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    /// Ceiling on memory of each run [default: half the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Worker threads [default: one for each CPU]
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

    /// Column with the kind of page, for a split of the scores [default: kind]
    #[arg(long, value_name = "NAME")]
    pub(crate) kind_column: Option<String>,

    /// Column with the page's site [default: site, else from its URL]
    #[arg(long, value_name = "NAME")]
    pub(crate) site_column: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is written")]
pub(crate) struct ToldArguments {
    /// Write a page with tables and plots here, and everything as JSON beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write everything as JSON to standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PairsArguments {
    /// JSON lines, each with two texts and a label
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// From which label on a pair is a near-duplicate
    #[arg(long, value_name = "LABEL", default_value_t = 1.0)]
    pub(crate) positive: f64,

    /// The methods: all, or names with commas between them
    #[arg(short, long, value_name = "METHODS", default_value = "all")]
    pub(crate) method: EvaluatedMethods,

    /// Field with the first text
    #[arg(long, value_name = "FIELD", default_value = "text_a")]
    pub(crate) left_field: String,

    /// Field with the second text
    #[arg(long, value_name = "FIELD", default_value = "text_b")]
    pub(crate) right_field: String,

    /// Field with the label, a number
    #[arg(long, value_name = "FIELD", default_value = "label")]
    pub(crate) label_field: String,

    /// Judge the similarity in this field, too: another tool's, for example
    #[arg(long, value_name = "FIELD")]
    pub(crate) score_field: Option<String>,

    /// Write everything as JSON to standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// A result of lookalike dedup
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Write the page for judging here [default: DIR/audit.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,

    /// Pairs in the sample; every stratum gets its part
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sample: u32,

    /// Another seed, another sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Read the judgments that the page saved, and tell what they say
    #[arg(long, value_name = "FILE", conflicts_with = "page")]
    pub(crate) judgments: Option<PathBuf>,

    /// The precision that a suggested threshold should have
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    pub(crate) target: f64,

    /// Write everything as JSON to standard output
    #[arg(long)]
    pub(crate) json: bool,
}
