//! Compaction against a list of records, for many shapes of stores.

use super::*;
use tensilo_testkit::oracle;

#[test]
fn random_histories_of_appends_deletes_and_compactions_equal_a_list() {
    for seed in 0..40_u64 {
        let disk = Arc::new(model());
        let options = on_disk(disk.clone());
        let mut store = Zrecord::create("/d/s", options.clone()).unwrap();
        let mut list: Vec<Vec<u8>> = Vec::new();
        let mut state = seed.wrapping_mul(77) + 1;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for step in 0..25 {
            match random(5) {
                0 | 1 => {
                    let more: Vec<_> = (0..random(12))
                        .map(|i| record(seed * 1000 + step * 50 + i, 1 + random(2500) as usize))
                        .collect();
                    let codec = if random(2) == 0 { Codec::Raw } else { Codec::Flate };
                    assert_eq!(append(&store, &more, Some(codec)).unwrap(), list.len() as u64);
                    list.extend(more);
                }
                2 if !list.is_empty() => {
                    let gone: Vec<u64> = (0..random(8)).map(|_| random(list.len() as u64)).collect();
                    store.delete(&gone).unwrap();
                    list = without(list, &gone);
                }
                3 => {
                    store.compact(&Quiet).unwrap();
                    let stats = store.stats().unwrap();
                    let chunks = stats.chunk_bytes / SMALL.chunk_bytes;
                    assert!(stats.reclaimable() <= chunks * 2500, "seed {seed}: {stats:?}");
                    let last = disk.bytes(format!("/d/s/{chunks}.zr")).unwrap().len() as u64;
                    assert_eq!(last, stats.chunk_bytes % SMALL.chunk_bytes, "the file ends with the store");
                    assert!(!disk.exists(format!("/d/s/{}.zr", chunks + 1)));
                }
                _ => store = Zrecord::open("/d/s", options.clone()).unwrap(),
            }
            assert!(all(&store).unwrap() == list, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn records_in_place_are_not_moved() {
    let disk = model();
    let store = Zrecord::create("/d/s", on_disk(Arc::new(disk.clone()))).unwrap();
    append(&store, &(0..10).map(|i| record(i, 100)).collect::<Vec<_>>(), Some(Codec::Raw)).unwrap();
    store.delete(&[9]).unwrap();
    drop(store);
    let log = recorded(&disk);
    Zrecord::open("/d/s", on_disk(Arc::new(log.clone()))).unwrap().compact(&Quiet).unwrap();
    let written: usize = log
        .log()
        .ops
        .iter()
        .map(|op| match op {
            tensilo_testkit::disk_log::Op::Write { data, .. } => data.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(written, 52 + 16, "a journal without entries, and the header");
}

#[test]
fn a_hole_smaller_than_a_record_costs_each_record_one_move() {
    let disk = model();
    let options = |disk: Arc<dyn tensilo_core::io::Disk>| ZrecordOptions {
        geometry: Geometry { chunk_bytes: 200_000, ..SMALL },
        ..on_disk(disk)
    };
    let store = Zrecord::create("/d/s", options(Arc::new(disk.clone()))).unwrap();
    append(&store, &[record(1, 100)], Some(Codec::Raw)).unwrap();
    let records: Vec<_> = (2..80).map(|i| record(i, 1000 + i as usize)).collect();
    append(&store, &records, Some(Codec::Raw)).unwrap();
    store.delete(&[0]).unwrap();
    store.compact(&Quiet).unwrap();
    let mut expected = records;
    expected.rotate_right(1);
    assert!(all(&store).unwrap() == expected);
    assert_eq!(store.stats().unwrap().reclaimable(), 0);
}

#[test]
fn a_cancelled_compaction_leaves_a_whole_store_and_the_next_one_finishes() {
    use tensilo_core::progress::CancelFlag;
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), small()).unwrap();
    let records: Vec<_> = (0..60).map(|i| record(i, 500)).collect();
    append(&store, &records, None).unwrap();
    store.delete(&[0, 7]).unwrap();
    let kept = without(records, &[0, 7]);
    let flag = CancelFlag::new();
    flag.cancel();
    assert_eq!(store.compact(&flag).unwrap_err().kind(), tensilo_core::ErrorKind::Cancelled);
    assert!(all(&store).unwrap() == kept);
    store.compact(&Quiet).unwrap();
    assert!(all(&store).unwrap() == kept);
}
