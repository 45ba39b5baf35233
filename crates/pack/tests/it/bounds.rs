//! No run holds more memory, or writes more to the disk, than its plan says: random families, budgets and workers.

use crate::agreeing::{Family, families, write};
use crate::producing::inspect_with;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Quiet};
use tensilo_pack::plan::{PlanOptions, plan};
use tensilo_pack::produce::{ProduceOptions, produce};
use tensilo_pack::{Profile, receipt_path};
use tensilo_testkit::disk_log::ModelDisk;
use tensilo_testkit::{oracle, strategies};

/// Bytes of a block of the model disk.
const BLOCK: u64 = 4096;

/// Produces on a disk that has no byte more than the plan says, and looks at what was held and written.
fn stays_in_bounds(family: &Family, profile: Profile, workers: usize, share: u64) {
    let work = oracle::temp_dir();
    let inspection = inspect_with(&write(family, work.path()), &work.path().join("indexes")).unwrap();
    let destination = Path::new("/out.h5");
    let with = |memory: u64| {
        let options = PlanOptions {
            profile,
            memory,
            available_disk: Some(u64::MAX),
            threads: Threads::new(workers),
            ..PlanOptions::default()
        };
        plan(&inspection, destination, &options, &ModelDisk::new())
    };
    let roomy = with(u64::MAX / 2).unwrap();
    // Anything from the least that is possible to what the roomiest plan uses.
    let (least, most) = (roomy.predicted_peak_transient_bytes, roomy.planned_peak_transient_bytes);
    let plan = with(least + (most - least) * share / 8).unwrap();
    assert_eq!(with(least - 1).unwrap_err().kind(), ErrorKind::InsufficientMemory);
    assert!(plan.planned_peak_transient_bytes <= plan.memory);
    let indexes: u64 =
        inspection.frames.iter().map(|_| 4 * BLOCK).sum::<u64>() + inspection.prepared_index_bytes;
    let disk = ModelDisk::with_space(plan.predicted_output_disk_maximum_bytes + 2 * BLOCK + indexes);
    let options = ProduceOptions {
        index_dir: Some("/indexes".into()),
        disk: Arc::new(disk.clone()),
        ..ProduceOptions::default()
    };
    let made = produce(&inspection, &plan, &options, &Quiet).unwrap();
    let held = made.peak_bytes;
    assert!(held <= plan.planned_peak_transient_bytes, "{held} bytes held: {plan:?}");
    let receipt = &made.receipt;
    assert!(receipt.accounted_peak_transient_bytes <= plan.predicted_peak_transient_bytes, "{plan:?}");
    assert!(receipt.observed_packed_resident_bytes <= plan.predicted_packed_resident_maximum_bytes);
    let pack = disk.bytes(destination).unwrap().len() as u64;
    let text = disk.bytes(receipt_path(destination)).unwrap().len() as u64;
    assert_eq!(pack, receipt.output_bytes);
    assert!(pack <= plan.predicted_output_file_maximum_bytes, "{pack} bytes: {plan:?}");
    assert!(text <= plan.predicted_receipt_file_maximum_bytes, "{text} bytes: {plan:?}");
}

proptest! {
    #![proptest_config(strategies::fixed(16))]

    #[test]
    fn uint8_packs_stay_in_their_plans_bounds(
        family in families(Profile::ExactUint8BitPacked), workers in 1_usize..5, share in 0_u64..=8,
    ) {
        stays_in_bounds(&family, Profile::ExactUint8BitPacked, workers, share);
    }

    #[test]
    fn uint16_packs_stay_in_their_plans_bounds(
        family in families(Profile::ExactUint16Lz4), workers in 1_usize..5, share in 0_u64..=8,
    ) {
        stays_in_bounds(&family, Profile::ExactUint16Lz4, workers, share);
    }
}
