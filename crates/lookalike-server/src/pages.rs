//! Pages: looked for, stored, shown, removed.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Buf, Bytes};
use http_body_util::StreamBody;
use hyper::body::Frame;
use lookalike::online::{CheckOutcome, ComparedCandidate, PageLength, PageVerdict, StorePolicy};
use lookalike::page::{Body as PageBody, Markup, RawPage};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use utoipa::openapi::schema::{AllOfBuilder, OneOfBuilder, SchemaType};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::access::Rights;
use crate::body::{self, Parts};
use crate::collections::Collection;
use crate::middleware::Permit;
use crate::problem::{Kind, Problem};
use crate::request::{Chosen, PathId, Query};
use crate::{Service, reply};

/// Bytes of an id or a URL at the most.
const MOST_NAME: usize = 2048;
/// A page from this size on is not read by a thread that others wait for.
const LARGE: usize = 256 << 10;
/// Stored pages that an answer names at the most.
const MOST_NAMED: usize = 10;
/// Bytes of answers to a batch that wait to be read.
const MOST_WAITING_BYTES: usize = 64 << 20;
/// Lines of a batch that are under way at once.
const UNDER_WAY: usize = 256;

/// A page: either `html` or `text`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageInput<'a> {
    /// What the page is called; its URL where there is none
    #[serde(borrow, default)]
    #[schema(min_length = 1, max_length = 2048, pattern = r"^[^\x00-\x1f\x7f]+$")]
    id: Option<Cow<'a, str>>,
    /// Where it is from
    #[serde(borrow, default)]
    #[schema(min_length = 1, max_length = 2048, pattern = r"^[^\x00-\x1f\x7f]+$")]
    pub(crate) url: Option<Cow<'a, str>>,
    /// Its title, for texts; HTML has its own
    #[serde(borrow, default)]
    pub(crate) title: Option<Cow<'a, str>>,
    /// Its markup
    #[serde(borrow, default)]
    html: Option<Cow<'a, str>>,
    /// Its text
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// The same for the description: exactly one of `html` and `text` is there.
pub(crate) struct PageSchema;

impl PartialSchema for PageSchema {
    fn schema() -> RefOr<Schema> {
        let has = |name: &str| {
            let text = ObjectBuilder::new().schema_type(SchemaType::Type(Type::String));
            ObjectBuilder::new().property(name, text).required(name)
        };
        let either = OneOfBuilder::new().item(has("html")).item(has("text"));
        let description = Some("A page: either html or text");
        AllOfBuilder::new().description(description).item(PageInput::schema()).item(either).into()
    }
}

impl ToSchema for PageSchema {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Page")
    }
}

impl PageInput<'_> {
    /// The page, if it is one.
    pub(crate) fn page(&self, most_bytes: usize) -> Result<RawPage<'_>, Problem> {
        let (body, markup) = match (&self.html, &self.text) {
            (Some(html), None) => (html, Markup::Html),
            (None, Some(text)) => (text, Markup::Text),
            (None, None) => return Err(Kind::BadField.with("a page needs html or text")),
            (Some(_), Some(_)) => return Err(Kind::BadField.with("a page has either html or text, not both")),
        };
        if body.len() > most_bytes {
            let reason = format!("the page has {} bytes, and this service takes {most_bytes}", body.len());
            return Err(Kind::TooLarge.with(reason));
        }
        for (name, value) in [("id", &self.id), ("url", &self.url)] {
            if let Some(value) = value {
                check_name(name, value)?;
            }
        }
        let own = |text: &'_ Option<Cow<'_, str>>| text.as_deref().map(|text| Cow::Owned(text.to_owned()));
        Ok(RawPage {
            id: own(&self.id),
            url: own(&self.url),
            title: own(&self.title),
            ..RawPage::new(PageBody::Text(Cow::Borrowed(body)), markup)
        })
    }
}

fn check_name(name: &str, value: &str) -> Result<(), Problem> {
    let is_fine = (1..=MOST_NAME).contains(&value.len()) && !value.chars().any(|c| c.is_ascii_control());
    if is_fine {
        return Ok(());
    }
    Err(Kind::BadField.with(format!("{name} must be 1 to {MOST_NAME} bytes, without control characters")))
}

/// Whether a page is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoreInput {
    /// It is looked for only.
    #[default]
    Never,
    /// If nothing that is stored is like it.
    IfNew,
    /// In any case, in the place of a page with the same id.
    Always,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Whether the page is stored
    #[param(inline)]
    store: StoreInput,
    /// Whether the answer says why
    explain: bool,
}

/// What is known of a page
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageAnswer {
    /// Its id, if it was given one or is stored
    id: Option<String>,
    verdict: VerdictName,
    /// The stored pages that it is like, at most ten, the most similar first
    of: Vec<NearPage>,
    /// Whether this call stored it
    stored: bool,
    /// Whether it took the place of a page with the same id
    replaced: bool,
    length: LengthName,
    /// Stored pages that are near by their fingerprints, and of which nothing else is stored that could confirm it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    unconfirmed: Vec<NearPage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    explanation: Option<Explanation>,
}

/// New, or near or the same as pages that are stored
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum VerdictName {
    New,
    Near,
    Exact,
}

/// Whether there is enough of a page to go by: a short one is like its copies only, an empty one like nothing
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum LengthName {
    Enough,
    Short,
    Empty,
}

fn length_name(length: PageLength) -> LengthName {
    match length {
        PageLength::Enough => LengthName::Enough,
        PageLength::Short => LengthName::Short,
        PageLength::Empty => LengthName::Empty,
    }
}

/// A stored page that was compared
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NearPage {
    id: String,
    /// Differing bits of the fingerprints
    #[schema(minimum = 0, maximum = 64)]
    distance: u32,
    /// Estimated share of runs of five words in common; 1 for the same words in the same order; null if no sketch is stored
    #[schema(minimum = 0, maximum = 1)]
    similarity: Option<f64>,
}

/// Why
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// In words
    why: String,
    /// The fingerprint, 16 hex digits
    fingerprint: Option<String>,
    tokens: u32,
    /// Differing bits up to which stored pages are candidates
    radius: u32,
    /// Estimated similarity from which a candidate is a near-duplicate
    threshold: f64,
    /// Candidates there are
    candidates: u64,
    /// Candidates that were compared, the nearest first
    compared: usize,
    /// Candidates that are not like it after all
    rejected: Vec<NearPage>,
}

fn near(compared: Vec<ComparedCandidate>) -> Vec<NearPage> {
    let some = compared.into_iter().take(MOST_NAMED);
    some.map(|near| NearPage { id: near.id, distance: near.distance, similarity: near.similarity }).collect()
}

fn explain(answer: &CheckOutcome, collection: &Collection) -> Explanation {
    let config = collection.online.config();
    let (radius, threshold) = (config.radius, config.threshold);
    let rejected = answer.rejected.len();
    let why = match (&answer.verdict, answer.of.first(), answer.length) {
        (_, _, PageLength::Empty) => "There is no word in it, so it is like nothing.".to_owned(),
        (PageVerdict::Exact, Some(of), _) => format!("It has the same words in the same order as {}.", of.id),
        (PageVerdict::Near, Some(of), _) => format!(
            "Its fingerprint differs from that of {} in {} of 64 bits ({radius} are allowed), and the stored sketch confirms it: about {:.2} of their runs of five words are common ({threshold} are needed).",
            of.id,
            of.distance,
            of.similarity.unwrap_or(0.0)
        ),
        (_, _, PageLength::Short) => {
            "It is too short to be like anything but a copy, and no copy is stored.".to_owned()
        }
        _ if answer.candidates == 0 => format!("No stored fingerprint is within {radius} bits of its own."),
        _ if rejected == 0 => {
            "Stored fingerprints are near, but nothing else is stored of those pages that could confirm it.".to_owned()
        }
        _ => format!(
            "{rejected} stored fingerprints are within {radius} bits, but the sketches say otherwise: fewer than {threshold} of the runs of five words are common."
        ),
    };
    Explanation {
        why,
        fingerprint: answer.fingerprint.map(|fingerprint| format!("{fingerprint:016x}")),
        tokens: answer.tokens,
        radius,
        threshold,
        candidates: answer.candidates,
        compared: answer.of.len() + answer.rejected.len(),
        rejected: near(answer.rejected.clone()),
    }
}

fn page_answer(answer: CheckOutcome, collection: &Collection, is_explained: bool) -> PageAnswer {
    let explanation = is_explained.then(|| explain(&answer, collection));
    PageAnswer {
        id: answer.id,
        verdict: match answer.verdict {
            PageVerdict::New => VerdictName::New,
            PageVerdict::Near => VerdictName::Near,
            PageVerdict::Exact => VerdictName::Exact,
        },
        of: near(answer.of),
        stored: answer.stored,
        replaced: answer.replaced,
        length: length_name(answer.length),
        unconfirmed: near(answer.unconfirmed),
        explanation,
    }
}

/// An answer that is there, or will be.
enum Coming {
    Ready(Result<CheckOutcome, Problem>),
    Later(oneshot::Receiver<lookalike::error::Result<CheckOutcome>>),
}

/// Begins to look for a page, and to store it.
fn begin(service: &Service, collection: &Collection, bytes: &[u8], store: StoreInput) -> Coming {
    let look = || -> Result<Coming, Problem> {
        let input: PageInput<'_> = body::parse(bytes)?;
        let page = input.page(service.settings.limits.page_bytes)?;
        let storing = match store {
            StoreInput::Never => return Ok(Coming::Ready(Ok(collection.online.check(&page)?))),
            StoreInput::IfNew => StorePolicy::IfNew,
            StoreInput::Always => StorePolicy::Always,
        };
        let (tell, told) = oneshot::channel();
        // Whoever asked may be gone by then.
        collection.online.put(&page, storing, move |answer| drop(tell.send(answer)))?;
        Ok(Coming::Later(told))
    };
    if bytes.len() >= LARGE { tokio::task::block_in_place(look) } else { look() }
        .unwrap_or_else(|problem| Coming::Ready(Err(problem)))
}

async fn end(coming: Coming) -> Result<CheckOutcome, Problem> {
    match coming {
        Coming::Ready(answer) => answer,
        Coming::Later(told) => match told.await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Kind::StoreFailed.with("the service is being stopped")),
        },
    }
}

fn check_rights(rights: Rights, store: StoreInput) -> Result<(), Problem> {
    if store == StoreInput::Never { Ok(()) } else { rights.to_write() }
}

/// Have I seen this page?
#[utoipa::path(
    post,
    path = "/v1/pages",
    tag = "pages",
    params(PageQuery),
    request_body(content = PageSchema, content_type = "application/json"),
    responses((status = 200, body = PageAnswer))
)]
pub(crate) async fn post(
    State(service): State<Arc<Service>>,
    Chosen(collection): Chosen,
    rights: Rights,
    Query(query): Query<PageQuery>,
    request: Request,
) -> Result<Response, Problem> {
    check_rights(rights, query.store)?;
    let bytes = body::json(request, service.settings.limits.body_bytes).await?;
    let _heavy = if bytes.len() >= LARGE { service.heavy().await } else { None };
    let answer = end(begin(&service, &collection, &bytes, query.store)).await?;
    collection.count(answer.verdict);
    Ok(reply(StatusCode::OK, &page_answer(answer, &collection, query.explain)))
}

const NDJSON: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// The same for many pages: one JSON object a line, and an answer a line in the same order, streamed both ways. A line
/// that cannot be used is answered with a problem; the others are done.
#[utoipa::path(
    post,
    path = "/v1/pages/batch",
    tag = "pages",
    params(PageQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = String, content_type = "application/x-ndjson"))
)]
pub(crate) async fn batch(
    State(service): State<Arc<Service>>,
    Chosen(collection): Chosen,
    rights: Rights,
    Extension(permit): Extension<Permit>,
    Query(query): Query<PageQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    check_rights(rights, query.store)?;
    body::check_type(&headers, &NDJSON)?;
    let parts = Parts::new(&headers, body, service.settings.limits.body_bytes)?;
    // Answers are held for clients that send everything before they read: as many as a batch may have lines.
    let (out, lines) = mpsc::unbounded_channel::<Bytes>();
    let waiting = Arc::new(AtomicUsize::new(0));
    let (begun, to_end) = mpsc::channel::<(usize, Coming)>(UNDER_WAY);
    tokio::spawn(read_lines(Arc::clone(&service), Arc::clone(&collection), parts, query.store, begun));
    tokio::spawn(write_lines(collection, to_end, query.explain, out, Arc::clone(&waiting)));
    let frames = futures_util::stream::unfold((lines, waiting, permit), |(mut lines, waiting, permit)| async move {
        let line = lines.recv().await?;
        waiting.fetch_sub(line.len(), Ordering::Relaxed);
        Some((Ok::<_, std::convert::Infallible>(Frame::data(line)), (lines, waiting, permit)))
    });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(NDJSON[0]));
    Ok(response)
}

/// Cuts a body into lines and begins with each.
async fn read_lines(
    service: Arc<Service>,
    collection: Arc<Collection>,
    mut parts: Parts,
    store: StoreInput,
    begun: mpsc::Sender<(usize, Coming)>,
) {
    let limits = service.settings.limits;
    let mut lines = Lines { part: Bytes::new(), line: Vec::new(), limit: limits.body_bytes };
    let (mut number, mut is_ended) = (0, false);
    loop {
        let stopped = loop {
            match lines.next(is_ended) {
                Ok(None) => break None,
                Ok(Some(line)) => {
                    number += 1;
                    if number > limits.batch_lines {
                        let reason = format!("a batch has at most {} lines; the rest is not read", limits.batch_lines);
                        break Some(Kind::TooLarge.with(reason));
                    }
                    if line.iter().all(u8::is_ascii_whitespace) {
                        continue;
                    }
                    let _heavy = if line.len() >= LARGE { service.heavy().await } else { None };
                    // Nobody listens if the client is gone.
                    if begun.send((number, begin(&service, &collection, &line, store))).await.is_err() {
                        return;
                    }
                }
                Err(problem) => break Some(problem),
            }
        };
        if stopped.is_none() && is_ended {
            return;
        }
        let next = match stopped {
            Some(problem) => Err(problem),
            None => {
                let next = tokio::time::timeout(limits.request_time, parts.next()).await;
                next.unwrap_or_else(|_| Err(Kind::Timeout.with("the next part of the batch did not come in time")))
            }
        };
        match next {
            Ok(Some(part)) => lines.part = part,
            Ok(None) => is_ended = true,
            Err(problem) => {
                let _ = begun.send((number.max(1), Coming::Ready(Err(problem)))).await;
                return;
            }
        }
    }
}

/// Bytes that come in parts → lines, one at a time.
struct Lines {
    part: Bytes,
    line: Vec<u8>,
    limit: usize,
}

impl Lines {
    /// The next line, if it is whole, or if it is the last.
    fn next(&mut self, is_last: bool) -> Result<Option<Vec<u8>>, Problem> {
        let end = self.part.iter().position(|&byte| byte == b'\n');
        let rest = self.part.split_to(end.unwrap_or(self.part.len()));
        self.line.extend_from_slice(&rest);
        if self.line.len() > self.limit {
            return Err(
                Kind::TooLarge.with(format!("a line is longer than {} bytes; the rest is not read", self.limit))
            );
        }
        if end.is_some() {
            self.part.advance(1);
        } else if !is_last || self.line.is_empty() {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut self.line)))
    }
}

/// A problem with a line of a batch.
#[derive(Serialize)]
struct LineProblem {
    line: usize,
    #[serde(flatten)]
    problem: Problem,
}

async fn write_lines(
    collection: Arc<Collection>,
    mut to_end: mpsc::Receiver<(usize, Coming)>,
    is_explained: bool,
    out: mpsc::UnboundedSender<Bytes>,
    waiting: Arc<AtomicUsize>,
) {
    while let Some((line, coming)) = to_end.recv().await {
        let ended = end(coming).await;
        let is_over = waiting.load(Ordering::Relaxed) > MOST_WAITING_BYTES;
        let written = match ended {
            _ if is_over => {
                let problem =
                    Kind::TooLarge.with("too many answers wait to be read; the rest of the batch is not answered");
                serde_json::to_vec(&LineProblem { line, problem })
            }
            Ok(answer) => {
                collection.count(answer.verdict);
                serde_json::to_vec(&page_answer(answer, &collection, is_explained))
            }
            Err(problem) => serde_json::to_vec(&LineProblem { line, problem }),
        };
        let mut written = written.unwrap_or_default();
        written.push(b'\n');
        waiting.fetch_add(written.len(), Ordering::Relaxed);
        if out.send(written.into()).is_err() || is_over {
            return;
        }
    }
}

/// What is stored of a page
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredAnswer {
    id: String,
    url: Option<String>,
    title: Option<String>,
    /// The fingerprint, 16 hex digits; null for an empty page
    fingerprint: Option<String>,
    tokens: u32,
    length: LengthName,
    /// When it was stored, in seconds since 1970
    stored_at: u64,
}

/// What is stored of a page
#[utoipa::path(
    get,
    path = "/v1/pages/{id}",
    tag = "pages",
    params(("id" = String, Path, description = "The id, percent-encoded")),
    responses((status = 200, body = StoredAnswer))
)]
pub(crate) async fn get(Chosen(collection): Chosen, PathId(id): PathId) -> Result<Response, Problem> {
    let Some(page) = collection.online.get(&id)? else { return Err(no_page(&id)) };
    let length = match page.fingerprint {
        None => PageLength::Empty,
        Some(_) if page.is_short => PageLength::Short,
        Some(_) => PageLength::Enough,
    };
    let answer = StoredAnswer {
        id,
        url: page.url,
        title: page.title,
        fingerprint: page.fingerprint.map(|fingerprint| format!("{fingerprint:016x}")),
        tokens: page.tokens,
        length: length_name(length),
        stored_at: page.stored_at,
    };
    Ok(reply(StatusCode::OK, &answer))
}

fn no_page(id: &str) -> Problem {
    let shown: String = id.chars().take(100).collect();
    Kind::NotFound.with(format!("no page is stored under the id '{shown}'"))
}

/// Removes a page
#[utoipa::path(
    delete,
    path = "/v1/pages/{id}",
    tag = "pages",
    params(("id" = String, Path, description = "The id, percent-encoded")),
    responses((status = 204, description = "It is gone, and stays gone after a crash"))
)]
pub(crate) async fn delete(
    Chosen(collection): Chosen,
    rights: Rights,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    rights.to_write()?;
    let (tell, told) = oneshot::channel();
    collection.online.delete(&id, move |was_there| drop(tell.send(was_there)))?;
    let was_there = told.await.map_err(|_| Kind::StoreFailed.with("the service is being stopped"))??;
    if was_there { Ok(StatusCode::NO_CONTENT.into_response()) } else { Err(no_page(&id)) }
}
