//! The arguments of `lookalike index` and `lookalike plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use lookalike::config::{Weights, parse_bytes};
use lookalike::index::fingerprints::Notation;
use lookalike::index::planner::Cut;
use lookalike::index::{IdKind, TableCodec, TablesOver};

use crate::args::{ReadingArguments, TalkingArguments};
use crate::values::named;

const INDEX_HELP: &str = "\
Examples:
  Index the fingerprints of pages, then find the pages near this one
    lookalike index build seen crawl-2025.warc.gz
    lookalike index query seen --page new.html

  Ready-made fingerprints, one per line: 16 hexadecimal digits, a tab, an id
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
    /// Create an index of pages, or of ready-made fingerprints
    Build(Box<BuildArguments>),
    /// Add pages or fingerprints to an index
    Add(AddArguments),
    /// Find the rows within a distance of a few fingerprints or pages
    Query(QueryArguments),
    /// Find the rows within a distance of many fingerprints or pages
    Batch(BatchArguments),
    /// Find all pairs of rows within a distance, in one index or between two
    Join(JoinArguments),
    /// Show the number of rows, the size, and how fingerprints are distributed
    Stats(StatsArguments),
    /// Check everything: checksums, order, the same fingerprints in all tables, table designs without gaps
    Verify {
        /// The index
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Put a backup of a service in place, after verifying it
    Restore {
        /// The backup: a directory that POST /v1/backup made
        #[arg(value_name = "BACKUP")]
        backup: PathBuf,
        /// Where the index goes
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Replace the index that is there; other collections stay
        #[arg(long)]
        force: bool,
    },
    /// Merge all segments into one, without deleted rows
    Compact {
        /// The index
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Memory limit [default: half of the available memory]
        #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
        memory: Option<u64>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// Directory of the index; created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Files, directories or glob patterns of pages; with --fingerprints, files of fingerprints
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// The inputs are fingerprints in this notation: one per line, optionally followed by a tab, comma or space and an
    /// id; or Parquet files with the columns fingerprint and id
    #[arg(long, value_parser = named::<Notation>(), value_name = "NOTATION", num_args = 0..=1, default_missing_value = "hex")]
    pub(crate) fingerprints: Option<Notation>,

    /// Type of the ids of fingerprints [default: that of the first id]
    #[arg(long, value_parser = named::<IdKind>(), value_name = "KIND", requires = "fingerprints")]
    pub(crate) ids: Option<IdKind>,

    /// Differing bits, 0 to 15, up to which every match is found
    #[arg(long, value_name = "BITS", default_value_t = 3)]
    pub(crate) radius: u32,

    /// Table design: a number of blocks (4), nested blocks (4x4), or pieces that are probed with flipped bits (flip2)
    /// [default: the choice of lookalike plan for the number of rows]
    #[arg(long, value_name = "CUT")]
    pub(crate) design: Option<Cut>,

    /// How tables are stored
    #[arg(long, value_parser = named::<TableCodec>(), default_value_t = TableCodec::EliasFano)]
    pub(crate) codec: TableCodec,

    /// Bytes of a block of the codec huffman: a power of two from 256 to 65536 [default: 1024]
    #[arg(long, value_name = "BYTES")]
    pub(crate) huffman_block: Option<u32>,

    /// Replace an existing index, or write into a directory with other files (they are not touched)
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) fingerprinting: FingerprintArguments,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    #[command(flatten)]
    pub(crate) running: BuildRunning,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Fingerprints of pages")]
pub(crate) struct FingerprintArguments {
    /// Words per feature, 1..8 [default: content words and two-word phrases]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) ngram: Option<u8>,

    /// Weight of a feature: none or tf [default: tf]
    #[arg(long, value_name = "WEIGHTS", value_parser = named::<Weights>())]
    pub(crate) weights: Option<Weights>,

    /// Ignore parts of the text: volatile = dates, times, counters, session ids
    #[arg(long, value_name = "WHAT", value_parser = ["volatile"])]
    pub(crate) mask: Option<String>,

    /// Pages with fewer words get no fingerprint
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) min_tokens: u32,

    /// Treat upper and lower case as different
    #[arg(long)]
    pub(crate) keep_case: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How it runs")]
pub(crate) struct BuildRunning {
    /// Memory limit while building, and for the chosen tables [default: half of the available memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Store fingerprints only; a service then cannot confirm near-duplicates, or show or remove pages
    #[arg(long)]
    pub(crate) no_sketches: bool,

    /// Worker threads [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// The index
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Pages, read as when the index was built; or fingerprints, if the index has ready-made ones
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// Notation of the fingerprints [default: hex]
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

    /// Fingerprints to look up
    #[arg(value_name = "FINGERPRINT", required_unless_present_any = ["file", "page"])]
    pub(crate) queries: Vec<String>,

    /// A file of fingerprints, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Files of pages, read as when the index was built
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Vec<String>,

    /// Notation of the fingerprints
    #[arg(long, value_name = "NOTATION", value_parser = named::<Notation>(), default_value_t = Notation::Hex)]
    pub(crate) fingerprints: Notation,

    /// Only print whether there is a match; the exit code is 0 if every query has one, otherwise 1
    #[arg(long)]
    pub(crate) any: bool,

    /// Maximum number of rows to print per query, nearest first; 0 for all
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,

    #[command(flatten)]
    pub(crate) lookup: LookupArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LookupArguments {
    /// Differing bits up to which a row matches [default: the radius of the index]
    #[arg(long, value_name = "BITS")]
    pub(crate) radius: Option<u32>,

    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,

    /// Skip damaged segments instead of stopping
    #[arg(long)]
    pub(crate) skip_damaged: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PairArguments {
    /// Maximum number of rows to write per query, or per row in a join; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,

    /// Write to this file instead of standard output; with --json, the number of pairs is printed
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) lookup: LookupArguments,
}

#[derive(Debug, Args)]
pub(crate) struct BatchArguments {
    /// The index
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Pages, read as when the index was built; or files of fingerprints, if the index has ready-made ones or with
    /// --fingerprints
    #[arg(required = true, value_name = "QUERIES")]
    pub(crate) queries: Vec<String>,

    /// The queries are fingerprints in this notation
    #[arg(long, value_parser = named::<Notation>(), value_name = "NOTATION", num_args = 0..=1, default_missing_value = "hex")]
    pub(crate) fingerprints: Option<Notation>,

    /// Where matches are found; both find the same [default: queries if they outnumber the rows of a segment or the
    /// radius is beyond its tables, else rows]
    #[arg(long, value_name = "WHAT", value_parser = named::<TablesOver>())]
    pub(crate) tables_over: Option<TablesOver>,

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

    /// Write the plots leading-bits.svg and buckets.svg, and their points as plots.csv, to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,

    /// Skip damaged segments instead of stopping
    #[arg(long)]
    pub(crate) skip_damaged: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike plan --pages 8e9\n  lookalike plan --pages 50e6 --memory 600MB\n  lookalike plan --pages 2e9 --radius 4 --latency 100us\n  lookalike plan --pages 8e9 --tables 10\n  lookalike plan --pages 8e9 --prefix 28"
)]
pub(crate) struct PlanArguments {
    /// Number of different fingerprints, for example 50e6
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) pages: u64,

    /// Bits of a fingerprint, 32 to 256; bytes and times are estimates for 64, which is what an index holds
    #[arg(long, value_name = "BITS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(32..=256))]
    pub(crate) bits: u32,

    /// Differing bits up to which every match is found
    #[arg(long, value_name = "BITS", default_value_t = 3)]
    pub(crate) radius: u32,

    /// Maximum size of all tables
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Maximum time per query, for example 50us or 1ms; the smallest table design that meets it is chosen
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) latency: Option<Duration>,

    /// Maximum number of tables; also shows the longest prefix possible with that many tables
    #[arg(long, value_name = "N")]
    pub(crate) tables: Option<u64>,

    /// Also show the fewest tables of blocks whose prefixes all have at least this many bits
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) prefix: Option<u32>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// An integer, possibly written as 8e9.
fn parse_count(text: &str) -> Result<u64, String> {
    const MOST: u64 = 9_000_000_000_000_000;
    if let Some(count) = text.replace('_', "").parse().ok().filter(|&count| count <= MOST) {
        return Ok(count);
    }
    match text.parse::<f64>() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within 0 ..= 2^53, checked here
        Ok(count) if (0.0..=9e15).contains(&count) => Ok(count.round() as u64),
        _ => Err(format!("'{text}' is not a number of pages; use for example 50000000 or 50e6")),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let help = || format!("'{text}' is not a duration; use for example 50us, 1ms or 0.5s");
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
