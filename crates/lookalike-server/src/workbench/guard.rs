//! What surrounds every request: who may ask, and what a browser may do with an answer.
//!
//! The workbench shows pages of strangers to a person who is signed in, so: another site can neither read nor change anything
//! (Host, Origin, a header that forms cannot send), and no page runs a script or loads anything that is not ours.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;

use super::{Shared, Workbench, views};
use crate::Rights;
use crate::json;
use crate::origin::check_host;
use crate::problem::internal;

/// The policy of our own pages.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// A header that a form of another site cannot send.
const OWN_HEADER: &str = "x-lookalike";
/// The cookie with a token.
pub(super) const TOKEN: &str = "lookalike-token";
/// The call that sets it.
pub(super) const SIGN_IN: &str = "/api/sign-in";

pub(super) fn wrap(router: Router<Shared>, bench: &Shared) -> Router<Shared> {
    router
        .layer(CatchPanicLayer::custom(|_| internal().into_response()))
        .layer(from_fn_with_state(Arc::clone(bench), guard))
}

async fn guard(State(bench): State<Shared>, mut request: Request, next: Next) -> Response {
    let mut response = match admit(&bench, &request) {
        Ok(rights) => {
            request.extensions_mut().insert(rights);
            next.run(request).await
        }
        Err(refusal) => *refusal,
    };
    let headers = response.headers_mut();
    let mut set = |name: header::HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::CACHE_CONTROL, "no-store");
    set(header::HeaderName::from_static("x-dns-prefetch-control"), "off");
    set(header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    response
}

fn refuse(status: StatusCode, reason: &str) -> Box<Response> {
    Box::new(json(status, &serde_json::json!({"error": reason})))
}

/// Checks whether a request may pass, and what it may do.
fn admit(bench: &Workbench, request: &Request) -> Result<Rights, Box<Response>> {
    let headers = request.headers();
    let hosts: Vec<&HeaderValue> = headers.get_all(header::HOST).iter().collect();
    let [host] = hosts[..] else { return Err(refuse(StatusCode::BAD_REQUEST, "send exactly one header Host")) };
    let tokens = &bench.settings.tokens;
    if tokens.is_empty() {
        check_host(headers, &bench.settings.hosts).map_err(|problem| Box::new(problem.into_response()))?;
    }
    // Browsers say which site asks: only our own pages may, or somebody who typed the address.
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let is_foreign = origin.is_some_and(|origin| origin.split_once("://").map(|parts| parts.1) != host.to_str().ok());
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_page = request.method() == Method::GET
        && headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate")
        && headers.get("sec-fetch-dest").is_none_or(|kind| kind == "document");
    if is_foreign || (site.is_some_and(|site| site != "same-origin" && site != "none") && !is_page) {
        return Err(refuse(StatusCode::FORBIDDEN, "another site may not ask this"));
    }
    let changes = ![Method::GET, Method::HEAD].contains(request.method());
    if changes && !headers.contains_key(OWN_HEADER) {
        return Err(refuse(StatusCode::FORBIDDEN, "send the header X-Lookalike with calls that change something"));
    }
    if tokens.is_empty() {
        return Ok(Rights::Write);
    }
    sign_in(bench, request, changes)
}

/// With tokens: those of programs are in a header, those of people in a cookie that the first page sets.
fn sign_in(bench: &Workbench, request: &Request, changes: bool) -> Result<Rights, Box<Response>> {
    let path = request.uri().path();
    if path.starts_with("/assets/") || path == SIGN_IN {
        return Ok(Rights::Read);
    }
    let mut given = request.headers().clone();
    if let Some(token) = cookie(request.headers(), TOKEN)
        && let Ok(value) = HeaderValue::try_from(format!("Bearer {token}"))
    {
        given.insert(header::AUTHORIZATION, value);
    }
    match bench.settings.tokens.rights(&given) {
        Ok(Rights::Read) if changes => Err(refuse(StatusCode::FORBIDDEN, "this token is read-only")),
        Ok(rights) => Ok(rights),
        Err(_) if changes => Err(refuse(StatusCode::UNAUTHORIZED, "sign in first")),
        Err(_) => Err(Box::new((StatusCode::UNAUTHORIZED, Html(views::sign_in_page())).into_response())),
    }
}

/// A cookie by its name.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}
