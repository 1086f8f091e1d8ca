//! Connections: accepted, cut off when they are slow, finished when the service stops.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};
use tokio_io_timeout::TimeoutStream;

use crate::Service;
use crate::body::HoldingBody;
use crate::budget::{Slot, Slots};
use crate::limits::Limits;

/// How long to wait after the system refused a connection, usually for lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait for a connection to end when there are as many as there may be.
const FULL_PAUSE: Duration = Duration::from_millis(5);
/// Headers per request.
const MOST_HEADERS: usize = 100;
/// Connections beyond the limit, on which probes are answered and everything else is refused.
const SPARE: usize = 64;
/// Time for the head of a request on such a connection.
const SPARE_TIME: Duration = Duration::from_secs(2);

/// Which requests a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    All,
    /// It is one too many: probes are answered, everything else is refused.
    Spare,
    /// It came to the second address.
    Admin,
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) lane: Lane,
    /// Ends the connection at once.
    pub(crate) cut: Arc<Notify>,
}

/// Serves connections until `stop` is done, then finishes accepted requests; returns what `stop` does.
pub(crate) async fn serve<T>(
    listener: TcpListener,
    router: Router,
    service: &Arc<Service>,
    stop: impl Future<Output = T>,
) -> T {
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    let stopped = tokio::select! {
        biased;
        stopped = &mut stop => stopped,
        () = accept(&listener, &router, service, &service.connections, false, || graceful.watcher()) => {
            unreachable!("connections are accepted until the service stops")
        }
    };
    drop(listener);
    let stop_time = service.limits().stop_time;
    if tokio::time::timeout(stop_time, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests that were not finished in {} seconds are cut off", stop_time.as_secs());
    }
    stopped
}

/// Answers probes at the second address until the end.
pub(crate) async fn serve_admin(listener: TcpListener, router: Router, service: Arc<Service>) {
    let graceful = GracefulShutdown::new();
    accept(&listener, &router, &service, &Arc::default(), true, || graceful.watcher()).await;
}

/// Accepts connections for ever.
async fn accept(
    listener: &TcpListener,
    router: &Router,
    service: &Arc<Service>,
    slots: &Arc<Slots>,
    is_admin: bool,
    watcher: impl Fn() -> Watcher,
) {
    loop {
        let most = if is_admin { 0 } else { service.limits().connections };
        if slots.used() >= most.saturating_add(SPARE) {
            // Connections wait in the system's queue.
            tokio::time::sleep(FULL_PAUSE).await;
            continue;
        }
        match listener.accept().await {
            Ok((stream, address)) => {
                let usual = slots.take(most).map(|slot| (slot, Lane::All));
                let spare = if is_admin { Lane::Admin } else { Lane::Spare };
                let slot = usual.or_else(|| Some((slots.take(most.saturating_add(SPARE))?, spare)));
                let Some((slot, lane)) = slot else { continue };
                let peer = Peer { address, lane, cut: Arc::default() };
                tokio::spawn(welcome(stream, peer, router.clone(), Arc::clone(service), slot, watcher()));
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection to its end, or until it is cut off.
async fn welcome(stream: TcpStream, peer: Peer, router: Router, service: Arc<Service>, slot: Slot, watcher: Watcher) {
    // Responses are small; waiting to send more at once only delays them.
    let _ = stream.set_nodelay(true);
    let mut limits = service.limits();
    if peer.lane == Lane::Spare {
        (limits.request_time, limits.idle_time) = (SPARE_TIME, SPARE_TIME);
    }
    #[cfg(feature = "tls")]
    if let Some(tls) = service.tls.as_ref().filter(|_| peer.lane != Lane::Admin) {
        // Clients that disconnect or are cut off are not worth a line in the log.
        if let Ok(Ok(stream)) = tokio::time::timeout(limits.request_time, tls.accept(stream)).await {
            let cut = Arc::clone(&peer.cut);
            let connection = watcher.watch(connection(stream, peer, router, &limits));
            tokio::select! { _ = connection => {}, () = cut.notified() => {} }
        }
        return drop(slot);
    }
    drop(service);
    let cut = Arc::clone(&peer.cut);
    let connection = watcher.watch(connection(stream, peer, router, &limits));
    tokio::select! { _ = connection => {}, () = cut.notified() => {} }
    drop(slot);
}

/// Cuts off clients that are slow to send the head of a request, or to take a response.
fn connection<S: AsyncRead + AsyncWrite + Send + 'static>(
    stream: S,
    peer: Peer,
    router: Router,
    limits: &Limits,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send {
    let phase = Arc::new(AtomicU8::new(HEAD));
    let mut timed = TimeoutStream::new(stream);
    timed.set_write_timeout(Some(limits.idle_time));
    let stream = HeadTimeout {
        stream: Box::pin(timed),
        phase: Arc::clone(&phase),
        time: limits.request_time,
        deadline: Box::pin(tokio::time::sleep(limits.request_time)),
    };
    let router = TowerToHyperService::new(router);
    let respond = move |mut request: Request<Incoming>| {
        phase.store(REQUEST, Ordering::Relaxed);
        request.extensions_mut().insert(peer.clone());
        let (response, phase) = (router.call(request), RequestPhase(Arc::clone(&phase)));
        async move {
            let response = response.await?;
            if response.body().size_hint().exact().is_some() {
                return Ok(response);
            }
            // The client may send more of its request while it is answered.
            Ok::<_, std::convert::Infallible>(response.map(|body| HoldingBody::wrap(body, phase)))
        }
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        // From the end of a request to the end of the next one's head.
        .header_read_timeout(limits.idle_time)
        .max_buf_size(limits.head_bytes)
        .max_headers(MOST_HEADERS)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service_fn(respond))
}

/// Nothing has come since the last request.
const IDLE: u8 = 0;
/// The head of a request is awaited.
const HEAD: u8 = 1;
/// A request is under way; its body has limits of its own.
const REQUEST: u8 = 2;

/// A request is under way until this is dropped.
struct RequestPhase(Arc<AtomicU8>);

impl Drop for RequestPhase {
    fn drop(&mut self) {
        self.0.store(IDLE, Ordering::Relaxed);
    }
}

/// A stream on which the head of a request must arrive in time, from its first byte on; the first one from the start on.
/// hyper has one limit for this and for the time between requests, which may be much longer.
struct HeadTimeout<S> {
    stream: Pin<Box<TimeoutStream<S>>>,
    phase: Arc<AtomicU8>,
    time: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl<S: AsyncRead + AsyncWrite> AsyncRead for HeadTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.stream.as_mut().poll_read(context, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before && self.phase.load(Ordering::Relaxed) == IDLE {
                self.phase.store(HEAD, Ordering::Relaxed);
                let deadline = Instant::now() + self.time;
                self.deadline.as_mut().reset(deadline);
            }
            return read;
        }
        if self.phase.load(Ordering::Relaxed) == HEAD && self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + AsyncWrite> AsyncWrite for HeadTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}
