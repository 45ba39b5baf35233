//! The reading engine: one handle under many threads, cached chunks, views, plans, boxes, stored chunks.

use super::{Oracle, oracle};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::io::{ByteSource, FileSource, MemorySource};
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Limits, Quiet, Result};
use tensilo_hdf5::read::{File, Object, OpenOptions, Request, read_multi};
use tensilo_testkit::CountingSource;
use tensilo_testkit::oracle::{python, python_stdout, skip, temp_dir};

const LAYOUTS: &str = "layouts-v110-v110.h5";

/// All datasets of the root group, by name, with their stored elements.
fn everything(file: &File) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let root = file.root()?;
    let mut all = Vec::new();
    for link in root.links()? {
        if let Object::Dataset(data) = root.open_link(&link)? {
            all.push((link.name().to_vec(), data.read_bytes(&Selection::All)?));
        }
    }
    Ok(all)
}

fn file_of(oracle: &Oracle, name: &str) -> File {
    File::open(oracle.folder.join(name)).expect("an HDF5 file")
}

fn counting(path: &Path) -> Arc<CountingSource<FileSource>> {
    Arc::new(CountingSource::new(FileSource::open(path).expect("the file")))
}

#[test]
fn a_plan_says_how_many_bytes_are_asked_for() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let source = counting(&oracle.folder.join(LAYOUTS));
    let options = OpenOptions { chunk_cache: 0, ..OpenOptions::default() };
    let file = File::from_source(source.clone(), options).unwrap();
    let slab = |start: [u64; 2], count: [u64; 2], stride: [i64; 2]| {
        Selection::from(Hyperslab::new(start.to_vec(), count.to_vec()).with_stride(stride.to_vec()))
    };
    for path in
        ["contiguous", "chunked", "few-filtered", "many-fixed-filtered", "unlimited", "large", "lzf", "early"]
    {
        let data = file.dataset(path).unwrap();
        for selection in [
            Selection::All,
            slab([1, 2], [5, 3], [1, 1]),
            slab([0, 1], [4, 4], [2, 3]),
            slab([9, 0], [3, 2], [-4, 5]),
        ] {
            let plan = data.plan(&selection).unwrap();
            data.chunks().unwrap();
            let before = source.bytes();
            data.read_bytes(&selection).unwrap();
            let asked = source.bytes() - before;
            assert_eq!(asked, plan.fetched_bytes(), "{path}: {plan}");
            let ranges: Vec<Range<u64>> = plan.ranges();
            assert!(ranges.iter().all(|r| r.end <= source.len()));
        }
    }
}

#[test]
fn one_handle_serves_eight_threads() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let file = file_of(oracle, LAYOUTS);
    let expected = everything(&file).unwrap();
    let fresh = file_of(oracle, LAYOUTS);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(everything(&fresh).unwrap() == expected));
        }
    });
}

#[test]
fn rows_read_one_by_one_are_the_whole_with_and_without_a_cache() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    for chunk_cache in [0, 5000, 16 << 20] {
        let options = OpenOptions { chunk_cache, ..OpenOptions::default() };
        let file = File::open_with(oracle.folder.join(LAYOUTS), options).unwrap();
        for path in ["unlimited-both-filtered", "lzf", "masked", "one-filtered"] {
            let data = file.dataset(path).unwrap();
            let (rows, columns) = (data.shape()[0], data.shape()[1]);
            let mut all = Vec::new();
            for row in 0..rows {
                let row = Hyperslab::new(vec![row, 0], vec![1, columns]);
                all.extend(data.read_bytes(&row.into()).unwrap());
            }
            assert!(all == data.read_bytes(&Selection::All).unwrap(), "{path}");
            let grid = data.chunk_grid().unwrap();
            for number in 0..grid.len().min(20) {
                let chunk = grid.selection(&grid.coords(number));
                let bytes = data.read_bytes(&chunk.clone().into()).unwrap();
                let n: u64 = chunk.shape().unwrap().iter().product();
                assert_eq!(bytes.len() as u64, n * u64::from(data.datatype().size));
            }
        }
    }
}

#[test]
fn the_cache_saves_reading_a_chunk_again() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let source = counting(&oracle.folder.join(LAYOUTS));
    let file = File::from_source(source.clone(), OpenOptions::default()).unwrap();
    let data = file.dataset("one-filtered").unwrap();
    let row = |i| Selection::from(Hyperslab::new(vec![i, 0], vec![1, 31]));
    data.read_bytes(&row(0)).unwrap();
    let before = source.bytes();
    for i in 1..20 {
        data.read_bytes(&row(i)).unwrap();
    }
    // Only the way to the chunk may be looked up again; the chunk itself is not.
    let stored = data.chunks().unwrap()[0].size;
    assert!(source.bytes() - before < stored);
}

#[test]
fn views_are_the_data_itself_where_that_is_possible() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let bytes = std::fs::read(oracle.folder.join(LAYOUTS)).unwrap();
    let file = File::from_source(Arc::new(MemorySource::new(bytes)), OpenOptions::default()).unwrap();
    let data = file.dataset("contiguous").unwrap();
    assert_eq!(data.view_bytes().unwrap().unwrap(), data.read_bytes(&Selection::All).unwrap());
    if let Some(view) = data.view::<i32>().unwrap() {
        assert_eq!(view, data.read::<i32>().unwrap());
    }
    assert!(data.view::<f32>().unwrap().is_none());
    assert!(file.dataset("chunked").unwrap().view_bytes().unwrap().is_none());
    assert!(file.dataset("unwritten").unwrap().view_bytes().unwrap().is_none());
    if let Ok(mapped) = File::open_mapped(oracle.folder.join(LAYOUTS), OpenOptions::default()) {
        let data = mapped.dataset("contiguous").unwrap();
        assert_eq!(data.view_bytes().unwrap().unwrap(), data.read_bytes(&Selection::All).unwrap());
    }
    let on_disk = file_of(oracle, LAYOUTS);
    assert!(on_disk.dataset("contiguous").unwrap().view_bytes().unwrap().is_none());
}

#[test]
fn many_reads_at_once_are_the_same_as_one_by_one() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    for threads in [Threads::ONE, Threads::new(3)] {
        let options = OpenOptions { threads, ..OpenOptions::default() };
        let file = File::open_with(oracle.folder.join(LAYOUTS), options).unwrap();
        let names: Vec<Vec<u8>> = everything(&file).unwrap().into_iter().map(|(name, _)| name).collect();
        let datasets: Vec<_> = names.iter().map(|n| file.dataset(n).unwrap()).collect();
        for take in [0, 1, 3, names.len()] {
            let mut buffers: Vec<Vec<u8>> = datasets[..take]
                .iter()
                .map(|d| vec![0xA5; (d.elements() * u64::from(d.datatype().size)) as usize])
                .collect();
            let requests = datasets[..take].iter().zip(&mut buffers);
            let requests =
                requests.map(|(dataset, bytes)| Request { dataset, selection: &Selection::All, bytes });
            read_multi(requests.collect(), &Quiet).unwrap();
            for (data, bytes) in datasets.iter().zip(&buffers) {
                assert!(*bytes == data.read_bytes(&Selection::All).unwrap());
            }
        }
        let mut short = [0; 3];
        let request = Request { dataset: &datasets[0], selection: &Selection::All, bytes: &mut short };
        assert_eq!(read_multi(vec![request], &Quiet).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn boxes_cover_a_dataset_once_whatever_its_layout() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let file = file_of(oracle, LAYOUTS);
    for (name, whole) in everything(&file).unwrap() {
        let data = file.dataset(&name).unwrap();
        let width = data.datatype().size as usize;
        let mut seen = vec![0_u8; whole.len()];
        for part in data.boxes() {
            let bytes = data.read_bytes(&part.clone().into()).unwrap();
            let numbers = numbers_of(&part, data.shape());
            assert_eq!(bytes.len(), numbers.len() * width);
            for (element, number) in bytes.chunks_exact(width).zip(numbers) {
                let place = number * width..(number + 1) * width;
                assert!(whole[place.clone()] == *element);
                seen[place].iter_mut().for_each(|n| *n += 1);
            }
        }
        assert!(seen.iter().all(|n| *n == 1), "{}", String::from_utf8_lossy(&name));
    }
}

/// Row-major numbers of the elements of a box.
fn numbers_of(part: &Hyperslab, shape: &[u64]) -> Vec<usize> {
    let mut numbers = vec![0_u64];
    for ((start, count), extent) in part.start.iter().zip(&part.count).zip(shape) {
        numbers = numbers.iter().flat_map(|n| (*start..start + count).map(move |i| n * extent + i)).collect();
    }
    numbers.into_iter().map(|n| n as usize).collect()
}

#[test]
fn stored_chunks_decode_to_what_is_read() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let file = file_of(oracle, LAYOUTS);
    let mut chunks = 0;
    for (name, _) in everything(&file).unwrap() {
        let data = file.dataset(&name).unwrap();
        let (Some(grid), Some(bytes)) = (data.chunk_grid(), data.chunk_bytes()) else {
            assert!(data.manifest().unwrap().is_empty());
            continue;
        };
        let (mut stored, mut decoded) = (Vec::new(), vec![0; bytes]);
        let manifest = data.manifest().unwrap();
        for (chunk, line) in data.chunks().unwrap().iter().zip(&manifest) {
            data.read_chunk_stored(chunk, &mut stored).unwrap();
            assert_eq!((line.size, line.offset), (stored.len() as u64, data.file_offset(chunk).unwrap()));
            data.decode_chunk(chunk, &stored, &mut decoded).unwrap();
            if !grid.is_partial(&chunk.coords) {
                let part = grid.selection(&chunk.coords);
                assert!(decoded == data.read_bytes(&part.into()).unwrap());
            }
            assert!(data.decode_chunk(chunk, &stored, &mut decoded[1..]).is_err());
            chunks += 1;
        }
    }
    assert!(chunks > 100);
}

#[test]
fn memory_stays_within_the_limits() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let options = OpenOptions { limits: Limits::default().with_bytes(1_500_000), ..OpenOptions::default() };
    let file = File::open_with(oracle.folder.join(LAYOUTS), options).unwrap();
    let large = file.dataset("large").unwrap(); // 4.8 MB
    assert_eq!(large.read::<f32>().unwrap_err().kind(), ErrorKind::Limit);
    // Row by row it fits, although a chunk is decoded each time.
    let row = Selection::from(Hyperslab::new(vec![17, 0], vec![1, 4000]));
    assert_eq!(large.read_selection::<f32>(&row).unwrap().len(), 4000);
    assert!(file.space().budget().peak() <= 1_500_000);
    assert!(file.space().budget().used() < 100_000, "what was charged is given back");
}

/// Sources in the same file, so that one counting source sees all that is read; and a group of many links.
const VIRTUAL: &str = "
import sys
import h5py, numpy as np
x = np.arange(24, dtype='i4')
with h5py.File(sys.argv[1], 'w', libver='latest') as f:
    v = h5py.VirtualLayout((5, 24), 'i4')
    for i in range(4):
        f.create_dataset(f's{i}', data=x + 100 * i, chunks=(2,), compression='gzip' if i % 2 else None)
        v[i] = h5py.VirtualSource('.', f's{i}', (24,))
    v[4] = h5py.VirtualSource('.', 'missing', (24,))
    f.create_virtual_dataset('v', v, fillvalue=-1)
    w = h5py.VirtualLayout((24,), 'i4')
    w[:] = h5py.VirtualSource('.', 'v', (5, 24))[2]
    f.create_virtual_dataset('w', w)
    for i in range(300):
        f[f'many/n{i}'] = i
    f['many/soft'] = h5py.SoftLink('n7')
    f['old'] = 5
";

#[test]
fn a_plan_of_a_virtual_dataset_is_what_its_sources_are_asked_for() {
    if python().is_none() {
        return skip("Python with h5py", 1);
    }
    let folder = temp_dir();
    let path = folder.path().join("virtual.h5");
    python_stdout(VIRTUAL, [&path], b"");
    let source = counting(&path);
    let options = OpenOptions { chunk_cache: 0, ..OpenOptions::default() };
    let file = File::from_source(source.clone(), options).unwrap();
    let rows = |start: u64, count: u64| Selection::from(Hyperslab::new(vec![start, 3], vec![count, 9]));
    let some = Selection::from(Hyperslab::new(vec![3], vec![9]));
    for (path, selection, sources) in [
        ("v", rows(0, 4), 4),
        ("v", rows(1, 2), 2),
        ("v", rows(3, 1), 1),
        ("w", Selection::All, 1),
        ("w", some, 1),
    ] {
        let data = file.dataset(path).unwrap();
        // Opens the sources and loads their indexes, which more than a few chunks are taken from.
        data.read_bytes(&selection).unwrap();
        let plan = data.plan(&selection).unwrap();
        source.reset();
        let bytes = data.read_bytes(&selection).unwrap();
        assert_eq!(plan.fetched_bytes(), source.bytes(), "{path}: {plan}");
        assert_eq!(plan.result_bytes(), bytes.len() as u64);
        assert_eq!(plan.sources().len(), sources);
        assert!(plan.steps().next().is_none() && plan.ranges().is_empty());
        let requests = |s: &tensilo_hdf5::read::SourcePlan| s.plan.ranges().len() + s.plan.sources().len();
        assert!(plan.sources().iter().all(|s| requests(s) > 0), "{plan}");
    }
    let missing = file.dataset("v").unwrap().plan(&rows(4, 1)).unwrap();
    assert!(missing.sources().is_empty() && missing.fetched_bytes() == 0);
}

#[test]
fn a_group_is_listed_once_when_many_of_its_names_were_looked_up() {
    if python().is_none() {
        return skip("Python with h5py", 1);
    }
    let folder = temp_dir();
    let path = folder.path().join("many.h5");
    python_stdout(VIRTUAL, [&path], b"");
    let source = counting(&path);
    let file = File::from_source(source.clone(), OpenOptions::default()).unwrap();
    let mut reads = Vec::new();
    for i in 0..300_i64 {
        source.reset();
        let data = file.dataset(format!("/many/n{i}")).unwrap();
        assert_eq!(data.read::<i64>().unwrap(), [i]);
        reads.push(source.reads());
    }
    // The header and the value; before, each look-up also searches the group.
    assert!(reads[200..].iter().all(|n| *n == 2), "{reads:?}");
    assert!(reads[20] > 4 && reads.iter().sum::<usize>() < 1000, "{reads:?}");
    assert_eq!(file.dataset("/many/soft").unwrap().read::<i64>().unwrap(), [7]);
    for name in ["/many/n300", "/many/n7/x", "/many/old"] {
        assert_eq!(file.dataset(name).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
    }
    assert_eq!(file.dataset("/old").unwrap().read::<i64>().unwrap(), [5]);
}
