//! Sources → batches of whole records, which are parsed by many threads.
//!
//! `units` divides the input into what is read side by side; `stream` and `unpack` make bytes of a source, in buffers
//! that go round (`buffer`); `batch` is what one thread parses.

pub(super) mod batch;
pub mod buffer;
pub(super) mod stream;
pub(super) mod units;
pub(super) mod unpack;
