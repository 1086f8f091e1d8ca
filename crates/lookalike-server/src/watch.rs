//! Around every request: an id, rights, limits, a time, a line in the log.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use metrics::{Counter, Histogram};

use crate::Service;
use crate::access::check_host;
use crate::pages::within;
use crate::problem::{Kind, Problem, internal};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NO_SNIFFING: HeaderName = HeaderName::from_static("x-content-type-options");
/// Paths that anybody may ask.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];
/// How long a backup may take.
const BACKUP_TIME: Duration = Duration::from_secs(6 * 3600);
/// How long lines of the log wait for others.
const LOG_DELAY: Duration = Duration::from_millis(200);

/// Held by a request that is under way.
pub(crate) type Permit = Arc<tokio::sync::OwnedSemaphorePermit>;

/// Makes ids that no other request has.
#[derive(Debug)]
pub(crate) struct RequestIds {
    start: u64,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> RequestIds {
        let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
        RequestIds { start: u64::try_from(start).unwrap_or(0), next: AtomicU64::new(1) }
    }

    /// The client's own id, if it has one that can be written into a log.
    fn of(&self, request: &Request) -> HeaderValue {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        match request.headers().get(REQUEST_ID) {
            Some(id) if (1..=64).contains(&id.len()) && id.as_bytes().iter().all(is_plain) => id.clone(),
            _ => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                HeaderValue::from_str(&format!("{:x}-{number:x}", self.start))
                    .unwrap_or(HeaderValue::from_static("none"))
            }
        }
    }
}

/// Lines that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct AccessLog {
    lines: Mutex<Vec<u8>>,
}

impl AccessLog {
    fn push(&self, line: &str) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(line.as_bytes());
    }

    /// Writes what waits.
    pub(crate) fn flush(&self) {
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        if !lines.is_empty() {
            // Without standard error there is nobody to tell.
            let _ = std::io::stderr().lock().write_all(&lines);
        }
    }

    /// Writes what waits, again and again.
    pub(crate) async fn keep_writing(log: Arc<AccessLog>) {
        loop {
            tokio::time::sleep(LOG_DELAY).await;
            log.flush();
        }
    }
}

pub(crate) async fn watch(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Response {
    let start = Instant::now();
    let id = service.request_ids.of(&request);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let path = service.access_log.is_some().then(|| request.uri().clone());
    // A copy of a large index takes its time.
    let is_backup = route.as_ref().is_some_and(|route| route.as_str().ends_with("/backup"));
    let limit = if is_backup { BACKUP_TIME } else { service.settings.limits.request_time };
    let mut response = match allow(&service, &mut request) {
        Ok(_permit) => {
            let handled = within(limit, AssertUnwindSafe(next.run(request)).catch_unwind()).await;
            match handled {
                Ok(Ok(response)) => response,
                Ok(Err(_)) => internal().into_response(),
                Err(problem) => problem.into_response(),
            }
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(NO_SNIFFING, HeaderValue::from_static("nosniff"));
    headers.insert(REQUEST_ID, id.clone());
    let seconds = start.elapsed().as_secs_f64();
    let status = response.status();
    count(route.as_ref().map_or("other", MatchedPath::as_str), &method, status.as_u16(), seconds);
    if let (Some(log), Some(path)) = (&service.access_log, path) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = path.path_and_query().map_or("", |path| path.as_str());
        let id = id.to_str().unwrap_or("");
        log.push(&format!(
            "{}.{:03} {method} {path} {} {:.3}ms {id}\n",
            since.as_secs(),
            since.subsec_millis(),
            status.as_u16(),
            seconds * 1e3
        ));
    }
    response
}

/// The numbers of requests to one route.
type Numbers = HashMap<Box<str>, (Counter, Histogram)>;

thread_local! {
    /// By method and status: to look numbers up by their labels takes longer than to count.
    static NUMBERS: RefCell<HashMap<[&'static str; 2], Numbers>> = RefCell::default();
}

fn count(route: &str, method: &Method, status: u16, seconds: f64) {
    let method = match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let status = match status {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        507 => "507",
        _ => "5xx",
    };
    NUMBERS.with_borrow_mut(|numbers| {
        let numbers = numbers.entry([method, status]).or_default();
        if !numbers.contains_key(route) {
            let name: Arc<str> = route.into();
            let requests = metrics::counter!("lookalike_requests_total", "route" => Arc::clone(&name), "method" => method, "status" => status);
            let times = metrics::histogram!("lookalike_request_seconds", "route" => name, "method" => method);
            numbers.insert(route.into(), (requests, times));
        }
        if let Some((requests, times)) = numbers.get(route) {
            requests.increment(1);
            times.record(seconds);
        }
    });
}

/// Whether a request is handed on; whoever gets a permit is one of those that are under way.
fn allow(service: &Service, request: &mut Request) -> Result<Option<Permit>, Problem> {
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
