//! Extents of exabytes, huge and deeply nested types, deep and circular groups: constant or linear cost, typed errors.

use std::path::PathBuf;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::{ErrorKind, Limits, Quiet};
use tensilo_hdf5::check::{CheckOptions, check};
use tensilo_hdf5::format::datatype::{Class, Datatype};
use tensilo_hdf5::read::{File, Object, OpenOptions};
use tensilo_testkit::{TempDir, oracle};

/// Depth of groups inside each other.
const DEEP: usize = 1500;

const MAKE: &str = r#"
import sys
import h5py, numpy as np
T = h5py.h5t
with h5py.File(sys.argv[1], "w", libver="latest") as f:
    f.create_dataset("exabytes", shape=(2**63 - 1,), maxshape=(None,), chunks=(4096,), dtype="u1", fillvalue=7)
    f.create_dataset("two unlimited", shape=(2**40, 2**22), maxshape=(None, None), chunks=(64, 64), dtype="u1")
    f["two unlimited"][2**36, 2**21] = 9
    f.create_dataset("late", shape=(2**60,), dtype="u1", fillvalue=3)
    space = h5py.h5s.create_simple((3,))
    h5py.h5d.create(f.id, b"large array", T.array_create(T.STD_U8LE, (1 << 24,)), space)
    h5py.h5d.create(f.id, b"many dims", T.array_create(T.STD_U8LE, (2,) * 24), space)
    nested = T.STD_U8LE
    for i in range(60):
        nested = T.array_create(nested, (1,))
    h5py.h5d.create(f.id, b"nested arrays", nested, space)
    compound = np.dtype([("x", "u1")])
    for i in range(40):
        compound = np.dtype([("n%d" % i, compound)])
    f.create_dataset("nested compounds", shape=(2,), dtype=compound)
    g = f.create_group("deep")
    for i in range(int(sys.argv[2])):
        g = g.create_group("g")
    g["root"] = f["/"]
    g["up"] = f["deep"]
    f["a"] = h5py.SoftLink("/b")
    f["b"] = h5py.SoftLink("/a")
"#;

fn made() -> Option<(TempDir, PathBuf)> {
    oracle::python()?;
    let folder = oracle::temp_dir();
    let path = folder.path().join("extremes.h5");
    let depth = DEEP.to_string();
    oracle::python_stdout(MAKE, [path.as_os_str(), depth.as_ref()], b"");
    Some((folder, path))
}

fn open(path: &PathBuf) -> File {
    let limits = Limits::default().with_bytes(96 << 20);
    File::open_with(path, OpenOptions { limits, ..OpenOptions::default() }).expect("an open file")
}

fn slab(start: &[u64], count: &[u64]) -> Selection {
    Selection::from(Hyperslab::new(start.to_vec(), count.to_vec()))
}

#[test]
fn exabytes_are_read_in_parts_and_refused_as_a_whole() {
    let Some((_folder, path)) = made() else { return oracle::skip("Python with h5py", 1) };
    let file = open(&path);
    let d = file.dataset("/exabytes").expect("a dataset");
    assert_eq!(d.shape(), [(1 << 63) - 1]);
    let around = d.read_selection::<u8>(&slab(&[(1 << 62) - 2], &[9])).expect("a part");
    assert_eq!(around, [7; 9]);
    let end = d.read_selection::<u8>(&slab(&[(1 << 63) - 3], &[2])).expect("the end");
    assert_eq!(end, [7, 7]);
    assert_eq!(d.chunks().expect("the index").len(), 0);
    for name in ["/exabytes", "/two unlimited", "/late"] {
        let e = file.dataset(name).expect("a dataset").read::<u8>().expect_err("all of it");
        assert!(e.kind() == ErrorKind::Limit, "{name}: {e}");
    }
    let two = file.dataset("/two unlimited").expect("a dataset");
    let part = two.read_selection::<u8>(&slab(&[1 << 36, (1 << 21) - 1], &[1, 3])).expect("a part");
    assert_eq!(part, [0, 9, 0]);
    let late = file.dataset("/late").expect("a dataset");
    assert_eq!(late.read_selection::<u8>(&slab(&[1 << 59], &[3])).expect("a part"), [3, 3, 3]);
}

#[test]
fn types_of_many_elements_and_many_levels_cost_what_they_hold() {
    let Some((_folder, path)) = made() else { return oracle::skip("Python with h5py", 1) };
    let file = open(&path);
    for name in ["/large array", "/many dims"] {
        let d = file.dataset(name).expect("a dataset");
        assert_eq!(d.datatype().size, 1 << 24, "{name}");
        assert_eq!(d.read_selection::<u8>(&slab(&[1], &[1])).expect("an element").len(), 1 << 24);
    }
    let d = file.dataset("/nested arrays").expect("a dataset");
    assert_eq!(d.read::<u8>().expect("all of it"), [0; 3]);
    let d = file.dataset("/nested compounds").expect("a dataset");
    assert_eq!(d.read_bytes(&Selection::All).expect("all of it"), [0; 2]);
}

#[test]
fn deep_groups_and_circles_end() {
    let Some((_folder, path)) = made() else { return oracle::skip("Python with h5py", 1) };
    let file = open(&path);
    let deepest = format!("/deep{}", "/g".repeat(DEEP));
    let group = file.group(&deepest).expect("the deepest group");
    assert!(matches!(group.open("up"), Ok(Object::Group(_))));
    assert!(group.open("root/deep/g").is_ok());
    let e = file.object("/a").expect_err("a circle of links");
    assert_eq!(e.kind(), ErrorKind::Limit, "{e}");
    let source = file.space().source().clone();
    let options = CheckOptions { metadata_only: true, ..CheckOptions::default() };
    let summary = check(source, &options, &Quiet, &mut |f| panic!("{f:?}")).expect("a check");
    assert_eq!(summary.objects as usize, DEEP + 2 + 7);
}

#[test]
fn a_type_of_a_hundred_thousand_levels_is_refused() {
    // Arrays of one element, version 3: class and version, bits, size, rank, extent, then the base.
    let mut message = Vec::new();
    for _ in 0..100_000 {
        message.extend([0x3a, 0, 0, 0]);
        message.extend(1_u32.to_le_bytes());
        message.push(1);
        message.extend(1_u32.to_le_bytes());
    }
    message.extend([0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
    let e = Datatype::parse(&message, 0).expect_err("too deep");
    assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Limit | ErrorKind::Unsupported), "{e}");
    // The same with few levels is a type.
    let few = [&message[..13 * 5], &message[message.len() - 12..]].concat();
    let t = Datatype::parse(&few, 0).expect("five levels");
    assert!(matches!(t.class, Class::Array { .. }) && t.size == 1);
}
