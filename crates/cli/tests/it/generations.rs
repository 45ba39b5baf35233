//! Files of every structure, made by libhdf5 2.0, dumped like `h5dump` 1.10.8 dumps them, as far as it opens them. The
//! front crate's tests let libhdf5 2.0 and 2.2 judge the same files.

use crate::dumping::words;
use crate::program::run;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tensilo_testkit::{TempDir, oracle};

/// Files made by two scripts of the HDF5 crate's tests; `None` without Python or `h5dump`.
fn made() -> Option<TempDir> {
    let digest = oracle::shared_dir()?.join("oracle/h5digest.py");
    oracle::python()?;
    Command::new("h5dump").arg("--version").output().ok()?;
    let folder = oracle::temp_dir();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("hdf5").join("tests");
    for script in ["structure/make_files.py", "checking/make_files.py"] {
        oracle::python_stdout(&tests.join(script), [folder.path().as_os_str(), digest.as_os_str()], b"");
    }
    Some(folder)
}

/// What `h5dump` says of a file.
fn h5dump(folder: &Path, args: &[&str]) -> Output {
    let mut h5dump = Command::new("h5dump");
    h5dump.current_dir(folder).env("HDF5_DISABLE_VERSION_CHECK", "2");
    h5dump.args(args).output().expect("h5dump")
}

/// `h5dump`'s text without its slips: bytes of UTF-8 as sign-extended octal numbers, and no word for "no limit" where
/// lengths have 4 bytes.
fn without_slips(text: &[u8]) -> String {
    const SLIP: &[u8] = br"\37777777";
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let digits = rest.strip_prefix(SLIP).and_then(|r| r.first_chunk::<3>());
        let byte =
            digits.and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u32::from_str_radix(d, 8).ok());
        match byte {
            Some(byte) => {
                out.push(byte as u8);
                rest = &rest[SLIP.len() + 3..];
            }
            None => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).replace("4294967295", "H5S_UNLIMITED")
}

/// The first difference between a dump and what was expected.
fn differs(folder: &Path, args: &[&str], expected: &Output) -> Option<String> {
    let found = run(folder, &[&["dump"], args].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !found.status.success() {
        return Some(text(&found.stderr));
    }
    // The name of the file is what each was called with.
    let after_name = |t: String| words(t.split_once('\n').map_or("", |(_, rest)| rest));
    let (f, e) = (after_name(text(&found.stdout)), after_name(without_slips(&expected.stdout)));
    let at =
        f.iter().zip(&e).position(|(f, e)| f != e).or((f.len() != e.len()).then_some(f.len().min(e.len())))?;
    let around = |w: &[String]| w[at.saturating_sub(12)..(at + 6).min(w.len())].join(" ");
    Some(format!("\n  found    {}\n  expected {}", around(&f), around(&e)))
}

#[expect(clippy::print_stdout, reason = "how many files were judged is worth seeing")]
#[test]
fn structures_that_no_corpus_has_are_dumped_like_h5dump_1_10_dumps_them() {
    let Some(folder) = made() else { return oracle::skip("Python with h5py, h5digest.py and h5dump", 1) };
    let entries = std::fs::read_dir(folder.path()).expect("the folder");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    // Types of every form h5dump 1.10 names in words of its own; other generations judge them.
    let types = |p: &Path| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("types_"));
    files.retain(|p| p.extension().is_some_and(|e| e == "h5") && !types(p));
    files.sort();
    let (mut whole, mut headers, mut not_read, mut wrong) = (0, 0, Vec::new(), Vec::new());
    for path in files {
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        // Positions of elements are left out. Where data are missing, what stands above them is compared.
        let ways: [(&[&str], &[&str]); 2] =
            [(&["-y", &file], &[&file]), (&["-H", &file], &["--header", &file])];
        let sound = |o: &Output| o.status.success() && o.stderr.is_empty();
        let found =
            ways.iter().map(|(theirs, ours)| (h5dump(folder.path(), theirs), *ours)).find(|(o, _)| sound(o));
        let Some((expected, ours)) = found else {
            not_read.push(file); // newer than this h5dump, which then judges nothing
            continue;
        };
        *(if ours.len() == 1 { &mut whole } else { &mut headers }) += 1;
        wrong.extend(differs(folder.path(), ours, &expected).map(|d| format!("{file}: {d}")));
    }
    println!("h5dump 1.10 judged {whole} whole files and {headers} headers; not read: {not_read:?}");
    assert!(whole >= 60 && headers >= 10, "{whole} and {headers} files; not read: {not_read:?}");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn family_and_multi_files_of_the_corpus_are_dumped_like_h5dump_dumps_them() {
    let Some(corpus) = oracle::corpus() else { return oracle::skip("the corpus", 1) };
    if Command::new("h5dump").arg("--version").output().is_err() {
        return oracle::skip("h5dump", 1);
    }
    for (folder, ours, driver, theirs) in [
        ("hdf5/misc", "family_file%05d.h5", "family", "family_file%05d.h5"),
        ("hdf5/h5dump", "tmulti-s.h5", "multi", "tmulti"),
    ] {
        let folder = corpus.join(folder);
        let expected = h5dump(&folder, &["-y", "--filedriver", driver, theirs]);
        assert!(expected.status.success(), "{}", String::from_utf8_lossy(&expected.stderr));
        assert!(expected.stdout.len() > 100, "{theirs} is dumped");
        assert_eq!(differs(&folder, &[ours], &expected), None, "{ours}");
    }
}
