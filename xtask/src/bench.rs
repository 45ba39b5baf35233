//! `cargo xtask bench NAME [--peers]`: runs one comparison of the bench workspace in release; with the peers that must be
//! compiled first, if asked.

use crate::workspace::{cargo, target};
use crate::{Outcome, steps};
use std::path::PathBuf;

/// Hands all arguments but `--peers` on to the bench program.
pub fn run(args: &[String]) -> Outcome {
    let mut run =
        cargo(["run", "--quiet", "--release", "--manifest-path", "bench/Cargo.toml", "--target-dir"]);
    run.arg(target());
    if args.iter().any(|a| a == "--peers") {
        run.args(["--features", "peers"]);
        // rust-hdf5 uses half of the cores unless told.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        run.env("RUST_HDF5_IO_THREADS", cores.to_string());
        if args.iter().any(|a| a == "hdf5-read")
            && let Some(path) = hidefix()
        {
            run.env("TENSILO_BENCH_HIDEFIX", path);
        }
    }
    run.arg("--").args(args.iter().filter(|a| *a != "--peers"));
    steps::call(run)
}

/// Compiles the program around hidefix, which compiles libhdf5; `None` where that fails.
fn hidefix() -> Option<PathBuf> {
    let folder = target().join("hidefix");
    let mut build = cargo([
        "build",
        "--quiet",
        "--release",
        "--manifest-path",
        "bench/hidefix/Cargo.toml",
        "--target-dir",
    ]);
    build.arg(&folder);
    if steps::call(build).is_err() {
        eprintln!("hidefix is left out: it did not compile; it needs CMake and a C compiler");
        return None;
    }
    Some(folder.join("release").join("tensilo-bench-hidefix"))
}
