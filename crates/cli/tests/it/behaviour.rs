//! Exit codes, files, pipes and signals.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::program::{command, run, sample};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;
use tensilo::core::io::SystemDisk;
use tensilo::hdf5::write::{FileWriter, WriteOptions};
use tensilo_testkit::oracle;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn npy_files_are_what_numpy_reads() {
    let Some(python) = oracle::python() else { return oracle::skip("Python with NumPy", 1) };
    let (folder, _) = sample();
    let out = run(folder.path(), &["read", "sample.h5", "/scan/counts", "-s", "::-1, 1:, 2", "-o", "a.npy"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(out.stdout.is_empty());
    let code = "import sys, numpy as np\n\
                a = np.load(sys.argv[1])\n\
                b = np.arange(24, dtype='u2').reshape(2, 3, 4)[::-1, 1:, 2]\n\
                assert a.dtype == b.dtype and a.shape == b.shape and (a == b).all(), a\n";
    let status = Command::new(python).args(["-c", code]).arg(folder.path().join("a.npy")).status().unwrap();
    assert!(status.success());
}

#[test]
fn nothing_is_overwritten_without_force() {
    let (folder, _) = sample();
    let target = folder.path().join("a.raw");
    std::fs::write(&target, b"precious").unwrap();
    let args = ["read", "sample.h5", "/scan/counts", "-o", "a.raw"];
    let out = run(folder.path(), &args);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stderr).lines().count(), 2);
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    let out = run(folder.path(), &[&args[..], &["--force"]].concat());
    assert_eq!(out.status.code(), Some(0));
    let raw: Vec<u8> = (0..24_u16).flat_map(u16::to_le_bytes).collect();
    assert_eq!(std::fs::read(&target).unwrap(), raw);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "no temporary file stays: {left:?}");
}

#[test]
fn digest_answers_yes_no_or_cannot() {
    let (folder, path) = sample();
    let out = run(folder.path(), &["digest", "sample.h5", "--storage"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stdout));
    assert!(
        text(&out.stdout).ends_with("{\"kind\":\"end\",\"objects\":8,\"bad\":0}\n"),
        "{}",
        text(&out.stdout)
    );
    // A dataset larger than allowed is out of scope, which is not "all is well".
    let out = run(folder.path(), &["digest", "sample.h5", "--max-bytes", "10"]);
    assert_eq!(out.status.code(), Some(1));
    // Cut short, the file does not open.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(folder.path().join("cut.h5"), &bytes[..40]).unwrap();
    let out = run(folder.path(), &["digest", "cut.h5"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stdout).lines().count(), 1);
    assert!(text(&out.stdout).starts_with("{\"kind\":\"file\",\"format\":1,\"status\":\"error\""));
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let (folder, _) = sample();
    let mut child = command(folder.path())
        .args(["digest", "sample.h5"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn wrong_arguments_exit_with_2() {
    let (folder, _) = sample();
    for args in [
        &["nonsense"][..],
        &["read"],
        &["digest", "sample.h5", "--refs", "maybe"],
        &["ls", "sample.h5", "--limit", "1x"],
    ] {
        assert_eq!(run(folder.path(), args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn the_manual_and_completions_are_printed() {
    let (folder, _) = sample();
    let out = run(folder.path(), &["man"]);
    assert_eq!(out.status.code(), Some(0));
    assert!(text(&out.stdout).contains(".TH tensilo 1"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let out = run(folder.path(), &["completions", shell]);
        assert_eq!(out.status.code(), Some(0), "{shell}");
        assert!(text(&out.stdout).contains("digest"), "{shell}");
    }
}

#[test]
fn ctrl_c_exits_with_130_and_one_line() {
    let (folder, _) = sample();
    // Sixteen gibibytes to hash and nothing stored: no chunk was ever written.
    let mut w =
        FileWriter::create(SystemDisk::shared(), folder.path().join("large.h5"), WriteOptions::default())
            .unwrap();
    w.dataset("/zeros").element::<u8>().shape(&[1 << 14, 1 << 20]).chunk(&[1, 1 << 20]).create().unwrap();
    w.finish().unwrap();
    let mut child = command(folder.path())
        .args(["digest", "large.h5", "--max-bytes", "99999999999"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}
