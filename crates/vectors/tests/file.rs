//! The file: read back, read by h5py, written without a copy, in a group among others.

#![expect(clippy::print_stdout, reason = "what was counted is part of the claim")]
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::Random;
use std::sync::Arc;
use tensilo_core::ErrorKind;
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::read::File;
use tensilo_hdf5::write::{Bound, FileWriter, WriteOptions};
use tensilo_testkit::allocations::most_held;
use tensilo_testkit::oracle;
use tensilo_vectors::{BuildOptions, Metric, SaveOptions, VectorIndex};

fn small(metric: Metric) -> VectorIndex {
    let options = BuildOptions { m: 5, ef_construction: 30 };
    VectorIndex::build(Random(21).vectors(400, 12), 12, metric, options).expect("an index")
}

#[test]
fn an_index_is_read_as_it_was_saved_and_saved_alike_under_every_bound() {
    let folder = oracle::temp_dir();
    for metric in [Metric::L2, Metric::Cosine] {
        let index = small(metric);
        for bound in Bound::ALL {
            let path = folder.path().join(format!("{}-{bound}.h5", metric.name()));
            let options =
                SaveOptions { write: WriteOptions::default().bound(bound), ..SaveOptions::default() };
            index.save_with(SystemDisk::shared(), &path, options.clone()).expect("saved");
            assert!(VectorIndex::open(&path).expect("opened") == index, "{bound}");
            let bytes = std::fs::read(&path).expect("the file");
            let e = index.save_with(SystemDisk::shared(), &path, options.clone()).expect_err("in the way");
            assert_eq!(e.kind(), ErrorKind::AlreadyExists);
            index
                .save_with(SystemDisk::shared(), &path, SaveOptions { replace: true, ..options })
                .expect("replaced");
            assert!(std::fs::read(&path).expect("the file") == bytes, "the same bytes every time");
        }
    }
    let none = VectorIndex::build(Vec::new(), 7, Metric::L2, BuildOptions::default()).expect("an index");
    let path = folder.path().join("none.h5");
    none.save_to_hdf5(&path).expect("saved");
    assert!(VectorIndex::open(&path).expect("opened") == none);
}

#[test]
fn two_indexes_share_a_file() {
    let folder = oracle::temp_dir();
    let path = folder.path().join("two.h5");
    let mut w = FileWriter::create(SystemDisk::shared(), &path, WriteOptions::default()).expect("a file");
    small(Metric::L2).write_into(&mut w, "/near").expect("written");
    small(Metric::Cosine).write_into(&mut w, "like/this").expect("written");
    w.finish().expect("finished");
    let file = File::open(&path).expect("opened");
    for (group, metric) in [("near", Metric::L2), ("like/this", Metric::Cosine)] {
        let index = VectorIndex::from_group(&file.group(group).expect("a group")).expect("an index");
        assert!(index == small(metric));
    }
    assert_eq!(VectorIndex::open(&path).expect_err("no index in the root").kind(), ErrorKind::Unsupported);
}

/// Reads the datasets as they are documented, and finds true neighbours with NumPy.
const READ: &str = r#"
import sys, h5py, numpy as np
with h5py.File(sys.argv[1]) as f:
    metric = f.attrs["metric"].decode() if isinstance(f.attrs["metric"], bytes) else f.attrs["metric"]
    v, levels, starts, near = (f[n][()] for n in ("vectors", "levels", "starts", "neighbours"))
    assert v.dtype == "f4" and levels.dtype == "u1" and starts.dtype == "u8" and near.dtype == "u4"
    assert f.attrs["version"] == 1 and f.attrs["m"] == 5 and f.attrs["ef_construction"] == 30
    assert levels[f.attrs["entry"]] == levels.max()
    assert len(starts) == (levels.astype("u8") + 1).sum() + 1 and starts[-1] == len(near)
    first = np.concatenate([[0], np.cumsum(levels.astype("u8") + 1)[:-1]])
    # With so few neighbours the links of level 0, which go one way, reach nearly every vector from the entry.
    seen, todo = {int(f.attrs["entry"])}, [int(f.attrs["entry"])]
    while todo:
        at = int(first[todo.pop()])
        for n in near[int(starts[at]):int(starts[at + 1])]:
            if int(n) not in seen:
                seen.add(int(n)); todo.append(int(n))
    q = v[17].astype("f8") + 0.01
    w = v.astype("f8")
    d = ((w - q) ** 2).sum(1) if metric == "l2" else 1 - w @ q / np.linalg.norm(w, axis=1) / np.linalg.norm(q)
    assert len(seen) >= 380, len(seen)
    print(metric, v.shape, v.tobytes().hex()[:64], *np.argsort(d)[:5])
"#;

#[test]
fn h5py_reads_the_datasets_and_numpy_finds_the_same_neighbours() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let folder = oracle::temp_dir();
    let script = folder.path().join("read.py");
    std::fs::write(&script, READ).expect("a script");
    for metric in [Metric::L2, Metric::Cosine] {
        let index = small(metric);
        let path = folder.path().join(format!("{}.h5", metric.name()));
        index.save_to_hdf5(&path).expect("saved");
        let said = oracle::python_stdout(&script, [path.as_path()], b"");
        let query: Vec<f32> = index.vectors()[17 * 12..18 * 12].iter().map(|x| x + 0.01).collect();
        let near = index.exact(&query, 5).expect("a search");
        let near: Vec<String> = near.iter().map(|n| n.row.to_string()).collect();
        let bytes: String =
            index.vectors()[..8].iter().flat_map(|x| x.to_le_bytes()).map(|b| format!("{b:02x}")).collect();
        let expected = format!("{} (400, 12) {bytes} {}\n", metric.name(), near.join(" "));
        assert_eq!(String::from_utf8_lossy(&said), expected);
    }
}

#[test]
fn saving_100_mib_of_vectors_holds_less_than_1_mib_beyond_them() {
    // Few long vectors: their graph is quickly built.
    let (count, length) = (400, 65_536);
    let vectors: Vec<f32> = (0..count * length).map(|i| ((i * 7919) % 1009) as f32).collect();
    assert!(vectors.len() * 4 >= 100_000_000);
    let options = BuildOptions { m: 4, ef_construction: 4 };
    let index = VectorIndex::build(vectors, length, Metric::L2, options).expect("an index");
    let disk = tensilo_testkit::disk_log::ModelDisk::new();
    let clone = most_held(|| drop(std::hint::black_box(index.vectors().to_vec())));
    assert!(clone >= 100_000_000, "the allocator counts: {clone}");
    let folder = oracle::temp_dir();
    let path = folder.path().join("large.h5");
    let held = most_held(|| index.save_to_hdf5(&path).expect("saved"));
    println!("saving 100 MB of vectors held {held} bytes beyond them");
    assert!(held < 1 << 20, "{held} bytes were held beyond the vectors");
    assert_eq!(std::fs::metadata(&path).expect("the file").len() / 100_000_000, 1);
    // The model keeps the file in memory, which the allocator sees.
    let seen = most_held(|| {
        index.save_with(Arc::new(disk.clone()), "/a.h5", SaveOptions::default()).expect("saved");
    });
    assert!(seen >= 100_000_000, "{seen}");
}
