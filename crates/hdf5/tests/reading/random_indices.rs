//! Random datasets of every layout under random NumPy indices, against NumPy on the whole array: with one thread, with
//! many, and through one handle that eight threads share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tensilo_core::Result;
use tensilo_core::array::NumpyIndex;
use tensilo_core::threads::Threads;
use tensilo_hdf5::read::{File, OpenOptions};
use tensilo_testkit::oracle::{self, skip};

struct Case {
    file: String,
    path: String,
    index: String,
    bytes: std::ops::Range<usize>,
    shape: Vec<u64>,
}

struct Random {
    folder: PathBuf,
    cases: Vec<Case>,
    expected: Vec<u8>,
}

fn random() -> Option<&'static Random> {
    static MADE: OnceLock<Option<Random>> = OnceLock::new();
    MADE.get_or_init(make).as_ref()
}

fn make() -> Option<Random> {
    oracle::python()?;
    // Kept until the process ends; the files are small.
    let folder = oracle::temp_dir().keep();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reading/random_indices.py");
    let seed = std::ffi::OsStr::new("271828");
    oracle::python_stdout(&script, [folder.as_os_str(), seed], b"");
    let text = std::fs::read_to_string(folder.join("random.tsv")).expect("the manifest");
    let case = |line: &str| {
        let f: Vec<&str> = line.split('\t').collect();
        let [file, path, index, offset, len, shape] = f[..] else { panic!("{line}") };
        let start: usize = offset.parse().expect("an offset");
        let extents = shape.split(',').filter(|n| !n.is_empty());
        Case {
            file: file.into(),
            path: path.into(),
            index: index.into(),
            bytes: start..start + len.parse::<usize>().expect("a length"),
            shape: extents.map(|n| n.parse().expect("an extent")).collect(),
        }
    };
    let cases = text.lines().map(case).collect();
    let expected = std::fs::read(folder.join("random.bin")).expect("the expected bytes");
    Some(Random { folder, cases, expected })
}

impl Random {
    fn files(&self, threads: usize, chunk_cache: usize) -> HashMap<&str, File> {
        let mut files = HashMap::new();
        let options = OpenOptions { threads: Threads::new(threads), chunk_cache, ..OpenOptions::default() };
        for case in &self.cases {
            files.entry(case.file.as_str()).or_insert_with(|| {
                File::open_with(self.folder.join(&case.file), options.clone()).expect("an HDF5 file")
            });
        }
        files
    }

    /// What is wrong with a case, if anything.
    fn fault(&self, files: &HashMap<&str, File>, case: &Case) -> Option<String> {
        let read = || -> Result<(Vec<u64>, Vec<u8>)> {
            let data = files[case.file.as_str()].dataset(&case.path)?;
            let resolved = case.index.parse::<NumpyIndex>()?.resolve(data.shape())?;
            let bytes = data.read_bytes(&resolved.selection)?;
            let mut again = vec![0xA5; bytes.len()];
            data.read_bytes_into(&resolved.selection, &mut again)?;
            assert!(again == bytes, "read and read_into differ");
            Ok((resolved.shape, bytes))
        };
        let what = match read() {
            Err(e) => e.to_string(),
            Ok((shape, _)) if shape != case.shape => format!("shape {shape:?}, not {:?}", case.shape),
            Ok((_, bytes)) if bytes != self.expected[case.bytes.clone()] => "other bytes".to_owned(),
            Ok(_) => return None,
        };
        Some(format!("{} {} [{}]: {what}", case.file, case.path, case.index))
    }
}

#[test]
fn random_datasets_under_random_indices_read_as_numpy_selects() {
    let Some(random) = random() else { return skip("Python with h5py", 1) };
    assert!(random.cases.len() > 1200, "{} cases", random.cases.len());
    for (threads, cache) in [(1, 0), (4, 1 << 20)] {
        let files = random.files(threads, cache);
        let faults: Vec<String> = random.cases.iter().filter_map(|c| random.fault(&files, c)).collect();
        assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), random.cases.len(), faults.join("\n"));
    }
}

#[test]
fn eight_threads_share_one_handle() {
    let Some(random) = random() else { return skip("Python with h5py", 1) };
    let files = random.files(2, 1 << 16);
    std::thread::scope(|scope| {
        for first in 0..8 {
            let files = &files;
            scope.spawn(move || {
                // Each begins elsewhere, so that all meet in the caches at different moments.
                let n = random.cases.len();
                for case in (0..n).map(|i| &random.cases[(i + first * n / 8) % n]) {
                    assert_eq!(random.fault(files, case), None);
                }
            });
        }
    });
}
