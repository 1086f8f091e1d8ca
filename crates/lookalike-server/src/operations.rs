//! For whoever runs the service: collections, backups, numbers, probes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Rights;
use crate::body;
use crate::collections::{Collection, CollectionInput};
use crate::problem::{Kind, Problem, internal};
use crate::request::{Chosen, PathName};
use crate::telemetry::publish;
use crate::{Service, reply};

/// A collection
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CollectionAnswer {
    name: String,
    /// How its pages are read and compared; null if it holds fingerprints that were made elsewhere
    config: Option<CollectionInput>,
    /// Stands for all that decides a fingerprint; send it as the header Lookalike-Config to be refused by a collection with another one
    config_hash: String,
    /// Rows; those that were deleted count until they are merged away
    rows: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CollectionsAnswer {
    collections: Vec<CollectionAnswer>,
}

fn collection_answer(collection: &Collection) -> CollectionAnswer {
    CollectionAnswer {
        name: collection.name.clone(),
        config: CollectionInput::of(collection.online.config()),
        config_hash: collection.hash(),
        rows: collection.online.stats().rows,
    }
}

/// All collections
#[utoipa::path(get, path = "/v1/collections", tag = "operations", responses((status = 200, body = CollectionsAnswer)))]
pub(crate) async fn list(State(service): State<Arc<Service>>) -> Result<Response, Problem> {
    let all = service.collections()?.all();
    let collections = all.values().map(|collection| collection_answer(collection)).collect();
    Ok(reply(StatusCode::OK, &CollectionsAnswer { collections }))
}

/// A collection
#[utoipa::path(
    get,
    path = "/v1/collections/{name}",
    tag = "operations",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = CollectionAnswer))
)]
pub(crate) async fn show(Chosen(collection): Chosen) -> Result<Response, Problem> {
    Ok(reply(StatusCode::OK, &collection_answer(&collection)))
}

/// Makes a collection; nothing happens if it is there and is made in this way
#[utoipa::path(
    put,
    path = "/v1/collections/{name}",
    tag = "operations",
    params(("name" = String, Path, description = "Its name: 1 to 64 lower-case letters, digits, - and _")),
    request_body(content = CollectionInput, content_type = "application/json"),
    responses((status = 200, body = CollectionAnswer, description = "It was there"), (status = 201, body = CollectionAnswer, description = "It is made"))
)]
pub(crate) async fn make(
    State(service): State<Arc<Service>>,
    rights: Rights,
    PathName(name): PathName,
    request: Request,
) -> Result<Response, Problem> {
    rights.to_write()?;
    let bytes = body::json(request, service.settings.limits.body_bytes).await?;
    let input: CollectionInput = body::parse(&bytes)?;
    let (collection, was_there) =
        tokio::task::block_in_place(|| service.collections()?.make(&name, &input).map_err(Problem::from))?;
    let status = if was_there { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &collection_answer(&collection)))
}

/// A collection in numbers
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsAnswer {
    collection: String,
    config_hash: String,
    /// Rows; those that were deleted count until they are merged away
    rows: u64,
    /// Rows that are in memory, and on disk in the store
    rows_in_memory: u64,
    segments: usize,
    segments_in_memory: usize,
    segment_bytes: u64,
    store_bytes: u64,
    /// The number of the last change
    last_change: u64,
    /// The number of the last change that is in segments
    covered: u64,
    /// Groups of changes that were synced since the start
    groups: u64,
    /// Pages in them
    grouped: u64,
    sync_seconds: f64,
    merges: u64,
    merge_seconds: f64,
    /// How often the store was opened anew after it had failed
    reopened: u64,
    /// What is wrong; nothing, if all is well
    problems: Vec<String>,
}

/// A collection in numbers
#[utoipa::path(get, path = "/v1/stats", tag = "operations", responses((status = 200, body = StatsAnswer)))]
pub(crate) async fn stats(Chosen(collection): Chosen) -> Result<Response, Problem> {
    let stats = collection.online.stats();
    let mut problems = stats.damaged;
    problems.extend(stats.failed);
    problems.extend(stats.merging.failed.map(|failed| format!("merging: {failed}")));
    let answer = StatsAnswer {
        collection: collection.name.clone(),
        config_hash: collection.hash(),
        rows: stats.rows,
        rows_in_memory: stats.rows_in_memory,
        segments: stats.segments,
        segments_in_memory: stats.segments_in_memory,
        segment_bytes: stats.segment_bytes,
        store_bytes: stats.store_bytes,
        last_change: stats.last_change,
        covered: stats.covered,
        groups: stats.groups,
        grouped: stats.grouped,
        sync_seconds: stats.sync_seconds,
        merges: stats.merging.merges,
        merge_seconds: stats.merging.seconds,
        reopened: stats.reopened,
        problems,
    };
    Ok(reply(StatusCode::OK, &answer))
}

/// A copy that was made
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupAnswer {
    /// Its name in the directory of backups
    name: String,
    rows: u64,
    pages: u64,
    seconds: f64,
}

/// Writes a consistent copy of a collection into the directory of backups
#[utoipa::path(post, path = "/v1/backup", tag = "operations", responses((status = 201, body = BackupAnswer)))]
pub(crate) async fn backup(
    State(service): State<Arc<Service>>,
    Chosen(collection): Chosen,
    rights: Rights,
) -> Result<Response, Problem> {
    rights.to_write()?;
    let Some(directory) = service.settings.backups.clone() else {
        return Err(Kind::Conflict.with("no directory of backups is configured; start the service with --backups DIR"));
    };
    let start = Instant::now();
    let name = format!("{}-{}", collection.name, stamp(SystemTime::now()));
    let place = directory.join(&name);
    // Goes on in its thread if the client has had enough of waiting.
    let copied = tokio::task::spawn_blocking(move || collection.online.backup(&place)).await;
    let copied = copied.map_err(|_| internal())?;
    let copied = copied.map_err(|error| {
        if error.is_usage() {
            Kind::Conflict.with("a backup of this collection is being made, or was made this second")
        } else {
            error.into()
        }
    })?;
    let answer = BackupAnswer { name, rows: copied.rows, pages: copied.pages, seconds: start.elapsed().as_secs_f64() };
    Ok(reply(StatusCode::CREATED, &answer))
}

/// A time as in `20261116T081500Z`.
fn stamp(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).format("%Y%m%dT%H%M%SZ").to_string()
}

/// Whether the process lives
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn health() -> &'static str {
    "ok\n"
}

/// Whether the index can be asked
#[utoipa::path(get, path = "/readyz", tag = "operations", responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn ready(State(service): State<Arc<Service>>) -> Result<&'static str, Problem> {
    service.collections()?;
    if service.is_stopping.load(Ordering::Relaxed) {
        return Err(Kind::NotReady.with("the service is being stopped"));
    }
    Ok("ready\n")
}

/// Numbers for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "operations", responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(State(service): State<Arc<Service>>) -> Response {
    if let Ok(collections) = service.collections() {
        collections.all().values().for_each(|collection| publish(collection));
    }
    let text = service.metrics.as_ref().map(metrics_exporter_prometheus::PrometheusHandle::render).unwrap_or_default();
    let mut response = text.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn times_are_written_as_dates() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_794_816_930, "20261116T081530Z"),
            (4_107_542_399, "21000228T235959Z"),
        ] {
            assert_eq!(stamp(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
