//! URLs in a normal form, so that one page has one URL.

use url::Url;

/// A URL without what makes no difference: scheme, `www.`, default port, fragment, a slash or `index.html` at the
/// end, upper case in the host.
#[must_use]
pub fn normalized(url: &str) -> Option<String> {
    let parsed = Url::parse(url).ok().filter(Url::has_host);
    let Some(parsed) = parsed.or_else(|| Url::parse(&format!("http://{url}")).ok()) else {
        return Some(path(url));
    };
    let host = parsed.host_str()?.trim_end_matches('.').to_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
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
