//! Settings of the service. Those of a file are read here; the command line adds the environment and flags, which win.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lookalike::config::parse_bytes;
use lookalike::{Error, Result};
use serde::{Deserialize, Deserializer};

use crate::access::Tokens;
use crate::collections::CollectionSettings;

/// The default port.
pub const PORT: u16 = 8700;

/// What hyper needs for the head of a request.
const LEAST_HEAD_BYTES: usize = 8 << 10;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of the indexes.
    pub directory: PathBuf,
    /// Address and port.
    pub listen: SocketAddr,
    /// Who may read and who may write; everybody, if there are no tokens.
    pub tokens: Tokens,
    /// Host names that the service accepts, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    /// The directory for backups; without it, none can be made.
    pub backups: Option<PathBuf>,
    /// Whether every request is logged.
    pub access_log: bool,
    /// Serve without damaged parts, and store nothing.
    pub skip_damaged: bool,
    /// Threads; 0 for one per core.
    pub threads: usize,
    /// Memory for merging segments; 0 for 2 GiB.
    pub memory_bytes: u64,
    /// Rows in memory before they are written to a segment; 0 for 262,144.
    pub memory_rows: u64,
    /// Limits on requests and connections.
    pub limits: Limits,
    /// Collections that are created if they do not exist.
    pub collections: BTreeMap<String, CollectionSettings>,
}

/// Limits on requests and connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a decompressed body; in a batch, bytes of a line.
    pub body_bytes: usize,
    /// Bytes of the text or markup of one page.
    pub page_bytes: usize,
    /// Lines per batch.
    pub batch_lines: usize,
    /// Requests at once.
    pub requests: usize,
    /// Connections at once.
    pub connections: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Time for a request; in a batch, for the next part to arrive.
    pub request_time: Duration,
    /// Time in which a client must send the next request, or take some of a response.
    pub idle_time: Duration,
    /// Time to finish accepted requests when the service stops.
    pub stop_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 16 << 20,
            page_bytes: 8 << 20,
            batch_lines: 100_000,
            requests: 1024,
            connections: 8192,
            head_bytes: 16 << 10,
            request_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(60),
            stop_time: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// The defaults for a directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Settings {
        Settings {
            directory,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            tokens: Tokens::default(),
            hosts: Vec::new(),
            backups: None,
            access_log: true,
            skip_damaged: false,
            threads: 0,
            memory_bytes: 0,
            memory_rows: 0,
            limits: Limits::default(),
            collections: BTreeMap::new(),
        }
    }

    /// Takes the settings of a TOML file.
    ///
    /// # Errors
    /// When it cannot be read, or with the line and what is wrong there.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
        let file: File = toml::from_str(&text)
            .map_err(|cause| Error::bad_input(path, format!("is not a valid configuration:\n{cause}")))?;
        let beside = path.parent().expect("a file that was read has a parent");
        set(&mut self.listen, file.listen);
        set(&mut self.hosts, file.hosts);
        set(&mut self.access_log, file.access_log);
        set(&mut self.skip_damaged, file.skip_damaged);
        set(&mut self.threads, file.threads);
        set(&mut self.memory_bytes, file.memory.map(|bytes| bytes.0));
        set(&mut self.memory_rows, file.memory_rows);
        set(&mut self.collections, file.collections);
        // Paths in a file are relative to it.
        self.backups = file.backups.map(|path| beside.join(path)).or(self.backups.take());
        if let Some(tokens) = file.tokens {
            self.tokens = Tokens::read(&beside.join(tokens))?;
        }
        let limits = &mut self.limits;
        let given = file.limits;
        // On a small machine, a limit beyond its memory is not a limit.
        let usize_of = |bytes: Option<Bytes>| bytes.map(|bytes| usize::try_from(bytes.0).unwrap_or(usize::MAX));
        set(&mut limits.body_bytes, usize_of(given.body));
        set(&mut limits.page_bytes, usize_of(given.page));
        set(&mut limits.batch_lines, given.batch_lines);
        set(&mut limits.requests, given.requests);
        set(&mut limits.connections, given.connections);
        set(&mut limits.head_bytes, usize_of(given.head));
        set(&mut limits.request_time, given.request_seconds.map(Duration::from_secs));
        set(&mut limits.idle_time, given.idle_seconds.map(Duration::from_secs));
        set(&mut limits.stop_time, given.stop_seconds.map(Duration::from_secs));
        Ok(())
    }

    /// Refuses settings that are unsafe or cannot work.
    ///
    /// # Errors
    /// With the setting and what to change.
    pub fn check(&self) -> Result<()> {
        if !self.listen.ip().is_loopback() && self.tokens.is_empty() {
            let reason = format!(
                "others can reach {}, so give `tokens`: a file with lines like 'write SECRET' and 'read SECRET', or the same in LOOKALIKE_TOKENS, separated by commas",
                self.listen
            );
            return Err(Error::conflict("listen", reason));
        }
        let limits = &self.limits;
        for (name, limit) in [
            ("limits.body", limits.body_bytes),
            ("limits.page", limits.page_bytes),
            ("limits.batch_lines", limits.batch_lines),
            ("limits.requests", limits.requests),
            ("limits.connections", limits.connections),
        ] {
            if limit == 0 {
                return Err(Error::invalid(name, limit, "must be at least 1; leave it out for the default"));
            }
        }
        for (name, time) in [("limits.request_seconds", limits.request_time), ("limits.idle_seconds", limits.idle_time)]
        {
            if time.is_zero() {
                return Err(Error::invalid(name, time.as_secs(), "must be at least 1; leave it out for the default"));
            }
        }
        if limits.head_bytes < LEAST_HEAD_BYTES {
            return Err(Error::invalid("limits.head", limits.head_bytes, "must be at least 8KiB"));
        }
        Ok(())
    }
}

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

/// A number of bytes, as in `8MiB`.
#[derive(Debug, Clone, Copy)]
struct Bytes(u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_bytes(&text).map(Bytes).map_err(serde::de::Error::custom)
    }
}

/// What a file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<SocketAddr>,
    tokens: Option<PathBuf>,
    hosts: Option<Vec<String>>,
    backups: Option<PathBuf>,
    access_log: Option<bool>,
    skip_damaged: Option<bool>,
    threads: Option<usize>,
    memory: Option<Bytes>,
    memory_rows: Option<u64>,
    limits: FileLimits,
    collections: Option<BTreeMap<String, CollectionSettings>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    body: Option<Bytes>,
    page: Option<Bytes>,
    batch_lines: Option<usize>,
    requests: Option<usize>,
    connections: Option<usize>,
    head: Option<Bytes>,
    request_seconds: Option<u64>,
    idle_seconds: Option<u64>,
    stop_seconds: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_mistakes_are_shown_with_their_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        std::fs::write(directory.path().join("tokens"), "write abcdefghijklmnop\n").unwrap();
        let text = "listen = \"0.0.0.0:9000\"\ntokens = \"tokens\"\nbackups = \"copies\"\n[limits]\npage = \"1MiB\"\nrequest_seconds = 5\n[collections.news]\nlanguage = \"deu\"\nradius = 4\n";
        std::fs::write(&path, text).unwrap();
        let mut settings = Settings::new("index".into());
        settings.read(&path).unwrap();
        settings.check().unwrap();
        assert_eq!((settings.listen.port(), settings.limits.page_bytes), (9000, 1 << 20));
        assert_eq!(settings.limits.request_time, Duration::from_secs(5));
        assert_eq!(settings.backups, Some(directory.path().join("copies")));
        assert_eq!(settings.collections["news"].radius, Some(4));
        for (wrong, word) in
            [("lisen = 1", "lisen"), ("[limits]\npage = \"much\"", "much"), ("listen = \"here\"", "listen")]
        {
            std::fs::write(&path, wrong).unwrap();
            let error = settings.read(&path).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("line"), "{error}");
        }
    }

    #[test]
    fn the_configuration_in_deploy_has_the_defaults() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/service.toml");
        let mut settings = Settings::new("index".into());
        settings.memory_bytes = 2 << 30;
        settings.memory_rows = 262_144;
        let defaults = format!("{settings:?}");
        settings.read(&path).unwrap();
        assert_eq!(format!("{settings:?}"), defaults);
    }

    #[test]
    fn a_limit_that_lets_nothing_through_is_refused_by_its_name() {
        let mut settings = Settings::new("index".into());
        settings.limits.requests = 0;
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains("limits.requests") && error.contains("at least 1"), "{error}");
    }

    #[test]
    fn an_address_that_others_reach_needs_a_token() {
        let mut settings = Settings::new("index".into());
        settings.check().unwrap();
        settings.listen = "0.0.0.0:8700".parse().unwrap();
        assert!(settings.check().unwrap_err().to_string().contains("`tokens`"));
        settings.tokens = Tokens::parse("read aaaaaaaaaaaaaaaa").unwrap();
        settings.check().unwrap();
    }
}
