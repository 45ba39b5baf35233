//! Several processes and threads on one store.

use super::{Records, append, contents, delete, records, schema};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tensilo_core::gather::{FieldBuffer, Gather, Places, gather};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, ErrorKind, Quiet};
use tensilo_records::store::{Store, StoreWriter, WriterOptions};
use tensilo_testkit::oracle;

/// Set for a process that a test starts: the store to append to, and who it is.
const ROLE: &str = "TENSILO_RECORDS_TEST_ROLE";

#[test]
fn a_second_writer_is_locked_out_until_the_first_ends() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let first = StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap();
    let locked = StoreWriter::open(&path, WriterOptions::default()).unwrap_err();
    assert_eq!(locked.kind(), ErrorKind::Locked);
    assert!(Store::open(&path).is_ok(), "readers are not");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let options = WriterOptions { wait: Duration::from_secs(60), ..WriterOptions::default() };
            StoreWriter::open(&path, options).map(|w| w.len())
        });
        std::thread::sleep(Duration::from_millis(20));
        drop(first);
        assert_eq!(waiting.join().unwrap().unwrap(), 0);
    });
}

/// Not a test of its own: what the processes of the next one do. Without the variable it does nothing.
#[test]
fn appending_process() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let role = role.into_string().unwrap();
    let (who, path) = role.split_once(':').unwrap();
    let who: usize = who.parse().unwrap();
    for i in 0..60 {
        let options = WriterOptions { wait: Duration::from_secs(120), ..WriterOptions::default() };
        let mut writer = StoreWriter::open(path, options).unwrap();
        append(&mut writer, &records(who * 1000 + i..who * 1000 + i + 1)).unwrap();
        writer.commit().unwrap();
        if i % 20 == 19 {
            writer.compact(&Quiet).unwrap();
        }
    }
}

#[test]
fn two_processes_that_append_and_compact_lose_no_record() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    drop(StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap());
    let start = |who: usize| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::sharing::appending_process", "--nocapture"])
            .env(ROLE, format!("{who}:{}", path.display()))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let children = [start(1), start(2)];
    // A reader beside them sees only whole prefixes.
    let mut last = 0;
    let mut store = Store::open(&path).unwrap();
    for _ in 0..40 {
        store.refresh().unwrap();
        assert!(store.len() >= last);
        last = store.len();
        contents(&store).unwrap();
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut found = contents(&Store::open(&path).unwrap()).unwrap();
    let mut expected: Records = records(1000..1060);
    expected.extend(records(2000..2060));
    found.sort();
    expected.sort();
    assert!(found == expected, "{} of {} records", found.len(), expected.len());
}

#[test]
fn eight_threads_gather_while_one_appends_deletes_and_compacts() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let options = WriterOptions { encoding: Some("lz4".parse().unwrap()), ..WriterOptions::default() };
    let mut writer = StoreWriter::create(&path, schema(), options).unwrap();
    let mut model = records(0..500);
    append(&mut writer, &model).unwrap();
    writer.commit().unwrap();
    // What every generation shows, known before it is committed.
    let models =
        std::sync::Mutex::new(std::collections::HashMap::from([(writer.generation(), model.clone())]));
    let stop = AtomicBool::new(false);
    let gathered = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for t in 0..8_u64 {
            let (models, stop, path, gathered) = (&models, &stop, &path, &gathered);
            scope.spawn(move || {
                let mut store = Store::open(path).unwrap();
                let mut draw = super::Draw(t);
                while !stop.load(Ordering::Relaxed) {
                    if draw.below(4) == 0 {
                        store.refresh().unwrap();
                    }
                    let ids: Vec<u64> = (0..40).map(|_| draw.below(store.len())).collect();
                    let got = gather(&store, &ids, &[], &Budget::default(), Threads::ONE, &Quiet).unwrap();
                    let model = models.lock().unwrap()[&store.generation()].clone();
                    for value in &got {
                        let wanted: Vec<u8> = ids
                            .iter()
                            .flat_map(|id| model[*id as usize][value.field].iter().copied())
                            .collect();
                        assert!(value.bytes == wanted, "generation {}", store.generation());
                    }
                    gathered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..30 {
            let next = writer.generation() + 1;
            match round % 3 {
                0 | 1 => {
                    let more = records(1000 + round * 50..1000 + round * 50 + 40);
                    model.extend(more.clone());
                    models.lock().unwrap().insert(next, model.clone());
                    append(&mut writer, &more).unwrap();
                    writer.commit().unwrap();
                }
                _ => {
                    delete(&mut model, &[1, 5, 9]);
                    models.lock().unwrap().insert(next, model.clone());
                    models.lock().unwrap().insert(next + 1, model.clone());
                    writer.delete(&[1, 5, 9]).unwrap();
                    writer.compact(&Quiet).unwrap();
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(gathered.load(Ordering::Relaxed) >= 8);
    assert!(contents(&Store::open(&path).unwrap()).unwrap() == model);
}

#[test]
fn places_of_a_stride_are_filled_by_several_threads() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let schema = tensilo_core::gather::Schema::new(vec![tensilo_core::gather::FieldSchema::fixed(
        "x",
        tensilo_core::dtype::DType::U32,
        [50_000],
    )])
    .unwrap();
    let all: Records = (0..40_u32)
        .map(|i| vec![(0..50_000_u32).flat_map(|j| (i * 1000 + j / 3).to_le_bytes()).collect()])
        .collect();
    for encoding in ["raw", "bitshuffle+lz4"] {
        let options = WriterOptions {
            encoding: Some(encoding.parse().unwrap()),
            replace: true,
            ..WriterOptions::default()
        };
        let mut writer = StoreWriter::create(&path, schema.clone(), options).unwrap();
        append(&mut writer, &all).unwrap();
        writer.commit().unwrap();
        let store = Store::open(&path).unwrap();
        let ids: Vec<u64> = (0..64).map(|i| i * 7 % 40).collect();
        let stride = 200_003;
        for threads in [1, 2, 5] {
            let mut bytes = vec![0x5a; stride * ids.len()];
            let places = Places::Stride(stride as u64);
            let mut into = [FieldBuffer { field: 0, bytes: &mut bytes, places }];
            store.gather_into(&ids, &mut into, Threads::new(threads), &Quiet).unwrap();
            for (id, place) in ids.iter().zip(bytes.chunks(stride)) {
                assert!(place[..200_000] == all[*id as usize][0] && place[200_000..] == [0x5a; 3]);
            }
        }
    }
}
