//! False files: typed errors within the limits, no panic, no endless search.

#![expect(clippy::print_stdout, reason = "what was counted is part of the claim")]

use super::Random;
use std::sync::Arc;
use tensilo_core::io::MemorySource;
use tensilo_core::{ErrorKind, Limits, Result};
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::read::{File, OpenOptions};
use tensilo_hdf5::write::{FileWriter, Value, WriteOptions};
use tensilo_testkit::disk_log::ModelDisk;
use tensilo_vectors::{BuildOptions, Metric, SaveOptions, VectorIndex};

fn open(bytes: Vec<u8>, limits: Limits) -> Result<VectorIndex> {
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let file = File::from_source(Arc::new(MemorySource::new(bytes)), options)?;
    VectorIndex::from_group(&file.root()?)
}

/// The parts of a file of two vectors, any of which may be false.
struct Parts {
    format: Value,
    version: Value,
    metric: Value,
    m: Value,
    entry: Value,
    vectors: Value,
    levels: Value,
    starts: Value,
    neighbours: Value,
}

impl Parts {
    fn sound() -> Self {
        Self {
            format: Value::fixed_text("tensilo vectors"),
            version: 1_u32.into(),
            metric: Value::fixed_text("l2"),
            m: 2_u32.into(),
            entry: 1_u32.into(),
            vectors: Value::array(&[0.0_f32, 0.0, 1.0, 1.0], &[2, 2]).expect("a value"),
            levels: Value::array(&[0_u8, 1], &[2]).expect("a value"),
            starts: Value::array(&[0_u64, 1, 2, 2], &[4]).expect("a value"),
            neighbours: Value::array(&[1_u32, 0], &[2]).expect("a value"),
        }
    }

    fn write(self, disk: &ModelDisk) -> Vec<u8> {
        let mut w =
            FileWriter::create(Arc::new(disk.clone()), "/a.h5", WriteOptions::default()).expect("a file");
        for (name, value) in [
            ("format", self.format),
            ("version", self.version),
            ("metric", self.metric),
            ("m", self.m),
            ("ef_construction", 1_u32.into()),
            ("entry", self.entry),
        ] {
            w.attribute("/", name, value).expect("an attribute");
        }
        for (name, value) in [
            ("vectors", self.vectors),
            ("levels", self.levels),
            ("starts", self.starts),
            ("neighbours", self.neighbours),
        ] {
            w.dataset(name).write_value(value).expect("a dataset");
        }
        w.finish_replacing().expect("a file");
        disk.bytes("/a.h5").expect("the file")
    }
}

type Change = fn(&mut Parts);

#[test]
fn every_false_part_is_refused_by_name() {
    let disk = ModelDisk::new();
    let sound = open(Parts::sound().write(&disk), Limits::default()).expect("a sound index");
    assert_eq!(sound.search(&[0.9, 0.9], 1, 4).expect("a search")[0].row, 1);
    let corrupt: [Change; 12] = [
        |p| p.m = 1_u32.into(),
        |p| p.m = u32::MAX.into(),
        |p| p.entry = 0_u32.into(),
        |p| p.entry = u32::MAX.into(),
        |p| p.vectors = Value::array(&[0.0_f32; 4], &[4]).expect("a value"),
        |p| p.vectors = Value::array(&[0.0_f32; 6], &[3, 2]).expect("a value"),
        |p| p.vectors = Value::array(&[0.0, 0.0, 0.0, f32::NAN], &[2, 2]).expect("a value"),
        |p| p.vectors = Value::array::<f32>(&[], &[2, 0]).expect("a value"),
        |p| p.levels = Value::array(&[0_u8, 200], &[2]).expect("a value"),
        |p| p.starts = Value::array(&[0_u64, u64::MAX, 2, 2], &[4]).expect("a value"),
        |p| p.starts = Value::array(&[0_u64, 2, 1, 2], &[4]).expect("a value"),
        |p| p.neighbours = Value::array(&[1_u32, 9], &[2]).expect("a value"),
    ];
    for (i, change) in corrupt.iter().enumerate() {
        let mut parts = Parts::sound();
        change(&mut parts);
        let e = open(parts.write(&disk), Limits::default()).expect_err(&format!("change {i}"));
        assert_eq!(e.kind(), ErrorKind::Corrupt, "change {i}: {e}");
    }
    let unsupported: [Change; 3] = [
        |p| p.format = Value::fixed_text("something else"),
        |p| p.version = 2_u32.into(),
        |p| p.metric = Value::fixed_text("manhattan"),
    ];
    for (i, change) in unsupported.iter().enumerate() {
        let mut parts = Parts::sound();
        change(&mut parts);
        let e = open(parts.write(&disk), Limits::default()).expect_err(&format!("change {i}"));
        assert_eq!(e.kind(), ErrorKind::Unsupported, "change {i}: {e}");
    }
}

#[test]
fn sizes_that_only_the_file_claims_are_refused_before_they_are_allocated() {
    let disk = ModelDisk::new();
    let mut w = FileWriter::create(Arc::new(disk.clone()), "/a.h5", WriteOptions::default()).expect("a file");
    for (name, value) in [
        ("format", Value::fixed_text("tensilo vectors")),
        ("version", 1_u32.into()),
        ("metric", Value::fixed_text("l2")),
        ("m", 2_u32.into()),
        ("ef_construction", 1_u32.into()),
        ("entry", 0_u32.into()),
    ] {
        w.attribute("/", name, value).expect("an attribute");
    }
    // Nothing of these arrays is stored.
    let rows = 2_000_000_000;
    let space = |dims: &[u64]| Dataspace::Simple {
        dims: dims.to_vec(),
        max: dims.iter().map(|d| Some(*d)).collect(),
    };
    w.dataset("vectors").element::<f32>().dataspace(space(&[rows, 64])).create().expect("a dataset");
    w.dataset("levels").element::<u8>().dataspace(space(&[rows])).create().expect("a dataset");
    w.dataset("starts").element::<u64>().dataspace(space(&[rows + 1])).create().expect("a dataset");
    w.dataset("neighbours").element::<u32>().dataspace(space(&[0])).create().expect("a dataset");
    w.finish().expect("a file");
    let bytes = disk.bytes("/a.h5").expect("the file");
    let held = tensilo_testkit::allocations::most_held(|| {
        let e = open(bytes, Limits::default().with_bytes(64 << 20)).expect_err("refused");
        assert_eq!(e.kind(), ErrorKind::Limit, "{e}");
    });
    assert!(held < 65 << 20, "{held} bytes were held");
}

/// `TENSILO_CASES` sets the number of damaged files.
#[test]
fn damaged_files_are_refused_or_searched_to_an_end() {
    let disk = ModelDisk::new();
    let options = BuildOptions { m: 3, ef_construction: 10 };
    let index = VectorIndex::build(Random(4).vectors(40, 3), 3, Metric::Cosine, options).expect("an index");
    index.save_with(Arc::new(disk.clone()), "/a.h5", SaveOptions::default()).expect("saved");
    let whole = disk.bytes("/a.h5").expect("the file");
    let cases = std::env::var("TENSILO_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000_u64);
    let mut random = Random(99);
    let mut opened = 0;
    for case in 0..cases {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.next() % 3 {
            let at = (random.next() % bytes.len() as u64) as usize;
            bytes[at] = match random.next() % 4 {
                0 => 0xff,
                1 => 0,
                2 => bytes[at] ^ 1 << (random.next() % 8),
                _ => random.next() as u8,
            };
        }
        if case % 16 == 0 {
            bytes.truncate((random.next() % whole.len() as u64) as usize);
        }
        if let Ok(index) = open(bytes, Limits::default().with_bytes(16 << 20)) {
            opened += 1;
            index.search(&vec![0.5; index.vector_length()], 5, 20).expect("a search");
        }
    }
    println!("{cases} damaged files, {opened} of them opened and searched");
    assert!(opened > 0 && opened < cases, "{opened} of {cases}");
}
