//! Pages: looked up, stored, shown, removed.

pub(crate) mod batch;
mod glob;
mod input;
mod items;
mod lookup;
pub(crate) mod many;
mod response;

pub(crate) use input::PageInput;
pub(crate) use lookup::{AckInput, StoreInput};
pub(crate) use response::hex;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lookalike::index::StoredPage;
use lookalike::online::PageLength;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use utoipa::ToSchema;

use crate::body::JsonBody;
use crate::collections::Collection;
use crate::health::HEARTBEAT;
use crate::problem::{Problem, ProblemKind, dropped};
use crate::replication::wait_until_shipped;
use crate::request::{PageId, TargetCollection, WriteAccess};
use crate::{Service, json};
use lookup::{Lookup, LookupQuery};
use response::{LengthName, PageResponse};

/// Have I seen this page?
#[utoipa::path(
    post,
    path = "/v1/pages",
    operation_id = "checkPage",
    tag = "pages",
    params(LookupQuery),
    request_body(content = PageInput<'static>, content_type = "application/json"),
    responses((status = 200, body = PageResponse, description = "What is known about the page"))
)]
pub(crate) async fn post(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    query: LookupQuery,
    JsonBody(bytes): JsonBody,
) -> Result<Response, Problem> {
    let stall_time = service.limits().stall_time;
    if query.store != StoreInput::Never {
        collection.check_writer(stall_time)?;
    }
    let lookup = Lookup::start(&service, &collection, &bytes, query.store).await;
    let (outcome, group) = unless_stalled(&collection, stall_time, lookup.finish()).await?;
    if let Some(group) = group.filter(|_| query.ack == AckInput::Shipped) {
        // Before the request takes too long for everybody else.
        wait_until_shipped(&collection, group, service.limits().request_time.mul_f32(0.8)).await?;
    }
    collection.count(outcome.verdict);
    Ok(json(StatusCode::OK, &PageResponse::new(outcome, &collection, query.explain)))
}

/// What is stored about a page
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredPageResponse {
    id: String,
    url: Option<String>,
    title: Option<String>,
    /// The fingerprint, 16 hex digits; null for an empty page, and in a collection that is not searched by fingerprints
    fingerprint: Option<String>,
    tokens: u32,
    length: LengthName,
    /// When it was stored, in seconds since 1970
    stored_at: u64,
    /// When it goes, in seconds since 1970; null if it stays
    expires_at: Option<u64>,
    /// What was given with it
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
}

impl StoredPageResponse {
    fn new(id: String, page: StoredPage) -> StoredPageResponse {
        let length = match page.tokens {
            0 => PageLength::Empty,
            _ if page.is_short => PageLength::Short,
            _ => PageLength::Enough,
        };
        StoredPageResponse {
            id,
            url: page.url,
            title: page.title,
            fingerprint: page.fingerprint.map(hex),
            tokens: page.tokens,
            length: length.into(),
            stored_at: page.stored_at,
            expires_at: page.expires_at,
            metadata: raw(page.metadata),
        }
    }
}

/// JSON as it was stored.
fn raw(json: Option<String>) -> Option<Box<RawValue>> {
    json.and_then(|json| RawValue::from_string(json).ok())
}

/// What is stored about a page
#[utoipa::path(
    get,
    path = "/v1/pages/{id}",
    operation_id = "getPage",
    tag = "pages",
    params(PageId),
    responses((status = 200, body = StoredPageResponse, description = "The page"))
)]
pub(crate) async fn get(
    TargetCollection(collection): TargetCollection,
    PageId(id): PageId,
) -> Result<Response, Problem> {
    show(&collection, id)
}

fn show(collection: &Collection, id: String) -> Result<Response, Problem> {
    let Some(page) = collection.online().get(&id)? else { return Err(no_page(&id)) };
    Ok(json(StatusCode::OK, &StoredPageResponse::new(id, page)))
}

/// Removes a page
#[utoipa::path(
    delete,
    path = "/v1/pages/{id}",
    operation_id = "deletePage",
    tag = "pages",
    params(PageId),
    responses((status = 204, description = "It is gone, and stays gone after a crash"))
)]
pub(crate) async fn delete(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    _: WriteAccess,
    PageId(id): PageId,
) -> Result<Response, Problem> {
    remove(&service, &collection, &id).await
}

async fn remove(service: &Service, collection: &Collection, id: &str) -> Result<Response, Problem> {
    let stall_time = service.limits().stall_time;
    collection.check_writer(stall_time)?;
    let (sender, receiver) = oneshot::channel();
    let writing = collection.writing().await;
    collection.online().delete(id, move |was_there| drop(sender.send(was_there)))?;
    drop(writing);
    let deleted = async { Ok(receiver.await.map_err(|_| dropped())??) };
    let was_there = unless_stalled(collection, stall_time, deleted).await?;
    if was_there { Ok(StatusCode::NO_CONTENT.into_response()) } else { Err(no_page(id)) }
}

/// Waits for work of the thread that stores, as long as that thread is at work.
pub(crate) async fn unless_stalled<T>(
    collection: &Collection,
    stall_time: Duration,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    tokio::pin!(work);
    loop {
        if let Ok(done) = tokio::time::timeout(HEARTBEAT, &mut work).await {
            return done;
        }
        collection.check_writer(stall_time)?;
    }
}

fn no_page(id: &str) -> Problem {
    let shown: String = id.chars().take(100).collect();
    ProblemKind::NotFound.with(format!("no page is stored under the id '{shown}'"))
}
