//! The replay shows what a crash can leave, and so catches planted faults.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::{Disk, SystemDisk};
use tensilo_testkit::disk_log::{
    CrashState, FaultKind, Materialised, ModelDisk, Options, RecordingDisk, check_all, enumerate, every_fault,
};
use tensilo_testkit::oracle::temp_dir;

const NEW: [u8; 1500] = [2; 1500];
const OLD: [u8; 1500] = [1; 1500];

fn old_disk() -> RecordingDisk {
    let model = ModelDisk::new();
    model.put("/f", OLD);
    RecordingDisk::over_model(model)
}

/// Replaces /f, leaving out the steps named.
fn replace(disk: &dyn Disk, without: &str) {
    let file = disk.create_new("/t".as_ref()).unwrap();
    file.write_at(0, &NEW).unwrap();
    if without != "sync" {
        file.sync().unwrap();
    }
    disk.rename("/t".as_ref(), "/f".as_ref()).unwrap();
    if without != "sync_dir" {
        disk.sync_dir("/".as_ref()).unwrap();
    }
}

fn old_or_new(state: &CrashState) -> Result<(), String> {
    match state.bytes("/f") {
        Some(b) if b == NEW => Ok(()),
        Some(b) if b == OLD && !state.passed("replaced") => Ok(()),
        other => Err(format!("neither old nor new: {:?} bytes", other.map(<[u8]>::len))),
    }
}

fn is_caught(run: impl Fn(&RecordingDisk), check: impl Fn(&CrashState) -> Result<(), String>) -> bool {
    let disk = old_disk();
    run(&disk);
    let log = disk.log();
    catch_unwind(AssertUnwindSafe(|| check_all(&log, &Options::default(), &check))).is_err()
}

#[test]
fn a_careful_replacement_survives_every_crash() {
    let disk = old_disk();
    replace(&disk, "nothing");
    disk.mark("replaced");
    let counts = check_all(&disk.log(), &Options::default(), old_or_new);
    assert_eq!(counts.points, 7);
    assert!(counts.states > 8 && counts.skipped == 0);
    assert_eq!(counts.states + counts.duplicates, counts.candidates);
}

#[test]
fn a_missing_sync_before_the_rename_is_caught() {
    let run = |disk: &RecordingDisk| {
        replace(disk, "sync");
        disk.mark("replaced");
    };
    assert!(is_caught(run, old_or_new));
}

#[test]
fn a_missing_folder_sync_is_caught_after_success_was_claimed() {
    let run = |disk: &RecordingDisk| {
        replace(disk, "sync_dir");
        disk.mark("replaced");
    };
    assert!(is_caught(run, old_or_new));
    assert!(!is_caught(|disk| replace(disk, "sync_dir"), old_or_new), "unclaimed, the old file is right");
}

#[test]
fn a_seal_that_may_come_before_its_data_is_caught() {
    let write = |disk: &RecordingDisk, barrier: bool| {
        let file = disk.open("/f".as_ref()).unwrap();
        file.write_at(1500, &[5; 600]).unwrap();
        if barrier {
            file.sync().unwrap();
        }
        file.write_at(2100, b"SEAL").unwrap();
        file.sync().unwrap();
    };
    let sealed_is_complete = |state: &CrashState| match state.bytes("/f") {
        Some(b) if b.ends_with(b"SEAL") && b[1500..2100] != [5; 600] => Err("sealed without data".into()),
        _ => Ok(()),
    };
    assert!(is_caught(|d| write(d, false), sealed_is_complete));
    assert!(!is_caught(|d| write(d, true), sealed_is_complete));
}

#[test]
fn a_record_longer_than_a_sector_without_a_checksum_is_caught() {
    let overwrite = |n: usize| {
        move |disk: &RecordingDisk| {
            disk.open("/f".as_ref()).unwrap().write_at(512, &vec![9; n]).unwrap();
        }
    };
    let whole = |n: usize| {
        move |state: &CrashState| {
            let nines = state.bytes("/f").unwrap().iter().filter(|b| **b == 9).count();
            if nines == 0 || nines == n { Ok(()) } else { Err(format!("{nines} of {n} bytes")) }
        }
    };
    assert!(!is_caught(overwrite(512), whole(512)), "one sector is whole or absent");
    assert!(is_caught(overwrite(513), whole(513)));
}

#[test]
fn two_names_may_come_in_any_order_until_the_folder_is_synced() {
    let states = |synced: bool| {
        let disk = RecordingDisk::new();
        for name in ["/a", "/b"] {
            drop(disk.create_new(name.as_ref()).unwrap());
            if synced {
                disk.sync_dir("/".as_ref()).unwrap();
            }
        }
        let log = disk.log();
        let seen: BTreeSet<Vec<bool>> = enumerate(&log, &Options::default())
            .map(|s| ["/a", "/b"].map(|n| s.bytes(n).is_some()).to_vec())
            .collect();
        seen
    };
    assert!(states(false).contains(&vec![false, true]));
    assert!(!states(true).contains(&vec![false, true]));
    assert_eq!(states(true).len(), 3);
}

#[test]
fn small_logs_are_enumerated_completely() {
    // Four independent bytes: every one of the 16 subsets can be on the disk.
    let disk = old_disk();
    let file = disk.open("/f".as_ref()).unwrap();
    for i in 0..4 {
        file.write_at(i * 10, &[7]).unwrap();
    }
    let log = disk.log();
    let options = Options { random_per_point: 200, ..Options::default() };
    let seen: BTreeSet<Vec<u8>> =
        enumerate(&log, &options).map(|s| (0..4).map(|i| s.bytes("/f").unwrap()[i * 10]).collect()).collect();
    assert_eq!(seen.len(), 16);
}

#[test]
fn sizes_and_data_come_apart() {
    let disk = old_disk();
    disk.open("/f".as_ref()).unwrap().write_at(1400, &[9; 200]).unwrap();
    let log = disk.log();
    let seen: BTreeSet<(usize, bool, bool)> = enumerate(&log, &Options::default())
        .map(|s| {
            let b = s.bytes("/f").unwrap();
            (b.len(), b[1400] == 9, b.get(1599) == Some(&9))
        })
        .collect();
    for expected in [(1500, false, false), (1600, false, false), (1500, true, false), (1600, true, true)] {
        assert!(seen.contains(&expected), "{expected:?} in {seen:?}");
    }
}

#[test]
fn long_logs_are_sampled_evenly_and_the_rest_is_counted() {
    let disk = old_disk();
    let file = disk.open("/f".as_ref()).unwrap();
    for i in 0..200 {
        file.write_at(i * 700, &[i as u8 + 3; 700]).unwrap();
    }
    let log = disk.log();
    let options = Options { most: 2000, ..Options::default() };
    let run = || {
        let mut all = enumerate(&log, &options);
        let points: BTreeSet<usize> = all.by_ref().map(|s| s.point).collect();
        (points.len(), all.counts())
    };
    let (points, counts) = run();
    assert_eq!((points, counts), run(), "sampling is deterministic");
    assert_eq!(counts.states + counts.duplicates + counts.skipped, counts.candidates);
    assert!(counts.skipped > 100_000 && counts.states + counts.duplicates <= 2400);
    assert_eq!(points as u64, counts.points, "every point is seen");
}

#[test]
fn states_are_shown_in_a_real_folder() {
    let (real, shown) = (temp_dir(), temp_dir());
    SystemDisk.create_new(&real.path().join("old")).unwrap().write_at(0, b"old").unwrap();
    let disk = RecordingDisk::over_folder(real.path());
    let sub = real.path().join("sub");
    disk.create_dir(&sub).unwrap();
    disk.sync_dir(real.path()).unwrap();
    let file = disk.create_new(&sub.join("f")).unwrap();
    file.write_at(0, &NEW).unwrap();
    file.sync().unwrap();
    disk.sync_dir(&sub).unwrap();
    disk.unlink(&real.path().join("old")).unwrap();
    assert_eq!(std::fs::read(sub.join("f")).unwrap(), NEW, "the real folder has it too");

    let mut folder = Materialised::new(shown.path());
    let log = disk.log();
    let mut lengths = BTreeSet::new();
    for state in enumerate(&log, &Options::default()) {
        let at = folder.show(&state);
        let there = std::fs::read(at.join("sub/f")).ok();
        assert_eq!(there.as_deref(), state.bytes(sub.join("f")));
        assert_eq!(at.join("old").exists(), state.bytes(real.path().join("old")).is_some());
        lengths.insert(there.map(|b| b.len()));
        let afresh = RecordingDisk::over_folder(at);
        assert_eq!(afresh.model().image().files(), state.image.files());
    }
    assert!(lengths.contains(&None) && lengths.contains(&Some(0)) && lengths.contains(&Some(1500)));
}

#[test]
fn every_operation_fails_once_in_every_way() {
    let program = |disk: Arc<dyn Disk>| {
        let file = disk.create_new("/a".as_ref())?;
        file.write_at(0, b"0123456789")?;
        file.sync()?;
        disk.rename("/a".as_ref(), "/b".as_ref())
    };
    let seen = std::cell::RefCell::new(BTreeSet::new());
    let struck = every_fault(ModelDisk::new, program, |disk, fault, result| {
        assert!(result.is_err() && !disk.exists("/b"), "{fault:?}");
        seen.borrow_mut().insert(fault.struck.unwrap());
        if fault.kind == FaultKind::ShortWrite && fault.struck == Some("write_at") {
            assert_eq!(disk.bytes("/a").unwrap(), b"01234");
        }
    });
    // Four operations in two ways, once and for good; of the short writes, one once, and two for good.
    assert_eq!(struck, 4 * 2 * 2 + 1 + 2);
    assert_eq!(seen.into_inner(), BTreeSet::from(["create_new", "rename", "sync", "write_at"]));
}

#[test]
fn recovery_can_be_crashed_in_turn() {
    let disk = old_disk();
    replace(&disk, "nothing");
    let log = disk.log();
    let mut recovered = 0;
    for state in enumerate(&log, &Options::default()) {
        let second = RecordingDisk::over_model(state.disk());
        if second.model().exists("/t") {
            second.unlink(Path::new("/t")).unwrap();
            second.sync_dir("/".as_ref()).unwrap();
        }
        second.mark("clean");
        let log = second.log();
        for state in enumerate(&log, &Options::default()) {
            assert!(!state.passed("clean") || state.bytes("/t").is_none());
            assert!(state.bytes("/f").is_some());
            recovered += 1;
        }
    }
    assert!(recovered > 20);
}
