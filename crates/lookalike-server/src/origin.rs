//! Browsers: what pages of other sites may not do.
//!
//! A web page can make the browser of somebody on this machine send requests here. Three rules keep it from doing harm:
//! - `Host` must be there once, and without tokens it must be a name of this service: a page can make a name of its own
//!   resolve to this address, and would then be of the same origin.
//! - `Origin` must equal `Host`, or be listed. Browsers send it with every request that a page makes to another origin, except
//!   plain GETs, whose responses the page cannot read, as no CORS headers are sent.
//! - Without tokens, what may change something needs a header that a form cannot send: a `Content-Type` other than the three of
//!   forms, or `X-Lookalike`. For both a browser first asks the service whether they are allowed, and gets no for an answer.
//!
//! A client that shows no sign of being a browser may leave that header out. That is safe: with methods other than GET and HEAD
//! every browser since 2020 sends `Origin` (`null` where a page hides it; Fetch standard, "append a request `Origin` header"), and
//! nearly every one `Sec-Fetch-Site`; older ones are known by their `User-Agent` or `Referer`. A page can neither remove nor change these.

use axum::http::{HeaderMap, HeaderName, Method, Request, header};

use crate::problem::{Problem, ProblemKind};

/// A header that a form of another site cannot send.
const OWN_HEADER: HeaderName = HeaderName::from_static("x-lookalike");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Types of bodies that forms can send, and programs seldom do on purpose.
const FORM_TYPES: [&str; 2] = ["application/x-www-form-urlencoded", "multipart/form-data"];
/// The third one, which programs send by mistake: they are told of the right one.
const PLAIN_TEXT: &str = "text/plain";
/// A name that no host has, for headers that are not ASCII.
const UNKNOWN: &str = "?";

/// What a service may be called, and who may call it.
pub(crate) struct OriginRules<'a> {
    /// Host names besides addresses and localhost.
    pub(crate) hosts: &'a [String],
    /// Origins besides that of the service itself.
    pub(crate) origins: &'a [String],
    /// Whether a secret is needed, which no page of another site has.
    pub(crate) has_tokens: bool,
    pub(crate) is_tls: bool,
}

impl OriginRules<'_> {
    /// Refuses what a page of another site may have sent.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let headers = request.headers();
        let host = one_host(request)?;
        if !self.has_tokens && !is_known(host, self.hosts) {
            return Err(ProblemKind::Forbidden.with(
                "the header Host names a host that this service does not know; start the service with this host allowed, or with tokens",
            ));
        }
        let origin = text(headers, header::ORIGIN);
        let is_listed =
            origin.is_some_and(|origin| self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)));
        if is_listed {
            return Ok(());
        }
        if origin.is_some_and(|origin| !self.is_own(origin, host)) {
            return Err(ProblemKind::Forbidden.with(
                "the header Origin is not the address of this service: pages of other sites may not use it; list the origin in the settings (`origins`) to allow it",
            ));
        }
        if text(headers, FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none") {
            return Err(ProblemKind::Forbidden.with("a page of another site may not use this service (Sec-Fetch-Site)"));
        }
        let may_change = ![Method::GET, Method::HEAD].contains(request.method());
        if may_change && !self.has_tokens && may_be_a_form(headers) && !headers.contains_key(OWN_HEADER) {
            return Err(ProblemKind::Forbidden.with(
                "a form of another site could have sent this: send the header X-Lookalike: 1 (curl -H 'X-Lookalike: 1'), or a JSON body with its Content-Type",
            ));
        }
        Ok(())
    }

    /// Whether an origin is that of the host that is asked: scheme, name and port.
    fn is_own(&self, origin: &str, host: &str) -> bool {
        let (scheme, port) = if self.is_tls { ("https", ":443") } else { ("http", ":80") };
        let Some((given, name)) = origin.split_once("://") else { return false };
        let plain = |name: &str| name.strip_suffix(port).unwrap_or(name).to_ascii_lowercase();
        given.eq_ignore_ascii_case(scheme) && plain(name) == plain(host)
    }
}

/// The header Host, which must be there once and agree with the address in the first line, if there is one.
fn one_host<B>(request: &Request<B>) -> Result<&str, Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(ProblemKind::BadRequest.with("send exactly one header Host"));
    };
    let host = host.to_str().unwrap_or(UNKNOWN);
    if request.uri().authority().is_some_and(|authority| authority.as_str() != host) {
        return Err(ProblemKind::BadRequest.with("the header Host is not the host of the first line"));
    }
    Ok(host)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or(UNKNOWN))
}

/// Whether a form in a browser could have sent this.
fn may_be_a_form(headers: &HeaderMap) -> bool {
    let is_agent = text(headers, header::USER_AGENT).is_some_and(|agent| agent.starts_with("Mozilla/"));
    let is_browser =
        is_agent || [header::ORIGIN, header::REFERER, FETCH_SITE].iter().any(|name| headers.contains_key(name));
    match text(headers, header::CONTENT_TYPE) {
        None => is_browser,
        Some(given) => {
            let essence = given.split_once(';').map_or(given, |(essence, _)| essence).trim();
            let is_plain = essence.is_empty() || essence.eq_ignore_ascii_case(PLAIN_TEXT);
            FORM_TYPES.iter().any(|form| essence.eq_ignore_ascii_case(form)) || (is_plain && is_browser)
        }
    }
}

/// Refuses requests to another host name: a web page can make a name of its own resolve to this service.
#[cfg(feature = "workbench")]
pub(crate) fn check_host(headers: &HeaderMap, hosts: &[String]) -> Result<(), Problem> {
    let origin = text(headers, header::ORIGIN).map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    if text(headers, header::HOST).into_iter().chain(origin).all(|host| is_known(host, hosts)) {
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

    fn rules(is_tls: bool) -> OriginRules<'static> {
        OriginRules { hosts: &[], origins: &[], has_tokens: false, is_tls }
    }

    fn status(rules: &OriginRules<'_>, method: &str, headers: &[(&str, &str)]) -> u16 {
        let request = headers
            .iter()
            .fold(Request::builder().method(method), |request, (name, value)| request.header(*name, *value));
        rules.check(&request.body(()).unwrap()).map_or_else(|problem| problem.status, |()| 200)
    }

    #[test]
    fn other_hosts_are_refused_where_there_are_no_tokens() {
        let hosts = ["crawl.example".to_owned()];
        let rules = OriginRules { hosts: &hosts, ..rules(false) };
        for known in ["localhost", "LOCALHOST:8700", "127.0.0.1:8700", "[::1]:8700", "crawl.example:80"] {
            assert_eq!(status(&rules, "GET", &[("host", known)]), 200, "{known}");
        }
        for other in ["evil.example", "evil.example:8700", "localhost.evil.example", "127.0.0.1.evil.example"] {
            assert_eq!(status(&rules, "GET", &[("host", other)]), 403, "{other}");
        }
        let with_tokens = OriginRules { has_tokens: true, ..rules };
        assert_eq!(status(&with_tokens, "GET", &[("host", "any.example")]), 200);
        for wrong in [&[][..], &[("host", "localhost"), ("host", "localhost")]] {
            assert_eq!(status(&with_tokens, "GET", wrong), 400);
        }
    }

    #[test]
    fn an_origin_is_scheme_name_and_port() {
        let from = |is_tls: bool, host: &str, origin: &str| {
            status(&rules(is_tls), "GET", &[("host", host), ("origin", origin)])
        };
        assert_eq!(from(false, "localhost:8700", "http://localhost:8700"), 200);
        assert_eq!(from(false, "localhost", "http://LOCALHOST:80"), 200);
        assert_eq!(from(true, "localhost:443", "https://localhost"), 200);
        for foreign in
            ["http://localhost:3000", "http://localhost", "https://localhost:8700", "http://127.0.0.1:8700", "null"]
        {
            assert_eq!(from(false, "localhost:8700", foreign), 403, "{foreign}");
        }
        let listed = ["https://seen.example".to_owned()];
        let rules = OriginRules { origins: &listed, ..rules(false) };
        assert_eq!(status(&rules, "POST", &[("host", "localhost"), ("origin", "https://seen.example")]), 200);
    }

    #[test]
    fn what_a_form_can_send_needs_a_header_that_it_cannot() {
        let (host, origin) = (("host", "localhost:8700"), ("origin", "http://localhost:8700"));
        let form = ("content-type", "application/x-www-form-urlencoded");
        let post = |headers: &[(&str, &str)]| status(&rules(false), "POST", headers);
        assert_eq!(post(&[host]), 200, "no browser leaves Origin out");
        for sign in
            [origin, form, ("user-agent", "Mozilla/5.0"), ("referer", "http://x/"), ("sec-fetch-site", "same-origin")]
        {
            assert_eq!(post(&[host, sign]), 403, "{sign:?}");
            assert_eq!(post(&[host, sign, ("x-lookalike", "1")]), 200, "{sign:?}");
        }
        assert_eq!(post(&[host, origin, ("content-type", "application/json")]), 200);
        assert_eq!(status(&rules(false), "GET", &[host, origin]), 200);
        assert_eq!(post(&[host, ("sec-fetch-site", "cross-site"), ("x-lookalike", "1")]), 403);
        let with_tokens = OriginRules { has_tokens: true, ..rules(false) };
        assert_eq!(status(&with_tokens, "POST", &[host, form]), 200, "a form has no token");
    }
}
