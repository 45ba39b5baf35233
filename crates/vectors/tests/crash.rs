//! What a crash, a full disk or a failing device leaves: no file under the final name, or the old one, or the whole one.

#![expect(clippy::print_stdout, reason = "what was counted is part of the claim")]

use super::Random;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::Disk;
use tensilo_testkit::disk_log::{ModelDisk, Options, RecordingDisk, check_all, every_fault};
use tensilo_vectors::{BuildOptions, Metric, SaveOptions, VectorIndex};

fn index() -> VectorIndex {
    let options = BuildOptions { m: 4, ef_construction: 20 };
    // Vectors that leave by themselves, a graph that is joined.
    VectorIndex::build(Random(2).vectors(300, 256), 256, Metric::L2, options).expect("an index")
}

fn save(index: &VectorIndex, disk: Arc<dyn Disk>, replace: bool) -> tensilo_core::Result<()> {
    index.save_with(disk, "/a.h5", SaveOptions { replace, ..SaveOptions::default() })
}

#[test]
fn a_crash_at_any_point_leaves_nothing_or_the_old_or_the_whole_file() {
    let index = index();
    let disk = ModelDisk::new();
    save(&index, Arc::new(disk.clone()), false).expect("saved");
    let whole = disk.bytes("/a.h5").expect("the file");
    for replace in [false, true] {
        let disk = RecordingDisk::new();
        if replace {
            let old = disk.create_new(Path::new("/a.h5")).expect("the old file");
            old.write_at(0, b"old").expect("written");
            old.sync().expect("synced");
            disk.sync_dir(Path::new("/")).expect("synced");
            disk.mark("old");
        }
        save(&index, Arc::new(disk.clone()), replace).expect("saved");
        disk.mark("saved");
        let counts = check_all(&disk.log(), &Options::default(), |state| {
            if replace && !state.passed("old") {
                return Ok(());
            }
            match state.bytes(Path::new("/a.h5")) {
                None if replace || state.passed("saved") => Err("gone".into()),
                Some(bytes) if bytes == b"old" && replace && !state.passed("saved") => Ok(()),
                Some(bytes) if bytes != whole => Err("neither the old nor the whole file".into()),
                _ => Ok(()),
            }
        });
        println!("vectors, replace {replace}: {counts}");
        assert!(counts.states > 20 && counts.skipped == 0, "{counts}");
    }
}

#[test]
fn every_failing_operation_is_reported_and_leaves_no_file() {
    let index = index();
    let disk = ModelDisk::new();
    save(&index, Arc::new(disk.clone()), false).expect("saved");
    let whole = disk.bytes("/a.h5").expect("the file");
    let struck = every_fault(
        ModelDisk::new,
        |disk| save(&index, disk, false),
        |disk, fault, result| match (result, disk.bytes("/a.h5")) {
            (Ok(()), Some(bytes)) => assert!(bytes == whole, "{fault:?}"),
            (Ok(()), None) => panic!("{fault:?}: saved, but no file"),
            (Err(_), None) => {}
            // A disk that refuses everything from here on also refuses to take the name back.
            (Err(_), Some(bytes)) => assert!(fault.lasting && bytes == whole, "{fault:?}"),
        },
    );
    println!("vectors: {struck} faults struck");
    assert!(struck > 10, "{struck} faults struck");
}
