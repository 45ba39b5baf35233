//! The rows: what is read, by whom, and the goal as a multiple of h5py's speed.

use super::hidefix::Hidefix;
use super::{H5py, Reader, Row, ours, peers};
use crate::data::Random;
use std::path::Path;

const MIB_64: u64 = 64 << 20;

/// Rows and points of the tiles that are wanted, the same in every run.
pub fn wanted_rows() -> Vec<u64> {
    let mut random = Random(11);
    (0..64).map(|_| random.next() % 4096).collect()
}

pub fn wanted_points() -> Vec<[u64; 2]> {
    let mut random = Random(12);
    (0..10_000).map(|_| [random.next() % 4096, random.next() % 4096]).collect()
}

/// All rows of the comparison.
pub fn all<'a>(python: &H5py, hidefix: &Hidefix, folder: &Path) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for (name, file, dataset, bytes, goal) in [
        ("contiguous 64 MiB", "new.h5", "contiguous", MIB_64, 1.15),
        ("plain chunks", "new.h5", "plain", MIB_64, 1.2),
        ("shuffle + gzip 4, new format", "new.h5", "gzip", MIB_64, 3.3),
        ("shuffle + gzip 4, old format", "old.h5", "gzip", MIB_64, 3.3),
        ("4,096 gzip tiles", "new.h5", "tiles", MIB_64, 3.6),
        ("bitshuffle/LZ4 frames", "new.h5", "frames", MIB_64 / 2, 4.0),
        ("shuffle + zstd", "new.h5", "zstd", MIB_64, 4.0),
    ] {
        let path = folder.join(file);
        let statement = format!("f = h5py.File(F + '/{file}'); r = f[{dataset:?}][()]; f.close()");
        let mut readers = vec![ours::whole(&path, dataset), python.reader(statement)];
        readers.extend(peers::whole(&path, dataset));
        readers.extend(hidefix.whole(&path, dataset));
        rows.push(Row { name, bytes, goal: Some(goal), readers });
    }
    let path = folder.join("new.h5");
    rows.insert(1, mapped(&path));
    rows.insert(7, reused(python, &path));
    rows.push(some_rows(python, hidefix, &path));
    rows.push(points(python, &path));
    rows.extend(many(python, hidefix, &folder.join("many.h5")));
    rows
}

/// A view without a copy, summed; h5py has none.
fn mapped<'a>(path: &Path) -> Row<'a> {
    let mut readers = vec![ours::mapped(path)];
    readers.extend(peers::mapped(path));
    Row { name: "mapped view, sum", bytes: MIB_64, goal: None, readers }
}

fn reused<'a>(python: &H5py, path: &Path) -> Row<'a> {
    python.run("R = np.empty((64, 512, 512), 'u2')");
    let statement = "f = h5py.File(F + '/new.h5'); f['frames'].read_direct(R); r = R; f.close()";
    let mut readers = vec![ours::reused(path), python.reader(statement.to_owned())];
    readers.extend(peers::reused(path));
    Row { name: "bitshuffle/LZ4 frames, buffer kept", bytes: MIB_64 / 2, goal: Some(6.0), readers }
}

fn some_rows<'a>(python: &H5py, hidefix: &Hidefix, path: &Path) -> Row<'a> {
    python.run(&format!("W = {:?}", wanted_rows()));
    let statement =
        "f = h5py.File(F + '/new.h5'); d = f['tiles']; r = np.stack([d[i] for i in W]); f.close()";
    let mut readers = vec![ours::some_rows(path), python.reader(statement.to_owned())];
    readers.extend(peers::some_rows(path));
    readers.extend(hidefix.some_rows(path));
    Row { name: "64 random rows of the tiles", bytes: 64 * 4096 * 4, goal: Some(2.2), readers }
}

fn points<'a>(python: &H5py, path: &Path) -> Row<'a> {
    python.run(&format!("P = np.array({:?}, 'u8')", wanted_points()));
    let statement = "f = h5py.File(F + '/new.h5'); d = f['tiles']; s = d.id.get_space(); s.select_elements(P); \
                     r = np.empty(len(P), 'f4'); d.id.read(h5py.h5s.create_simple((len(P),)), s, r); f.close()";
    let mut readers = vec![ours::points(path), python.reader(statement.to_owned())];
    readers.extend(peers::points(path));
    Row { name: "10,000 random points of the tiles", bytes: 40_000, goal: Some(50.0), readers }
}

fn many<'a>(python: &H5py, hidefix: &Hidefix, path: &Path) -> Vec<Row<'a>> {
    let row = |name, bytes, goal, ours: Reader<'a>, statement: &str, peers: Vec<Reader<'a>>| {
        let mut readers = vec![ours, python.reader(statement.to_owned())];
        readers.extend(peers);
        Row { name, bytes, goal: Some(goal), readers }
    };
    vec![
        row(
            "walk of 2,000 datasets",
            160_000,
            45.0,
            ours::walk(path),
            "f = h5py.File(F + '/many.h5'); \
             r = np.concatenate([f[f'd{i:04}'][()] for i in range(2000)]); f.close()",
            [peers::walk(path), hidefix.walk(path)].into_iter().flatten().collect(),
        ),
        row(
            "open one of 2,000",
            80,
            1.5,
            ours::one(path),
            "f = h5py.File(F + '/many.h5'); r = f['d1234'][()]; f.close()",
            [peers::one(path), hidefix.whole(path, "d1234")].into_iter().flatten().collect(),
        ),
        row(
            "128 dense attributes",
            4096,
            50.0,
            ours::attributes(path),
            "f = h5py.File(F + '/many.h5'); a = f['g'].attrs; \
             r = np.concatenate([v for k, v in sorted(dict(a).items())]); f.close()",
            peers::attributes(path),
        ),
    ]
}
