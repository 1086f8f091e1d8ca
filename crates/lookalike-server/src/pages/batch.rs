//! Many pages in one request: one per line, streamed both ways.
//!
//! One task reads lines and starts a lookup for each ([`read_lines`]); another finishes the lookups in the same order and
//! writes their lines ([`write_lines`]).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::{Buf, Bytes};
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::Service;
use crate::body::{BodyReader, check_type};
use crate::budget::Reservation;
use crate::collections::Collection;
use crate::limits::Limits;
use crate::listen::Peer;
use crate::pages::lookup::{Lookup, LookupQuery, StoreInput};
use crate::pages::response::PageResponse;
use crate::problem::{Problem, ProblemKind};
use crate::request::TargetCollection;
use crate::to_json;
use crate::tokens::Access;

/// Bytes of responses that wait for a client that does not read them.
const MOST_WAITING_BYTES: usize = 64 << 20;
/// Lookups that are started and not finished, at most.
const MOST_STARTED: usize = 256;
/// Pages that wait to be stored from which on batches pause: half of what the library lets wait, so that there is room for
/// single pages.
const CROWDED: u64 = 4096;
/// How long they pause.
const PAUSE: Duration = Duration::from_millis(5);
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
    access: Access,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    check_type(&headers, &NDJSON)?;
    let limits = service.limits();
    if query.store != StoreInput::Never {
        collection.check_writer(limits.stall_time)?;
    }
    let slot = service.batches.take(limits.batches).ok_or_else(|| {
        ProblemKind::TooBusy
            .with("the service is already handling as many batches as it accepts; try again in a moment")
    })?;
    let unanswered = Arc::new(AtomicUsize::new(0));
    let body = BodyReader::of_batch(&service, &headers, body, Arc::clone(&unanswered))?;
    // Lines are held for clients that send everything before they read: the channel has no limit, their bytes have one.
    let (out, lines) = mpsc::unbounded_channel::<(Bytes, Reservation)>();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let (started, to_finish) = mpsc::channel::<StartedLine>(MOST_STARTED);
    let batch = Batch { end: Instant::now() + limits.batch_time, limits, service, collection, unanswered };
    let batch = Arc::new(batch);
    let lines_in = Lines::new(body, &batch);
    tokio::spawn(read_lines(Arc::clone(&batch), access, lines_in, query.store, started));
    tokio::spawn(write_lines(batch, to_finish, query.explain, out, Arc::clone(&waiting_bytes)));
    // The place is held until the last line is sent.
    let held = (slot, cut_off_late_readers(peer, limits.batch_time + limits.idle_time));
    let frames = stream::unfold((lines, waiting_bytes, held), |(mut lines, waiting_bytes, held)| async move {
        let (line, _memory) = lines.recv().await?;
        waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        Some((Ok::<_, Infallible>(Frame::data(line)), (lines, waiting_bytes, held)))
    });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(NDJSON[0]));
    Ok(response)
}

/// Ends the connection of a client that has not read all of its answers in this time, unless what is returned is dropped
/// before: each of its reads may be in time, and all of them together take for ever.
fn cut_off_late_readers(peer: Peer, time: Duration) -> oneshot::Sender<()> {
    let (is_read, read) = oneshot::channel();
    tokio::spawn(async move {
        if tokio::time::timeout(time, read).await.is_err() {
            peer.cut.notify_one();
        }
    });
    is_read
}

/// What the parts of a batch share.
struct Batch {
    service: Arc<Service>,
    collection: Arc<Collection>,
    limits: Limits,
    end: Instant,
    /// Lines that were read and have no response yet.
    unanswered: Arc<AtomicUsize>,
}

impl Batch {
    fn time_left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    fn over(&self) -> Problem {
        let seconds = self.limits.batch_time.as_secs();
        ProblemKind::Timeout.with(format!("the batch was not finished after {seconds} seconds; the rest is not read"))
    }

    /// Starts with a line. While the thread that stores has enough to do, or hangs, this waits: a line is not refused because
    /// others were faster.
    async fn start(&self, line: &[u8], store: StoreInput, is_gone: impl Fn() -> bool) -> Lookup {
        loop {
            let writer = self.collection.online.writer();
            let is_crowded = store != StoreInput::Never && writer.is_alive && writer.waiting >= CROWDED;
            if !is_crowded {
                match Lookup::start(&self.service, &self.collection, line, store).await {
                    Lookup::Refused => {}
                    started => return started,
                }
            }
            if self.time_left().is_zero() || is_gone() {
                return Lookup::Refused;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A line whose lookup has begun.
struct StartedLine {
    number: usize,
    lookup: Lookup,
    _memory: Option<Reservation>,
}

/// Cuts a body into lines and starts a lookup for each; says what is wrong if it cannot go on.
async fn read_lines(
    batch: Arc<Batch>,
    access: Access,
    mut lines: Lines,
    store: StoreInput,
    started: mpsc::Sender<StartedLine>,
) {
    let limits = batch.limits;
    let mut number = 0;
    loop {
        let next = tokio::time::timeout(batch.time_left(), lines.next()).await.unwrap_or_else(|_| Err(batch.over()));
        let next = match next {
            Ok(Some(_)) if number == limits.batch_lines => {
                let reason = format!("a batch has at most {} lines; the rest is not read", limits.batch_lines);
                Err(ProblemKind::TooLarge.with(reason))
            }
            next => next,
        };
        number += 1;
        let (lookup, memory) = match next {
            Ok(None) => return,
            Ok(Some((line, _))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some((line, memory))) => {
                batch.unanswered.fetch_add(1, Ordering::Relaxed);
                // The request itself counts for its first line.
                while number > 1
                    && let Err(wait) = access.take(limits.token_rate)
                    && !started.is_closed()
                {
                    tokio::time::sleep(wait).await;
                }
                (batch.start(&line, store, || started.is_closed()).await, Some(memory))
            }
            Err(problem) => {
                batch.unanswered.fetch_add(1, Ordering::Relaxed);
                (Lookup::Done(Err(problem)), None)
            }
        };
        let is_last = memory.is_none();
        // Nobody receives it if the client is gone.
        if started.send(StartedLine { number, lookup, _memory: memory }).await.is_err() || is_last {
            return;
        }
    }
}

/// The lines of a body that arrives in parts.
struct Lines {
    body: BodyReader,
    batch: Arc<Batch>,
    /// What has arrived behind the current line.
    part: Bytes,
    /// The current line, as far as it has arrived.
    line: Vec<u8>,
    /// What it takes.
    memory: Reservation,
    is_ended: bool,
}

impl Lines {
    fn new(body: BodyReader, batch: &Arc<Batch>) -> Lines {
        let memory = batch.service.memory.reservation();
        Lines { body, batch: Arc::clone(batch), part: Bytes::new(), line: Vec::new(), memory, is_ended: false }
    }

    /// The next line without its end, and the memory that it takes; nothing after the last one.
    async fn next(&mut self) -> Result<Option<(Vec<u8>, Reservation)>, Problem> {
        loop {
            let end = self.part.iter().position(|&byte| byte == b'\n');
            let rest = self.part.split_to(end.unwrap_or(self.part.len()));
            let length = self.line.len() + rest.len();
            let limit = self.batch.limits.body_bytes;
            if length > limit {
                let reason = format!("a line is longer than {limit} bytes; the rest is not read");
                return Err(ProblemKind::TooLarge.with(reason));
            }
            if length > self.line.capacity() {
                let wanted = (self.line.capacity() * 2).min(limit).max(length);
                // What this batch has in hand is given back as it is answered.
                self.memory.wait_to_grow_to(wanted, self.batch.limits.request_time).await?;
                self.line.reserve_exact(wanted - self.line.len());
            }
            self.line.extend_from_slice(&rest);
            if end.is_some() {
                self.part.advance(1);
                return Ok(Some(self.take()));
            }
            if self.is_ended {
                return Ok((!self.line.is_empty()).then(|| self.take()));
            }
            match self.body.next().await? {
                Some(part) => self.part = part,
                None => self.is_ended = true,
            }
        }
    }

    fn take(&mut self) -> (Vec<u8>, Reservation) {
        let memory = std::mem::replace(&mut self.memory, self.batch.service.memory.reservation());
        (std::mem::take(&mut self.line), memory)
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
    batch: Arc<Batch>,
    mut to_finish: mpsc::Receiver<StartedLine>,
    is_explained: bool,
    out: mpsc::UnboundedSender<(Bytes, Reservation)>,
    waiting_bytes: Arc<AtomicUsize>,
) {
    // The client may be gone while nothing can be stored.
    while let Some(StartedLine { number: line, lookup, _memory }) = to_finish.recv().await {
        let finished = tokio::select! {
            finished = tokio::time::timeout(batch.time_left() + PAUSE, lookup.finish()) => finished,
            () = out.closed() => return,
        };
        let is_over = waiting_bytes.load(Ordering::Relaxed) > MOST_WAITING_BYTES;
        let mut written = match finished {
            _ if is_over => {
                let reason = "too many responses wait to be read; the rest of the batch is not answered";
                to_json(&LineProblem { line, problem: ProblemKind::TooLarge.with(reason) })
            }
            Ok(Ok(outcome)) => {
                batch.collection.count(outcome.verdict);
                to_json(&PageResponse::new(outcome, &batch.collection, is_explained))
            }
            Ok(Err(problem)) => to_json(&LineProblem { line, problem }),
            Err(_) => to_json(&LineProblem { line, problem: batch.over() }),
        };
        written.push(b'\n');
        let mut memory = batch.service.memory.reservation();
        // A client that reads gives memory back; one that does not is cut off.
        if memory.wait_to_grow_to(written.len(), batch.limits.idle_time).await.is_err() {
            return;
        }
        waiting_bytes.fetch_add(written.len(), Ordering::Relaxed);
        let sent = out.send((written.into(), memory));
        batch.unanswered.fetch_sub(1, Ordering::Relaxed);
        if sent.is_err() || is_over {
            return;
        }
    }
}
