//! Several threads, handles and processes at one store.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tensilo_core::ErrorKind;
use tensilo_core::gather::Gather;
use tensilo_testkit::allocations::allocations;
use tensilo_testkit::oracle;

/// Appends of one process in the test below.
const APPENDS: u64 = 30;
const FOLDER: &str = "TENSILO_TEST_APPEND_TO";
const SEED: &str = "TENSILO_TEST_APPEND_SEED";

/// The record of an append: which process, which append.
fn signed(process: u64, step: u64) -> Vec<u8> {
    [&process.to_le_bytes()[..], &step.to_le_bytes(), &record(process + step, 50 + step as usize * 7)]
        .concat()
}

/// Appends one record a time to the folder that the environment names, or to one of its own.
#[test]
fn a_process_appends_record_by_record() {
    let temp = oracle::temp_dir();
    let folder = std::env::var_os(FOLDER).map_or_else(|| temp.path().join("s"), Into::into);
    let seed = std::env::var(SEED).map_or(1, |s| s.parse().unwrap());
    let store = Zrecord::open_or_create(&folder, options()).unwrap();
    for step in 0..APPENDS {
        let id = append(&store, &[signed(seed, step)], None).unwrap();
        assert_eq!(get(&store, &[id]).unwrap(), [signed(seed, step)]);
    }
}

#[test]
fn two_processes_that_append_lose_no_record() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    drop(Zrecord::create(&folder, options()).unwrap());
    let run = |seed: u64| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "v1::sharing::a_process_appends_record_by_record"])
            .env(FOLDER, &folder)
            .env(SEED, seed.to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let children = [run(1), run(2)];
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = Zrecord::open(&folder, options()).unwrap();
    let records = all(&store).unwrap();
    for process in [1, 2] {
        let mine: Vec<_> = records.iter().filter(|r| r[0] == process).cloned().collect();
        let expected: Vec<_> = (0..APPENDS).map(|step| signed(u64::from(process), step)).collect();
        assert!(mine == expected, "process {process}");
    }
    assert_eq!(records.len() as u64, 2 * APPENDS);
}

#[test]
fn eight_threads_gather_while_one_appends() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), small()).unwrap();
    append(&store, &[record(0, 10)], None).unwrap();
    let size = |id: u64| 10 + (id as usize * 131) % 900;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..8_u64 {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                let mut looked = 0;
                while !done.load(Ordering::Acquire) || looked == 0 {
                    let len = store.len();
                    let ids: Vec<u64> =
                        (0..64).map(|i| (reader * 31 + i * i + looked) % len).chain([len - 1]).collect();
                    let expected: Vec<_> = ids.iter().map(|id| record(*id, size(*id))).collect();
                    assert!(get(store, &ids).unwrap() == expected);
                    let snapshot = store.snapshot().unwrap();
                    assert!(snapshot.len() >= len);
                    looked += 1;
                }
            });
        }
        for step in 0..40 {
            let first = store.len();
            let more: Vec<_> = (0..1 + step % 5).map(|i| record(first + i, size(first + i))).collect();
            append(&store, &more, if step % 2 == 0 { Some(Codec::Raw) } else { None }).unwrap();
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn another_handle_sees_appended_records_after_a_refresh() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let a = Zrecord::create(&folder, options()).unwrap();
    let b = Zrecord::open(&folder, ZrecordOptions { read_only: true, ..options() }).unwrap();
    append(&a, &[record(1, 10)], None).unwrap();
    assert_eq!((b.len(), b.refresh().unwrap()), (0, 1));
    assert_eq!(all(&b).unwrap(), [record(1, 10)]);
    let c = Zrecord::open(&folder, options()).unwrap();
    append(&a, &[record(2, 10)], None).unwrap();
    assert_eq!(append(&c, &[record(3, 10)], None).unwrap(), 2, "an append looks first");
    assert_eq!(all(&c).unwrap(), [record(1, 10), record(2, 10), record(3, 10)]);
}

#[test]
fn deleting_and_compacting_wait_for_nobody_and_disturb_nobody() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let a = Zrecord::create(&folder, options()).unwrap();
    append(&a, &[record(1, 10), record(2, 10)], None).unwrap();
    let refused = |a: &Zrecord| {
        refused_as_locked(a);
        assert_eq!(all(a).unwrap(), [record(1, 10), record(2, 10)]);
    };
    let reader = Zrecord::open(&folder, ZrecordOptions { read_only: true, ..options() }).unwrap();
    refused(&a);
    assert_eq!(all(&reader).unwrap().len(), 2);
    drop(reader);
    let snapshot = a.snapshot().unwrap();
    refused(&a);
    drop(snapshot);
    a.delete(&[0]).unwrap();
    a.compact(&Quiet).unwrap();
    assert_eq!(all(&a).unwrap(), [record(2, 10)]);
    let b = Zrecord::open(&folder, options()).unwrap();
    assert_eq!(all(&b).unwrap(), [record(2, 10)]);
    // A snapshot outlives its handle, and keeps its records in place.
    let snapshot = b.snapshot().unwrap();
    drop(b);
    refused_as_locked(&a);
    drop(snapshot);
    a.delete(&[0]).unwrap();
}

fn refused_as_locked(store: &Zrecord) {
    for result in [store.delete(&[0]), store.compact(&Quiet)] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Locked);
    }
}

#[test]
fn who_cannot_have_a_lock_in_time_is_told_so() {
    use tensilo_core::io::{Disk, LockKind, SystemDisk};
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let hasty = || ZrecordOptions { lock_wait: Duration::from_millis(20), ..options() };
    let store = Zrecord::create(&folder, hasty()).unwrap();
    let writer = SystemDisk.open(&folder.join("meta.zr")).unwrap();
    writer.try_lock(LockKind::Exclusive).unwrap();
    assert_eq!(append(&store, &[vec![1]], None).unwrap_err().kind(), ErrorKind::Locked);
    writer.unlock().unwrap();
    append(&store, &[vec![1]], None).unwrap();
    drop(store);
    let cleaner = SystemDisk.open(&folder.join("0.zr")).unwrap();
    cleaner.try_lock(LockKind::Exclusive).unwrap();
    assert_eq!(Zrecord::open(&folder, hasty()).unwrap_err().kind(), ErrorKind::Locked);
}

#[test]
fn gathering_asks_for_no_memory_per_record() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), options()).unwrap();
    for codec in [Codec::Raw, Codec::Flate] {
        append(&store, &(0..1000).map(|i| record(i * 2, 784)).collect::<Vec<_>>(), Some(codec)).unwrap();
    }
    let mut room = vec![0; 2000 * 784];
    let mut count = |n: u64| {
        let ids: Vec<u64> = (0..n).map(|i| i * 7 % 2000).collect();
        allocations(|| store.gather(&ids, &mut room, Places::Stride(784), Threads::ONE, &Quiet).unwrap())
    };
    count(2000);
    let (few, many) = (count(2), count(2000));
    assert_eq!(few, many);
    assert!(many <= 2, "{many} requests for memory");
    assert!(allocations(|| drop(vec![1; 3])) > 0, "requests are counted");
}
