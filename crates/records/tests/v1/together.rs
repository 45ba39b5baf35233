//! Large records are inflated two at a time.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::*;
use tensilo_core::ErrorKind;
use tensilo_testkit::oracle;

/// Rows of values that are mostly literals, of which the 13th record and its like are noise and stay as they are.
fn rows(seed: u64) -> Vec<u8> {
    let len = 2500 + seed as usize * 40;
    record(2 * seed + 1, len).iter().map(|byte| if seed % 13 == 5 { *byte } else { byte % 90 }).collect()
}

#[test]
fn large_records_are_the_same_alone_and_together_and_a_damaged_one_is_named() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let records: Vec<Vec<u8>> = (0..60).map(rows).collect();
    let store = Zrecord::create(&folder, options()).unwrap();
    append(&store, &records, Some(Codec::Flate)).unwrap();
    for turn in 0..60 {
        let ids: Vec<u64> = (0..1 + turn).map(|i| (turn * turn + i * 7 + i * i) % 60).collect();
        let wanted: Vec<Vec<u8>> = ids.iter().map(|id| records[*id as usize].clone()).collect();
        assert!(get(&store, &ids).unwrap() == wanted, "{ids:?}");
    }
    let snapshot = store.snapshot().unwrap();
    assert_eq!([4, 5, 6].map(|id| snapshot.stored(id).unwrap().1), [Codec::Flate, Codec::Raw, Codec::Flate]);
    drop((snapshot, store));
    // A block of a kind that does not exist, at the start of a record.
    let mut stream = Vec::new();
    tensilo_filters::deflate::Deflater::default().raw(2, &records[20], &mut stream).unwrap();
    let chunk = folder.join("0.zr");
    let mut bytes = std::fs::read(&chunk).unwrap();
    let at = bytes.windows(stream.len()).position(|w| w == stream).unwrap();
    bytes[at] |= 6;
    std::fs::write(&chunk, bytes).unwrap();
    let store = Zrecord::open(&folder, options()).unwrap();
    for ids in [&[19, 20, 21][..], &[20, 21], &[21, 20], &[20], &[1, 2, 3, 20]] {
        // The files are open as far as is read here, from the second time on.
        for _ in 0..2 {
            let e = get(&store, ids).unwrap_err();
            assert_eq!((e.kind(), e.record()), (ErrorKind::Corrupt, Some(20)), "{e}");
        }
    }
    let others: Vec<u64> = (0..60).filter(|id| *id != 20).collect();
    let wanted: Vec<Vec<u8>> = others.iter().map(|id| records[*id as usize].clone()).collect();
    assert!(get(&store, &others).unwrap() == wanted);
}
