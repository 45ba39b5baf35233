//! What a crash, a fault, a change of the source or a cancellation leaves: nothing, or a complete pack with its receipt.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::fixtures::packs;
use crate::producing::{inspect_with, plan_with, source};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::{Disk, SystemDisk};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Monitor, Progress, Quiet, Result};
use tensilo_pack::plan::Plan;
use tensilo_pack::produce::{ProduceOptions, Produced, produce};
use tensilo_pack::receipt::Receipt;
use tensilo_pack::receipt_path;
use tensilo_pack::source::inspect::{InspectOptions, Inspection, inspect};
use tensilo_pack::verify::{VerifyOptions, verify};
use tensilo_pack::writer::PackWriter;
use tensilo_testkit::disk_log::{ModelDisk, Options, RecordingDisk, check_all, every_fault};
use tensilo_testkit::oracle::{self, TempDir};

/// A small source of its own, inspected, and a plan for a destination.
struct Ready {
    dir: TempDir,
    source: PathBuf,
    inspection: Inspection,
    plan: Plan,
}

fn ready(packs: &Path, destination: Option<&str>) -> Ready {
    let dir = oracle::temp_dir();
    let source_file = source(&packs.join("mini"));
    let copy = dir.path().join("source.h5");
    std::fs::copy(source_file, &copy).unwrap();
    // The copy is read-only like its original.
    let mut permissions = std::fs::metadata(&copy).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    std::fs::set_permissions(&copy, permissions).unwrap();
    let inspection = inspect_with(&copy, &dir.path().join("indexes")).unwrap();
    let destination = destination.map_or_else(|| dir.path().join("out.h5"), PathBuf::from);
    let plan = plan_with(&inspection, &destination, |o| {
        o.threads = Threads::ONE;
        o.available_disk = Some(1 << 40);
    })
    .unwrap();
    Ready { source: copy, dir, inspection, plan }
}

impl Ready {
    fn produce(&self, disk: Arc<dyn Disk>, monitor: &dyn Monitor) -> Result<Produced> {
        let options = ProduceOptions {
            index_dir: Some(self.dir.path().join("indexes")),
            disk,
            ..ProduceOptions::default()
        };
        produce(&self.inspection, &self.plan, &options, monitor)
    }

    fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n != "indexes" && n != "source.h5")
            .collect();
        left.sort();
        left
    }
}

/// Neither a pack, nor a whole pack with the receipt that names it.
fn check_pair(pack: Option<&[u8]>, receipt: Option<&[u8]>, whole: &[u8]) -> Result<(), String> {
    let Some(pack) = pack else { return Ok(()) };
    if pack != whole {
        return Err("the pack is not whole".into());
    }
    let receipt = receipt.ok_or("a pack without its receipt")?;
    let receipt = Receipt::parse(receipt).map_err(|e| e.to_string())?;
    if receipt.output_sha256 != tensilo_pack::Sha256Sum::of(pack) {
        return Err("the receipt is of another pack".into());
    }
    Ok(())
}

#[test]
fn a_crash_at_any_point_leaves_no_pack_or_a_whole_one_with_its_receipt() {
    let Some(packs) = packs(1) else { return };
    let ready = ready(&packs, Some("/out.h5"));
    let disk = RecordingDisk::new();
    ready.produce(Arc::new(disk.clone()), &Quiet).unwrap();
    disk.mark("produced");
    let whole = disk.model().bytes("/out.h5").unwrap();
    let log = disk.log();
    let counts = check_all(&log, &Options { random_per_point: 4, ..Options::default() }, |state| {
        let pack = state.bytes("/out.h5");
        if pack.is_none() && state.passed("produced") {
            return Err("produced, but gone".into());
        }
        check_pair(pack, state.bytes("/out.h5.receipt.json"), &whole)
    });
    assert_eq!(counts.points as usize, log.ops.len() + 1, "every point of the log is replayed");
    assert!(counts.states > 30 && counts.skipped == 0, "{counts}");
}

#[test]
fn every_failing_operation_is_reported_and_leaves_nothing() {
    let Some(packs) = packs(1) else { return };
    let ready = ready(&packs, Some("/out.h5"));
    let model = ModelDisk::new();
    ready.produce(Arc::new(model.clone()), &Quiet).unwrap();
    let whole = model.bytes("/out.h5").unwrap();
    let struck = every_fault(
        ModelDisk::new,
        |disk| ready.produce(disk, &Quiet),
        |disk, fault, result| {
            let (pack, receipt) = (disk.bytes("/out.h5"), disk.bytes("/out.h5.receipt.json"));
            check_pair(pack.as_deref(), receipt.as_deref(), &whole)
                .unwrap_or_else(|e| panic!("{fault:?}: {e}"));
            match result {
                Ok(_) => assert!(pack.is_some(), "{fault:?}: produced, but no pack"),
                // A disk that refuses everything from here on also refuses to take a name back.
                Err(_) if fault.lasting => {}
                Err(_) => {
                    let left = disk.image().files();
                    assert!(
                        left.is_empty(),
                        "{fault:?} left {:?}",
                        left.iter().map(|f| &f.0).collect::<Vec<_>>()
                    );
                }
            }
        },
    );
    assert!(struck > 60, "{struck} faults struck");
}

#[test]
fn a_full_disk_leaves_nothing() {
    let Some(packs) = packs(1) else { return };
    let ready = ready(&packs, Some("/out.h5"));
    for space in [0, 1000, 70_000, 150_000, 226_000] {
        let disk = ModelDisk::with_space(space);
        let e = ready.produce(Arc::new(disk.clone()), &Quiet).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InsufficientDisk, "{e}");
        assert!(disk.image().files().is_empty(), "{space}");
    }
}

#[test]
fn cancelling_at_any_poll_leaves_nothing() {
    let Some(packs) = packs(1) else { return };
    let ready = ready(&packs, None);
    let mut cancelled = 0;
    loop {
        let left = Cell::new(cancelled);
        let monitor = |_: &Progress| -> Result<()> {
            if left.get() == 0 {
                return Err(Error::cancelled());
            }
            left.set(left.get() - 1);
            Ok(())
        };
        match ready.produce(SystemDisk::shared(), &monitor) {
            Ok(_) => break,
            Err(e) => assert_eq!(e.kind(), ErrorKind::Cancelled, "{e}"),
        }
        assert_eq!(ready.left(), [""; 0], "after poll {cancelled}");
        cancelled += 1;
    }
    assert!(cancelled > 8, "{cancelled} polls");
    assert_eq!(ready.left(), ["out.h5", "out.h5.receipt.json"]);
}

#[test]
fn a_source_that_changed_before_or_during_packing_leaves_nothing() {
    let Some(packs) = packs(1) else { return };
    let before = ready(&packs, None);
    let mut bytes = std::fs::read(&before.source).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&before.source, &bytes).unwrap();
    let e = before.produce(SystemDisk::shared(), &Quiet).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::SourceChanged, "{e}");
    assert!(e.file().unwrap().ends_with("source.h5"));
    assert_eq!(before.left(), [""; 0]);

    let during = ready(&packs, None);
    let touched = Cell::new(false);
    let monitor = |p: &Progress| -> Result<()> {
        // Once frames are being decoded, the same bytes are written again.
        if p.stage == "packing" && p.total > 0 && !touched.replace(true) {
            let bytes = std::fs::read(&during.source).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::fs::write(&during.source, bytes).unwrap();
        }
        Ok(())
    };
    let e = during.produce(SystemDisk::shared(), &monitor).unwrap_err();
    assert!(touched.get());
    assert_eq!(e.kind(), ErrorKind::SourceChanged, "{e}");
    assert_eq!(during.left(), [""; 0]);
}

#[test]
fn nothing_is_overwritten() {
    let Some(packs) = packs(1) else { return };
    for name in ["out.h5", "out.h5.receipt.json"] {
        let ready = ready(&packs, None);
        std::fs::write(ready.dir.path().join(name), b"mine").unwrap();
        let e = ready.produce(SystemDisk::shared(), &Quiet).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
        assert_eq!(std::fs::read(ready.dir.path().join(name)).unwrap(), b"mine");
        assert_eq!(ready.left(), [name]);
    }
}

#[test]
fn what_dead_runs_left_is_named_by_inspection_and_cleared_on_demand() {
    let Some(packs) = packs(1) else { return };
    let ready = ready(&packs, None);
    let at = |name: &str| ready.dir.path().join(name);
    let (partial, orphan) = (at(".out.h5.0123456789abcdef.partial"), at("out.h5.receipt.json"));
    std::fs::write(&partial, b"half").unwrap();
    std::fs::write(&orphan, b"{}").unwrap();
    let options = InspectOptions {
        index_dir: Some(at("indexes")),
        destination: Some(ready.plan.destination.clone()),
        ..InspectOptions::default()
    };
    let found = inspect(&ready.source, &options, &Quiet).unwrap().leftovers;
    assert_eq!(
        (&found.partials[..], &found.orphan_receipts[..]),
        (&[partial.clone()][..], &[orphan.clone()][..])
    );
    let e = ready.produce(SystemDisk::shared(), &Quiet).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    assert!(e.hint_text().unwrap().contains("clear leftovers"), "{e:?}");
    assert!(partial.exists() && orphan.exists(), "nothing is cleared unasked");
    let options =
        ProduceOptions { index_dir: Some(at("indexes")), clear_leftovers: true, ..ProduceOptions::default() };
    let produced = produce(&ready.inspection, &ready.plan, &options, &Quiet).unwrap();
    assert_eq!(produced.cleared.len(), 2);
    assert_eq!(ready.left(), ["out.h5", "out.h5.receipt.json"]);
    assert!(verify(&ready.plan.destination, &VerifyOptions::default(), &Quiet).unwrap().is_proven());
}

#[test]
fn folders_are_made_and_a_stale_or_damaged_index_is_rebuilt() {
    let Some(packs) = packs(1) else { return };
    let mut ready = ready(&packs, None);
    ready.plan.destination = ready.dir.path().join("new/folders/out.h5");
    let index = ready.inspection.index_files[0].clone();
    let good = std::fs::read(&index).unwrap();
    let mut damaged = good.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 0x40;
    std::fs::write(&index, &damaged).unwrap();
    ready.produce(SystemDisk::shared(), &Quiet).unwrap();
    assert_eq!(std::fs::read(&index).unwrap(), good, "the index is kept again");
    assert!(verify(&ready.plan.destination, &VerifyOptions::default(), &Quiet).unwrap().is_proven());
}

/// Threads, open files and maps of this process that a test can be blamed for.
fn held() -> (usize, usize, usize) {
    let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    (count("/proc/self/task"), count("/proc/self/fd"), maps.lines().filter(|l| l.contains(".h5")).count())
}

/// Whether as much is held as before. The kernel removes a thread that was joined from its list a moment later.
fn is_held_again(before: (usize, usize, usize)) -> bool {
    (0..5000).any(|_| {
        held() == before || {
            std::thread::sleep(std::time::Duration::from_millis(1));
            false
        }
    })
}

#[test]
fn after_return_no_thread_file_or_map_remains() {
    const CHILD: &str = "TENSILO_PACK_HELD";
    let Some(packs) = packs(1) else { return };
    if std::env::var_os(CHILD).is_none() {
        // Other tests have threads and files of their own; a process that runs only this one does not.
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["publishing::after_return_no_thread_file_or_map_remains", "--exact", "--test-threads=1"])
            .env(CHILD, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "threads, files or maps remain");
        return;
    }
    let mut ready = ready(&packs, None);
    for threads in [1, 4] {
        ready.plan.workers = threads;
        let before = held();
        ready.produce(SystemDisk::shared(), &Quiet).unwrap();
        assert!(is_held_again(before), "{:?} is not {before:?}", held());
        let e = ready.produce(SystemDisk::shared(), &Quiet).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists);
        assert!(is_held_again(before), "{:?} is not {before:?}", held());
        verify(&ready.plan.destination, &VerifyOptions::default(), &Quiet).unwrap();
        assert!(is_held_again(before), "{:?} is not {before:?}", held());
        for path in [&ready.plan.destination, &receipt_path(&ready.plan.destination)] {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn h5py_opens_the_body_and_finds_the_ranges_of_the_index() {
    let Some(packs) = packs(1) else { return };
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let ready = ready(&packs, None);
    ready.produce(SystemDisk::shared(), &Quiet).unwrap();
    let container = tensilo_pack::read::Pack::open(&ready.plan.destination).unwrap();
    let code = "
import h5py, sys
with h5py.File(sys.argv[1], 'r') as f:
    g = f['quantem_gpu/shards/000']
    for name in ('payload_u32', 'compact_headers_u32'):
        d = g[name]
        print(d.dtype.str, d.id.get_offset(), d.size * 4, d.chunks, len(d.attrs))
    print(f.userblock_size)
";
    let out = oracle::python_stdout(code, [&ready.plan.destination], b"");
    let record = &container.index().shards[0];
    let line = |e: tensilo_pack::format::index::Extent| format!("<u4 {} {} None 0\n", e.offset, e.bytes);
    assert_eq!(String::from_utf8(out).unwrap(), line(record.payload) + &line(record.header) + "65536\n");
}

#[test]
fn the_low_level_writer_takes_the_next_shard_only_and_leaves_nothing_when_given_up() {
    let disk = ModelDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let create = |user_block| PackWriter::create(shared.clone(), Path::new("/p.h5"), user_block);
    assert_eq!(create(256).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut w = create(512).unwrap();
    assert_eq!(w.append_shard(1, &[1], &[0, 1]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(w.append_shard(0, &[], &[0, 1]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(w.append_shard(0, &[1], &[]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let at = w.append_shard(0, &[7, 8], &[0, 2]).unwrap();
    assert_eq!(w.append_shard(0, &[1], &[0, 1]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    w.append_shard(1, &[9], &[0, 1]).unwrap();
    w.close().unwrap();
    let bytes = disk.bytes("/p.h5").unwrap();
    assert_eq!(&bytes[at.payload.offset as usize..][..8], [7, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(create(512).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let other = ModelDisk::new();
    let mut w = PackWriter::create(Arc::new(other.clone()), Path::new("/p.h5"), 65_536).unwrap();
    w.append_shard(0, &[1], &[0, 1]).unwrap();
    w.abort();
    assert!(other.image().files().is_empty());
    let w = PackWriter::create(Arc::new(other.clone()), Path::new("/p.h5"), 65_536).unwrap();
    assert!(w.close().is_err(), "a pack has a shard");
    assert!(other.image().files().is_empty());
}
