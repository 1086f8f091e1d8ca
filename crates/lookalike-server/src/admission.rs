//! Whether a request may pass, and whether there is room for it.
//!
//! A request takes a place among those that are worked on only when its body has arrived: clients that send theirs slowly
//! keep nobody out. Batches have places of their own, and probes need none.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::extract::Request;
use axum::http::Method;
use hyper::body::Body as _;

use crate::Service;
use crate::budget::{Reservation, Slot};
use crate::listen::{Lane, Peer};
use crate::origin::OriginRules;
use crate::problem::{Problem, ProblemKind};
use crate::tokens::Access;

/// Paths that need no token.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];
/// Paths that need no place.
const PROBES: [&str; 3] = ["/healthz", "/readyz", METRICS];
const METRICS: &str = "/metrics";

/// What a request holds while it is under way.
#[derive(Default)]
pub(crate) struct Admission {
    slot: OnceLock<Slot>,
    memory: Mutex<Option<Reservation>>,
}

impl Admission {
    /// Takes a place among the requests that are worked on.
    pub(crate) fn begin(&self, service: &Service) -> Result<(), Problem> {
        if self.slot.get().is_some() {
            return Ok(());
        }
        let slot = service.requests.take(service.limits().requests).ok_or_else(too_busy)?;
        // Nobody else begins the same request.
        let _ = self.slot.set(slot);
        Ok(())
    }

    /// Keeps memory until the request is done.
    pub(crate) fn hold(&self, memory: Reservation) {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
    }
}

fn too_busy() -> Problem {
    ProblemKind::TooBusy.with("the service is already handling as many requests as it accepts; try again in a moment")
}

/// Checks whether a request may pass; handlers find its [`Access`] and its [`Admission`].
pub(crate) fn admit(service: &Service, request: &mut Request) -> Result<Arc<Admission>, Problem> {
    let lane = request.extensions().get::<Peer>().map_or(Lane::All, |peer| peer.lane);
    let path = request.uri().path();
    if lane == Lane::Spare && !PROBES.contains(&path) {
        return Err(
            ProblemKind::TooBusy.with("the service has as many connections as it accepts; try again in a moment")
        );
    }
    let admission = Arc::new(Admission::default());
    if lane == Lane::Admin {
        // Whoever chose this address decides who can reach it.
        return Ok(admission);
    }
    let is_open = OPEN.contains(&path);
    let is_batch = request.method() == Method::POST && path.ends_with("/batch");
    let takes_place = !is_open && !PROBES.contains(&path) && !is_batch;
    let live = service.live.load();
    let rules = OriginRules {
        hosts: &live.hosts,
        origins: &live.origins,
        // What needs no token shows nothing, whatever it is called.
        has_tokens: !live.tokens.is_empty() || is_open,
        is_tls: service.settings.tls.is_some(),
    };
    rules.check(request)?;
    if is_open {
        return Ok(admission);
    }
    let access = live.tokens.access(request.headers())?;
    if path == METRICS {
        access.need_all_collections()?;
    }
    access.take(live.limits.token_rate).map_err(|wait| {
        let reason =
            format!("this token makes more requests per second than it may; wait {:.1} seconds", wait.as_secs_f64());
        ProblemKind::TooManyRequests.with(reason)
    })?;
    // Where a body comes, its reader takes the place.
    let awaits_body = [Method::POST, Method::PUT].contains(request.method()) && !request.body().is_end_stream();
    if takes_place && !awaits_body {
        admission.begin(service)?;
    }
    request.extensions_mut().insert::<Access>(access);
    request.extensions_mut().insert(Arc::clone(&admission));
    Ok(admission)
}
