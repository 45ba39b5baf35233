//! Files of every structure, made by h5py and libhdf5 in the test run, against the digests libhdf5 makes of them.

use super::walker::{describe, structure_of};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tensilo_core::Budget;
use tensilo_core::io::FileSource;
use tensilo_hdf5::space::FileSpace;
use tensilo_testkit::oracle::{self, TempDir};

/// The folder of generated files, made once; `None` when there is no Python or no digest program.
pub fn folder() -> Option<&'static Path> {
    static MADE: OnceLock<Option<TempDir>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let digest = oracle::shared_dir()?.join("oracle/h5digest.py");
        oracle::python()?;
        if !digest.is_file() {
            return None;
        }
        let folder = oracle::temp_dir();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/structure/make_files.py");
        let args = [folder.path().as_os_str(), digest.as_os_str()];
        oracle::python_stdout(&script, args, b"");
        Some(folder)
    });
    made.as_ref().map(TempDir::path)
}

/// The generated files, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "h5"));
    files.sort();
    files
}

#[test]
fn generated_files_of_every_structure_say_what_libhdf5_says() {
    let Some(folder) = folder() else { return oracle::skip("Python with h5py and h5digest.py", 1) };
    let files = files(folder);
    let mut wrong = Vec::new();
    for path in &files {
        let text = std::fs::read_to_string(path.with_extension("jsonl")).expect("the digest");
        // libhdf5 forgets, where lengths have 4 bytes, that all bits set mean "no limit".
        let four = path.file_stem().is_some_and(|n| n.to_string_lossy().ends_with("_4"));
        let text = if four { text.replace("4294967295", "null") } else { text };
        let wanted: Vec<Value> =
            text.lines().map(|l| serde_json::from_str(l).expect("a JSON line")).collect();
        let described = describe(path);
        let found = described.iter().map(structure_of);
        let wanted = wanted.iter().filter(|l| l["kind"] != "end").map(structure_of);
        let same = described.len() == wanted.clone().count();
        let differs = found.zip(wanted).zip(&described).find(|((f, w), _)| f != w);
        if let Some(((f, w), d)) = differs {
            wrong.push(format!("{}:\n  found    {f} {}\n  expected {w}", path.display(), d["detail"]));
        } else if !same {
            wrong.push(format!("{}: {} lines", path.display(), described.len()));
        }
    }
    assert!(files.len() >= 80, "only {} files", files.len());
    assert!(wrong.is_empty(), "{} of {} files differ:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

#[test]
fn cache_images_are_laid_over_the_file_and_without_them_it_reads_differently() {
    let Some(folder) = folder() else { return oracle::skip("Python with h5py and h5digest.py", 1) };
    let mut images = 0;
    for path in files(folder) {
        let source = Arc::new(FileSource::open(&path).expect("a generated file"));
        let space = FileSpace::open(source, Budget::default()).expect("an open file");
        let named = path.file_stem().is_some_and(|n| n.to_string_lossy().ends_with("_image"));
        let Some(image) = space.cache_image() else {
            assert!(!named, "{} has no image", path.display());
            continue;
        };
        assert!(named, "{} has an image", path.display());
        assert!(image.entries() > 5, "{} entries in {}", image.entries(), path.display());
        images += 1;
        // The root group is in the image: beneath, the file has other bytes.
        let root = space.read(space.root(), 4, "root group").expect("the root group's header");
        assert_eq!(&root[..], b"OHDR");
        let mut beneath = [0; 4];
        space.source().read_at(root.offset(), &mut beneath).expect("bytes of the file");
        assert_ne!(&beneath, b"OHDR");
    }
    assert_eq!(images, 3);
}
