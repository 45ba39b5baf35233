//! What a crash, a full disk or a failing device leaves: no file under the final name, or the old one, or the
//! whole one.

#![expect(clippy::print_stdout, reason = "what was counted is part of the claim")]

use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::Disk;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Result};
use tensilo_hdf5::write::{Bound, FileWriter, Filters, WriteOptions};
use tensilo_testkit::disk_log::{ModelDisk, Options, RecordingDisk, check_all, every_fault};

fn write(disk: Arc<dyn Disk>, bound: Bound) -> Result<()> {
    write_as(disk, bound, false)
}

fn write_as(disk: Arc<dyn Disk>, bound: Bound, replace: bool) -> Result<()> {
    let options = WriteOptions::default().bound(bound).threads(Threads::ONE).user_block(512);
    let mut w = FileWriter::create(disk, "/a.h5", options)?;
    w.attribute("/", "name", "crash")?;
    w.write_user_block(0, b"user")?;
    let values: Vec<u32> = (0..3000).collect();
    w.dataset("g/plain").write(&values)?;
    w.dataset("g/chunked").chunk(&[500]).filters(Filters::new().shuffle().deflate(1)).write(&values)?;
    // Large enough to leave by itself.
    w.dataset("large").write(&vec![7_u8; 300_000])?;
    if replace { w.finish_replacing() } else { w.finish() }.map(|_| ())
}

fn whole(bound: Bound) -> Vec<u8> {
    let disk = ModelDisk::new();
    write(Arc::new(disk.clone()), bound).expect("written");
    disk.bytes("/a.h5").expect("the file")
}

#[test]
fn a_crash_at_any_point_leaves_nothing_or_the_old_or_the_whole_file_under_the_name() {
    for (bound, replace) in [(Bound::Earliest, false), (Bound::V110, false), (Bound::V110, true)] {
        let expected = whole(bound);
        let disk = RecordingDisk::new();
        if replace {
            let old = disk.create_new(Path::new("/a.h5")).expect("the old file");
            old.write_at(0, b"old").expect("written");
            old.sync().expect("synced");
            disk.sync_dir(Path::new("/")).expect("synced");
            disk.mark("old");
        }
        write_as(Arc::new(disk.clone()), bound, replace).expect("written");
        disk.mark("finished");
        let counts = check_all(&disk.log(), &Options::default(), |state| {
            if replace && !state.passed("old") {
                return Ok(());
            }
            match state.bytes(Path::new("/a.h5")) {
                None if replace || state.passed("finished") => Err("gone".into()),
                Some(bytes) if bytes == b"old" && replace && !state.passed("finished") => Ok(()),
                Some(bytes) if bytes != expected => Err("neither the old nor the whole file".into()),
                _ => Ok(()),
            }
        });
        println!("HDF5, {bound}, replace {replace}: {counts}");
        assert!(counts.states > 20 && counts.skipped == 0, "{counts}");
    }
}

#[test]
fn every_failing_operation_is_reported_and_leaves_no_file() {
    let expected = whole(Bound::V110);
    let struck = every_fault(
        ModelDisk::new,
        |disk| write(disk, Bound::V110),
        |disk, fault, result| match (result, disk.bytes("/a.h5")) {
            (Ok(()), Some(bytes)) => assert!(bytes == expected, "{fault:?}"),
            (Ok(()), None) => panic!("{fault:?}: finished, but no file"),
            (Err(_), None) => {}
            // A disk that refuses everything from here on also refuses to take the name back.
            (Err(_), Some(bytes)) => assert!(fault.lasting && bytes == expected, "{fault:?}"),
        },
    );
    println!("HDF5: {struck} faults struck");
    assert!(struck > 20, "{struck} faults struck");
}

#[test]
fn a_file_in_the_way_is_not_overwritten_unless_told_to() {
    let disk = ModelDisk::new();
    disk.put("/a.h5", b"old".to_vec());
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let e = write(shared.clone(), Bound::Earliest).expect_err("in the way");
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    assert_eq!(disk.bytes("/a.h5").expect("the old file"), b"old");
    let mut w = FileWriter::create(shared, "/a.h5", WriteOptions::default()).expect("a new file");
    w.dataset("x").write(&[1_u8]).expect("dataset");
    w.finish_replacing().expect("replaced");
    assert_eq!(&disk.bytes("/a.h5").expect("the new file")[1..4], b"HDF");
    assert_eq!(disk.image().files().len(), 1, "no temporary file is left");
}

#[test]
fn a_dropped_writer_leaves_no_file() {
    let disk = ModelDisk::new();
    let mut w =
        FileWriter::create(Arc::new(disk.clone()), "/a.h5", WriteOptions::default()).expect("a new file");
    w.dataset("x").write(&vec![1_u8; 2 << 20]).expect("dataset");
    drop(w);
    assert!(disk.image().files().is_empty());
}
