//! Ctrl-C: while the interpreter is released, the calling thread asks now and then whether a signal came.

use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use tensilo::core::{Monitor, Progress};
use tensilo::{Error, Result};

/// Attaching to the interpreter may wait for another thread; this often is enough.
const EVERY: Duration = Duration::from_millis(50);

/// Stops the work when a Python signal handler raises.
#[derive(Debug)]
pub struct Signals {
    asked: Cell<Instant>,
    raised: RefCell<Option<PyErr>>,
}

impl Signals {
    /// Begins to listen.
    pub fn new() -> Self {
        Self { asked: Cell::new(Instant::now()), raised: RefCell::new(None) }
    }

    /// What a handler raised, usually `KeyboardInterrupt`.
    pub fn into_raised(self) -> Option<PyErr> {
        self.raised.into_inner()
    }
}

impl Monitor for Signals {
    fn poll(&self, _: &Progress) -> Result<()> {
        if self.asked.get().elapsed() < EVERY {
            return Ok(());
        }
        let signals = Python::attach(|py| py.check_signals());
        self.asked.set(Instant::now());
        signals.map_err(|e| {
            self.raised.replace(Some(e));
            Error::cancelled()
        })
    }
}
