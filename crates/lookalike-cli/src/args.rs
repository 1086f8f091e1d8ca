//! The arguments, with the help that teaches them. Completions and the man page come from here too.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use lookalike::config::{ClusterMode, Format, Keep, MimeTypes, ReadAs, Scope, SiteRule, Statuses, Within, parse_bytes};
use lookalike::result::ClusterSort;

use crate::evaluate_args::EvaluateArguments;
use crate::index_args::{IndexArguments, PlanArguments};
use crate::output_args::OutputArguments;
use crate::parameters::ParameterFlags;
use crate::search_args::{RefineArguments, TransferArguments};
#[cfg(feature = "serve")]
use crate::serve_args::ServeArguments;
use crate::values::{EvaluatedMethods, FormatParser, KeepParser, MethodParser, MethodsParser, named};
use crate::view::ViewArguments;

/// Finds the pages that are the same page.
///
/// lookalike removes near-duplicates from web crawls, archives and text corpora, and gives exact
/// evidence for every decision.
#[derive(Debug, Parser)]
#[command(name = "lookalike", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
#[command(
    after_help = "Start with:  lookalike dedup PAGES --output out   and open out/report.html\nThen:        lookalike explain out ID, lookalike clusters out, lookalike help dedup"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Remove near-duplicates from files of pages, with evidence for every decision
    Dedup(Box<DedupArguments>),
    /// Why was this page dropped, or kept?
    Explain(ExplainArguments),
    /// Browse the groups of a result
    Clusters(ClustersArguments),
    /// Add the groups of a result to the index of a web archive
    ExportCdxj(ExportCdxjArguments),
    /// Make another result from the pairs already verified: stricter, in other groups, or keeping other pages
    Recluster(ReclusterArguments),
    /// What every method, at its defaults, says of two pages, and where they differ
    Compare(CompareArguments),
    /// Show a page as it is compared: its blocks, and which of them are left out
    Text(TextArguments),
    /// Precision, recall and cost of methods on labelled data, or on a sample that you judge
    Evaluate(EvaluateArguments),
    /// Fold a list of search results: near-duplicates under the best ranked of them
    Refine(Box<RefineArguments>),
    /// Carry relevance judgments from one corpus to another
    Transfer(Box<TransferArguments>),
    /// Fingerprints on disk: which rows are near this one?
    Index(IndexArguments),
    /// The online service: have I seen this page?
    #[cfg(feature = "serve")]
    Serve(Box<ServeArguments>),
    /// The workbench: look at the clusters of a result in the browser, tag and correct them
    View(ViewArguments),
    /// Table designs for an index, with what each costs in bytes and time
    Plan(PlanArguments),
    /// Show the help of a command, or its flags by topic
    Help {
        /// A command, and perhaps a topic: dedup, dedup input, index build, …
        #[arg(value_name = "COMMAND")]
        words: Vec<String>,
    },
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

const DEDUP_HELP: &str = "\
Examples:
  lookalike dedup pages/ --output out            and open out/report.html
  lookalike dedup corpus/*.jsonl.zst --text-field raw_content --output out
  lookalike dedup docs.parquet --keep max:quality --output out";

const DEDUP_EXAMPLES: &str = "\
Examples:
  A folder of HTML pages; then open out/report.html
    lookalike dedup pages/ --output out

  A corpus of JSON lines, compressed; the text is in the field 'raw_content'
    lookalike dedup corpus/*.jsonl.zst --text-field raw_content --output out

  Keep the best document of each group, not the first
    lookalike dedup docs.parquet --keep max:quality --output out

  The same stories in different page frames, as in a web archive
    lookalike dedup crawl/ --method spotsigs --output out

  How long would it take, and how much memory and disk?
    lookalike dedup crawl.jsonl.gz --output out --dry-run

  From a pipe
    zcat part-*.gz | lookalike dedup - --format jsonl --output out

What is written to DIR: clusters.parquet (what became of every page), pairs.parquet (the evidence),
kept/ (the input without what was dropped), report.html (look at this first), and more; see README.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some records were skipped.";

#[derive(Debug, Args)]
#[command(after_help = DEDUP_HELP, after_long_help = format!("{DEDUP_EXAMPLES}\n\n{}", formats()))]
pub(crate) struct DedupArguments {
    /// Files, directories, glob patterns, or - for standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,

    /// Directory for the result; made if it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) method: MethodArguments,

    /// Examples that seeded matching starts from: files of pages; they are not input, only what pages match
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Only for spotsigs")]
    pub(crate) seeds: Vec<String>,

    #[command(flatten)]
    pub(crate) groups: GroupArguments,

    #[command(flatten)]
    pub(crate) outputs: OutputArguments,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    /// Read also the files that this list names, one path per line; - is standard input
    #[arg(long, value_name = "LIST", help_heading = "How the input is read")]
    pub(crate) files_from: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) running: RunningArguments,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What counts as a near-duplicate")]
pub(crate) struct MethodArguments {
    /// How near-duplicates are found: a name, or a name with parameters such as "spotsigs threshold=0.4"
    #[arg(short, long, value_parser = MethodParser, default_value = "minhash")]
    pub(crate) method: String,

    #[command(flatten)]
    pub(crate) parameters: ParameterFlags,

    /// Leave out, before anything else: volatile = dates, times, counters, session ids
    #[arg(long, value_name = "WHAT", value_parser = ["volatile"])]
    pub(crate) mask: Option<String>,

    /// Compare only pages of the same language or site
    #[arg(long, value_name = "WHAT", value_parser = named::<Within>())]
    pub(crate) within: Option<Within>,

    /// What a site is
    #[arg(long, value_name = "RULE", value_parser = named::<SiteRule>(), default_value_t = SiteRule::Paper)]
    pub(crate) site: SiteRule,

    /// Compare only pages of similar length: shorter / longer at least R, for example 0.8
    #[arg(long, value_name = "R")]
    pub(crate) length_ratio: Option<f64>,

    /// Pages with fewer words match only as exact copies
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) min_tokens: u32,

    /// Treat upper and lower case as different
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
    #[arg(long, value_parser = named::<ClusterMode>(), default_value_t = ClusterMode::Star)]
    pub(crate) cluster: ClusterMode,

    /// Which page of a group stays
    #[arg(long, value_name = "POLICY", value_parser = KeepParser, default_value = "first")]
    pub(crate) keep: Keep,

    /// Files whose pages stay before all others, whatever --keep says, such as 'gold/**'; can be repeated, the first
    /// pattern first
    #[arg(long, value_name = "GLOB")]
    pub(crate) prefer: Vec<String>,

    /// Drop what another corpus already has: a result of lookalike dedup, files of pages, or an index of fingerprints
    /// (with --method simhash); against.parquet names both pages
    #[arg(long, value_name = "PATH")]
    pub(crate) against: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How the input is read")]
pub(crate) struct ReadingArguments {
    /// Read every input as this format instead of recognising it
    #[arg(long, value_name = "FORMAT", value_parser = FormatParser)]
    pub(crate) format: Option<Format>,

    /// Field with the page's id [default: id]
    #[arg(long, value_name = "FIELD")]
    pub(crate) id_field: Option<String>,

    /// Field with the text or HTML; doc.body leads into an object, title,text joins several [default: the first there is
    /// of text, content, html, body]
    #[arg(long, value_name = "FIELD")]
    pub(crate) text_field: Option<String>,

    /// Field with the URL [default: url]
    #[arg(long, value_name = "FIELD")]
    pub(crate) url_field: Option<String>,

    /// Field with the date, for --keep newest [default: date, timestamp, …; files: when changed]
    #[arg(long, value_name = "FIELD")]
    pub(crate) date_field: Option<String>,

    /// Read every page as text or as HTML; otherwise its type and its first tag decide
    #[arg(long, value_name = "MARKUP", value_parser = named::<ReadAs>())]
    pub(crate) read_as: Option<ReadAs>,

    /// Read only files whose path below the input matches this pattern, such as '*.html' or 'news/**'; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,

    /// Do not read files whose path below the input matches this pattern; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,

    /// Take only this share of the pages, chosen by their ids: 0.1 is a tenth, and the same one every time
    #[arg(long, value_name = "SHARE")]
    pub(crate) sample: Option<f64>,

    /// Take only the captures that this CDXJ file names (by filename and offset), in web archives
    #[arg(long, value_name = "FILE")]
    pub(crate) cdxj: Option<PathBuf>,

    /// Which part of an HTML page is compared
    #[arg(long, value_parser = named::<Scope>(), default_value_t = Scope::Story)]
    pub(crate) content: Scope,

    /// Take text in scripts into account: templates, and articles in JSON-LD
    #[arg(long)]
    pub(crate) scripts: bool,

    /// Status codes of the responses that are pages, in web archives: 200, 2xx, 200-299, any, or
    /// several with commas
    #[arg(long, value_name = "CODES", default_value = "200")]
    pub(crate) status: Statuses,

    /// Content types of the responses that are pages, in web archives: text/html, text/*, any, or
    /// several with commas
    #[arg(long, value_name = "TYPES", default_value = "text/html,application/xhtml+xml,text/plain")]
    pub(crate) types: MimeTypes,

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

    /// Go on where a run of the same job was killed, or failed
    #[arg(long)]
    pub(crate) resume: bool,

    /// Write into a directory that holds other things (they stay)
    #[arg(long)]
    pub(crate) force: bool,

    /// Overwrite a result of other inputs or settings
    #[arg(long)]
    pub(crate) replace: bool,

    /// Show what would be read and what it would take; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What it reports")]
pub(crate) struct TalkingArguments {
    /// No progress and no summary; errors are still reported
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Write the stages, with times and counts, and every skipped record to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// Print the result as JSON to standard output: one document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike recluster out --threshold 0.85\n  lookalike recluster out --keep newest --output out-newest\n\nThe verified pairs stay in DIR, so a lower threshold (down to that of the dedup run) works afterwards.\nWithout a threshold, the last one counts."
)]
pub(crate) struct ReclusterArguments {
    /// A result of lookalike dedup
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Pairs below this similarity no longer count
    #[arg(short, long, value_name = "T")]
    pub(crate) threshold: Option<f64>,

    /// The same for two stories on one site; follows the threshold
    #[arg(long, value_name = "T")]
    pub(crate) within_site: Option<f64>,

    /// The same for two stories on different sites; follows the threshold
    #[arg(long, value_name = "T")]
    pub(crate) between_sites: Option<f64>,

    /// Write the new result here instead of into DIR
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Group in another way than before
    #[arg(long, value_parser = named::<ClusterMode>())]
    pub(crate) cluster: Option<ClusterMode>,

    /// Keep another page of each group than before; dates and fields are read from the input again
    #[arg(long, value_name = "POLICY", value_parser = KeepParser)]
    pub(crate) keep: Option<Keep>,

    /// Files whose pages stay before all others, whatever --keep says, such as 'gold/**'; can be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) prefer: Vec<String>,

    /// Follow what people decided in lookalike view, from DIR/decisions.jsonl or another file
    #[arg(long, value_name = "FILE", require_equals = true)]
    pub(crate) decisions: Option<Option<PathBuf>>,

    #[command(flatten)]
    pub(crate) outputs: OutputArguments,

    /// Write into a directory that holds other things (they stay)
    #[arg(long)]
    pub(crate) force: bool,

    /// Overwrite another result at --output
    #[arg(long)]
    pub(crate) replace: bool,

    #[command(flatten)]
    pub(crate) talking: TalkingArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike explain out metro-now/ferry.html\n  lookalike explain out http://a.example/story --full | less -R"
)]
pub(crate) struct ExplainArguments {
    /// A result of lookalike dedup
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Pages by their ids or URLs
    #[arg(required = true, value_name = "ID")]
    pub(crate) pages: Vec<String>,

    /// Show all of the difference, and all pages of a group
    #[arg(long)]
    pub(crate) full: bool,

    /// Print JSON: one document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which lines of an index are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CdxjLines {
    /// All but those of captures that were dropped
    Kept,
    /// Those of captures that were dropped
    Dropped,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike export-cdxj out index.cdxj --output groups.cdxj\n  lookalike export-cdxj out index.cdxj --only kept > kept.cdxj\n  lookalike export-cdxj out index.cdxj --only dropped |\n    curl --data-binary @- http://outbackcdx:8080/crawl/delete"
)]
pub(crate) struct ExportCdxjArguments {
    /// A result of lookalike dedup
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// The index of the archives, in CDXJ
    #[arg(value_name = "INDEX")]
    pub(crate) index: PathBuf,

    /// Only these lines, unchanged; without it all, with fields for the groups
    #[arg(long, value_name = "LINES")]
    pub(crate) only: Option<CdxjLines>,

    /// A file for the lines, which must not exist; without it, they go to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Print JSON: the counts
    #[arg(long, requires = "output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike clusters out | less\n  lookalike clusters out --sort weakest --min 3        the doubtful ones first\n  lookalike clusters out --grep ferry --members 0      all pages of these groups"
)]
pub(crate) struct ClustersArguments {
    /// A result of lookalike dedup
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Order of the groups
    #[arg(long, value_name = "ORDER", value_parser = named::<ClusterSort>(), default_value_t = ClusterSort::Size)]
    pub(crate) sort: ClusterSort,

    /// Only groups of at least so many pages
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) min: usize,

    /// Only groups with this in the id, URL or title of a page, in whatever case
    #[arg(long, value_name = "WORD")]
    pub(crate) grep: Option<String>,

    /// Dropped pages shown of each group, the most similar first; 0 for all
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) members: usize,

    /// Print JSON: one document, with all pages
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike text daily-ledger/bakery.html --in out        a page of a result, as that run saw it\n  lookalike text page.html --plain                        what of a file would be compared"
)]
pub(crate) struct TextArguments {
    /// Pages: files; with --in, ids or URLs
    #[arg(required = true, value_name = "PAGE")]
    pub(crate) pages: Vec<String>,

    /// Where the pages are: a result of lookalike dedup, whose settings count then, or files of pages
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) within: Option<String>,

    /// Print the compared text alone
    #[arg(long, conflicts_with = "json")]
    pub(crate) plain: bool,

    /// Print JSON, one object per block and line
    #[arg(long)]
    pub(crate) json: bool,

    /// Write the pages, block by block, as a page to look at
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plain", "json"])]
    pub(crate) html: Option<PathBuf>,

    /// Which part of an HTML page is compared, where DIR is not a result
    #[arg(long, value_parser = named::<Scope>(), default_value_t = Scope::Story)]
    pub(crate) content: Scope,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike compare a.html b.html\n  lookalike compare story-17 story-42 --in out            ids or URLs of a result\n  lookalike compare http://a.org/x http://b.org/y --in crawl.jsonl.gz --html compared.html"
)]
pub(crate) struct CompareArguments {
    /// A file; with --in, the id or URL of a page
    #[arg(value_name = "A")]
    pub(crate) left: String,

    /// The other
    #[arg(value_name = "B")]
    pub(crate) right: String,

    /// Where the pages are: a result of lookalike dedup, or files of pages
    #[arg(long = "in", value_name = "PATH")]
    pub(crate) within: Option<String>,

    /// Methods to compare by: all, names separated by commas, or one with its parameters; can be repeated
    #[arg(short, long, value_name = "METHODS", value_parser = MethodsParser, default_value = "all")]
    pub(crate) method: Vec<EvaluatedMethods>,

    /// Write everything as JSON to standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Write the two side by side as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Leave out, before anything else: volatile = dates, times, counters, session ids
    #[arg(long, value_name = "WHAT", value_parser = ["volatile"])]
    pub(crate) mask: Option<String>,

    /// What a site is
    #[arg(long, value_name = "RULE", value_parser = named::<SiteRule>(), default_value_t = SiteRule::Paper)]
    pub(crate) site: SiteRule,

    /// Which part of an HTML page is compared
    #[arg(long, value_parser = named::<Scope>())]
    pub(crate) content: Option<Scope>,

    /// Treat upper and lower case as different
    #[arg(long)]
    pub(crate) keep_case: bool,

    /// Read files as this format, whatever they are called
    #[arg(long, value_name = "FORMAT", value_parser = FormatParser)]
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
}

/// The list of formats for the help, from the one list in the library.
fn formats() -> String {
    let rows = Format::all()
        .map(|format| format!("  {:<8} {} (.{})", format.name(), format.description(), format.endings().join(", .")));
    format!(
        "Formats, recognised by name and content; all but Parquet may be packed with gzip, zstd, bzip2 or\nxz; the web archives in WACZ files are read, too:\n{}",
        rows.collect::<Vec<_>>().join("\n")
    )
}
