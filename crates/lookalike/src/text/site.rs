//! The site a URL belongs to.
//!
//! The rule of Henzinger (2006), §1: a host with at most one dot is its own site; otherwise the
//! label before the first dot is dropped.

use url::{Host, Url};

/// The site of `url`, or none where it has no host.
#[must_use]
pub fn site(url: &str) -> Option<String> {
    let parsed = Url::parse(url).or_else(|_| Url::parse(&format!("http://{url}"))).ok()?;
    match parsed.host()? {
        Host::Domain(host) => {
            let host = host.trim_end_matches('.');
            let site =
                if host.matches('.').count() <= 1 { host } else { host.split_once('.').map_or(host, |(_, rest)| rest) };
            Some(site.to_owned())
        }
        address => Some(address.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_rule() {
        assert_eq!(site("http://www.cs.berkeley.edu/index.html").as_deref(), Some("cs.berkeley.edu"));
        assert_eq!(site("https://example.org/a").as_deref(), Some("example.org"));
        assert_eq!(site("http://localhost:80/").as_deref(), Some("localhost"));
        assert_eq!(site("http://WWW.Example.org").as_deref(), Some("example.org"));
    }

    #[test]
    fn addresses_and_things_that_are_no_urls() {
        assert_eq!(site("http://10.1.2.3/x").as_deref(), Some("10.1.2.3"));
        assert_eq!(site("www.example.org/x").as_deref(), Some("example.org"));
        assert_eq!(site("mailto:someone"), None);
        assert_eq!(site(""), None);
    }
}
