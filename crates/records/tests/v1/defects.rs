//! What loaderx 0.5.0 does wrong in its store does not happen here: one test for each defect, by its number in
//! docs/formats/zrecord-v1.md. Number 1 and 4 are the crash tables, 7 and 8 are in `sharing`.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::*;
use std::os::unix::fs::{FileExt, MetadataExt};
use tensilo_core::ErrorKind;
use tensilo_records::v1::code_of;
use tensilo_testkit::disk_log::Op;
use tensilo_testkit::oracle;

fn allocated(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

fn filled(folder: &Path, records: &[Vec<u8>]) -> Zrecord {
    let store = Zrecord::create(folder, options()).unwrap();
    append(&store, records, None).unwrap();
    store
}

/// The first bytes of a file.
fn head<const N: usize>(path: &Path) -> [u8; N] {
    let mut bytes = [0; N];
    std::fs::File::open(path).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn patch(path: &Path, offset: u64, bytes: &[u8]) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

#[test]
fn defect_2_compaction_gives_the_space_back() {
    let temp = oracle::temp_dir();
    let store =
        filled(&temp.path().join("s"), &(0..1000).map(|i| record(2 * i + 1, 5000)).collect::<Vec<_>>());
    let data = temp.path().join("s/0.zr");
    assert!(allocated(&data) > 4_500_000);
    store.delete(&(0..900).collect::<Vec<_>>()).unwrap();
    store.compact(&Quiet).unwrap();
    assert!(allocated(&data) < 600_000, "{}", allocated(&data));
    assert_eq!(store.stats().unwrap().chunk_bytes, 500_000);
}

#[test]
fn defect_3_data_is_durable_before_the_entries_and_these_before_the_header() {
    let disk = RecordingDisk::over_model(model());
    let store = Zrecord::create("/d/s", on_disk(Arc::new(disk.clone()))).unwrap();
    let before = disk.log().ops.len();
    append(&store, &[record(1, 100)], None).unwrap();
    let log = disk.log();
    let kinds: Vec<_> = log.ops[before..]
        .iter()
        .map(|op| match op {
            Op::Write { offset, data, .. } => format!("write {} at {offset}", data.len()),
            Op::Sync { .. } => "sync".into(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["write 100 at 0", "write 16 at 16", "sync", "sync", "write 16 at 0", "sync"]);
    let before = log.ops.len();
    store.sync().unwrap();
    let log = disk.log();
    let synced = |op: &Op| matches!(op, Op::Sync { .. } | Op::SyncDir { .. });
    assert_eq!(log.ops[before..].iter().filter(|op| synced(op)).count(), 3, "data, table and folder");
}

#[test]
fn defect_5_a_truncated_data_file_is_an_error() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    for mapped in [true, false] {
        for codec in [Codec::Raw, Codec::Flate] {
            let store = Zrecord::open_or_create(&folder, options()).unwrap();
            store.delete(&(0..store.len()).collect::<Vec<_>>()).unwrap();
            store.compact(&Quiet).unwrap();
            append(&store, &[record(2, 1000), record(4, 1000)], Some(codec)).unwrap();
            drop(store);
            let file = std::fs::OpenOptions::new().write(true).open(folder.join("0.zr")).unwrap();
            let len = file.metadata().unwrap().len();
            file.set_len(len - 1).unwrap();
            let store = Zrecord::open(&folder, ZrecordOptions { mapped, ..options() }).unwrap();
            assert_eq!(get(&store, &[0]).unwrap(), [record(2, 1000)]);
            let e = get(&store, &[1]).unwrap_err();
            assert_eq!((e.kind(), code_of(&e), e.record()), (ErrorKind::Corrupt, -7, Some(1)));
            file.set_len(len).unwrap();
        }
    }
}

#[test]
fn defect_5_a_stream_of_another_length_is_an_error() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    drop(filled(&folder, &[record(2, 1000)]));
    for len in [999_u32, 1001] {
        patch(&folder.join("meta.zr"), 16 + 8, &len.to_le_bytes());
        let e = get(&Zrecord::open(&folder, options()).unwrap(), &[0]).unwrap_err();
        assert_eq!((e.kind(), code_of(&e)), (ErrorKind::Corrupt, -7), "{len}");
    }
}

#[test]
fn defect_6_hostile_tables_are_typed_errors_and_make_no_files() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let records = [record(2, 1000), record(3, 1000)];
    drop(filled(&folder, &records));
    let meta = head::<64>(&folder.join("meta.zr")).to_vec();
    let names = || std::fs::read_dir(&folder).unwrap().count();
    let write = |bytes: &[u8], len: u64| {
        std::fs::write(folder.join("meta.zr"), bytes).unwrap();
        std::fs::OpenOptions::new().write(true).open(folder.join("meta.zr")).unwrap().set_len(len).unwrap();
    };
    for len in [0, 1, 15, 16, 17, 32, 47] {
        write(&meta[..len], len as u64);
        let e = Zrecord::open(&folder, options()).unwrap_err();
        assert_eq!(code_of(&e), -8, "a table of {len} bytes: {e}");
    }
    let full = 16 + (16 << 24);
    for (at, bytes) in [(12, &[0xff; 4][..]), (6, &[0xff; 2]), (15, &[1]), (4, &[9]), (0, b"zrec")] {
        let mut bad = meta.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        write(&bad, full);
        match Zrecord::open(&folder, options()) {
            Err(e) => assert_eq!(code_of(&e), -8, "{e}"),
            // A length below 2^24 is possible: its entries are not.
            Ok(store) => assert_eq!(get(&store, &[store.len() - 1]).unwrap_err().kind(), ErrorKind::Corrupt),
        }
    }
    // Every bit of the first entry and of the header.
    let mut opened = 0;
    for bit in 0..32 * 8 {
        let mut bad = meta.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        write(&bad, full);
        if let Ok(store) = Zrecord::open(&folder, options()) {
            opened += 1;
            if let Err(e) = get(&store, &[0]) {
                assert!([-7, -3].contains(&code_of(&e)), "bit {bit}: {e:?}");
            }
            if let Err(e) = append(&store, &[vec![1]], None) {
                assert!([-5, -2, -7, -8].contains(&code_of(&e)), "bit {bit}: {e:?}");
            }
            let _ = store.compact(&Quiet);
        }
        assert!(names() <= 3, "bit {bit} made files");
        let sizes = ["0.zr", "1.zr"].map(|n| std::fs::metadata(folder.join(n)).map_or(0, |m| m.len()));
        assert!(sizes.iter().all(|s| *s < 1 << 20), "bit {bit}: {sizes:?}");
    }
    assert!(opened > 100);
}

#[test]
fn defect_13_a_mistyped_path_makes_nothing_and_a_store_opens_for_reading_only() {
    let temp = oracle::temp_dir();
    let e = Zrecord::open_or_create(temp.path().join("typo/path"), options()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
    let folder = temp.path().join("s");
    drop(filled(&folder, &[record(2, 100)]));
    let read_only = || ZrecordOptions { read_only: true, ..options() };
    let before: Vec<_> =
        ["meta.zr", "0.zr"].map(|n| std::fs::metadata(folder.join(n)).unwrap().mtime_nsec()).into();
    let store = Zrecord::open(&folder, read_only()).unwrap();
    assert_eq!(all(&store).unwrap(), [record(2, 100)]);
    let refused = [
        append(&store, &[vec![1]], None).map(drop),
        store.delete(&[0]),
        store.delete(&[]),
        store.compact(&Quiet),
        store.sync(),
    ];
    for result in refused {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let after: Vec<_> =
        ["meta.zr", "0.zr"].map(|n| std::fs::metadata(folder.join(n)).unwrap().mtime_nsec()).into();
    assert_eq!(before, after);
    assert_eq!(
        Zrecord::open_or_create(temp.path().join("no"), read_only()).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn defect_13_a_folder_of_other_things_does_not_become_a_store() {
    let temp = oracle::temp_dir();
    std::fs::write(temp.path().join("photo.jpg"), b"x").unwrap();
    let e = Zrecord::open_or_create(temp.path(), options()).unwrap_err();
    assert!([ErrorKind::AlreadyExists, ErrorKind::NotFound].contains(&e.kind()));
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
}

#[test]
fn defect_17_a_store_of_one_record_takes_two_blocks_and_its_data_files_are_no_giants() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let store = filled(&folder, &[record(2, 100)]);
    assert!(allocated(&folder.join("meta.zr")) <= 8192);
    assert!(std::fs::metadata(folder.join("0.zr")).unwrap().len() < 100);
    // Also when it was larger once.
    append(&store, &(0..5000).map(|i| record(i, 20)).collect::<Vec<_>>(), None).unwrap();
    assert!(allocated(&folder.join("meta.zr")) > 65_536);
    store.delete(&(1..5001).collect::<Vec<_>>()).unwrap();
    store.compact(&Quiet).unwrap();
    assert!(allocated(&folder.join("meta.zr")) <= 8192);
    assert_eq!(all(&store).unwrap(), [record(2, 100)]);
}

#[test]
fn overlapping_entries_are_found_before_anything_moves() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let store = filled(&folder, &[record(1, 100), record(3, 100), record(5, 100)]);
    store.delete(&[0]).unwrap();
    drop(store);
    patch(&folder.join("meta.zr"), 16, &250_u32.to_le_bytes());
    let store = Zrecord::open(&folder, options()).unwrap();
    let before = std::fs::read(folder.join("0.zr")).unwrap();
    assert_eq!(store.compact(&Quiet).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(std::fs::read(folder.join("0.zr")).unwrap(), before);
}

#[test]
fn a_record_that_half_a_delete_doubled_survives_compaction() {
    // loaderx, killed between the entry and the header of a delete, leaves two entries for one record.
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    drop(filled(&folder, &[record(1, 100), record(3, 100), record(5, 100)]));
    let meta = head::<64>(&folder.join("meta.zr"));
    patch(&folder.join("meta.zr"), 16, &meta[48..64]);
    let store = Zrecord::open(&folder, options()).unwrap();
    let expected = [record(5, 100), record(3, 100), record(5, 100)];
    assert_eq!(all(&store).unwrap(), expected);
    store.compact(&Quiet).unwrap();
    assert_eq!((all(&store).unwrap(), store.stats().unwrap().chunk_bytes), (expected.to_vec(), 200));
}
