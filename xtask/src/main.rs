//! Repository chores: `cargo xtask NAME`. Needs nothing but std, so that it builds in seconds.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a chore prints is its result")]

mod bench;
mod counts;
mod demo;
mod environment;
mod layers;
mod rust_source;
mod sizes;
mod steps;
mod test;
mod tree;
mod workspace;

use std::process::ExitCode;

/// What a chore answers: a one-line reason when it fails.
type Outcome = Result<(), String>;

const USAGE: &str = "\
cargo xtask CHORE

  test          every test: workspace, release, fuzz seeds, Python; makes .venv by itself
  demo          packs the family in examples/family, verifies it, and writes two pictures
  layers        imports point downwards; unsafe code is listed in docs/safety.md
  docs          links and named files exist; nothing in the tree belongs to one machine
  sizes         sizes of the release programs, and source files over 600 lines
  bench NAME    runs one comparison of bench/ in release (`list` names them; --peers compiles more to compare with)
  env           makes .tools and .venv only
  ci            everything that .ci/run does";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or(&[]);
    let outcome = match args.first().map(String::as_str) {
        Some("test") => test::run(),
        Some("demo") => demo::run(),
        Some("layers") => layers::run(),
        Some("docs") => tree::run(),
        Some("sizes") => sizes::run(),
        Some("bench") => bench::run(rest),
        Some("env") => environment::prepare().map(|_| ()),
        Some("ci") => steps::call(workspace::command("bash", [".ci/run"])),
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => Err(format!("no chore is called {other}\n{USAGE}")),
        None => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
