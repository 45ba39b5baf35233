//! The contract's table (section 5.2), refusals and their order.

use super::*;
use crate::identity::{self, MaskOrigin};
use crate::source::calibration::Calibration;
use crate::source::inspect::{Role, SourceMember};
use tensilo_core::io::SystemDisk;

fn inspection(shape: [u64; 4], excluded: Vec<u32>) -> Inspection {
    let geometry = Geometry::new(shape).unwrap();
    let member =
        SourceMember { role: Role::Data, path: "x.h5".into(), bytes: 1, sha256: Sha256Sum::of(b"x") };
    Inspection {
        dataset: "x".into(),
        id: "00".repeat(10),
        source_identity: identity::source_identity(None, &[member.sha256]),
        members: vec![member],
        geometry,
        source_dtype: "uint16",
        frames: vec![geometry.scans()],
        prepared_index_bytes: 0,
        maximum_compressed_block_bytes: 0,
        excluded_sha256: Sha256Sum::of_u32(&excluded),
        mask_sha256: identity::implicit_mask_sha256(geometry.pixels()),
        mask_origin: if excluded.is_empty() { MaskOrigin::Implicit } else { MaskOrigin::Source },
        excluded,
        calibration: Calibration::default(),
        index_files: Vec::new(),
        leftovers: Default::default(),
    }
}

fn roomy() -> PlanOptions {
    PlanOptions {
        memory: u64::MAX / 2,
        available_disk: Some(u64::MAX),
        threads: Threads::ONE,
        ..PlanOptions::default()
    }
}

fn plan_of(shape: [u64; 4], options: &PlanOptions) -> Result<Plan> {
    plan(&inspection(shape, vec![]), Path::new("/nowhere/out.h5"), options, &SystemDisk)
}

#[test]
fn the_contracts_table_holds() {
    let p = plan_of([512, 512, 192, 192], &roomy()).unwrap();
    assert_eq!((p.cut.scans_per_shard, p.cut.shards), (4096, 64));
    assert_eq!(p.predicted_packed_resident_maximum_bytes, 9_852_420_096);
    assert_eq!(p.predicted_peak_transient_bytes, 181_084_160);
    assert_eq!(p.predicted_output_file_maximum_bytes, 9_860_874_240);
    // One member of a four-byte path is in the last number.
    assert_eq!(p.predicted_receipt_file_maximum_bytes, 1_114_112 + 1024 + 4);
    let p = plan_of([1024, 1024, 192, 192], &roomy()).unwrap();
    assert_eq!((p.cut.scans_per_shard, p.cut.shards), (4096, 256));
    assert_eq!(p.predicted_packed_resident_maximum_bytes, 39_409_680_384);
    assert_eq!(p.predicted_peak_transient_bytes, 181_084_160);
    for (side, scans, shards) in [(200, 4000, 10), (600, 4000, 90), (1000, 4000, 250)] {
        let p = plan_of([side, side, 192, 192], &roomy()).unwrap();
        assert_eq!((p.cut.scans_per_shard, p.cut.shards), (scans, shards));
    }
    for side in [100, 300, 500, 1500] {
        let e = plan_of([side, side, 192, 192], &roomy()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    }
    let e = plan_of([2048, 2048, 192, 192], &roomy()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Limit, "{e}");
    assert!(e.message().contains("1024 shards"), "{e}");
}

#[test]
fn about_658_shards_fit_the_user_block() {
    let fits = |k: u64| plan_of([32, k, 8, 8], &roomy());
    // Primes and near-primes above 128 force shards of 32 scans.
    assert_eq!(fits(653).unwrap().cut.shards, 653);
    assert_eq!(fits(673).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn refusals_come_in_the_contracts_order() {
    let shape = [100, 100, 192, 192];
    let nothing = PlanOptions { memory: 0, available_disk: Some(0), ..roomy() };
    for backend in [Backend::Metal, Backend::Cuda, Backend::Vulkan, Backend::WebGpu] {
        let e = plan_of(shape, &PlanOptions { backend, ..nothing.clone() }).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.message().contains(backend.name()), "{e}");
    }
    let mut bad = inspection(shape, vec![]);
    bad.source_identity = Sha256Sum::of(b"another");
    let e = plan(&bad, Path::new("/nowhere/out.h5"), &nothing, &SystemDisk).unwrap_err();
    assert!(e.message().contains("identity"), "{e}");
    assert!(plan_of(shape, &nothing).unwrap_err().message().contains("multiple of 32"));
    let shape = [2048, 2048, 192, 192];
    assert_eq!(plan_of(shape, &nothing).unwrap_err().kind(), ErrorKind::InsufficientMemory);
    let no_disk = PlanOptions { memory: u64::MAX / 2, ..nothing };
    assert_eq!(plan_of(shape, &no_disk).unwrap_err().kind(), ErrorKind::InsufficientDisk);
    assert_eq!(plan_of(shape, &roomy()).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn the_least_budget_is_the_formula_and_one_byte_less_is_refused() {
    let shape = [64, 64, 64, 64];
    let peak = plan_of(shape, &roomy()).unwrap().predicted_peak_transient_bytes;
    let with = |memory| plan_of(shape, &PlanOptions { memory, threads: Threads::new(4), ..roomy() });
    let least = with(peak).unwrap();
    assert_eq!((least.workers, least.passes, least.planned_peak_transient_bytes), (1, 2, peak));
    assert_eq!(with(peak - 1).unwrap_err().kind(), ErrorKind::InsufficientMemory);
}

#[test]
fn a_smaller_budget_takes_the_single_pass_first_and_then_workers() {
    let shape = [64, 64, 64, 64];
    let i = inspection(shape, vec![]);
    let (pixels, scans) = (4096, 4096);
    let peak = plan_of(shape, &roomy()).unwrap().predicted_peak_transient_bytes;
    let worker = 96 * pixels + 8192;
    let with = |memory| {
        let options = PlanOptions { memory, threads: Threads::new(4), ..roomy() };
        let p = plan(&i, Path::new("/nowhere/out.h5"), &options, &SystemDisk).unwrap();
        (p.workers, p.passes, p.planned_peak_transient_bytes)
    };
    let all = peak + 3 * worker + pixels * scans;
    assert_eq!(with(u64::MAX), (4, 1, all));
    assert_eq!(with(all), (4, 1, all));
    assert_eq!(with(all - 1), (4, 2, peak + 3 * worker));
    assert_eq!(with(peak + 3 * worker - 1), (3, 2, peak + 2 * worker));
    assert_eq!(with(peak + worker - 1), (1, 2, peak));
}

#[test]
fn available_disk_overrides_the_measured_space() {
    let shape = [64, 64, 64, 64];
    let need = plan_of(shape, &roomy()).unwrap().predicted_output_disk_maximum_bytes;
    let with = |n| plan_of(shape, &PlanOptions { available_disk: Some(n), ..roomy() });
    assert!(with(need).is_ok());
    assert_eq!(with(need - 1).unwrap_err().kind(), ErrorKind::InsufficientDisk);
}

#[test]
fn an_lz4_plan_raises_its_shards_until_the_manifest_fits() {
    let options = PlanOptions { profile: Profile::ExactUint16Lz4, ..roomy() };
    let p = plan_of([512, 512, 64, 64], &options).unwrap();
    assert_eq!((p.cut.scans_per_shard, p.cut.shards), (4096, 64));
    let p = plan_of([1024, 1024, 64, 64], &options).unwrap();
    assert!(p.cut.scans_per_shard > 4096 && p.cut.shards < 90, "{:?}", p.cut);
    assert!(u64::from(p.cut.scans_per_shard) * 4096 / 2 <= MOST_WORDS);
    // 2^27 words of 192 x 192 pixels are 7281 scans, which no divisor between 4096 and it helps.
    let e = plan_of([1024, 1024, 192, 192], &options).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Limit, "{e}");
    let e = plan_of([4, 8, 64, 64], &options).unwrap_err();
    assert!(e.message().contains("multiple of 128"), "{e}");
}
