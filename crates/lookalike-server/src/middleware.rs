//! What surrounds every request: an id, a decision whether it may pass, a time, metrics and a line in the log.
//!
//! Panics and the header of every response are layers of [`tower_http`]. The rest is one function, [`guard`], which asks
//! `admission.rs` and writes down how a request ended. The layers that exist for it behave differently:
//! - `tower_http::request_id` accepts whatever id a client sends, and ours are written to a log; with a check in front of it,
//!   it is as much code, and costs 0.35 µs more per request;
//! - `tower_http::timeout` responds with an empty body instead of a problem document, and has one time for all routes;
//! - `tower::limit` takes a permit before the body has arrived, and releases it with the head of a response, but a batch goes
//!   on after that;
//! - `tower_http::limit` counts compressed bytes, and those of a batch as a whole, and `tower_http::decompression` accepts
//!   only the first member of a gzip body, and any window of zstd: `body.rs` and `decode.rs` do both;
//! - `tower_http::trace` opens a span for every request, and each line would be a system call: `log.rs` writes many at once,
//!   and never waits for whoever reads them;
//! - `tower_http::validate_request` knows one secret rather than rights and collections, and does not compare it in constant
//!   time: see `tokens.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::body::Body as HttpBody;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::Service;
use crate::access_log::LoggedRequest;
use crate::admission::admit;
use crate::body::HoldingBody;
use crate::listen::{Lane, Peer};
use crate::log::LogFormat;
use crate::problem::{Problem, ProblemKind, internal};
use crate::telemetry::count_request;
use crate::tokens::Access;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Time for a backup, which copies a whole index.
const BACKUP_TIME: Duration = Duration::from_secs(6 * 3600);

/// Wraps the routes; the first layer is the outermost.
pub(crate) fn wrap(router: Router<Arc<Service>>, service: &Arc<Service>) -> Router<Arc<Service>> {
    let no_sniffing = HeaderValue::from_static("nosniff");
    router.layer(
        ServiceBuilder::new()
            .layer(SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, no_sniffing))
            .layer(from_fn_with_state(Arc::clone(service), guard))
            .layer(CatchPanicLayer::custom(|_| internal().into_response())),
    )
}

/// What the log says of a request whose client did not wait for the response, as nginx does.
const CLIENT_GONE: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};

/// Makes unique ids: the time of the start and a number.
#[derive(Debug)]
pub(crate) struct RequestIds {
    start: u128,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> RequestIds {
        // A clock set before 1970 does no harm here.
        let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
        RequestIds { start, next: AtomicU64::new(1) }
    }

    /// The id that the client sent, if it is fit for a log; otherwise a new one.
    fn of(&self, request: &Request) -> HeaderValue {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        match request.headers().get(REQUEST_ID) {
            Some(id) if (1..=64).contains(&id.len()) && id.as_bytes().iter().all(is_plain) => id.clone(),
            _ => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let id = format!("{:x}-{number:x}", self.start);
                HeaderValue::try_from(id).expect("hex digits and a dash make a header")
            }
        }
    }
}

/// Admits a request, limits its time, counts it and logs it.
async fn guard(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Response {
    let id = service.request_ids.of(&request);
    let peer = request.extensions().get::<Peer>().cloned();
    let mut record = RequestRecord::new(&service, &request, peer.as_ref(), &id);
    let is_backup = record.route.as_ref().is_some_and(|route| route.as_str().ends_with("/backup"));
    let limit = if is_backup { BACKUP_TIME } else { service.limits().request_time };
    let mut response = match admit(&service, &mut request) {
        Ok(_admission) => {
            record.set_token(request.extensions().get::<Access>());
            let response = within(limit, next.run(request)).await;
            response.unwrap_or_else(IntoResponse::into_response)
        }
        Err(problem) => problem.into_response(),
    };
    response.headers_mut().insert(REQUEST_ID, id);
    if peer.is_some_and(|peer| peer.lane == Lane::Spare) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    record.status = response.status();
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    // It is over when its last part is sent.
    response.map(|body| HoldingBody::wrap(body, record))
}

/// A request, which is counted and logged when this is dropped.
struct RequestRecord {
    start: Instant,
    route: Option<MatchedPath>,
    method: Method,
    status: StatusCode,
    logged: Option<(LoggedRequest, LogFormat)>,
    #[cfg(feature = "otel")]
    span: Option<crate::traces::RequestSpan>,
}

impl RequestRecord {
    fn new(service: &Service, request: &Request, peer: Option<&Peer>, id: &HeaderValue) -> RequestRecord {
        let (method, uri) = (request.method(), request.uri());
        let client = peer.map(|peer| peer.address.ip());
        let logged = service.settings.access_log.then(|| LoggedRequest::new(method, uri, client, id));
        let route = request.extensions().get::<MatchedPath>().cloned();
        RequestRecord {
            start: Instant::now(),
            #[cfg(feature = "otel")]
            span: crate::traces::RequestSpan::start(request, route.as_ref().map_or("other", MatchedPath::as_str), id),
            route,
            method: method.clone(),
            // Unless a response comes, the client was gone first.
            status: CLIENT_GONE,
            logged: logged.map(|logged| (logged, service.settings.log_format)),
        }
    }

    fn set_token(&mut self, access: Option<&Access>) {
        if let (Some((logged, _)), Some(token)) = (&mut self.logged, access.and_then(|access| access.token.as_ref())) {
            logged.token = Some(token.name.clone());
        }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let time = self.start.elapsed();
        count_request(self.route.as_ref().map_or("other", MatchedPath::as_str), &self.method, self.status, time);
        if let Some((logged, format)) = &self.logged {
            logged.write(*format, self.status, time);
        }
        #[cfg(feature = "otel")]
        if let Some(span) = self.span.take() {
            span.end(self.status);
        }
    }
}

/// Gives up on work that takes too long.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Problem> {
    let late =
        |_| ProblemKind::Timeout.with(format!("the request was not finished after {} seconds", limit.as_secs_f32()));
    tokio::time::timeout(limit, work).await.map_err(late)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::settings::Settings;

    /// Sends a request to handlers that fail in every way.
    async fn send(path: &'static str, id: &'static str) -> (StatusCode, axum::http::HeaderMap, serde_json::Value) {
        #[allow(clippy::panic)]
        async fn broken() {
            panic!("on purpose");
        }
        let mut settings = Settings::new("not-there".into());
        settings.limits.request_time = Duration::from_millis(1);
        let service = Arc::new(Service::new(settings, tokio::runtime::Handle::current()).unwrap());
        let router = Router::new().route("/broken", get(broken)).route("/slow", get(std::future::pending::<()>));
        let request =
            Request::get(path).header(header::HOST, "localhost").header(REQUEST_ID, id).body(Body::empty()).unwrap();
        let response = wrap(router, &service).with_state(service).oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status, head.headers, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_panic_and_a_slow_handler_are_problems_with_all_headers() {
        for (path, status) in [("/broken", 500), ("/slow", 408)] {
            let (head, headers, body) = send(path, "mine-17").await;
            assert_eq!((head.as_u16(), &body["status"]), (status, &serde_json::json!(status)));
            assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json");
            assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers[REQUEST_ID], "mine-17");
        }
    }

    #[tokio::test]
    async fn ids_that_do_not_belong_in_a_log_are_replaced() {
        for id in ["", "two words", "a\tb"] {
            let (_, headers, _) = send("/broken", id).await;
            assert!(headers[REQUEST_ID].len() > 3 && headers[REQUEST_ID] != id, "{headers:?}");
        }
    }
}
