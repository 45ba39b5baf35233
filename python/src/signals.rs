//! Ctrl-C and callbacks: while the interpreter is released, the calling thread asks now and then whether a signal came,
//! tells how far it is, and asks whether to stop.

use crate::errors::exception;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use tensilo::core::{Monitor, Progress};
use tensilo::{Error, Result};

/// Attaching to the interpreter may wait for another thread; this often is enough.
pub const EVERY: Duration = Duration::from_millis(50);

/// What the caller of a long operation wants to be asked and told.
#[derive(Debug, Default)]
pub struct Callbacks {
    /// Called with the stage, what is done of it and what there is in all (0 when that is not known).
    pub progress: Option<Py<PyAny>>,
    /// Called without arguments; the work stops when it returns true.
    pub should_cancel: Option<Py<PyAny>>,
}

/// Stops the work when a signal handler or a callback raises, or when it is told to.
#[derive(Debug)]
pub struct Signals {
    asked: Cell<Instant>,
    stage: Cell<&'static str>,
    callbacks: Callbacks,
    raised: RefCell<Option<PyErr>>,
}

impl Signals {
    /// Begins to listen.
    pub fn new(callbacks: Callbacks) -> Self {
        Self { asked: Cell::new(Instant::now()), stage: Cell::new(""), callbacks, raised: RefCell::new(None) }
    }

    /// What a handler raised, usually `KeyboardInterrupt`.
    pub fn into_raised(self) -> Option<PyErr> {
        self.raised.into_inner()
    }

    /// Asks and tells; true means to stop.
    fn ask(&self, py: Python<'_>, p: &Progress) -> PyResult<bool> {
        py.check_signals()?;
        if let Some(progress) = self.callbacks.progress.as_ref().filter(|_| !p.stage.is_empty()) {
            progress.call1(py, (p.stage, p.done, p.total))?;
        }
        match &self.callbacks.should_cancel {
            Some(should_cancel) => should_cancel.call0(py)?.bind(py).is_truthy(),
            None => Ok(false),
        }
    }
}

impl Monitor for Signals {
    fn poll(&self, progress: &Progress) -> Result<()> {
        let listens = self.callbacks.progress.is_some() || self.callbacks.should_cancel.is_some();
        // A listener hears of every stage, however short it is.
        let begins = listens && self.stage.replace(progress.stage) != progress.stage;
        if !begins && self.asked.get().elapsed() < EVERY {
            return Ok(());
        }
        let answer = Python::attach(|py| self.ask(py, progress));
        self.asked.set(Instant::now());
        match answer {
            Ok(false) => Ok(()),
            Ok(true) => Err(Error::cancelled()),
            Err(e) => {
                self.raised.replace(Some(e));
                Err(Error::cancelled())
            }
        }
    }
}

/// Runs `work` without the interpreter, but stops it when a signal handler or a callback raises.
///
/// # Errors
/// What was raised, or the exception of the work's error.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    callbacks: Callbacks,
    work: impl FnOnce(&dyn Monitor) -> Result<T> + Send,
) -> PyResult<T> {
    interruptible_as(py, callbacks, work, exception)
}

/// [`interruptible`] for work whose errors are exceptions of another kind.
///
/// # Errors
/// What was raised, or what `exception` makes of the work's error.
pub fn interruptible_as<T: Send>(
    py: Python<'_>,
    callbacks: Callbacks,
    work: impl FnOnce(&dyn Monitor) -> Result<T> + Send,
    exception: impl FnOnce(Python<'_>, &Error) -> PyErr,
) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        let signals = Signals::new(callbacks);
        (work(&signals), signals.into_raised())
    });
    match (result, raised) {
        (_, Some(raised)) => Err(raised),
        (Ok(value), None) => Ok(value),
        (Err(e), None) => Err(exception(py, &e)),
    }
}
