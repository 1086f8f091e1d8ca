//! The online service: have I seen this page?
//!
//! HTTP around [`lookalike::online`]: requests become pages and questions for the library, its answers become JSON. No
//! logic of finding near-duplicates lives here. Start with `routes`: the list of all calls.

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
mod request;
mod search;
mod settings;
mod telemetry;

pub use access::{Rights, Tokens};
pub use collections::{CollectionInput, ContentInput};
pub use problem::Problem;
pub use settings::{Limits, PORT, Settings};

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use lookalike::error::{Error, Result};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use access_log::AccessLog;
use collections::Collections;
use middleware::RequestIds;
use problem::{Kind, Problem as Refusal};
use telemetry::{keep_up, metrics_handle};

/// What all requests share.
pub(crate) struct Service {
    settings: Settings,
    collections: OnceLock<Collections>,
    permits: Arc<Semaphore>,
    /// For work that keeps a thread busy for long.
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

    /// Waits until one of as many as there are cores is done with heavy work.
    async fn heavy(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        // It is never closed.
        self.heavy.acquire().await.ok()
    }

    fn collections(&self) -> Result<&Collections, Refusal> {
        self.collections.get().ok_or_else(|| Kind::NotReady.with("the index is being opened; ask /readyz"))
    }
}

/// An answer as JSON.
fn reply(status: StatusCode, answer: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(serde_json::to_vec(answer).unwrap_or_default()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

type Route = MethodRouter<Arc<Service>>;

/// The calls that are about a collection, by the end of their path.
fn collection_routes() -> [(&'static str, Route); 8] {
    [
        ("/pages", routing::post(pages::post)),
        ("/pages/batch", routing::post(pages::batch).get(pages::get).delete(pages::delete)),
        ("/pages/{id}", routing::get(pages::get).delete(pages::delete)),
        ("/fingerprints/query", routing::post(search::fingerprints)),
        ("/refine", routing::post(search::refine)),
        ("/compare", routing::post(search::compare_pages)),
        ("/backup", routing::post(operations::backup)),
        ("/stats", routing::get(operations::stats)),
    ]
}

/// All calls.
fn routes(service: &Arc<Service>) -> Router {
    let mut router = Router::new()
        .route("/v1/collections", routing::get(operations::list))
        .route("/v1/collections/{name}", routing::get(operations::show).put(operations::make))
        .route("/healthz", routing::get(operations::health))
        .route("/readyz", routing::get(operations::ready))
        .route("/metrics", routing::get(operations::metrics))
        .route("/openapi.json", routing::get(openapi::show));
    for (path, route) in collection_routes() {
        router =
            router.route(&format!("/v1{path}"), route.clone()).route(&format!("/v1/collections/{{name}}{path}"), route);
    }
    let router = router
        .fallback(async || Kind::NotFound.with("there is no such path; GET /openapi.json lists all"))
        .method_not_allowed_fallback(async || {
            Kind::MethodNotAllowed.with("the header Allow names the methods of this path")
        });
    middleware::around(router, service).with_state(Arc::clone(service))
}

/// Serves until a signal to stop comes (SIGTERM or SIGINT); `tell` hears the address when the index is open.
///
/// # Errors
/// When the settings make no sense, the address is taken, or an index cannot be opened or closed.
pub fn serve(settings: Settings, tell: impl FnOnce(SocketAddr) + Send) -> Result<()> {
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
    let done = runtime.block_on(run(settings, tell));
    // Whoever was cut off does not keep the process.
    runtime.shutdown_background();
    done
}

async fn run(settings: Settings, tell: impl FnOnce(SocketAddr) + Send) -> Result<()> {
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|cause| Error::invalid("listen", settings.listen, format!("this address cannot be used: {cause}")))?;
    let address = listener.local_addr().map_err(Error::io(&settings.directory, "serve"))?;
    let mut signals = signals().map_err(Error::io(&settings.directory, "serve"))?;
    let service = Arc::new(Service::new(settings));
    let log = service.access_log.clone().map(|log| tokio::spawn(AccessLog::keep_writing(log)));
    let upkeep = service.metrics.clone().map(|metrics| tokio::spawn(keep_up(metrics)));
    let opening = Arc::clone(&service);
    let opening = tokio::task::spawn_blocking(move || {
        let collections = Collections::open(&opening.settings)?;
        for (name, collection) in collections.all().iter() {
            let stats = collection.online.stats();
            tracing::info!("collection {name}: {} rows, config {}", stats.rows, collection.hash());
            stats.damaged.iter().for_each(|damaged| tracing::warn!("left out: {damaged}"));
        }
        // Nobody else sets it.
        let _ = opening.collections.set(collections);
        Ok(())
    });
    let failed = Arc::new(OnceLock::new());
    let told = Arc::clone(&failed);
    let stop = async move {
        let opened = opening.await.unwrap_or_else(|panic| Err(Error::internal(format!("opening the index: {panic}"))));
        if let Err(error) = opened {
            let _ = told.set(error);
            return;
        }
        tell(address);
        signals.recv().await;
        tracing::info!("stopping: what was accepted is finished; a second signal ends at once");
        tokio::spawn(async move {
            signals.recv().await;
            tracing::warn!("ended at once; what was acknowledged is on disk");
            std::process::exit(1);
        });
    };
    listen::serve(listener, routes(&service), &service, stop).await;
    if let Some(error) = Arc::into_inner(failed).and_then(OnceLock::into_inner) {
        return Err(error);
    }
    let closing = Arc::clone(&service);
    let closed =
        tokio::task::spawn_blocking(move || closing.collections.get().map_or(Ok(()), Collections::close)).await;
    log.iter().chain(&upkeep).for_each(tokio::task::JoinHandle::abort);
    service.access_log.iter().for_each(|log| log.flush());
    closed.unwrap_or_else(|panic| Err(Error::internal(format!("closing the index: {panic}"))))
}

/// SIGTERM and SIGINT.
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

/// A connection is a file, and the usual limit is 1,024.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    if let Err(error) = raised {
        tracing::warn!("the limit of open files stays as it is: {error}");
    }
}
