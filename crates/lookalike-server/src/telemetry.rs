//! Metrics for Prometheus.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics::{Counter, Histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::collections::Collection;

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
        builder.expect("there are buckets").install_recorder().ok()
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

/// Updates the metrics of a collection.
pub(crate) fn publish(collection: &Collection) {
    let name = || collection.name.clone();
    let stats = collection.online.stats();
    let gauges = [
        ("lookalike_rows", stats.rows),
        ("lookalike_rows_in_memory", stats.rows_in_memory),
        ("lookalike_segments", stats.segments as u64),
        ("lookalike_segments_in_memory", stats.segments_in_memory as u64),
        ("lookalike_segment_bytes", stats.segment_bytes),
        ("lookalike_store_bytes", stats.store_bytes),
        ("lookalike_changes_not_in_segments", stats.last_change.saturating_sub(stats.covered)),
        ("lookalike_store_failed", u64::from(stats.failed.is_some())),
    ];
    for (gauge, value) in gauges {
        metrics::gauge!(gauge, "collection" => name()).set(value as f64);
    }
    let counters = [
        ("lookalike_sync_groups_total", stats.groups),
        ("lookalike_synced_pages_total", stats.grouped),
        ("lookalike_merges_total", stats.merging.merges),
        ("lookalike_store_reopened_total", stats.reopened),
    ];
    for (counter, value) in counters {
        metrics::counter!(counter, "collection" => name()).absolute(value);
    }
    let seconds = [
        ("lookalike_sync_seconds_total", stats.sync_seconds),
        ("lookalike_merge_seconds_total", stats.merging.seconds),
    ];
    for (gauge, value) in seconds {
        metrics::gauge!(gauge, "collection" => name()).set(value);
    }
}
