//! `cargo xtask test`: every test there is. Parts that do not exist (Python package, fuzz seeds) are not run.

use crate::steps::Steps;
use crate::workspace::{cargo, command, root, target};
use crate::{Outcome, environment};
use std::path::Path;
use std::process::Command;

/// Runs all of them, whatever fails, and closes with `N passed, N failed`.
pub fn run() -> Outcome {
    let mut steps = Steps::default();
    steps.measure("environment", |_| environment::prepare().map(|_| ()));
    let python = environment::python();
    let prepared = |mut c: Command| {
        c.env("TENSILO_PYTHON", &python).env("PYO3_PYTHON", &python).env("PYTHONDONTWRITEBYTECODE", "1");
        c
    };
    // Features that are off by default have doc tests too.
    let workspace = cargo(["test", "--workspace", "--features", "tensilo/ndarray", "--no-fail-fast"]);
    steps.run("workspace tests", prepared(workspace));
    // Integration tests again, as they are shipped.
    let release = cargo(["test", "--release", "--workspace", "--no-fail-fast", "--test", "*"]);
    steps.run("integration tests in release", prepared(release));
    if root().join("fuzz/Cargo.toml").is_file() {
        let mut fuzz =
            cargo(["test", "--no-fail-fast", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
        fuzz.arg(target());
        steps.run("fuzz seeds", prepared(fuzz));
    }
    if root().join("python/pyproject.toml").is_file() {
        python_package(&mut steps, &python, prepared);
    }
    steps.finish()
}

/// Builds the Python package into `.venv`, then runs its tests and compares its stubs with the binary.
fn python_package(steps: &mut Steps, python: &Path, prepared: impl Fn(Command) -> Command) {
    let bin = python.parent().unwrap_or(Path::new(""));
    let path = std::env::var("PATH").unwrap_or_default();
    let tools = root().join(".tools/bin");
    let mut build = prepared(command(bin.join("maturin"), ["develop", "--uv", "--release", "--quiet"]));
    build
        .current_dir(root().join("python"))
        .env("VIRTUAL_ENV", root().join(".venv"))
        .env("PATH", format!("{}:{}:{path}", bin.display(), tools.display()));
    steps.run("python: build", build);
    let mut tests = prepared(command(python, ["-m", "pytest", "-p", "no:cacheprovider", "tests"]));
    // Those with PyTorch run in the environment that has it.
    tests.arg("--ignore=tests/test_torch.py").current_dir(root().join("python"));
    steps.run("python: tests", tests);
    steps.measure("python: PyTorch", |_| environment::prepare_torch().map(|_| ()));
    if let Some(torch) = environment::torch() {
        let mut tests =
            prepared(command(torch, ["-m", "pytest", "-p", "no:cacheprovider", "tests/test_torch.py"]));
        // Without what only the other environment has.
        let folder = root().join("python");
        let modules = format!("{}:{}", folder.display(), folder.join("tests").display());
        tests.args(["--noconftest", "-p", "absent"]).current_dir(folder).env("PYTHONPATH", modules);
        steps.run("python: tests with PyTorch", tests);
    }
    let mut stubs = prepared(command(python, ["-m", "mypy.stubtest", "tensilo"]));
    // Not in python/: there the package's sources would shadow the installed package.
    stubs.current_dir(target());
    steps.run("python: stubs", stubs);
}
