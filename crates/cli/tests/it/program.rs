//! Running the program, and a sample file to run it on.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tensilo::core::io::SystemDisk;
use tensilo::hdf5::write::{FileWriter, Filters, Value, WriteOptions};
use tensilo_testkit::{TempDir, oracle};

/// A fresh folder with `sample.h5` in it.
pub fn sample() -> (TempDir, PathBuf) {
    let folder = oracle::temp_dir();
    let path = folder.path().join("sample.h5");
    let mut w = FileWriter::create(SystemDisk::shared(), &path, WriteOptions::default()).unwrap();
    w.attribute("/", "title", "a small file").unwrap();
    let counts: Vec<u16> = (0..24).collect();
    w.dataset("/scan/counts")
        .shape(&[2, 3, 4])
        .chunk(&[1, 2, 4])
        .filters(Filters::new().shuffle().deflate(6))
        .attribute("units", "counts")
        .attribute("gain", Value::scalar(0.1_f32))
        .write(&counts)
        .unwrap();
    w.dataset("/scan/angle").write_value(Value::scalar(-1.5_f64)).unwrap();
    w.dataset("/names").shape(&[2]).write_texts(&["first", "zweiter µ"]).unwrap();
    w.soft_link("/latest", "/scan/counts").unwrap();
    w.external_link("/elsewhere", "other.h5", "/data").unwrap();
    w.hard_link("/again", "/scan/angle").unwrap();
    w.finish().unwrap();
    (folder, path)
}

/// The program, to be run in `folder`.
pub fn command(folder: &Path) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_tensilo"));
    c.current_dir(folder).stdin(Stdio::null()).env_remove("COLUMNS").env("NO_COLOR", "1");
    c
}

/// Runs the program to its end.
pub fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder).args(args).output().unwrap()
}

/// Exit code, stdout and stderr as one text.
pub fn transcript(folder: &Path, args: &[&str]) -> String {
    let out = run(folder, args);
    let code = out.status.code().map_or_else(|| "killed".to_owned(), |c| c.to_string());
    let mut text = format!("$ tensilo {}\nexit {code}\n", args.join(" "));
    for (name, bytes) in [("stdout", &out.stdout), ("stderr", &out.stderr)] {
        if !bytes.is_empty() {
            text.push_str(&format!("--- {name}\n{}", String::from_utf8_lossy(bytes)));
        }
    }
    text
}
