//! `tensilo dump` beside `h5dump`, and word for word.

use crate::program::{run, transcript};
use std::path::Path;
use std::process::Command;
use tensilo_testkit::{TempDir, oracle};

/// A folder with `kinds.h5` and `plain.h5`.
fn made() -> Option<TempDir> {
    oracle::python()?;
    let folder = oracle::temp_dir();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/make_kinds.py");
    oracle::python_stdout(&script, [folder.path().as_os_str()], b"");
    Some(folder)
}

/// Lines without layout: no white space, no positions of elements, no comma at a line's end.
pub fn words(text: &str) -> Vec<String> {
    let mut all = String::new();
    for line in text.lines() {
        let line = line.trim();
        let position = line.strip_prefix('(').and_then(|l| l.split_once("): "));
        let is_position =
            position.is_some_and(|(p, _)| !p.is_empty() && p.chars().all(|c| c.is_ascii_digit() || c == ','));
        all.push_str(if let (true, Some((_, rest))) = (is_position, position) { rest } else { line });
        all.push(' ');
    }
    let spaced = all.replace(['{', '}', ',', '[', ']', ';'], " ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn dumps_say_what_h5dump_says() {
    let (Some(folder), true) = (made(), Command::new("h5dump").arg("--version").output().is_ok()) else {
        return oracle::skip("Python with h5py, and h5dump", 1);
    };
    for option in [None, Some("--header"), Some("-A")] {
        let theirs = match option {
            Some("--header") => "-H",
            other => other.unwrap_or("-y"),
        };
        let mut h5dump = Command::new("h5dump");
        h5dump.current_dir(folder.path()).env("HDF5_DISABLE_VERSION_CHECK", "2");
        // -y leaves positions out, which the comparison does anyway.
        let expected = h5dump.args([theirs, "plain.h5"]).output().unwrap();
        assert!(expected.status.success());
        let args: Vec<&str> = ["dump", "plain.h5"].into_iter().chain(option).collect();
        let found = run(folder.path(), &args);
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
        let (found, expected) = (
            String::from_utf8_lossy(&found.stdout).into_owned(),
            String::from_utf8_lossy(&expected.stdout).into_owned(),
        );
        let (f, e) = (words(&found), words(&expected));
        let differs = f.iter().zip(&e).position(|(f, e)| f != e);
        if let Some(at) = differs {
            let around = |w: &[String]| w[at.saturating_sub(12)..(at + 6).min(w.len())].join(" ");
            panic!("{option:?}\nfound    {}\nexpected {}", around(&f), around(&e));
        }
        assert_eq!(f.len(), e.len(), "{option:?}");
    }
}

#[test]
fn every_kind_of_object_is_dumped() {
    let Some(folder) = made() else { return oracle::skip("Python with h5py", 1) };
    insta::with_settings!({ prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("dump-kinds", transcript(folder.path(), &["dump", "kinds.h5"]));
        insta::assert_snapshot!("dump-kinds-json", transcript(folder.path(), &["dump", "kinds.h5", "--json"]));
        insta::assert_snapshot!("dump-newest", transcript(folder.path(), &["dump", "newest.h5"]));
        let selected = &["dump", "kinds.h5", "/three", "--select", "1, :, ::2"];
        insta::assert_snapshot!("dump-kinds-selection", transcript(folder.path(), selected));
    });
}
