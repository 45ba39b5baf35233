//! Format 1 becomes format 2 and back, and what format 1 refuses is sent to format 2.

use super::stacks::{Stack, inspected, packed, planned};
use crate::fixtures::{expected, packs};
use std::collections::BTreeMap;
use std::path::Path;
use tensilo_core::io::SystemDisk;
use tensilo_core::{ErrorKind, Quiet, Result};
use tensilo_pack::plan::PlanOptions;
use tensilo_pack::produce::ProduceOptions;
use tensilo_pack::read::{Pack as Pack1, Values};
use tensilo_pack::source::inspect::{InspectOptions, inspect};
use tensilo_pack::v2;
use tensilo_pack::v2::convert::to_format_1;
use tensilo_pack::v2::counts::CountType;
use tensilo_pack::v2::hint_format_2;
use tensilo_pack::v2::read::Pack;
use tensilo_pack::v2::source::inspect::Inspection;
use tensilo_pack::v2::verify::{VerifyOptions, verify};
use tensilo_pack::{Profile, verify as verify_1};
use tensilo_testkit::oracle;

#[test]
fn packs_of_format_1_become_format_2_and_come_back_with_the_same_counts() {
    let Some(folder) = packs(1) else { return };
    for (name, profile) in [
        ("mini", Profile::ExactUint8BitPacked),
        ("family", Profile::ExactUint8BitPacked),
        ("ext_96x96", Profile::ExactUint8BitPacked),
        ("uint16_lz4", Profile::ExactUint16Lz4),
    ] {
        let e = expected(name);
        let dir = oracle::temp_dir();
        let (two, one) = (dir.path().join("two.h5"), dir.path().join("one.h5"));
        packed(&folder.join(name).join("cache.h5"), 2, &two, 2).unwrap();
        let v = verify(&two, &VerifyOptions { deep: true, ..VerifyOptions::default() }, &Quiet).unwrap();
        assert_eq!(v.findings, [], "{name}");
        let pack = Pack::open(&two).unwrap();
        assert_eq!(pack.index().raw_sha256.to_string(), e["sourceRawLogicalSHA256"], "{name}");
        let old = Pack1::open(folder.join(name).join("cache.h5")).unwrap();
        assert_eq!(pack.index().source_identity, old.index().source_identity, "{name}");
        assert_eq!(pack.excluded(), old.excluded(), "{name}");
        let options =
            ProduceOptions { index_dir: Some(dir.path().join("index")), ..ProduceOptions::default() };
        let plan = PlanOptions { profile, ..PlanOptions::default() };
        let made = to_format_1(&pack, &one, &plan, &options, &Quiet).unwrap();
        assert_eq!(made.receipt.source_raw_logical_sha256.to_string(), e["sourceRawLogicalSHA256"], "{name}");
        assert_eq!(made.receipt.working_logical_sha256.to_string(), e["workingLogicalSHA256"], "{name}");
        let v = verify_1::verify(&one, &verify_1::VerifyOptions::default(), &Quiet).unwrap();
        assert_eq!(v.findings, [], "{name}");
        let back = Pack1::open(&one).unwrap();
        assert_eq!(back.shape(), old.shape(), "{name}");
        assert_eq!(back.excluded(), old.excluded(), "{name}");
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["index", "one.h5", "one.h5.receipt.json", "two.h5", "two.h5.receipt.json"]);
    }
}

#[test]
fn counts_that_format_1_cannot_hold_stay_and_nothing_is_left() {
    let Some(folder) = packs(1) else { return };
    let folder = folder.join("bad_inputs");
    for source in ["uint8.h5", "int16.h5", "scans_36.h5", "value_256.h5"] {
        let dir = oracle::temp_dir();
        let (two, one) = (dir.path().join("two.h5"), dir.path().join("one.h5"));
        packed(&folder.join(source), 2, &two, 1).unwrap();
        let options =
            ProduceOptions { index_dir: Some(dir.path().join("index")), ..ProduceOptions::default() };
        let pack = Pack::open(&two).unwrap();
        let e = to_format_1(&pack, &one, &PlanOptions::default(), &options, &Quiet).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::InvalidArgument), "{source}: {e}");
        let left = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name());
        let left: Vec<_> = left.filter(|n| n != "index").collect();
        assert_eq!(left.len(), 2, "{source}: {left:?}");
    }
}

/// Format 1's inspection, plan and production.
fn format_1(source: &Path, folder: &Path) -> Result<()> {
    let options = InspectOptions { index_dir: Some(folder.join("index")), ..InspectOptions::default() };
    let i = inspect(source, &options, &Quiet)?;
    let plan = tensilo_pack::plan::plan(&i, &folder.join("out.h5"), &PlanOptions::default(), &SystemDisk)?;
    let options = ProduceOptions { index_dir: Some(folder.join("index")), ..ProduceOptions::default() };
    tensilo_pack::produce::produce(&i, &plan, &options, &Quiet).map(|_| ())
}

#[test]
fn every_refusal_of_format_1_that_format_2_takes_ends_with_the_hint() {
    let Some(folder) = packs(1) else { return };
    for source in [
        "bad_inputs/value_256.h5",
        "bad_inputs/nonconstant_excluded.h5",
        "bad_inputs/all_pixels_excluded.h5",
        "bad_inputs/scans_36.h5",
        "bad_inputs/gzip_filter.h5",
        "bad_inputs/no_filter.h5",
        "bad_inputs/chunk_two_frames.h5",
        "bad_inputs/uint32.h5",
        "bad_inputs/uint8.h5",
        "bad_inputs/int16.h5",
        "upstream/qgpu_fixture_master.h5",
        "upstream/qgpu_fixture_u8_data_000001.h5",
    ] {
        let dir = oracle::temp_dir();
        let source = folder.join(source);
        let e = hint_format_2(format_1(&source, dir.path()).unwrap_err(), &source, &Default::default());
        assert_eq!(e.hint_text(), Some("--format 2"), "{}: {e}", source.display());
    }
    let dir = oracle::temp_dir();
    let source = folder.join("bad_inputs/mask_wrong_shape.h5");
    let e = hint_format_2(format_1(&source, dir.path()).unwrap_err(), &source, &Default::default());
    assert_ne!(e.hint_text(), Some("--format 2"), "{}: {e}", source.display());
}

#[test]
fn each_way_in_which_format_1_refuses_a_stack_ends_with_the_hint() {
    let dir = oracle::temp_dir();
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let text = oracle::python_stdout(include_str!("pack_v2_refusals.py"), [dir.path()], b"");
    let all: BTreeMap<String, String> = serde_json::from_slice(&text).unwrap();
    assert!(all.len() > 20, "{}", all.len());
    for (name, refusal) in &all {
        let (source, work) = (dir.path().join(name), oracle::temp_dir());
        let found = format_1(&source, work.path());
        if refusal.is_empty() {
            found.unwrap_or_else(|e| panic!("{name}: {e}"));
        } else {
            let e = found.expect_err(name);
            assert!(refusal == "?" || e.message().contains(&**refusal), "{name}: {e}");
            let e = hint_format_2(e, &source, &Default::default());
            assert_eq!(e.hint_text(), Some("--format 2"), "{name}: {e}");
        }
        // The hint is true.
        packed(&source, 2, &work.path().join("two.h5"), 1).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn a_detector_near_2_31_pixels_is_planned_or_refused_without_its_memory() {
    let dir = oracle::temp_dir();
    let counts = CountType::new(1, false).unwrap();
    let small = Stack::of(&[3], &[2, 2], counts, |i| i as i64).npy(dir.path());
    let mut i = inspected(&small, 2).unwrap();
    let out = dir.path().join("out.h5");
    let plan_with = |i: &Inspection, memory| {
        let options = v2::plan::PlanOptions { memory, available_disk: Some(u64::MAX), ..Default::default() };
        v2::plan::plan(i, &out, &options, &SystemDisk)
    };
    for detector in [vec![46_340, 46_340], vec![1 << 31], vec![1, 1 << 31], vec![1 << 31, 1]] {
        i.detector_shape = detector.clone();
        let e = plan_with(&i, 1 << 30).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InsufficientMemory, "{detector:?}: {e}");
        // One frame has to be held, and what it is coded to.
        let plan = plan_with(&i, 1 << 40).unwrap();
        let frame: u64 = detector.iter().product();
        assert!(plan.planned_peak_bytes < 4 * frame, "{detector:?}: {}", plan.planned_peak_bytes);
        assert_eq!(plan.window, 1, "{detector:?}");
    }
    for detector in [vec![46_341, 46_341], vec![(1 << 31) + 1], vec![u64::MAX, u64::MAX]] {
        i.detector_shape = detector.clone();
        let e = plan_with(&i, u64::MAX).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{detector:?}: {e}");
    }
}

#[test]
fn the_plan_says_how_often_chunks_are_decoded_and_memory_makes_it_less() {
    use tensilo_hdf5::write::{FileWriter, Filters, WriteOptions};
    let dir = oracle::temp_dir();
    let path = dir.path().join("deep.h5");
    let mut w = FileWriter::create(SystemDisk::shared(), &path, WriteOptions::default()).unwrap();
    let counts: Vec<u16> = (0..700 * 24 * 40).map(|i| (i % 251) as u16).collect();
    // Chunks that reach over many scans.
    w.dataset("/data")
        .shape(&[700, 24, 40])
        .chunk(&[700, 8, 8])
        .filters(Filters::bitshuffle_lz4())
        .write(&counts)
        .unwrap();
    w.finish().unwrap();
    let i = super::stacks::inspected(&path, 2).unwrap();
    assert_eq!((i.period, i.layer_bytes), (700, 700 * 24 * 40 * 2));
    let plan = planned(&i, &dir.path().join("out.h5"), 2);
    assert_eq!((plan.decodes, plan.chunk_cache_bytes), (1, i.layer_bytes), "kept from window to window");
    let out = dir.path().join("out.h5");
    packed(&path, 2, &out, 2).unwrap();
    let all: Vec<u16> = Pack::open(&out).unwrap().read(&Default::default(), Values::Raw).unwrap();
    assert!(all == counts);
}
