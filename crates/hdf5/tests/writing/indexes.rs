//! Every kind of chunk index, at the sizes where its form changes, read by libhdf5.

use super::{h5dump_reads, write_with};
use tensilo_hdf5::format::message::fill_value::{AllocationTime, FillMessage, FillTime, FillValue};
use tensilo_hdf5::write::{Bound, Filters, WriteOptions};
use tensilo_testkit::oracle::{python, python_stdout, skip, temp_dir};

/// One dataset of `u32` counting up from 1: shape, maximum, chunk, filtered, early.
type Case = (&'static str, &'static [u64], &'static [Option<u64>], &'static [u64], bool, bool);

const CASES: &[Case] = &[
    ("single", &[6, 7], &[Some(6), Some(7)], &[6, 7], false, false),
    ("single_filtered", &[6, 7], &[Some(6), Some(7)], &[6, 7], true, false),
    ("implicit", &[10, 10], &[Some(10), Some(10)], &[3, 4], false, true),
    ("fixed", &[10, 10], &[Some(10), Some(10)], &[3, 4], false, false),
    ("fixed_filtered", &[10, 10], &[Some(10), Some(10)], &[3, 4], true, false),
    ("fixed_larger_max", &[10, 10], &[Some(20), Some(30)], &[3, 4], true, false),
    ("fixed_1024", &[1024], &[Some(1024)], &[1], false, false),
    ("fixed_paged", &[1025], &[Some(1025)], &[1], false, false),
    ("fixed_nine_pages", &[9000], &[Some(9000)], &[1], true, false),
    ("extensible_4", &[4], &[None], &[1], false, false),
    ("extensible_5", &[5], &[None], &[1], true, false),
    ("extensible_direct", &[244], &[None], &[1], false, false),
    ("extensible_secondary", &[245], &[None], &[1], true, false),
    ("extensible_paged", &[140_000], &[None], &[1], false, false),
    ("extensible_slow_second", &[6, 40, 5], &[Some(9), None, Some(5)], &[2, 3, 2], true, false),
    ("tree_small", &[5, 6], &[None, None], &[2, 2], false, false),
    ("tree_filtered", &[40, 30], &[None, None], &[1, 2], true, false),
    ("tree_deep", &[150, 90], &[None, None], &[1, 1], false, false),
    ("one_large_dimension", &[3], &[None], &[70_000], false, false),
    ("rank_one_v1", &[65 * 64], &[Some(65 * 64)], &[1], false, false),
];

const READ: &str = r#"
import sys, h5py, numpy as np
names = sys.argv[2:]
with h5py.File(sys.argv[1], "r") as f:
    for n in names:
        d = f[n]
        want = np.arange(1, d.size + 1, dtype="u4").reshape(d.shape)
        if not np.array_equal(d[()], want):
            sys.exit(f"{n} differs: {d[()].ravel()[:20]}")
        last = tuple(s - 1 for s in d.shape)
        assert d[last] == d.size
    g = f["gaps"]
    a = g[()]
    assert a[0, 0] == 7 and a[5, 6] == 42 and a[9, 9] == 7 and (a == 42).sum() == 12, a
    e = f["early_gaps"][()]
    assert (e == 42).sum() == 12 and (e == 7).sum() == 88, e
print("same")
"#;

#[test]
fn every_chunk_index_is_read_under_every_bound() {
    let folder = temp_dir();
    let mut h5py_missing = 0;
    let mut h5dump_missing = 0;
    for bound in Bound::ALL {
        let path = folder.path().join(format!("{bound}.h5"));
        write_with(WriteOptions::default().bound(bound), &path, |w| {
            for (name, shape, max, chunk, filtered, early) in CASES {
                let count = shape.iter().product::<u64>() as u32;
                let values: Vec<u32> = (1..=count).collect();
                let filters =
                    if *filtered { Filters::new().shuffle().deflate(1).fletcher32() } else { Filters::new() };
                let mut d = w.dataset(name).shape(shape).max_shape(max).chunk(chunk).filters(filters);
                if *early {
                    d = d.fill_message(early_fill(FillValue::Default));
                }
                d.write(&values).expect("dataset");
            }
            for (name, early) in [("gaps", false), ("early_gaps", true)] {
                let mut d =
                    w.dataset(name).shape(&[10, 10]).chunk(&[3, 4]).element::<u32>().fill_value(7_u32);
                if early {
                    d = d.fill_message(early_fill(FillValue::Value(7_u32.to_le_bytes().to_vec())));
                }
                let mut chunks = d.chunk_writer().expect("dataset");
                chunks.write_chunk(&[1, 1], bytemuck::cast_slice::<u32, u8>(&[42; 12])).expect("chunk");
                let twice = chunks.write_chunk(&[1, 1], bytemuck::cast_slice::<u32, u8>(&[42; 12]));
                assert!(twice.is_err(), "a chunk is written once");
                assert!(chunks.write_chunk(&[4, 0], vec![0; 48]).is_err(), "outside the grid");
                chunks.finish().expect("dataset");
            }
        });
        if python().is_some() {
            let names = CASES.iter().map(|c| c.0);
            let args = std::iter::once(path.to_str().expect("text")).chain(names);
            assert_eq!(python_stdout(READ, args, b""), b"same\n", "{bound}");
        } else {
            h5py_missing += 1;
        }
        if bound <= Bound::V110 {
            h5dump_missing += usize::from(h5dump_reads(&path).is_none());
        }
    }
    if h5py_missing > 0 {
        skip("Python with h5py", h5py_missing);
    }
    if h5dump_missing > 0 {
        skip("h5dump", h5dump_missing);
    }
}

fn early_fill(value: FillValue) -> FillMessage {
    FillMessage { allocation: AllocationTime::Early, time: FillTime::OnAllocation, value }
}
