//! Where expected values come from: the shared fixtures and corpus, and Python with h5py.
//!
//! Both may be absent on a machine that only builds; a test then calls [`skip`] and passes, unless the
//! environment variable `TENSILO_REQUIRE` says that everything must really run.
//!
//! ```
//! use tensilo_testkit::oracle;
//! fn reads_the_corpus() {
//!     let Some(corpus) = oracle::corpus() else { return oracle::skip("the corpus", 1) };
//!     assert!(corpus.join("MANIFEST.tsv").is_file());
//! }
//! # reads_the_corpus();
//! ```

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A temporary folder, removed when dropped.
pub use tempfile::TempDir;

/// Makes a fresh temporary folder.
///
/// # Panics
/// When the system has no room for one.
pub fn temp_dir() -> TempDir {
    tempfile::Builder::new().prefix("tensilo-test-").tempdir().expect("a temporary folder")
}

/// The folder that holds the workspace's root `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The folder of shared fixtures: `TENSILO_SHARED`, else `../shared` from the workspace root; `None` when absent.
pub fn shared_dir() -> Option<PathBuf> {
    let dir = match std::env::var_os("TENSILO_SHARED").filter(|v| !v.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => workspace_root().parent()?.join("shared"),
    };
    dir.is_dir().then_some(dir)
}

/// The folder of HDF5 files made by other programs, inside [`shared_dir`].
pub fn corpus() -> Option<PathBuf> {
    Some(shared_dir()?.join("corpus")).filter(|d| d.is_dir())
}

/// The folder of small fixtures, inside [`shared_dir`].
pub fn fixtures() -> Option<PathBuf> {
    Some(shared_dir()?.join("fixtures")).filter(|d| d.is_dir())
}

/// A Python that imports h5py and NumPy: `TENSILO_PYTHON`, else `.venv/bin/python` in the workspace; examined once.
pub fn python() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let python = match std::env::var_os("TENSILO_PYTHON").filter(|v| !v.is_empty()) {
                Some(python) => PathBuf::from(python),
                None => workspace_root().join(".venv/bin/python"),
            };
            let tried = Command::new(&python)
                .args(["-c", "import h5py, numpy"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            tried.is_ok_and(|s| s.success()).then_some(python)
        })
        .clone()
}

/// Has Python this module? False without Python. The module is looked for and not imported: some take seconds.
pub fn python_has(module: &str) -> bool {
    let look = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    python().is_some() && run_python(look, [module], b"").status.success()
}

/// Says that tests were not run because something is absent: `skipped: needs X (N tests)`.
///
/// # Panics
/// When `TENSILO_REQUIRE` is set and not empty.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn skip(needs: &str, tests: usize) {
    let line = format!("skipped: needs {needs} ({tests} {})", if tests == 1 { "test" } else { "tests" });
    assert!(std::env::var_os("TENSILO_REQUIRE").is_none_or(|v| v.is_empty()), "{line}");
    eprintln!("{line}");
}

/// What Python runs: code, or a file of it.
#[derive(Debug, Clone, Copy)]
pub enum Script<'a> {
    /// The code itself; arguments start at `sys.argv[1]`.
    Code(&'a str),
    /// A file; arguments start at `sys.argv[1]`.
    File(&'a Path),
}

impl<'a> From<&'a str> for Script<'a> {
    fn from(code: &'a str) -> Self {
        Self::Code(code)
    }
}

impl<'a> From<&'a String> for Script<'a> {
    fn from(code: &'a String) -> Self {
        Self::Code(code)
    }
}

impl<'a> From<&'a Path> for Script<'a> {
    fn from(file: &'a Path) -> Self {
        Self::File(file)
    }
}

impl<'a> From<&'a PathBuf> for Script<'a> {
    fn from(file: &'a PathBuf) -> Self {
        Self::File(file)
    }
}

/// Runs Python on a script with arguments and standard input, and returns whatever it did.
///
/// ```
/// use tensilo_testkit::oracle;
/// if oracle::python().is_none() {
///     return oracle::skip("Python with h5py", 1);
/// }
/// let out = oracle::run_python("import sys; print(sys.argv[1], sys.stdin.read())", ["a"], b"b");
/// assert_eq!(out.stdout, b"a b\n");
/// ```
///
/// # Panics
/// When there is no Python (ask [`python`] first) or it does not start.
pub fn run_python<'a>(
    script: impl Into<Script<'a>>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    stdin: &[u8],
) -> Output {
    let mut command = Command::new(python().expect("Python with h5py"));
    match script.into() {
        Script::Code(code) => command.arg("-c").arg(code),
        Script::File(file) => command.arg(file),
    };
    let mut child = command
        .args(args)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut pipe = child.stdin.take().expect("a piped standard input");
    std::thread::scope(|scope| {
        // A script need not read its input; the pipe then breaks, which is no fault.
        scope.spawn(move || pipe.write_all(stdin).ok());
        child.wait_with_output().expect("Python's output")
    })
}

/// Runs Python and returns its standard output.
///
/// # Panics
/// As [`run_python`], and when the script fails; the message carries its standard error.
pub fn python_stdout<'a>(
    script: impl Into<Script<'a>>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    stdin: &[u8],
) -> Vec<u8> {
    let out = run_python(script, args, stdin);
    assert!(
        out.status.success(),
        "Python failed with {}:\n{}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}
