//! Metrics for Prometheus.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use lookalike::online::{OnlineStats, ReplicationRole, ReplicationStats};
use metrics::{Counter, Histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::Service;
use crate::log::log;
use crate::process::write_figures;

/// From 50 µs to 10 s.
const BUCKETS: [f64; 16] =
    [0.000_05, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 10.0];
/// How often histograms are summarised; between requests for metrics, their samples would pile up.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The recorder of this process; none if another part of the process has installed its own.
pub(crate) fn metrics_handle() -> Option<PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let install = || {
        let matcher = Matcher::Full("lookalike_request_seconds".to_owned());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(matcher, &BUCKETS);
        let handle = builder.expect("there are buckets").install_recorder().ok();
        metrics::describe_counter!("lookalike_requests_total", "Requests.");
        metrics::describe_histogram!(
            "lookalike_request_seconds",
            "Time of requests; of batches, until the last line was sent."
        );
        metrics::describe_counter!("lookalike_pages_total", "Answers about pages, by verdict.");
        handle
    };
    HANDLE.get_or_init(install).clone()
}

/// Summarises histograms, again and again.
pub(crate) async fn keep_summarising(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        metrics.run_upkeep();
    }
}

/// Requests and their times, by route.
type RouteMetrics = HashMap<Box<str>, (Counter, Histogram)>;

thread_local! {
    /// By method and status. Looking metrics up by their labels takes longer than counting.
    static METRICS: RefCell<HashMap<[&'static str; 2], RouteMetrics>> = RefCell::default();
}

/// Counts a request.
pub(crate) fn count_request(route: &str, method: &Method, status: StatusCode, time: Duration) {
    let method = match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let status = match status.as_u16() {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        507 => "507",
        _ => "5xx",
    };
    let count = |(requests, times): &(Counter, Histogram)| {
        requests.increment(1);
        times.record(time.as_secs_f64());
    };
    METRICS.with_borrow_mut(|metrics| {
        let routes = metrics.entry([method, status]).or_default();
        if let Some(route) = routes.get(route) {
            return count(route);
        }
        let name: Arc<str> = route.into();
        let requests = metrics::counter!("lookalike_requests_total", "route" => Arc::clone(&name), "method" => method, "status" => status);
        let times = metrics::histogram!("lookalike_request_seconds", "route" => name, "method" => method);
        count(routes.entry(route.into()).or_insert((requests, times)));
    });
}

/// One metric: name, type, help, and its value for each collection or for the service.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
}

impl Family {
    fn write(&self, out: &mut String, values: impl IntoIterator<Item = (Option<String>, f64)>) {
        let Family { name, kind, help } = self;
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (collection, value) in values {
            let _ = match collection {
                Some(collection) => writeln!(out, "{name}{{collection=\"{collection}\"}} {value}"),
                None => writeln!(out, "{name} {value}"),
            };
        }
    }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: "gauge", help }
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: "counter", help }
}

/// A metric of a collection, and where it is found.
type OfCollection = (Family, fn(&OnlineStats) -> f64);

#[rustfmt::skip]
const OF_COLLECTIONS: [OfCollection; 19] = [
    (gauge("lookalike_rows", "Rows; deleted ones count until they are merged away."), |stats| stats.rows as f64),
    (gauge("lookalike_rows_in_memory", "Rows in memory, which are not in segments yet."), |stats| stats.rows_in_memory as f64),
    (gauge("lookalike_segments", "Segments in files."), |stats| stats.segments as f64),
    (gauge("lookalike_segments_in_memory", "Segments in memory, which wait to be merged."), |stats| stats.segments_in_memory as f64),
    (gauge("lookalike_segment_bytes", "Bytes of segments in files."), |stats| stats.segment_bytes as f64),
    (gauge("lookalike_store_bytes", "Bytes of the store."), |stats| stats.store_bytes as f64),
    (gauge("lookalike_changes_not_in_segments", "Merge debt: changes that a start would read from the store."),
        |stats| stats.last_change.saturating_sub(stats.covered) as f64),
    (counter("lookalike_changes_total", "The number of the last change."), |stats| stats.last_change as f64),
    (counter("lookalike_sync_groups_total", "Groups of pages that were synced together."), |stats| stats.groups as f64),
    (counter("lookalike_synced_pages_total", "Pages in those groups."), |stats| stats.grouped as f64),
    (counter("lookalike_sync_seconds_total", "Time that writing and syncing groups took."), |stats| stats.sync_seconds),
    (counter("lookalike_merges_total", "Merges of segments."), |stats| stats.merging.merges as f64),
    (counter("lookalike_merge_seconds_total", "Time that merges took."), |stats| stats.merging.seconds),
    (gauge("lookalike_merge_failed", "1 if the last merge failed."), |stats| f64::from(u8::from(stats.merging.failed.is_some()))),
    (counter("lookalike_store_reopened_total", "How often the store was reopened after a failure."), |stats| stats.reopened as f64),
    (gauge("lookalike_writer_alive", "1 if the thread that stores pages is there."), |stats| f64::from(u8::from(stats.writer.is_alive))),
    (gauge("lookalike_writer_busy_seconds", "How long the thread that stores has been busy with what it does now; a sync that hangs shows here."),
        |stats| stats.writer.busy_seconds.unwrap_or(0.0)),
    (gauge("lookalike_writer_queue", "Pages that wait to be stored."), |stats| stats.writer.waiting as f64),
    (counter("lookalike_writer_restarted_total", "How often the thread that stores was started again after a panic."),
        |stats| stats.writer.restarted as f64),
];

/// Writes the metrics of collections, of the service and of the process.
pub(crate) fn write_metrics(out: &mut String, service: &Service) {
    let limits = service.limits();
    let collections = service.collections().ok();
    let open: Vec<(String, OnlineStats, bool)> = collections.map_or_else(Vec::new, |collections| {
        let open = collections.open().into_iter();
        open.map(|one| (one.name.clone(), one.online().stats(), one.trouble(limits.stall_time).is_some())).collect()
    });
    for (family, value) in &OF_COLLECTIONS {
        family.write(out, open.iter().map(|(name, stats, _)| (Some(name.clone()), value(stats))));
    }
    let failed = open.iter().map(|(name, _, has_failed)| (Some(name.clone()), f64::from(u8::from(*has_failed))));
    gauge(
        "lookalike_store_failed",
        "1 while nothing can be stored: the store has failed, or the thread that stores is dead or hangs.",
    )
    .write(out, failed);
    write_replication(out, &open);
    let is_stopping = service.is_stopping.load(Ordering::Relaxed);
    let is_ready = collections.is_some() && !is_stopping && open.iter().all(|(_, _, has_failed)| !has_failed);
    let known = collections.map_or(0, |collections| collections.list().len());
    #[rustfmt::skip]
    let of_service = [
        (gauge("lookalike_ready", "1 if /readyz says so."), f64::from(u8::from(is_ready))),
        (gauge("lookalike_collections", "Collections, open or not."), known as f64),
        (gauge("lookalike_collections_open", "Collections that are open."), open.len() as f64),
        (gauge("lookalike_connections", "Connections."), service.connections.used() as f64),
        (gauge("lookalike_connections_max", "Limit of connections."), limits.connections as f64),
        (gauge("lookalike_requests_active", "Requests that are worked on."), service.requests.used() as f64),
        (gauge("lookalike_requests_max", "Limit of requests that are worked on."), limits.requests as f64),
        (gauge("lookalike_batches_active", "Batches under way."), service.batches.used() as f64),
        (gauge("lookalike_body_memory_bytes", "Memory of bodies, lines and waiting responses."), service.memory.used() as f64),
        (gauge("lookalike_body_memory_max_bytes", "Limit of that memory."), limits.body_memory as f64),
        (counter("lookalike_log_lines_dropped_total", "Lines of the log that were dropped because nobody read them."), log().dropped() as f64),
    ];
    for (family, value) in of_service {
        family.write(out, [(None, value)]);
    }
    write_figures(out);
}

/// Writes the metrics of collections that ship or follow.
fn write_replication(out: &mut String, open: &[(String, OnlineStats, bool)]) {
    #[rustfmt::skip]
    type Value = fn(&ReplicationStats) -> f64;
    let families: [(Family, Value); 6] = [
        (
            gauge(
                "lookalike_replication_primary",
                "1 if the collection takes pages and ships them; 0 for followers and after being fenced off.",
            ),
            |stats| f64::from(u8::from(stats.role == ReplicationRole::Primary)),
        ),
        (gauge("lookalike_replication_epoch", "The epoch of the primary."), |stats| stats.epoch as f64),
        (gauge("lookalike_replication_group", "The last group of changes that is here."), |stats| stats.group as f64),
        (
            gauge("lookalike_replication_shipped_group", "The last group that is known to be in the object store."),
            |stats| stats.shipped_group as f64,
        ),
        (
            gauge("lookalike_replication_lag_groups", "Groups that are here and not shipped, or shipped and not here."),
            |stats| stats.lag_groups as f64,
        ),
        (gauge("lookalike_replication_lag_seconds", "Seconds since there was no such group."), |stats| {
            stats.lag_seconds
        }),
    ];
    for (family, value) in families {
        let values =
            open.iter().filter_map(|(name, stats, _)| Some((Some(name.clone()), value(stats.replication.as_ref()?))));
        family.write(out, values.collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[tokio::test]
    async fn every_metric_has_help_and_a_type_before_its_values() {
        count_request("/v1/pages", &Method::POST, StatusCode::OK, Duration::from_millis(1));
        let service = Service::new(Settings::new("not-there".into()), tokio::runtime::Handle::current()).unwrap();
        let mut text = service.metrics.as_ref().unwrap().render();
        write_metrics(&mut text, &service);
        let mut described = std::collections::HashSet::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let name = if let Some(rest) = line.strip_prefix("# ") {
                let mut words = rest.split(' ');
                let (what, name) = (words.next().unwrap(), words.next().unwrap());
                assert!(described.insert((what.to_owned(), name.to_owned())), "twice: {line}");
                continue;
            } else {
                let name = line.split(['{', ' ']).next().unwrap();
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
            };
            for what in ["HELP", "TYPE"] {
                assert!(described.contains(&(what.to_owned(), name.to_owned())), "{what} of {line}");
            }
        }
        assert!(described.len() > 60);
    }
}
