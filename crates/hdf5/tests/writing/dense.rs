//! Many and large links and attributes, read by libhdf5.

use super::{h5dump_reads, write_with};
use tensilo_hdf5::write::{Bound, Value, WriteOptions};
use tensilo_testkit::oracle::{python, python_stdout, skip, temp_dir};

const READ: &str = r#"
import sys, h5py, numpy as np
bound, order = sys.argv[2], sys.argv[3] == "true"
with h5py.File(sys.argv[1], "r") as f:
    for n in (0, 1, 8, 9, 10, 37, 300, 3000):
        g = f[f"g{n}"]
        names = [f"n{(i * 7919) % 100003:05}" for i in range(n)]
        assert sorted(g) == sorted(names), (n, len(g))
        if order:
            assert list(g) == names, (n, list(g)[:5])
        for i in range(0, n, 17):
            assert g.get(names[i], getlink=True).path == f"/target/{i}", i
        assert "absent" not in g
    for n in (0, 1, 8, 9, 10, 37, 300, 2000):
        a = f[f"a{n}"].attrs
        names = [f"attr{(i * 7919) % 100003:05}" for i in range(n)]
        assert sorted(a) == sorted(names), n
        if order:
            assert list(a) == names, (n, list(a)[:5])
        for i in range(0, n, 13):
            assert a[names[i]] == i
    far = f["far"]
    for i in range(40):
        assert far.get(f"ünder{i}", getlink=True).filename == f"file{i}.h5"
    b = f["large"].attrs
    assert np.array_equal(b["huge"], np.arange(100000, dtype="u4"))
    assert np.array_equal(b["two"], np.arange(2000, dtype="u4"))
    assert b["small"] == 5
    for i in range(60):
        assert np.array_equal(b[f"mid{i}"], np.full(i * 50 + 1, i, "f8")), i
    assert f.attrs["large"].size == 70000
    long = f["long"]
    assert sorted(len(n) for n in long) == [4, 70000] and long.get("soft", getlink=True).path == "/" + 60000 * "p"
    assert long["n" * 70000].attrs.get("here", 0) == 1
print("same")
"#;

#[test]
fn many_and_large_links_and_attributes_are_read_under_every_bound() {
    let folder = temp_dir();
    let (mut h5py_missing, mut h5dump_missing) = (0, 0);
    for bound in Bound::ALL {
        for track_order in [false, true] {
            let path = folder.path().join(format!("{bound}-{track_order}.h5"));
            let options = WriteOptions { track_order, ..WriteOptions::default().bound(bound) };
            write_with(options, &path, |w| {
                for n in [0, 1, 8, 9, 10, 37, 300, 3000] {
                    w.create_group(format!("g{n}")).expect("group");
                    for i in 0..n {
                        w.soft_link(format!("g{n}/n{:05}", (i * 7919) % 100_003), format!("/target/{i}"))
                            .expect("link");
                    }
                }
                for n in [0, 1, 8, 9, 10, 37, 300, 2000] {
                    w.create_group(format!("a{n}")).expect("group");
                    for i in 0..n {
                        let name = format!("attr{:05}", (i * 7919) % 100_003);
                        w.attribute(format!("a{n}"), name, i as u32).expect("attribute");
                    }
                }
                for i in 0..40 {
                    w.external_link(format!("far/ünder{i}"), format!("file{i}.h5"), "/x").expect("link");
                }
                w.create_group("large").expect("group");
                let numbers = |n: u32| Value::from(&(0..n).collect::<Vec<u32>>()[..]);
                w.attribute("large", "huge", numbers(100_000)).expect("attribute");
                w.attribute("large", "two", numbers(2000)).expect("attribute");
                w.attribute("large", "small", 5_i8).expect("attribute");
                for i in 0..60 {
                    let values = vec![f64::from(i); i as usize * 50 + 1];
                    w.attribute("large", format!("mid{i}"), &values[..]).expect("attribute");
                }
                w.attribute("/", "large", &vec![0_u8; 70_000][..]).expect("attribute");
                let long = format!("long/{}", "n".repeat(70_000));
                w.create_group(&long).expect("group");
                w.attribute(&long, "here", 1_i8).expect("attribute");
                w.soft_link("long/soft", format!("/{}", "p".repeat(60_000))).expect("link");
            });
            if python().is_some() {
                let args =
                    [path.to_str().expect("text"), bound.name(), if track_order { "true" } else { "false" }];
                assert_eq!(python_stdout(READ, args, b""), b"same\n", "{bound} {track_order}");
            } else {
                h5py_missing += 1;
            }
            if bound <= Bound::V110 {
                h5dump_missing += usize::from(h5dump_reads(&path).is_none());
            }
        }
    }
    if h5py_missing > 0 {
        skip("Python with h5py", h5py_missing);
    }
    if h5dump_missing > 0 {
        skip("h5dump", h5dump_missing);
    }
}
