//! `tensilo lanes`: stores made from arrays, described, checked, turned into arrays and rewritten; and what is refused
//! leaves nothing behind.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::program::{command, run, sample};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tensilo::core::io::SystemDisk;
use tensilo::hdf5::write::{FileWriter, WriteOptions};
use tensilo_testkit::{TempDir, oracle};

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

fn json(out: &Output) -> serde_json::Value {
    let line = String::from_utf8(out.stdout.clone()).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    serde_json::from_str(&line).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn ok(folder: &Path, args: &[&str]) -> Output {
    let out = run(folder, &[&["lanes"], args].concat());
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out));
    out
}

/// A folder with `sample.h5` and the store `a.pts` made from its dataset of 2 × 3 × 4 counts, 0 to 23.
fn store() -> (TempDir, PathBuf) {
    let (folder, _) = sample();
    ok(folder.path(), &["create", "a.pts", "counts=sample.h5:/scan/counts", "--app", r#"{"kind":"demo"}"#]);
    let path = folder.path().join("a.pts");
    (folder, path)
}

fn fixture(name: &str) -> String {
    oracle::workspace_root().join("crates/lanes/tests/fixtures").join(name).display().to_string()
}

#[test]
fn a_store_made_from_a_dataset_is_described() {
    let (folder, path) = store();
    let out = ok(folder.path(), &["info", "a.pts"]);
    let expected = "format  2\n\
                    slabs   2\n\
                    lane    dtype  slabs  written  elements  stored as\n\
                    counts  u16    2      2        12        3 × 4\n\
                    app     {\"kind\":\"demo\"}\n";
    assert_eq!(String::from_utf8_lossy(&out.stdout), expected);
    let view = json(&ok(folder.path(), &["info", "a.pts", "--json"]));
    let lane = serde_json::json!({
        "name": "counts", "dtype": "u16", "kind": "slab", "elems": 12, "slabs": 2, "shape": [3, 4], "written": 2
    });
    let expected = serde_json::json!({
        "schema": "tensilo.lanes/1", "file": "a.pts", "format": 2, "nslabs": 2, "lanes": [lane], "app": {"kind": "demo"}
    });
    assert_eq!(view, expected);
    let out = ok(
        folder.path(),
        &["create", "b.pts", "c=sample.h5:/scan/counts", "--format", "1", "--force", "--json"],
    );
    let view = json(&out);
    assert_eq!(view["schema"], "tensilo.lanes.written/1");
    assert_eq!(view["lanes"], serde_json::json!(["c"]));
    assert_eq!(view["bytes"], std::fs::metadata(folder.path().join("b.pts")).unwrap().len());
    assert_eq!(json(&ok(folder.path(), &["info", "b.pts", "--json"]))["format"], 1);
    assert_eq!(std::fs::read(path).unwrap()[..4], *b"PTS\x02");
}

#[test]
fn slabs_and_lanes_become_npy_files_with_their_values() {
    let (folder, _) = store();
    for (args, first, n) in [
        (&["dump", "a.pts", "counts", "-o", "all.npy"][..], 0, 24),
        (&["window", "a.pts", "counts", "1:2", "-o", "one.npy"], 12, 12),
        (&["window", "a.pts", "counts", "1:1", "-o", "none.npy"], 12, 0),
    ] {
        let out = ok(folder.path(), &[args, &["--json"]].concat());
        assert_eq!(json(&out)["file"], *args.last().unwrap());
        let bytes = std::fs::read(folder.path().join(args.last().unwrap())).unwrap();
        let values: Vec<u8> = (first..first + n).flat_map(u16::to_le_bytes).collect();
        assert!(bytes.ends_with(&values) && bytes.len() == 128 + values.len(), "{args:?}");
        let head = String::from_utf8_lossy(&bytes[10..128]);
        assert!(head.contains("'<u2'") && head.contains(&format!("({}, 3, 4)", n / 12)), "{head}");
    }
}

#[test]
fn damage_is_an_answer_and_format_1_says_that_it_cannot_know() {
    let (folder, path) = store();
    let out = ok(folder.path(), &["verify", "a.pts"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "a.pts: no damage found\n");
    let mut bytes = std::fs::read(&path).unwrap();
    // The second slab: lanes begin at byte 4096.
    bytes[4096 + 24] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let out = run(folder.path(), &["lanes", "verify", "a.pts", "--json"]);
    assert_eq!(out.status.code(), Some(1));
    let view = json(&out);
    assert_eq!((&view["schema"], &view["checksums"]), (&"tensilo.lanes.verify/1".into(), &true.into()));
    assert_eq!(view["damaged"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&view["damaged"][0]["lane"], &view["damaged"][0]["offset"]),
        (&"counts".into(), &4120.into())
    );
    let out = run(folder.path(), &["lanes", "verify", "a.pts"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out).contains("slab 1") && text(&out).contains("a.pts: damaged"), "{}", text(&out));
    // What is damaged is not copied, and the file that was begun is gone.
    let before = names(folder.path());
    for args in [
        &["dump", "a.pts", "counts", "-o", "x.npy"][..],
        &["export", "a.pts", "-o", "x.h5"],
        &["convert", "a.pts", "x.pts"],
    ] {
        let out = run(folder.path(), &[&["lanes"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out).contains("slab 1 does not match its checksum"), "{}", text(&out));
        assert_eq!(names(folder.path()), before, "{args:?}");
    }
    let out = ok(folder.path(), &["verify", &fixture("bit_flip_in_data_accepted.pts")]);
    assert!(text(&out).contains("format 1 has no checksums"), "{}", text(&out));
}

#[test]
fn what_is_wrong_is_said_with_a_hint_and_nothing_is_left_behind() {
    let (folder, _) = store();
    std::fs::write(folder.path().join("there.npy"), b"precious").unwrap();
    // A boolean that is 2, behind one that is right.
    let mut npy = tensilo::convert::npy::header("|b1", &[2, 1]);
    npy.extend([1, 2]);
    std::fs::write(folder.path().join("bool.npy"), npy).unwrap();
    let before = names(folder.path());
    let (version0, unfinished) = (fixture("version0_accepted.pts"), fixture("bad_unfinalized.pts"));
    for (args, words) in [
        (&["info", "none.pts"][..], &["none.pts"][..]),
        (&["info", "sample.h5"], &["sample.h5", "signature"]),
        (&["info", &version0], &["version byte 0", "hint: open it leniently"]),
        (&["verify", &unfinished], &["seal", "hint: the store was never finished"]),
        (&["dump", "a.pts", "none", "-o", "x.npy"], &["a.pts", "no lane \"none\"", "hint: lanes: counts"]),
        (&["dump", "a.pts", "counts", "-o", "there.npy"], &["the file exists", "hint: --force replaces it"]),
        (&["dump", "a.pts", "counts", "-o", "no/x.npy"], &["no/"]),
        (&["window", "a.pts", "counts", "1:3", "-o", "x.npy"], &["counts", "1:3", "has 2"]),
        (&["window", "a.pts", "counts", "2:1", "-o", "x.npy"], &["such as 3:7"]),
        (&["export", "a.pts", "counts", "counts", "-o", "x.h5"], &["counts"]),
        (&["export", "a.pts", "none", "-o", "x.h5"], &["hint: lanes: counts"]),
        (&["export", "a.pts", "-o", "sample.h5"], &["the file exists", "hint: --force replaces it"]),
        (&["create", "a.pts", "c=sample.h5:/scan/counts"], &["the file exists", "hint: --force replaces it"]),
        (&["create", "x.pts", "c=sample.h5:/none"], &["sample.h5", "no object \"none\""]),
        (&["create", "x.pts", "c=sample.h5:/names"], &["sample.h5", "datatype", "as a lane"]),
        (&["create", "x.pts", "c=sample.h5:/scan/angle"], &["sample.h5", "a single value is no lane"]),
        (&["create", "x.pts", "c=none.npy"], &["none.npy"]),
        (&["create", "x.pts", "c=there.npy"], &["there.npy", "no .npy file"]),
        (&["create", "x.pts", "c=sample.h5"], &["FILE.npy or FILE.h5:/path"]),
        (&["create", "x.pts", "c=sample.h5:/scan/counts", "--app", "{"], &["--app is no JSON"]),
        (&["create", "x.pts", "c=bool.npy"], &["bool.npy", "2 is no boolean"]),
        (&["create", "x.pts", "c=bool.npy", "--format", "1"], &["format 1 has f32", "hint: write format 2"]),
        (
            &["create", "x.pts", "c=sample.h5:/scan/counts", "c=sample.h5:/scan/counts"],
            &["two lanes have this name"],
        ),
        (&["convert", "a.pts", "sample.h5"], &["the file exists", "hint: --force replaces it"]),
        (&["convert", "none.pts", "x.pts"], &["none.pts"]),
    ] {
        let out = run(folder.path(), &[&["lanes"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", text(&out));
        assert!(out.stdout.is_empty(), "{args:?}");
        for word in words {
            assert!(text(&out).contains(word), "{args:?} without {word:?}: {}", text(&out));
        }
        assert_eq!(names(folder.path()), before, "{args:?}");
    }
    assert_eq!(std::fs::read(folder.path().join("there.npy")).unwrap(), b"precious");
    let out = run(folder.path(), &["lanes", "dump", "a.pts", "none", "-o", "x.npy", "--json"]);
    let view = json(&out);
    assert_eq!((&view["kind"], &view["hint"]), (&"not-found".into(), &"lanes: counts".into()));
    // What was refused goes through when it is asked for.
    ok(folder.path(), &["info", &version0, "--lenient"]);
    ok(folder.path(), &["dump", "a.pts", "counts", "-o", "there.npy", "--force"]);
    assert_eq!(names(folder.path()), before);
}

#[test]
fn format_1_becomes_format_2_and_the_same_bytes_again() {
    let folder = oracle::temp_dir();
    let original = fixture("model_app.pts");
    ok(folder.path(), &["convert", &original, "two.pts"]);
    let view = json(&ok(folder.path(), &["convert", "two.pts", "one.pts", "--format", "1", "--json"]));
    assert_eq!(view["schema"], "tensilo.lanes.written/1");
    assert_eq!(json(&ok(folder.path(), &["info", "two.pts", "--json"]))["format"], 2);
    assert_eq!(std::fs::read(folder.path().join("one.pts")).unwrap(), std::fs::read(original).unwrap());
}

#[test]
fn arrays_pass_through_a_store_as_numpy_and_h5py_see_them() {
    let Some(python) = oracle::python() else { return oracle::skip("Python with h5py", 1) };
    let folder = oracle::temp_dir();
    let script = |code: &str| {
        let code = format!("import numpy as np, h5py\n{code}");
        let out = Command::new(&python).args(["-c", &code]).current_dir(folder.path()).output().unwrap();
        assert!(out.status.success(), "{}", text(&out));
    };
    script(
        "a = np.arange(3 * 4 * 5).reshape(3, 4, 5)\n\
         np.save('a.npy', a.astype('f8') / 7)\n\
         np.save('line.npy', np.arange(11, dtype='i8'))\n\
         with h5py.File('in.h5', 'w') as f:\n \
           f.create_dataset('g/b', data=a.astype('>u2'), chunks=(2, 2, 5), compression='gzip')\n \
           f['mask'] = a % 3 == 0\n",
    );
    ok(folder.path(), &["create", "a.pts", "a=a.npy", "line=line.npy", "b=in.h5:/g/b", "mask=in.h5:/mask"]);
    ok(folder.path(), &["verify", "a.pts"]);
    ok(folder.path(), &["export", "a.pts", "-o", "out.h5"]);
    ok(folder.path(), &["export", "a.pts", "mask", "-o", "mask.h5"]);
    for lane in ["a", "line", "b", "mask"] {
        ok(folder.path(), &["dump", "a.pts", lane, "-o", &format!("out-{lane}.npy")]);
    }
    script(
        "want = {'a': np.load('a.npy'), 'line': np.load('line.npy')}\n\
         with h5py.File('in.h5') as f: want |= {'b': f['g/b'][()].astype('<u2'), 'mask': f['mask'][()]}\n\
         with h5py.File('out.h5') as f:\n \
           assert sorted(f) == sorted(want)\n \
           for n, w in want.items():\n  \
             for got in (f[n][()], np.load(f'out-{n}.npy')):\n   \
               assert got.dtype == w.dtype and got.shape == w.shape and (got == w).all(), n\n\
         with h5py.File('mask.h5') as f: assert list(f) == ['mask'] and f['mask'].dtype == bool\n",
    );
}

#[test]
fn ctrl_c_leaves_neither_store_nor_partial_file() {
    let folder = oracle::temp_dir();
    // Chunks that were never written: quickly made, slowly copied.
    let mut w =
        FileWriter::create(SystemDisk::shared(), folder.path().join("zeros.h5"), WriteOptions::default())
            .unwrap();
    w.dataset("/zeros").element::<u8>().shape(&[2 << 10, 1 << 20]).chunk(&[1, 1 << 16]).create().unwrap();
    w.finish().unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let mut child = command(folder.path())
        .args(["lanes", "create", "out/zeros.pts", "z=zeros.h5:/zeros"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while names(&out).is_empty() && begun.elapsed() < Duration::from_secs(60) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it began to write");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(names(&out), [""; 0]);
}
