//! What `tensilo info` says of a metadata cache image: none, loadable, or refused and why.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::program::run;
use std::path::Path;
use tensilo_testkit::{TempDir, oracle};

fn made() -> Option<TempDir> {
    oracle::python()?;
    let folder = oracle::temp_dir();
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("hdf5").join("tests/checking/make_files.py");
    oracle::python_stdout(&script, [folder.path().as_os_str()], b"");
    Some(folder)
}

#[test]
fn info_says_whether_a_cache_image_is_there_loadable_or_refused_and_why() {
    let Some(folder) = made() else { return oracle::skip("Python with h5py", 1) };
    let info = |args: &[&str]| {
        let out = run(folder.path(), &[&["info"], args].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    let (code, out, _) = info(&["headers.h5"]);
    assert!(code == Some(0) && out.contains("\ncache image none\n"), "{out}");
    let (code, out, _) = info(&["image.h5"]);
    let line = out.lines().find(|l| l.starts_with("cache image ")).expect("a line about the image");
    assert!(code == Some(0) && line.starts_with("cache image loadable, "), "{line}");
    assert!(line.contains(" structures in "), "{line}");
    let mut bytes = std::fs::read(folder.path().join("image.h5")).unwrap();
    let at = bytes.windows(4).position(|w| w == b"MDCI").expect("an image");
    bytes[at + 30] ^= 4;
    std::fs::write(folder.path().join("damaged.h5"), &bytes).unwrap();
    let (code, out, err) = info(&["damaged.h5"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(out.starts_with("cache image refused: "), "{out}");
    assert!(out.contains("checksum does not match"), "{out}");
    assert!(err.contains(&format!("at byte {at}")) || err.contains(&at.to_string()), "{err}");
    let (code, out, _) = info(&["damaged.h5", "--json"]);
    assert_eq!(code, Some(2));
    let view: serde_json::Value =
        serde_json::from_str(out.lines().next().expect("a line")).expect("a line of JSON");
    assert_eq!(view["state"], "refused");
    assert!(view["reason"].as_str().is_some_and(|r| r.contains("checksum does not match")), "{view}");
    // Nothing was written: the file is still what it was.
    assert!(std::fs::read(folder.path().join("damaged.h5")).unwrap() == bytes);
}
