//! The arguments, with the help that teaches them. Completions and the man page come from here too.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use lookalike::config::{Keep, parse_bytes};
use lookalike::read::Format;

/// Finds the pages that are the same page.
///
/// lookalike removes near-duplicates from web crawls, archives and text corpora, and gives exact
/// evidence for every decision.
#[derive(Debug, Parser)]
#[command(name = "lookalike", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
#[command(
    after_help = "Start with:  lookalike dedup PAGES --output out   and open out/report.html\nThen:        lookalike help dedup"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Remove near-duplicates from files of pages, with evidence for every decision
    Dedup(Box<DedupArguments>),
    /// Make a stricter result from the pairs already verified, in a moment
    Recluster(ReclusterArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for every command into a directory
    Man {
        /// Write lookalike.1, lookalike-dedup.1, … into this directory
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

const DEDUP_EXAMPLES: &str = "\
Examples:
  A folder of HTML pages; then open out/report.html
    lookalike dedup pages/ --output out

  A corpus of JSON lines, compressed; the text is in the field 'raw_content'
    lookalike dedup corpus/*.jsonl.zst --text-field raw_content --output out

  Keep the best document of each group, not the first
    lookalike dedup docs.parquet --keep max:quality --output out

  How long would it take, and how much memory and disk?
    lookalike dedup crawl.jsonl.gz --output out --dry-run

  From a pipe
    zcat part-*.gz | lookalike dedup - --format jsonl --output out

What is written to DIR: clusters.parquet (what became of every page), pairs.parquet (the evidence),
kept/ (the input without what was dropped), report.html (look at this first), and more; see README.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some records were skipped.";

#[derive(Debug, Args)]
#[command(after_help = DEDUP_EXAMPLES, after_long_help = format!("{DEDUP_EXAMPLES}\n\n{}", formats()))]
pub(crate) struct DedupArguments {
    /// Files, directories, glob patterns, or - for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// Directory for the result; made if it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) method: MethodArguments,

    #[command(flatten)]
    pub(crate) groups: GroupArguments,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    #[command(flatten)]
    pub(crate) running: RunningArguments,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What counts as a near-duplicate")]
pub(crate) struct MethodArguments {
    /// How near-duplicates are found
    #[arg(short, long, value_enum, default_value_t = MethodName::Minhash)]
    pub(crate) method: MethodName,

    /// Exact Jaccard similarity, 0..1, from which two pages are near-duplicates (minhash) [default: 0.7]
    #[arg(short, long, value_name = "T")]
    pub(crate) threshold: Option<f64>,

    /// Equal supershingles, 1..6, from which two pages are near-duplicates (shingle) [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) agree: Option<u32>,

    /// Words in an n-gram [default: 5 for minhash, 8 for shingle]
    #[arg(long, value_name = "N")]
    pub(crate) ngram: Option<usize>,

    /// Share of the pairs at the threshold that must be found (minhash) [default: 0.99]
    #[arg(long, value_name = "SHARE")]
    pub(crate) recall: Option<f64>,

    /// Pages with fewer words match only as exact copies
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) min_tokens: u32,

    /// Tell upper from lower case
    #[arg(long)]
    pub(crate) keep_case: bool,

    /// Find exact copies only (same words in the same order, whatever the markup)
    #[arg(long)]
    pub(crate) exact_only: bool,

    /// Buckets with more pages than this are compared by leaders, not in all pairs
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) bucket_limit: usize,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is kept")]
pub(crate) struct GroupArguments {
    /// How pairs become groups: star names a verified kept page for every dropped one; components
    /// also follows chains
    #[arg(long, value_enum, default_value_t = ClusterName::Star)]
    pub(crate) cluster: ClusterName,

    /// Which page of a group stays: first, longest, newest, shortest-url, max:FIELD
    #[arg(long, value_name = "POLICY", default_value = "first")]
    pub(crate) keep: Keep,

    /// Copy kept page files into DIR/kept instead of only listing them
    #[arg(long)]
    pub(crate) copy_kept: bool,

    /// Write the tables as JSON lines too
    #[arg(long)]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How the input is read")]
pub(crate) struct ReadingArguments {
    /// Read every input as this format instead of recognising it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

    /// Field with the page's id [default: id]
    #[arg(long, value_name = "FIELD")]
    pub(crate) id_field: Option<String>,

    /// Field with the text or HTML [default: the first there is of text, content, html, body]
    #[arg(long, value_name = "FIELD")]
    pub(crate) text_field: Option<String>,

    /// Field with the URL [default: url]
    #[arg(long, value_name = "FIELD")]
    pub(crate) url_field: Option<String>,

    /// Field with the date, for --keep newest [default: date, timestamp, …; files: when changed]
    #[arg(long, value_name = "FIELD")]
    pub(crate) date_field: Option<String>,

    /// Skip records larger than this
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    pub(crate) max_page: u64,

    /// Stop at the first record that cannot be used, instead of skipping and counting it
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How it runs")]
pub(crate) struct RunningArguments {
    /// Ceiling on memory; what does not fit goes to temporary files [default: half the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Worker threads [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Write into a directory that holds other things (they stay)
    #[arg(long)]
    pub(crate) force: bool,

    /// Show what would be read and what it would take; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What it tells")]
pub(crate) struct TalkingArguments {
    /// No progress and no summary; errors are still told
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Write the stages and every skipped record to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  lookalike recluster out --threshold 0.85\n\nThe verified pairs stay in DIR, so a lower threshold (down to that of the dedup run) works afterwards."
)]
pub(crate) struct ReclusterArguments {
    /// A result of lookalike dedup
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Pairs below this similarity no longer count
    #[arg(short, long, value_name = "T")]
    pub(crate) threshold: f64,

    /// Write the new result here instead of into DIR
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Group in another way than before
    #[arg(long, value_enum)]
    pub(crate) cluster: Option<ClusterName>,

    /// Copy kept page files instead of only listing them
    #[arg(long)]
    pub(crate) copy_kept: bool,

    /// Write into a directory that holds other things (they stay)
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// Banded MinHash on word 5-grams, every candidate verified by exact Jaccard similarity
    Minhash,
    /// Algorithm B of Henzinger (2006): equal supershingles of word 8-grams
    Shingle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterName {
    /// Every dropped page is a verified near-duplicate of the kept page it names
    Star,
    /// Everything reachable over verified pairs is one group
    Components,
}

/// The list of formats for the help, from the one list in the library.
fn formats() -> String {
    let rows = Format::ALL.map(|(_, name, endings, what)| format!("  {name:<8} {what} (.{})", endings.join(", .")));
    format!(
        "Formats, recognised by name and content; all but Parquet may be packed with gzip or zstd:\n{}",
        rows.join("\n")
    )
}
