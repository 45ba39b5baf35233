//! Work on all cores without a standing pool.
//!
//! A parallel operation ([`Threads::for_each`]) starts scoped threads and joins them before it returns, so nothing
//! outlives a call: a process may fork between calls, and a finished operation has left no thread
//! (docs/decisions/0001). The calling thread works too, and polls the [`Monitor`] between units and while it waits for
//! the last ones. Jobs that are shorter than starting a thread takes ([`Threads::beside`]) may leave one standing by
//! for a moment (docs/decisions/0005).

mod beside;
mod claims;
#[cfg(test)]
mod claims_tests;

pub use beside::Beside;

/// What [`claims`] counts with.
mod sync {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering};
}

use crate::error::{Error, Result};
use crate::progress::{Monitor, Progress};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

/// How many threads an operation may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads(NonZeroUsize);

impl Default for Threads {
    /// All cores this process may run on, as many as there were when it was first asked for: finding out takes longer
    /// than many a read.
    fn default() -> Self {
        static CORES: OnceLock<NonZeroUsize> = OnceLock::new();
        Self(*CORES.get_or_init(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)))
    }
}

/// Counts finished work; any worker may add to it.
#[derive(Debug, Default)]
pub struct Done(AtomicU64);

impl Done {
    /// Adds units of progress.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Threads {
    /// One thread: everything happens on the caller's.
    pub const ONE: Self = Self(NonZeroUsize::MIN);

    /// This many threads; 0 means all cores.
    pub fn new(n: usize) -> Self {
        NonZeroUsize::new(n).map_or_else(Self::default, Self)
    }

    /// The number of threads.
    pub fn get(self) -> usize {
        self.0.get()
    }

    /// Begins a job of ten to a few hundred microseconds, which may find a thread standing by. For that the jobs must
    /// follow each other closely; how, is in `docs/decisions/0005-a-thread-that-stands-by.md`.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use tensilo_core::threads::Threads;
    /// let sum = AtomicUsize::new(0);
    /// Threads::default().beside().run(10, &|_, i| {
    ///     sum.fetch_add(i, Ordering::Relaxed);
    /// });
    /// assert_eq!(sum.into_inner(), 45);
    /// ```
    pub fn beside(self) -> Beside {
        if self.get() > 1 { Beside::begin() } else { Beside::ALONE }
    }

    /// Calls `work` once for every index below `count`, each worker with a scratch value of its own.
    ///
    /// Units are handed out in order; they may finish in any order. `work` should take well under 100 ms, as
    /// the monitor is polled between units. `done` is reported as progress of `total`.
    ///
    /// # Errors
    /// The error of the lowest failed index, so that the answer does not depend on the number of threads
    /// (all units below it were run); or the monitor's, when it stops the work.
    pub fn for_each<S>(
        self,
        count: usize,
        monitor: &dyn Monitor,
        stage: &'static str,
        total: u64,
        scratch: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize, &Done) -> Result<()> + Sync,
    ) -> Result<()> {
        let done = Done::default();
        let workers = self.get().min(count);
        monitor.poll(&Progress { stage, done: 0, total })?;
        if workers <= 1 {
            let mut s = scratch();
            for i in 0..count {
                work(&mut s, i, &done)?;
                monitor.poll(&Progress { stage, done: done.get(), total })?;
            }
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        // Lowest failed index and its error; units above it need not be run.
        let failed: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        let barrier = AtomicUsize::new(usize::MAX);
        let running = (Mutex::new(workers - 1), Condvar::new());
        let run_one = |s: &mut S| -> bool {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count || i > barrier.load(Ordering::Relaxed) {
                return false;
            }
            if let Err(e) = work(s, i, &done) {
                let mut slot = failed.lock().unwrap_or_else(|p| p.into_inner());
                if slot.as_ref().is_none_or(|(at, _)| i < *at) {
                    *slot = Some((i, e));
                    barrier.fetch_min(i, Ordering::Relaxed);
                }
            }
            true
        };
        let mut stopped = Ok(());
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|| {
                    let _leave = Leave(&running);
                    let mut s = scratch();
                    while run_one(&mut s) {}
                });
            }
            let poll = |stopped: &mut Result<()>| {
                if stopped.is_ok() {
                    *stopped = monitor.poll(&Progress { stage, done: done.get(), total });
                    if stopped.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            };
            let mut s = scratch();
            while run_one(&mut s) {
                poll(&mut stopped);
            }
            drop(s);
            let mut left = running.0.lock().unwrap_or_else(|p| p.into_inner());
            while *left > 0 {
                (left, _) = running
                    .1
                    .wait_timeout(left, Duration::from_millis(50))
                    .unwrap_or_else(|p| p.into_inner());
                poll(&mut stopped);
            }
        });
        match failed.into_inner().unwrap_or_else(|p| p.into_inner()) {
            Some((_, e)) if stopped.is_ok() => Err(e),
            _ => stopped,
        }
    }
}

/// Counts a worker out, also when it panics.
struct Leave<'a>(&'a (Mutex<usize>, Condvar));

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(|p| p.into_inner()) -= 1;
        self.0.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::{CancelFlag, Quiet};

    #[test]
    fn every_index_is_visited_once_whatever_the_thread_count() {
        for threads in [1, 2, 3, 8] {
            let hits: Vec<AtomicU64> = (0..1000).map(|_| AtomicU64::new(0)).collect();
            Threads::new(threads)
                .for_each(
                    1000,
                    &Quiet,
                    "test",
                    1000,
                    || (),
                    |_, i, d| {
                        hits[i].fetch_add(1, Ordering::Relaxed);
                        d.add(1);
                        Ok(())
                    },
                )
                .unwrap();
            assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn the_lowest_failing_index_is_reported_whatever_the_thread_count() {
        for threads in [1, 2, 4] {
            for _ in 0..50 {
                let e = Threads::new(threads)
                    .for_each(
                        100,
                        &Quiet,
                        "test",
                        0,
                        || (),
                        |_, i, _| {
                            if i == 37 || i > 40 { Err(Error::invalid(i.to_string())) } else { Ok(()) }
                        },
                    )
                    .unwrap_err();
                assert_eq!(e.message(), "37");
            }
        }
    }

    #[test]
    fn a_raised_flag_stops_the_work() {
        let flag = CancelFlag::new();
        let e = Threads::new(2)
            .for_each(
                1_000_000,
                &flag,
                "test",
                0,
                || (),
                |_, i, _| {
                    if i == 10 {
                        flag.cancel();
                    }
                    Ok(())
                },
            )
            .unwrap_err();
        assert_eq!(e.kind(), crate::ErrorKind::Cancelled);
    }
}
