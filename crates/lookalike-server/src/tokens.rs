//! Secrets, and what they allow: which calls, in which collections, how often.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use lookalike::{Error, Result};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::problem::{Problem, ProblemKind};

/// What a client may do; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Look up pages.
    Read,
    /// Store and remove pages.
    Write,
    /// Create and remove collections, change their settings, make backups.
    Admin,
}

/// Shorter secrets could be guessed.
pub(crate) const LEAST_SECRET_LENGTH: usize = 16;
/// How a hashed secret begins in a file.
const HASHED: &str = "sha256:";
const FORM: &str = "expected 'read SECRET', 'write SECRET' or 'admin SECRET', and after it perhaps names of collections, name=NAME and rate=N";

type Hash = [u8; 32];

fn hash(secret: &[u8]) -> Hash {
    Sha256::digest(secret).into()
}

/// Refuses secrets that are easy to guess or cannot be sent.
fn check_secret(secret: &str) -> std::result::Result<(), &'static str> {
    if secret.len() < LEAST_SECRET_LENGTH || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the secret must be at least 16 ASCII characters without spaces");
    }
    Ok(())
}

/// How a secret is written in a file that others may see: the service needs no more to recognise it.
///
/// Secrets are long and random, so that nobody finds one by trying: a slow hash would only slow every request.
///
/// # Errors
/// When the secret is too short or has spaces.
pub fn hash_token(secret: &str) -> std::result::Result<String, &'static str> {
    check_secret(secret)?;
    let hex: String = hash(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{HASHED}{hex}"))
}

fn from_hex(text: &str) -> Option<Hash> {
    let digits = text.as_bytes().chunks_exact(2);
    let bytes: Option<Vec<u8>> = digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect();
    bytes.filter(|_| text.len() == 64 && !text.contains('+'))?.try_into().ok()
}

/// One secret and what it allows.
pub(crate) struct Token {
    /// For the log: its name, or the number of its line.
    pub(crate) name: String,
    rights: Rights,
    /// All, if there are none.
    collections: Vec<String>,
    /// Requests per second; otherwise the limit of all tokens counts.
    rate: Option<u32>,
    hash: Hash,
    allowance: Mutex<Allowance>,
}

/// Requests that a token may still make, and when that was counted.
struct Allowance {
    left: f64,
    counted: Instant,
}

impl Token {
    fn parse(number: usize, line: &str) -> std::result::Result<Token, String> {
        // The secret itself is not repeated: errors end up in logs.
        let bad = |reason: &str| format!("token {number}: {reason}; {FORM}");
        let mut words = line.split_ascii_whitespace();
        let rights = match words.next() {
            Some("read") => Rights::Read,
            Some("write") => Rights::Write,
            Some("admin") => Rights::Admin,
            _ => return Err(bad("the first word is neither read, write nor admin")),
        };
        let secret = words.next().ok_or_else(|| bad("there is only one word"))?;
        let hash = match secret.strip_prefix(HASHED) {
            Some(hex) => from_hex(hex).ok_or_else(|| bad("sha256: must be followed by 64 hex digits"))?,
            None => check_secret(secret).map(|()| hash(secret.as_bytes())).map_err(bad)?,
        };
        let mut token = Token {
            name: number.to_string(),
            rights,
            collections: Vec::new(),
            rate: None,
            hash,
            allowance: Mutex::new(Allowance { left: 0.0, counted: Instant::now() }),
        };
        for word in words {
            match word.split_once('=') {
                Some(("name", name)) if is_plain(name) => token.name = name.to_owned(),
                Some(("rate", rate)) => {
                    let rate = rate.parse().ok().filter(|rate| *rate > 0);
                    token.rate = Some(rate.ok_or_else(|| bad("rate= needs a number of requests per second"))?);
                    token.allowance.get_mut().unwrap_or_else(PoisonError::into_inner).left = rate.unwrap_or(0).into();
                }
                None if is_plain(word) => token.collections.push(word.to_owned()),
                _ => return Err(bad("a word after the secret is neither a collection, name= nor rate=")),
            }
        }
        Ok(token)
    }

    /// Counts a request against the token's rate; otherwise how long to wait. A second's worth may come at once.
    fn take(&self, rate_of_all: u32) -> std::result::Result<(), Duration> {
        let rate = f64::from(self.rate.unwrap_or(rate_of_all));
        if rate == 0.0 {
            return Ok(());
        }
        let mut allowance = self.allowance.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.duration_since(allowance.counted).as_secs_f64() * rate;
        allowance.left = (allowance.left + gained).min(rate.max(1.0));
        allowance.counted = now;
        if allowance.left >= 1.0 {
            allowance.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - allowance.left) / rate))
    }
}

fn is_plain(word: &str) -> bool {
    (1..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Secrets and what they allow.
#[derive(Clone, Default)]
pub struct Tokens(Vec<Arc<Token>>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

impl Tokens {
    /// Reads tokens from a file, one per line: `read SECRET`, `write SECRET` or `admin SECRET`, with names of collections
    /// behind it if the token is for these alone. Empty lines and lines that begin with # are skipped.
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
        let lines = (1..).zip(text.split(['\n', ',']).map(str::trim));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let tokens = lines.map(|(number, line)| Token::parse(number, line).map(Arc::new));
        let tokens = tokens.collect::<std::result::Result<Vec<_>, _>>()?;
        if tokens.is_empty() {
            return Err(format!("has no tokens; {FORM}"));
        }
        Ok(Tokens(tokens))
    }

    /// Whether no token is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// What the client that sent a request may do anywhere.
    #[cfg_attr(not(any(test, feature = "workbench")), expect(dead_code))]
    pub(crate) fn rights(&self, headers: &HeaderMap) -> std::result::Result<Rights, Problem> {
        self.access(headers).map(|access| access.token.map_or(Rights::Admin, |token| token.rights))
    }

    /// What the client that sent a request may do.
    pub(crate) fn access(&self, headers: &HeaderMap) -> std::result::Result<Access, Problem> {
        if self.is_empty() {
            return Ok(Access { token: None });
        }
        let given = headers.get(header::AUTHORIZATION).map_or(&b""[..], axum::http::HeaderValue::as_bytes);
        let given = match given.split_first_chunk::<7>() {
            Some((scheme, secret)) if scheme.eq_ignore_ascii_case(b"bearer ") => hash(secret),
            _ => return Err(ProblemKind::Unauthorized.with("send the header Authorization: Bearer SECRET")),
        };
        // All are compared in any case: the time reveals nothing.
        let mut found: Option<&Arc<Token>> = None;
        for token in &self.0 {
            let is_equal: Choice = token.hash.ct_eq(&given);
            if bool::from(is_equal) && found.is_none_or(|found| token.rights > found.rights) {
                found = Some(token);
            }
        }
        let token = found.ok_or_else(|| ProblemKind::Unauthorized.with("unknown token"))?;
        Ok(Access { token: Some(Arc::clone(token)) })
    }
}

/// What a request may do.
#[derive(Clone)]
pub(crate) struct Access {
    /// None where no tokens are needed.
    pub(crate) token: Option<Arc<Token>>,
}

impl Access {
    /// Refuses a request that needs more rights than the token has.
    pub(crate) fn need(&self, needed: Rights) -> std::result::Result<(), Problem> {
        let given = self.token.as_ref().map_or(Rights::Admin, |token| token.rights);
        if given >= needed {
            return Ok(());
        }
        let (allowed, needed) = match (given, needed) {
            (Rights::Read, Rights::Admin) => ("reading", "admin"),
            (Rights::Read, _) => ("reading", "write"),
            _ => ("reading and writing", "admin"),
        };
        Err(ProblemKind::Forbidden.with(format!("this token allows {allowed} only; the call needs '{needed}'")))
    }

    /// Whether the token is for this collection, too.
    pub(crate) fn includes(&self, collection: &str) -> bool {
        let names = self.token.as_ref().map_or(&[][..], |token| &token.collections);
        names.is_empty() || names.iter().any(|name| name == collection)
    }

    /// Refuses a request about a collection that the token is not for. Whether there is such a collection is not said.
    pub(crate) fn need_collection(&self, collection: &str) -> std::result::Result<(), Problem> {
        if self.includes(collection) {
            return Ok(());
        }
        Err(ProblemKind::Forbidden.with("this token is for other collections"))
    }

    /// Refuses a request about all collections by a token that is for some.
    pub(crate) fn need_all_collections(&self) -> std::result::Result<(), Problem> {
        if self.token.as_ref().is_none_or(|token| token.collections.is_empty()) {
            return Ok(());
        }
        Err(ProblemKind::Forbidden.with("this needs a token for all collections"))
    }

    /// Counts a request against the rate of the token; otherwise how long to wait.
    pub(crate) fn take(&self, rate_of_all: u32) -> std::result::Result<(), Duration> {
        self.token.as_ref().map_or(Ok(()), |token| token.take(rate_of_all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn tokens_give_rights_and_mistakes_are_reported_without_the_secret() {
        let hashed = hash_token("cccccccccccccccc").unwrap();
        let text = format!("# who\nread aaaaaaaaaaaaaaaa\n\nwrite bbbbbbbbbbbbbbbb\nadmin {hashed} name=boss");
        let tokens = Tokens::parse(&text).unwrap();
        let rights = |secret: &str| tokens.rights(&bearer(secret)).map_err(|problem| problem.status);
        assert_eq!(rights("Bearer aaaaaaaaaaaaaaaa"), Ok(Rights::Read));
        assert_eq!(rights("bearer bbbbbbbbbbbbbbbb"), Ok(Rights::Write));
        assert_eq!(rights("Bearer cccccccccccccccc"), Ok(Rights::Admin));
        // Who reads the file has not got the secret.
        let hashed = format!("Bearer {hashed}");
        for wrong in
            ["Bearer aaaaaaaaaaaaaaab", "Bearer aaaaaaaaaaaaaaa", "Bearer ", "Basic aaaaaaaaaaaaaaaa", "", &hashed]
        {
            assert_eq!(rights(wrong), Err(401), "{wrong}");
        }
        assert_eq!(tokens.rights(&HeaderMap::new()).map_err(|problem| problem.status), Err(401));
        assert_eq!(Tokens::default().rights(&HeaderMap::new()).ok(), Some(Rights::Admin));
        for wrong in [
            "",
            "read",
            "own aaaaaaaaaaaaaaaa",
            "read short",
            "read aaaaaaaaaaaaaaaa rate=x",
            "read sha256:aaaaaaaaaaaa",
        ] {
            let error = Tokens::parse(wrong).unwrap_err();
            assert!(!error.contains("short") && !error.contains("aaaa"), "{error}");
        }
    }

    #[test]
    fn a_token_is_for_its_collections_and_its_rate() {
        let tokens = Tokens::parse("write aaaaaaaaaaaaaaaa news blogs rate=2 name=crawler").unwrap();
        let access = tokens.access(&bearer("Bearer aaaaaaaaaaaaaaaa")).unwrap();
        assert!(access.includes("news") && access.includes("blogs") && !access.includes("default"));
        assert!(access.need(Rights::Write).is_ok() && access.need(Rights::Admin).is_err());
        assert_eq!(access.token.as_ref().unwrap().name, "crawler");
        assert!(access.take(0).is_ok() && access.take(0).is_ok());
        assert!(access.take(0).is_err_and(|wait| wait <= Duration::from_millis(500)));
    }
}
