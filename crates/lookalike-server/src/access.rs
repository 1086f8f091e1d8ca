//! Who may ask, and who may store.

use std::path::Path;

use axum::http::{HeaderMap, header};
use lookalike::error::{Error, Result};
use subtle::{Choice, ConstantTimeEq};

use crate::problem::{Kind, Problem};

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Ask.
    Read,
    /// Ask and store.
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

/// A secret that is shorter can be guessed.
const LEAST_LENGTH: usize = 16;

impl Tokens {
    /// Reads tokens from a file, one a line: `read SECRET` or `write SECRET`. Empty lines and lines with # are
    /// passed over.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub fn read(path: &Path) -> Result<Tokens> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
        Tokens::parse(&text).map_err(|reason| Error::bad_input(path, reason))
    }

    /// The same from a text, in which commas stand for ends of lines, too.
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
            let (rights, secret) = line.split_once([' ', '\t']).ok_or_else(|| bad("there is one word only"))?;
            let rights = match rights {
                "read" => Rights::Read,
                "write" => Rights::Write,
                _ => return Err(bad("the first word is neither read nor write")),
            };
            let secret = secret.trim();
            if secret.len() < LEAST_LENGTH || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(bad("the secret must be at least 16 characters of ASCII without spaces"));
            }
            tokens.push((rights, secret.to_owned()));
        }
        if tokens.is_empty() {
            return Err("there is no token in it; expected lines like 'read SECRET' or 'write SECRET'".to_owned());
        }
        Ok(Tokens(tokens))
    }

    /// Whether nobody is asked for one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the sender of a request may do.
    pub(crate) fn rights(&self, headers: &HeaderMap) -> std::result::Result<Rights, Problem> {
        if self.is_empty() {
            return Ok(Rights::Write);
        }
        let given = headers.get(header::AUTHORIZATION).map(axum::http::HeaderValue::as_bytes).unwrap_or_default();
        let given = match given.split_first_chunk::<7>() {
            Some((scheme, secret)) if scheme.eq_ignore_ascii_case(b"bearer ") => secret,
            _ => return Err(Kind::Unauthorized.with("send the header Authorization: Bearer SECRET")),
        };
        // All are compared, whichever fits: time tells nothing but lengths.
        let mut found: Option<Rights> = None;
        for (rights, secret) in &self.0 {
            let is_equal: Choice = secret.as_bytes().ct_eq(given);
            if bool::from(is_equal) {
                found = found.max(Some(*rights));
            }
        }
        found.ok_or_else(|| Kind::Unauthorized.with("this token is not known here"))
    }
}

/// Refuses requests that were meant for another host: a page in a browser can make a name of its own point here.
pub(crate) fn check_host(headers: &HeaderMap, hosts: &[String]) -> std::result::Result<(), Problem> {
    // Pages of other sites send this with what they make a browser do.
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    let origin = origin.map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    if host.into_iter().chain(origin).all(|host| is_known(host, hosts)) {
        return Ok(());
    }
    Err(Kind::Forbidden.with(
        "the header Host or Origin names another host than this service, which has no tokens; name the host with --allow-host, or set tokens",
    ))
}

/// Whether a name is one of this service.
fn is_known(host: &str, hosts: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
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
    fn tokens_give_rights_and_mistakes_are_told_without_the_secret() {
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
