//! The same page under the same URL, however it is written.

use url::Url;

/// A URL without what makes no difference: scheme, `www.`, default port, fragment, a slash or `index.html` at the
/// end, upper case in the host.
#[must_use]
pub fn normalized(url: &str) -> Option<String> {
    let parsed = Url::parse(url).ok().filter(Url::has_host);
    let Some(parsed) = parsed.or_else(|| Url::parse(&format!("http://{url}")).ok()) else { return path(url) };
    let host = parsed.host_str()?.trim_end_matches('.').to_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    let port = parsed.port().filter(|port| *port != 80 && *port != 443);
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    let query = parsed.query().filter(|query| !query.is_empty()).map_or_else(String::new, |query| format!("?{query}"));
    Some(format!("{host}{port}{}{query}", path(parsed.path()).unwrap_or_default()))
}

/// A path without its trivial end.
pub(super) fn path(path: &str) -> Option<String> {
    let path = path.trim_start_matches("./");
    let cut = ["index.html", "index.htm", "index.php"]
        .iter()
        .find_map(|end| path.strip_suffix(end).filter(|rest| rest.is_empty() || rest.ends_with('/')));
    let path = cut.unwrap_or(path).trim_end_matches('/');
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_difference_goes() {
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
