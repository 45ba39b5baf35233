//! What is written here, libhdf5 must read: h5py (2.0) and h5dump (1.10) are the oracles.

mod crash;
mod dense;
mod encodings;
mod everything;
mod filters;
mod indexes;
mod layouts;
mod once;
mod orders;
mod pack_body;
mod random_trees;
mod references;
mod repacking;
mod settings;
mod small_files;
mod types;
mod window;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::write::{FileWriter, Filters, WriteOptions};
use tensilo_testkit::oracle;

/// Writes a file and returns its bytes.
fn write_with(options: WriteOptions, path: &Path, fill: impl Fn(&mut FileWriter<'_>)) -> Vec<u8> {
    let mut w = FileWriter::create(SystemDisk::shared(), path, options).expect("a new file");
    fill(&mut w);
    let finished = w.finish().expect("a finished file");
    let bytes = std::fs::read(path).expect("the file");
    assert_eq!(bytes.len() as u64, finished.bytes);
    bytes
}

/// What h5py sees, one line per fact; `None` without Python.
fn h5py_lines(path: &Path) -> Option<Vec<String>> {
    oracle::python()?;
    Some(h5py_lines_of(&[path.to_path_buf()]))
}

/// The same for several files, a line `file NAME` in front of each.
fn h5py_lines_of(paths: &[PathBuf]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/writing/dump.py");
    let out = oracle::python_stdout(&script, paths, b"");
    String::from_utf8(out).expect("text").lines().map(str::to_owned).collect()
}

/// Does h5dump (libhdf5 1.10) read everything? `None` when it is not installed.
fn h5dump_reads(path: &Path) -> Option<bool> {
    let out = Command::new("h5dump").arg(path).stdin(Stdio::null()).output().ok()?;
    if !out.status.success() || !out.stderr.is_empty() {
        panic!("h5dump: {}\n{}", String::from_utf8_lossy(&out.stderr), String::from_utf8_lossy(&out.stdout));
    }
    Some(true)
}

fn hex<T: bytemuck::NoUninit>(values: &[T]) -> String {
    bytemuck::cast_slice::<T, u8>(values).iter().map(|b| format!("{b:02x}")).collect()
}

/// Compares line by line, so that a difference is seen at once.
fn assert_lines(found: &[String], expected: &[String]) {
    for (f, e) in found.iter().zip(expected) {
        assert_eq!(f, e);
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}
