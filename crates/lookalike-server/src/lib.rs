//! The online service: have I seen this page?
//!
//! HTTP around [`lookalike::online`]: requests become pages and queries for the library, its results become JSON. How
//! near-duplicates are found is not decided here. Start with `routes`, the list of all calls.

// The macros of utoipa name types by their full paths.
#![allow(unused_qualifications)]

mod access;
mod access_log;
mod body;
mod collections;
mod listen;
mod middleware;
mod openapi;
mod operations;
mod pages;
mod problem;
mod refine;
mod request;
mod search;
mod settings;
mod telemetry;
#[cfg(feature = "workbench")]
mod workbench;

pub use access::{Rights, Tokens};
pub use collections::{CollectionSettings, ContentScope};
pub use settings::{Limits, PORT, Settings};
#[cfg(feature = "workbench")]
pub use workbench::{VIEW_PORT, ViewSettings, view};

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use lookalike::{Error, Result};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use access_log::AccessLog;
use collections::Collections;
use middleware::RequestIds;
use problem::{Problem, ProblemKind};
use telemetry::{keep_summarising, metrics_handle};

/// What all requests share.
pub(crate) struct Service {
    settings: Settings,
    collections: OnceLock<Collections>,
    /// One permit for each request under way.
    permits: Arc<Semaphore>,
    /// One permit for each core, for work that keeps a thread busy for long.
    heavy: Semaphore,
    request_ids: RequestIds,
    access_log: Option<Arc<AccessLog>>,
    metrics: Option<PrometheusHandle>,
    is_stopping: AtomicBool,
}

impl Service {
    fn new(settings: Settings) -> Service {
        Service {
            permits: Arc::new(Semaphore::new(settings.limits.requests)),
            heavy: Semaphore::new(std::thread::available_parallelism().map_or(2, usize::from)),
            access_log: settings.access_log.then(Arc::default),
            settings,
            collections: OnceLock::new(),
            request_ids: RequestIds::new(),
            metrics: metrics_handle(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Does work that keeps a thread busy for long; as much at once as there are cores.
    async fn run_heavy<T>(&self, work: impl FnOnce() -> T) -> T {
        let _permit = self.heavy.acquire().await.expect("this semaphore is never closed");
        tokio::task::block_in_place(work)
    }

    fn collections(&self) -> Result<&Collections, Problem> {
        self.collections
            .get()
            .ok_or_else(|| ProblemKind::NotReady.with("the index is still being opened; /readyz says when it is ready"))
    }
}

/// Serialises a response.
fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("responses have string keys, and nothing in them fails to serialise")
}

/// A response with a JSON body.
fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(to_json(value)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

type Route = MethodRouter<Arc<Service>>;

/// The calls about one collection, by the end of their path.
fn collection_routes() -> [(&'static str, Route); 8] {
    [
        ("/pages", routing::post(pages::post).get(pages::find).delete(pages::delete_found)),
        ("/pages/batch", routing::post(pages::batch::batch).get(pages::get).delete(pages::delete)),
        ("/pages/{id}", routing::get(pages::get).delete(pages::delete)),
        ("/fingerprints/query", routing::post(search::fingerprints)),
        ("/refine", routing::post(refine::refine)),
        ("/compare", routing::post(search::compare_pages)),
        ("/backup", routing::post(operations::backup)),
        ("/stats", routing::get(operations::stats)),
    ]
}

/// All calls.
fn routes(service: &Arc<Service>) -> Router {
    let mut router = Router::new()
        .route("/v1/collections", routing::get(operations::list))
        .route("/v1/collections/{name}", routing::get(operations::show).put(operations::create))
        .route("/healthz", routing::get(operations::health))
        .route("/readyz", routing::get(operations::ready))
        .route("/metrics", routing::get(operations::metrics))
        .route("/openapi.json", routing::get(openapi::show));
    for (path, route) in collection_routes() {
        router =
            router.route(&format!("/v1{path}"), route.clone()).route(&format!("/v1/collections/{{name}}{path}"), route);
    }
    let router = router
        .fallback(async || ProblemKind::NotFound.with("there is no such path; GET /openapi.json lists them all"))
        .method_not_allowed_fallback(async || {
            ProblemKind::MethodNotAllowed.with("the header Allow lists the methods of this path")
        });
    middleware::wrap(router, service).with_state(Arc::clone(service))
}

/// Serves until SIGTERM or SIGINT arrives; `on_ready` is called with the address when the index is open.
///
/// # Errors
/// When the settings are invalid, the address cannot be used, or an index cannot be opened or closed.
pub fn serve(settings: Settings, on_ready: impl FnOnce(SocketAddr) + Send) -> Result<()> {
    settings.check()?;
    if let Some(backups) = &settings.backups {
        std::fs::create_dir_all(backups).map_err(Error::io(backups, "create"))?;
    }
    allow_many_files();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if settings.threads > 0 {
        runtime.worker_threads(settings.threads);
    }
    let runtime = runtime.enable_all().build().map_err(Error::io(&settings.directory, "serve"))?;
    let done = runtime.block_on(run(settings, on_ready));
    // Requests that were cut off do not keep the process alive.
    runtime.shutdown_background();
    done
}

async fn run(settings: Settings, on_ready: impl FnOnce(SocketAddr) + Send) -> Result<()> {
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|cause| Error::invalid("listen", settings.listen, format!("this address cannot be used: {cause}")))?;
    let address = listener.local_addr().map_err(Error::io(&settings.directory, "serve"))?;
    let mut signals = signals().map_err(Error::io(&settings.directory, "serve"))?;
    let service = Arc::new(Service::new(settings));
    let log = service.access_log.clone().map(|log| tokio::spawn(AccessLog::keep_writing(log)));
    let upkeep = service.metrics.clone().map(|metrics| tokio::spawn(keep_summarising(metrics)));
    let opening = Arc::clone(&service);
    let opening = tokio::task::spawn_blocking(move || {
        let collections = Collections::open(&opening.settings)?;
        for (name, collection) in collections.all().iter() {
            let stats = collection.online.stats();
            tracing::info!("collection {name}: {} rows, config {}", stats.rows, collection.hash());
            stats
                .damaged
                .iter()
                .for_each(|damaged| tracing::warn!("collection {name}: damaged and left out: {damaged}"));
        }
        opening.collections.set(collections).ok().expect("collections are opened once");
        Ok(())
    });
    let stop = async move {
        opening.await.unwrap_or_else(|panic| Err(Error::internal(format!("opening the index: {panic}"))))?;
        on_ready(address);
        signals.recv().await;
        tracing::info!("stopping: accepted requests are finished first; a second signal stops at once");
        tokio::spawn(async move {
            signals.recv().await;
            tracing::warn!("stopped at once; everything that was acknowledged is on disk");
            std::process::exit(1);
        });
        Ok(())
    };
    listen::serve(listener, routes(&service), &service, stop).await?;
    let closing = Arc::clone(&service);
    let closed =
        tokio::task::spawn_blocking(move || closing.collections.get().map_or(Ok(()), Collections::close)).await;
    log.iter().chain(&upkeep).for_each(tokio::task::JoinHandle::abort);
    service.access_log.iter().for_each(|log| log.flush());
    closed.unwrap_or_else(|panic| Err(Error::internal(format!("closing the index: {panic}"))))
}

/// The signals that stop the service: SIGTERM and SIGINT.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

fn signals() -> std::io::Result<Signals> {
    use tokio::signal::unix::{SignalKind, signal};
    Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
}

impl Signals {
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Every connection is an open file, and the usual soft limit is 1,024.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    if let Err(error) = raised {
        tracing::warn!("the limit of open files cannot be raised: {error}");
    }
}
