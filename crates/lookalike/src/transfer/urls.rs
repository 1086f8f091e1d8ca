//! URLs in a normal form, so that one page has one URL.

use std::fmt;
use std::str::FromStr;

use crate::text::site::{SiteRule, parsed_url};

/// What URLs are counted by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DomainRule {
    /// The whole host without www.: en.wikipedia.org.
    #[default]
    Host,
    /// The registrable domain, by the public suffix list: wikipedia.org.
    Registrable,
    /// The longest of these that the URL begins with, in its normal form: en.wikipedia.org/wiki. Other URLs are not
    /// counted.
    Prefixes(Vec<String>),
}

impl FromStr for DomainRule {
    type Err = String;

    fn from_str(text: &str) -> Result<DomainRule, String> {
        let prefix = |prefix: &str| {
            let is_one = prefix.contains(['.', '/']) && !prefix.contains(char::is_whitespace);
            is_one.then(|| normalized(prefix)).flatten().filter(|prefix| !prefix.is_empty())
        };
        match text {
            "host" => Ok(DomainRule::Host),
            "registrable" => Ok(DomainRule::Registrable),
            list => list.split(',').map(prefix).collect::<Option<_>>().map(DomainRule::Prefixes).ok_or_else(|| {
                "must be host, registrable, or how URLs begin, such as en.wikipedia.org/wiki,example.org".to_owned()
            }),
        }
    }
}

impl fmt::Display for DomainRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DomainRule::Host => f.write_str("host"),
            DomainRule::Registrable => f.write_str("registrable"),
            DomainRule::Prefixes(prefixes) => f.write_str(&prefixes.join(",")),
        }
    }
}

impl DomainRule {
    /// The domain of `url`, or none where it has none that counts.
    #[must_use]
    pub fn domain(&self, url: &str) -> Option<String> {
        match self {
            DomainRule::Prefixes(prefixes) => {
                let url = normalized(url)?;
                // A name ends where the next part of the URL begins.
                let begins = |prefix: &&String| {
                    url.strip_prefix(prefix.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', ':']))
                };
                prefixes.iter().filter(begins).max_by_key(|prefix| prefix.len()).cloned()
            }
            DomainRule::Registrable => SiteRule::Registrable.site(url),
            DomainRule::Host => {
                let host = parsed_url(url)?.host_str().map(plain_host)?;
                (!host.is_empty()).then_some(host)
            }
        }
    }
}

/// A host in lower case, without `www.`.
fn plain_host(host: &str) -> String {
    let host = host.trim_end_matches('.').to_lowercase();
    host.strip_prefix("www.").map(str::to_owned).unwrap_or(host)
}

/// A URL without what makes no difference: scheme, `www.`, default port, fragment, a slash or `index.html` at the
/// end, upper case in the host.
#[must_use]
pub fn normalized(url: &str) -> Option<String> {
    let Some(parsed) = parsed_url(url) else { return Some(path(url)) };
    let host = plain_host(parsed.host_str()?);
    let port = parsed.port().filter(|port| *port != 80 && *port != 443);
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    let query = parsed.query().filter(|query| !query.is_empty()).map_or_else(String::new, |query| format!("?{query}"));
    Some(format!("{host}{port}{}{query}", path(parsed.path())))
}

/// A path without its trivial end.
pub(super) fn path(path: &str) -> String {
    let path = path.trim_start_matches("./");
    let cut = ["index.html", "index.htm", "index.php"]
        .iter()
        .find_map(|end| path.strip_suffix(end).filter(|rest| rest.is_empty() || rest.ends_with('/')));
    cut.unwrap_or(path).trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_hosts_or_registrable() {
        for (url, host, registrable) in [
            ("http://en.wikipedia.org/wiki/Web", "en.wikipedia.org", "wikipedia.org"),
            ("https://WWW.Example.co.uk:8080/a", "example.co.uk", "example.co.uk"),
            ("news.bbc.co.uk/a", "news.bbc.co.uk", "bbc.co.uk"),
            ("http://10.1.2.3/x", "10.1.2.3", "10.1.2.3"),
        ] {
            assert_eq!(DomainRule::Host.domain(url).as_deref(), Some(host));
            assert_eq!(DomainRule::Registrable.domain(url).as_deref(), Some(registrable));
        }
        assert_eq!(DomainRule::Host.domain("mailto:someone"), None);
    }

    #[test]
    fn domains_can_be_how_urls_begin() {
        let rule: DomainRule = "https://en.wikipedia.org/wiki/,en.wikipedia.org,example.org/a".parse().unwrap();
        assert_eq!(rule.to_string(), "en.wikipedia.org/wiki,en.wikipedia.org,example.org/a");
        for (url, domain) in [
            ("http://en.wikipedia.org/wiki/Web", Some("en.wikipedia.org/wiki")),
            ("http://en.wikipedia.org/wiki", Some("en.wikipedia.org/wiki")),
            ("http://en.wikipedia.org/wikipedia", Some("en.wikipedia.org")),
            ("http://www.example.org/a?x=1", Some("example.org/a")),
            ("http://example.org/ab", None),
            ("http://de.wikipedia.org/wiki/Web", None),
        ] {
            assert_eq!(rule.domain(url).as_deref(), domain, "{url}");
        }
        for wrong in ["", "hosts", "a.org,,b.org", "a b.org"] {
            assert!(wrong.parse::<DomainRule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_makes_no_difference_is_dropped() {
        for url in [
            "http://www.Example.org/a/",
            "https://example.org/a",
            "example.org:80/a/index.html",
            "HTTPS://EXAMPLE.ORG:443/a#part",
            "http://example.org./a?",
        ] {
            assert_eq!(normalized(url).as_deref(), Some("example.org/a"), "{url}");
        }
        assert_eq!(normalized("http://example.org").as_deref(), Some("example.org"));
        assert_eq!(normalized("http://example.org/a?x=1").as_deref(), Some("example.org/a?x=1"));
        assert_ne!(normalized("http://example.org/a"), normalized("http://example.org/A"));
        assert_ne!(normalized("http://example.org:8080/a"), normalized("http://example.org/a"));
    }
}
