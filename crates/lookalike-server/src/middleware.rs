//! Around every request: an id, rights, limits, a time, numbers and a line in the log.
//!
//! Headers of every response and panics are layers of [`tower_http`]. The rest is one function, [`guard`]; the layers that
//! exist for it do something else:
//! - `tower_http::request_id` takes every id that a client sends, and ours are written to a log; with a check before it, it is
//!   the same amount of code and takes 0.35 µs longer for each request;
//! - `tower_http::timeout` answers with an empty body, not with a problem document, and has one time for all routes;
//! - `tower::limit` releases a permit when the head of a response is there, and a batch goes on after that;
//! - `tower_http::limit` counts the bytes of a body before it is unpacked, and those of a batch as a whole (`body.rs` does
//!   not), and `tower_http::decompression` reads only the first member of a gzip body;
//! - `tower_http::trace` makes a span for every request, and every line is a system call (`access_log.rs` writes many at once);
//! - `tower_http::validate_request` knows one secret, not two kinds of rights, and does not compare it in constant time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::Service;
use crate::access::check_host;
use crate::problem::{Kind, Problem, internal};
use crate::telemetry::count_request;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Paths that anybody may ask.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];
/// How long a backup may take.
const BACKUP_TIME: Duration = Duration::from_secs(6 * 3600);

/// Held by a request that is under way.
pub(crate) type Permit = Arc<tokio::sync::OwnedSemaphorePermit>;

/// Puts everything around the routes; the first layer is the outermost.
pub(crate) fn around(router: Router<Arc<Service>>, service: &Arc<Service>) -> Router<Arc<Service>> {
    let no_sniffing = HeaderValue::from_static("nosniff");
    router.layer(
        ServiceBuilder::new()
            .layer(SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, no_sniffing))
            .layer(from_fn_with_state(Arc::clone(service), guard))
            .layer(CatchPanicLayer::custom(|_| internal().into_response())),
    )
}

/// Makes ids that no other request has: the time of the start and a number.
#[derive(Debug)]
pub(crate) struct RequestIds {
    start: u128,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> RequestIds {
        // A clock that is set before 1970 is no worse than another.
        let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
        RequestIds { start, next: AtomicU64::new(1) }
    }

    /// The client's own id, if it has one that can be written into a log.
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

/// Lets a request through if it may pass and there is room for it; gives it an id and a time, counts it and logs it.
async fn guard(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Response {
    let start = Instant::now();
    let id = service.request_ids.of(&request);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let logged = service.access_log.as_ref().map(|log| (log, request.uri().clone()));
    // A copy of a large index takes its time.
    let is_backup = route.as_ref().is_some_and(|route| route.as_str().ends_with("/backup"));
    let limit = if is_backup { BACKUP_TIME } else { service.settings.limits.request_time };
    let mut response = match admit(&service, &mut request) {
        Ok(_permit) => within(limit, next.run(request)).await.unwrap_or_else(IntoResponse::into_response),
        Err(problem) => problem.into_response(),
    };
    response.headers_mut().insert(REQUEST_ID, id.clone());
    let (time, status) = (start.elapsed(), response.status());
    count_request(route.as_ref().map_or("other", MatchedPath::as_str), &method, status, time);
    if let Some((log, uri)) = logged {
        log.write(&method, &uri, status, time, &id);
    }
    response
}

/// Waits for a future at most so long.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Problem> {
    let late = |_| Kind::Timeout.with(format!("the request was not done after {} seconds", limit.as_secs_f32()));
    tokio::time::timeout(limit, work).await.map_err(late)
}

/// Whether a request is handed on; whoever gets a permit is one of those that are under way.
fn admit(service: &Service, request: &mut Request) -> Result<Option<Permit>, Problem> {
    if OPEN.contains(&request.uri().path()) {
        return Ok(None);
    }
    if service.settings.tokens.is_empty() {
        check_host(request.headers(), &service.settings.hosts)?;
    }
    let rights = service.settings.tokens.rights(request.headers())?;
    request.extensions_mut().insert(rights);
    let permit = Arc::clone(&service.permits).try_acquire_owned().map_err(|_| {
        Kind::TooBusy.with("as many requests as this service takes at once are under way; try again in a moment")
    })?;
    let permit = Arc::new(permit);
    if request.uri().path().ends_with("/batch") {
        // It goes on when the answer has begun.
        request.extensions_mut().insert(Arc::clone(&permit));
    }
    Ok(Some(permit))
}
