//! One line for every request, on standard error.
//!
//! Lines are collected for a moment and written together: one system call per request would be noticeable.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderValue, Method, StatusCode, Uri};

/// How long lines wait for others.
const DELAY: Duration = Duration::from_millis(200);

/// Lines that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct AccessLog {
    lines: Mutex<String>,
}

impl AccessLog {
    pub(crate) fn write(&self, method: &Method, uri: &Uri, status: StatusCode, time: Duration, id: &HeaderValue) {
        // With a clock set before 1970, the time is 0.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        let line = format!(
            "{}.{:03} {method} {path} {} {:.3}ms {}\n",
            now.as_secs(),
            now.subsec_millis(),
            status.as_u16(),
            time.as_secs_f64() * 1e3,
            id.to_str().expect("ids are plain ASCII"),
        );
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push_str(&line);
    }

    /// Writes what waits.
    pub(crate) fn flush(&self) {
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        if !lines.is_empty() {
            // Without standard error there is nowhere to report it.
            let _ = std::io::stderr().lock().write_all(lines.as_bytes());
        }
    }

    /// Writes what waits, again and again.
    pub(crate) async fn keep_writing(log: Arc<AccessLog>) {
        loop {
            tokio::time::sleep(DELAY).await;
            log.flush();
        }
    }
}
