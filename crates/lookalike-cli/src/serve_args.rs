//! The arguments of `lookalike serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookalike::config::parse_bytes;
use lookalike_server::LogFormat;

const SERVE_HELP: &str = "\
Examples:
  An index for this machine only, created if it does not exist
    lookalike serve seen
    curl -s localhost:8700/v1/pages?store=if_new -H 'Content-Type: application/json' \\
         -d '{\"url\": \"http://a.org/x\", \"text\": \"The ferry did not sail on Monday because of the storm\"}'

  Start with the pages of a crawl
    lookalike index build seen crawl/*.warc.gz && lookalike serve seen

  For others: an address they can reach needs tokens, one per line: 'read', 'write' or 'admin', and a secret
    SECRET=$(openssl rand -hex 24); echo \"admin $(echo $SECRET | lookalike serve --hash-token)\" > tokens.txt
    lookalike serve seen --listen 0.0.0.0:8700 --tokens tokens.txt --tls-cert cert.pem --tls-key key.pem

All calls: GET /openapi.json, and docs/service.md. SIGTERM and Ctrl-C finish accepted requests, then stop; SIGHUP reads
tokens, certificates, limits and host names again. Settings come from --config FILE, the environment and flags; later ones win.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArguments {
    /// Directory of the index; created if it does not exist. Other collections are in DIR/collections
    #[arg(value_name = "DIR", required_unless_present = "hash_token")]
    pub(crate) directory: Option<PathBuf>,

    /// Address and port [default: 127.0.0.1:8700]
    #[arg(long, value_name = "ADDRESS", env = "LOOKALIKE_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,

    /// A second address, for /healthz, /readyz and /metrics alone, without tokens: whatever happens at the first, it answers
    #[arg(long, value_name = "ADDRESS", env = "LOOKALIKE_ADMIN_LISTEN", help_heading = "What operators see")]
    pub(crate) admin_listen: Option<SocketAddr>,

    /// Certificates for HTTPS, in PEM form (needs a build with the feature tls)
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_TLS_CERT",
        requires = "tls_key",
        help_heading = "Who may use it"
    )]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM form
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_TLS_KEY",
        requires = "tls_cert",
        help_heading = "Who may use it"
    )]
    pub(crate) tls_key: Option<PathBuf>,

    /// Settings, in TOML: see docs/operations.md
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// File of tokens, one per line: 'read', 'write' or 'admin', a secret or its hash, and collections if it is for these
    /// alone; LOOKALIKE_TOKENS takes the same, separated by commas
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_TOKENS_FILE", help_heading = "Who may use it")]
    pub(crate) tokens: Option<PathBuf>,

    /// Read secrets from standard input and print them as they are written in a file of tokens: hashed
    #[arg(long, help_heading = "Who may use it")]
    pub(crate) hash_token: bool,

    /// Origin of web pages that may use the service, as in https://seen.example, besides its own
    #[arg(
        long = "allow-origin",
        value_name = "ORIGIN",
        env = "LOOKALIKE_ALLOW_ORIGIN",
        value_delimiter = ',',
        help_heading = "Who may use it"
    )]
    pub(crate) origins: Vec<String>,

    /// Host name that is accepted without tokens, besides localhost and addresses
    #[arg(
        long = "allow-host",
        value_name = "NAME",
        env = "LOOKALIKE_ALLOW_HOST",
        value_delimiter = ',',
        help_heading = "Who may use it"
    )]
    pub(crate) hosts: Vec<String>,

    /// Directory that POST /v1/backup writes copies into
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_BACKUPS")]
    pub(crate) backups: Option<PathBuf>,

    /// Do not write a line for every request to standard error
    #[arg(long, env = "LOOKALIKE_NO_ACCESS_LOG", value_parser = clap::builder::BoolishValueParser::new(), help_heading = "What operators see")]
    pub(crate) no_access_log: bool,

    /// How lines of the log look [default: text]
    #[arg(long, value_name = "FORMAT", env = "LOOKALIKE_LOG_FORMAT", help_heading = "What operators see")]
    pub(crate) log_format: Option<LogFormatName>,

    /// Do not store texts in the collection `default`: similarities are then estimated
    #[arg(long, env = "LOOKALIKE_NO_TEXT", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) no_text: bool,

    /// Serve what is left of a damaged index, and store nothing
    #[arg(long)]
    pub(crate) skip_damaged: bool,

    /// Serve without writing to DIR, as on a read-only file system, and store nothing
    #[arg(long, env = "LOOKALIKE_READ_ONLY", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) read_only: bool,

    /// Ship everything to a folder of an object store, as in s3://bucket/prefix, for others to follow (needs a build with the
    /// feature remote)
    #[arg(
        long,
        value_name = "URL",
        env = "LOOKALIKE_SHIP",
        conflicts_with = "follow",
        help_heading = "More than one machine"
    )]
    pub(crate) ship: Option<String>,

    /// Follow what another service ships there: answer from a copy in DIR, store nothing, until POST /v1/promote
    #[arg(long, value_name = "URL", env = "LOOKALIKE_FOLLOW", help_heading = "More than one machine")]
    pub(crate) follow: Option<String>,

    /// With --ship: take over from the service that ships there now, which is fenced off
    #[arg(long, requires = "ship", help_heading = "More than one machine")]
    pub(crate) promote: bool,

    /// Threads for requests [default: one per core]
    #[arg(long, value_name = "N", env = "LOOKALIKE_THREADS", value_parser = clap::value_parser!(u16).range(1..), help_heading = "What it may take")]
    pub(crate) threads: Option<u16>,

    /// Memory for merging segments, as in 2GiB [default: 2 GiB]
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_MEMORY", value_parser = parse_bytes, help_heading = "What it may take")]
    pub(crate) memory: Option<u64>,

    /// Memory for the bodies of all requests together, as in 256MiB; beyond it, clients are told to come back [default: 256 MiB]
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_BODY_MEMORY", value_parser = parse_bytes, help_heading = "What it may take")]
    pub(crate) body_memory: Option<u64>,

    /// Largest page, as in 8MiB [default: 8 MiB]
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_MAX_PAGE", value_parser = parse_bytes, help_heading = "What it may take")]
    pub(crate) max_page: Option<u64>,
}

/// How lines of the log look.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormatName {
    Text,
    Json,
}

impl From<LogFormatName> for LogFormat {
    fn from(name: LogFormatName) -> LogFormat {
        match name {
            LogFormatName::Text => LogFormat::Text,
            LogFormatName::Json => LogFormat::Json,
        }
    }
}
