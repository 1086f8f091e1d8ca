//! Buffers that go round: from the reader to a worker and back.
//!
//! Fresh memory costs more than what is done with it: the system clears every page of it first.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// Buffers that wait to be used again.
#[derive(Debug, Default)]
pub(crate) struct BufferPool(Mutex<Vec<Vec<u8>>>);

/// Buffers larger than this are not kept.
const KEPT_BYTES: usize = 8 << 20;
/// Buffers beyond this many are not kept.
const KEPT: usize = 64;

impl BufferPool {
    /// An empty buffer.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() <= KEPT_BYTES && pool.len() < KEPT {
            buffer.clear();
            pool.push(buffer);
        }
    }
}

/// Bytes that return to their pool when they are done with.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    pool: Arc<BufferPool>,
}

impl Buffer {
    /// Bytes that will return to `pool`.
    pub(crate) fn new(bytes: Vec<u8>, pool: Arc<BufferPool>) -> Buffer {
        Buffer { bytes, pool }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.bytes));
    }
}
