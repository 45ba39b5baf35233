//! What is read must be what h5py wrote and NumPy selects.

mod engine;
mod extremes;
mod hostile;
mod members;
mod missing;
mod random_indices;
mod selections;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tensilo_testkit::oracle;

/// One thing that must be read, and what it must give.
pub struct Case {
    pub file: String,
    pub path: String,
    pub mode: String,
    pub selection: String,
    pub bytes: std::ops::Range<usize>,
    pub shape: Vec<u64>,
}

/// Files and expectations, made once.
pub struct Oracle {
    pub folder: PathBuf,
    pub cases: Vec<Case>,
    pub expected: Vec<u8>,
}

/// The oracle's files; `None` without Python.
pub fn oracle() -> Option<&'static Oracle> {
    static MADE: OnceLock<Option<Oracle>> = OnceLock::new();
    MADE.get_or_init(make).as_ref()
}

fn make() -> Option<Oracle> {
    oracle::python()?;
    let folder = oracle::temp_dir();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reading/generate.py");
    oracle::python_stdout(&script, [folder.path()], b"");
    let manifest = std::fs::read_to_string(folder.path().join("manifest.tsv")).expect("the manifest");
    let case = |line: &str| {
        let f: Vec<&str> = line.split('\t').collect();
        let [file, path, mode, selection, offset, len, shape] = f[..] else { panic!("{line}") };
        let start: usize = offset.parse().expect("an offset");
        Case {
            file: file.into(),
            path: path.into(),
            mode: mode.into(),
            selection: selection.into(),
            bytes: start..start + len.parse::<usize>().expect("a length"),
            shape: shape
                .split(',')
                .filter(|n| !n.is_empty())
                .map(|n| n.parse().expect("an extent"))
                .collect(),
        }
    };
    let cases = manifest.lines().map(case).collect();
    let expected = std::fs::read(folder.path().join("expected.bin")).expect("the expected bytes");
    // Kept until the process ends; the files are small.
    let folder = folder.keep();
    Some(Oracle { folder, cases, expected })
}
