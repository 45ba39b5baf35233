//! Chunks whose places are given from the beginning, written in every order.

use std::sync::Arc;
use tensilo_core::array::Selection;
use tensilo_core::io::MemorySource;
use tensilo_hdf5::format::message::fill_value::{AllocationTime, FillMessage, FillTime, FillValue};
use tensilo_hdf5::read::{File, Object, OpenOptions};
use tensilo_hdf5::write::{Bound, FileWriter, WriteOptions};
use tensilo_testkit::disk_log::ModelDisk;

/// All orders of `0..n`.
fn orders(n: usize) -> Vec<Vec<u64>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for order in orders(n - 1) {
        for at in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(at, n as u64 - 1);
            all.push(longer);
        }
    }
    all
}

#[test]
fn early_chunks_of_a_few_bytes_keep_what_was_written_in_every_order() {
    let mut compared = 0;
    for bound in [Bound::Earliest, Bound::V110] {
        for bytes in 1..=9_usize {
            for order in orders(4) {
                for written in 0..=4 {
                    compared += one(bound, bytes, &order[..written], &order);
                }
            }
        }
    }
    assert_eq!(compared, 2 * 9 * 24 * 5);
}

/// Four chunks of so many bytes, of which some are written, in that order, between two other datasets.
fn one(bound: Bound, bytes: usize, written: &[u64], order: &[u64]) -> usize {
    let disk = ModelDisk::new();
    let mut w = FileWriter::create(Arc::new(disk.clone()), "/a.h5", WriteOptions::default().bound(bound))
        .expect("a file");
    w.dataset("before").write(&[1_u8, 2, 3]).expect("a dataset");
    let early = FillMessage {
        allocation: AllocationTime::Early,
        time: FillTime::IfSet,
        value: FillValue::Value(vec![0xee]),
    };
    let d = w.dataset("d").shape(&[4 * bytes as u64]).chunk(&[bytes as u64]).element::<u8>();
    let mut chunks = d.fill_message(early).chunk_writer().expect("a dataset");
    let mut expected = vec![0xee; 4 * bytes];
    for number in written {
        let values: Vec<u8> = (0..bytes).map(|i| 0x11 * (*number as u8 + 1) + i as u8).collect();
        let at = *number as usize * bytes;
        expected[at..at + bytes].copy_from_slice(&values);
        chunks.write_chunk(&[*number], values).expect("a chunk");
    }
    chunks.finish().expect("a dataset");
    w.dataset("behind").write(&[4_u8, 5]).expect("a dataset");
    w.finish().expect("a file");
    let source = MemorySource::new(disk.bytes("/a.h5").expect("the file"));
    let file = File::from_source(Arc::new(source), OpenOptions::default()).expect("opened");
    for (name, expected) in [("before", &[1_u8, 2, 3][..]), ("d", &expected), ("behind", &[4, 5])] {
        let Ok(Object::Dataset(d)) = file.object(name) else { panic!("no {name}") };
        let found = d.read_bytes(&Selection::All).expect("read");
        assert_eq!(found, expected, "{name}, {bound:?}, chunks of {bytes} bytes, {written:?} of {order:?}");
    }
    1
}
