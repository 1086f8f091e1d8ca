//! Many pages in one request: one per line, or the elements of an array; streamed both ways.
//!
//! One task reads pages and starts a lookup for each ([`read_items`]); another finishes the lookups in the same order and
//! writes their responses ([`write_responses`]).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use crate::Service;
use crate::body::BodyReader;
use crate::collections::Collection;
use crate::middleware::Permit;
use crate::pages::PageInput;
use crate::pages::items::{BatchForm, Items};
use crate::pages::lookup::{Lookup, LookupQuery, StoreInput};
use crate::pages::response::PageResponse;
use crate::problem::{Problem, ProblemKind};
use crate::request::TargetCollection;
use crate::to_json;

/// Bytes of responses that wait for a client that does not read them.
const MOST_WAITING_BYTES: usize = 64 << 20;
/// Lookups that are started and not finished, at most.
const MOST_STARTED: usize = 256;

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
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let form = BatchForm::of(&headers)?;
    let limits = service.settings.limits;
    let items = Items::open(form, BodyReader::new(&headers, body, limits.body_bytes)?, limits).await?;
    // Responses are held for clients that send everything before they read: the channel has no limit, their bytes have one.
    let (out, responses) = mpsc::unbounded_channel::<Bytes>();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let (started, to_finish) = mpsc::channel::<(usize, Lookup)>(MOST_STARTED);
    tokio::spawn(read_items(service, Arc::clone(&collection), form, items, query.store, started));
    let writer = ResponseWriter { form, is_explained: query.explain, out, waiting_bytes: Arc::clone(&waiting_bytes) };
    tokio::spawn(writer.write_responses(collection, to_finish));
    // The permit is held until the last response is sent.
    let frames =
        stream::unfold((responses, waiting_bytes, permit), |(mut responses, waiting_bytes, permit)| async move {
            let part = responses.recv().await?;
            waiting_bytes.fetch_sub(part.len(), Ordering::Relaxed);
            Some((Ok::<_, Infallible>(Frame::data(part)), (responses, waiting_bytes, permit)))
        });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    Ok(response)
}

/// Starts a lookup for each page of a body; says what is wrong if it cannot go on.
async fn read_items(
    service: Arc<Service>,
    collection: Arc<Collection>,
    form: BatchForm,
    mut items: Items,
    store: StoreInput,
    started: mpsc::Sender<(usize, Lookup)>,
) {
    let most = service.settings.limits.batch_lines;
    for number in 0.. {
        let next = match items.next().await {
            Ok(Some(_)) if number == most => {
                let reason = format!("a batch has at most {most} {}s; the rest is not read", form.item());
                Err(ProblemKind::TooLarge.with(reason))
            }
            next => next,
        };
        let (lookup, is_last) = match next {
            Ok(None) => return,
            Ok(Some(item)) if item.iter().all(u8::is_ascii_whitespace) => match form {
                BatchForm::Lines => continue,
                BatchForm::Array => (Lookup::Done(Err(ProblemKind::BadJson.with("there is no page here"))), false),
            },
            Ok(Some(item)) => (Lookup::start(&service, &collection, &item, store).await, false),
            Err(problem) => (Lookup::Done(Err(problem)), true),
        };
        // Nobody receives it if the client is gone.
        if started.send((number, lookup)).await.is_err() || is_last {
            return;
        }
    }
}

/// Writes the responses of a batch.
struct ResponseWriter {
    form: BatchForm,
    is_explained: bool,
    out: mpsc::UnboundedSender<Bytes>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl ResponseWriter {
    /// Finishes lookups and writes a response for each.
    async fn write_responses(self, collection: Arc<Collection>, mut to_finish: mpsc::Receiver<(usize, Lookup)>) {
        let mut before: &[u8] = match self.form {
            BatchForm::Lines => b"",
            BatchForm::Array => b"[",
        };
        while let Some((number, lookup)) = to_finish.recv().await {
            let finished = lookup.finish().await;
            let is_over = self.waiting_bytes.load(Ordering::Relaxed) > MOST_WAITING_BYTES;
            let item = match finished {
                _ if is_over => {
                    let reason = "too many responses wait to be read; the rest of the batch is not answered";
                    BatchItem::problem(self.form, number, ProblemKind::TooLarge.with(reason))
                }
                Ok(outcome) => {
                    collection.count(outcome.verdict);
                    BatchItem::Page(Box::new(PageResponse::new(outcome, &collection, self.is_explained)))
                }
                Err(problem) => BatchItem::problem(self.form, number, problem),
            };
            let mut written = before.to_vec();
            written.extend(to_json(&item));
            match self.form {
                BatchForm::Lines => written.push(b'\n'),
                BatchForm::Array => before = b",\n",
            }
            if !self.send(written) {
                return;
            }
            if is_over {
                break;
            }
        }
        if self.form == BatchForm::Array {
            let is_empty = before == b"[";
            self.send(if is_empty { b"[]\n".to_vec() } else { b"]\n".to_vec() });
        }
    }

    /// Says whether somebody still listens.
    fn send(&self, written: Vec<u8>) -> bool {
        self.waiting_bytes.fetch_add(written.len(), Ordering::Relaxed);
        self.out.send(written.into()).is_ok()
    }
}
