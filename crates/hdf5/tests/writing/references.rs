//! References, dimension scales, virtual datasets and data in other files, followed by libhdf5.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::write_with;
use tensilo_hdf5::format::datatype::{Class, Datatype, ReferenceKind};
use tensilo_hdf5::write::{Bound, ExternalData, Region, Span, VirtualSource, WriteOptions};
use tensilo_testkit::oracle::{python, python_stdout, skip, temp_dir};

fn grid() -> Vec<i32> {
    (0..8 * 10).collect()
}

const REGIONS: &str = r#"
import sys, h5py, numpy as np
with h5py.File(sys.argv[1]) as f:
    d = f["grid"]; a = d[()]
    refs = f["regions"][()]
    assert f[refs[0]] == d
    assert np.array_equal(d[refs[0]], a[2:5, 3:7])
    assert np.array_equal(d[refs[1]].ravel(), a[0:8:3, 1:10:4].ravel()), d[refs[1]]
    assert np.array_equal(np.asarray(d[refs[2]]).ravel(), [a[1, 1], a[7, 9], a[0, 3]])
    assert np.array_equal(d[refs[3]], a)
    x = f["x"]
    assert x.is_scale and f["y"].is_scale
    assert [s for s in d.dims[0].keys()] == ["along x"], list(d.dims[0].keys())
    assert d.dims[1][0] == f["y"] and len(d.dims[1]) == 2
    assert d.dims[0].label == "rows" and d.dims[1].label == ""
    refs = x.attrs["REFERENCE_LIST"]
    assert [(f[r["dataset"]].name, int(r["dimension"])) for r in refs] == [("/grid", 0), ("/other", 1)]
"#;

#[test]
fn region_references_and_dimension_scales_are_followed() {
    let folder = temp_dir();
    let mut missing = 0;
    for bound in Bound::ALL {
        let path = folder.path().join(format!("{bound}.h5"));
        write_with(WriteOptions::default().bound(bound), &path, |w| {
            w.dataset("grid").shape(&[8, 10]).write(&grid()).expect("dataset");
            w.dataset("other").shape(&[2, 8]).write(&grid()[..16]).expect("dataset");
            w.dataset("x").write(&[0.5_f32; 8]).expect("dataset");
            w.dataset("y").write(&[1.5_f32; 10]).expect("dataset");
            w.dataset("z").write(&[2.5_f32; 10]).expect("dataset");
            let spans = [
                Span { start: 0, stride: 3, count: 3, block: 1 },
                Span { start: 1, stride: 4, count: 3, block: 1 },
            ];
            let regions = [
                Region::block(&[2, 3], &[3, 4]),
                Region::Hyperslab(spans.to_vec()),
                Region::Points(vec![vec![1, 1], vec![7, 9], vec![0, 3]]),
                Region::All,
            ];
            let mut elements = Vec::new();
            for region in &regions {
                elements.extend_from_slice(&w.region_reference("grid", region).expect("reference"));
            }
            let datatype = Datatype { size: 12, class: Class::Reference(ReferenceKind::Region) };
            let d = w.dataset("regions").datatype(datatype).shape(&[4]);
            d.write_bytes(&elements).expect("dataset");
            w.make_scale("x", "along x").expect("scale");
            w.make_scale("y", "").expect("scale");
            w.make_scale("z", "z").expect("scale");
            w.attach_scale("grid", 0, "x").expect("attached");
            w.attach_scale("grid", 1, "y").expect("attached");
            w.attach_scale("grid", 1, "z").expect("attached");
            w.attach_scale("other", 1, "x").expect("attached");
            assert!(w.attach_scale("grid", 2, "x").is_err());
            w.label_dimension("grid", 0, "rows").expect("label");
        });
        if python().is_some() {
            python_stdout(REGIONS, [&path], b"");
        } else {
            missing += 1;
        }
    }
    if missing > 0 {
        skip("Python with h5py", missing);
    }
}

const VIRTUAL: &str = r#"
import os, sys
os.environ["HDF5_EXTFILE_PREFIX"] = os.environ["HDF5_VDS_PREFIX"] = "${ORIGIN}"
import h5py, numpy as np
with h5py.File(sys.argv[1]) as f:
    g = np.arange(80, dtype="i4").reshape(8, 10)
    v = f["stack"][()]
    assert v.shape == (3, 8, 10)
    assert np.array_equal(v[0], g) and np.array_equal(v[1], g + 80) and (v[2] == -5).all()
    s = f["strided"][()]
    assert np.array_equal(s, g[::2, 3:7]), s
    u = f["growing"]
    assert u.maxshape == (None, 10) and np.array_equal(u[()], g), u.shape
    e = f["outside"]
    assert np.array_equal(e[()], np.arange(100, 120, dtype="u1")), e[()]
"#;

#[test]
fn virtual_datasets_and_external_data_read_as_their_sources() {
    let folder = temp_dir();
    for (name, offset) in [("a.h5", 0), ("b.h5", 80)] {
        write_with(WriteOptions::default(), &folder.path().join(name), |w| {
            let values: Vec<i32> = grid().iter().map(|v| v + offset).collect();
            let d = w.dataset("d").shape(&[8, 10]).max_shape(&[None, Some(10)]).chunk(&[4, 10]);
            d.write(&values).expect("dataset");
        });
    }
    std::fs::write(folder.path().join("one.raw"), (90..112_u8).collect::<Vec<_>>()).expect("file");
    std::fs::write(folder.path().join("two.raw"), (112..140_u8).collect::<Vec<_>>()).expect("file");
    let mut missing = 0;
    for bound in Bound::ALL {
        let path = folder.path().join(format!("v-{bound}.h5"));
        write_with(WriteOptions::default().bound(bound), &path, |w| {
            let source = |file: &str, source: Region, shown: Region| VirtualSource {
                file: file.to_owned(),
                dataset: "/d".to_owned(),
                source,
                shown,
            };
            let stack = [
                source("a.h5", Region::All, Region::block(&[0, 0, 0], &[1, 8, 10])),
                source("b.h5", Region::All, Region::block(&[1, 0, 0], &[1, 8, 10])),
            ];
            let d = w.dataset("stack").shape(&[3, 8, 10]).fill_value(-5_i32).element::<i32>();
            d.create_virtual(&stack).expect("dataset");
            let every_second = vec![Span { start: 0, stride: 2, count: 4, block: 1 }, Span::run(3, 4)];
            let strided = [source("a.h5", Region::Hyperslab(every_second), Region::All)];
            w.dataset("strided").shape(&[4, 4]).element::<i32>().create_virtual(&strided).expect("dataset");
            let all = || {
                let rows = Span { start: 0, stride: 1, count: Span::UNLIMITED, block: 1 };
                Region::Hyperslab(vec![rows, Span::run(0, 10)])
            };
            let d = w.dataset("growing").shape(&[8, 10]).max_shape(&[None, Some(10)]).element::<i32>();
            d.create_virtual(&[source("a.h5", all(), all())]).expect("dataset");
            let piece = |file: &str, offset, bytes| ExternalData { file: file.to_owned(), offset, bytes };
            let d = w.dataset("outside").shape(&[20]).element::<u8>();
            d.create_external(&[piece("one.raw", 10, Some(12)), piece("two.raw", 0, None)]).expect("dataset");
            let d = w.dataset("too_small").shape(&[20]).element::<u8>();
            assert!(d.create_external(&[piece("one.raw", 10, Some(12))]).is_err());
        });
        if python().is_some() {
            python_stdout(VIRTUAL, [&path], b"");
        } else {
            missing += 1;
        }
    }
    if missing > 0 {
        skip("Python with h5py", missing);
    }
}
