//! Files of structures that no corpus has, and of every kind of reference, read like two generations of libhdf5 read them:
//! 2.0 (inside h5py) and 2.2 (inside netCDF4). hdf5-tools 1.10 judge in the program's tests.

use serde_json::Value;
use std::path::{Path, PathBuf};
use tensilo::core::Quiet;
use tensilo::digest::{DigestOptions, Refs, digest};
use tensilo_testkit::{TempDir, oracle};

/// Makes files by the script at `script` (relative to `crates`), and both generations' digests of them.
fn made(script: &str) -> Option<TempDir> {
    let digest = oracle::shared_dir()?.join("oracle/h5digest.py");
    if oracle::python().is_none() || !oracle::python_has("netCDF4") || !digest.is_file() {
        return None;
    }
    let folder = oracle::temp_dir();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = here.with_file_name("").join(script);
    let digest = digest.as_os_str();
    oracle::python_stdout(&script, [folder.path().as_os_str(), digest], b"");
    let judges = here.join("tests/it/make_digests.py");
    oracle::python_stdout(&judges, [folder.path().as_os_str(), digest], b"");
    Some(folder)
}

fn lines_of(path: &Path) -> Vec<Value> {
    let options = DigestOptions { storage: true, refs: Refs::Path, ..DigestOptions::default() };
    let mut lines = Vec::new();
    digest(path, &options, &Quiet, &mut |line| {
        lines.push(serde_json::from_str(line).expect("a line of JSON"));
        Ok(())
    })
    .expect("a digest");
    lines
}

fn expected(path: &Path, version: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path.with_extension(format!("{version}.jsonl"))).expect("a digest");
    text.lines().map(|l| serde_json::from_str(l).expect("a line of JSON")).collect()
}

/// What two implementations may say differently: why something cannot be read.
fn plain(v: &Value) -> Value {
    let mut v = v.clone();
    if let Value::Object(map) = &mut v {
        map.remove("detail");
        if let Some(Value::Array(attributes)) = map.get_mut("attrs") {
            attributes.iter_mut().for_each(|a| *a = plain(a));
        }
    }
    v
}

fn failed(v: &Value) -> bool {
    let own = v["status"] == "error" || v["status"] == "unsupported";
    own || v["attrs"].as_array().is_some_and(|a| a.iter().any(failed))
}

/// What is refused by name although libhdf5 reads it.
const REFUSED: &str = "a virtual dataset of variable-length elements or references";

fn refused(v: &Value) -> bool {
    v["detail"].as_str().is_some_and(|d| d.starts_with("unsupported: ") && d.ends_with(REFUSED))
}

/// Compares a file with what a generation says of it. Lines that it cannot read judge nothing.
fn compare(path: &Path, version: &str, wrong: &mut Vec<String>) -> usize {
    let (ours, theirs) = (lines_of(path), expected(path, version));
    let name = path.file_name().expect("a name").to_string_lossy();
    if theirs.len() == 1 {
        return 0; // it does not open the file at all
    }
    if ours.len() != theirs.len() {
        wrong.push(format!("{name} by {version}: {} lines where {} are expected", ours.len(), theirs.len()));
    }
    let mut judged = 0;
    for (o, t) in ours.iter().zip(&theirs).filter(|(_, t)| !failed(t) && t["kind"] != "end") {
        judged += 1;
        if plain(o) != plain(t) && !refused(o) {
            wrong.push(format!("{name} by {version}:\n  found    {o}\n  expected {t}"));
        }
    }
    judged
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "h5"));
    files.sort();
    files
}

/// Compares all files but those whose names `skip` knows for a generation; counts lines.
fn judge(folder: &Path, skip: &dyn Fn(&str, &str) -> bool) -> [usize; 2] {
    let mut wrong = Vec::new();
    let mut judged = [0; 2];
    for path in files(folder) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        for (i, version) in ["2_0", "2_2"].into_iter().enumerate() {
            if !skip(&name, version) {
                judged[i] += compare(&path, version, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    judged
}

#[test]
fn references_and_virtual_datasets_read_like_two_generations_of_libhdf5_read_them() {
    let Some(folder) = made("tensilo/tests/it/make_references.py") else {
        return oracle::skip("Python with h5py and netCDF4, and h5digest.py", 1);
    };
    let [old, new] = judge(folder.path(), &|_, _| false);
    assert!(old > 40 && new > 40, "{old} and {new} lines");
}

#[test]
fn thin_structures_read_like_two_generations_of_libhdf5_read_them() {
    for script in ["hdf5/tests/structure/make_files.py", "hdf5/tests/checking/make_files.py"] {
        let Some(folder) = made(script) else {
            return oracle::skip("Python with h5py and netCDF4, and h5digest.py", 1);
        };
        // libhdf5 forgets, where lengths have 4 bytes, that all bits set mean "no limit".
        let [old, new] = judge(folder.path(), &|name, _| name.starts_with("sizes") && name.ends_with("_4"));
        assert!(old > 30 && new > 30, "{old} and {new} lines");
    }
}
