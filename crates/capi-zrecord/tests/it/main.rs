//! `libzrecord` and `libsampler` in place of loaderx's own, under its unmodified Python and its own tests; and a
//! program in C.

use std::path::{Path, PathBuf};
use std::process::Command;
use tensilo_testkit::oracle;

/// A library that was built beside this test.
fn library(name: &str) -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let deps = exe.parent()?;
    [deps, deps.parent()?].iter().map(|d| d.join(name)).find(|p| p.is_file())
}

#[test]
fn a_program_in_c_writes_reads_deletes_and_compacts() {
    let Some(library) = library("libzrecord.so") else { return oracle::skip("libzrecord.so", 1) };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = oracle::temp_dir();
    let program = folder.path().join("program");
    let built = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("include"))
        .arg(here.join("tests/it/store.c"))
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display()))
        .arg("-o")
        .arg(&program)
        .output();
    let Ok(built) = built else { return oracle::skip("a C compiler", 1) };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let out = Command::new(&program).arg(folder.path().join("store")).output().unwrap();
    assert!(out.status.success(), "line {:?} {}", out.status.code(), String::from_utf8_lossy(&out.stderr));
}

/// Puts loaderx's Python files, our libraries and its tests of version 0.5.0 into a folder.
const PREPARE: &str = r#"
import pathlib, shutil, subprocess, sys, tarfile
import importlib.util
to = pathlib.Path(sys.argv[1])
wheel = pathlib.Path(importlib.util.find_spec("loaderx").submodule_search_locations[0])
shutil.copytree(wheel, to / "loaderx", ignore=shutil.ignore_patterns("lib", "__pycache__"))
(to / "loaderx/lib").mkdir()
for library in sys.argv[2:]:
    shutil.copy(library, to / "loaderx/lib")
got = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", "loaderx", "--no-deps",
                      "--dest", str(to), "loaderx==0.5.0"], capture_output=True, text=True)
if got.returncode:
    print(got.stderr, file=sys.stderr); sys.exit(3)
with tarfile.open(to / "loaderx-0.5.0.tar.gz") as source:
    source.extractall(to, filter="data")
shutil.copytree(to / "loaderx-0.5.0/tests", to / "tests")
"#;

#[test]
fn unmodified_loaderx_passes_its_own_tests_on_our_libraries() {
    if !oracle::python_has("loaderx") || !oracle::python_has("pytest") || !oracle::python_has("pip") {
        return oracle::skip("Python with loaderx 0.5.0, pytest and pip", 1);
    }
    let names = ["libzrecord.so", "libsampler.so"];
    let libraries: Vec<PathBuf> =
        names.iter().map(|n| library(n).unwrap_or_else(|| panic!("{n} was built"))).collect();
    let folder = oracle::temp_dir();
    let args = std::iter::once(folder.path().as_os_str()).chain(libraries.iter().map(|l| l.as_os_str()));
    let prepared = oracle::run_python(PREPARE, args, b"");
    if prepared.status.code() == Some(3) {
        return oracle::skip("the source distribution of loaderx 0.5.0 from PyPI", 1);
    }
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
    let out = Command::new(oracle::python().unwrap())
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"])
        .current_dir(folder.path())
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}");
    let passed: usize = text
        .split_whitespace()
        .zip(text.split_whitespace().skip(1))
        .find_map(|(n, word)| (word == "passed").then(|| n.parse().ok())?)
        .unwrap_or(0);
    assert!(passed >= 15, "{text}");
    // And it was our libraries that were used.
    let check = "import loaderx._zrecord as z, loaderx._lib as l; print(l.path('zrecord'))";
    let used = Command::new(oracle::python().unwrap())
        .args(["-c", check])
        .current_dir(folder.path())
        .env("PYTHONPATH", folder.path())
        .output()
        .unwrap();
    let shown = folder.path().join("loaderx/lib/libzrecord.so");
    assert_eq!(String::from_utf8_lossy(&used.stdout).trim(), shown.to_string_lossy());
}
