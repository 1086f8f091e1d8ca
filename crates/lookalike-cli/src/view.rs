//! `lookalike view`

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::Ending;

const VIEW_HELP: &str = "\
Examples:
  Look at a result in the browser
    lookalike dedup pages/ --output out && lookalike view out

  For a colleague on another machine: an address they can reach needs tokens, one per line: 'write SECRET' or 'read SECRET'
    lookalike view out --listen 0.0.0.0:8701 --tokens tokens.txt

Tags, notes and decisions are saved in DIR/workbench.sqlite as they are made, and hold when the result is made again.
lookalike recluster DIR --decisions makes a result that follows the decisions. See docs/workbench.md.";

#[derive(Debug, Args)]
#[command(after_help = VIEW_HELP)]
pub(crate) struct ViewArguments {
    /// A result of lookalike dedup
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Address and port [default: 127.0.0.1:8701]
    #[arg(long, value_name = "ADDRESS", env = "LOOKALIKE_VIEW_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,

    /// Do not open a browser
    #[arg(long)]
    pub(crate) no_open: bool,

    /// Your name; tags and notes are saved under it [default: your name on this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) coder: Option<String>,

    /// File of tokens, one per line: 'read SECRET' or 'write SECRET'
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_TOKENS_FILE")]
    pub(crate) tokens: Option<PathBuf>,

    /// Host name that is accepted without tokens, besides localhost and addresses
    #[arg(long = "allow-host", value_name = "NAME", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,
}

#[cfg(not(feature = "view"))]
pub(crate) fn run(arguments: ViewArguments) -> Result<Ending> {
    // All are named, so that none is unused.
    let ViewArguments { directory, listen: _, no_open: _, coder: _, tokens: _, hosts: _ } = arguments;
    anyhow::bail!(
        "this program was built without the workbench; build it with it:\n  cargo install --path crates/lookalike-cli --features view --profile dist\nor, in the repository, run\n  cargo run --release --features view -- view {}",
        directory.display()
    )
}

#[cfg(feature = "view")]
pub(crate) fn run(arguments: ViewArguments) -> Result<Ending> {
    use std::io::{self, Write};

    use lookalike_server::{Tokens, ViewSettings};

    let mut settings = ViewSettings::new(arguments.directory);
    settings.listen = arguments.listen.unwrap_or(settings.listen);
    settings.hosts = arguments.hosts;
    if let Some(path) = &arguments.tokens {
        settings.tokens = Tokens::read(path)?;
    }
    let of_machine = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    let name = arguments.coder.or_else(of_machine).filter(|name| !name.trim().is_empty());
    settings.coder = name.unwrap_or(settings.coder);
    tracing_subscriber::fmt().with_writer(io::stderr).with_target(false).with_ansi(false).init();
    let directory = settings.directory.display().to_string();
    let opens = !arguments.no_open;
    let say = |line: &str| drop(writeln!(io::stderr(), "{line}"));
    lookalike_server::view(settings, say, |address| {
        // The address goes to standard output, for scripts that chose port 0.
        let _ = writeln!(io::stdout(), "http://{address}");
        let _ = writeln!(io::stderr(), "showing {directory} at http://{address}; Ctrl-C ends it");
        if opens && !open_browser(&format!("http://{address}")) {
            let _ = writeln!(io::stderr(), "no browser could be opened; open that address yourself");
        }
    })?;
    Ok(Ending::Done)
}

/// Opens an address in the browser of whoever sits here.
#[cfg(feature = "view")]
fn open_browser(address: &str) -> bool {
    use std::process::{Command, Stdio};
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let child =
        Command::new(program).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.is_ok()
}
