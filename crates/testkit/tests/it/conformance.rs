//! Every disk and source keeps its trait's contract.

use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo_core::ErrorKind;
use tensilo_core::io::{Disk, FileSource, MemorySource, SystemDisk};
use tensilo_testkit::conformance;
use tensilo_testkit::disk_log::{FaultyDisk, ModelDisk, RecordingDisk};
use tensilo_testkit::oracle::temp_dir;

#[test]
fn the_system_disk_conforms() {
    let temp = temp_dir();
    let count = std::cell::Cell::new(0);
    conformance::disk(|| {
        count.set(count.get() + 1);
        let folder = temp.path().join(count.get().to_string());
        SystemDisk.create_dir(&folder).unwrap();
        (SystemDisk::shared(), folder)
    });
}

#[test]
fn the_model_disk_conforms() {
    conformance::disk(|| (Arc::new(ModelDisk::new()), PathBuf::from("/")));
    conformance::disk(|| (Arc::new(FaultyDisk::new(Arc::new(ModelDisk::new()), None)), PathBuf::from("/")));
}

#[test]
fn the_recording_disk_conforms_over_a_model_and_over_a_real_folder() {
    conformance::disk(|| (Arc::new(RecordingDisk::new()), PathBuf::from("/")));
    let temps: Vec<_> = (0..4).map(|_| temp_dir()).collect();
    let next = std::cell::RefCell::new(temps.iter());
    conformance::disk(|| {
        let folder = next.borrow_mut().next().unwrap().path();
        (Arc::new(RecordingDisk::over_folder(folder)), folder.to_path_buf())
    });
}

#[test]
fn the_simple_sources_conform() {
    conformance::byte_source(|bytes| MemorySource::new(bytes));
    let temp = temp_dir();
    let count = std::cell::Cell::new(0);
    conformance::byte_source(|bytes| {
        count.set(count.get() + 1);
        let path = temp.path().join(count.get().to_string());
        SystemDisk.create_new(&path).unwrap().write_at(0, bytes).unwrap();
        FileSource::open(&path).unwrap()
    });
}

#[test]
fn a_full_model_disk_refuses_after_writing_what_fits() {
    let disk = ModelDisk::with_space(3 * 4096);
    let file = disk.create_new("/a".as_ref()).unwrap();
    file.allocate(0, 4096).unwrap();
    assert_eq!(disk.free_space("/".as_ref()).unwrap(), 2 * 4096);
    assert_eq!(file.allocate(0, 5 * 4096).unwrap_err().kind(), ErrorKind::InsufficientDisk);
    assert_eq!(disk.free_space("/".as_ref()).unwrap(), 2 * 4096, "a refused reservation takes nothing");
    assert_eq!(file.write_at(100, &[1; 20_000]).unwrap_err().kind(), ErrorKind::InsufficientDisk);
    assert_eq!(file.len().unwrap(), 3 * 4096);
    file.punch(4096, 4096).unwrap();
    let other = disk.create_new("/b".as_ref()).unwrap();
    other.write_at(0, &[2; 4096]).unwrap();
    assert_eq!(other.write_at(4096, &[2]).unwrap_err().kind(), ErrorKind::InsufficientDisk);
    disk.unlink("/a".as_ref()).unwrap();
    assert_eq!(disk.free_space("/".as_ref()).unwrap(), 0, "an open file keeps its space");
    drop(file);
    assert_eq!(disk.free_space("/".as_ref()).unwrap(), 2 * 4096);
}

/// One call with names and numbers drawn from small sets, so that calls meet.
#[derive(Debug, Clone)]
enum Call {
    Create(usize),
    Mkdir(usize),
    Link(usize, usize),
    Rename(usize, usize, bool),
    Unlink(usize),
    Rmdir(usize),
    Write(usize, u64, u8, usize),
    SetLen(usize, u64),
    Punch(usize, u64, u64),
    Allocate(usize, u64, u64),
}

const NAMES: [&str; 7] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a"];

fn call() -> impl Strategy<Value = Call> {
    let name = || 0..NAMES.len();
    let at = || 0..20_000_u64;
    prop_oneof![
        3 => name().prop_map(Call::Create),
        3 => name().prop_map(Call::Mkdir),
        2 => (name(), name()).prop_map(|(a, b)| Call::Link(a, b)),
        3 => (name(), name(), any::<bool>()).prop_map(|(a, b, r)| Call::Rename(a, b, r)),
        2 => name().prop_map(Call::Unlink),
        1 => name().prop_map(Call::Rmdir),
        4 => (name(), at(), any::<u8>(), 0..9000_usize).prop_map(|(a, o, v, n)| Call::Write(a, o, v, n)),
        1 => (name(), at()).prop_map(|(a, n)| Call::SetLen(a, n)),
        1 => (name(), at(), at()).prop_map(|(a, o, n)| Call::Punch(a, o, n)),
        1 => (name(), at(), at()).prop_map(|(a, o, n)| Call::Allocate(a, o, n)),
    ]
}

fn perform(disk: &dyn Disk, root: &std::path::Path, call: &Call) -> Result<(), ErrorKind> {
    let p = |i: usize| root.join(NAMES[i]);
    match *call {
        Call::Create(a) => disk.create_new(&p(a)).map(drop),
        Call::Mkdir(a) => disk.create_dir(&p(a)),
        Call::Link(a, b) => disk.link(&p(a), &p(b)),
        Call::Rename(a, b, true) => disk.rename(&p(a), &p(b)),
        Call::Rename(a, b, false) => disk.rename_no_replace(&p(a), &p(b)),
        Call::Unlink(a) => disk.unlink(&p(a)),
        Call::Rmdir(a) => disk.remove_dir(&p(a)),
        Call::Write(a, offset, value, n) => {
            disk.open(&p(a)).and_then(|f| f.write_at(offset, &vec![value; n]))
        }
        Call::SetLen(a, n) => disk.open(&p(a)).and_then(|f| f.set_len(n)),
        Call::Punch(a, offset, n) => disk.open(&p(a)).and_then(|f| f.punch(offset, n)),
        Call::Allocate(a, offset, n) => disk.open(&p(a)).and_then(|f| f.allocate(offset, n)),
    }
    .map_err(|e| e.kind())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..Default::default()
    })]

    #[test]
    fn the_model_does_what_the_system_does(calls in proptest::collection::vec(call(), 1..40)) {
        let temp = temp_dir();
        let real = RecordingDisk::over_folder(temp.path());
        let model = ModelDisk::new();
        for call in &calls {
            // Folders moved into themselves are refused by the system, each in its own words.
            if let Call::Rename(a, b, _) = call
                && NAMES[*b].starts_with(&format!("{}/", NAMES[*a])) {
                continue;
            }
            let system = perform(&real, temp.path(), call);
            let modelled = perform(&model, "/".as_ref(), call);
            prop_assert_eq!(system, modelled, "{:?}", call);
        }
        for (path, bytes) in model.image().files() {
            let there = std::fs::read(temp.path().join(path.strip_prefix("/").unwrap())).unwrap();
            prop_assert!(there == *bytes, "{}", path.display());
        }
        let seen = RecordingDisk::over_folder(temp.path());
        prop_assert_eq!(model.image().folders(), seen.model().image().folders());
        prop_assert_eq!(model.image().files().len(), seen.model().image().files().len());
    }
}
