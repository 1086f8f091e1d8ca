//! Many pages in one request: one per line, or the elements of an array; streamed both ways.
//!
//! One task reads pages and starts a lookup for each ([`read_items`]); another finishes the lookups in the same order and
//! writes their responses ([`ResponseWriter`]).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use lookalike::online::CheckOutcome;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use utoipa::ToSchema;

use crate::Service;
use crate::body::BodyReader;
use crate::budget::Reservation;
use crate::collections::Collection;
use crate::limits::Limits;
use crate::listen::Peer;
use crate::pages::PageInput;
use crate::pages::items::{BatchForm, Items};
use crate::pages::lookup::{AckInput, Lookup, LookupQuery, StoreInput};
use crate::pages::response::PageResponse;
use crate::problem::{Problem, ProblemKind};
use crate::replication::wait_until_shipped;
use crate::request::TargetCollection;
use crate::to_json;
use crate::tokens::Access;

/// Bytes of responses that wait for a client that does not read them.
const MOST_WAITING_BYTES: usize = 64 << 20;
/// Bytes of responses that are sent together if they are there together.
const TOGETHER_BYTES: usize = 8 << 10;
/// Lookups that are started and not finished, at most.
const MOST_STARTED: usize = 256;
/// Pages that wait to be stored from which on batches pause: half of what the library lets wait, so that there is room for
/// single pages.
const CROWDED: u64 = 4096;
/// How long they pause.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a batch works on its pages before other batches have their turn.
const SLICE: Duration = Duration::from_micros(200);
/// How long it rests after that while the cores are busy with single requests, which somebody waits for.
const REST: Duration = Duration::from_millis(1);

/// A problem with one page of a batch
#[derive(Serialize, ToSchema)]
pub(crate) struct ItemProblem {
    /// The line, counted from 1
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    line: Option<usize>,
    /// The element of the array, counted from 0
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    index: Option<usize>,
    #[serde(flatten)]
    problem: Problem,
}

/// What a batch answers to one page
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum BatchItem {
    Page(Box<PageResponse>),
    Problem(ItemProblem),
}

impl BatchItem {
    fn problem(form: BatchForm, number: usize, problem: Problem) -> BatchItem {
        let (line, index) = match form {
            BatchForm::Lines => (Some(number + 1), None),
            BatchForm::Array => (None, Some(number)),
        };
        BatchItem::Problem(ItemProblem { line, index, problem })
    }
}

/// Have I seen these pages?
///
/// One JSON object per line, and one response per line in the same order; or an array of pages, and an array of responses.
/// Both are streamed both ways. A page that cannot be used is answered with a problem in its place; the others are not
/// affected.
#[utoipa::path(
    post,
    path = "/v1/pages/batch",
    operation_id = "batch",
    tag = "pages",
    params(LookupQuery),
    request_body(content(
        (Vec<PageInput<'static>> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses((status = 200, description = "One response per page, in the order of the pages", content(
        (Vec<BatchItem> = "application/json"),
        (String = "application/x-ndjson"),
    )))
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
    let form = BatchForm::of(&headers)?;
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
    let items = Items::open(form, body, limits, &service.memory).await?;
    // Responses are held for clients that send everything before they read: the channel has no limit, their bytes have one.
    let (out, responses) = mpsc::unbounded_channel::<(Bytes, Reservation)>();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let (started, to_finish) = mpsc::channel::<StartedItem>(MOST_STARTED);
    let runtime = service.batch_runtime.clone();
    let batch = Batch { end: Instant::now() + limits.batch_time, form, limits, service, collection, unanswered };
    let batch = Arc::new(batch);
    runtime.spawn(read_items(Arc::clone(&batch), access, items, query.store, started));
    let waiting = Arc::clone(&waiting_bytes);
    let (is_explained, ack) = (query.explain, query.ack);
    let writer = ResponseWriter { batch, is_explained, ack, out, waiting_bytes: waiting };
    runtime.spawn(writer.write_responses(to_finish));
    // The place is held until the last response is sent.
    let held = (slot, cut_off_late_readers(peer, limits.batch_time + limits.idle_time));
    let frames = stream::unfold((responses, waiting_bytes, held), |(mut responses, waiting_bytes, held)| async move {
        let (part, _memory) = responses.recv().await?;
        waiting_bytes.fetch_sub(part.len(), Ordering::Relaxed);
        Some((Ok::<_, Infallible>(Frame::data(part)), (responses, waiting_bytes, held)))
    });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
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
    form: BatchForm,
    limits: Limits,
    end: Instant,
    /// Pages that were read and have no response yet.
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

    /// Starts with a page. While the thread that stores has enough to do, or hangs, this waits: a page is not refused because
    /// others were faster.
    async fn start(&self, item: &[u8], store: StoreInput, is_gone: impl Fn() -> bool) -> Lookup {
        loop {
            let writer = self.collection.online().writer();
            let is_crowded = store != StoreInput::Never && writer.is_alive && writer.waiting >= CROWDED;
            if !is_crowded {
                match Lookup::start(&self.service, &self.collection, item, store).await {
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

/// A page whose lookup has begun.
struct StartedItem {
    number: usize,
    lookup: Lookup,
    _memory: Option<Reservation>,
}

/// Starts a lookup for each page of a body; says what is wrong if it cannot go on.
async fn read_items(
    batch: Arc<Batch>,
    access: Access,
    mut items: Items,
    store: StoreInput,
    started: mpsc::Sender<StartedItem>,
) {
    let limits = batch.limits;
    let mut turn = Instant::now();
    for number in 0.. {
        if turn.elapsed() >= SLICE {
            // Pages that are there already would keep a thread busy for milliseconds.
            if batch.service.is_busy_with_single_requests() {
                tokio::time::sleep(REST).await;
            } else {
                tokio::task::yield_now().await;
            }
            turn = Instant::now();
        }
        let next = tokio::time::timeout(batch.time_left(), items.next()).await.unwrap_or_else(|_| Err(batch.over()));
        let next = match next {
            Ok(Some(_)) if number == limits.batch_lines => {
                let reason =
                    format!("a batch has at most {} {}s; the rest is not read", limits.batch_lines, batch.form.item());
                Err(ProblemKind::TooLarge.with(reason))
            }
            next => next,
        };
        let is_blank = |item: &[u8]| item.iter().all(u8::is_ascii_whitespace);
        let (lookup, memory) = match next {
            Ok(None) => return,
            Ok(Some((item, _))) if batch.form == BatchForm::Lines && is_blank(&item) => continue,
            Ok(Some((item, memory))) => {
                batch.unanswered.fetch_add(1, Ordering::Relaxed);
                // The request itself counts for its first page.
                while number > 0
                    && let Err(wait) = access.take(limits.token_rate)
                    && !started.is_closed()
                {
                    tokio::time::sleep(wait).await;
                }
                let lookup = if is_blank(&item) {
                    Lookup::Done(Err(ProblemKind::BadJson.with("expected a page, found nothing")))
                } else {
                    batch.start(&item, store, || started.is_closed()).await
                };
                (lookup, Some(memory))
            }
            Err(problem) => {
                batch.unanswered.fetch_add(1, Ordering::Relaxed);
                (Lookup::Done(Err(problem)), None)
            }
        };
        let is_last = memory.is_none();
        // Nobody receives it if the client is gone.
        if started.send(StartedItem { number, lookup, _memory: memory }).await.is_err() || is_last {
            return;
        }
    }
}

/// Writes the responses of a batch.
struct ResponseWriter {
    batch: Arc<Batch>,
    is_explained: bool,
    ack: AckInput,
    out: mpsc::UnboundedSender<(Bytes, Reservation)>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl ResponseWriter {
    /// Finishes lookups and writes a response for each.
    async fn write_responses(self, mut to_finish: mpsc::Receiver<StartedItem>) {
        let batch = &self.batch;
        let (first, between, after): (&[u8], &[u8], &[u8]) = match batch.form {
            BatchForm::Lines => (b"", b"", b"\n"),
            BatchForm::Array => (b"[", b",\n", b""),
        };
        let mut before = first;
        let mut written = Written::default();
        loop {
            // What the client may be waiting for does not wait for others.
            let Some(next) = self.unless_it_takes(&mut written, to_finish.recv()).await else { return };
            let Some(StartedItem { number, lookup, _memory }) = next else { break };
            // The client may be gone while nothing can be stored.
            let time = batch.time_left() + PAUSE;
            let finish = self.unless_it_takes(&mut written, tokio::time::timeout(time, self.finish(lookup)));
            let finished = tokio::select! {
                finished = finish => finished,
                () = self.out.closed() => return,
            };
            let Some(finished) = finished else { return };
            let is_over = self.waiting_bytes.load(Ordering::Relaxed) > MOST_WAITING_BYTES;
            let finished = match finished {
                _ if is_over => {
                    let reason = "too many responses wait to be read; the rest of the batch is not answered";
                    Err(ProblemKind::TooLarge.with(reason))
                }
                finished => finished.unwrap_or_else(|_| Err(batch.over())),
            };
            let item = match finished {
                Ok(outcome) => {
                    batch.collection.count(outcome.verdict);
                    BatchItem::Page(Box::new(PageResponse::new(outcome, &batch.collection, self.is_explained)))
                }
                Err(problem) => BatchItem::problem(batch.form, number, problem),
            };
            [before, &to_json(&item), after].iter().for_each(|part| written.bytes.extend_from_slice(part));
            written.items += 1;
            before = between;
            if (is_over || written.bytes.len() >= TOGETHER_BYTES) && !self.send(&mut written).await {
                return;
            }
            if is_over {
                break;
            }
        }
        if batch.form == BatchForm::Array {
            written.bytes.extend_from_slice(if before == first { b"[]\n" } else { b"]\n" });
        }
        self.send(&mut written).await;
    }

    /// Waits until a page is stored, and shipped if that is asked for.
    async fn finish(&self, lookup: Lookup) -> Result<CheckOutcome, Problem> {
        let (outcome, group) = lookup.finish().await?;
        if let Some(group) = group.filter(|_| self.ack == AckInput::Shipped) {
            let time = self.batch.limits.request_time.mul_f32(0.8);
            wait_until_shipped(&self.batch.collection, group, time).await?;
        }
        Ok(outcome)
    }

    /// Does something; if it is not done at once, what was written is sent first. Nothing if nobody listens any more.
    async fn unless_it_takes<T>(&self, written: &mut Written, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = std::future::ready(()) => {}
        }
        if !self.send(written).await {
            return None;
        }
        Some(work.await)
    }

    /// Sends what was written, and says whether somebody still listens. A client that reads gives memory back; one that does
    /// not is cut off.
    async fn send(&self, written: &mut Written) -> bool {
        let Written { bytes, items } = std::mem::take(written);
        if bytes.is_empty() {
            return true;
        }
        let mut memory = self.batch.service.memory.reservation();
        if memory.wait_to_grow_to(bytes.len(), self.batch.limits.idle_time).await.is_err() {
            return false;
        }
        self.waiting_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let is_sent = self.out.send((bytes.into(), memory)).is_ok();
        self.batch.unanswered.fetch_sub(items, Ordering::Relaxed);
        is_sent
    }
}

/// Responses that are not sent yet.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    items: usize,
}
