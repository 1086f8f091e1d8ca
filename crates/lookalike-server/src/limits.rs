//! Limits on requests and connections.

use std::time::Duration;

use lookalike::{Error, Result};
use serde::Deserialize;

use crate::settings::{ByteCount, set};

/// What hyper needs for the head of a request.
const LEAST_HEAD_BYTES: usize = 8 << 10;

/// Limits on requests and connections. All of them can change while the service runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a decompressed body; in a batch, bytes of a line.
    pub body_bytes: usize,
    /// Bytes of the text or markup of one page.
    pub page_bytes: usize,
    /// Bytes of the metadata of one page.
    pub metadata_bytes: usize,
    /// Memory for the bodies, lines and waiting responses of all clients together.
    pub body_memory: usize,
    /// Lines per batch.
    pub batch_lines: usize,
    /// Requests that are worked on at once.
    pub requests: usize,
    /// Batches at once.
    pub batches: usize,
    /// Connections at once.
    pub connections: usize,
    /// Collections that are open at once; each has threads, files and memory of its own.
    pub open_collections: usize,
    /// Requests per second of one token, if its line does not say otherwise; 0 for any number.
    pub token_rate: u32,
    /// Bytes per second that a client must send of a body.
    pub least_rate: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Time for a request; in a batch, the time over which its rate is judged.
    pub request_time: Duration,
    /// Time for a batch.
    pub batch_time: Duration,
    /// Time in which a client must send the next request, or take some of a response.
    pub idle_time: Duration,
    /// Time after which a collection that nobody uses is closed.
    pub collection_idle_time: Duration,
    /// Time that storing may take before the service says that it hangs.
    pub stall_time: Duration,
    /// Time between saying that the service stops and refusing connections.
    pub drain_time: Duration,
    /// Time to finish accepted requests when the service stops.
    pub stop_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 16 << 20,
            page_bytes: 8 << 20,
            metadata_bytes: 16 << 10,
            body_memory: 256 << 20,
            batch_lines: 100_000,
            requests: 1024,
            batches: 256,
            connections: 8192,
            open_collections: 32,
            token_rate: 0,
            least_rate: 64,
            head_bytes: 16 << 10,
            request_time: Duration::from_secs(30),
            batch_time: Duration::from_secs(3600),
            idle_time: Duration::from_secs(60),
            collection_idle_time: Duration::from_secs(600),
            stall_time: Duration::from_secs(10),
            drain_time: Duration::ZERO,
            stop_time: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Takes the limits of a file.
    pub(crate) fn read(&mut self, given: FileLimits) {
        // On a small machine, a limit beyond its memory is not a limit.
        let usize_of = |bytes: Option<ByteCount>| bytes.map(|bytes| usize::try_from(bytes.0).unwrap_or(usize::MAX));
        let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
        set(&mut self.body_bytes, usize_of(given.body));
        set(&mut self.page_bytes, usize_of(given.page));
        set(&mut self.metadata_bytes, usize_of(given.metadata));
        set(&mut self.body_memory, usize_of(given.body_memory));
        set(&mut self.batch_lines, given.batch_lines);
        set(&mut self.requests, given.requests);
        set(&mut self.batches, given.batches);
        set(&mut self.connections, given.connections);
        set(&mut self.open_collections, given.open_collections);
        set(&mut self.token_rate, given.token_rate);
        set(&mut self.least_rate, usize_of(given.least_rate));
        set(&mut self.head_bytes, usize_of(given.head));
        set(&mut self.request_time, seconds(given.request_seconds));
        set(&mut self.batch_time, seconds(given.batch_seconds));
        set(&mut self.idle_time, seconds(given.idle_seconds));
        set(&mut self.collection_idle_time, seconds(given.collection_idle_seconds));
        set(&mut self.stall_time, seconds(given.stall_seconds));
        set(&mut self.drain_time, seconds(given.drain_seconds));
        set(&mut self.stop_time, seconds(given.stop_seconds));
    }

    /// Refuses limits that let nothing through.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, limit) in [
            ("limits.body", self.body_bytes),
            ("limits.page", self.page_bytes),
            ("limits.batch_lines", self.batch_lines),
            ("limits.requests", self.requests),
            ("limits.batches", self.batches),
            ("limits.connections", self.connections),
            ("limits.open_collections", self.open_collections),
        ] {
            if limit == 0 {
                return Err(Error::invalid(name, limit, "must be at least 1; leave it out for the default"));
            }
        }
        for (name, time) in [
            ("limits.request_seconds", self.request_time),
            ("limits.batch_seconds", self.batch_time),
            ("limits.idle_seconds", self.idle_time),
            ("limits.stall_seconds", self.stall_time),
        ] {
            if time.is_zero() {
                return Err(Error::invalid(name, time.as_secs(), "must be at least 1; leave it out for the default"));
            }
        }
        if self.head_bytes < LEAST_HEAD_BYTES {
            return Err(Error::invalid("limits.head", self.head_bytes, "must be at least 8KiB"));
        }
        if self.body_memory / 4 < self.body_bytes {
            let reason =
                format!("must be at least four times that of one body, {} bytes (limits.body)", self.body_bytes);
            return Err(Error::invalid("limits.body_memory", self.body_memory, reason));
        }
        Ok(())
    }
}

/// What a file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FileLimits {
    body: Option<ByteCount>,
    page: Option<ByteCount>,
    metadata: Option<ByteCount>,
    body_memory: Option<ByteCount>,
    batch_lines: Option<usize>,
    requests: Option<usize>,
    batches: Option<usize>,
    connections: Option<usize>,
    open_collections: Option<usize>,
    token_rate: Option<u32>,
    least_rate: Option<ByteCount>,
    head: Option<ByteCount>,
    request_seconds: Option<u64>,
    batch_seconds: Option<u64>,
    idle_seconds: Option<u64>,
    collection_idle_seconds: Option<u64>,
    stall_seconds: Option<u64>,
    drain_seconds: Option<u64>,
    stop_seconds: Option<u64>,
}
