//! The way to the sequencer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use crate::error::{Error, Result};
use crate::online::ServedIndex;
use crate::online::sequencer::{Done, SequencerJob};

/// Sends jobs to the thread that stores.
#[derive(Clone)]
pub(super) struct Jobs {
    sender: SyncSender<SequencerJob>,
    served: Arc<ServedIndex>,
}

impl Jobs {
    pub(super) fn new(sender: SyncSender<SequencerJob>, served: Arc<ServedIndex>) -> Jobs {
        Jobs { sender, served }
    }

    pub(super) fn ended() -> Error {
        Error::internal("the thread that stores pages has ended")
    }

    fn count(&self, sent: Result<()>) -> Result<()> {
        if sent.is_err() {
            self.served.counters.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        sent
    }

    /// Sends a job, unless too many are waiting.
    pub(super) fn send(&self, job: SequencerJob) -> Result<()> {
        self.served.counters.waiting.fetch_add(1, Ordering::Relaxed);
        self.count(self.sender.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => Error::Overloaded,
            TrySendError::Disconnected(_) => Jobs::ended(),
        }))
    }

    /// Sends a job as soon as there is room for it.
    pub(super) fn send_waiting(&self, job: SequencerJob) -> Result<()> {
        self.served.counters.waiting.fetch_add(1, Ordering::Relaxed);
        self.count(self.sender.send(job).map_err(|_| Jobs::ended()))
    }

    /// Sends a job and waits until it is done.
    pub(super) fn wait_for<T: Send + 'static>(&self, job: impl FnOnce(Done<T>) -> SequencerJob) -> Result<T> {
        let (sender, answer) = sync_channel(1);
        // Nobody waits for the answer if this thread is gone.
        self.send_waiting(job(Box::new(move |done| drop(sender.send(done)))))?;
        answer.recv().map_err(|_| Jobs::ended())?
    }
}
