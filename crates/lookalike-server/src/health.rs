//! Whether pages can be stored: what probes and clients are told when they cannot.

use std::sync::Arc;
use std::time::Duration;

use crate::Service;
use crate::collections::Collection;
use crate::problem::{Problem, ProblemKind};
use crate::replication;

/// How often the threads that store are looked at.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

/// Why the thread that stores pages does nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum WriterTrouble {
    Ended,
    /// For so many seconds it has been busy with one thing.
    Stalled(f64),
}

impl std::fmt::Display for WriterTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WriterTrouble::Ended => f.write_str("the thread that stores pages has ended; restart the service"),
            WriterTrouble::Stalled(seconds) => write!(
                f,
                "the thread that stores pages has been busy for {seconds:.0} seconds: the disk does not respond, or a sync hangs"
            ),
        }
    }
}

impl Collection {
    /// Whether the thread that stores is dead, or has been busy for longer than `stall_time`.
    pub(crate) fn writer_trouble(&self, stall_time: Duration) -> Option<WriterTrouble> {
        let writer = self.online().writer();
        if !writer.is_alive {
            return Some(WriterTrouble::Ended);
        }
        writer.busy_seconds.filter(|seconds| *seconds > stall_time.as_secs_f64()).map(WriterTrouble::Stalled)
    }

    /// Refuses to store where nothing can be stored, instead of letting the client wait for it. A store that has failed is
    /// asked all the same: it answers at once, and is reopened if it can be.
    pub(crate) fn check_writer(&self, stall_time: Duration) -> Result<(), Problem> {
        match self.writer_trouble(stall_time) {
            None => Ok(()),
            Some(trouble) => Err(ProblemKind::StoreFailed.with(format!("{trouble}; pages can still be looked up"))),
        }
    }

    /// Why nothing can be stored, for probes: without paths.
    pub(crate) fn trouble(&self, stall_time: Duration) -> Option<String> {
        let trouble = self.writer_trouble(stall_time).map(|trouble| trouble.to_string());
        let trouble = trouble.or_else(|| replication::trouble(&self.online(), self.most_lag));
        trouble.or_else(|| {
            let reason = self.online().stats().failed?;
            let place = self.place.display().to_string();
            Some(format!("the store has failed: {}", reason.replace(&place, &self.name)))
        })
    }
}

/// What is wrong with the service, if anything is.
pub(crate) fn trouble(service: &Service) -> Option<String> {
    let stall_time = service.limits().stall_time;
    let open = service.collections().ok()?.open();
    let troubles = open.iter().filter_map(|one| Some(format!("collection {}: {}", one.name, one.trouble(stall_time)?)));
    let troubles: Vec<String> = troubles.collect();
    (!troubles.is_empty()).then(|| troubles.join("; "))
}

/// Looks at the service again and again: says when something goes wrong and when it is well again, tries to reopen stores
/// that have failed (a load balancer may have stopped sending the pages that would do so), and closes collections that
/// nobody uses.
pub(crate) async fn keep_watching(service: Arc<Service>) {
    let mut known: Option<String> = None;
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let Ok(collections) = service.collections() else { continue };
        let now = trouble(&service);
        match (&known, &now) {
            (None, Some(trouble)) => tracing::error!("nothing can be stored: {trouble}"),
            (Some(_), None) => tracing::info!("pages can be stored again"),
            _ => {}
        }
        known = now;
        for collection in &collections.open() {
            let stats = collection.online().stats();
            if stats.failed.is_some() && stats.writer.waiting == 0 && stats.writer.busy_seconds.is_none() {
                // No page has this id; before the thread looks for it, it reopens the store.
                let _ = collection.online().delete("\0", |_| {});
            }
        }
        let (collections, idle_time) = (Arc::clone(collections), service.limits().collection_idle_time);
        // Closing writes to the disk, which may hang.
        tokio::spawn(async move { collections.close_idle(idle_time).await });
    }
}
