//! Archives of arrays: NumPy reads ours, we read NumPy's; false archives; what crashes and faults leave.

#![expect(clippy::print_stdout, reason = "what was counted is part of the claim")]
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use std::path::Path;
use std::sync::Arc;
use tensilo_convert::hdf5::{dataset_to_file, datasets};
use tensilo_convert::npz::{NpzFile, NpzWriter};
use tensilo_core::io::{Disk, MemorySource, SystemDisk};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, ErrorKind, Limits, Quiet, Result};
use tensilo_hdf5::format::datatype::{ByteOrder, CharacterSet, Datatype};
use tensilo_hdf5::read::{File, OpenOptions};
use tensilo_hdf5::write::{FileWriter, Filters, WriteOptions};
use tensilo_testkit::disk_log::{ModelDisk, Options, RecordingDisk, check_all, every_fault};
use tensilo_testkit::oracle;

/// The datatype of the few dtypes that these tests use.
fn datatype(descr: &str) -> Datatype {
    let order = if descr.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
    match &descr[1..] {
        "f4" => Datatype::float32(order),
        "f8" => Datatype::float64(order),
        "S3" => Datatype::fixed_string(3, CharacterSet::Ascii),
        integer => Datatype::integer(integer[1..].parse().expect("a size"), integer.starts_with('i'), order),
    }
}

/// Every array becomes a dataset, chunked where it has as many axes as `chunk`.
fn into_hdf5(
    npz: &mut NpzFile,
    w: &mut FileWriter<'_>,
    chunk: Option<&[u64]>,
    budget: &Budget,
) -> Result<()> {
    let names = npz.names().to_vec();
    for (i, name) in names.iter().enumerate() {
        let array = npz.array(i)?;
        let kind = datatype(array.descr());
        let chunk = chunk.filter(|c| c.len() == array.shape().len());
        let filters = if chunk.is_some() { Filters::new().shuffle().deflate(1) } else { Filters::new() };
        array.write(w.dataset(name).filters(filters), kind, chunk, budget)?;
    }
    Ok(())
}

fn budget() -> Budget {
    Budget::new(Limits::default())
}

const MAKE: &str = r#"
import sys, numpy as np
rng = np.random.default_rng(3)
kinds = ["<f4", ">f8", "|u1", "<i2", ">u4", "|S3", "<i8"]
arrays = {}
for i, shape in enumerate([(), (7,), (5, 3), (0, 4), (4, 5, 6), (3000, 11), (1, 1, 1, 1)]):
    for j, kind in enumerate(kinds):
        arrays[f"group{i}/{kind[1:]}"] = np.asarray(rng.integers(0, 99, shape)).astype(kind)
arrays["größe"] = np.asfortranarray(rng.integers(0, 99, (9,))).astype("<i2")
np.savez(sys.argv[1] + "/stored.npz", **arrays)
np.savez_compressed(sys.argv[1] + "/deflated.npz", **arrays)
"#;

const COMPARE: &str = r#"
import sys, h5py, numpy as np
for name in ["stored", "deflated"]:
    with np.load(sys.argv[1] + f"/{name}.npz") as z:
        for chunked in ["plain", "chunked"]:
            with h5py.File(sys.argv[1] + f"/{name}-{chunked}.h5") as f:
                seen = []
                f.visititems(lambda n, o: seen.append(n) if isinstance(o, h5py.Dataset) else None)
                assert sorted(seen) == sorted(z.files), (seen, z.files)
                for n in z.files:
                    assert f[n].dtype == z[n].dtype and f[n].shape == z[n].shape, n
                    assert np.asarray(f[n][()], f[n].dtype).tobytes() == z[n].tobytes(), n
                    assert (chunked == "chunked" and z[n].ndim == 2) == (f[n].chunks is not None), n
            for again in ["stored", "deflated"]:
                with np.load(sys.argv[1] + f"/{name}-{chunked}-{again}.npz") as y:
                    assert sorted(y.files) == sorted(z.files)
                    for n in z.files:
                        assert y[n].dtype == z[n].dtype and y[n].shape == z[n].shape, n
                        assert y[n].tobytes() == z[n].tobytes(), n
print("same")
"#;

/// The name of each dataset ends with its dtype; one has a name that says nothing.
fn dtype_of(name: &str) -> &'static str {
    let kind = name.rsplit('/').next().expect("a name");
    let all = ["<f4", ">f8", "|u1", "<i2", ">u4", "|S3", "<i8"];
    all.into_iter().find(|k| k[1..] == *kind).unwrap_or("<i2")
}

#[test]
fn numpys_archives_become_hdf5_and_archives_again_that_numpy_reads() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let folder = oracle::temp_dir();
    oracle::run_python(MAKE, [folder.path().to_str().expect("text")], b"");
    let at = |name: String| folder.path().join(name);
    for name in ["stored", "deflated"] {
        for (form, chunk) in [("plain", None), ("chunked", Some(&[4_u64, 2][..]))] {
            let mut npz = NpzFile::open(at(format!("{name}.npz"))).expect("an archive");
            assert_eq!(npz.names().len(), 50);
            let path = at(format!("{name}-{form}.h5"));
            let mut w =
                FileWriter::create(SystemDisk::shared(), &path, WriteOptions::default()).expect("a file");

            into_hdf5(&mut npz, &mut w, chunk, &budget()).expect("written");
            w.finish().expect("finished");
            let file = File::open(&path).expect("opened");
            for (again, deflate) in [("stored", false), ("deflated", true)] {
                let path = at(format!("{name}-{form}-{again}.npz"));
                let mut out = NpzWriter::create(SystemDisk::shared(), &path, deflate).expect("an archive");
                for (name, dataset) in datasets(&file).expect("datasets") {
                    let head = tensilo_convert::npy::header(dtype_of(&name), dataset.shape());
                    out.add(&name, &head, &dataset, &Quiet).expect("a member");
                }
                let bytes = out.finish(false).expect("finished");
                assert_eq!(bytes, std::fs::metadata(&path).expect("the file").len());
            }
        }
    }
    let script = folder.path().join("compare.py");
    std::fs::write(&script, COMPARE).expect("a script");
    let said = oracle::python_stdout(&script, [folder.path()], b"");
    assert_eq!(String::from_utf8_lossy(&said), "same\n");
}

const REFUSED: &str = r#"
import sys, zipfile, io, numpy as np
folder = sys.argv[1]
def npy(a, **k):
    b = io.BytesIO(); np.save(b, a, **k); return b.getvalue()
good = npy(np.arange(5.0))
def make(name, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(f"{folder}/{name}.npz", "w", method) as z:
        for n, b in members:
            z.writestr(n, b)
make("other", [("readme.txt", b"text")])
make("absolute", [("/a.npy", good)])
make("above", [("../a.npy", good)])
make("empty", [("a//b.npy", good)])
make("folder", [("a/", b"")])
make("bzip2", [("a.npy", good)], zipfile.ZIP_BZIP2)
make("object", [("a.npy", npy(np.array([{}], dtype=object), allow_pickle=True))])
make("record", [("a.npy", npy(np.zeros(3, "u1,U3")))])
make("unicode", [("a.npy", npy(np.array(["text"])))])
make("fortran", [("a.npy", npy(np.asfortranarray(np.zeros((3, 4)))))])
make("short", [("a.npy", good[:-1])])
make("long", [("a.npy", good + b"x")])
make("shortd", [("a.npy", good[:-1])], zipfile.ZIP_DEFLATED)
make("longd", [("a.npy", good + b"x")], zipfile.ZIP_DEFLATED)
make("text", [("a.npy", b"no array at all")])
make("sound", [("a.npy", good)])
raw = bytearray(open(f"{folder}/sound.npz", "rb").read())
raw[raw.index(good) + len(good) - 3] ^= 1
open(f"{folder}/checksum.npz", "wb").write(raw)
raw = bytearray(open(f"{folder}/sound.npz", "rb").read())
# The bit that says encrypted, in both headers.
raw[6] |= 1; raw[raw.index(b"PK\x01\x02") + 8] |= 1
open(f"{folder}/encrypted.npz", "wb").write(raw)
"#;

#[test]
fn what_cannot_be_converted_is_refused_by_name_and_leaves_no_file() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let folder = oracle::temp_dir();
    oracle::run_python(REFUSED, [folder.path().to_str().expect("text")], b"");
    let convert = |name: &str| -> Result<()> {
        let out = folder.path().join("out.h5");
        let mut npz = NpzFile::open(folder.path().join(format!("{name}.npz")))?;
        let mut w = FileWriter::create(SystemDisk::shared(), &out, WriteOptions::default())?;
        into_hdf5(&mut npz, &mut w, None, &budget())?;
        w.finish().map(|_| ())
    };
    convert("sound").expect("sound");
    std::fs::remove_file(folder.path().join("out.h5")).expect("removed");
    let unsupported = [
        "other",
        "absolute",
        "above",
        "empty",
        "folder",
        "bzip2",
        "object",
        "record",
        "unicode",
        "fortran",
        "encrypted",
    ];
    let corrupt = ["short", "long", "shortd", "longd", "text", "checksum"];
    let cases = unsupported
        .iter()
        .map(|n| (n, ErrorKind::Unsupported))
        .chain(corrupt.iter().map(|n| (n, ErrorKind::Corrupt)));
    for (name, kind) in cases {
        let e = convert(name).expect_err(name);
        assert_eq!(e.kind(), kind, "{name}: {e}");
        assert!(!folder.path().join("out.h5").exists(), "{name}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 18, "no temporary file is left");
}

/// A file in memory with a small and a large dataset.
fn source() -> File {
    let disk = ModelDisk::new();
    let options = WriteOptions::default().threads(Threads::ONE);
    let mut w = FileWriter::create(Arc::new(disk.clone()), "/a.h5", options).expect("a file");
    w.dataset("g/small").write(&[1_u16, 2, 3]).expect("a dataset");
    let noise: Vec<u32> = (0..400_000_u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    w.dataset("large").shape(&[400, 1000]).chunk(&[50, 1000]).write(&noise).expect("a dataset");
    w.finish().expect("a file");
    let bytes = disk.bytes("/a.h5").expect("the file");
    File::from_source(Arc::new(MemorySource::new(bytes)), OpenOptions::default()).expect("opened")
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Stored,
    Deflated,
    /// One `.npy` file of the large dataset.
    Array,
}

fn archive(file: &File, disk: Arc<dyn Disk>, form: Form, replace: bool) -> Result<()> {
    if form == Form::Array {
        let large = file.dataset("large")?;
        let head = tensilo_convert::npy::header("<u4", large.shape());
        return dataset_to_file(&large, &head, disk, Path::new("/a.npz"), replace, &Quiet).map(|_| ());
    }
    let mut out = NpzWriter::create(disk, "/a.npz", form == Form::Deflated)?;
    for (name, dataset) in datasets(file)? {
        let head = tensilo_convert::npy::header(if name == "large" { "<u4" } else { "<u2" }, dataset.shape());
        out.add(&name, &head, &dataset, &Quiet)?;
    }
    out.finish(replace).map(|_| ())
}

fn whole(file: &File, form: Form) -> Vec<u8> {
    let disk = ModelDisk::new();
    archive(file, Arc::new(disk.clone()), form, false).expect("written");
    disk.bytes("/a.npz").expect("the file")
}

#[test]
fn a_crash_at_any_point_leaves_no_archive_or_the_old_or_the_whole_one() {
    let file = source();
    for form in [Form::Stored, Form::Deflated, Form::Array] {
        let expected = whole(&file, form);
        assert!(whole(&file, form) == expected, "the same bytes every time");
        for replace in [false, true] {
            let disk = RecordingDisk::new();
            if replace {
                let old = disk.create_new(Path::new("/a.npz")).expect("the old file");
                old.write_at(0, b"old").expect("written");
                old.sync().expect("synced");
                disk.sync_dir(Path::new("/")).expect("synced");
                disk.mark("old");
            }
            archive(&file, Arc::new(disk.clone()), form, replace).expect("written");
            disk.mark("finished");
            let counts = check_all(&disk.log(), &Options::default(), |state| {
                if replace && !state.passed("old") {
                    return Ok(());
                }
                match state.bytes(Path::new("/a.npz")) {
                    None if replace || state.passed("finished") => Err("gone".into()),
                    Some(bytes) if bytes == b"old" && replace && !state.passed("finished") => Ok(()),
                    Some(bytes) if bytes != expected => Err("neither the old nor the whole file".into()),
                    _ => Ok(()),
                }
            });
            println!("{form:?}, replace {replace}: {counts}");
            assert!(counts.states > 10 && counts.skipped == 0, "{counts}");
        }
    }
}

#[test]
fn every_failing_operation_is_reported_and_leaves_no_archive() {
    let file = source();
    for form in [Form::Stored, Form::Array] {
        let expected = whole(&file, form);
        let struck = every_fault(
            ModelDisk::new,
            |disk| archive(&file, disk, form, false),
            |disk, fault, result| match (result, disk.bytes("/a.npz")) {
                (Ok(()), Some(bytes)) => assert!(bytes == expected, "{fault:?}"),
                (Ok(()), None) => panic!("{fault:?}: finished, but no file"),
                (Err(_), None) => {}
                // A disk that refuses everything from here on also refuses to take the name back.
                (Err(_), Some(bytes)) => assert!(fault.lasting && bytes == expected, "{fault:?}"),
            },
        );
        println!("{form:?}: {struck} faults struck");
        assert!(struck > 10, "{struck} faults struck");
    }
}

#[test]
fn a_stopped_or_dropped_archive_leaves_no_file_and_one_in_the_way_stays() {
    let file = source();
    let large = file.dataset("large").expect("a dataset");
    let disk = ModelDisk::new();
    disk.put("/a.npz", b"old".to_vec());
    let e = archive(&file, Arc::new(disk.clone()), Form::Stored, false).expect_err("in the way");
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    let stop = |_: &tensilo_core::Progress| -> Result<()> { Err(Error::cancelled()) };
    let mut out = NpzWriter::create(Arc::new(disk.clone()), "/b.npz", true).expect("an archive");
    let head = tensilo_convert::npy::header("<u4", large.shape());
    assert_eq!(out.add("x", &head, &large, &stop).expect_err("stopped").kind(), ErrorKind::Cancelled);
    out.add("y", &head, &large, &Quiet).expect_err("given up");
    assert_eq!(out.finish(true).expect_err("given up").kind(), ErrorKind::InvalidArgument);
    let mut out = NpzWriter::create(Arc::new(disk.clone()), "/b.npz", true).expect("an archive");
    out.add("x", &head, &large, &Quiet).expect("a member");
    out.add("x", &head, &large, &Quiet).expect_err("the same name");
    drop(out);
    assert_eq!(disk.image().files().len(), 1);
    assert_eq!(disk.bytes("/a.npz").expect("the old file"), b"old");
}

/// `TENSILO_CASES` sets the number of damaged archives.
#[test]
fn damaged_archives_are_refused_or_read_within_the_limits() {
    let file = source();
    let small = file.dataset("g/small").expect("a dataset");
    let disk = ModelDisk::new();
    let mut out = NpzWriter::create(Arc::new(disk.clone()), "/a.npz", true).expect("an archive");
    for name in ["a", "b/c"] {
        out.add(name, &tensilo_convert::npy::header("<u2", &[3]), &small, &Quiet).expect("a member");
    }
    out.finish(false).expect("finished");
    let sound = disk.bytes("/a.npz").expect("the file");
    let cases = std::env::var("TENSILO_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000_u64);
    let mut state = 0x6e70_7a00_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let budget = Budget::new(Limits::default().with_bytes(1 << 20));
    let mut read = 0;
    for _ in 0..cases {
        let mut bytes = sound.clone();
        for _ in 0..1 + random() % 3 {
            let at = (random() % bytes.len() as u64) as usize;
            bytes[at] = if random() % 2 == 0 { 0xff } else { random() as u8 };
        }
        let Ok(mut npz) = NpzFile::from_source(Arc::new(MemorySource::new(bytes))) else { continue };
        for i in 0..npz.names().len() {
            let Ok(array) = npz.array(i) else { continue };
            let target = ModelDisk::new();
            let options = WriteOptions::default().threads(Threads::ONE);
            let mut w = FileWriter::create(Arc::new(target), "/a.h5", options).expect("a file");
            let kind = Datatype::integer(2, false, ByteOrder::Little);
            if array.write(w.dataset("a"), kind, None, &budget).is_ok() {
                w.finish().expect("a file");
                read += 1;
            }
        }
    }
    println!("{cases} damaged archives, {read} arrays read whole");
    assert!(read > 0 && read < 2 * cases, "{read} of {cases}");
}

#[test]
fn rows_that_pass_the_limits_are_refused() {
    let file = source();
    let disk = ModelDisk::new();
    archive(&file, Arc::new(disk.clone()), Form::Stored, false).expect("written");
    let bytes = disk.bytes("/a.npz").expect("the file");
    let mut npz = NpzFile::from_source(Arc::new(MemorySource::new(bytes))).expect("an archive");
    let budget = Budget::new(Limits::default().with_bytes(100_000));
    let mut w =
        FileWriter::create(Arc::new(ModelDisk::new()), "/a.h5", WriteOptions::default()).expect("a file");
    let e = into_hdf5(&mut npz, &mut w, Some(&[100, 1000]), &budget).expect_err("400 KB in a band");
    assert_eq!(e.kind(), ErrorKind::Limit, "{e}");
}
