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
    sync.arg(&python).arg("python/requirements/test.txt");
    steps::call(sync)?;
    Ok(python)
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
