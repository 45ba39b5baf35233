//! `tensilo repack` and `tensilo copy`.

use crate::program::{run, sample};
use std::process::Command;
use tensilo::hdf5::File;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_repacked_file_says_the_same_under_every_bound() {
    let (folder, _) = sample();
    let digest = run(folder.path(), &["digest", "sample.h5", "--refs", "path"]).stdout;
    for bound in ["earliest", "v18", "v110", "v112", "v114", "5"] {
        let out = run(folder.path(), &["repack", "sample.h5", "b.h5", "--bound", bound, "--force", "--json"]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        let stdout = text(&out.stdout);
        assert!(stdout.starts_with(r#"{"schema":"tensilo.repack/1","#), "{stdout}");
        assert!(
            stdout.contains(r#""groups":2,"datasets":3,"datatypes":0,"chunks_copied":4,"chunks_encoded":0"#),
            "{stdout}"
        );
        let same = run(folder.path(), &["digest", "b.h5", "--refs", "path"]).stdout;
        assert_eq!(text(&same), text(&digest), "{bound}");
    }
    // h5diff (libhdf5 1.10) compares data and attributes by itself, where it is installed.
    run(folder.path(), &["repack", "sample.h5", "c.h5", "-f", "SHUF", "-f", "GZIP=1"]);
    if let Ok(out) = Command::new("h5diff").arg("sample.h5").arg("c.h5").current_dir(folder.path()).output() {
        assert!(out.status.success() && out.stdout.is_empty(), "{}{}", text(&out.stdout), text(&out.stderr));
    }
}

#[test]
fn the_words_of_h5repack_change_filters_and_layouts() {
    let (folder, _) = sample();
    let args = ["-f", "/scan/counts:SHUF", "-f", "scan/counts:ZSTD=3", "-l", "scan/counts:CHUNK=2x3x2"];
    let out = run(folder.path(), &[&["repack", "sample.h5", "b.h5"][..], &args].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("0 chunks copied, 2 encoded"), "{}", text(&out.stdout));
    let file = File::open(folder.path().join("b.h5")).unwrap();
    let counts = file.dataset("/scan/counts").unwrap();
    assert_eq!(counts.filters().iter().map(|f| f.id).collect::<Vec<_>>(), [2, 32015]);
    assert_eq!(counts.chunk_shape(), Some(&[2, 3, 2][..]));
    assert_eq!(counts.read::<u16>().unwrap(), (0..24).collect::<Vec<u16>>());
    let out = run(folder.path(), &["repack", "sample.h5", "c.h5", "-f", "NONE", "-l", "CONTI"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let counts = File::open(folder.path().join("c.h5")).unwrap().dataset("/scan/counts").unwrap();
    assert!(counts.filters().is_empty() && counts.chunk_shape().is_none());
    let out = run(folder.path(), &["repack", "sample.h5", "d.h5", "-f", "GZIP=1", "--minimum", "1KiB"]);
    assert!(text(&out.stdout).contains("4 chunks copied, 0 encoded"), "{}", text(&out.stdout));
}

#[test]
fn the_words_about_the_whole_file_are_kept_by_the_next_copy() {
    let (folder, _) = sample();
    let args =
        ["-S", "PAGE", "-G", "1024", "-P", "1", "--fs-threshold", "3", "-s", "30", "--ssize", "10:attr"];
    let out = run(folder.path(), &[&["repack", "sample.h5", "b.h5", "--low", "v18"][..], &args].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let out = run(folder.path(), &["repack", "b.h5", "c.h5"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let out = run(folder.path(), &["repack", "b.h5", "d.h5", "-S", "FSM_AGGR", "-P", "0", "-s", "0"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let digest = text(&run(folder.path(), &["digest", "sample.h5", "--refs", "path"]).stdout);
    for (name, strategy, persist, indexes) in
        [("b.h5", 1, true, 2), ("c.h5", 1, true, 2), ("d.h5", 0, false, 0)]
    {
        let file = File::open(folder.path().join(name)).unwrap();
        let space = file.space().extension().file_space.clone().unwrap();
        assert_eq!(
            (space.strategy, space.persist, space.threshold, space.page_size),
            (strategy, persist, 3, 1024)
        );
        let shared = file.space().shared_indexes().unwrap();
        assert_eq!(shared.len(), indexes, "{name}");
        let out = run(folder.path(), &["digest", name, "--refs", "path"]);
        assert_eq!(text(&out.stdout), digest, "{name}");
        let Ok(out) = Command::new("h5diff").arg("sample.h5").arg(name).current_dir(folder.path()).output()
        else {
            continue;
        };
        assert!(out.status.success() && out.stdout.is_empty(), "{}{}", text(&out.stdout), text(&out.stderr));
    }
    let out = run(folder.path(), &["repack", "sample.h5", "e.h5", "-S", "NONE", "-P", "1"]);
    assert_eq!((out.status.code(), text(&out.stderr).contains("can remember free space")), (Some(2), true));
}

#[test]
fn refusals_name_what_is_wrong_and_leave_no_file() {
    let (folder, path) = sample();
    for (args, code, wanted) in [
        (&["-f", "GZIP=77"][..], 2, "above 9"),
        (&["-f", "BROTLI"], 2, "none of GZIP=N"),
        (&["-l", "nowhere:CONTI"], 2, "/nowhere: no dataset"),
        (&["-l", "again:CHUNK=4"], 2, "/again: chunks [4] for the shape []"),
        (&["-l", "COMPA", "-l", "CONTI"], 2, "two layouts"),
        (&["--low", "v200", "--high", "v110"], 2, "newer than v110"),
        (&["--low", "v19"], 2, "v19"),
    ] {
        let out = run(folder.path(), &[&["repack", "sample.h5", "b.h5"][..], args].concat());
        assert_eq!(out.status.code(), Some(code), "{args:?}");
        assert!(text(&out.stderr).contains(wanted), "{args:?}: {}", text(&out.stderr));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the sample is there");
    let before = std::fs::read(&path).unwrap();
    let out = run(folder.path(), &["repack", "sample.h5", "sample.h5"]);
    assert_eq!((out.status.code(), text(&out.stderr).contains("--force replaces it")), (Some(2), true));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let digest = run(folder.path(), &["digest", "sample.h5"]).stdout;
    let out = run(folder.path(), &["repack", "sample.h5", "sample.h5", "--force"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert_eq!(run(folder.path(), &["digest", "sample.h5"]).stdout, digest, "a file over itself");
}

#[test]
fn objects_are_copied_into_new_files_and_into_old_ones() {
    let (folder, _) = sample();
    let digest = |file: &str| text(&run(folder.path(), &["digest", file, "--refs", "path"]).stdout);
    let out = run(folder.path(), &["copy", "sample.h5", "/scan", "b.h5", "--as", "/runs/7/scan"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let out = run(folder.path(), &["copy", "sample.h5", "names", "b.h5"]);
    assert_eq!((out.status.code(), text(&out.stderr).contains("--into adds to it")), (Some(2), true));
    let out = run(folder.path(), &["copy", "sample.h5", "names", "b.h5", "--into"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let file = File::open(folder.path().join("b.h5")).unwrap();
    let counts = file.dataset("/runs/7/scan/counts").unwrap();
    assert_eq!(counts.read::<u16>().unwrap(), (0..24).collect::<Vec<u16>>());
    assert_eq!(counts.attribute("units").unwrap().read_string().unwrap(), "counts");
    assert_eq!(counts.chunk_shape(), Some(&[1, 2, 4][..]));
    assert_eq!(file.dataset("names").unwrap().read_strings().unwrap(), ["first", "zweiter \u{b5}"]);
    assert!(file.object("/latest").is_err() && file.root().unwrap().attributes().unwrap().is_empty());
    // A name that is taken stops the copy, and the old file stays.
    let before = digest("b.h5");
    let out = run(folder.path(), &["copy", "sample.h5", "/scan/angle", "b.h5", "--into", "--as", "names"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    assert_eq!(digest("b.h5"), before);
    let out = run(folder.path(), &["copy", "sample.h5", "/nothing", "c.h5"]);
    assert_eq!((out.status.code(), folder.path().join("c.h5").exists()), (Some(2), false));
}

/// Writes `.npy` files and raw bytes with NumPy, and compares what came back with the originals.
const NUMPY: &str = "
import sys, numpy as np
what, folder = sys.argv[1:]
a = (np.arange(7 * 50 * 30) % 251).astype('>u2').reshape(7, 50, 30)
if what == 'make':
    np.save(folder + '/a.npy', a)
    a.tofile(folder + '/a.raw')
    np.save(folder + '/s.npy', np.float64(2.5))
else:
    import h5py, hdf5plugin
    for name in ('plain', 'cut', 'raw'):
        with h5py.File(f'{folder}/{name}.h5') as f:
            d = f['group/x' if name == 'cut' else 'data']
            assert d.dtype == a.dtype and (d[()] == a).all(), name
            assert d.chunks == ((2, 7, 30) if name == 'cut' else None), name
        back = np.load(f'{folder}/{name}.npy')
        assert back.dtype == a.dtype and back.shape == a.shape and (back == a).all(), name
    assert np.fromfile(folder + '/b.raw', '>u2').tobytes() == a.tobytes()
    assert np.load(folder + '/t.npy') == 2.5
";

#[test]
fn npy_files_and_raw_bytes_become_datasets_and_come_back() {
    let Some(python) = tensilo_testkit::oracle::python() else {
        return tensilo_testkit::oracle::skip("Python with h5py", 1);
    };
    let folder = tensilo_testkit::oracle::temp_dir();
    let numpy = |what: &str| {
        let status = Command::new(&python).args(["-c", NUMPY, what]).arg(folder.path()).status().unwrap();
        assert!(status.success(), "{what}");
    };
    numpy("make");
    let cut =
        ["convert", "a.npy", "cut.h5", "-d", "group/x", "--chunk", "2x7x30", "-f", "SHUF", "-f", "ZSTD=3"];
    for args in [
        &["convert", "a.npy", "plain.h5"][..],
        &cut,
        &["convert", "a.raw", "raw.h5", "--dtype", ">u2", "--shape", "7x50x30"],
        &["convert", "plain.h5", "plain.npy"],
        &["convert", "cut.h5", "cut.npy", "--dataset", "group/x"],
        &["convert", "raw.h5", "raw.npy"],
        &["convert", "cut.h5", "b.raw", "--dataset", "group/x"],
        &["convert", "s.npy", "s.h5"],
        &["convert", "s.h5", "t.npy"],
    ] {
        let out = run(folder.path(), args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out.stderr));
    }
    numpy("compare");
    for (args, wanted) in [
        (&["convert", "a.npy", "plain.h5"][..], "--force replaces it"),
        (&["convert", "a.raw", "c.h5", "--dtype", "<f8", "--shape", "7x50x30"], "needs more than"),
        (&["convert", "a.npy", "c.h5", "-f", "SHUF"], "--chunk"),
        (&["convert", "a.npy", "c.h5", "--chunk", "7x7"], "chunks [7, 7]"),
    ] {
        let out = run(folder.path(), args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains(wanted), "{args:?}: {}", text(&out.stderr));
        assert!(!folder.path().join("c.h5").exists());
    }
}

/// Writes archives with NumPy, and compares what came back with the originals.
const ARCHIVES: &str = "
import sys, numpy as np
what, folder = sys.argv[1:]
a = (np.arange(40 * 50) % 251).astype('>u2').reshape(40, 50)
b = np.linspace(0, 1, 30 * 8).reshape(30, 8)
if what == 'make':
    np.savez(folder + '/stored.npz', **{'group/a': a, 'b': b})
    np.savez_compressed(folder + '/deflated.npz', **{'group/a': a, 'b': b})
    np.savez(folder + '/object.npz', o=np.array([{}], dtype=object))
else:
    import h5py
    for name in ('stored', 'deflated', 'cut'):
        with h5py.File(f'{folder}/{name}.h5') as f:
            assert f['group/a'].dtype == a.dtype and (f['group/a'][()] == a).all(), name
            assert (f['b'][()] == b).all() and f['b'].chunks == ((7, 8) if name == 'cut' else None), name
    with h5py.File(folder + '/one.h5') as f:
        assert list(f) == ['b'] and (f['b'][()] == b).all()
    for name in ('again', 'smaller'):
        with np.load(f'{folder}/{name}.npz') as z:
            assert sorted(z.files) == ['b', 'group/a'] and z['group/a'].dtype == a.dtype
            assert (z['group/a'] == a).all() and (z['b'] == b).all()
    with np.load(folder + '/one.npz') as z:
        assert z.files == ['group/a'] and (z['group/a'] == a).all()
";

#[test]
fn npz_archives_become_files_of_datasets_and_come_back() {
    let Some(python) = tensilo_testkit::oracle::python() else {
        return tensilo_testkit::oracle::skip("Python with h5py", 1);
    };
    let folder = tensilo_testkit::oracle::temp_dir();
    let numpy = |what: &str| {
        let status = Command::new(&python).args(["-c", ARCHIVES, what]).arg(folder.path()).status().unwrap();
        assert!(status.success(), "{what}");
    };
    numpy("make");
    for args in [
        &["convert", "stored.npz", "stored.h5"][..],
        &["convert", "deflated.npz", "deflated.h5"],
        &["convert", "deflated.npz", "cut.h5", "--chunk", "7x8", "-f", "SHUF", "-f", "GZIP=1"],
        &["convert", "stored.npz", "one.h5", "-d", "b"],
        &["convert", "cut.h5", "again.npz"],
        &["convert", "cut.h5", "smaller.npz", "--deflate"],
        &["convert", "cut.h5", "one.npz", "-d", "group/a"],
    ] {
        let out = run(folder.path(), args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out.stderr));
    }
    numpy("compare");
    let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(size("smaller.npz") < size("again.npz"));
    for (args, wanted) in [
        (&["convert", "stored.npz", "cut.h5"][..], "--force replaces it"),
        (&["convert", "object.npz", "c.h5"], "elements of type |O"),
        (&["convert", "stored.npz", "c.h5", "-d", "c"], "no array is called \"c\""),
        (&["convert", "stored.npz", "c.h5", "--deflate"], "--deflate is for .npz files"),
        (&["convert", "cut.h5", "c.h5.npz", "-d", "c"], "c"),
    ] {
        let out = run(folder.path(), args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains(wanted), "{args:?}: {}", text(&out.stderr));
        assert!(!folder.path().join("c.h5").exists() && !folder.path().join("c.h5.npz").exists());
    }
}

/// Structured arrays of NumPy, an HDF5 file of what NumPy cannot hold, and the comparison.
const STRUCTURED: &str = r#"
import sys, numpy as np, h5py
what, folder = sys.argv[1:]
rng = np.random.default_rng(4)
def filled(shape, dtype):
    return np.ndarray(shape, dtype, bytearray(rng.bytes(np.dtype(dtype).itemsize * int(np.prod(shape)))))
arrays = [
    filled((5,), [("a", "<i2"), ("b", ">u8", (2, 3)), ("s", "S3")]),
    filled((2, 3), np.dtype([("x", "u1"), ("y", "<u8")], align=True)),
    filled((4,), [("shape", "<u4"), ("descr", [("fortran_order", "i1"), ("größe's", "<u2", (2,))])]),
    filled((0, 2), [("a", "<u4")]),
    np.zeros((), [("a", "<c8"), ("b", "?")]),
    np.array([(1, 2)], np.dtype({"names": ["p", "q"], "formats": ["<i4", "u1"], "offsets": [3, 8], "itemsize": 20})),
]
if what == "make":
    for i, a in enumerate(arrays):
        np.save(f"{folder}/{i}.npy", a)
    np.savez(f"{folder}/all.npz", *arrays)
    np.save(f"{folder}/unicode.npy", np.zeros(2, [("a", "U3")]))
    with h5py.File(f"{folder}/null.h5", "w") as f:
        f["n"] = h5py.Empty("f4")
else:
    with np.load(f"{folder}/back.npz") as back, h5py.File(f"{folder}/all.h5") as f:
        for i, a in enumerate(arrays):
            for got in (np.load(f"{folder}/back{i}.npy"), back[f"arr_{i}"], f[f"arr_{i}"][()]):
                assert got.shape == a.shape and set(got.dtype.names) == set(a.dtype.names), (i, got.dtype)
                for name in a.dtype.names:
                    assert got.dtype[name] == a.dtype[name] or got.dtype[name].fields, (i, name, got.dtype)
                    assert got[name].tobytes() == a[name].tobytes(), (i, name)
"#;

#[test]
fn structured_arrays_become_compounds_and_come_back_and_null_dataspaces_are_no_arrays() {
    let Some(python) = tensilo_testkit::oracle::python() else {
        return tensilo_testkit::oracle::skip("Python with h5py", 1);
    };
    let folder = tensilo_testkit::oracle::temp_dir();
    let numpy = |what: &str| {
        let status =
            Command::new(&python).args(["-c", STRUCTURED, what]).arg(folder.path()).status().unwrap();
        assert!(status.success(), "{what}");
    };
    numpy("make");
    let done = |args: &[&str]| {
        let out = run(folder.path(), &[&["--json"], args].concat());
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out.stderr));
        let line: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(line["schema"], "tensilo.convert/1");
        assert_eq!(line["bytes"], folder.path().join(args[2]).metadata().unwrap().len());
    };
    for i in 0..6 {
        done(&["convert", &format!("{i}.npy"), &format!("{i}.h5")]);
        done(&["convert", &format!("{i}.h5"), &format!("back{i}.npy")]);
    }
    done(&["convert", "all.npz", "all.h5"]);
    done(&["convert", "all.h5", "back.npz"]);
    numpy("compare");
    for (args, wanted) in [
        (&["convert", "null.h5", "c.npy", "-d", "n"][..], "null dataspace"),
        (&["convert", "null.h5", "c.npz"], "null dataspace"),
        (&["convert", "null.h5", "c.npy"], "--dataset"),
        (&["convert", "unicode.npy", "c.npy"], "U3"),
        (&["convert", "null.h5", "c.npy", "-d", "m"], "m"),
        (&["convert", "0.npy", "c.npy", "--dtype", "<q9", "--shape", "2"], "<q9"),
        (&["convert", "back0.npy.nothing", "c.npy"], "back0"),
        (&["copy", "null.h5", "/", "c.npy"], "--as"),
    ] {
        let out = run(folder.path(), args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains(wanted), "{args:?}: {}", text(&out.stderr));
        assert!(!folder.path().join("c.npy").exists() && !folder.path().join("c.npz").exists());
    }
}
