//! Settings of the service. Those of a file are read here; the command line adds the environment and flags, which win.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use lookalike::config::parse_bytes;
use lookalike::{Error, Result};
use serde::{Deserialize, Deserializer};

use crate::collections::CollectionSettings;
use crate::limits::{FileLimits, Limits};
use crate::log::LogFormat;
use crate::tokens::Tokens;

/// The default port.
pub const PORT: u16 = 8700;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of the indexes.
    pub directory: PathBuf,
    /// Address and port.
    pub listen: SocketAddr,
    /// A second address, for /healthz, /readyz and /metrics alone.
    pub admin_listen: Option<SocketAddr>,
    /// The certificates and the key of TLS; without them, the service speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Who may read and who may write; everybody, if there are no tokens.
    pub tokens: Tokens,
    /// Host names that the service accepts, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Origins of web pages that may use the service, as in `https://seen.example`, besides its own.
    pub origins: Vec<String>,
    /// The directory for backups; without it, none can be made.
    pub backups: Option<PathBuf>,
    /// Whether every request is logged.
    pub access_log: bool,
    /// How lines of the log look.
    pub log_format: LogFormat,
    /// Serve without damaged parts, and store nothing.
    pub skip_damaged: bool,
    /// Serve without writing to the directory, and store nothing.
    pub read_only: bool,
    /// The folder in an object store that everything is shipped to, as in `s3://bucket/prefix`.
    pub ship: Option<String>,
    /// The folder that another service ships to, which this one follows.
    pub follow: Option<String>,
    /// With `ship`: take over from the service that ships there now.
    pub promote: bool,
    /// Copies of an index that are kept where it is shipped to.
    pub keep_bases: usize,
    /// How far a follower may be behind before it counts as not ready; 0 for any time.
    pub follow_lag_seconds: u64,
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

/// Files in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the service, and those that it was signed with.
    pub certificates: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Settings {
    /// The defaults for a directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Settings {
        Settings {
            directory,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            admin_listen: None,
            tls: None,
            tokens: Tokens::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            backups: None,
            access_log: true,
            log_format: LogFormat::Text,
            skip_damaged: false,
            read_only: false,
            ship: None,
            follow: None,
            promote: false,
            keep_bases: 2,
            follow_lag_seconds: 0,
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
        self.admin_listen = file.admin_listen.or(self.admin_listen);
        set(&mut self.hosts, file.hosts);
        set(&mut self.origins, file.origins);
        set(&mut self.access_log, file.access_log);
        set(&mut self.log_format, file.log_format);
        set(&mut self.skip_damaged, file.skip_damaged);
        set(&mut self.read_only, file.read_only);
        self.ship = file.ship.or(self.ship.take());
        self.follow = file.follow.or(self.follow.take());
        set(&mut self.keep_bases, file.keep_bases);
        set(&mut self.follow_lag_seconds, file.follow_lag_seconds);
        set(&mut self.threads, file.threads);
        set(&mut self.memory_bytes, file.memory.map(|bytes| bytes.0));
        set(&mut self.memory_rows, file.memory_rows);
        set(&mut self.collections, file.collections);
        // Paths in a file are relative to it.
        self.backups = file.backups.map(|path| beside.join(path)).or(self.backups.take());
        if let Some(tokens) = file.tokens {
            self.tokens = Tokens::read(&beside.join(tokens))?;
        }
        self.tls = match (file.tls_cert, file.tls_key) {
            (Some(certificates), Some(key)) => {
                Some(TlsFiles { certificates: beside.join(certificates), key: beside.join(key) })
            }
            (None, None) => self.tls.take(),
            _ => return Err(Error::bad_input(path, "has one of tls_cert and tls_key; give both")),
        };
        self.limits.read(file.limits);
        Ok(())
    }

    /// Refuses settings that are unsafe or cannot work.
    ///
    /// # Errors
    /// With the setting and what to change.
    pub fn check(&self) -> Result<()> {
        if !self.listen.ip().is_loopback() && self.tokens.is_empty() {
            let reason = format!(
                "others can reach {}, so give `tokens`: a file with lines like 'admin SECRET', 'write SECRET' and 'read SECRET', or the same in LOOKALIKE_TOKENS, separated by commas",
                self.listen
            );
            return Err(Error::conflict("listen", reason));
        }
        if cfg!(not(feature = "tls")) && self.tls.is_some() {
            return Err(Error::conflict(
                "tls_cert",
                "this program was built without TLS; build it with `--features tls`",
            ));
        }
        self.check_replication()?;
        if let Some(origin) = self.origins.iter().find(|origin| !origin.contains("://") || origin.ends_with('/')) {
            return Err(Error::invalid(
                "origins",
                origin,
                "must be as in https://seen.example, or with :PORT behind it",
            ));
        }
        self.limits.check()
    }

    fn check_replication(&self) -> Result<()> {
        let (ship, follow) = (self.ship.as_ref(), self.follow.as_ref());
        if cfg!(not(feature = "remote")) && ship.or(follow).is_some() {
            let setting = if ship.is_some() { "ship" } else { "follow" };
            return Err(Error::conflict(
                setting,
                "this program was built without it; build it with `--features remote`",
            ));
        }
        if ship.is_some() && follow.is_some() {
            return Err(Error::conflict(
                "ship",
                "a service ships or follows; to take over from another, use `promote` with `ship`",
            ));
        }
        if self.promote && ship.is_none() {
            return Err(Error::conflict("promote", "needs `ship`: where the other service ships to"));
        }
        if ship.or(follow).is_some() && (self.skip_damaged || self.read_only) {
            return Err(Error::conflict(
                "ship",
                "what is shipped or followed is written to; leave `skip_damaged` and `read_only` out",
            ));
        }
        if self.keep_bases == 0 {
            return Err(Error::invalid("keep_bases", 0, "must be at least 1"));
        }
        Ok(())
    }
}

pub(crate) fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

/// A number of bytes, as in `8MiB`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteCount(pub(crate) u64);

impl<'de> Deserialize<'de> for ByteCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<ByteCount, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_bytes(&text).map(ByteCount).map_err(serde::de::Error::custom)
    }
}

/// What a file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<SocketAddr>,
    admin_listen: Option<SocketAddr>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tokens: Option<PathBuf>,
    hosts: Option<Vec<String>>,
    origins: Option<Vec<String>>,
    backups: Option<PathBuf>,
    access_log: Option<bool>,
    log_format: Option<LogFormat>,
    skip_damaged: Option<bool>,
    read_only: Option<bool>,
    ship: Option<String>,
    follow: Option<String>,
    keep_bases: Option<usize>,
    follow_lag_seconds: Option<u64>,
    threads: Option<usize>,
    memory: Option<ByteCount>,
    memory_rows: Option<u64>,
    limits: FileLimits,
    collections: Option<BTreeMap<String, CollectionSettings>>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
