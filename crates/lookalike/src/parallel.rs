//! One producer, many workers, one collector that sees the results in the order of production.
//!
//! Guaranteed: the collector's view does not depend on the number of workers; what is produced but
//! not yet worked on is bounded; the first error anywhere stops everything.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crate::error::Result;

/// Jobs that have been produced and not collected yet, for each worker: one slow job cannot pile up
/// the results of all that come after it.
const UNDER_WAY: u64 = 4;

/// How far the collector is.
#[derive(Default)]
struct Progress {
    collected: Mutex<u64>,
    changed: Condvar,
    stopped: AtomicBool,
}

impl Progress {
    /// Waits until fewer than `limit` jobs are under way; false: the work has been given up.
    fn wait_for_room(&self, sent: u64, limit: u64) -> bool {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        while sent - *collected >= limit && !self.is_stopped() {
            collected = self.changed.wait(collected).unwrap_or_else(PoisonError::into_inner);
        }
        !self.is_stopped()
    }

    fn advance(&self) {
        *self.collected.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    fn stop(&self) {
        // With the lock held, so that nobody falls asleep between looking and waiting.
        let _collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopped.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Takes the producer's jobs.
pub struct JobSender<'a, J> {
    sender: Sender<(u64, J)>,
    progress: &'a Progress,
    limit: u64,
    sent: u64,
}

impl<J> JobSender<'_, J> {
    /// Hands a job on; waits while too many are under way. False: the work has been given up, stop.
    pub fn send(&mut self, job: J) -> bool {
        if !self.progress.wait_for_room(self.sent, self.limit) || self.sender.send((self.sent, job)).is_err() {
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
/// The first error of any of the three. A panic in any of them goes on here.
pub fn in_order<J: Send, R: Send, W>(
    threads: usize,
    produce: impl FnOnce(&mut JobSender<'_, J>) -> Result<()> + Send,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, J) -> Result<R> + Sync,
    mut collect: impl FnMut(R) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let threads = threads.max(1);
    let limit = UNDER_WAY * threads as u64;
    let progress = Progress::default();
    let (job_sender, job_receiver) = mpsc::channel();
    let job_receiver = Mutex::new(job_receiver);
    let (result_sender, result_receiver) = mpsc::channel();
    let (new_worker, work, progress, job_receiver) = (&new_worker, &work, &progress, &job_receiver);
    thread::scope(|scope| {
        let producer = scope.spawn(move || {
            let mut jobs = JobSender { sender: job_sender, progress, limit, sent: 0 };
            produce(&mut jobs)
        });
        for _ in 0..threads {
            let result_sender = result_sender.clone();
            scope.spawn(move || {
                let mut worker = new_worker();
                loop {
                    let job = job_receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, job)) = job else { return };
                    if progress.is_stopped() {
                        continue; // drain
                    }
                    let result = catch_unwind(AssertUnwindSafe(|| work(&mut worker, job)));
                    if result_sender.send((number, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(result_sender);
        let mut early = BTreeMap::new();
        let mut next = 0u64;
        let mut ending: Option<thread::Result<Result<()>>> = None;
        for (number, result) in result_receiver {
            if ending.is_some() {
                continue;
            }
            early.insert(number, result);
            while let Some(result) = early.remove(&next) {
                next += 1;
                progress.advance();
                let collected =
                    result.and_then(|result| catch_unwind(AssertUnwindSafe(|| result.and_then(&mut collect))));
                ending = match collected {
                    Ok(Ok(ControlFlow::Continue(()))) => continue,
                    Ok(Ok(ControlFlow::Break(()))) => Some(Ok(Ok(()))),
                    Ok(Err(error)) => Some(Ok(Err(error))),
                    Err(panic) => Some(Err(panic)),
                };
                progress.stop();
                break;
            }
        }
        let produced = producer.join();
        match ending.unwrap_or(produced) {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
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
    fn a_panic_anywhere_ends_the_work_instead_of_hanging_it() {
        for threads in [1, 3] {
            for place in ["produce", "work", "collect"] {
                let panic_at = |here: &str, n: u64| assert!(place != here || n != 500, "on purpose");
                let run = || {
                    in_order(
                        threads,
                        |jobs| {
                            (0..100_000).take_while(|&n| jobs.send(n)).for_each(|n| panic_at("produce", n));
                            Ok(())
                        },
                        || (),
                        |(), n| {
                            panic_at("work", n);
                            Ok(n)
                        },
                        |n| {
                            panic_at("collect", n);
                            Ok(ControlFlow::Continue(()))
                        },
                    )
                };
                assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{place}");
            }
        }
    }

    #[test]
    fn results_behind_a_slow_job_do_not_pile_up() {
        // The first job ends only when the producer has been stopped for want of room.
        let threads = 2;
        let sent = std::sync::atomic::AtomicU64::new(0);
        let most = UNDER_WAY * threads as u64;
        let result = in_order(
            threads,
            |jobs| {
                (0..200u64).take_while(|&n| jobs.send(n)).for_each(|_| {
                    sent.fetch_add(1, Ordering::SeqCst);
                });
                Ok(())
            },
            || (),
            |(), n| {
                while n == 0 && sent.load(Ordering::SeqCst) < most {
                    thread::yield_now();
                }
                Ok((n, sent.load(Ordering::SeqCst)))
            },
            |(n, sent_by_then)| {
                assert!(n > 0 || sent_by_then <= most);
                Ok(ControlFlow::Continue(()))
            },
        );
        assert!(result.is_ok());
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
