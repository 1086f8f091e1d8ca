//! The arguments of `lookalike index` and `lookalike plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use lookalike::config::Weights;
use lookalike::index::fingerprints::Notation;
use lookalike::index::{IdKind, TableCodec};
use lookalike::plan::design::Cut;
use lookalike::size::parse_bytes;

use crate::args::{ReadingArguments, TalkingArguments};
use crate::values::named;

const INDEX_HELP: &str = "\
Examples:
  Fingerprints of pages; then: which pages are near this one?
    lookalike index build seen crawl-2025.warc.gz
    lookalike index query seen --page new.html

  Ready-made fingerprints, one a line: 16 hexadecimal digits, a tab, an id
    lookalike index build seen fingerprints.tsv --fingerprints hex
    lookalike index query seen 0123456789abcdef --radius 3

  All pairs within three bits, and pairs between two corpora
    lookalike index join seen --output pairs.tsv
    lookalike index join seen other --output pairs.tsv";

#[derive(Debug, Args)]
#[command(after_help = INDEX_HELP, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct IndexArguments {
    #[command(subcommand)]
    pub(crate) command: IndexCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Make an index of pages, or of ready-made fingerprints
    Build(Box<BuildArguments>),
    /// Add pages or fingerprints to an index
    Add(AddArguments),
    /// Rows within a distance of one or a few fingerprints or pages
    Query(QueryArguments),
    /// Rows within a distance of many fingerprints or pages
    Batch(BatchArguments),
    /// All pairs of rows within a distance, in one index or between two
    Join(JoinArguments),
    /// Rows, bytes, and how fingerprints are spread
    Stats(StatsArguments),
    /// Check everything: checksums, order, the same fingerprints in all tables, designs without gaps
    Verify {
        /// The index
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Make one segment of all, without what was deleted
    Compact {
        /// The index
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Ceiling on memory [default: half the machine's]
        #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
        memory: Option<u64>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// Directory of the index; made if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Files, directories or glob patterns of pages; with --fingerprints, files of fingerprints
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// The inputs are fingerprints, written like this: a line each, perhaps with an id behind a tab, comma or space; or
    /// Parquet with the columns fingerprint and id
    #[arg(long, value_parser = named::<Notation>(), value_name = "NOTATION", num_args = 0..=1, default_missing_value = "hex")]
    pub(crate) fingerprints: Option<Notation>,

    /// What the ids of fingerprints are [default: as the first one]
    #[arg(long, value_parser = named::<IdKind>(), value_name = "KIND", requires = "fingerprints")]
    pub(crate) ids: Option<IdKind>,

    /// Differing bits, 0 to 15, up to which nothing is missed
    #[arg(long, value_name = "BITS", default_value_t = 3)]
    pub(crate) radius: u32,

    /// Table design: the number of blocks (4), nested blocks (4x4), or pieces that are asked for with bits flipped
    /// (flip2) [default: what lookalike plan chooses for the number of rows]
    #[arg(long, value_name = "CUT")]
    pub(crate) design: Option<Cut>,

    /// How tables are stored
    #[arg(long, value_parser = named::<TableCodec>(), default_value_t = TableCodec::EliasFano)]
    pub(crate) codec: TableCodec,

    /// Replace an index that is there, or write into a directory that holds other things (they stay)
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) making: MakingArguments,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    #[command(flatten)]
    pub(crate) running: BuildRunning,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How fingerprints of pages are made")]
pub(crate) struct MakingArguments {
    /// Words in a feature, 1..8 [default: content words and phrases of two]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) ngram: Option<u8>,

    /// What a feature weighs: none or tf [default: tf]
    #[arg(long, value_name = "WEIGHTS", value_parser = named::<Weights>())]
    pub(crate) weights: Option<Weights>,

    /// Leave out, before anything else: volatile = dates, times, counters, session ids
    #[arg(long, value_name = "WHAT", value_parser = ["volatile"])]
    pub(crate) mask: Option<String>,

    /// Pages with fewer words get no fingerprint
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) min_tokens: u32,

    /// Tell upper from lower case
    #[arg(long)]
    pub(crate) keep_case: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How it runs")]
pub(crate) struct BuildRunning {
    /// Ceiling on memory while building, and on the tables that are chosen [default: half the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Store fingerprints only: a service cannot confirm that pages are near then, or show or remove them
    #[arg(long)]
    pub(crate) no_sketches: bool,

    /// Worker threads [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// The index
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Pages, read as when the index was built; or fingerprints, if it holds such
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// How fingerprints are written [default: hex]
    #[arg(long, value_parser = named::<Notation>(), value_name = "NOTATION", num_args = 0..=1, default_missing_value = "hex")]
    pub(crate) fingerprints: Option<Notation>,

    #[command(flatten)]
    pub(crate) running: BuildRunning,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}

#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// The index
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Fingerprints
    #[arg(value_name = "FINGERPRINT")]
    pub(crate) queries: Vec<String>,

    /// A file of fingerprints, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Files of pages, read as when the index was built
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Vec<String>,

    /// How fingerprints are written
    #[arg(long, value_name = "NOTATION", value_parser = named::<Notation>(), default_value_t = Notation::Hex)]
    pub(crate) fingerprints: Notation,

    /// Only say whether there is any; exit code 0 if every query has one, 1 if not
    #[arg(long)]
    pub(crate) any: bool,

    /// Rows that are printed for a query, the nearest first, 0 for all; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,

    #[command(flatten)]
    pub(crate) asking: AskingArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AskingArguments {
    /// Differing bits up to which a row counts [default: that of the index]
    #[arg(long, value_name = "BITS")]
    pub(crate) radius: Option<u32>,

    /// Print JSON, a line each
    #[arg(long)]
    pub(crate) json: bool,

    /// Leave damaged segments out instead of stopping
    #[arg(long)]
    pub(crate) skip_damaged: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PairArguments {
    /// Rows that are written for each query, or for each row with those behind it; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,

    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) asking: AskingArguments,
}

#[derive(Debug, Args)]
pub(crate) struct BatchArguments {
    /// The index
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Pages, read as when the index was built; or files of fingerprints, if it holds such or with --fingerprints
    #[arg(required = true, value_name = "QUERIES")]
    pub(crate) queries: Vec<String>,

    /// The queries are fingerprints, written like this
    #[arg(long, value_parser = named::<Notation>(), value_name = "NOTATION", num_args = 0..=1, default_missing_value = "hex")]
    pub(crate) fingerprints: Option<Notation>,

    #[command(flatten)]
    pub(crate) pairs: PairArguments,
}

#[derive(Debug, Args)]
pub(crate) struct JoinArguments {
    /// The index
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Another index; without one, all pairs within the first
    #[arg(value_name = "OTHER")]
    pub(crate) other: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) pairs: PairArguments,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// The index
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw leading-bits.svg and buckets.svg into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,

    /// Leave damaged segments out instead of stopping
    #[arg(long)]
    pub(crate) skip_damaged: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike plan --pages 8e9\n  lookalike plan --pages 50e6 --memory 600MB\n  lookalike plan --pages 2e9 --radius 4 --latency 100us\n  lookalike plan --pages 8e9 --tables 10"
)]
pub(crate) struct PlanArguments {
    /// Different fingerprints, for example 50e6
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) pages: u64,

    /// Differing bits up to which nothing is missed
    #[arg(long, value_name = "BITS", default_value_t = 3)]
    pub(crate) radius: u32,

    /// Bytes of all tables at the most
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Time of a query at the most, for example 50us or 1ms: the smallest design that meets it is chosen
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) latency: Option<Duration>,

    /// Tables at the most; also tells the longest prefix that many tables can have
    #[arg(long, value_name = "N")]
    pub(crate) tables: Option<u64>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A whole number, perhaps written as 8e9.
fn parse_count(text: &str) -> Result<u64, String> {
    const MOST: u64 = 9_000_000_000_000_000;
    if let Some(count) = text.replace('_', "").parse().ok().filter(|&count| count <= MOST) {
        return Ok(count);
    }
    match text.parse::<f64>() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within 0 ..= 2^53, checked here
        Ok(count) if (0.0..=9e15).contains(&count) => Ok(count.round() as u64),
        _ => Err(format!("'{text}' is no number of pages; write for example 50000000 or 50e6")),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let help = || format!("'{text}' is no time; write for example 50us, 1ms or 0.5s");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..split].parse().map_err(|_| help())?;
    let unit = match text[split..].trim() {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(help()),
    };
    Duration::try_from_secs_f64(number * unit).map_err(|_| help())
}
