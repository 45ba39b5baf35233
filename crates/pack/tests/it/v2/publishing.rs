//! What a crash, a fault or a cancellation leaves of format 2: nothing, or a complete pack with its receipt.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::stacks::{Stack, inspected, noise, planned};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::{Disk, SystemDisk};
use tensilo_core::{Error, ErrorKind, Monitor, Progress, Quiet, Result};
use tensilo_pack::Sha256Sum;
use tensilo_pack::v2::counts::CountType;
use tensilo_pack::v2::plan::{Plan, PlanOptions, plan};
use tensilo_pack::v2::produce::{ProduceOptions, Produced, produce};
use tensilo_pack::v2::receipt::Receipt;
use tensilo_pack::v2::source::inspect::Inspection;
use tensilo_testkit::disk_log::{ModelDisk, Options, RecordingDisk, check_all, every_fault};
use tensilo_testkit::oracle::{self, TempDir};

struct Ready {
    dir: TempDir,
    source: PathBuf,
    inspection: Inspection,
    plan: Plan,
}

fn ready(destination: Option<&str>) -> Ready {
    let dir = oracle::temp_dir();
    let counts = CountType::new(2, false).unwrap();
    let stack = Stack::of(&[5, 7], &[9, 11], counts, |i| (noise(3, i as u64) % 5) as i64);
    let source = stack.npy(dir.path());
    let inspection = inspected(&source, 2).unwrap();
    let destination = destination.map_or_else(|| dir.path().join("out.h5"), PathBuf::from);
    let plan = planned(&inspection, &destination, 1);
    Ready { dir, source, inspection, plan }
}

impl Ready {
    fn produce(&self, disk: Arc<dyn Disk>, monitor: &dyn Monitor) -> Result<Produced> {
        let options = ProduceOptions { disk, ..ProduceOptions::default() };
        produce(&self.inspection, &self.plan, &options, monitor)
    }

    fn left(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.dir.path()).unwrap();
        let mut left: Vec<String> = names
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n != "stack.npy")
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
    if receipt.output_sha256 != Sha256Sum::of(pack) {
        return Err("the receipt is of another pack".into());
    }
    Ok(())
}

#[test]
fn a_crash_at_any_point_leaves_no_pack_or_a_whole_one_with_its_receipt() {
    let ready = ready(Some("/out.h5"));
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
    let ready = ready(Some("/out.h5"));
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
                Err(_) => assert!(disk.image().files().is_empty(), "{fault:?} left something"),
            }
        },
    );
    assert!(struck > 40, "{struck} faults struck");
}

#[test]
fn cancelling_at_any_poll_leaves_nothing() {
    let ready = ready(None);
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
    assert!(cancelled > 5, "{cancelled} polls");
    assert_eq!(ready.left(), ["out.h5", "out.h5.receipt.json"]);
    let e = ready.produce(SystemDisk::shared(), &Quiet).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn a_source_that_changed_is_noticed_and_leaves_nothing() {
    let ready = ready(None);
    let mut bytes = std::fs::read(&ready.source).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&ready.source, &bytes).unwrap();
    let e = ready.produce(SystemDisk::shared(), &Quiet).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::SourceChanged, "{e}");
    assert_eq!(ready.left(), [""; 0]);
}

#[test]
fn too_little_memory_or_disk_is_refused_before_anything_is_written() {
    let ready = ready(None);
    let with = |memory, disk| {
        let options = PlanOptions { memory, available_disk: Some(disk), ..PlanOptions::default() };
        plan(&ready.inspection, Path::new("/out.h5"), &options, &SystemDisk).unwrap_err().kind()
    };
    assert_eq!(with(1 << 20, 1 << 40), ErrorKind::InsufficientMemory);
    assert_eq!(with(1 << 30, 1 << 10), ErrorKind::InsufficientDisk);
}

#[test]
fn a_run_holds_no_more_memory_than_its_plan_says() {
    let dir = oracle::temp_dir();
    for (bytes, most, masked) in [(2, 3, false), (2, 60_000, true), (4, 1_000_000, false), (1, 100, true)] {
        let counts = CountType::new(bytes, false).unwrap();
        let stack = Stack::of(&[300], &[64, 80], counts, |i| (noise(5, i as u64) % most) as i64);
        let mask: Vec<u32> = (0..64 * 80).map(|p| u32::from(masked && p % 50 == 3)).collect();
        let source = stack.family(dir.path(), &[170, 130], 7, Some(&mask));
        let inspection = inspected(&source, 2).unwrap();
        let out = dir.path().join(format!("{bytes}-{most}.h5"));
        let plan = planned(&inspection, &out, 1);
        let held = tensilo_testkit::allocations::most_held(|| {
            produce(&inspection, &plan, &ProduceOptions::default(), &Quiet).unwrap();
        });
        // At least the counts of a tile are held, so the counter counts.
        assert!(held > plan.window * plan.layout.frame_bytes(), "{held}");
        assert!(held <= plan.planned_peak_bytes, "{held} of {}", plan.planned_peak_bytes);
        for name in std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()) {
            std::fs::remove_file(name).unwrap();
        }
    }
}
