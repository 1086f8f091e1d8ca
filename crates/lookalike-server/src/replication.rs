//! Services that share their pages through an object store: one ships, others follow. `lookalike::online::ship` does the
//! work; this decides which collection does what, and puts it into words for clients and probes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lookalike::online::{OnlineOptions, ReplicationRole, ReplicationStats};
use lookalike::{Error, Online, Result};
use serde::Serialize;
use tokio::sync::oneshot;
use utoipa::ToSchema;

#[cfg(feature = "remote")]
use crate::collections::DEFAULT;
use crate::collections::{Collection, Listed};
use crate::problem::{Problem, ProblemKind, dropped, internal};
use crate::request::AdminAccess;
use crate::settings::Settings;
use crate::{Service, json};

/// How long to wait for a primary that has shipped nothing yet.
#[cfg(feature = "remote")]
const PAUSE: Duration = Duration::from_secs(1);
/// How long the opening of a collection waits for the object store.
#[cfg(feature = "remote")]
const MOST_WAITING: Duration = Duration::from_secs(5);

/// What the collections of a service are to those of others.
pub(crate) struct Replication {
    is_read_only: bool,
    /// How far a follower may be behind before it counts as not ready; 0 for any time.
    pub(crate) most_lag: Duration,
    /// Whether a follower has become the primary.
    is_promoted: AtomicBool,
    #[cfg(feature = "remote")]
    mode: Option<(Mode, lookalike::online::ship::ShipOptions)>,
}

#[cfg(feature = "remote")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ship,
    Follow,
    /// Follow until all that was shipped is here, and ship then.
    Promote,
}

impl Replication {
    pub(crate) fn new(settings: &Settings) -> Replication {
        Replication {
            is_read_only: settings.read_only,
            most_lag: Duration::from_secs(settings.follow_lag_seconds),
            is_promoted: AtomicBool::new(false),
            #[cfg(feature = "remote")]
            mode: mode(settings),
        }
    }

    /// The names of collections that others ship and this service follows.
    #[cfg(feature = "remote")]
    pub(crate) fn followed(&self) -> Vec<String> {
        let Some((Mode::Follow | Mode::Promote, options)) = &self.mode else { return Vec::new() };
        lookalike::online::ship::shipped_collections(&options.url).unwrap_or_else(|error| {
            tracing::warn!("collections are followed as far as they are here: {error}");
            Vec::new()
        })
    }

    #[cfg(feature = "remote")]
    fn options(&self, name: &str) -> Option<(Mode, lookalike::online::ship::ShipOptions)> {
        let (mode, options) = self.mode.as_ref()?;
        let mode = if self.is_promoted.load(Ordering::Relaxed) { Mode::Ship } else { *mode };
        Some((mode, if name == DEFAULT { options.clone() } else { options.for_collection(name) }))
    }

    /// Makes the directory of a collection ready to be opened: a follower downloads it.
    pub(crate) fn prepare(&self, name: &str, place: &Path) -> Result<()> {
        let has_index = place.join("manifest.json").exists();
        if self.is_read_only && !has_index {
            return Err(Error::bad_input(place, "holds no index, and with `read_only` none is made; check the path"));
        }
        #[cfg(feature = "remote")]
        if let Some((Mode::Follow | Mode::Promote, options)) =
            self.options(name).filter(|(mode, _)| self.is_copy(*mode, place))
        {
            use lookalike::online::ship::prepare_follower;
            let mut is_told = false;
            while !prepare_follower(place, &options.url)? {
                if name != DEFAULT {
                    let reason = format!("it follows {}, which has no such collection; create it there", options.url);
                    return Err(Error::ReadOnly { path: place.to_path_buf(), reason });
                }
                if !is_told {
                    tracing::info!("nothing has been shipped to {} yet; waiting for it", options.url);
                }
                is_told = true;
                std::thread::sleep(PAUSE);
            }
        }
        #[cfg(not(feature = "remote"))]
        let _ = name;
        Ok(())
    }

    /// Whether a directory is, or is to be, a copy of what others ship. One that was promoted before is not.
    #[cfg(feature = "remote")]
    fn is_copy(&self, mode: Mode, place: &Path) -> bool {
        let has_index = place.join("manifest.json").exists();
        mode == Mode::Follow || mode == Mode::Promote && (!has_index || lookalike::online::ship::is_follower(place))
    }

    /// Opens a collection.
    pub(crate) fn open(&self, name: &str, place: &Path, options: OnlineOptions) -> Result<Online> {
        if self.is_read_only {
            return Online::open_read_only(place, options);
        }
        #[cfg(feature = "remote")]
        if let Some((mode, ship)) = self.options(name) {
            let is_copy = self.is_copy(mode, place);
            let online = Online::open(place, options)?;
            if is_copy {
                online.follow(&ship)?;
            } else {
                online.ship(&ship)?;
                wait_for_claim(&online);
            }
            if is_copy && mode == Mode::Promote {
                let epoch = online.promote()?;
                tracing::info!("collection {name} is promoted: the primary of {}, epoch {epoch}", ship.url);
            }
            return Ok(online);
        }
        #[cfg(not(feature = "remote"))]
        let _ = name;
        Online::open(place, options)
    }
}

/// Waits a moment until a collection that is opened takes pages, so that nobody meets it before.
#[cfg(feature = "remote")]
fn wait_for_claim(online: &Online) {
    let end = std::time::Instant::now() + MOST_WAITING;
    let is_claiming = || online.replication().is_some_and(|stats| stats.role == ReplicationRole::Claiming);
    while is_claiming() && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(feature = "remote")]
fn mode(settings: &Settings) -> Option<(Mode, lookalike::online::ship::ShipOptions)> {
    let (mode, url) = match (&settings.ship, &settings.follow) {
        (Some(url), _) if settings.promote => (Mode::Promote, url),
        (Some(url), _) => (Mode::Ship, url),
        (None, Some(url)) => (Mode::Follow, url),
        (None, None) => return None,
    };
    let name =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = name.map_or_else(|_| "lookalike".to_owned(), |name| name.trim().to_owned());
    let options = lookalike::online::ship::ShipOptions { url: url.clone(), name, keep_bases: settings.keep_bases };
    Some((mode, options))
}

/// What a collection is to those of other services
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplicationResponse {
    /// `primary`, `follower`, `fenced`, or `claiming` while it is not known whether another one is the primary
    role: &'static str,
    /// Raised whenever another one becomes the primary
    epoch: u64,
    /// Who the primary is
    primary: Option<String>,
    /// The last group of changes that is here
    group: u64,
    /// The last group that is known to be in the object store
    shipped_group: u64,
    /// Groups that are here and not shipped, or shipped and not here
    lag_groups: u64,
    /// Seconds since there was no such group
    lag_seconds: f64,
    /// The group of the last base that was shipped since the start
    base_group: Option<u64>,
    /// What went wrong last; it is tried again
    last_error: Option<String>,
}

impl From<ReplicationStats> for ReplicationResponse {
    fn from(stats: ReplicationStats) -> ReplicationResponse {
        ReplicationResponse {
            role: match stats.role {
                ReplicationRole::Claiming => "claiming",
                ReplicationRole::Primary => "primary",
                ReplicationRole::Fenced => "fenced",
                ReplicationRole::Follower => "follower",
            },
            epoch: stats.epoch,
            primary: stats.primary,
            group: stats.group,
            shipped_group: stats.shipped_group,
            lag_groups: stats.lag_groups,
            lag_seconds: stats.lag_seconds,
            base_group: stats.base_group,
            last_error: stats.last_error,
        }
    }
}

/// Why a service is not ready because of what it is to others.
pub(crate) fn trouble(online: &Online, most_lag: Duration) -> Option<String> {
    let stats = online.replication()?;
    if stats.trouble.is_some() {
        return stats.trouble;
    }
    match stats.role {
        ReplicationRole::Claiming => Some(format!(
            "it is not known yet whether another one is the primary{}",
            stats.last_error.map(|error| format!(": {error}")).unwrap_or_default()
        )),
        ReplicationRole::Follower if !most_lag.is_zero() && stats.lag_seconds > most_lag.as_secs_f64() => {
            Some(format!("it is {:.0} seconds and {} groups behind its primary", stats.lag_seconds, stats.lag_groups))
        }
        _ => None,
    }
}

/// Waits until a group is shipped.
pub(crate) async fn wait_until_shipped(collection: &Collection, group: u64, time: Duration) -> Result<(), Problem> {
    let (sender, receiver) = oneshot::channel();
    when_shipped(&collection.online(), group, sender)?;
    match tokio::time::timeout(time, receiver).await {
        Ok(shipped) => Ok(shipped.map_err(|_| dropped())??),
        Err(_) => Err(ProblemKind::NotShipped
            .with("it is stored here, but not shipped yet: the object store does not respond; it is shipped as soon as that is possible")),
    }
}

#[cfg(feature = "remote")]
fn when_shipped(online: &Online, group: u64, sender: oneshot::Sender<Result<()>>) -> Result<()> {
    // The client may be gone by then.
    online.when_shipped(group, move |shipped| drop(sender.send(shipped)))
}

#[cfg(not(feature = "remote"))]
fn when_shipped(_: &Online, _: u64, _: oneshot::Sender<Result<()>>) -> Result<()> {
    Err(Error::conflict("ack", "nothing is shipped from here: this program was built without `--features remote`"))
}

/// Collections that were promoted
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromotedResponse {
    collections: Vec<PromotedCollection>,
}

#[derive(Debug, Serialize, ToSchema)]
struct PromotedCollection {
    name: String,
    epoch: u64,
}

/// Makes a follower the primary, with all its collections; the old one is fenced off
#[utoipa::path(
    post,
    path = "/v1/promote",
    operation_id = "promote",
    tag = "operations",
    responses((status = 200, body = PromotedResponse, description = "It is the primary"))
)]
pub(crate) async fn promote(State(service): State<Arc<Service>>, _: AdminAccess) -> Result<Response, Problem> {
    let collections = service.collections()?;
    let mut promoted = Vec::new();
    for listed in collections.list() {
        let name = match listed {
            Listed::Open(collection) => collection.name.clone(),
            Listed::Closed(name, _) => name,
        };
        let collection = collections.get(&name).await?;
        let epoch = tokio::task::spawn_blocking(move || promote_one(&collection.online())).await;
        let epoch = epoch.map_err(|_| internal())?.map_err(|error| match error {
            error @ Error::Remote { .. } => ProblemKind::NotReady.with(error.to_string()),
            error => error.into(),
        })?;
        tracing::info!("collection {name} is promoted: epoch {epoch}");
        promoted.push(PromotedCollection { name, epoch });
    }
    collections.replication().is_promoted.store(true, Ordering::Relaxed);
    Ok(json(StatusCode::OK, &PromotedResponse { collections: promoted }))
}

#[cfg(feature = "remote")]
fn promote_one(online: &Online) -> Result<u64> {
    match online.replication() {
        // An earlier attempt got so far.
        Some(stats) if stats.role == ReplicationRole::Primary => Ok(stats.epoch),
        _ => online.promote(),
    }
}

#[cfg(not(feature = "remote"))]
fn promote_one(_: &Online) -> Result<u64> {
    Err(Error::conflict("promote", "this program was built without `--features remote`"))
}
