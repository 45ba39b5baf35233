//! h5py as a contestant: one Python process that does what a line tells it, so that its start is not timed.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Runs statements, one line after the other, and answers `ok` after each.
const SERVER: &str = "
import sys, time, h5py, hdf5plugin, numpy as np
def seconds(statements):
    statements = compile(statements, 'timed', 'exec')
    begin = time.perf_counter()
    exec(statements, globals())
    return time.perf_counter() - begin
for line in sys.stdin:
    exec(line, globals())
    print('ok', flush=True)
";

/// A Python that waits for statements.
pub struct Python {
    child: RefCell<Child>,
    to: RefCell<ChildStdin>,
    from: RefCell<BufReader<ChildStdout>>,
}

impl Python {
    /// Starts the test environment's Python, if there is one.
    pub fn start() -> Option<Self> {
        let mut child = Command::new(interpreter())
            .args(["-c", SERVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (to, from) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let python = Self { child: RefCell::new(child), to: RefCell::new(to), from: RefCell::new(from) };
        python.answers("pass").then_some(python)
    }

    /// Runs statements, which stand on one line.
    ///
    /// # Panics
    /// When Python fails: what it has to do must work.
    pub fn run(&self, statements: &str) {
        assert!(self.answers(statements), "Python failed at: {statements}");
    }

    /// The value of an expression, as Python prints it on one line.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn ask(&self, expression: &str) -> String {
        let mut line = String::new();
        writeln!(self.to.borrow_mut(), "print({expression})").expect("Python listens");
        self.from.borrow_mut().read_line(&mut line).expect("Python answers");
        let mut ok = String::new();
        self.from.borrow_mut().read_line(&mut ok).expect("Python answers");
        assert_eq!(ok, "ok\n", "Python failed at: {expression}");
        line.trim().to_owned()
    }

    /// Seconds that statements take by Python's own clock, without the way to Python and back.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn seconds(&self, statements: &str) -> f64 {
        self.ask(&format!("seconds({statements:?})")).parse().expect("a number")
    }

    fn answers(&self, statements: &str) -> bool {
        let mut line = String::new();
        writeln!(self.to.borrow_mut(), "{statements}").is_ok()
            && self.from.borrow_mut().read_line(&mut line).is_ok()
            && line == "ok\n"
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let mut child = self.child.borrow_mut();
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn interpreter() -> PathBuf {
    match std::env::var_os("TENSILO_PYTHON").filter(|v| !v.is_empty()) {
        Some(python) => python.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/python"),
    }
}
