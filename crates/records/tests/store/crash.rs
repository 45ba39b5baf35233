//! The crash matrix from the disk log: create, append, delete, compact and metadata; every prefix, unsynced subset and
//! torn write. Reopening shows the last committed state or the one in flight, and a second run finishes.

use super::{Records, append, contents, delete, records, schema};
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::Disk;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Quiet, Result};
use tensilo_records::store::{OpenOptions, Store, StoreWriter, WriterOptions};
use tensilo_testkit::disk_log::{
    Counts, CrashState, ModelDisk, Options, RecordingDisk, check_all, every_fault,
};

const PATH: &str = "/d/a.trec";

fn model() -> ModelDisk {
    let disk = ModelDisk::new();
    disk.create_dir_all(Path::new("/d"));
    disk
}

fn options(disk: Arc<dyn Disk>) -> WriterOptions {
    WriterOptions {
        encoding: Some("lz4".parse().unwrap()),
        threads: Threads::ONE,
        disk,
        ..WriterOptions::default()
    }
}

/// What the store of a crashed disk shows; `None` without a store.
fn shown(state: &CrashState) -> Result<Option<Records>, String> {
    let Some(source) = state.source(PATH) else { return Ok(None) };
    let store =
        Store::from_source(Arc::new(source), &OpenOptions::default()).map_err(|e| format!("open: {e}"))?;
    contents(&store).map(Some).map_err(|e| format!("read: {e}"))
}

/// The second run: opens the crashed store, appends, deletes and compacts, and must find all it wrote.
fn second_run(state: &CrashState, found: &Records) -> Result<(), String> {
    let text = |e: tensilo_core::Error| format!("second run: {e:?}");
    let disk = state.disk();
    let mut writer = StoreWriter::open(PATH, options(Arc::new(disk.clone()))).map_err(text)?;
    let mut expected = found.clone();
    expected.extend(records(9000..9003));
    append(&mut writer, &records(9000..9003)).map_err(text)?;
    writer.commit().map_err(text)?;
    if expected.len() > 4 {
        delete(&mut expected, &[1, 3]);
        writer.delete(&[1, 3]).map_err(text)?;
    }
    let check = || {
        let source = disk.source(PATH).ok_or("second run: no file")?;
        let store = Store::from_source(Arc::new(source), &OpenOptions::default()).map_err(text)?;
        let verified = store.verify(Threads::ONE, &Quiet).map_err(text)?;
        let same = contents(&store).map_err(text)? == expected;
        if same && verified.is_good() {
            Ok(())
        } else {
            Err(format!("second run: {verified:?}, same: {same}"))
        }
    };
    check()?;
    writer.compact(&Quiet).map_err(text)?;
    check()
}

/// Checks all crash states of a run whose states are `steps`; `marks` of them were committed before the log began.
fn matrix(what: &str, disk: &RecordingDisk, steps: &[Option<Records>]) -> Counts {
    let counts = check_all(&disk.log(), &Options::default(), |state| {
        let passed = (0..steps.len()).filter(|k| state.passed(&format!("step {k}"))).count();
        let found = shown(state)?;
        // Every step that returned is durable; the one in flight may be.
        let allowed = &steps[passed.saturating_sub(1)..(passed + 1).min(steps.len())];
        if !allowed.contains(&found) {
            let len = found.map(|f| f.len());
            return Err(format!("{what}: after {passed} steps {len:?} records are shown"));
        }
        match &found {
            Some(found) => second_run(state, found),
            None => Ok(()),
        }
    });
    assert!(counts.states > 10 && counts.skipped == 0, "{what}: {counts}");
    counts
}

#[test]
fn a_crash_while_creating_leaves_no_store_or_the_whole_empty_one() {
    let disk = RecordingDisk::over_model(model());
    disk.mark("step 0");
    let options = WriterOptions { metadata: Some("{\"a\":1}".into()), ..options(Arc::new(disk.clone())) };
    StoreWriter::create(PATH, schema(), options).unwrap();
    disk.mark("step 1");
    matrix("create", &disk, &[None, Some(vec![])]);
}

#[test]
fn a_crash_at_any_moment_leaves_the_last_commit_or_the_one_in_flight() {
    let disk = RecordingDisk::over_model(model());
    let mut writer = StoreWriter::create(PATH, schema(), options(Arc::new(disk.clone()))).unwrap();
    append(&mut writer, &records(0..130)).unwrap();
    writer.commit().unwrap();
    let disk = RecordingDisk::over_model(ModelDisk::from_image(disk.model().image()));
    let mut writer = StoreWriter::open(PATH, options(Arc::new(disk.clone()))).unwrap();
    let mut now = records(0..130);
    let mut steps = vec![Some(now.clone())];
    let done = |now: &Records, steps: &mut Vec<Option<Records>>| {
        disk.mark(format!("step {}", steps.len()));
        steps.push(Some(now.clone()));
    };
    disk.mark("step 0");
    for more in [130..131, 131..132, 132..133, 133..300] {
        now.extend(records(more.clone()));
        append(&mut writer, &records(more)).unwrap();
        writer.commit().unwrap();
        done(&now, &mut steps);
    }
    delete(&mut now, &[0, 200, 299, 131]);
    writer.delete(&[0, 200, 299, 131]).unwrap();
    done(&now, &mut steps);
    writer.compact(&Quiet).unwrap();
    done(&now, &mut steps);
    now.extend(records(500..502));
    append(&mut writer, &records(500..502)).unwrap();
    writer.set_metadata("[1,2]").unwrap();
    writer.commit().unwrap();
    done(&now, &mut steps);
    let all: Vec<u64> = (0..now.len() as u64).collect();
    now.clear();
    writer.delete(&all).unwrap();
    done(&now, &mut steps);
    writer.compact(&Quiet).unwrap();
    done(&now, &mut steps);
    let counts = matrix("append, delete, compact", &disk, &steps);
    assert!(counts.states > 250, "{counts}");
}

#[test]
fn what_was_appended_and_not_committed_is_gone() {
    let disk = RecordingDisk::over_model(model());
    let mut writer = StoreWriter::create(PATH, schema(), options(Arc::new(disk.clone()))).unwrap();
    append(&mut writer, &records(0..10)).unwrap();
    writer.commit().unwrap();
    let disk = RecordingDisk::over_model(ModelDisk::from_image(disk.model().image()));
    let mut writer = StoreWriter::open(PATH, options(Arc::new(disk.clone()))).unwrap();
    disk.mark("step 0");
    // More than the buffer holds, so that bytes reach the disk before any commit.
    append(&mut writer, &records(10..60_000)).unwrap();
    drop(writer);
    let counts = check_all(&disk.log(), &Options::default(), |state| match shown(state)? {
        Some(found) if found == records(0..10) => second_run(state, &found),
        found => Err(format!("{:?} records", found.map(|f| f.len()))),
    });
    assert_eq!(counts.skipped, 0);
}

#[test]
fn a_full_or_failing_disk_loses_no_commit_and_the_writer_says_so() {
    let start = || {
        let disk = model();
        let mut writer = StoreWriter::create(PATH, schema(), options(Arc::new(disk.clone()))).unwrap();
        append(&mut writer, &records(0..130)).unwrap();
        writer.commit().unwrap();
        disk
    };
    let appended: Records = records(0..300);
    let mut deleted = appended.clone();
    delete(&mut deleted, &[5, 6]);
    let mut end = deleted.clone();
    end.extend(records(300..301));
    let allowed = [records(0..130), appended, deleted, end.clone()];
    let faults = every_fault(
        start,
        |disk| {
            let mut writer = StoreWriter::open(PATH, options(disk))?;
            append(&mut writer, &records(130..300))?;
            writer.commit()?;
            writer.delete(&[5, 6])?;
            writer.compact(&Quiet)?;
            append(&mut writer, &records(300..301))?;
            writer.commit()
        },
        |disk, fault, result| {
            let source = disk.source(PATH).unwrap_or_else(|| panic!("{fault:?}: no store"));
            let store = Store::from_source(Arc::new(source), &OpenOptions::default())
                .unwrap_or_else(|e| panic!("{fault:?}: {e:?}"));
            let found = contents(&store).unwrap_or_else(|e| panic!("{fault:?}: {e:?}"));
            assert!(allowed.contains(&found), "{fault:?}: {} records", found.len());
            assert!(result.is_err() || found == end, "{fault:?}: success, but {} records", found.len());
            // A second run on the healthy disk finishes.
            let mut writer = StoreWriter::open(PATH, options(Arc::new(disk.clone()))).unwrap();
            append(&mut writer, &records(700..702)).unwrap();
            writer.commit().unwrap();
            let store = Store::from_source(Arc::new(disk.source(PATH).unwrap()), &OpenOptions::default());
            let mut expected = found;
            expected.extend(records(700..702));
            assert!(contents(&store.unwrap()).unwrap() == expected, "{fault:?}");
        },
    );
    assert!(faults > 80, "{faults}");
}

#[test]
fn a_full_disk_refuses_records_and_takes_them_when_there_is_room() {
    let disk = model();
    let mut writer = StoreWriter::create(PATH, schema(), options(Arc::new(disk.clone()))).unwrap();
    append(&mut writer, &records(0..100)).unwrap();
    writer.commit().unwrap();
    disk.set_space(Some(100));
    append(&mut writer, &records(100..200)).unwrap();
    assert_eq!(writer.commit().unwrap_err().kind(), ErrorKind::InsufficientDisk);
    assert_eq!(writer.compact(&Quiet).unwrap_err().kind(), ErrorKind::InsufficientDisk);
    disk.set_space(None);
    writer.commit().unwrap();
    let store = Store::from_source(Arc::new(disk.source(PATH).unwrap()), &OpenOptions::default()).unwrap();
    assert!(contents(&store).unwrap() == records(0..200));
}
