//! The rows: what is written, by whom, and how often as fast as h5py we are to be.

use super::{Arrays, MANY, Row, Writer, floors, fresh, peers, shown};
use crate::h5py::Python;
use tensilo_hdf5::write::{Bound, Filters, WriteOptions};

/// Which array is written, whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Array {
    /// 64 × 512 × 512 counts, 32 MiB.
    Counts,
    /// 64 × 512 × 512 floats, 64 MiB.
    Floats,
    /// 512 × 512 floats, 1 MiB.
    Image,
}

impl Array {
    pub fn name(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Floats => "floats",
            Self::Image => "image",
        }
    }

    pub fn shape(self) -> &'static [u64] {
        match self {
            Self::Counts | Self::Floats => &[64, 512, 512],
            Self::Image => &[512, 512],
        }
    }

    /// The numbers of the two arrays of floats.
    pub fn floats(self, arrays: &Arrays) -> &[f32] {
        if self == Self::Image { &arrays.floats[..1 << 18] } else { &arrays.floats }
    }

    fn check(self) -> &'static str {
        match self {
            Self::Counts => "f['d'].dtype == counts.dtype and (f['d'][()] == counts).all()",
            Self::Floats => "f['d'].dtype == floats.dtype and (f['d'][()] == floats).all()",
            Self::Image => "f['d'].dtype == image.dtype and (f['d'][()] == image).all()",
        }
    }

    /// All bytes, as they lie in memory.
    pub fn raw(self, arrays: &Arrays) -> &[u8] {
        match self {
            Self::Counts => bytemuck::cast_slice(&arrays.counts),
            floats => bytemuck::cast_slice(floats.floats(arrays)),
        }
    }

    fn bytes(self) -> u64 {
        self.shape().iter().product::<u64>() * if self == Self::Counts { 2 } else { 4 }
    }
}

/// Filters that more than one writer has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    None,
    ShuffleDeflate(u32),
    ShuffleZstd(u32),
    BitshuffleLz4,
}

impl Coding {
    fn filters(self) -> Filters {
        match self {
            Self::None => Filters::new(),
            Self::ShuffleDeflate(level) => Filters::new().shuffle().deflate(level),
            Self::ShuffleZstd(level) => Filters::new().shuffle().zstd(level),
            Self::BitshuffleLz4 => Filters::bitshuffle_lz4(),
        }
    }

    fn for_h5py(self) -> String {
        match self {
            Self::None => String::new(),
            Self::ShuffleDeflate(n) => format!(", shuffle=True, compression='gzip', compression_opts={n}"),
            Self::ShuffleZstd(n) => format!(", shuffle=True, **hdf5plugin.Zstd({n})"),
            Self::BitshuffleLz4 => ", **hdf5plugin.Bitshuffle()".to_owned(),
        }
    }
}

/// A dataset of a row.
#[derive(Clone, Copy)]
pub struct Case {
    pub array: Array,
    /// Extents of a chunk; contiguous without.
    pub chunk: &'static [u64],
    pub coding: Coding,
}

const TILE: &[u64] = &[1, 256, 512];

/// Name, goal, array, chunk, filters.
const CASES: &[(&str, f64, Array, &[u64], Coding)] = &[
    // Nothing but memory is busy: no writer can be faster than it.
    ("contiguous 64 MiB", 1.0, Array::Floats, &[], Coding::None),
    ("plain chunks", 1.25, Array::Floats, TILE, Coding::None),
    ("shuffle, deflate 4", 3.6, Array::Floats, TILE, Coding::ShuffleDeflate(4)),
    ("shuffle, zstd 3", 3.0, Array::Floats, TILE, Coding::ShuffleZstd(3)),
    ("bitshuffle, LZ4", 4.0, Array::Counts, &[1, 512, 512], Coding::BitshuffleLz4),
    ("image, shuffle, deflate 6", 3.0, Array::Image, &[64, 512], Coding::ShuffleDeflate(6)),
    ("image, shuffle, zstd 3", 3.0, Array::Image, &[64, 512], Coding::ShuffleZstd(3)),
];

/// All rows.
pub fn all<'a>(python: &'a Python, arrays: &'a Arrays) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = CASES
        .iter()
        .map(|(name, goal, array, chunk, coding)| {
            one(python, arrays, name, *goal, Case { array: *array, chunk, coding: *coding })
        })
        .collect();
    rows.push(datasets(python, arrays));
    rows.push(attributes(python));
    rows
}

fn one<'a>(python: &'a Python, arrays: &'a Arrays, name: &'static str, goal: f64, case: Case) -> Row<'a> {
    let ours = Writer::new("tensilo", move |path| {
        fresh(path, WriteOptions::default(), |w| {
            let d = w.dataset("d").shape(case.array.shape()).filters(case.coding.filters());
            let d = if case.chunk.is_empty() { d } else { d.chunk(case.chunk) };
            match case.array {
                Array::Counts => d.write(&arrays.counts),
                floats => d.write(floats.floats(arrays)),
            }
            .expect("a dataset");
        });
    });
    let chunks = match case.chunk {
        [] => String::new(),
        chunk => format!(", chunks={}", tuple(chunk)),
    };
    let options = format!("{chunks}{}", case.coding.for_h5py());
    let array = case.array.name();
    let h5py = Writer::clocked("h5py", move |path| {
        python.seconds(&format!(
            "f = h5py.File({:?}, 'w'); f.create_dataset('d', data={array}{options}); f.close()",
            shown(path)
        ))
    });
    let mut writers = vec![ours, h5py];
    writers.extend(peers::one(arrays, case));
    writers.extend(floors::of(arrays, case));
    Row { name, bytes: case.array.bytes(), goal, check: case.array.check(), writers }
}

fn tuple(extents: &[u64]) -> String {
    format!("({})", extents.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
}

/// Small datasets: metadata only.
fn datasets<'a>(python: &'a Python, arrays: &'a Arrays) -> Row<'a> {
    let ours = Writer::new("tensilo", |path| {
        fresh(path, WriteOptions::default(), |w| {
            for i in 0..MANY {
                w.dataset(format!("d{i}")).write(&arrays.small).expect("a dataset");
            }
        });
    });
    // One statement a line: the loop is a list comprehension.
    let h5py = Writer::clocked("h5py", |path| {
        python.seconds(&format!(
            "f = h5py.File({:?}, 'w'); [f.create_dataset(f'd{{i}}', data=small) for i in many]; f.close()",
            shown(path)
        ))
    });
    let mut writers = vec![ours, h5py];
    writers.extend(peers::datasets(arrays));
    Row {
        name: "2000 datasets",
        bytes: 40 * MANY as u64,
        goal: 40.0,
        check: "sorted(f) == sorted(f'd{i}' for i in many) and all((d[()] == small).all() for d in f.values())",
        writers,
    }
}

/// Attributes of the root group: metadata only, in the dense storage that h5py and the peers choose too.
fn attributes(python: &Python) -> Row<'_> {
    let ours = Writer::new("tensilo", |path| {
        fresh(path, WriteOptions::default().bound(Bound::V18), |w| {
            for i in 0..MANY {
                w.attribute("/", format!("a{i}"), i as u64).expect("an attribute");
            }
        });
    });
    let h5py = Writer::clocked("h5py", |path| {
        python.seconds(&format!(
            "f = h5py.File({:?}, 'w', libver=('v108', 'v108')); [f.attrs.create(f'a{{i}}', i, dtype='u8') for i in many]; f.close()",
            shown(path)
        ))
    });
    let mut writers = vec![ours, h5py];
    writers.extend(peers::attributes());
    Row {
        name: "2000 attributes",
        bytes: 8 * MANY as u64,
        goal: 40.0,
        check: "len(f.attrs) == 2000 and all(f.attrs[f'a{i}'] == i for i in many)",
        writers,
    }
}
