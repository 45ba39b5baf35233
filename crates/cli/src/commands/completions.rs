//! `tensilo completions`: a script that teaches a shell the commands.

use crate::arguments::Arguments;
use crate::exit::{Answer, Outcome};
use crate::output::Output;
use clap::{Args, CommandFactory};
use std::io::Write;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// Prints the script.
pub fn run(a: &CompletionsArguments, out: &mut Output) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(a.shell, &mut Arguments::command(), "tensilo", &mut script);
    out.raw().write_all(&script)?;
    Ok(Answer::Yes)
}
