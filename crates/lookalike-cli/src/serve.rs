//! `lookalike serve`

use std::io::{self, Write};

use anyhow::Result;
use lookalike::Error;
use lookalike_server::{Settings, Tokens};

use crate::Ending;
use crate::serve_args::ServeArguments;

/// The environment variable for tokens.
const TOKENS: &str = "LOOKALIKE_TOKENS";

pub(crate) fn run(arguments: ServeArguments) -> Result<Ending> {
    let settings = settings(arguments)?;
    tracing_subscriber::fmt().with_writer(io::stderr).with_target(false).with_ansi(false).init();
    let directory = settings.directory.display().to_string();
    let clients = if settings.tokens.is_empty() { "programs on this machine" } else { "clients with a token" };
    lookalike_server::serve(settings, |address| {
        // The address goes to standard output, for scripts that chose port 0.
        let _ = writeln!(io::stdout(), "http://{address}");
        let _ = writeln!(
            io::stderr(),
            "serving {directory} at http://{address} for {clients}; all calls: http://{address}/openapi.json"
        );
    })?;
    Ok(Ending::Done)
}

fn settings(arguments: ServeArguments) -> Result<Settings> {
    let mut settings = Settings::new(arguments.directory);
    if let Some(path) = &arguments.config {
        settings.read(path)?;
    }
    if let Some(path) = &arguments.tokens {
        settings.tokens = Tokens::read(path)?;
    } else if let Ok(text) = std::env::var(TOKENS) {
        settings.tokens =
            Tokens::parse(&text).map_err(|reason| Error::invalid("tokens", format!("from {TOKENS}"), reason))?;
    }
    settings.listen = arguments.listen.unwrap_or(settings.listen);
    settings.hosts.extend(arguments.hosts);
    settings.backups = arguments.backups.or(settings.backups);
    settings.access_log &= !arguments.no_access_log;
    settings.skip_damaged |= arguments.skip_damaged;
    settings.threads = arguments.threads.map_or(settings.threads, usize::from);
    settings.memory_bytes = arguments.memory.unwrap_or(settings.memory_bytes);
    if let Some(bytes) = arguments.max_page {
        // On a small machine, a limit beyond its memory is not a limit.
        settings.limits.page_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Escapes make a page longer in JSON.
        settings.limits.body_bytes = settings.limits.body_bytes.max(settings.limits.page_bytes.saturating_mul(2));
    }
    settings.check()?;
    Ok(settings)
}
