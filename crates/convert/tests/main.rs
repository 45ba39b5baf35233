//! Conversions compared with NumPy and h5py.

mod npz;

use std::sync::Arc;
use tensilo_convert::lanes::{
    dataset_to_lane, lane_of_dataset, lane_of_npy, lane_to_dataset, lane_to_npy, lanes_to_hdf5, npy_to_lane,
    rewrite,
};
use tensilo_convert::npy::NpyFile;
use tensilo_core::Quiet;
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::read::File;
use tensilo_hdf5::write::{FileWriter, WriteOptions};
use tensilo_lanes::{
    FormatVersion, LaneSpec, LaneType, Store, StoreSchema, StoreWriter, TemporaryStore, WriterOptions,
};
use tensilo_testkit::oracle;

const MAKE: &str = r#"
import sys, numpy as np, h5py
folder = sys.argv[1]
rng = np.random.default_rng(7)
with h5py.File(folder + "/in.h5", "w") as f:
    for t in ["<f2", "<f4", ">f4", "<f8", "|i1", "<i2", ">i4", "<i8", "|u1", ">u2", "<u4", "<u8", "|b1"]:
        a = rng.integers(0, 100, (6, 5, 7)).astype(t)
        name = np.dtype(t).str[1:] + ("be" if t[0] == ">" else "")
        f.create_dataset(name, data=a, chunks=(2, 3, 4), compression="gzip")
        le = a.astype(a.dtype.newbyteorder("<"))
        np.save(folder + "/" + name + ".npy", le)
        np.save(folder + "/" + name + ".window.npy", le[2:5])
"#;

#[test]
fn hdf5_and_npy_arrays_become_lanes_and_npy_files_again_equal_to_numpys() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let folder = oracle::temp_dir();
    oracle::run_python(MAKE, [folder.path().to_str().unwrap()], b"");
    let file = File::open(folder.path().join("in.h5")).unwrap();
    let names: Vec<String> = file
        .root()
        .unwrap()
        .links()
        .unwrap()
        .iter()
        .map(|l| String::from_utf8_lossy(l.name()).into_owned())
        .collect();
    assert_eq!(names.len(), 13);
    for name in &names {
        let npy = folder.path().join(format!("{name}.npy"));
        let dataset = file.dataset(name).unwrap();
        let array = NpyFile::open(&npy).unwrap();
        let lanes = vec![lane_of_dataset("h5", &dataset).unwrap(), lane_of_npy("npy", &array).unwrap()];
        let path = folder.path().join(format!("{name}.pts"));
        let writer =
            StoreWriter::create_with(&path, StoreSchema::new(6, lanes), WriterOptions::default()).unwrap();
        dataset_to_lane(&dataset, &writer, "h5", &Quiet).unwrap();
        npy_to_lane(&array, &writer, "npy", &Quiet).unwrap();
        writer.finish().unwrap();
        let store = Store::open(&path).unwrap();
        for lane in ["h5", "npy"] {
            for (range, expected) in [(0..6, "npy"), (2..5, "window.npy")] {
                let out = folder.path().join("out.npy");
                lane_to_npy(&store, lane, range, Arc::new(SystemDisk), &out, true, &Quiet).unwrap();
                let expected = std::fs::read(folder.path().join(format!("{name}.{expected}"))).unwrap();
                assert!(std::fs::read(&out).unwrap() == expected, "{name} {lane}");
            }
        }
    }
}

#[test]
fn a_store_of_format_1_becomes_one_of_format_2_and_back() {
    let folder = oracle::temp_dir();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../lanes/tests/fixtures/model_app.pts");
    let one = Store::open(fixture).unwrap();
    let (two, back) = (folder.path().join("two.pts"), folder.path().join("one.pts"));
    rewrite(&one, &two, WriterOptions::default(), &Quiet).unwrap();
    let store = Store::open(&two).unwrap();
    assert_eq!(store.version(), FormatVersion::V2);
    let options = WriterOptions { version: FormatVersion::V1, ..WriterOptions::default() };
    rewrite(&store, &back, options, &Quiet).unwrap();
    assert!(std::fs::read(back).unwrap() == std::fs::read(fixture).unwrap());
}

/// A store with a lane of every type, in slabs of 2 × 3, and a flat and a chunked one; its values as h5py must see them.
const EXPORTED: &str = r#"
import sys, numpy as np, h5py
folder = sys.argv[1]
types = dict(f16="<f2", f32="<f4", f64="<f8", i8="|i1", i16="<i2", i32="<i4", i64="<i8", u8="|u1", u16="<u2", u32="<u4",
             u64="<u8", bool="|b1")
raw = np.arange(4 * 6 * 8, dtype="u1").reshape(4, -1)
with h5py.File(folder + "/out.h5") as f:
    assert sorted(f) == sorted([*types, "flat", "chunked"]), list(f)
    for name, t in types.items():
        n = 6 * np.dtype(t).itemsize
        want = (raw[:, :n] % 2 if name == "bool" else raw[:, :n]).copy().view(t).reshape(4, 2, 3)
        d = f[name]
        assert d.dtype == want.dtype and d.shape == want.shape and d.chunks is None, (name, d)
        assert d[()].tobytes() == want.tobytes(), name
        assert f[name].id.get_type().get_order() == h5py.h5t.ORDER_LE if name not in ("bool", "i8", "u8") else True
    assert (f["flat"][()] == np.arange(100, dtype="i4")).all() and f["flat"].shape == (100,)
    assert (f["chunked"][()] == np.arange(60, dtype="u2").reshape(4, 5, 3)).all()
with h5py.File(folder + "/part.h5") as f:
    assert list(f) == ["a"] and (f["a/b"][()] == np.arange(60, dtype="u2").reshape(4, 5, 3)[1:3]).all()
    assert f["a/none"].shape == (0, 2, 3)
"#;

#[test]
fn lanes_become_datasets_as_h5py_reads_them() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let types = [
        LaneType::F16,
        LaneType::F32,
        LaneType::F64,
        LaneType::I8,
        LaneType::I16,
        LaneType::I32,
        LaneType::I64,
        LaneType::U8,
        LaneType::U16,
        LaneType::U32,
        LaneType::U64,
        LaneType::Bool,
    ];
    let folder = oracle::temp_dir();
    let mut lanes: Vec<LaneSpec> =
        types.iter().map(|t| LaneSpec::slab(t.name(), *t, 6).with_shape(&[2, 3])).collect();
    lanes.push(LaneSpec::flat("flat", LaneType::I32, 100));
    lanes.push(LaneSpec::slab("chunked", LaneType::U16, 15).with_shape(&[5, 3]).with_chunk(&[2, 2]));
    let schema = StoreSchema::new(4, lanes);
    let store = TemporaryStore::create(folder.path(), schema, WriterOptions::default(), |w| {
        for k in 0..4_u8 {
            let raw: Vec<u8> = (0..48).map(|i| (k * 48) + i).collect();
            for t in types {
                let mut bytes = raw[..6 * t.size() as usize].to_vec();
                if t == LaneType::Bool {
                    bytes.iter_mut().for_each(|b| *b %= 2);
                }
                w.write_bytes(t.name(), Some(u64::from(k)), &bytes)?;
            }
            let values: Vec<u16> = (0..15).map(|i| u16::from(k) * 15 + i).collect();
            w.write_slab("chunked", u64::from(k), &values)?;
        }
        w.write_flat("flat", &(0..100).collect::<Vec<i32>>())
    })
    .unwrap();
    let names: Vec<&str> = store.lanes().map(|l| l.name.as_str()).collect();
    lanes_to_hdf5(&store, &names, SystemDisk::shared(), folder.path().join("out.h5"), false, &Quiet).unwrap();
    let mut part =
        FileWriter::create(SystemDisk::shared(), folder.path().join("part.h5"), WriteOptions::default())
            .unwrap();
    lane_to_dataset(&store, "chunked", 1..3, &mut part, "/a/b", &Quiet).unwrap();
    lane_to_dataset(&store, "f32", 4..4, &mut part, "/a/none", &Quiet).unwrap();
    part.finish().unwrap();
    oracle::run_python(EXPORTED, [folder.path().to_str().unwrap()], b"");
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Notes the memory that is resident each time it is asked whether to go on.
#[derive(Debug, Default)]
struct Peak(std::sync::atomic::AtomicU64);

impl tensilo_core::Monitor for Peak {
    fn poll(&self, _: &tensilo_core::Progress) -> tensilo_core::Result<()> {
        self.0.fetch_max(resident(), std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn copies_of_192_mib_need_less_than_128_mib_resident() {
    const SLABS: u64 = 48;
    // Not in a memory file system, where the page cache is the disk.
    let folder = tensilo_testkit::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let schema = StoreSchema::new(SLABS, vec![LaneSpec::slab("v", LaneType::U32, 1 << 20)]);
    let store = TemporaryStore::create(folder.path(), schema, WriterOptions::default(), |w| {
        (0..SLABS).try_for_each(|k| w.write_slab("v", k, &vec![k as u32; 1 << 20]))
    })
    .unwrap();
    let peak = Peak::default();
    let at = |name: &str| folder.path().join(name);
    lane_to_npy(&store, "v", 0..SLABS, SystemDisk::shared(), at("v.npy"), false, &peak).unwrap();
    lanes_to_hdf5(&store, &["v"], SystemDisk::shared(), at("v.h5"), false, &peak).unwrap();
    let (npy, file) = (NpyFile::open(at("v.npy")).unwrap(), File::open(at("v.h5")).unwrap());
    let dataset = file.dataset("/v").unwrap();
    for flat in [false, true] {
        // The same numbers as one long axis go into a flat lane, block by block.
        let (npy, name) = if flat { (long(&npy, &at("long.npy")), "flat") } else { (npy.clone(), "npy") };
        let mut lanes = vec![lane_of_npy(name, &npy).unwrap()];
        if !flat {
            lanes.push(lane_of_dataset("h5", &dataset).unwrap());
        }
        let path = at(&format!("{name}.pts"));
        let w = StoreWriter::create_with(&path, StoreSchema::new(SLABS, lanes), WriterOptions::default())
            .unwrap();
        npy_to_lane(&npy, &w, name, &peak).unwrap();
        if !flat {
            dataset_to_lane(&dataset, &w, "h5", &peak).unwrap();
        }
        w.finish().unwrap();
    }
    rewrite(&store, at("again.pts"), WriterOptions::default(), &peak).unwrap();
    let peak = peak.0.into_inner();
    assert!(peak <= 128 << 20, "{} MiB resident", peak >> 20);
    let copy = Store::open(at("npy.pts")).unwrap();
    assert!(copy.verify().unwrap().is_empty());
    assert_eq!(copy.typed::<u32>("h5").unwrap().slab(41).unwrap()[77], 41);
    let flat = Store::open(at("flat.pts")).unwrap();
    assert_eq!(flat.typed::<u32>("flat").unwrap().flat().unwrap()[(7 << 20) + 3], 7);
    assert!(std::fs::read(at("again.pts")).unwrap() == std::fs::read(store.path()).unwrap());
}

/// The same elements in a file of one axis.
#[expect(clippy::disallowed_methods, reason = "test set-up")]
fn long(npy: &NpyFile, path: &std::path::Path) -> NpyFile {
    use std::io::Write;
    let len: u64 = npy.shape().iter().product();
    let mut out = std::fs::File::create(path).unwrap();
    out.write_all(&tensilo_convert::npy::header(npy.descr(), &[len])).unwrap();
    let mut block = vec![0; 4 << 20];
    for first in (0..len).step_by(1 << 20) {
        npy.read_at(first, &mut block).unwrap();
        out.write_all(&block).unwrap();
    }
    NpyFile::open(path).unwrap()
}
