//! `tensilo records`: what goes in comes out, as NumPy and h5py see it; damage is an answer.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::program::run;
use std::path::Path;
use std::process::Output;
use tensilo_testkit::oracle;

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

fn ok(folder: &Path, args: &[&str]) -> String {
    let out = run(folder, args);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out));
    String::from_utf8(out.stdout).unwrap()
}

fn json(folder: &Path, args: &[&str]) -> (i32, serde_json::Value) {
    let out = run(folder, &[args, &["--json"]].concat());
    let line = String::from_utf8_lossy(&out.stdout).into_owned();
    let value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", text(&out)));
    (out.status.code().unwrap(), value)
}

/// `.npy` files and an HDF5 file made by NumPy and h5py, and what must be in the results.
const MAKE: &str = r#"
import h5py, numpy as np, sys, os
folder = sys.argv[1]
r = np.random.default_rng(5)
image = (r.random((500, 7, 9)) * 1000).astype("<u2")
label = (np.arange(500) % 10).astype("u1")
words = [b"w" * int(n) for n in r.integers(0, 20, 500)]
np.save(f"{folder}/image.npy", image)
np.save(f"{folder}/label.npy", label)
np.save(f"{folder}/text.npy", np.frombuffer(b"".join(words), "u1"))
np.save(f"{folder}/lengths.npy", np.array([len(w) for w in words], "<u8"))
with h5py.File(f"{folder}/a.h5", "w") as f:
    f.create_dataset("g/image", data=image.astype(">u2"), chunks=(64, 7, 9), compression="gzip")
os.makedirs(f"{folder}/files/sub")
for i in range(20):
    name = f"{folder}/files/{'sub/' if i % 3 == 0 else ''}f{i:02}.bin"
    open(name, "wb").write(bytes(range(i)))
"#;

const CHECK: &str = r#"
import numpy as np, sys
folder = sys.argv[1]
def load(name): return np.load(f"{folder}/{name}.npy")
image, label = load("image"), load("label")
for out, want in [("image_out", image), ("label_out", label), ("h5_out", image), ("text_out", load("text")), ("lengths_out", load("lengths"))]:
    got = load(out)
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all(), out
"#;

fn python(folder: &Path, script: &str) {
    oracle::python_stdout(script, [folder], b"");
}

#[test]
fn arrays_datasets_and_folders_go_in_and_come_out_as_they_were() {
    if !oracle::python_has("h5py") {
        return oracle::skip("Python with h5py", 1);
    }
    let dir = oracle::temp_dir();
    let folder = dir.path();
    python(folder, MAKE);
    let told = ok(
        folder,
        &[
            "records",
            "import",
            "a.trec",
            "image=image.npy",
            "label=label.npy",
            "text=text.npy,lengths.npy",
            "--codec",
            "zstd",
            "--field-codec",
            "image=bitshuffle+lz4",
            "--metadata",
            "{\"set\":\"train\"}",
        ],
    );
    assert_eq!(told, "500 records appended, 500 in the store\n");
    ok(folder, &["records", "export", "a.trec", "--field", "image", "-o", "image_out.npy"]);
    ok(folder, &["records", "export", "a.trec", "--field", "label", "-o", "label_out.npy"]);
    ok(
        folder,
        &[
            "records",
            "export",
            "a.trec",
            "--field",
            "text",
            "-o",
            "text_out.npy",
            "--lengths",
            "lengths_out.npy",
        ],
    );
    ok(folder, &["records", "import", "h.trec", "image=a.h5:/g/image", "--codec", "shuffle+deflate:1"]);
    ok(folder, &["records", "export", "h.trec", "-o", "h5_out.npy"]);
    python(folder, CHECK);

    let (code, stats) = json(folder, &["records", "stats", "a.trec"]);
    assert_eq!(
        (code, &stats["schema"], &stats["records"]),
        (0, &"tensilo.records.stats/1".into(), &500.into())
    );
    assert_eq!(stats["fields"][0]["encoding"], "bitshuffle+lz4");
    assert_eq!(stats["fields"][2]["ragged"], true);
    assert_eq!(stats["metadata"]["set"], "train");

    ok(folder, &["records", "import", "f.trec", "files", "--codec", "lz4"]);
    let (_, record) = json(folder, &["records", "get", "f.trec", "-1"]);
    let name: Vec<u8> =
        record["fields"][0]["values"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u8).collect();
    assert_eq!(String::from_utf8(name).unwrap(), "sub/f18.bin");
    let raw = run(folder, &["records", "get", "f.trec", "-1", "--field", "data", "--raw"]);
    assert_eq!(raw.stdout, (0..18).collect::<Vec<u8>>());
}

#[test]
fn records_are_created_appended_deleted_and_compacted() {
    if !oracle::python_has("h5py") {
        return oracle::skip("Python with h5py", 1);
    }
    let dir = oracle::temp_dir();
    let folder = dir.path();
    python(folder, MAKE);
    ok(
        folder,
        &[
            "records",
            "create",
            "a.trec",
            "--field",
            "image:uint16:7x9",
            "--field",
            "label:u1",
            "--codec",
            "lz4",
        ],
    );
    let again = run(folder, &["records", "create", "a.trec", "--field", "x:u1"]);
    assert_eq!(again.status.code(), Some(2));
    for n in [500, 1000] {
        let (_, view) = json(folder, &["records", "append", "a.trec", "label=label.npy", "image=image.npy"]);
        assert_eq!((&view["appended"], &view["records"]), (&500.into(), &n.into()));
    }
    let wrong = run(folder, &["records", "append", "a.trec", "image=image.npy"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    let (_, view) = json(folder, &["records", "delete", "a.trec", "3", "10:990"]);
    assert_eq!((&view["deleted"], &view["records"]), (&981.into(), &19.into()));
    assert_eq!(run(folder, &["records", "delete", "a.trec", "19"]).status.code(), Some(2));
    let (_, view) = json(folder, &["records", "compact", "a.trec"]);
    assert!(view["after"].as_u64().unwrap() * 5 < view["before"].as_u64().unwrap(), "{view}");
    ok(folder, &["records", "verify", "a.trec"]);
    // 1000 records, 3 and 10 to 989 gone: the last ones took the places, ten times over.
    let label = |id: u64| id % 500 % 10;
    let mut left: Vec<u64> = (0..1000).collect();
    for id in (10..990).rev().chain([3]) {
        left.swap_remove(id);
    }
    for (id, was) in left.iter().enumerate() {
        let (_, record) = json(folder, &["records", "get", "a.trec", &id.to_string(), "--field", "label"]);
        assert_eq!(record["fields"][0]["values"], label(*was), "record {id}");
    }
}

#[test]
fn damage_is_an_answer_and_what_is_whole_is_saved() {
    if !oracle::python_has("h5py") {
        return oracle::skip("Python with h5py", 1);
    }
    let dir = oracle::temp_dir();
    let folder = dir.path();
    python(folder, MAKE);
    ok(folder, &["records", "import", "a.trec", "image=image.npy", "label=label.npy"]);
    let path = folder.join("a.trec");
    let mut bytes = std::fs::read(&path).unwrap();
    let npy = std::fs::read(folder.join("image.npy")).unwrap();
    let row = &npy[npy.len() - 500 * 126..][77 * 126..78 * 126];
    let at = bytes.windows(126).position(|w| w == row).unwrap();
    bytes[at + 5] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
    let (code, view) = json(folder, &["records", "verify", "a.trec"]);
    assert_eq!((code, &view["good"], &view["bad_records"]), (1, &false.into(), &1.into()));
    assert_eq!(
        (&view["described"][0]["record"], &view["described"][0]["field"]),
        (&77.into(), &"image".into())
    );
    assert_eq!(run(folder, &["records", "get", "a.trec", "77"]).status.code(), Some(2));
    let (code, view) = json(folder, &["records", "salvage", "a.trec", "b.trec"]);
    assert_eq!((code, &view["saved"], &view["lost"]), (1, &499.into(), &1.into()));
    ok(folder, &["records", "verify", "b.trec"]);
    let nothing = run(folder, &["records", "stats", "image.npy"]);
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn an_import_that_fails_leaves_no_store() {
    let dir = oracle::temp_dir();
    let folder = dir.path();
    std::fs::write(folder.join("a.npy"), b"\x93NUMPY").unwrap();
    let out = run(folder, &["records", "import", "a.trec", "x=a.npy"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(!folder.join("a.trec").exists());
}

#[test]
fn a_run_that_fails_leaves_the_store_that_was_there() {
    if !oracle::python_has("h5py") {
        return oracle::skip("Python with h5py", 1);
    }
    let dir = oracle::temp_dir();
    let folder = dir.path();
    python(folder, MAKE);
    ok(folder, &["records", "import", "a.trec", "label=label.npy"]);
    let before = std::fs::read(folder.join("a.trec")).unwrap();
    // A dataset whose last chunk does not match its checksum.
    ok(folder, &["convert", "image.npy", "b.h5", "--chunk", "64x7x9", "--filter", "FLET"]);
    let mut bytes = std::fs::read(folder.join("b.h5")).unwrap();
    let npy = std::fs::read(folder.join("image.npy")).unwrap();
    let row = &npy[npy.len() - 126..];
    let at = bytes.windows(126).position(|w| w == row).unwrap();
    bytes[at + 5] ^= 0x10;
    std::fs::write(folder.join("b.h5"), bytes).unwrap();
    for (args, hint) in [
        (&["import", "a.trec", "x=b.h5:/data", "--force"][..], ""),
        (&["import", "a.trec", "label=label.npy"], "--force"),
        (&["create", "a.trec", "--field", "x:u1"], "--force"),
        (&["salvage", "a.trec", "a.trec", "--force"], "another destination"),
        (&["salvage", ".", "b.trec"], "no checksums"),
        (&["append", "a.trec", "image.npy"], "NAME=SOURCE"),
        (&["append", "a.trec", "label=image.npy"], "field \"label\" of the store is uint8 scalar"),
        (&["append", "a.trec", "label=b.h5:data"], "FILE.h5:/path"),
    ] {
        let out = run(folder, &[&["records"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out).contains(hint), "{args:?}: {}", text(&out));
        assert!(std::fs::read(folder.join("a.trec")).unwrap() == before, "{args:?}");
    }
    // The values are not replaced by the lengths of the same run.
    ok(folder, &["records", "import", "t.trec", "text=text.npy,lengths.npy"]);
    for lengths in ["out.npy", "./out.npy"] {
        let out =
            run(folder, &["records", "export", "t.trec", "-o", "out.npy", "--lengths", lengths, "--force"]);
        assert_eq!(out.status.code(), Some(2));
        assert!(!folder.join("out.npy").exists());
    }
    let partials = std::fs::read_dir(folder)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".partial"));
    assert_eq!(partials.count(), 0);
}

#[test]
fn arrays_of_the_other_byte_order_become_records() {
    if !oracle::python_has("numpy") {
        return oracle::skip("Python with numpy", 1);
    }
    let dir = oracle::temp_dir();
    let folder = dir.path();
    let make = r#"
import numpy as np, sys
for i, t in enumerate(["i2", "u4", "f8", "c8", "c16", "f2"]):
    np.save(f"{sys.argv[1]}/big{i}.npy", (np.arange(30).reshape(10, 3) * 1000.5).astype(">" + t))
np.save(f"{sys.argv[1]}/lengths.npy", np.array([3, 0, 7], ">i8"))
"#;
    python(folder, make);
    for i in 0..6 {
        ok(folder, &["records", "import", &format!("{i}.trec"), &format!("big{i}.npy")]);
        ok(folder, &["records", "export", &format!("{i}.trec"), "-o", &format!("{i}.npy")]);
    }
    ok(folder, &["records", "import", "r.trec", "big1.npy,lengths.npy"]);
    let (code, view) = json(folder, &["records", "export", "r.trec", "-o", "r.npy", "--lengths", "l.npy"]);
    assert_eq!((code, &view["schema"], &view["records"]), (0, &"tensilo.records.export/1".into(), &3.into()));
    let check = r#"
import numpy as np, sys
load = lambda name: np.load(f"{sys.argv[1]}/{name}.npy")
for got, want in [(str(i), f"big{i}") for i in range(6)] + [("r", "big1"), ("l", "lengths")]:
    a, b = load(got), load(want)
    assert a.dtype.byteorder != ">" and a.shape == b.shape and (a == b).all(), (got, a, b)
"#;
    python(folder, check);
}

#[test]
fn the_frames_of_a_pack_become_records() {
    let dir = oracle::temp_dir();
    let folder = dir.path();
    let master = oracle::workspace_root().join("examples/family/demo_master.h5").display().to_string();
    ok(folder, &["pack", "produce", &master, "demo.tensilo", "--index-dir", "index"]);
    ok(folder, &["records", "import", "frames.trec", "frame=demo.tensilo", "--codec", "bitshuffle+lz4"]);
    ok(folder, &["records", "export", "frames.trec", "-o", "frames.npy"]);
    ok(folder, &["pack", "unpack", "demo.tensilo", "pack.npy", "--masked"]);
    let (records, pack) =
        (std::fs::read(folder.join("frames.npy")).unwrap(), std::fs::read(folder.join("pack.npy")).unwrap());
    let n = 16 * 32 * 64 * 64 * 2;
    assert!(records[records.len() - n..] == pack[pack.len() - n..]);
}
