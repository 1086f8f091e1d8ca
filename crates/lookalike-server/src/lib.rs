//! The online service: have I seen this page?
//!
//! HTTP around [`lookalike::online`]: requests become pages and queries for the library, its results become JSON. How
//! near-duplicates are found is not decided here. Start with `routes`, the list of all calls.

// The macros of utoipa name types by their full paths.
#![allow(unused_qualifications)]

mod access_log;
mod admission;
mod body;
mod budget;
mod collections;
mod decode;
mod health;
mod limits;
mod listen;
mod log;
mod middleware;
mod openapi;
mod operations;
mod origin;
mod pages;
mod problem;
mod process;
mod refine;
mod reload;
mod replication;
mod request;
mod search;
mod settings;
mod stop;
mod telemetry;
#[cfg(feature = "tls")]
mod tls;
mod tokens;
#[cfg(feature = "otel")]
mod traces;
#[cfg(feature = "workbench")]
mod workbench;

pub use collections::{CollectionMethod, CollectionSettings, ContentScope};
pub use limits::Limits;
pub use log::{LogFormat, LogWriter, log_time};
pub use settings::{PORT, Settings, TlsFiles};
pub use tokens::{Rights, Tokens, hash_token};
#[cfg(feature = "workbench")]
pub use workbench::{VIEW_PORT, ViewSettings, view};

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use lookalike::{Error, Result};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Semaphore;

use budget::{MemoryBudget, Slots};
use collections::Collections;
use middleware::RequestIds;
use problem::{Problem, ProblemKind};
use reload::{LiveSettings, ReadSettings};
use stop::signals;
use telemetry::{keep_summarising, metrics_handle};

/// One thread in so many works on batches alone, and on nothing else: the system shares the cores between these threads and
/// those that answer single requests, which wait for no page of a batch.
const BATCH_SHARE: usize = 2;

/// What all requests share.
pub(crate) struct Service {
    /// As the service was started; what can change while it runs is in `live`.
    settings: Settings,
    live: ArcSwap<LiveSettings>,
    collections: OnceLock<Arc<Collections>>,
    connections: Arc<Slots>,
    /// Requests that are worked on.
    requests: Arc<Slots>,
    batches: Arc<Slots>,
    /// Where batches are worked on.
    batch_runtime: Handle,
    memory: Arc<MemoryBudget>,
    /// One permit for each core, for work that keeps a thread busy for long.
    heavy: Semaphore,
    request_ids: RequestIds,
    metrics: Option<PrometheusHandle>,
    #[cfg(feature = "tls")]
    tls: Option<tls::Tls>,
    is_stopping: AtomicBool,
}

impl Service {
    fn new(settings: Settings, batch_runtime: Handle) -> Result<Service> {
        Ok(Service {
            live: ArcSwap::from_pointee(LiveSettings::new(&settings)),
            collections: OnceLock::new(),
            connections: Arc::default(),
            requests: Arc::default(),
            batches: Arc::default(),
            batch_runtime,
            memory: Arc::new(MemoryBudget::new(settings.limits.body_memory)),
            heavy: Semaphore::new(cores()),
            request_ids: RequestIds::new(),
            metrics: metrics_handle(),
            #[cfg(feature = "tls")]
            tls: settings.tls.as_ref().map(tls::Tls::open).transpose()?,
            is_stopping: AtomicBool::new(false),
            settings,
        })
    }

    /// The limits at this moment.
    fn limits(&self) -> Limits {
        self.live.load().limits
    }

    /// Does work that keeps a thread busy for long; as much at once as there are cores.
    async fn run_heavy<T>(&self, work: impl FnOnce() -> T) -> T {
        let _permit = self.heavy.acquire().await.expect("this semaphore is never closed");
        tokio::task::block_in_place(work)
    }

    /// Whether half of the cores or more work on requests for which somebody waits.
    fn is_busy_with_single_requests(&self) -> bool {
        self.requests.used() * 2 >= cores()
    }

    fn collections(&self) -> Result<&Arc<Collections>, Problem> {
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
        ("/pages", routing::post(pages::post).get(pages::many::find).delete(pages::many::delete_found)),
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
        .route(
            "/v1/collections/{name}",
            routing::get(operations::show).put(operations::create).patch(operations::change).delete(operations::remove),
        )
        .route("/v1/promote", routing::post(replication::promote))
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

/// The calls of the second address.
fn admin_routes(service: &Arc<Service>) -> Router {
    let router = Router::new()
        .route("/healthz", routing::get(operations::health))
        .route("/readyz", routing::get(operations::ready))
        .route("/metrics", routing::get(operations::metrics))
        .fallback(async || ProblemKind::NotFound.with("this address has /healthz, /readyz and /metrics"));
    middleware::wrap(router, service).with_state(Arc::clone(service))
}

/// Serves until SIGTERM or SIGINT arrives; `on_ready` is called with the address when the index is open, `reload` reads the
/// settings again when SIGHUP arrives.
///
/// # Errors
/// When the settings are invalid, the address cannot be used, or an index cannot be opened or closed.
pub fn serve(
    settings: Settings,
    reload: impl Fn() -> Result<Settings> + Send + Sync + 'static,
    on_ready: impl FnOnce(SocketAddr) + Send,
) -> Result<()> {
    settings.check()?;
    let now = SystemTime::now();
    if now < SystemTime::UNIX_EPOCH {
        let reason = format!(
            "cannot be served: the clock says {}, and the store takes no time before 1970; set the clock",
            log_time(now)
        );
        return Err(Error::bad_input(&settings.directory, reason));
    }
    if let Some(backups) = &settings.backups {
        std::fs::create_dir_all(backups).map_err(Error::io(backups, "create"))?;
    }
    allow_many_files();
    let threads = if settings.threads > 0 { settings.threads } else { cores() };
    let runtime_of = |name: &str, threads| {
        let runtime = Builder::new_multi_thread().worker_threads(threads).thread_name(name).enable_all().build();
        runtime.map_err(Error::io(&settings.directory, "serve"))
    };
    let runtime = runtime_of("serve", threads)?;
    let batch_runtime = runtime_of("batch", threads.div_ceil(BATCH_SHARE))?;
    #[cfg(feature = "otel")]
    traces::start();
    let done = runtime.block_on(run(settings, batch_runtime.handle().clone(), Arc::new(reload), on_ready));
    // Requests that were cut off do not keep the process alive.
    batch_runtime.shutdown_background();
    runtime.shutdown_background();
    #[cfg(feature = "otel")]
    traces::stop();
    log::log().flush(log::LAST_TIME);
    done
}

async fn bind(address: SocketAddr, setting: &'static str) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|cause| Error::invalid(setting, address, format!("this address cannot be used: {cause}")))
}

async fn run(
    settings: Settings,
    batch_runtime: Handle,
    reload: ReadSettings,
    on_ready: impl FnOnce(SocketAddr) + Send,
) -> Result<()> {
    let listener = bind(settings.listen, "listen").await?;
    let address = listener.local_addr().map_err(Error::io(&settings.directory, "serve"))?;
    let mut signals = signals().map_err(Error::io(&settings.directory, "serve"))?;
    let hang_ups = stop::hang_ups().map_err(Error::io(&settings.directory, "serve"))?;
    let admin = match settings.admin_listen {
        Some(address) => Some(bind(address, "admin_listen").await?),
        None => None,
    };
    let service = Arc::new(Service::new(settings, batch_runtime)?);
    if let Some(listener) = admin {
        if let Ok(address) = listener.local_addr() {
            tracing::info!("probes and metrics at http://{address}");
        }
        tokio::spawn(listen::serve_admin(listener, admin_routes(&service), Arc::clone(&service)));
    }
    service.metrics.clone().map(|metrics| tokio::spawn(keep_summarising(metrics)));
    tokio::spawn(health::keep_watching(Arc::clone(&service)));
    tokio::spawn(stop::keep_reloading(hang_ups, Arc::clone(&service), reload));
    let opening = Arc::clone(&service);
    let opening = tokio::task::spawn_blocking(move || {
        let collections = Collections::open_all(&opening.settings)?;
        for collection in collections.open() {
            let (name, stats) = (&collection.name, collection.online().stats());
            tracing::info!("collection {name}: {} rows, config {}", stats.rows, collection.hash());
            stats
                .damaged
                .iter()
                .for_each(|damaged| tracing::warn!("collection {name}: damaged and left out: {damaged}"));
        }
        opening.collections.set(collections).ok().expect("collections are opened once");
        Ok(())
    });
    let stopping = Arc::clone(&service);
    let stop = async move {
        let opened = tokio::select! {
            opened = opening => opened,
            () = signals.recv() => stop::exit("stopped before the index was open"),
        };
        opened.unwrap_or_else(|panic| Err(Error::internal(format!("opening the index: {panic}"))))?;
        on_ready(address);
        signals.recv().await;
        // Probes say so first; whoever sends requests by them has time to notice.
        stopping.is_stopping.store(true, Ordering::Relaxed);
        let limits = stopping.limits();
        stop::end_in_any_case(limits.drain_time + limits.stop_time);
        tracing::info!("stopping: accepted requests are finished first; a second signal stops at once");
        tokio::spawn(async move {
            signals.recv().await;
            stop::exit("stopped at once; everything that was acknowledged is on disk");
        });
        tokio::time::sleep(limits.drain_time).await;
        Ok(())
    };
    listen::serve(listener, routes(&service), &service, stop).await?;
    let closing = Arc::clone(&service);
    let closed = tokio::task::spawn_blocking(move || {
        closing.collections.get().map_or(Ok(()), |collections| collections.close())
    });
    closed.await.unwrap_or_else(|panic| Err(Error::internal(format!("closing the index: {panic}"))))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
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
