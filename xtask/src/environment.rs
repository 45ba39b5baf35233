//! The Python side of the tests: `.tools` (uv, typos) and `.venv` (h5py, hdf5plugin, numpy, …), both pinned by hash
//! in `python/requirements/`.

use crate::steps;
use crate::workspace::{command, root};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The interpreter of the test environment.
pub fn python() -> PathBuf {
    root().join(".venv/bin/python")
}

/// A program of `.tools`.
pub fn tool(name: &str) -> PathBuf {
    root().join(".tools/bin").join(name)
}

/// Makes or brings up to date both environments, and returns the test environment's interpreter.
pub fn prepare() -> Result<PathBuf, String> {
    tools()?;
    let python = python();
    steps::call(command(
        tool("uv"),
        ["venv", "--quiet", "--allow-existing", "--python", ".tools/bin/python", ".venv"],
    ))?;
    let mut sync = command(tool("uv"), ["pip", "sync", "--quiet", "--require-hashes", "--python"]);
    sync.arg(&python).args(["python/requirements/test.txt", "python/requirements/layouts.txt"]);
    steps::call(sync)?;
    Ok(python)
}

/// The interpreter that has the system's PyTorch, if it has.
pub fn torch() -> Option<PathBuf> {
    let python = root().join(".venv-torch/bin/python");
    imports(&python, "torch, pytest").then_some(python)
}

/// Makes `.venv-torch`: the system's packages, PyTorch among them, and what its tests need. Without the system's
/// PyTorch it says so, which is an error when everything must run.
pub fn prepare_torch() -> Result<(), String> {
    let system = PathBuf::from("/usr/bin/python3");
    if !imports(&system, "torch") {
        let tests = std::fs::read_to_string(root().join("python/tests/test_torch.py")).unwrap_or_default();
        let tests = tests.lines().filter(|l| l.starts_with("def test_")).count();
        let line = format!("skipped: needs the system's PyTorch, package python3-torch ({tests} tests)");
        let required = std::env::var_os("TENSILO_REQUIRE").is_some_and(|v| !v.is_empty());
        if required {
            return Err(line);
        }
        println!("{line}");
        return Ok(());
    }
    steps::call(command(
        tool("uv"),
        ["venv", "--quiet", "--allow-existing", "--system-site-packages", "--python", "/usr/bin/python3"]
            .into_iter()
            .chain([".venv-torch"]),
    ))?;
    let install = |more: &[&str]| {
        let mut install = command(tool("uv"), ["pip", "install", "--quiet", "--require-hashes", "--python"]);
        install.arg(root().join(".venv-torch/bin/python")).args(more);
        steps::call(install)
    };
    install(&["-r", "python/requirements/torch.txt"])?;
    install(&["--no-deps", "-r", "python/requirements/torchdata.txt"])
}

fn imports(python: &std::path::Path, modules: &str) -> bool {
    Command::new(python)
        .args(["-c", &format!("import {modules}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Makes `.tools`: a virtual environment whose pip brings uv, which then does the rest.
fn tools() -> Result<(), String> {
    let system = ["python3.11", "python3"]
        .into_iter()
        .find(|p| answers(p))
        .ok_or("Python 3.11 is needed: neither python3.11 nor python3 starts")?;
    steps::call(command(system, ["-m", "venv", ".tools"]))?;
    steps::call(command(
        tool("python"),
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r"]
            .into_iter()
            .chain(["python/requirements/tools.txt"]),
    ))
}

fn answers(program: &str) -> bool {
    Command::new(program)
        .args(["-c", "import venv"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}
