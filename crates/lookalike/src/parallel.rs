//! Producers, many workers, one collector that sees each producer's results in the order of production.
//!
//! Guaranteed: the collector's view does not depend on the number of workers; what is produced but
//! not yet worked on is bounded; the first error anywhere stops everything.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crate::error::Result;

/// Jobs that have been produced and not collected yet, for each worker: one slow job cannot pile up
/// the results of all that come after it.
const UNDER_WAY: u64 = 4;

/// How far the collector is with each unit.
struct Progress {
    collected: Mutex<Vec<u64>>,
    changed: Condvar,
    stopped: AtomicBool,
}

impl Progress {
    fn new(units: usize) -> Progress {
        Progress { collected: Mutex::new(vec![0; units]), changed: Condvar::new(), stopped: AtomicBool::new(false) }
    }

    /// Waits until fewer than `limit` jobs of a unit are under way; false: the work has been given up.
    fn wait_for_room(&self, unit: usize, sent: u64, limit: u64) -> bool {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        while sent - collected[unit] >= limit && !self.is_stopped() {
            collected = self.changed.wait(collected).unwrap_or_else(PoisonError::into_inner);
        }
        !self.is_stopped()
    }

    fn advance(&self, unit: usize) {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)[unit] += 1;
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

/// Takes a producer's jobs.
pub struct JobSender<'a, J> {
    sender: &'a Sender<(usize, u64, J)>,
    progress: &'a Progress,
    unit: usize,
    limit: u64,
    sent: u64,
}

impl<J> JobSender<'_, J> {
    /// Hands a job on; waits while too many are under way. False: the work has been given up, stop.
    pub fn send(&mut self, job: J) -> bool {
        let has_room = self.progress.wait_for_room(self.unit, self.sent, self.limit);
        if !has_room || self.sender.send((self.unit, self.sent, job)).is_err() {
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
    let produce = Mutex::new(Some(produce));
    let produce = |_unit: usize, jobs: &mut JobSender<'_, J>| {
        let produce = produce.lock().unwrap_or_else(PoisonError::into_inner).take();
        produce.map_or(Ok(()), |produce| produce(jobs))
    };
    in_lanes(
        threads,
        1,
        1,
        produce,
        new_worker,
        |worker, _, job| work(worker, job),
        |event| match event {
            Event::Result(_, result) => collect(result),
            Event::End(_, ()) => Ok(ControlFlow::Continue(())),
        },
    )
}

/// A unit, and how many jobs of it were produced before this one.
pub type JobNumber = (usize, u64);

/// What the collector of lanes receives.
pub enum Event<R, E> {
    /// The next result of a unit.
    Result(usize, R),
    /// A unit is over: all its results have been handed over, and this is what its producer returned.
    End(usize, E),
}

enum Message<R, E> {
    Worked(usize, u64, thread::Result<Result<R>>),
    Produced(usize, u64, thread::Result<Result<E>>),
}

/// A unit, as the collector sees it.
struct Unit<R, E> {
    early: BTreeMap<u64, thread::Result<Result<R>>>,
    next: u64,
    /// How many results there will be, and what the producer returned.
    end: Option<(u64, thread::Result<Result<E>>)>,
}

/// Runs `produce` for every unit, in ascending order, `lanes` of them at a time, `work` in `threads`
/// more, and `collect` here, until it breaks: it sees the results of each unit in order, those of different
/// units in the order in which they arrive.
///
/// # Errors
/// The first error of any of the three. A panic in any of them goes on here.
pub fn in_lanes<J: Send, R: Send, E: Send, W>(
    threads: usize,
    lanes: usize,
    units: usize,
    produce: impl Fn(usize, &mut JobSender<'_, J>) -> Result<E> + Sync,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, JobNumber, J) -> Result<R> + Sync,
    mut collect: impl FnMut(Event<R, E>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let threads = threads.max(1);
    let lanes = lanes.clamp(1, units.max(1));
    let limit = (UNDER_WAY * threads as u64).div_ceil(lanes as u64).max(2);
    let progress = Progress::new(units);
    let next_unit = AtomicUsize::new(0);
    let (job_sender, job_receiver) = mpsc::channel();
    let job_receiver = Mutex::new(job_receiver);
    let (message_sender, messages) = mpsc::channel();
    let (produce, new_worker, work) = (&produce, &new_worker, &work);
    let (progress, job_receiver, next_unit) = (&progress, &job_receiver, &next_unit);
    thread::scope(|scope| {
        for _ in 0..lanes {
            let (job_sender, message_sender) = (job_sender.clone(), message_sender.clone());
            scope.spawn(move || {
                loop {
                    let unit = next_unit.fetch_add(1, Ordering::Relaxed);
                    if unit >= units || progress.is_stopped() {
                        return;
                    }
                    let mut jobs = JobSender { sender: &job_sender, progress, unit, limit, sent: 0 };
                    let end = catch_unwind(AssertUnwindSafe(|| produce(unit, &mut jobs)));
                    if message_sender.send(Message::Produced(unit, jobs.sent, end)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(job_sender);
        for _ in 0..threads {
            let message_sender = message_sender.clone();
            scope.spawn(move || {
                let mut worker = new_worker();
                loop {
                    let job = job_receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((unit, number, job)) = job else { return };
                    if progress.is_stopped() {
                        continue; // drain
                    }
                    let result = catch_unwind(AssertUnwindSafe(|| work(&mut worker, (unit, number), job)));
                    if message_sender.send(Message::Worked(unit, number, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(message_sender);
        let mut states: Vec<Unit<R, E>> =
            (0..units).map(|_| Unit { early: BTreeMap::new(), next: 0, end: None }).collect();
        let mut ending: Option<thread::Result<Result<()>>> = None;
        for message in messages {
            if ending.is_some() {
                continue;
            }
            let unit = match message {
                Message::Worked(unit, number, result) => {
                    states[unit].early.insert(number, result);
                    unit
                }
                Message::Produced(unit, sent, end) => {
                    states[unit].end = Some((sent, end));
                    unit
                }
            };
            ending = deliver(unit, &mut states[unit], progress, &mut collect);
            if ending.is_some() {
                progress.stop();
            }
        }
        match ending {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
        }
    })
}

/// Tells the collector what is ready of a unit; returns how the work ends, if it does.
fn deliver<R, E>(
    unit: usize,
    state: &mut Unit<R, E>,
    progress: &Progress,
    collect: &mut impl FnMut(Event<R, E>) -> Result<ControlFlow<()>>,
) -> Option<thread::Result<Result<()>>> {
    let mut ended = |event: thread::Result<Result<Event<R, E>>>| {
        let delivered = event.and_then(|event| catch_unwind(AssertUnwindSafe(|| event.and_then(&mut *collect))));
        match delivered {
            Ok(Ok(ControlFlow::Continue(()))) => None,
            Ok(Ok(ControlFlow::Break(()))) => Some(Ok(Ok(()))),
            Ok(Err(error)) => Some(Ok(Err(error))),
            Err(panic) => Some(Err(panic)),
        }
    };
    while let Some(result) = state.early.remove(&state.next) {
        state.next += 1;
        progress.advance(unit);
        let ending = ended(result.map(|result| result.map(|result| Event::Result(unit, result))));
        if ending.is_some() {
            return ending;
        }
    }
    let (_, end) = state.end.take_if(|end| end.0 == state.next)?;
    ended(end.map(|end| end.map(|end| Event::End(unit, end))))
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
            |(), n| if Some(n) == fail_at { Err(Error::conflict("job", n.to_string())) } else { Ok(n * n) },
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
    fn every_lane_is_in_order_and_ends_after_its_last_result() {
        for (threads, lanes) in [(1, 1), (2, 3), (4, 9)] {
            let mut seen: Vec<(Vec<u64>, Option<u64>)> = vec![(Vec::new(), None); 5];
            let result = in_lanes(
                threads,
                lanes,
                5,
                |unit, jobs| {
                    let count = 10 * unit as u64;
                    (0..count).take_while(|&n| jobs.send(n)).for_each(drop);
                    Ok(count)
                },
                || (),
                |(), (_, number), n| if number == n { Ok(n) } else { Err(Error::conflict("job", n.to_string())) },
                |event| {
                    match event {
                        Event::Result(unit, n) => {
                            assert_eq!(seen[unit].1, None, "nothing comes after the end");
                            seen[unit].0.push(n);
                        }
                        Event::End(unit, count) => seen[unit].1 = Some(count),
                    }
                    Ok(ControlFlow::Continue(()))
                },
            );
            assert!(result.is_ok());
            for (unit, (numbers, end)) in seen.iter().enumerate() {
                assert_eq!((numbers.clone(), *end), ((0..10 * unit as u64).collect(), Some(10 * unit as u64)));
            }
        }
    }

    #[test]
    fn the_first_error_in_order_is_the_one_reported() {
        for threads in [1, 3] {
            let (seen, result) = squares(threads, Some(500));
            assert_eq!(seen.len(), 500);
            assert_eq!(result.map_err(|error| error.to_string()), Err("`job`: 500".to_owned()));
        }
    }
}
