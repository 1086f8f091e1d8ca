//! Connections: accepted, cut off when they are slow, finished when the service stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

use crate::Service;
use crate::settings::Limits;

/// How long to wait after the system refused a connection, usually for lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Headers per request.
const MOST_HEADERS: usize = 100;

/// Serves connections until `stop` is done, then finishes accepted requests; returns what `stop` does.
pub(crate) async fn serve<T>(
    listener: TcpListener,
    router: Router,
    service: &Arc<Service>,
    stop: impl Future<Output = T>,
) -> T {
    let limits = service.settings.limits;
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(limits.connections));
    tokio::pin!(stop);
    let stopped = loop {
        // With all slots taken, connections wait in the system's queue.
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (listener.accept().await, slot)
        };
        tokio::select! {
            biased;
            stopped = &mut stop => break stopped,
            (accepted, slot) = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), limits);
                    let connection = graceful.watch(connection);
                    tokio::spawn(async move {
                        // Clients that disconnect or are cut off are not worth a line in the log.
                        let _ = connection.await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    };
    service.is_stopping.store(true, Ordering::Relaxed);
    drop(listener);
    if tokio::time::timeout(limits.stop_time, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests that were not finished in {} seconds are cut off", limits.stop_time.as_secs());
    }
    stopped
}

/// Cuts off clients that are slow to send the head of a request, or to take a response.
fn connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send {
    // Responses are small; waiting to send more at once only delays them.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    // Reading has limits of its own: hyper's for heads, also that of the next request, the middleware's for bodies.
    stream.set_write_timeout(Some(limits.idle_time));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_time.min(limits.request_time))
        .max_buf_size(limits.head_bytes)
        .max_headers(MOST_HEADERS)
        .half_close(false)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router))
}
