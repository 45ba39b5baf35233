//! Where everything that the program says goes: answers to stdout as [`human`] text or [`json`] lines, notes and
//! [`progress`] to stderr.

pub mod human;
pub mod json;
pub mod picture;
pub mod progress;

use crate::exit::Outcome;
use serde::Serialize;
use std::io::{BufWriter, StderrLock, Stdout, Write};
use tensilo::Error;
use tensilo::core::CancelFlag;

/// The program's voice.
#[derive(Debug)]
pub struct Output {
    stdout: BufWriter<Stdout>,
    json: bool,
    verbose: bool,
    cancel: CancelFlag,
}

impl Output {
    /// Speaks JSON lines or text.
    pub fn new(json: bool, verbose: bool) -> Self {
        Self { stdout: BufWriter::new(std::io::stdout()), json, verbose, cancel: CancelFlag::new() }
    }

    /// Raised by Ctrl-C.
    pub fn cancel(&self) -> &CancelFlag {
        &self.cancel
    }

    /// Were JSON lines asked for?
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// The answer's bytes, as they are.
    pub fn raw(&mut self) -> &mut impl Write {
        &mut self.stdout
    }

    /// One line of the answer.
    ///
    /// # Errors
    /// A broken pipe, or whatever else stops stdout.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Outcome<()> {
        Ok(writeln!(self.stdout, "{text}")?)
    }

    /// One JSON line of the answer, `{"schema":…, …}`.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn json<T: Serialize>(&mut self, schema: &'static str, body: &T) -> Outcome<()> {
        let text = json::line(schema, body)?;
        self.line(text)
    }

    /// Something to know that is not the answer.
    pub fn note(&self, text: impl std::fmt::Display) {
        let _ = writeln!(stderr(), "tensilo: {text}");
    }

    /// Follows a long operation on stderr, and lets Ctrl-C stop it.
    pub fn monitor(&self) -> progress::Bar {
        progress::Bar::new(self.cancel.clone())
    }

    /// As [`monitor`](Self::monitor), for work that asks from several threads.
    pub fn shared_monitor(&self) -> progress::SharedBar {
        progress::SharedBar::new(self.monitor())
    }

    /// Reports an error: one line, a hint where there is one, causes when asked for; also as the last JSON line.
    pub fn error(&mut self, e: &Error) {
        let mut stderr = stderr();
        let _ = writeln!(stderr, "tensilo: {e}");
        if let Some(hint) = e.hint_text() {
            let _ = writeln!(stderr, "hint: {hint}");
        }
        if self.verbose {
            let mut cause = std::error::Error::source(e);
            while let Some(c) = cause {
                let _ = writeln!(stderr, "caused by: {c}");
                cause = c.source();
            }
        }
        drop(stderr);
        if self.json {
            let _ = self.json("tensilo.error/1", &json::ErrorView::from(e));
            let _ = self.finish();
        }
    }

    /// Hands everything over to stdout.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn finish(&mut self) -> Outcome<()> {
        Ok(self.stdout.flush()?)
    }
}

fn stderr() -> StderrLock<'static> {
    std::io::stderr().lock()
}
