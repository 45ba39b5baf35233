//! Progress of long work, and the wish to stop it: one callback, polled on the calling thread.

use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far an operation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// What is being done, in one or two words: `"hashing source"`.
    pub stage: &'static str,
    /// Units done; bytes unless the stage says otherwise.
    pub done: u64,
    /// Units in all, 0 when unknown.
    pub total: u64,
}

/// Is told of progress and may ask to stop.
///
/// Long operations call [`poll`](Monitor::poll) on the thread that called them, at least every 100 ms and
/// between units of work. An error stops the operation, which then leaves nothing behind.
pub trait Monitor {
    /// Takes note of the progress.
    ///
    /// # Errors
    /// Any error stops the work; [`Error::cancelled`] is the usual one.
    fn poll(&self, progress: &Progress) -> Result<()>;
}

/// A monitor that says nothing and never stops anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Monitor for Quiet {
    fn poll(&self, _: &Progress) -> Result<()> {
        Ok(())
    }
}

impl<F: Fn(&Progress) -> Result<()>> Monitor for F {
    fn poll(&self, progress: &Progress) -> Result<()> {
        self(progress)
    }
}

/// A flag that any thread or signal handler may raise to stop an operation.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Was it raised?
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Monitor for CancelFlag {
    fn poll(&self, _: &Progress) -> Result<()> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }
}
