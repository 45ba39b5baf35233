//! Checking whole files: sound ones are found sound, and every damaged checksum is found where it is.

mod flips;
mod sound;

pub(crate) use sound::findings;

use std::path::Path;
use std::sync::OnceLock;
use tensilo_testkit::oracle::{self, TempDir};

/// The folder of small files in which every structure with a checksum occurs, made once; `None` without Python.
pub fn made() -> Option<&'static Path> {
    static MADE: OnceLock<Option<TempDir>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        oracle::python()?;
        let folder = oracle::temp_dir();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checking/make_files.py");
        oracle::python_stdout(&script, [folder.path().as_os_str()], b"");
        Some(folder)
    });
    made.as_ref().map(TempDir::path)
}
