//! When a new store takes its name, and what becomes of the store that had it: nothing is lost by a run that fails.

use super::{Records, append, contents, records, schema};
use std::path::Path;
use std::sync::Arc;
use tensilo_core::gather::Gather;
use tensilo_core::io::Disk;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Quiet, Result};
use tensilo_records::store::{OpenOptions, Store, StoreWriter, WriterOptions, salvage};
use tensilo_testkit::disk_log::{ModelDisk, Options, RecordingDisk, check_all, every_fault};
use tensilo_testkit::oracle;

const PATH: &str = "/d/a.trec";

fn options(disk: Arc<dyn Disk>) -> WriterOptions {
    WriterOptions { threads: Threads::ONE, disk, ..WriterOptions::default() }
}

/// A folder, with a store in it or without.
fn disk(old: bool) -> ModelDisk {
    let disk = ModelDisk::new();
    disk.create_dir_all(Path::new("/d"));
    if old {
        let mut writer = StoreWriter::create(PATH, schema(), options(Arc::new(disk.clone()))).unwrap();
        append(&mut writer, &records(0..20)).unwrap();
        writer.commit().unwrap();
    }
    disk
}

/// Makes a store that takes its name when it is whole, and goes on writing to it.
fn make(disk: Arc<dyn Disk>, replace: bool, committed: &dyn Fn()) -> Result<()> {
    let options = WriterOptions { whole: true, replace, ..options(disk) };
    let mut writer = StoreWriter::create(PATH, schema(), options)?;
    append(&mut writer, &records(100..160))?;
    writer.commit()?;
    committed();
    append(&mut writer, &records(160..170))?;
    writer.commit()?;
    Ok(())
}

#[test]
fn a_crash_while_a_store_is_made_whole_leaves_what_was_there_or_all_of_it() {
    for old in [false, true] {
        let disk = RecordingDisk::over_model(ModelDisk::from_image(disk(old).image()));
        make(Arc::new(disk.clone()), old, &|| disk.mark("committed")).unwrap();
        disk.mark("done");
        let before = old.then(|| records(0..20));
        let counts = check_all(&disk.log(), &Options::default(), |state| {
            let found = match state.source(PATH) {
                None => None,
                Some(source) => {
                    let store = Store::from_source(Arc::new(source), &OpenOptions::default());
                    Some(store.and_then(|s| contents(&s)).map_err(|e| format!("{e:?}"))?)
                }
            };
            let (first, all): (Records, Records) = (records(100..160), records(100..170));
            let good = match (state.passed("committed"), state.passed("done")) {
                (_, true) => found == Some(all),
                (true, false) => found.as_ref().is_some_and(|f| *f == first || *f == all),
                (false, _) => found == before || found.is_some_and(|f| f == first),
            };
            if good { Ok(()) } else { Err("neither the old nor the new store".into()) }
        });
        assert!(counts.states > 20 && counts.skipped == 0, "{counts}");
    }
}

#[test]
fn a_failing_disk_leaves_the_old_store_or_the_new_one_and_no_temporary_file() {
    for old in [false, true] {
        let faults = every_fault(
            || disk(old),
            |disk| make(disk, old, &|| ()),
            |disk, fault, result| {
                let found = disk.source(PATH).map(|source| {
                    let store = Store::from_source(Arc::new(source), &OpenOptions::default()).unwrap();
                    contents(&store).unwrap()
                });
                let before = old.then(|| records(0..20));
                let good = found == before
                    || found.as_ref().is_some_and(|f| [records(100..160), records(100..170)].contains(f));
                assert!(good, "{fault:?}");
                assert!(result.is_err() || found == Some(records(100..170)), "{fault:?}");
                if !fault.lasting {
                    assert!(disk.image().files().len() <= 1, "{fault:?}: a temporary file is left");
                }
            },
        );
        assert!(faults > 20, "{faults}");
    }
}

#[test]
fn a_store_is_not_replaced_while_another_writes_to_it() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let mut first = StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap();
    append(&mut first, &records(0..5)).unwrap();
    for whole in [false, true] {
        let options = WriterOptions { replace: true, whole, ..WriterOptions::default() };
        let e = StoreWriter::create(&path, schema(), options).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Locked);
    }
    first.commit().unwrap();
    drop(first);
    assert!(contents(&Store::open(&path).unwrap()).unwrap() == records(0..5));
    // And the other way round: what is being replaced takes no records that would be lost.
    let options = WriterOptions { replace: true, whole: true, ..WriterOptions::default() };
    let mut second = StoreWriter::create(&path, schema(), options).unwrap();
    assert_eq!(StoreWriter::open(&path, WriterOptions::default()).unwrap_err().kind(), ErrorKind::Locked);
    second.commit().unwrap();
    assert!(Store::open(&path).unwrap().is_empty());
    let e = StoreWriter::open(&path, WriterOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Locked, "the new store is locked as any other");
    drop(second);
    StoreWriter::open(&path, WriterOptions::default()).unwrap();
}

#[test]
fn a_store_that_was_given_up_leaves_the_folder_as_it_was() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let whole = |replace| WriterOptions { replace, whole: true, ..WriterOptions::default() };
    let mut writer = StoreWriter::create(&path, schema(), whole(false)).unwrap();
    append(&mut writer, &records(0..60_000)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let mut writer = StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap();
    append(&mut writer, &records(0..7)).unwrap();
    writer.commit().unwrap();
    let len = path.metadata().unwrap().len();
    append(&mut writer, &records(7..60_000)).unwrap();
    drop(writer);
    assert_eq!(path.metadata().unwrap().len(), len, "the space of what was not committed is given back");
    let mut writer = StoreWriter::create(&path, schema(), whole(true)).unwrap();
    append(&mut writer, &records(10..60_000)).unwrap();
    drop(writer);
    assert!(contents(&Store::open(&path).unwrap()).unwrap() == records(0..7));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    // Names that cannot be had are refused before anything is written.
    for (path, replace) in [(path.as_path(), false), (dir.path(), true), (dir.path(), false)] {
        let e = StoreWriter::create(path, schema(), whole(replace)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{}", path.display());
    }
}

#[test]
fn a_store_is_not_salvaged_to_itself() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let mut writer = StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap();
    append(&mut writer, &records(0..7)).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let options = WriterOptions { replace: true, ..WriterOptions::default() };
    let other = dir.path().join("../").join(dir.path().file_name().unwrap()).join("a.trec");
    let e = salvage(&path, other, options, &Quiet).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(contents(&Store::open(&path).unwrap()).unwrap() == records(0..7));
}
