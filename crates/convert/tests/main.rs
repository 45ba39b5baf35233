//! Conversions compared with NumPy and h5py.

use std::sync::Arc;
use tensilo_convert::lanes::{
    dataset_to_lane, lane_of_dataset, lane_of_npy, lane_to_npy, npy_to_lane, rewrite,
};
use tensilo_convert::npy::NpyFile;
use tensilo_core::Quiet;
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::read::File;
use tensilo_lanes::{FormatVersion, Store, StoreSchema, StoreWriter, WriterOptions};
use tensilo_testkit::oracle;

const MAKE: &str = r#"
import sys, numpy as np, h5py
folder = sys.argv[1]
rng = np.random.default_rng(7)
with h5py.File(folder + "/in.h5", "w") as f:
    for t in ["<f2", "<f4", ">f4", "<f8", "|i1", "<i2", ">i4", "<i8", "|u1", ">u2", "<u4", "<u8"]:
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
    assert_eq!(names.len(), 12);
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
