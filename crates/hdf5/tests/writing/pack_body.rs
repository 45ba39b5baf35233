//! The body of a pack cache: contiguous words behind a user block, streamed into a file of the caller's.

use super::{h5dump_reads, h5py_lines, hex};
use std::os::unix::fs::FileExt;
use tensilo_core::io::{Disk, SystemDisk};
use tensilo_hdf5::write::{FileWriter, WriteOptions};
use tensilo_testkit::oracle::{skip, temp_dir};

#[test]
fn shards_are_streamed_behind_a_user_block_and_their_offsets_are_absolute() {
    let folder = temp_dir();
    let path = folder.path().join("cache.h5");
    let file = SystemDisk.create_new(&path).expect("a new file");
    file.write_at(0, b"prelude").expect("written");
    let mut w = FileWriter::over(&*file, WriteOptions::default().user_block(65_536)).expect("options");
    let mut expected = vec!["/quantem_gpu group".to_owned(), "/quantem_gpu/shards group".to_owned()];
    let mut offsets = Vec::new();
    for shard in 0..11_u32 {
        let name = format!("/quantem_gpu/shards/{shard:03}");
        expected.push(format!("{name} group"));
        let mut described = Vec::new();
        for (part, len) in [("payload_u32", 5000 + shard), ("compact_headers_u32", 17)] {
            let words: Vec<u32> = (0..len).map(|i| i.wrapping_mul(2_654_435_761) ^ shard).collect();
            let path = format!("{name}/{part}");
            let mut writer = w
                .dataset(&path)
                .element::<u32>()
                .shape(&[u64::from(len)])
                .contiguous_writer()
                .expect("a dataset");
            for piece in words.chunks(777) {
                writer.write(bytemuck::cast_slice(piece)).expect("written");
            }
            let offset = writer.finish().expect("finished").offset.expect("elements");
            described.push(format!("{path} dataset uint32 ({len},) ({len},) None [] {}", hex(&words)));
            offsets.push((offset, words));
        }
        described.sort();
        expected.append(&mut described);
    }
    w.write_user_block(65_530, b"trailer"[..6].as_ref()).expect("written");
    let finished = w.finish().expect("finished");
    assert_eq!(file.len().expect("length"), finished.bytes);
    drop(file);

    let file = std::fs::File::open(&path).expect("opened");
    for (offset, words) in &offsets {
        let mut there = vec![0; words.len() * 4];
        file.read_exact_at(&mut there, *offset).expect("inside the file");
        assert_eq!(bytemuck::cast_slice::<u32, u8>(words), there);
    }
    let mut start = [0; 65_545];
    file.read_exact_at(&mut start, 0).expect("inside the file");
    assert_eq!(&start[..7], b"prelude");
    assert_eq!(&start[65_530..65_536], b"traile");
    assert_eq!(&start[65_536..], b"\x89HDF\r\n\x1a\n\0", "superblock version 0 behind the user block");

    match h5py_lines(&path) {
        Some(found) => super::assert_lines(&found, &expected),
        None => skip("Python with h5py", 1),
    }
    if h5dump_reads(&path).is_none() {
        skip("h5dump", 1);
    }
}
