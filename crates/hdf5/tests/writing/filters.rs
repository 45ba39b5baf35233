//! Filters written here are undone by libhdf5 and the plugins of hdf5plugin.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::write_with;
use tensilo_hdf5::write::{Bound, Filters, WriteOptions};
use tensilo_testkit::oracle::{python_has, python_stdout, skip, temp_dir};

const READ: &str = r#"
import sys, h5py, hdf5plugin, numpy as np
with h5py.File(sys.argv[1]) as f:
    n = 0
    for name in f:
        d = f[name]
        i = np.arange(d.size, dtype="u8").reshape(d.shape)
        want = ((i * i // 7) % 251).astype(d.dtype)
        assert np.array_equal(d[()], want), name
        n += 1
    print(n)
"#;

#[test]
fn h5py_reads_every_filter_in_several_element_sizes() {
    let folder = temp_dir();
    let pipelines: Vec<(&str, Filters)> = vec![
        ("bitshuffle_lz4", Filters::bitshuffle_lz4()),
        ("shuffle_deflate", Filters::new().shuffle().deflate(6)),
        ("deflate_fletcher", Filters::new().deflate(1).fletcher32()),
        ("lz4", Filters::new().lz4()),
        ("shuffle_zstd", Filters::new().shuffle().zstd(3)),
        ("fletcher", Filters::new().fletcher32()),
    ];
    for bound in [Bound::Earliest, Bound::V110] {
        let path = folder.path().join(format!("{bound}.h5"));
        write_with(WriteOptions::default().bound(bound), &path, |w| {
            for (name, filters) in &pipelines {
                for shape in [[40_u64, 61, 7], [3, 3, 1]] {
                    let chunk = [shape[0].min(9), shape[1].min(61), shape[2].min(4)];
                    let count = shape.iter().product::<u64>();
                    let values: Vec<u64> = (0..count).map(|i| (i * i / 7) % 251).collect();
                    let tag = shape[0];
                    let bytes: Vec<u8> = values.iter().map(|v| *v as u8).collect();
                    let words: Vec<u16> = values.iter().map(|v| *v as u16).collect();
                    let floats: Vec<f64> = values.iter().map(|v| *v as f64).collect();
                    let d = w.dataset(format!("{name}_u8_{tag}")).shape(&shape).chunk(&chunk);
                    d.filters(filters.clone()).write(&bytes).expect("dataset");
                    let d = w.dataset(format!("{name}_u16_{tag}")).shape(&shape).chunk(&chunk);
                    d.filters(filters.clone()).write(&words).expect("dataset");
                    let d = w.dataset(format!("{name}_f64_{tag}")).shape(&shape).chunk(&chunk);
                    d.filters(filters.clone()).write(&floats).expect("dataset");
                }
            }
        });
        if !python_has("hdf5plugin") {
            return skip("Python with hdf5plugin", 1);
        }
        let out = python_stdout(READ, [&path], b"");
        assert_eq!(String::from_utf8_lossy(&out).trim(), (pipelines.len() * 6).to_string());
    }
}

#[test]
fn edge_chunks_can_be_stored_without_filters() {
    let folder = temp_dir();
    let path = folder.path().join("edges.h5");
    write_with(WriteOptions::default().bound(Bound::V110), &path, |w| {
        let values: Vec<u16> = (0..500_u64).map(|i| ((i * i / 7) % 251) as u16).collect();
        w.dataset("edges")
            .shape(&[20, 25])
            .chunk(&[6, 10])
            .filters(Filters::new().shuffle().deflate(4))
            .unfiltered_edges()
            .write(&values)
            .expect("dataset");
    });
    if !python_has("hdf5plugin") {
        return skip("Python with hdf5plugin", 1);
    }
    let out = python_stdout(READ, [&path], b"");
    assert_eq!(String::from_utf8_lossy(&out).trim(), "1");
}

#[test]
fn chunks_encoded_elsewhere_are_stored_as_they_are_with_their_masks() {
    let folder = temp_dir();
    let path = folder.path().join("direct.h5");
    let values: Vec<u16> = (0..400_u64).map(|i| ((i * i / 7) % 251) as u16).collect();
    for bound in [Bound::Earliest, Bound::V110] {
        std::fs::remove_file(&path).ok();
        write_with(WriteOptions::default().bound(bound), &path, |w| {
            let d = w.dataset("direct").shape(&[400]).chunk(&[100]).element::<u16>();
            let mut chunks = d.filters(Filters::new().shuffle().deflate(4)).chunk_writer().expect("dataset");
            for (i, part) in values.chunks(100).enumerate() {
                let raw: &[u8] = bytemuck::cast_slice(part);
                if i % 2 == 0 {
                    chunks.write_encoded(&[i as u64], raw, 3).expect("chunk");
                } else {
                    chunks.write_chunk(&[i as u64], raw).expect("chunk");
                }
            }
            chunks.finish().expect("dataset");
        });
        if !python_has("hdf5plugin") {
            return skip("Python with hdf5plugin", 1);
        }
        let out = python_stdout(READ, [&path], b"");
        assert_eq!(String::from_utf8_lossy(&out).trim(), "1");
    }
}

#[test]
fn h5py_reads_floats_whose_noisy_bytes_are_stored() {
    let folder = temp_dir();
    let path = folder.path().join("noise.h5");
    let noise = |i: u64| (i.wrapping_mul(i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / 16_777_216.0;
    let values: Vec<f32> = (0..200_000_u64).map(|i| ((i / 500) as f64 + noise(i)) as f32).collect();
    write_with(WriteOptions::default(), &path, |w| {
        for level in [1, 3, 5] {
            let d = w.dataset(level.to_string()).shape(&[200_000]).chunk(&[65_536]);
            d.filters(Filters::new().shuffle().zstd(level)).write(&values).expect("dataset");
        }
    });
    if !python_has("hdf5plugin") {
        return skip("Python with hdf5plugin", 1);
    }
    let read = r#"
import sys, h5py, hdf5plugin, numpy as np
want = np.frombuffer(sys.stdin.buffer.read(), "<f4")
theirs = h5py.File("in memory", "w", driver="core", backing_store=False)
with h5py.File(sys.argv[1]) as f:
    for name, d in f.items():
        assert np.array_equal(d[()], want), name
        how = hdf5plugin.Zstd(clevel=int(name))
        other = theirs.create_dataset(name, data=want, chunks=d.chunks, shuffle=True, **how)
        print(d.id.get_storage_size(), other.id.get_storage_size())
"#;
    let out = python_stdout(read, [&path], bytemuck::cast_slice(&values));
    let out = String::from_utf8_lossy(&out);
    let sizes: Vec<Vec<u64>> =
        out.lines().map(|l| l.split(' ').map(|n| n.parse().expect("bytes")).collect()).collect();
    assert!(sizes.len() == 3 && sizes.iter().all(|s| s[0] * 100 <= s[1] * 101), "{sizes:?}");
}
