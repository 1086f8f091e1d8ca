//! Connections: taken, cut off when they are slow, finished when the service is stopped.

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

/// How long nothing is taken after the system refused a connection, for lack of file handles as a rule.
const PAUSE: Duration = Duration::from_millis(50);
/// Headers of a request at the most.
const MOST_HEADERS: usize = 100;

/// Serves connections until `stop` is done; then finishes what was accepted.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    service: &Arc<Service>,
    stop: impl Future<Output = ()>,
) {
    let limits = service.settings.limits;
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    tokio::pin!(stop);
    loop {
        // With all places taken, connections wait in the system's queue.
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), limits);
                    let connection = graceful.watch(connection);
                    tokio::spawn(async move {
                        // Clients that break off or are cut off are no news.
                        let _ = connection.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!("cannot take a connection: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    service.is_stopping.store(true, Ordering::Relaxed);
    drop(listener);
    if tokio::time::timeout(limits.stop_time, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests that were not done in {} seconds are cut off", limits.stop_time.as_secs());
    }
}

/// Cuts off whoever is slow: to send the head of a request, or anything at all, or to take an answer.
fn connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send {
    // Answers are small; waiting to send more at once only delays them.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    // Whoever has to read has a time of its own: hyper for heads, also of the next request, handlers for bodies.
    stream.set_write_timeout(Some(limits.idle_time));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_time.min(limits.request_time))
        .max_buf_size(limits.head_bytes)
        .max_headers(MOST_HEADERS)
        .half_close(false)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router))
}
