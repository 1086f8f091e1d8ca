//! Running the service: collections, statistics, backups, probes, metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::body::{self, JsonBody};
use crate::collections::{Collection, CollectionSettings, Listed, RebuildResponse};
use crate::health;
use crate::problem::{Problem, ProblemKind, internal};
use crate::replication::ReplicationResponse;
use crate::request::{AdminAccess, CollectionName, Query, TargetCollection};
use crate::telemetry::write_metrics;
use crate::tokens::Access;
use crate::{Service, json};

/// A collection
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CollectionResponse {
    name: String,
    /// How its pages are read and compared; null if it holds fingerprints that were made elsewhere
    config: Option<CollectionSettings>,
    /// A hash of everything that decides a fingerprint; a request with another hash in the header Lookalike-Config is refused
    config_hash: String,
    /// Rows; deleted ones count until they are merged away
    rows: u64,
    /// How far it is with other settings; null if it has all that was asked for
    rebuild: Option<RebuildResponse>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CollectionsResponse {
    collections: Vec<CollectionResponse>,
    /// What `after` must be for those that follow; null if there are no more
    next: Option<String>,
}

/// Collections of one list.
const MOST_LISTED: usize = 1000;

/// Which collections are listed
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct CollectionsQuery {
    /// Only those behind this name
    after: Option<String>,
    /// At most so many; the default is 1000
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

fn collection_response(collection: &Collection) -> CollectionResponse {
    let online = collection.online();
    CollectionResponse {
        name: collection.name.clone(),
        config: CollectionSettings::of(online.config()),
        config_hash: collection.hash(),
        rows: online.stats().rows,
        rebuild: collection.rebuild(),
    }
}

/// All collections, by name
#[utoipa::path(
    get,
    path = "/v1/collections",
    operation_id = "listCollections",
    tag = "operations",
    params(CollectionsQuery),
    responses((status = 200, body = CollectionsResponse, description = "The collections, by name"))
)]
pub(crate) async fn list(
    State(service): State<Arc<Service>>,
    access: Access,
    Query(query): Query<CollectionsQuery>,
) -> Result<Response, Problem> {
    let limit = check_limit(query.limit, MOST_LISTED, MOST_LISTED)?;
    let listed = service.collections()?.list().into_iter().map(|listed| match listed {
        Listed::Open(collection) => collection_response(&collection),
        Listed::Closed(name, closed) => CollectionResponse {
            name,
            config: CollectionSettings::of(&closed.config),
            config_hash: format!("{:016x}", closed.config.hash()),
            rows: closed.rows,
            rebuild: None,
        },
    });
    let is_behind = |name: &str| query.after.as_deref().is_none_or(|after| name > after);
    let mut collections: Vec<CollectionResponse> = listed
        .filter(|response| access.includes(&response.name) && is_behind(&response.name))
        .take(limit + 1)
        .collect();
    let has_more = collections.len() > limit;
    collections.truncate(limit);
    let next = collections.last().filter(|_| has_more).map(|last| last.name.clone());
    Ok(json(StatusCode::OK, &CollectionsResponse { collections, next }))
}

/// How many a list may have.
pub(crate) fn check_limit(limit: Option<usize>, default: usize, most: usize) -> Result<usize, Problem> {
    match limit.unwrap_or(default) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        limit => Err(ProblemKind::BadField.with(format!("limit must be 1 to {most}, not {limit}"))),
    }
}

/// A collection
#[utoipa::path(
    get,
    path = "/v1/collections/{name}",
    operation_id = "getCollection",
    tag = "operations",
    responses((status = 200, body = CollectionResponse, description = "The collection"))
)]
pub(crate) async fn show(TargetCollection(collection): TargetCollection) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &collection_response(&collection)))
}

/// Creates a collection; does nothing if it exists with these settings
#[utoipa::path(
    put,
    path = "/v1/collections/{name}",
    operation_id = "createCollection",
    tag = "operations",
    request_body(content = CollectionSettings, content_type = "application/json"),
    responses((status = 200, body = CollectionResponse, description = "It existed"), (status = 201, body = CollectionResponse, description = "It was created"))
)]
pub(crate) async fn create(
    State(service): State<Arc<Service>>,
    _: AdminAccess,
    CollectionName(name): CollectionName,
    JsonBody(bytes): JsonBody,
) -> Result<Response, Problem> {
    let wanted: CollectionSettings = body::parse(&bytes)?;
    let collections = service.collections()?;
    let (collection, existed) = collections.create(&name, &wanted).await?;
    let status = if existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, &collection_response(&collection)))
}

/// Changes settings of a collection, which is built anew in the background
///
/// Settings that are left out stay; null takes the default. Pages are found and compared as before until all of them are read
/// again; `rebuild` says how far that is.
#[utoipa::path(
    patch,
    path = "/v1/collections/{name}",
    operation_id = "changeCollection",
    tag = "operations",
    request_body(content = CollectionSettings, content_type = "application/json"),
    responses((status = 200, body = CollectionResponse, description = "It has these settings already"), (status = 202, body = CollectionResponse, description = "It is being built anew"))
)]
pub(crate) async fn change(
    State(service): State<Arc<Service>>,
    _: AdminAccess,
    CollectionName(name): CollectionName,
    JsonBody(bytes): JsonBody,
) -> Result<Response, Problem> {
    let patch: serde_json::Value = body::parse(&bytes)?;
    let collections = service.collections()?;
    let collection = collections.get(&name).await?;
    let is_begun = collections.change(&collection, patch).await?;
    let status = if is_begun { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(json(status, &collection_response(&collection)))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConfirmQuery {
    /// Must be true
    confirm: bool,
}

/// Removes a collection with all its pages
#[utoipa::path(
    delete,
    path = "/v1/collections/{name}",
    operation_id = "deleteCollection",
    tag = "operations",
    params(ConfirmQuery),
    responses((status = 204, description = "It is gone, and stays gone after a crash"))
)]
pub(crate) async fn remove(
    State(service): State<Arc<Service>>,
    _: AdminAccess,
    CollectionName(name): CollectionName,
    Query(query): Query<ConfirmQuery>,
) -> Result<Response, Problem> {
    if !query.confirm {
        return Err(ProblemKind::BadField.with("this removes all pages of the collection: add confirm=true"));
    }
    service.collections()?.remove(&name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Statistics of a collection
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsResponse {
    collection: String,
    config_hash: String,
    /// Rows; deleted ones count until they are merged away
    rows: u64,
    /// Rows in memory; on disk they are in the store
    rows_in_memory: u64,
    segments: usize,
    segments_in_memory: usize,
    segment_bytes: u64,
    store_bytes: u64,
    /// The number of the last change
    last_change: u64,
    /// The number of the last change that is in segments
    covered: u64,
    /// Groups of changes synced since the start
    groups: u64,
    /// Pages in those groups
    grouped: u64,
    sync_seconds: f64,
    merges: u64,
    merge_seconds: f64,
    /// How often the store was reopened after a failure
    reopened: u64,
    /// What it is to collections of other services; null if it neither ships nor follows
    replication: Option<ReplicationResponse>,
    /// What is wrong; empty if all is well
    problems: Vec<String>,
}

/// Statistics of a collection
#[utoipa::path(
    get,
    path = "/v1/stats",
    operation_id = "getStats",
    tag = "operations",
    responses((status = 200, body = StatsResponse, description = "The statistics"))
)]
pub(crate) async fn stats(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
) -> Result<Response, Problem> {
    let stats = collection.online().stats();
    let mut problems = stats.damaged;
    problems.extend(collection.writer_trouble(service.limits().stall_time).map(|trouble| trouble.to_string()));
    problems.extend(stats.failed);
    problems.extend(stats.merging.failed.map(|failed| format!("merging: {failed}")));
    let response = StatsResponse {
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
        replication: stats.replication.map(Into::into),
        problems,
    };
    Ok(json(StatusCode::OK, &response))
}

/// A backup that was made
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupResponse {
    /// Its name in the backup directory
    name: String,
    rows: u64,
    pages: u64,
    seconds: f64,
}

/// Writes a consistent copy of a collection into the backup directory
#[utoipa::path(
    post,
    path = "/v1/backup",
    operation_id = "makeBackup",
    tag = "operations",
    responses((status = 201, body = BackupResponse, description = "The backup"))
)]
pub(crate) async fn backup(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    _: AdminAccess,
) -> Result<Response, Problem> {
    collection.check_writer(service.limits().stall_time)?;
    let Some(directory) = service.settings.backups.clone() else {
        return Err(ProblemKind::Conflict.with("the service has no backup directory; start it with one"));
    };
    let start = Instant::now();
    let name = format!("{}-{}", collection.name, stamp(SystemTime::now()));
    let place = directory.join(&name);
    // It goes on in its thread if the client disconnects.
    let copied = tokio::task::spawn_blocking(move || collection.online().backup(&place)).await;
    let copied = copied.map_err(|_| internal())?;
    let copied = copied.map_err(|error| {
        if error.is_usage() {
            ProblemKind::Conflict.with("a backup of this collection is under way, or was made within the same second")
        } else {
            error.into()
        }
    })?;
    let response =
        BackupResponse { name, rows: copied.rows, pages: copied.pages, seconds: start.elapsed().as_secs_f64() };
    Ok(json(StatusCode::CREATED, &response))
}

/// A time as in `20261116T081500Z`.
fn stamp(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).format("%Y%m%dT%H%M%SZ").to_string()
}

/// Whether the process is alive
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "isAlive",
    tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain", description = "It is"))
)]
pub(crate) async fn health() -> &'static str {
    "ok\n"
}

/// Whether the service is ready for requests
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "isReady",
    tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain", description = "It is"))
)]
pub(crate) async fn ready(State(service): State<Arc<Service>>) -> Result<&'static str, Problem> {
    service.collections()?;
    if service.is_stopping.load(Ordering::Relaxed) {
        return Err(ProblemKind::NotReady.with("the service is shutting down"));
    }
    if let Some(trouble) = health::trouble(&service) {
        return Err(ProblemKind::NotReady.with(trouble));
    }
    Ok("ready\n")
}

/// Metrics for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain", description = "In the text format of Prometheus"))
)]
pub(crate) async fn metrics(State(service): State<Arc<Service>>) -> Response {
    let mut text = service.metrics.as_ref().map_or_else(String::new, PrometheusHandle::render);
    write_metrics(&mut text, &service);
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
        assert_eq!(stamp(UNIX_EPOCH - Duration::from_secs(1)), "19691231T235959Z", "a clock may be wrong");
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
