//! `fork` while threads read: the child has a copy of every lock but not the threads that hold them.
//!
//! Two remedies. Whoever forks deliberately calls [`pause`] before and [`resume`] after: no loader then reads from a
//! store at that moment, so no lock inside a store is held. And everything a loader's threads share is left alone by
//! a process with another id than the one that made it (see `Home`).

use std::cell::RefCell;
use std::sync::{Condvar, Mutex, MutexGuard};

/// How many loaders' threads read from a store.
static READING: Mutex<usize> = Mutex::new(0);
static FEWER: Condvar = Condvar::new();

thread_local! {
    /// What keeps readers out between [`pause`] and [`resume`], and how often it was asked for.
    static HELD: RefCell<(usize, Option<MutexGuard<'static, usize>>)> = const { RefCell::new((0, None)) };
}

fn reading() -> MutexGuard<'static, usize> {
    READING.lock().unwrap_or_else(|p| p.into_inner())
}

/// Keeps loaders from reading until this thread calls [`resume`], and waits for those that read now.
pub fn pause() {
    HELD.with_borrow_mut(|(times, held)| {
        *times += 1;
        if held.is_none() {
            let mut count = reading();
            while *count > 0 {
                count = FEWER.wait(count).unwrap_or_else(|p| p.into_inner());
            }
            *held = Some(count);
        }
    });
}

/// Lets loaders read again: once for each [`pause`], in the parent and in the child.
pub fn resume() {
    HELD.with_borrow_mut(|(times, held)| {
        *times = times.saturating_sub(1);
        if *times == 0 {
            *held = None;
        }
    });
}

/// Counts as reading as long as it lives.
#[derive(Debug)]
pub(crate) struct Reading;

impl Reading {
    /// Waits while reading is paused.
    pub fn begin() -> Self {
        *reading() += 1;
        Self
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        *reading() -= 1;
        FEWER.notify_all();
    }
}

/// The process that something was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home(u32);

impl Home {
    pub fn here() -> Self {
        Self(std::process::id())
    }

    /// Is this another process?
    pub fn left(self) -> bool {
        self.0 != std::process::id()
    }
}
