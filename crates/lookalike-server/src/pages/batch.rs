//! Many pages in one request: one per line, streamed both ways.
//!
//! One task reads lines and starts a lookup for each ([`read_lines`]); another finishes the lookups in the same order and
//! writes their lines ([`write_lines`]).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::{Buf, Bytes};
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::Service;
use crate::body::{BodyReader, check_type};
use crate::collections::Collection;
use crate::middleware::Permit;
use crate::pages::lookup::{Lookup, LookupQuery, StoreInput};
use crate::pages::response::PageResponse;
use crate::problem::{Problem, ProblemKind};
use crate::request::TargetCollection;
use crate::settings::Limits;
use crate::to_json;

/// Bytes of responses that wait for a client that does not read them.
const MOST_WAITING_BYTES: usize = 64 << 20;
/// Lookups that are started and not finished, at most.
const MOST_STARTED: usize = 256;
const NDJSON: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// The same for many pages: one JSON object per line, and one response per line in the same order, streamed both ways. A
/// line that cannot be used is answered with a problem; the others are not affected.
#[utoipa::path(
    post,
    path = "/v1/pages/batch",
    tag = "pages",
    params(LookupQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = String, content_type = "application/x-ndjson"))
)]
pub(crate) async fn batch(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    query: LookupQuery,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    check_type(&headers, &NDJSON)?;
    let body = BodyReader::new(&headers, body, service.settings.limits.body_bytes)?;
    // Lines are held for clients that send everything before they read: the channel has no limit, their bytes have one.
    let (out, lines) = mpsc::unbounded_channel::<Bytes>();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let (started, to_finish) = mpsc::channel::<(usize, Lookup)>(MOST_STARTED);
    tokio::spawn(read_lines(service, Arc::clone(&collection), body, query.store, started));
    tokio::spawn(write_lines(collection, to_finish, query.explain, out, Arc::clone(&waiting_bytes)));
    // The permit is held until the last line is sent.
    let frames = stream::unfold((lines, waiting_bytes, permit), |(mut lines, waiting_bytes, permit)| async move {
        let line = lines.recv().await?;
        waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        Some((Ok::<_, Infallible>(Frame::data(line)), (lines, waiting_bytes, permit)))
    });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(NDJSON[0]));
    Ok(response)
}

/// Cuts a body into lines and starts a lookup for each; says what is wrong if it cannot go on.
async fn read_lines(
    service: Arc<Service>,
    collection: Arc<Collection>,
    body: BodyReader,
    store: StoreInput,
    started: mpsc::Sender<(usize, Lookup)>,
) {
    let limits = service.settings.limits;
    let mut lines = Lines::new(body, limits);
    let mut number = 0;
    loop {
        let next = match lines.next().await {
            Ok(Some(_)) if number == limits.batch_lines => {
                let reason = format!("a batch has at most {} lines; the rest is not read", limits.batch_lines);
                Err(ProblemKind::TooLarge.with(reason))
            }
            next => next,
        };
        number += 1;
        let (lookup, is_last) = match next {
            Ok(None) => return,
            Ok(Some(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(line)) => (Lookup::start(&service, &collection, &line, store).await, false),
            Err(problem) => (Lookup::Done(Err(problem)), true),
        };
        // Nobody receives it if the client is gone.
        if started.send((number, lookup)).await.is_err() || is_last {
            return;
        }
    }
}

/// The lines of a body that arrives in parts.
struct Lines {
    body: BodyReader,
    limits: Limits,
    /// What has arrived behind the current line.
    part: Bytes,
    /// The current line, as far as it has arrived.
    line: Vec<u8>,
    is_ended: bool,
}

impl Lines {
    fn new(body: BodyReader, limits: Limits) -> Lines {
        Lines { body, limits, part: Bytes::new(), line: Vec::new(), is_ended: false }
    }

    /// The next line without its end; nothing after the last one.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        loop {
            let end = self.part.iter().position(|&byte| byte == b'\n');
            let rest = self.part.split_to(end.unwrap_or(self.part.len()));
            self.line.extend_from_slice(&rest);
            let limit = self.limits.body_bytes;
            if self.line.len() > limit {
                let reason = format!("a line is longer than {limit} bytes; the rest is not read");
                return Err(ProblemKind::TooLarge.with(reason));
            }
            if end.is_some() {
                self.part.advance(1);
                return Ok(Some(std::mem::take(&mut self.line)));
            }
            if self.is_ended {
                return Ok(Some(std::mem::take(&mut self.line)).filter(|line| !line.is_empty()));
            }
            let part = tokio::time::timeout(self.limits.request_time, self.body.next()).await;
            let part =
                part.map_err(|_| ProblemKind::Timeout.with("the next part of the batch did not arrive in time"))?;
            match part? {
                Some(part) => self.part = part,
                None => self.is_ended = true,
            }
        }
    }
}

/// A problem with a line of a batch.
#[derive(Serialize)]
struct LineProblem {
    line: usize,
    #[serde(flatten)]
    problem: Problem,
}

/// Finishes lookups and writes a line for each.
async fn write_lines(
    collection: Arc<Collection>,
    mut to_finish: mpsc::Receiver<(usize, Lookup)>,
    is_explained: bool,
    out: mpsc::UnboundedSender<Bytes>,
    waiting_bytes: Arc<AtomicUsize>,
) {
    while let Some((line, lookup)) = to_finish.recv().await {
        let finished = lookup.finish().await;
        let is_over = waiting_bytes.load(Ordering::Relaxed) > MOST_WAITING_BYTES;
        let mut written = match finished {
            _ if is_over => {
                let reason = "too many responses wait to be read; the rest of the batch is not answered";
                to_json(&LineProblem { line, problem: ProblemKind::TooLarge.with(reason) })
            }
            Ok(outcome) => {
                collection.count(outcome.verdict);
                to_json(&PageResponse::new(outcome, &collection, is_explained))
            }
            Err(problem) => to_json(&LineProblem { line, problem }),
        };
        written.push(b'\n');
        waiting_bytes.fetch_add(written.len(), Ordering::Relaxed);
        if out.send(written.into()).is_err() || is_over {
            return;
        }
    }
}
