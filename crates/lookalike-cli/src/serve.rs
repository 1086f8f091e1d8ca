//! `lookalike serve`

use std::io::{self, Write};
use std::time::SystemTime;

use anyhow::Result;
use lookalike::Error;
use lookalike_server::{LogFormat, LogWriter, Settings, TlsFiles, Tokens, hash_token, log_time};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::Ending;
use crate::serve_args::ServeArguments;

/// The environment variable for tokens.
const TOKENS: &str = "LOOKALIKE_TOKENS";

pub(crate) fn run(arguments: ServeArguments) -> Result<Ending> {
    if arguments.hash_token {
        return hash_tokens();
    }
    let settings = settings(&arguments)?;
    write_log(settings.log_format);
    let directory = settings.directory.display().to_string();
    let clients = if settings.tokens.is_empty() { "programs on this machine" } else { "clients with a token" };
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let reload = move || self::settings(&arguments);
    lookalike_server::serve(settings, reload, |address| {
        // The address goes to standard output, for scripts that chose port 0.
        let _ = writeln!(io::stdout(), "{scheme}://{address}");
        tracing::info!(
            "serving {directory} at {scheme}://{address} for {clients}; all calls: {scheme}://{address}/openapi.json"
        );
    })?;
    Ok(Ending::Done)
}

/// The times of all lines.
struct LogTime;

impl FormatTime for LogTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        writer.write_str(&log_time(SystemTime::now()))
    }
}

/// Everything goes through one log, which holds nobody up: messages of our own, and panics.
fn write_log(format: LogFormat) {
    let log =
        tracing_subscriber::fmt().with_writer(|| LogWriter).with_target(false).with_ansi(false).with_timer(LogTime);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::capture();
        tracing::error!("{panic}, which is a fault of lookalike: please report it\n{trace}");
        // A panic may be the last thing that this process does.
        let _ = LogWriter.flush();
    }));
}

/// Reads secrets from standard input, one per line, and prints how they are written in a file of tokens.
fn hash_tokens() -> Result<Ending> {
    for line in io::stdin().lines() {
        let hashed = hash_token(line?.trim()).map_err(|reason| Error::conflict("hash_token", reason))?;
        writeln!(io::stdout(), "{hashed}")?;
    }
    Ok(Ending::Done)
}

fn settings(arguments: &ServeArguments) -> lookalike::Result<Settings> {
    let directory = arguments.directory.clone().expect("clap asks for it unless a token is hashed");
    let mut settings = Settings::new(directory);
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
    settings.admin_listen = arguments.admin_listen.or(settings.admin_listen);
    if let (Some(certificates), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) {
        settings.tls = Some(TlsFiles { certificates: certificates.clone(), key: key.clone() });
    }
    settings.hosts.extend(arguments.hosts.iter().cloned());
    settings.origins.extend(arguments.origins.iter().cloned());
    settings.backups = arguments.backups.clone().or(settings.backups);
    settings.access_log &= !arguments.no_access_log;
    settings.log_format = arguments.log_format.map_or(settings.log_format, Into::into);
    if arguments.no_text {
        settings.collections.entry("default".to_owned()).or_default().keep_text = Some(false);
    }
    settings.skip_damaged |= arguments.skip_damaged;
    settings.read_only |= arguments.read_only;
    settings.ship = arguments.ship.clone().or(settings.ship);
    settings.follow = arguments.follow.clone().or(settings.follow);
    settings.promote = arguments.promote;
    settings.threads = arguments.threads.map_or(settings.threads, usize::from);
    settings.memory_bytes = arguments.memory.unwrap_or(settings.memory_bytes);
    // On a small machine, a limit beyond its memory is not a limit.
    let usize_of = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let limits = &mut settings.limits;
    limits.body_memory = arguments.body_memory.map_or(limits.body_memory, usize_of);
    if let Some(bytes) = arguments.max_page {
        limits.page_bytes = usize_of(bytes);
        // Escapes make a page longer in JSON.
        limits.body_bytes = limits.body_bytes.max(limits.page_bytes.saturating_mul(2));
        limits.body_memory = limits.body_memory.max(limits.body_bytes.saturating_mul(4));
    }
    settings.check()?;
    Ok(settings)
}
