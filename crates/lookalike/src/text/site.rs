//! The site a URL belongs to: by the rule of Henzinger (2006), §1 (a host with at most one dot is its own site;
//! otherwise the label before the first dot is dropped), or the registrable domain (`bbc.co.uk` for
//! `news.bbc.co.uk`).

use url::{Host, Url};

use crate::names::named;

named! {
    /// What makes two pages be of the same site.
    pub enum SiteRule default Paper {
        /// The host without its first label, if it has more than one dot
        Paper = "paper",
        /// The registrable domain, by the public suffix list
        Registrable = "registrable",
    }
}

impl SiteRule {
    /// The site of `url`, or none where it has no host.
    #[must_use]
    pub fn site(self, url: &str) -> Option<String> {
        let parsed = parsed_url(url)?;
        let host = match parsed.host()? {
            Host::Domain(host) => host.trim_end_matches('.'),
            address => return Some(address.to_string()),
        };
        let site = match self {
            SiteRule::Registrable => lookalike_suffix::registrable_domain(host).unwrap_or(host),
            SiteRule::Paper if host.matches('.').count() <= 1 => host,
            SiteRule::Paper => host.split_once('.').map_or(host, |(_, rest)| rest),
        };
        Some(site.to_owned())
    }
}

/// A URL, perhaps without its scheme.
pub(crate) fn parsed_url(url: &str) -> Option<Url> {
    // `example.org:8080/x` parses, with the host as its scheme.
    let whole = Url::parse(url).ok().filter(Url::has_host);
    whole.or_else(|| Url::parse(&format!("http://{url}")).ok())
}

/// The host of a URL.
pub(super) fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper(url: &str) -> Option<String> {
        SiteRule::Paper.site(url)
    }

    #[test]
    fn the_paper_s_rule() {
        assert_eq!(paper("http://www.cs.berkeley.edu/index.html").as_deref(), Some("cs.berkeley.edu"));
        assert_eq!(paper("https://example.org/a").as_deref(), Some("example.org"));
        assert_eq!(paper("http://localhost:80/").as_deref(), Some("localhost"));
        assert_eq!(paper("http://WWW.Example.org").as_deref(), Some("example.org"));
    }

    #[test]
    fn the_registrable_domain() {
        let site = |url: &str| SiteRule::Registrable.site(url);
        assert_eq!(site("http://www.cs.berkeley.edu/").as_deref(), Some("berkeley.edu"));
        assert_eq!(site("https://news.bbc.co.uk/a").as_deref(), Some("bbc.co.uk"));
        assert_eq!(paper("https://bbc.co.uk/a").as_deref(), Some("co.uk"), "why the paper's rule is not enough");
        assert_eq!(site("http://localhost/").as_deref(), Some("localhost"));
        assert_eq!(site("http://10.1.2.3/x").as_deref(), Some("10.1.2.3"));
    }

    #[test]
    fn addresses_and_things_that_are_no_urls() {
        assert_eq!(paper("http://10.1.2.3/x").as_deref(), Some("10.1.2.3"));
        assert_eq!(paper("www.example.org/x").as_deref(), Some("example.org"));
        assert_eq!(paper("www.example.org:8080/x").as_deref(), Some("example.org"));
        assert_eq!(paper("mailto:someone"), None);
        assert_eq!(paper(""), None);
    }
}
