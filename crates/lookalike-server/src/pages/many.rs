//! Pages by their ids: listed in parts, and removed by prefix or pattern.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lookalike::Error;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use utoipa::{IntoParams, ToSchema};

use crate::collections::Collection;
use crate::operations::check_limit;
use crate::pages::{StoredPageResponse, glob, remove, show, unless_stalled};
use crate::problem::{Problem, ProblemKind, dropped};
use crate::request::{Query, TargetCollection, WriteAccess};
use crate::{Service, json};

/// Pages of one list.
const MOST_LISTED: usize = 1000;
const DEFAULT_LISTED: usize = 100;
/// Pages that are removed together, and waited for.
const REMOVED_TOGETHER: usize = 256;
/// How long to wait for room among what waits to be stored.
const PAUSE: Duration = Duration::from_millis(5);

/// Which page, or which pages
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct FindQuery {
    /// The id of one page; nothing else is given then
    #[param(min_length = 1)]
    id: Option<String>,
    /// A list of the pages whose ids begin so
    prefix: Option<String>,
    /// Only those behind this id
    after: Option<String>,
    /// At most so many; the default is 100
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Pages by id
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PagesResponse {
    pages: Vec<StoredPageResponse>,
    /// What `after` must be for those that follow; null if there are no more
    next: Option<String>,
}

/// One page, or a list
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it is for the description")]
pub(crate) enum FoundPages {
    List(PagesResponse),
    One(StoredPageResponse),
}

/// A page by its id, or pages by id: those with a prefix, in parts
#[utoipa::path(
    get,
    path = "/v1/pages",
    operation_id = "findPages",
    tag = "pages",
    params(FindQuery),
    responses((status = 200, body = FoundPages, description = "The page with the id, or without one the pages in the order of their ids"))
)]
pub(crate) async fn find(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    Query(query): Query<FindQuery>,
) -> Result<Response, Problem> {
    if let Some(id) = query.id {
        if query.prefix.is_some() || query.after.is_some() || query.limit.is_some() {
            return Err(ProblemKind::BadField.with("id stands alone; prefix, after and limit are for lists"));
        }
        return show(&collection, id);
    }
    let limit = check_limit(query.limit, DEFAULT_LISTED, MOST_LISTED)?;
    let prefix = query.prefix.unwrap_or_default();
    let list = || collection.online().list(&prefix, query.after.as_deref(), limit + 1);
    let mut found = service.run_heavy(list).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|(id, _)| id.clone());
    let pages = found.into_iter().map(|(id, page)| StoredPageResponse::new(id, page)).collect();
    Ok(json(StatusCode::OK, &PagesResponse { pages, next }))
}

/// Which pages are removed: one of `id`, `prefix` and `url`
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// The id of one page
    #[param(min_length = 1)]
    id: Option<String>,
    /// The pages whose ids begin so
    #[param(min_length = 1)]
    prefix: Option<String>,
    /// The pages whose URLs match: `*` is any text, `?` any character
    #[param(min_length = 1, example = "http://a.org/*")]
    url: Option<String>,
    /// Must be true if it is not a single page
    confirm: bool,
}

/// How many pages were removed
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedResponse {
    /// Pages that are gone, and stay gone after a crash
    deleted: u64,
    /// False if the time for a request was over before all were found: the same request goes on
    complete: bool,
}

/// Removes a page by its id, or all pages with a prefix or a URL that matches a pattern
#[utoipa::path(
    delete,
    path = "/v1/pages",
    operation_id = "deletePages",
    tag = "pages",
    params(DeleteQuery),
    responses(
        (status = 204, description = "The page with the id is gone, and stays gone after a crash"),
        (status = 200, body = DeletedResponse, description = "How many pages were removed")
    )
)]
pub(crate) async fn delete_found(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    _: WriteAccess,
    Query(query): Query<DeleteQuery>,
) -> Result<Response, Problem> {
    let (prefix, pattern) = match (query.id, query.prefix, query.url) {
        (Some(id), None, None) => return remove(&service, &collection, &id).await,
        (None, Some(prefix), None) if !prefix.is_empty() => (prefix, None),
        (None, None, Some(url)) if !url.is_empty() => (String::new(), Some(url)),
        _ => return Err(ProblemKind::BadField.with("give one of id, prefix and url, which is not empty")),
    };
    if !query.confirm {
        return Err(ProblemKind::BadField.with("this may remove many pages: add confirm=true if that is what you want"));
    }
    let is_wanted =
        |id: &str, url: Option<&str>| pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, url.unwrap_or(id)));
    // The rest of the time is for what is under way.
    let end = Instant::now() + service.limits().request_time / 2;
    let (mut deleted, mut after) = (0, None::<String>);
    let complete = loop {
        let list = || collection.online().list(&prefix, after.as_deref(), REMOVED_TOGETHER);
        let found = service.run_heavy(list).await?;
        let Some((last, _)) = found.last() else { break true };
        after = Some(last.clone());
        let ids = found.iter().filter(|(id, page)| is_wanted(id, page.url.as_deref())).map(|(id, _)| id.as_str());
        deleted += remove_all(&service, &collection, ids).await?;
        if Instant::now() >= end {
            break false;
        }
    };
    Ok(json(StatusCode::OK, &DeletedResponse { deleted, complete }))
}

/// Removes pages, and says how many there were once all are gone from disk.
async fn remove_all<'a>(
    service: &Service,
    collection: &Collection,
    ids: impl Iterator<Item = &'a str>,
) -> Result<u64, Problem> {
    let stall_time = service.limits().stall_time;
    collection.check_writer(stall_time)?;
    let mut waiting = Vec::new();
    for id in ids {
        loop {
            let (sender, receiver) = oneshot::channel();
            let writing = collection.writing().await;
            let sent = collection.online().delete(id, move |was_there| drop(sender.send(was_there)));
            drop(writing);
            match sent {
                Ok(()) => break waiting.push(receiver),
                Err(Error::Overloaded) => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(error.into()),
            }
            collection.check_writer(stall_time)?;
        }
    }
    let mut removed = 0;
    for receiver in waiting {
        let deleted = async { Ok(receiver.await.map_err(|_| dropped())??) };
        removed += u64::from(unless_stalled(collection, stall_time, deleted).await?);
    }
    Ok(removed)
}
