//! Merging in a thread of its own.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::index::live::Index;

impl Index {
    /// Merges in a thread of its own, whenever it is woken because rows have come.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn merge_in_background(self: &Arc<Index>) -> Result<MergeThread> {
        let (wake, woken) = mpsc::channel::<()>();
        let stats = Arc::new(Mutex::new(MergeStats::default()));
        let (index, shared_stats) = (Arc::clone(self), Arc::clone(&stats));
        let work = move || {
            let mut last = Ok(0);
            while woken.recv().is_ok() {
                while woken.try_recv().is_ok() {}
                let start = Instant::now();
                last = index.merge_like_sizes();
                let mut stats = shared_stats.lock().unwrap_or_else(PoisonError::into_inner);
                stats.merges += last.as_ref().map_or(0, |merges| *merges as u64);
                stats.seconds += start.elapsed().as_secs_f64();
                stats.failed = last.as_ref().err().map(ToString::to_string);
            }
            last.map(|_| ())
        };
        let thread = std::thread::Builder::new().name("merge".to_owned()).spawn(work);
        Ok(MergeThread { wake, thread: thread.map_err(Error::io(&self.directory, "start a thread for"))?, stats })
    }
}

/// What a thread that merges has done.
#[derive(Debug, Clone, Default)]
pub struct MergeStats {
    /// Merges.
    pub merges: u64,
    /// Time they took.
    pub seconds: f64,
    /// Why the last one failed; it is tried again when rows come.
    pub failed: Option<String>,
}

/// A thread that merges.
pub struct MergeThread {
    wake: Sender<()>,
    thread: JoinHandle<Result<()>>,
    stats: Arc<Mutex<MergeStats>>,
}

impl MergeThread {
    /// Rows have come.
    pub fn wake(&self) {
        // Nobody listens once the thread is gone, and `finish` says why.
        let _ = self.wake.send(());
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> MergeStats {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the thread when it is done with what it does.
    ///
    /// # Errors
    /// When the last merge failed.
    pub fn finish(self) -> Result<()> {
        drop(self.wake);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
