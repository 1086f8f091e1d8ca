//! The arguments of `lookalike serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use lookalike::config::parse_bytes;

const SERVE_HELP: &str = "\
Examples:
  An index for this machine only, created if it does not exist
    lookalike serve seen
    curl -s localhost:8700/v1/pages?store=if_new -H 'Content-Type: application/json' \\
         -d '{\"url\": \"http://a.org/x\", \"text\": \"The ferry did not sail on Monday because of the storm\"}'

  Start with the pages of a crawl
    lookalike index build seen crawl/*.warc.gz && lookalike serve seen

  For others: an address they can reach needs tokens, one per line: 'write SECRET' or 'read SECRET'
    lookalike serve seen --listen 0.0.0.0:8700 --tokens tokens.txt

All calls: GET /openapi.json, and docs/service.md. SIGTERM and Ctrl-C finish accepted requests, then stop.
Settings come from --config FILE, the environment and flags; later ones win.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArguments {
    /// Directory of the index; created if it does not exist. Other collections are in DIR/collections
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Address and port [default: 127.0.0.1:8700]
    #[arg(long, value_name = "ADDRESS", env = "LOOKALIKE_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,

    /// Settings, in TOML: see docs/operations.md
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// File of tokens, one per line: 'read SECRET' or 'write SECRET'; LOOKALIKE_TOKENS takes the same, separated by commas
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_TOKENS_FILE")]
    pub(crate) tokens: Option<PathBuf>,

    /// Host name that is accepted without tokens, besides localhost and addresses
    #[arg(long = "allow-host", value_name = "NAME", env = "LOOKALIKE_ALLOW_HOST", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,

    /// Directory that POST /v1/backup writes copies into
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_BACKUPS")]
    pub(crate) backups: Option<PathBuf>,

    /// Do not write a line for every request to standard error
    #[arg(long, env = "LOOKALIKE_NO_ACCESS_LOG", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) no_access_log: bool,

    /// Serve what is left of a damaged index, and store nothing
    #[arg(long)]
    pub(crate) skip_damaged: bool,

    /// Threads for requests [default: one per core]
    #[arg(long, value_name = "N", env = "LOOKALIKE_THREADS", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,

    /// Memory for merging segments, as in 2GiB [default: 2 GiB]
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_MEMORY", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Largest page, as in 8MiB [default: 8 MiB]
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_MAX_PAGE", value_parser = parse_bytes)]
    pub(crate) max_page: Option<u64>,
}
