//! How a run ends: exit codes, errors as one line, interruption.

use crate::output::Output;
use std::process::ExitCode;
use tensilo::core::CancelFlag;
use tensilo::{Error, ErrorKind};

/// What a command that ran to its end answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Done, or yes.
    Yes,
    /// It was checked, and the answer is no.
    No,
    /// It could not be examined, and that was printed as the answer.
    Unable,
}

/// Why a command stopped.
#[derive(Debug)]
pub enum Stop {
    /// An error to report.
    Error(Error),
    /// Nobody reads stdout any more.
    BrokenPipe,
}

/// What every command returns.
pub type Outcome<T = Answer> = Result<T, Stop>;

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl From<std::io::Error> for Stop {
    /// An error of writing to stdout.
    fn from(e: std::io::Error) -> Self {
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Self::Error(Error::io("cannot write to stdout", e))
    }
}

/// An error that `sink`-like callbacks use to carry a broken pipe through library code.
pub fn broken_pipe() -> Error {
    Error::new(ErrorKind::Cancelled, "nobody reads the output any more")
}

/// Makes Ctrl-C (and termination) raise the flag; the second time ends the process at once.
///
/// # Errors
/// `Io` when the system does not let us.
pub fn on_interrupt(flag: &CancelFlag) -> Result<(), Error> {
    let flag = flag.clone();
    ctrlc::set_handler(move || {
        if flag.is_cancelled() {
            std::process::exit(130);
        }
        flag.cancel();
    })
    .map_err(|e| Error::new(ErrorKind::Io, format!("cannot watch for Ctrl-C: {e}")))
}

/// Reports how a command ended, and turns it into the process's exit code.
pub fn code(outcome: Outcome, out: &mut Output) -> ExitCode {
    let outcome = match (outcome, out.finish()) {
        (Ok(_), Err(stop)) => Err(stop),
        (outcome, _) => outcome,
    };
    match outcome {
        Ok(Answer::Yes) | Err(Stop::BrokenPipe) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Unable) => ExitCode::from(2),
        Err(Stop::Error(e)) => {
            out.error(&e);
            ExitCode::from(if e.kind() == ErrorKind::Cancelled { 130 } else { 2 })
        }
    }
}
