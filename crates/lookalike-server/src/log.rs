//! Lines for standard error, which never hold anybody up.
//!
//! A pipe that nobody reads blocks whoever writes to it. Lines therefore wait in a buffer of limited size, which a thread of
//! its own writes out; when the buffer is full, lines are dropped and counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};

/// Bytes of lines that wait.
const MOST_WAITING: usize = 4 << 20;
/// How long lines wait for others: one system call per request would be noticeable.
const DELAY: Duration = Duration::from_millis(20);
/// Time for the last lines of a process.
pub(crate) const LAST_TIME: Duration = Duration::from_millis(500);

/// How lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Words separated by spaces.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Whether the thread has lines in its hands.
    is_writing: bool,
}

/// The log of this process.
#[derive(Default)]
pub(crate) struct Log {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    dropped: AtomicU64,
}

/// The log of this process.
pub(crate) fn log() -> &'static Log {
    static LOG: OnceLock<&'static Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log: &'static Log = Box::leak(Box::default());
        let writing = move || log.keep_writing(&mut io::stderr());
        // Without a thread lines wait, and are dropped in the end.
        let _ = std::thread::Builder::new().name("log".to_owned()).spawn(writing);
        log
    })
}

impl Log {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes whole lines.
    pub(crate) fn write(&self, lines: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.lines.len() + lines.len() > MOST_WAITING {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(lines);
        if was_empty {
            self.changed.notify_all();
        }
    }

    /// Lines that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn keep_writing(&self, out: &mut impl Write) {
        let mut lines = Vec::new();
        loop {
            let waiting = self.changed.wait_while(self.waiting(), |waiting| waiting.lines.is_empty());
            drop(waiting);
            std::thread::sleep(DELAY);
            {
                let mut waiting = self.waiting();
                std::mem::swap(&mut waiting.lines, &mut lines);
                waiting.is_writing = true;
            }
            // Without standard error there is nowhere to report it.
            let _ = out.write_all(&lines);
            lines.clear();
            self.waiting().is_writing = false;
            self.changed.notify_all();
        }
    }

    /// Waits until everything is written, but not for long.
    pub(crate) fn flush(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut waiting = self.waiting();
        while waiting.is_writing || !waiting.lines.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            waiting = self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Writes to the log of this process; for a subscriber of `tracing`.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        log().write(lines);
        Ok(lines.len())
    }

    /// Waits a moment for what was written, in case the process ends.
    fn flush(&mut self) -> io::Result<()> {
        log().flush(LAST_TIME);
        Ok(())
    }
}

/// A time as all lines have it: RFC 3339 in UTC, with microseconds. Also before 1970.
#[must_use]
pub fn log_time(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn times_before_1970_are_times() {
        assert_eq!(log_time(UNIX_EPOCH), "1970-01-01T00:00:00.000000Z");
        assert_eq!(log_time(UNIX_EPOCH - Duration::from_millis(1500)), "1969-12-31T23:59:58.500000Z");
    }

    #[test]
    fn lines_that_nobody_writes_are_dropped_and_counted() {
        let log = Log::default();
        let line = vec![b'x'; 1 << 20];
        (0..6).for_each(|_| log.write(&line));
        assert_eq!(log.dropped(), 2);
        log.flush(Duration::from_millis(1));
    }
}
