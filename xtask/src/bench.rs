//! `cargo xtask bench NAME`: runs one comparison of the bench workspace in release.

use crate::workspace::{cargo, target};
use crate::{Outcome, steps};

/// Hands all arguments on to the bench program.
pub fn run(args: &[String]) -> Outcome {
    let mut run =
        cargo(["run", "--quiet", "--release", "--manifest-path", "bench/Cargo.toml", "--target-dir"]);
    run.arg(target()).arg("--").args(args);
    steps::call(run)
}
