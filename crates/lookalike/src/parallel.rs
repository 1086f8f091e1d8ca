//! One producer, many workers, one collector that sees the results in the order of production.
//!
//! Guaranteed: the collector's view does not depend on the number of workers; what is produced but
//! not yet worked on is bounded; the first error anywhere stops everything.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Result;

/// Jobs that wait for a worker, for each worker.
const WAITING: usize = 2;

/// Takes the producer's jobs.
pub struct JobSender<'a, J> {
    sender: SyncSender<(u64, J)>,
    stopped: &'a AtomicBool,
    sent: u64,
}

impl<J> JobSender<'_, J> {
    /// Hands a job on; waits while too many are waiting. False: the work has been given up, stop.
    pub fn send(&mut self, job: J) -> bool {
        if self.stopped.load(Ordering::Relaxed) || self.sender.send((self.sent, job)).is_err() {
            return false;
        }
        self.sent += 1;
        true
    }
}

/// Runs `produce` in one thread, `work` in `threads` more, each with a worker of its own, and
/// `collect` here, in the order of production, until it breaks.
///
/// # Errors
/// The first error of any of the three.
pub fn in_order<J: Send, R: Send, W>(
    threads: usize,
    produce: impl FnOnce(&mut JobSender<'_, J>) -> Result<()> + Send,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, J) -> Result<R> + Sync,
    mut collect: impl FnMut(R) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let threads = threads.max(1);
    let stopped = AtomicBool::new(false);
    let (job_sender, job_receiver) = mpsc::sync_channel(threads * WAITING);
    let job_receiver = Mutex::new(job_receiver);
    let (result_sender, result_receiver) = mpsc::sync_channel(threads * WAITING);
    let (new_worker, work, stopped, job_receiver) = (&new_worker, &work, &stopped, &job_receiver);
    thread::scope(|scope| {
        let producer = scope.spawn(move || {
            let mut jobs = JobSender { sender: job_sender, stopped, sent: 0 };
            produce(&mut jobs)
        });
        for _ in 0..threads {
            let result_sender = result_sender.clone();
            scope.spawn(move || {
                let mut worker = new_worker();
                loop {
                    let job = job_receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, job)) = job else { return };
                    if stopped.load(Ordering::Relaxed) {
                        continue; // drain, so that the producer never waits for nobody
                    }
                    if result_sender.send((number, work(&mut worker, job))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(result_sender);
        let mut early = BTreeMap::new();
        let mut next = 0u64;
        let mut failure = None;
        let mut over = false;
        for (number, result) in result_receiver {
            if over {
                continue;
            }
            early.insert(number, result);
            while let Some(result) = early.remove(&next) {
                next += 1;
                match result.and_then(&mut collect) {
                    Ok(ControlFlow::Continue(())) => continue,
                    Ok(ControlFlow::Break(())) => {}
                    Err(error) => failure = Some(error),
                }
                stopped.store(true, Ordering::Relaxed);
                over = true;
                break;
            }
        }
        let produced = match producer.join() {
            Ok(produced) => produced,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        failure.map_or(produced, Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn squares(threads: usize, fail_at: Option<u64>) -> (Vec<u64>, Result<()>) {
        let mut seen = Vec::new();
        let result = in_order(
            threads,
            |jobs| {
                for n in 0..1000u64 {
                    if !jobs.send(n) {
                        break;
                    }
                }
                Ok(())
            },
            || (),
            |(), n| if Some(n) == fail_at { Err(Error::Usage(n.to_string())) } else { Ok(n * n) },
            |square| {
                seen.push(square);
                Ok(ControlFlow::Continue(()))
            },
        );
        (seen, result)
    }

    #[test]
    fn results_come_in_order_whatever_the_threads() {
        let expected: Vec<u64> = (0..1000).map(|n| n * n).collect();
        for threads in [1, 2, 7] {
            let (seen, result) = squares(threads, None);
            assert!(result.is_ok());
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn the_first_error_in_order_is_the_one_reported() {
        for threads in [1, 3] {
            let (seen, result) = squares(threads, Some(500));
            assert_eq!(seen.len(), 500);
            assert_eq!(result.map_err(|error| error.to_string()), Err("500".to_owned()));
        }
    }
}
