//! Random trees: types × spaces × layouts × filters × bounds, read by h5py and by our own reader, and the same bytes on
//! one thread as on several.
//!
//! `TENSILO_CASES` sets the number of trees (`TENSILO_CASES=4000` for thousands of them), `TENSILO_SEED` the seed of the
//! first one; the seeds are printed, and a failure names the seed of its tree.

#![expect(clippy::print_stdout, reason = "what was counted is part of the claim")]
#![expect(clippy::disallowed_methods, reason = "test set-up")]
use super::{h5py_lines_of, write_with};
use std::collections::BTreeMap;
use std::path::Path;
use tensilo_core::array::Selection;
use tensilo_core::threads::Threads;
use tensilo_hdf5::format::datatype::{ByteOrder, CharacterSet, Class, Datatype, Member};
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::format::message::fill_value::{AllocationTime, FillMessage, FillTime, FillValue};
use tensilo_hdf5::read::{File, Object};
use tensilo_hdf5::write::{Bound, FileWriter, Filters, Value, WriteOptions};
use tensilo_testkit::oracle::{python_has, skip, temp_dir};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.below(6) * self.below(40)) as u8).collect()
    }
}

/// A datatype and the name that NumPy gives it. The last ones exist only under newer bounds.
fn types(bound: Bound) -> Vec<(&'static str, Datatype)> {
    let (little, big) = (ByteOrder::Little, ByteOrder::Big);
    let compound = Class::Compound {
        members: vec![
            Member { name: b"a".to_vec(), offset: 0, datatype: Datatype::integer(2, false, little) },
            Member { name: b"long name".to_vec(), offset: 2, datatype: Datatype::float64(little) },
        ],
    };
    let array = Class::Array { dims: vec![2, 3], base: Box::new(Datatype::integer(2, true, little)) };
    let byte = Box::new(Datatype::integer(1, false, little));
    let colours = vec![(b"RED".to_vec(), vec![0]), (b"blue, or so".to_vec(), vec![7])];
    let complex = Class::Complex { base: Box::new(Datatype::float32(little)) };
    let mut all = vec![
        ("uint8", Datatype::integer(1, false, little)),
        ("int16", Datatype::integer(2, true, little)),
        (">u4", Datatype::integer(4, false, big)),
        ("int64", Datatype::integer(8, true, little)),
        ("float32", Datatype::float32(little)),
        (">f8", Datatype::float64(big)),
        ("|S5", Datatype::fixed_string(5, CharacterSet::Ascii)),
        ("[('a', '<u2'), ('long name', '<f8')]", Datatype { size: 10, class: compound }),
        ("|V3", Datatype { size: 3, class: Class::Opaque { tag: b"three".to_vec() } }),
        ("float16", Datatype::float16(little)),
        ("('<i2', (2, 3))", Datatype { size: 12, class: array }),
        ("uint8", Datatype { size: 1, class: Class::Enum { base: byte, members: colours } }),
        ("complex128", Datatype::complex_compound(Datatype::float64(little))),
    ];
    if bound >= Bound::V200 {
        all.push(("complex64", Datatype { size: 8, class: complex }));
    }
    all
}

struct Tree {
    random: Random,
    bound: Bound,
    /// What h5py must print, by path and then by fact.
    lines: BTreeMap<String, Vec<String>>,
    /// Bytes of each dataset that are no texts.
    raw: BTreeMap<String, Vec<u8>>,
}

fn tuple(dims: &[u64]) -> String {
    maxima(&dims.iter().map(|d| Some(*d)).collect::<Vec<_>>())
}

fn maxima(dims: &[Option<u64>]) -> String {
    let each: Vec<String> = dims.iter().map(|d| d.map_or("None".to_owned(), |d| d.to_string())).collect();
    match each.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", each.join(", ")),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Tree {
    fn name(&mut self, i: u64) -> String {
        let stems = ["a", "entry", "with space", "Ünïcode", "dots.in.it", "x_y-z", "数据", "0", "long"];
        let stem = stems[self.random.below(stems.len() as u64) as usize];
        if self.random.one_in(12) { format!("{}{i}", stem.repeat(30)) } else { format!("{stem}{i}") }
    }

    fn shape(&mut self) -> Vec<u64> {
        (0..self.random.below(5))
            .map(|_| if self.random.one_in(15) { 0 } else { 1 + self.random.below(7) })
            .collect()
    }

    fn attributes(&mut self, w: &mut FileWriter<'_>, path: &str) {
        let count = if self.random.one_in(8) { 12 } else { self.random.below(3) };
        let mut lines = BTreeMap::new();
        for i in 0..count {
            let name = self.name(i);
            let all = types(self.bound);
            let (dtype, datatype) = &all[self.random.below(all.len() as u64) as usize];
            let shape = self.shape();
            let line = match self.random.below(6) {
                0 => {
                    w.attribute(path, &name, Value::null(datatype.clone())).expect("attribute");
                    format!("empty {dtype}")
                }
                1 => {
                    w.attribute(path, &name, "ein Text, größer").expect("attribute");
                    "object () [ein Text, größer]".to_owned()
                }
                _ => {
                    let count = shape.iter().product::<u64>() as usize;
                    let bytes = self.random.bytes(count * datatype.size as usize);
                    let space = match shape.as_slice() {
                        [] => Dataspace::Scalar,
                        dims => Dataspace::Simple {
                            dims: dims.to_vec(),
                            max: dims.iter().map(|d| Some(*d)).collect(),
                        },
                    };
                    let line = format!("{dtype} {} {}", tuple(&shape), hex(&bytes));
                    let value = Value::stored(datatype.clone(), space, bytes).expect("value");
                    w.attribute(path, &name, value).expect("attribute");
                    line
                }
            };
            lines.insert(name.clone(), format!("{path}@{name} {line}"));
        }
        self.lines.entry(path.to_owned()).or_default().extend(lines.into_values());
    }

    fn group(&mut self, w: &mut FileWriter<'_>, path: &str, depth: u64) {
        self.attributes(w, path);
        let children = if self.random.one_in(6) { 20 } else { self.random.below(5) };
        for i in 0..children {
            let here = format!("{}/{}", path.trim_end_matches('/'), self.name(i));
            match self.random.below(8) {
                0 => {
                    w.soft_link(&here, "/some/where").expect("link");
                    self.lines.insert(here.clone(), vec![format!("{here} soft /some/where")]);
                }
                1 => {
                    w.external_link(&here, "far.h5", "/x").expect("link");
                    self.lines.insert(here.clone(), vec![format!("{here} external far.h5 /x")]);
                }
                2 | 3 if depth < 3 => {
                    w.create_group(&here).expect("group");
                    self.lines.insert(here.clone(), vec![format!("{here} group")]);
                    self.group(w, &here, depth + 1);
                }
                4 => self.texts(w, &here),
                _ => self.dataset(w, &here),
            }
        }
    }

    fn texts(&mut self, w: &mut FileWriter<'_>, path: &str) {
        let texts: Vec<String> = (0..self.random.below(6))
            .map(|i| "é".repeat(self.random.below(40) as usize) + &i.to_string())
            .collect();
        let n = texts.len() as u64;
        w.dataset(path).write_texts(&texts).expect("dataset");
        let line = format!("{path} dataset object ({n},) ({n},) None [] [{}]", texts.join("|"));
        self.lines.insert(path.to_owned(), vec![line]);
        self.attributes(w, path);
    }

    fn dataset(&mut self, w: &mut FileWriter<'_>, path: &str) {
        let all = types(self.bound);
        let (dtype, datatype) = &all[self.random.below(all.len() as u64) as usize];
        let size = datatype.size as usize;
        if self.random.one_in(12) {
            let d = w.dataset(path).datatype(datatype.clone());
            d.dataspace(Dataspace::Null).create().expect("dataset");
            let line = format!("{path} dataset {dtype} None None None [] null");
            self.lines.insert(path.to_owned(), vec![line]);
            return self.attributes(w, path);
        }
        let shape = self.shape();
        let count = shape.iter().product::<u64>() as usize;
        let mut bytes = self.random.bytes(count * size);
        let d = w.dataset(path).datatype(datatype.clone()).shape(&shape);
        let (mut max, mut chunks, mut ids) =
            (shape.iter().map(|d| Some(*d)).collect::<Vec<_>>(), "None".to_owned(), "[]");
        if shape.is_empty() || self.random.one_in(3) {
            let d = if self.random.one_in(3) { d.compact() } else { d };
            d.write_bytes(&bytes).expect("dataset");
        } else {
            let chunk: Vec<u64> = shape.iter().map(|d| 1 + self.random.below((*d).max(1))).collect();
            for m in &mut max {
                match self.random.below(6) {
                    0 => *m = None,
                    1 => *m = m.map(|m| m + 3),
                    _ => {}
                }
            }
            let number = matches!(datatype.class, Class::Integer { .. });
            let pixels = chunk.iter().product::<u64>() >= 8;
            let (filters, named) = self.filters(number && size <= 4 && pixels);
            (chunks, ids) = (tuple(&chunk), named);
            let fill = self.random.bytes(size);
            let mut d = d.max_shape(&max).chunk(&chunk).filters(filters).fill(&fill);
            if self.bound >= Bound::V110 && self.random.one_in(5) {
                d = d.unfiltered_edges();
            }
            if self.random.one_in(8) {
                // Space for every chunk from the beginning.
                d = d.fill_message(FillMessage {
                    allocation: AllocationTime::Early,
                    time: FillTime::IfSet,
                    value: FillValue::Value(fill.clone()),
                });
            }
            if self.random.one_in(3) {
                bytes = self.some_chunks(d, &shape, &chunk, &bytes, &fill);
            } else {
                d.write_bytes(&bytes).expect("dataset");
            }
        }
        let line = format!(
            "{path} dataset {dtype} {} {} {chunks} {ids} {}",
            tuple(&shape),
            maxima(&max),
            hex(&bytes)
        );
        self.lines.insert(path.to_owned(), vec![line]);
        self.raw.insert(path.to_owned(), bytes);
        self.attributes(w, path);
    }

    /// Filters and their numbers; some are for integers only.
    fn filters(&mut self, integers: bool) -> (Filters, &'static str) {
        match self.random.below(if integers { 14 } else { 11 }) {
            0 => (Filters::new().deflate(3), "[1]"),
            1 => (Filters::new().shuffle().deflate(1), "[2, 1]"),
            2 => (Filters::new().fletcher32(), "[3]"),
            3 => (Filters::bitshuffle_lz4(), "[32008]"),
            4 => (Filters::new().shuffle().zstd(3), "[2, 32015]"),
            5 => (Filters::new().lz4().fletcher32(), "[32004, 3]"),
            6 => (Filters::new().shuffle().lzf(), "[2, 32000]"),
            7 => (Filters::new().bitshuffle(0).zstd(1), "[32008, 32015]"),
            11 => (Filters::new().nbit(), "[5]"),
            12 => (Filters::new().scale_offset(0), "[6]"),
            13 => (Filters::new().szip(8, true), "[4]"),
            _ => (Filters::new(), "[]"),
        }
    }

    /// Writes about half of the chunks, in a random order; returns what the dataset then reads as.
    fn some_chunks(
        &mut self,
        d: tensilo_hdf5::write::DatasetBuilder<'_, '_>,
        shape: &[u64],
        chunk: &[u64],
        array: &[u8],
        fill: &[u8],
    ) -> Vec<u8> {
        let size = fill.len();
        let mut expected: Vec<u8> = fill.iter().copied().cycle().take(array.len()).collect();
        let mut writer = d.chunk_writer().expect("dataset");
        let grid = writer.grid().to_vec();
        let mut numbers: Vec<u64> = (0..grid.iter().product()).filter(|_| self.random.one_in(2)).collect();
        for i in (1..numbers.len()).rev() {
            numbers.swap(i, self.random.below(i as u64 + 1) as usize);
        }
        for number in numbers {
            let coords = position(number, &grid);
            let mut raw = Vec::new();
            for inside in 0..chunk.iter().product::<u64>() {
                let at: Vec<u64> = position(inside, chunk)
                    .iter()
                    .zip(&coords)
                    .zip(chunk)
                    .map(|((i, c), n)| i + c * n)
                    .collect();
                if at.iter().zip(shape).any(|(a, s)| a >= s) {
                    raw.extend_from_slice(fill);
                    continue;
                }
                let n = at.iter().zip(shape).fold(0, |n, (a, s)| n * s + a) as usize * size;
                raw.extend_from_slice(&array[n..n + size]);
                expected[n..n + size].copy_from_slice(&array[n..n + size]);
            }
            writer.write_chunk(&coords, raw).expect("chunk");
        }
        writer.finish().expect("dataset");
        expected
    }
}

fn position(mut number: u64, grid: &[u64]) -> Vec<u64> {
    let mut coords = vec![0; grid.len()];
    for (c, n) in coords.iter_mut().zip(grid).rev() {
        *c = number % n;
        number /= n;
    }
    coords
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

fn cases() -> u64 {
    number("TENSILO_CASES", 120)
}

/// Writes a tree; returns it with the bytes of its file.
fn make(seed: u64, path: &Path, threads: usize) -> (Tree, Vec<u8>) {
    let mut random = Random(seed);
    let bound = Bound::ALL[random.below(6) as usize];
    let mut options = WriteOptions::default().bound(bound).threads(Threads::new(threads));
    options.track_order = random.one_in(4);
    options.user_block = if random.one_in(5) { 1024 } else { 0 };
    let tree = Tree { random, bound, lines: BTreeMap::new(), raw: BTreeMap::new() };
    let tree = std::sync::Mutex::new(tree);
    let bytes = write_with(options, path, |w| tree.lock().expect("no panic").group(w, "/", 0));
    (tree.into_inner().expect("no panic"), bytes)
}

/// Compares every dataset's bytes with what our own reader gives.
fn read_back(path: &Path, tree: &Tree, seed: u64) {
    let file = File::open(path).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    for (name, bytes) in &tree.raw {
        let dataset = match file.object(name) {
            Ok(Object::Dataset(d)) => d,
            other => panic!("seed {seed}: {name}: {other:?}"),
        };
        let found =
            dataset.read_bytes(&Selection::All).unwrap_or_else(|e| panic!("seed {seed}: {name}: {e}"));
        assert!(found == *bytes, "seed {seed}: {name} differs");
    }
}

#[test]
fn random_trees_are_read_as_written_by_h5py_and_by_our_reader() {
    let folder = temp_dir();
    let with_h5py = python_has("hdf5plugin");
    let (mut compared, mut objects) = (0, 0);
    let first = number("TENSILO_SEED", 0x7e57);
    let seeds: Vec<u64> = (0..cases()).map(|i| first + i).collect();
    for batch in seeds.chunks(200) {
        let mut paths = Vec::new();
        let mut expected = Vec::new();
        for seed in batch {
            let path = folder.path().join(format!("{seed}.h5"));
            let (_, alone) = make(*seed, &path, 1);
            std::fs::remove_file(&path).expect("removed");
            let (tree, bytes) = make(*seed, &path, 2 + *seed as usize % 3);
            assert!(bytes == alone, "seed {seed}: other bytes on several threads");
            read_back(&path, &tree, *seed);
            objects += tree.lines.len();
            expected.push((*seed, tree.in_order()));
            paths.push(path);
        }
        if !with_h5py {
            continue;
        }
        let found = h5py_lines_of(&paths);
        let mut files = found.split(|line| line.starts_with("file ")).skip(1);
        for (seed, expected) in &expected {
            let found = files.next().unwrap_or(&[]);
            for (f, e) in found.iter().zip(expected) {
                assert_eq!(f, e, "seed {seed}");
            }
            assert_eq!(found.len(), expected.len(), "seed {seed}");
            compared += found.len();
        }
        for path in paths {
            std::fs::remove_file(path).expect("removed");
        }
    }
    let last = first + cases() - 1;
    println!("seeds {first} to {last}: {} trees, {objects} objects, {compared} facts told by h5py", cases());
    if with_h5py {
        assert!(compared as u64 > 3 * cases(), "{compared} facts of {} trees", cases());
    } else {
        skip("Python with hdf5plugin", 1);
    }
}

impl Tree {
    /// The lines in the order in which a walk by sorted names meets the objects.
    fn in_order(&self) -> Vec<String> {
        let mut paths: Vec<&String> = self.lines.keys().collect();
        paths.sort_by_key(|p| p.split('/').filter(|c| !c.is_empty()).map(str::to_owned).collect::<Vec<_>>());
        paths.into_iter().flat_map(|p| self.lines[p].clone()).collect()
    }
}
