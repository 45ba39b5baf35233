//! Crash tables from the disk log: create, append, delete, compact, sync; every prefix, unsynced subset and torn write.

use super::*;
use tensilo_testkit::disk_log::{Counts, CrashState, Options, check_all, every_fault};

const PATH: &str = "/d/s";

/// Small chunks, so that few records are many.
fn tiny(disk: Arc<dyn tensilo_core::io::Disk>) -> ZrecordOptions {
    let geometry = Geometry { chunk_bytes: 2000, chunks: 20, records: 100 };
    ZrecordOptions { geometry, ..on_disk(disk) }
}

fn old_records() -> Vec<Vec<u8>> {
    (0..9).map(|i| record(i, 150 + 40 * i as usize)).collect()
}

/// A disk with a store of the old records.
fn with_store() -> ModelDisk {
    let disk = model();
    let store = Zrecord::create(PATH, tiny(Arc::new(disk.clone()))).unwrap();
    append(&store, &old_records(), Some(Codec::Raw)).unwrap();
    drop(store);
    disk
}

/// What the store holds after the restart; `None` without a store. What recovery leaves must take another record.
fn reopened(state: &CrashState) -> Result<Option<Vec<Vec<u8>>>, String> {
    let disk = state.disk();
    if !disk.exists("/d/s/meta.zr") {
        return Ok(None);
    }
    let text = |e: tensilo_core::Error| format!("{e:?}");
    let looked = {
        let options = ZrecordOptions { read_only: true, ..tiny(Arc::new(disk.clone())) };
        all(&Zrecord::open(PATH, options).map_err(text)?).map_err(text)?
    };
    let store = Zrecord::open(PATH, tiny(Arc::new(disk.clone()))).map_err(text)?;
    let found = all(&store).map_err(text)?;
    if looked != found {
        return Err("a reader that changes nothing sees something else".into());
    }
    if disk.exists("/d/s/journal.tensilo") {
        return Err("the journal is left".into());
    }
    append(&store, &[record(77, 300)], None).map_err(text)?;
    drop(store);
    let again = all(&Zrecord::open(PATH, tiny(Arc::new(disk))).map_err(text)?).map_err(text)?;
    if again != [&found[..], &[record(77, 300)]].concat() {
        return Err("a record appended after the crash is wrong, or has changed others".into());
    }
    Ok(Some(found))
}

fn report(what: &str, counts: &Counts) {
    assert!(counts.states >= 2 && counts.points > 5, "{what}: {counts}");
    assert_eq!(counts.skipped, 0, "{what}: {counts}");
    println!("zrecord v1 {what}: {counts}");
}

/// Runs a change on the store and checks that every crash leaves the old records or the new ones.
fn table(what: &str, change: impl Fn(&Zrecord), new: Vec<Vec<u8>>) {
    let disk = recorded(&with_store());
    let store = Zrecord::open(PATH, tiny(Arc::new(disk.clone()))).unwrap();
    change(&store);
    disk.mark("done");
    assert!(all(&store).unwrap() == new, "{what}");
    let old = old_records();
    let counts = check_all(&disk.log(), &Options::default(), |state| match reopened(state)? {
        Some(found) if found == new => Ok(()),
        Some(found) if found == old && !state.passed("done") => Ok(()),
        found => Err(format!("{:?} records", found.map(|f| f.len()))),
    });
    report(what, &counts);
}

#[test]
fn a_crash_while_creating_leaves_nothing_or_an_empty_store_and_a_second_run_succeeds() {
    let disk = RecordingDisk::over_model(model());
    drop(Zrecord::create(PATH, tiny(Arc::new(disk.clone()))).unwrap());
    disk.mark("done");
    let counts = check_all(&disk.log(), &Options::default(), |state| match reopened(state)? {
        None if !state.passed("done") => {
            let store =
                Zrecord::open_or_create(PATH, tiny(Arc::new(state.disk()))).map_err(|e| e.to_string())?;
            append(&store, &[record(1, 9)], None).map(drop).map_err(|e| e.to_string())
        }
        Some(found) if found.is_empty() => Ok(()),
        found => Err(format!("{found:?}")),
    });
    report("create", &counts);
}

#[test]
fn a_crash_while_appending_leaves_all_new_records_or_none() {
    let more: Vec<_> = (20..26).map(|i| record(i, 500)).collect();
    for codec in [Codec::Raw, Codec::Flate] {
        let new = [old_records(), more.clone()].concat();
        table(&format!("append {codec:?}"), |s| assert_eq!(append(s, &more, Some(codec)).unwrap(), 9), new);
    }
    let bytes = more.concat();
    let items = Items::Fixed { bytes: &bytes, stride: 500, len: 500, count: 6 };
    let new = [old_records(), more].concat();
    table("append fixed", |s| assert_eq!(s.append(items, Some(Codec::Raw)).unwrap(), 9), new);
}

#[test]
fn a_crash_while_deleting_loses_and_doubles_no_record() {
    let gone = [8, 1, 1, 4];
    table("delete", |s| s.delete(&gone).unwrap(), without(old_records(), &gone));
    let gone: Vec<u64> = (0..9).collect();
    table("delete all", |s| s.delete(&gone).unwrap(), Vec::new());
}

#[test]
fn a_crash_while_deleting_twice_and_appending_leaves_one_of_the_states_between() {
    let disk = recorded(&with_store());
    let store = Zrecord::open(PATH, tiny(Arc::new(disk.clone()))).unwrap();
    let mut states = vec![old_records()];
    for step in 0..3_u64 {
        if step == 1 {
            append(&store, &[record(30, 200)], None).unwrap();
        } else {
            store.delete(&[step, 5]).unwrap();
        }
        states.push(all(&store).unwrap());
        disk.mark(format!("step {step}"));
    }
    let counts = check_all(&disk.log(), &Options::default(), |state| {
        let found = reopened(state)?.ok_or("no store")?;
        let done = (0..3).take_while(|s| state.passed(&format!("step {s}"))).count();
        if states.iter().skip(done).take(2).any(|s| *s == found) {
            Ok(())
        } else {
            Err(format!("after {done} steps: {} records", found.len()))
        }
    });
    report("delete, append, delete", &counts);
}

/// Every crash of a compaction leaves the same records, and a second compaction gives the space back.
fn compaction(what: &str, gone: &[u64]) {
    let base = with_store();
    Zrecord::open(PATH, tiny(Arc::new(base.clone()))).unwrap().delete(gone).unwrap();
    let kept = without(old_records(), gone);
    let disk = recorded(&base);
    let store = Zrecord::open(PATH, tiny(Arc::new(disk.clone()))).unwrap();
    store.compact(&Quiet).unwrap();
    disk.mark("done");
    let most = store.stats().unwrap();
    let counts = check_all(&disk.log(), &Options::default(), |state| {
        if reopened(state)?.is_none_or(|found| found != kept) {
            return Err("the records are not the same".into());
        }
        let store = Zrecord::open(PATH, tiny(Arc::new(state.disk()))).map_err(|e| e.to_string())?;
        store.compact(&Quiet).map_err(|e| format!("a second run: {e:?}"))?;
        let stats = store.stats().map_err(|e| e.to_string())?;
        if all(&store).map_err(|e| e.to_string())? != kept {
            return Err("a second run changed records".into());
        }
        // Records may come to lie in another order, and so leave other gaps before the ends of chunks.
        if stats.chunk_bytes <= most.chunk_bytes + 470 { Ok(()) } else { Err(format!("{stats:?}, {most:?}")) }
    });
    report(what, &counts);
}

#[test]
fn a_crash_while_compacting_changes_no_record_and_a_second_run_finishes() {
    compaction("compact, large hole", &[0, 1, 2]);
    compaction("compact, hole smaller than the records behind it", &[0]);
    compaction("compact, holes everywhere", &[1, 3, 5, 7]);
}

#[test]
fn a_crash_after_sync_has_lost_nothing() {
    table("sync", |s| s.sync().unwrap(), old_records());
}

#[test]
fn a_failing_or_full_disk_leaves_the_old_records_or_the_new_ones() {
    let more: Vec<_> = (20..26).map(|i| record(i, 500)).collect();
    type Change<'a> = (&'a str, Vec<Vec<u8>>, Box<dyn Fn(&Zrecord) -> Result<()> + 'a>);
    let changes: Vec<Change<'_>> = vec![
        ("append", [old_records(), more.clone()].concat(), Box::new(|s| append(s, &more, None).map(drop))),
        ("delete", without(old_records(), &[0, 3]), Box::new(|s| s.delete(&[0, 3]))),
        ("compact", old_records(), Box::new(|s| s.compact(&Quiet))),
        ("sync", old_records(), Box::new(|s| s.sync())),
    ];
    for (what, new, change) in changes {
        let faults = every_fault(
            || {
                let disk = with_store();
                if what == "compact" {
                    // Two records to the end, and a hole in front of the others.
                    let store = Zrecord::open(PATH, tiny(Arc::new(disk.clone()))).unwrap();
                    append(&store, &old_records(), Some(Codec::Raw)).unwrap();
                    let gone: Vec<u64> = (0..9).collect();
                    store.delete(&gone).unwrap();
                }
                disk
            },
            |disk| {
                let store = Zrecord::open(PATH, tiny(disk))?;
                let result = change(&store);
                // Whatever happened, the handle shows whole records or refuses.
                if let (Err(_), Ok(found)) = (&result, all(&store)) {
                    assert!(sorted(found.clone()) == sorted(old_records()) || found == new, "{what}");
                }
                result
            },
            |disk, fault, result| {
                let store = Zrecord::open(PATH, tiny(Arc::new(disk.clone())));
                let store = store.unwrap_or_else(|e| panic!("{what}, {fault:?}: {e:?}"));
                let found = all(&store).unwrap_or_else(|e| panic!("{what}, {fault:?}: {e:?}"));
                let same =
                    if what == "compact" { sorted(found) == sorted(new.clone()) } else { found == new };
                let old = all(&store).unwrap() == old_records();
                assert!(same || (old && result.is_err()), "{what}, {fault:?}: {result:?}");
                append(&store, &[record(5, 44)], None).unwrap();
                assert_eq!(get(&store, &[store.len() - 1]).unwrap(), [record(5, 44)]);
            },
        );
        println!("zrecord v1 {what}: {faults} faults");
        assert!(faults > 10, "{what}: {faults}");
    }
}

fn sorted(mut records: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    records.sort();
    records
}

#[test]
fn an_append_to_a_full_disk_is_refused_and_its_space_given_back() {
    let disk = with_store();
    let store = Zrecord::open(PATH, tiny(Arc::new(disk.clone()))).unwrap();
    let used: usize = disk.image().files().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_space(Some(24_576));
    let big: Vec<_> = (0..30).map(|i| record(2 * i + 1, 1000)).collect();
    let e = append(&store, &big, None).unwrap_err();
    assert_eq!(e.kind(), tensilo_core::ErrorKind::InsufficientDisk);
    let now: usize = disk.image().files().iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!((now, all(&store).unwrap()), (used, old_records()));
    append(&store, &[record(3, 30)], None).unwrap();
}
