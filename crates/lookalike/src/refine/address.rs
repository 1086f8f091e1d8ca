//! URLs of results in a form in which one page has one URL.
//!
//! In: a URL as a search engine returns it. Out: what is left without scheme, `www.`, default port, fragment, tracking
//! parameters, and the marks of AMP, mobile and print variants; the host; the path without versions.

use url::Url;

use crate::text::site::parsed_url;

/// A result's URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The same for all URLs of one page.
    pub(super) key: String,
    /// The host, without `www.` and the like.
    pub(super) host: String,
    /// The parts of the path, in lower case, without endings and, but for the last, without those that name a version; then
    /// what is asked for behind it.
    pub(super) path: Vec<String>,
}

/// Labels of hosts that serve the same pages in another dress.
const VARIANT_HOSTS: &[&str] = &["www", "m", "mobile", "amp"];
/// Last parts of paths, and ends of file names, that ask for another dress of a page.
const VARIANT_PATHS: &[&str] = &["amp", "print", "printable", "mobile"];
/// Parameters that ask for another dress of a page.
const VARIANT_PARAMETERS: &[&str] = &["amp", "print", "printable", "printer_friendly", "mobile"];
/// Parameters that say where a visitor came from.
const TRACKING: &[&str] = &[
    "fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "twclid", "igshid", "mc_cid",
    "mc_eid", "mkt_tok", "ref_src", "ref_url", "spm", "_ga", "_gl", "_hsenc", "_hsmi", "vero_id", "wickedid", "cmpid",
    "ocid",
];
/// Endings of file names.
const ENDINGS: &[&str] = &["html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp"];
/// Parts of a path that say which edition of a manual it is in, beside numbers.
const EDITIONS: &[&str] = &["latest", "stable", "current", "master", "main", "dev", "docs", "doc", "html"];

impl Address {
    /// The address of a URL; none where it has no host.
    pub(super) fn of(url: &str) -> Option<Address> {
        let url = parsed_url(url)?;
        let url = unwrapped(&url).unwrap_or(url);
        let host = plain_host(url.host_str()?);
        let port = url.port().filter(|port| *port != 80 && *port != 443);
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let mut parts: Vec<String> = url.path().split('/').filter(|part| !part.is_empty()).map(plain_part).collect();
        if parts.last().is_some_and(|last| VARIANT_PATHS.contains(&last.as_str())) && parts.len() > 1 {
            parts.pop();
        }
        if parts.last().is_some_and(|last| ["index", "default"].contains(&stem(last))) {
            parts.pop();
        }
        let mut key = format!("{host}{port}/{}", parts.join("/"));
        let mut asked: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(name, value)| !is_variant(name, value))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        asked.sort_unstable();
        for (at, (name, value)) in asked.iter().enumerate() {
            key.extend([if at == 0 { "?" } else { "&" }, name, "=", value]);
        }
        // Applications of one page keep the address of what they show behind the number sign.
        if let Some(place) = url.fragment().filter(|place| place.starts_with(['!', '/'])) {
            key.extend(["#", place]);
        }
        let last = parts.len().saturating_sub(1);
        let parts = parts.iter().map(|part| stem(part).to_lowercase()).enumerate();
        // What comes last names the page, whatever it looks like.
        let mut path: Vec<String> =
            parts.filter(|(at, part)| *at == last || !is_edition(part)).map(|(_, part)| part).collect();
        if !asked.is_empty() {
            path.push(key[key.find('?').unwrap_or(0)..].to_owned());
        }
        Some(Address { key, host, path })
    }

    /// Whether both are of one site and their paths differ, or of its editions in two languages.
    pub(super) fn is_neighbour(&self, other: &Address) -> bool {
        self.is_in_another_language(other) || self.host == other.host && self.path != other.path
    }

    /// Whether both are of editions of one site in two languages, as `en.example.org` and `de.example.org`.
    pub(super) fn is_in_another_language(&self, other: &Address) -> bool {
        let without_language = |address: &Address| {
            let (label, rest) = address.host.split_once('.')?;
            (label.len() == 2).then(|| rest.to_owned())
        };
        let site = without_language(self);
        self.host != other.host && site.is_some() && site == without_language(other)
    }

    /// How many parts at the end of both paths are the same.
    pub(super) fn common_end(&self, other: &Address) -> usize {
        self.path.iter().rev().zip(other.path.iter().rev()).take_while(|(a, b)| a == b).count()
    }
}

/// The page that an AMP cache serves.
fn unwrapped(url: &Url) -> Option<Url> {
    let host = url.host_str()?;
    let is_cache = host.ends_with(".cdn.ampproject.org");
    let is_viewer = host.starts_with("www.google.") && url.path().starts_with("/amp/");
    let rest = url.path().split_once("/s/").filter(|_| is_cache || is_viewer)?.1;
    Url::parse(&format!("https://{rest}")).ok()
}

/// A host in lower case, without labels that say how it serves its pages.
fn plain_host(host: &str) -> String {
    let host = host.trim_end_matches('.').to_lowercase();
    let labels: Vec<&str> = host.split('.').collect();
    // What is left must be a host: `m.com` is one of its own.
    let most = labels.len().saturating_sub(2);
    let kept = labels.iter().enumerate().filter(|(at, label)| *at >= most || !VARIANT_HOSTS.contains(label));
    kept.map(|(_, label)| *label).collect::<Vec<_>>().join(".")
}

/// A part of a path without the mark of a variant: `story.amp.html`, `story-print.html`.
fn plain_part(part: &str) -> String {
    let name = stem(part);
    let plain = VARIANT_PATHS.iter().find_map(|variant| {
        let start = name.strip_suffix(variant)?;
        start.strip_suffix(['-', '_', '.']).filter(|start| !start.is_empty())
    });
    plain.map_or_else(|| part.to_owned(), |plain| format!("{plain}{}", &part[name.len()..]))
}

/// A file name without its ending.
fn stem(part: &str) -> &str {
    part.rsplit_once('.').filter(|(_, ending)| ENDINGS.contains(ending)).map_or(part, |(name, _)| name)
}

fn is_variant(name: &str, value: &str) -> bool {
    let is_named = |value: &str| VARIANT_PATHS.contains(&value);
    name.starts_with("utm_")
        || TRACKING.contains(&name)
        || VARIANT_PARAMETERS.contains(&name)
        || (["view", "output", "format", "outputType"].contains(&name) && is_named(value))
}

/// Whether a part of a path names an edition: `13.0.1`, `13`, `v2`, `1_81_0`, `2.2.x`, `latest`. A year does not, nor the
/// number of an article.
fn is_edition(part: &str) -> bool {
    if part.len() > 2 && part.chars().all(|c| c.is_ascii_digit()) {
        return false;
    }
    let number = part.strip_prefix(['v', 'r']).unwrap_or(part);
    let number = number.strip_suffix(".x").unwrap_or(number);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '_' | '-'));
    is_number || EDITIONS.contains(&part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(url: &str) -> String {
        Address::of(url).unwrap().key
    }

    #[test]
    fn variants_of_a_url_are_one_address() {
        for same in [
            "http://example.org/a/story.html",
            "https://www.example.org/a/story.html#comments",
            "https://m.example.org:443/a/story.html?utm_source=x&fbclid=1",
            "https://EXAMPLE.org/a/story.html?amp=1",
            "https://example.org/a/story.amp.html",
            "https://example.org/a/story-print.html",
            "https://example.org/a/story.html?view=print",
            "https://example.org/a/story.html/amp/",
            "https://www-example-org.cdn.ampproject.org/c/s/www.example.org/a/story.html",
            "https://www.google.com/amp/s/example.org/a/story.html",
            "example.org/a/story.html",
        ] {
            assert_eq!(key(same), "example.org/a/story.html", "{same}");
        }
        assert_eq!(key("https://example.org/index.html"), key("http://www.example.org"));
        assert_eq!(key("https://example.org/a/"), key("https://example.org/a/index.php"));
        assert_eq!(key("https://en.m.wikipedia.org/wiki/Web"), key("https://en.wikipedia.org/wiki/Web"));
        assert_eq!(key("https://example.org/?b=2&a=1"), key("https://example.org/?a=1&b=2&gclid=9"));
    }

    #[test]
    fn other_pages_are_other_addresses() {
        let all = [
            "https://example.org/a",
            "https://example.org/A",
            "https://example.org/a?page=2",
            "https://example.org/a?print_id=7",
            "https://example.org:8080/a",
            "https://example.org/#!/a",
            "https://example.org/#/b",
            "https://example.org/amp",
            "https://sub.example.org/a",
            "https://m.com/a",
            "https://amp.dev/a",
        ];
        let keys: std::collections::HashSet<String> = all.iter().map(|url| key(url)).collect();
        assert_eq!(keys.len(), all.len(), "{keys:?}");
        assert_eq!(Address::of("mailto:someone"), None);
    }

    #[test]
    fn paths_of_editions_have_the_same_end() {
        let of = |url: &str| Address::of(url).unwrap();
        let old = of("https://www.boost.org/doc/libs/1_74_0/doc/html/lockfree/rationale.html");
        assert_eq!(old.path, ["libs", "lockfree", "rationale"]);
        assert_eq!(old.path, of("https://www.boost.org/doc/libs/1_81_0/doc/html/lockfree/rationale.html").path);
        assert_eq!(old.common_end(&of("https://mirror.net/lockfree/rationale.html")), 2);
        assert_eq!(old.common_end(&of("https://mirror.net/string/rationale.html")), 1);
        assert_eq!(of("https://a.org/en/2.2.x/v3/latest/api").path, ["en", "api"]);
    }

    #[test]
    fn numbers_of_pages_are_not_editions() {
        let of = |url: &str| Address::of(url).unwrap();
        for (one, other) in [
            ("http://f.org/forum/viewtopic.php?t=1", "http://f.org/forum/viewtopic.php?t=2"),
            ("http://f.org/question/101", "http://f.org/question/102"),
            ("http://a.org/2024/01/01", "http://a.org/2024/01/02"),
            ("http://a.org/2023/story", "http://a.org/2024/story"),
        ] {
            let (one, other) = (of(one), of(other));
            assert_ne!(one.path, other.path);
            assert!(one.is_neighbour(&other) && other.is_neighbour(&one));
        }
        assert!(of("http://en.wiki.org/w/Einstein").is_neighbour(&of("http://de.wiki.org/w/Einstein")));
        assert!(!of("http://a.org/13/remarks").is_neighbour(&of("http://a.org/14/remarks")), "editions");
        assert!(!of("http://a.org/x").is_neighbour(&of("http://b.org/y")));
    }
}
