//! What all clients share: memory for what they send, and places for requests that are worked on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, ProblemKind};

/// Requests that hold no more than this are small.
const SMALL: usize = 256 << 10;
/// The share of the memory that is kept for small ones: a few large bodies do not keep everybody else out.
const KEPT_FOR_SMALL: usize = 8;
/// How often it is looked whether there is memory for a large one.
const PAUSE: Duration = Duration::from_millis(10);

/// Memory for bodies, for the lines of batches and for responses that wait to be read, in bytes.
pub(crate) struct MemoryBudget {
    left: Arc<Semaphore>,
    total: AtomicUsize,
}

impl MemoryBudget {
    pub(crate) fn new(bytes: usize) -> MemoryBudget {
        let bytes = bytes.min(Semaphore::MAX_PERMITS);
        MemoryBudget { left: Arc::new(Semaphore::new(bytes)), total: bytes.into() }
    }

    /// Nothing yet; it grows.
    pub(crate) fn reservation(self: &Arc<MemoryBudget>) -> Reservation {
        Reservation { budget: Arc::clone(self), held: None }
    }

    /// Bytes that are in use.
    pub(crate) fn used(&self) -> usize {
        self.total.load(Ordering::Relaxed).saturating_sub(self.left.available_permits())
    }

    /// Changes the total. What is in use stays in use: a smaller budget takes effect as memory is given back.
    pub(crate) fn resize(&self, bytes: usize) {
        let bytes = bytes.min(Semaphore::MAX_PERMITS);
        let before = self.total.swap(bytes, Ordering::Relaxed);
        if bytes >= before {
            self.left.add_permits(bytes - before);
        } else {
            let missing = before - bytes - self.left.forget_permits(before - bytes);
            // They are forgotten when they come back.
            let left = Arc::clone(&self.left);
            tokio::spawn(async move {
                for part in parts(missing) {
                    if let Ok(permits) = left.acquire_many(part).await {
                        permits.forget();
                    }
                }
            });
        }
    }
}

/// A number in parts that fit 32 bits.
fn parts(mut bytes: usize) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let part = u32::try_from(bytes).unwrap_or(u32::MAX);
        bytes -= part as usize;
        (part > 0).then_some(part)
    })
}

/// Memory that one request holds; it is given back when this is dropped.
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    held: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    pub(crate) fn bytes(&self) -> usize {
        self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Holds `bytes` in all from now on, if there are as many.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Problem> {
        let wanted = bytes.saturating_sub(self.bytes());
        let kept = if bytes > SMALL { self.budget.total.load(Ordering::Relaxed) / KEPT_FOR_SMALL } else { 0 };
        if self.budget.left.available_permits() < wanted.saturating_add(kept) {
            return Err(no_memory());
        }
        for part in parts(wanted) {
            let more = Arc::clone(&self.budget.left).try_acquire_many_owned(part).map_err(|_| no_memory())?;
            self.add(more);
        }
        Ok(())
    }

    /// Holds `bytes` in all from now on; waits for others to give memory back.
    pub(crate) async fn wait_to_grow_to(&mut self, bytes: usize, time: Duration) -> Result<(), Problem> {
        if bytes > SMALL {
            let end = Instant::now() + time;
            while let Err(problem) = self.grow_to(bytes) {
                if Instant::now() >= end {
                    return Err(problem);
                }
                tokio::time::sleep(PAUSE).await;
            }
            return Ok(());
        }
        for part in parts(bytes.saturating_sub(self.bytes())) {
            let more = tokio::time::timeout(time, Arc::clone(&self.budget.left).acquire_many_owned(part)).await;
            self.add(more.map_err(|_| no_memory())?.expect("this semaphore is never closed"));
        }
        Ok(())
    }

    fn add(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
    }
}

pub(crate) fn no_memory() -> Problem {
    ProblemKind::TooBusy.with(
        "the requests of all clients hold as much memory as the service gives them (limits.body_memory); try again in a moment",
    )
}

/// Places of which each is taken by one at a time.
#[derive(Default)]
pub(crate) struct Slots {
    used: AtomicUsize,
}

impl Slots {
    /// A place, if fewer than `limit` are taken.
    pub(crate) fn take(self: &Arc<Slots>, limit: usize) -> Option<Slot> {
        let more = |used: usize| (used < limit).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Slot(Arc::clone(self)))
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// A place that is free again when this is dropped.
pub(crate) struct Slot(Arc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_is_shared_and_given_back() {
        let budget = Arc::new(MemoryBudget::new(100));
        let mut first = budget.reservation();
        first.grow_to(60).unwrap();
        let mut second = budget.reservation();
        assert_eq!(second.grow_to(50).map_err(|problem| problem.status), Err(503));
        second.grow_to(40).unwrap();
        assert_eq!(budget.used(), 100);
        drop(first);
        assert_eq!(budget.used(), 40);
        second.wait_to_grow_to(100, Duration::from_secs(60)).await.unwrap();
        assert!(second.wait_to_grow_to(101, Duration::ZERO).await.is_err());
        budget.resize(150);
        second.grow_to(150).unwrap();
        budget.resize(100);
        drop(second);
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        let mut third = budget.reservation();
        assert!(third.grow_to(101).is_err() && third.grow_to(100).is_ok());
    }

    #[tokio::test]
    async fn large_ones_leave_something_for_small_ones() {
        let budget = Arc::new(MemoryBudget::new(8 << 20));
        let mut large = budget.reservation();
        assert!(large.grow_to((7 << 20) + 1).is_err() && large.grow_to(7 << 20).is_ok());
        assert!(budget.reservation().wait_to_grow_to(SMALL + 1, Duration::ZERO).await.is_err());
        let small: Vec<Reservation> = (0..4).map(|_| budget.reservation()).collect();
        for mut one in small {
            one.grow_to(SMALL).unwrap();
            std::mem::forget(one);
        }
        assert!(budget.reservation().grow_to(1).is_err());
    }

    #[test]
    fn a_place_is_free_again_when_it_is_left() {
        let slots = Arc::new(Slots::default());
        let (one, two) = (slots.take(2), slots.take(2));
        assert!(one.is_some() && two.is_some() && slots.take(2).is_none());
        drop(one);
        assert_eq!(slots.used(), 1);
        assert!(slots.take(2).is_some());
    }
}
