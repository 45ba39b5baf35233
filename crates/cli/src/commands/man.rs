//! `tensilo man`: the manual page, in roff.

use crate::arguments::Arguments;
use crate::exit::{Answer, Outcome};
use crate::output::Output;
use clap::CommandFactory;
use std::io::Write;

/// Prints the page, with a section for every command behind it.
pub fn run(out: &mut Output) -> Outcome {
    let mut page = Vec::new();
    let command = Arguments::command();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    out.raw().write_all(&page)?;
    Ok(Answer::Yes)
}
