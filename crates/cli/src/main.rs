//! The `tensilo` program: arguments in, answer on stdout, talk on stderr, an exit code that can be relied on.
//!
//! One file per command in [`commands`]; what they say goes through [`output`], how they end through [`exit`].

mod arguments;
mod commands;
mod exit;
mod output;

use arguments::{Arguments, Command};
use clap::Parser;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = Output::new(arguments.json, arguments.verbose);
    let result =
        exit::on_interrupt(out.cancel()).map_err(Into::into).and_then(|()| run(&arguments.command, &mut out));
    exit::code(result, &mut out)
}

fn run(command: &Command, out: &mut Output) -> exit::Outcome {
    match command {
        Command::Ls(a) => commands::ls::run(a, out),
        Command::Info(a) => commands::info::run(a, out),
        Command::Read(a) => commands::read::run(a, out),
        Command::Plan(a) => commands::plan::run(a, out),
        Command::Chunks(a) => commands::chunks::run(a, out),
        Command::Diff(a) => commands::diff::run(a, out),
        Command::Check(a) => commands::check::run(a, out),
        Command::Dump(a) => commands::dump::run(a, out),
        Command::Digest(a) => commands::digest::run(a, out),
        Command::Repack(a) => commands::repack::run(a, out),
        Command::Copy(a) => commands::copy::run(a, out),
        Command::Convert(a) => commands::convert::run(a, out),
        Command::Pack(a) => commands::pack::run(a, out),
        Command::Lanes(a) => commands::lanes::run(a, out),
        Command::Records(a) => commands::records::run(a, out),
        Command::Completions(a) => commands::completions::run(a, out),
        Command::Man => commands::man::run(out),
    }
}
