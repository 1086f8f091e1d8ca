//! Who may read, and who may write.

use std::path::Path;

use axum::http::{HeaderMap, header};
use lookalike::{Error, Result};
use subtle::{Choice, ConstantTimeEq};

use crate::problem::{Problem, ProblemKind};

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Look up pages.
    Read,
    /// Look up, store and remove pages, create collections and backups.
    Write,
}

/// Secrets and what they allow.
#[derive(Clone, Default)]
pub struct Tokens(Vec<(Rights, String)>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

/// Shorter secrets could be guessed.
const LEAST_SECRET_LENGTH: usize = 16;

impl Tokens {
    /// Reads tokens from a file, one per line: `read SECRET` or `write SECRET`. Empty lines and lines that begin with #
    /// are skipped.
    ///
    /// # Errors
    /// When the file cannot be read, or with the line that is wrong.
    pub fn read(path: &Path) -> Result<Tokens> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
        Tokens::parse(&text).map_err(|reason| Error::bad_input(path, reason))
    }

    /// The same from a text, in which commas may stand for line ends.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub fn parse(text: &str) -> std::result::Result<Tokens, String> {
        let mut tokens = Vec::new();
        for (number, line) in (1..).zip(text.split(['\n', ','])) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // The secret itself is not repeated: errors end up in logs.
            let bad = |reason: &str| format!("token {number}: {reason}; expected 'read SECRET' or 'write SECRET'");
            let (rights, secret) = line.split_once([' ', '\t']).ok_or_else(|| bad("there is only one word"))?;
            let rights = match rights {
                "read" => Rights::Read,
                "write" => Rights::Write,
                _ => return Err(bad("the first word is neither read nor write")),
            };
            let secret = secret.trim();
            if secret.len() < LEAST_SECRET_LENGTH || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(bad("the secret must be at least 16 ASCII characters without spaces"));
            }
            tokens.push((rights, secret.to_owned()));
        }
        if tokens.is_empty() {
            return Err("has no tokens; expected lines like 'read SECRET' or 'write SECRET'".to_owned());
        }
        Ok(Tokens(tokens))
    }

    /// Whether no token is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the client that sent a request may do.
    pub(crate) fn rights(&self, headers: &HeaderMap) -> std::result::Result<Rights, Problem> {
        if self.is_empty() {
            return Ok(Rights::Write);
        }
        let given = headers.get(header::AUTHORIZATION).map_or(&b""[..], axum::http::HeaderValue::as_bytes);
        let given = match given.split_first_chunk::<7>() {
            Some((scheme, secret)) if scheme.eq_ignore_ascii_case(b"bearer ") => secret,
            _ => return Err(ProblemKind::Unauthorized.with("send the header Authorization: Bearer SECRET")),
        };
        // All are compared in any case: the time reveals nothing but their lengths.
        let mut found: Option<Rights> = None;
        for (rights, secret) in &self.0 {
            let is_equal: Choice = secret.as_bytes().ct_eq(given);
            if bool::from(is_equal) {
                found = found.max(Some(*rights));
            }
        }
        found.ok_or_else(|| ProblemKind::Unauthorized.with("unknown token"))
    }
}

/// A name that no host has, for headers that are not ASCII.
const UNKNOWN: &str = "?";

/// Refuses requests to another host name: a web page can make a name of its own resolve to this service.
pub(crate) fn check_host(headers: &HeaderMap, hosts: &[String]) -> std::result::Result<(), Problem> {
    // Browsers send this with requests that a page of another site makes.
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or(UNKNOWN));
    let origin = origin.map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or(UNKNOWN));
    if host.into_iter().chain(origin).all(|host| is_known(host, hosts)) {
        return Ok(());
    }
    Err(ProblemKind::Forbidden.with(
        "the header Host or Origin names a host that this service does not know; start the service with this host allowed, or with tokens",
    ))
}

/// Whether a name is one of those by which this service may be called.
fn is_known(host: &str, hosts: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok()
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn tokens_give_rights_and_mistakes_are_reported_without_the_secret() {
        let tokens = Tokens::parse("# who\nread aaaaaaaaaaaaaaaa\n\nwrite bbbbbbbbbbbbbbbb").unwrap();
        let rights =
            |secret: &str| tokens.rights(&headers(header::AUTHORIZATION, secret)).map_err(|problem| problem.status);
        assert_eq!(rights("Bearer aaaaaaaaaaaaaaaa"), Ok(Rights::Read));
        assert_eq!(rights("bearer bbbbbbbbbbbbbbbb"), Ok(Rights::Write));
        for wrong in ["Bearer aaaaaaaaaaaaaaab", "Bearer aaaaaaaaaaaaaaa", "Bearer ", "Basic aaaaaaaaaaaaaaaa", ""] {
            assert_eq!(rights(wrong), Err(401), "{wrong}");
        }
        assert_eq!(tokens.rights(&HeaderMap::new()).map_err(|problem| problem.status), Err(401));
        assert_eq!(Tokens::default().rights(&HeaderMap::new()).ok(), Some(Rights::Write));
        for wrong in ["", "read", "own aaaaaaaaaaaaaaaa", "read short", "read aaaaaaaaa aaaaaaaaaaaaa"] {
            let error = Tokens::parse(wrong).unwrap_err();
            assert!(!error.contains("short") && !error.contains("aaaa"), "{error}");
        }
    }

    #[test]
    fn other_hosts_are_refused_where_there_are_no_tokens() {
        let check = |host: &str| check_host(&headers(header::HOST, host), &["crawl.example".to_owned()]).is_ok();
        for known in ["localhost", "LOCALHOST:8700", "127.0.0.1:8700", "[::1]:8700", "crawl.example:80"] {
            assert!(check(known), "{known}");
        }
        for other in ["evil.example", "evil.example:8700", "localhost.evil.example", "127.0.0.1.evil.example"] {
            assert!(!check(other), "{other}");
        }
        let from = |origin: &str| check_host(&headers(header::ORIGIN, origin), &[]).is_ok();
        assert!(from("http://localhost:3000") && from("http://127.0.0.1"));
        assert!(!from("https://evil.example") && !from("null"));
    }
}
