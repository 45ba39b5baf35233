//! The crash table of staged publishing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::staged::{find_partials, remove_partial};
use tensilo_core::io::{Disk, DiskFile, Fingerprint, Staged, SystemDisk};
use tensilo_core::{Error, ErrorKind, Result};
use tensilo_testkit::disk_log::{CrashState, ModelDisk, Options, RecordingDisk, check_all, every_fault};
use tensilo_testkit::oracle::temp_dir;

const DATA: [u8; 3000] = [3; 3000];
const OLD: [u8; 700] = [4; 700];
const RECEIPT: [u8; 900] = [5; 900];

fn with_folder() -> ModelDisk {
    let disk = ModelDisk::new();
    disk.create_dir_all(Path::new("/d"));
    disk
}

fn stage(disk: &Arc<dyn Disk>, path: &str, data: &[u8]) -> Result<Staged> {
    let staged = Staged::create(disk.clone(), path)?;
    staged.write_at(1000.min(data.len() as u64), &data[1000.min(data.len())..])?;
    staged.write_at(0, &data[..1000.min(data.len())])?;
    Ok(staged)
}

fn names(disk: &ModelDisk) -> Vec<String> {
    disk.list(Path::new("/d")).unwrap().into_iter().map(|n| n.into_string().unwrap()).collect()
}

/// After a crash: no partial is locked, all are found, and clearing them leaves only whole files.
fn partials_are_cleared(state: &CrashState, dests: &[&str]) -> Result<(), String> {
    let disk = state.disk();
    for dest in dests {
        for partial in find_partials(&disk, Path::new("/d"), dest).map_err(|e| e.to_string())? {
            if !remove_partial(&disk, &partial).map_err(|e| e.to_string())? {
                return Err(format!("{} stays", partial.display()));
            }
        }
    }
    match names(&disk).iter().find(|n| !dests.contains(&n.as_str())) {
        Some(name) => Err(format!("{name} is left")),
        None => Ok(()),
    }
}

#[test]
fn publishing_without_replacing_leaves_nothing_or_the_whole_file() {
    let disk = RecordingDisk::over_model(with_folder());
    stage(&(Arc::new(disk.clone()) as _), "/d/f", &DATA).unwrap().publish_no_replace().unwrap();
    disk.mark("published");
    let counts = check_all(&disk.log(), &Options::default(), |state| {
        match state.bytes("/d/f") {
            None if !state.passed("published") => {}
            Some(bytes) if bytes == DATA => {}
            _ => return Err("neither nothing nor all".into()),
        }
        partials_are_cleared(state, &["f"])
    });
    assert!(counts.states > 20 && counts.skipped == 0, "{counts}");
}

#[test]
fn publishing_with_replacing_leaves_the_old_or_the_new_file() {
    let model = with_folder();
    model.put("/d/f", OLD);
    let disk = RecordingDisk::over_model(model);
    stage(&(Arc::new(disk.clone()) as _), "/d/f", &DATA).unwrap().publish_replace().unwrap();
    disk.mark("published");
    check_all(&disk.log(), &Options::default(), |state| {
        match state.bytes("/d/f") {
            Some(bytes) if bytes == DATA => {}
            Some(bytes) if bytes == OLD && !state.passed("published") => {}
            _ => return Err("neither old nor new".into()),
        }
        partials_are_cleared(state, &["f"])
    });
}

fn pair(disk: &Arc<dyn Disk>) -> Result<()> {
    let cache = stage(disk, "/d/cache", &DATA)?;
    let receipt = stage(disk, "/d/receipt", &RECEIPT)?;
    Staged::publish_pair(receipt, cache)
}

fn pair_is_ordered(receipt: Option<&[u8]>, cache: Option<&[u8]>) -> std::result::Result<(), String> {
    match (receipt, cache) {
        (_, Some(c)) if c != DATA => Err("torn cache".into()),
        (Some(r), _) if r != RECEIPT => Err("torn receipt".into()),
        (None, Some(_)) => Err("a cache without its receipt".into()),
        _ => Ok(()),
    }
}

#[test]
fn of_a_pair_the_last_is_never_there_without_the_first() {
    let disk = RecordingDisk::over_model(with_folder());
    pair(&(Arc::new(disk.clone()) as _)).unwrap();
    disk.mark("published");
    let counts = check_all(&disk.log(), &Options::default(), |state| {
        let (receipt, cache) = (state.bytes("/d/receipt"), state.bytes("/d/cache"));
        pair_is_ordered(receipt, cache)?;
        if state.passed("published") && (receipt.is_none() || cache.is_none()) {
            return Err("not durable".into());
        }
        partials_are_cleared(state, &["receipt", "cache"])
    });
    assert!(counts.states > 50 && counts.skipped == 0, "{counts}");
}

#[test]
fn an_existing_last_file_takes_the_first_back() {
    for folder in [false, true] {
        let disk = with_folder();
        if folder {
            disk.create_dir_all(Path::new("/d/cache"));
        } else {
            disk.put("/d/cache", OLD);
        }
        let error = pair(&(Arc::new(disk.clone()) as _)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(names(&disk), ["cache"]);
    }
}

#[test]
fn nothing_is_overwritten_unasked() {
    let disk = with_folder();
    disk.put("/d/f", OLD);
    let error =
        stage(&(Arc::new(disk.clone()) as _), "/d/f", &DATA).unwrap().publish_no_replace().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!((names(&disk), disk.bytes("/d/f").unwrap()), (vec!["f".to_owned()], OLD.to_vec()));
}

#[test]
fn dropped_and_aborted_files_leave_nothing() {
    let disk = with_folder();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    drop(stage(&shared, "/d/f", &DATA).unwrap());
    assert!(names(&disk).is_empty());
    stage(&shared, "/d/f", &DATA).unwrap().abort().unwrap();
    assert!(names(&disk).is_empty());
    assert_eq!(Staged::create(shared, "/").unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn every_failing_step_leaves_nothing_under_the_final_name() {
    let struck = every_fault(
        with_folder,
        |disk| stage(&disk, "/d/f", &DATA)?.publish_no_replace(),
        |disk, fault, result| {
            let there = disk.bytes("/d/f");
            match result {
                Ok(_) => assert_eq!(there.as_deref(), Some(&DATA[..]), "{fault:?}"),
                Err(_) if fault.lasting && there.is_some() => {
                    assert!(there.unwrap() == DATA && fault.struck == Some("sync_dir"), "{fault:?}");
                }
                Err(_) => assert!(there.is_none(), "{fault:?}"),
            }
            if !fault.lasting {
                assert!(names(disk).iter().all(|n| n == "f"), "{fault:?} leaves {:?}", names(disk));
            }
        },
    );
    assert!(struck > 20, "{struck}");
}

#[test]
fn every_failing_step_of_a_pair_keeps_the_order_even_when_a_crash_follows() {
    let struck = every_fault(
        || RecordingDisk::over_model(with_folder()),
        |disk| pair(&disk),
        |disk, fault, result| {
            let (receipt, cache) = (disk.model().bytes("/d/receipt"), disk.model().bytes("/d/cache"));
            match result {
                Ok(()) => assert!(receipt.is_some() && cache.is_some(), "{fault:?}"),
                Err(_) if !fault.lasting => assert!(receipt.is_none() && cache.is_none(), "{fault:?}"),
                Err(_) => pair_is_ordered(receipt.as_deref(), cache.as_deref()).unwrap(),
            }
            let options = Options { torn: false, random_per_point: 2, ..Options::default() };
            check_all(&disk.log(), &options, |state| {
                pair_is_ordered(state.bytes("/d/receipt"), state.bytes("/d/cache"))
                    .map_err(|e| format!("{fault:?}: {e}"))
            });
        },
    );
    assert!(struck > 40, "{struck}");
}

#[test]
fn a_full_disk_leaves_nothing() {
    for blocks in 0..2 {
        let disk = with_folder();
        disk.set_space(Some(blocks * 4096));
        let error = stage(&(Arc::new(disk.clone()) as _), "/d/f", &[1; 7000]).err();
        assert_eq!(error.map(|e| e.kind()), Some(ErrorKind::InsufficientDisk));
        assert!(names(&disk).is_empty());
    }
}

#[test]
fn partials_of_live_runs_are_not_named_and_those_of_dead_runs_are() {
    let temp = temp_dir();
    let dest = temp.path().join("f");
    let live = Staged::create(SystemDisk::shared(), &dest).unwrap();
    let dead = temp.path().join(".f.00000000000000aa.partial");
    drop(SystemDisk.create_new(&dead).unwrap());
    drop(SystemDisk.create_new(&temp.path().join(".g.00000000000000aa.partial")).unwrap());
    assert_eq!(find_partials(&SystemDisk, temp.path(), "f").unwrap(), std::slice::from_ref(&dead));
    assert!(!remove_partial(&SystemDisk, live.temporary()).unwrap());
    assert!(remove_partial(&SystemDisk, &dead).unwrap());
    assert!(!remove_partial(&SystemDisk, &dead).unwrap());
    live.publish_no_replace().unwrap();
    assert_eq!(SystemDisk.list(temp.path()).unwrap(), [".g.00000000000000aa.partial", "f"]);
}

/// A disk that cannot rename without replacing, as some network file systems.
#[derive(Debug)]
struct Plain(RecordingDisk);

impl Disk for Plain {
    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        self.0.create_new(path)
    }
    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        self.0.open(path)
    }
    fn create_dir(&self, path: &Path) -> Result<()> {
        self.0.create_dir(path)
    }
    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.link(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }
    fn rename_no_replace(&self, _: &Path, to: &Path) -> Result<()> {
        Err(Error::io("cannot publish", std::io::Error::from_raw_os_error(22)).in_file(to))
    }
    fn unlink(&self, path: &Path) -> Result<()> {
        self.0.unlink(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.0.remove_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.0.sync_dir(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<std::ffi::OsString>> {
        self.0.list(path)
    }
    fn free_space(&self, path: &Path) -> Result<u64> {
        self.0.free_space(path)
    }
}

#[test]
fn without_rename_no_replace_a_link_publishes_as_safely() {
    let disk = RecordingDisk::over_model(with_folder());
    let plain: Arc<dyn Disk> = Arc::new(Plain(disk.clone()));
    pair(&plain).unwrap();
    disk.mark("published");
    assert_eq!(names(disk.model()), ["cache", "receipt"]);
    check_all(&disk.log(), &Options::default(), |state| {
        let (receipt, cache) = (state.bytes("/d/receipt"), state.bytes("/d/cache"));
        pair_is_ordered(receipt, cache)?;
        if state.passed("published") && cache.is_none() {
            return Err("not durable".into());
        }
        partials_are_cleared(state, &["receipt", "cache"])
    });
    let error = pair(&plain).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(names(disk.model()), ["cache", "receipt"]);
}

#[test]
fn published_files_are_what_the_system_shows() {
    let temp = temp_dir();
    let dest: PathBuf = temp.path().join("f");
    let published =
        stage(&SystemDisk::shared(), dest.to_str().unwrap(), &DATA).unwrap().publish_no_replace().unwrap();
    assert_eq!(published, Fingerprint::of_path(&dest).unwrap());
    assert_eq!(std::fs::read(&dest).unwrap(), DATA);
    let again =
        stage(&SystemDisk::shared(), dest.to_str().unwrap(), &OLD).unwrap().publish_replace().unwrap();
    assert_eq!(again, Fingerprint::of_path(&dest).unwrap());
    assert_eq!(std::fs::read(&dest).unwrap(), OLD);
}
