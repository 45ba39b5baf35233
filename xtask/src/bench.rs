//! `cargo xtask bench NAME [--peers]`: runs one comparison of the bench workspace in release; with the peers that must be
//! compiled first, if asked.

use crate::workspace::{cargo, target};
use crate::{Outcome, steps};

/// Hands all arguments but `--peers` on to the bench program.
pub fn run(args: &[String]) -> Outcome {
    let mut run =
        cargo(["run", "--quiet", "--release", "--manifest-path", "bench/Cargo.toml", "--target-dir"]);
    run.arg(target());
    if args.iter().any(|a| a == "--peers") {
        run.args(["--features", "peers"]);
    }
    run.arg("--").args(args.iter().filter(|a| *a != "--peers"));
    steps::call(run)
}
