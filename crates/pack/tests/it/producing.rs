//! Producing equals the ground truth, refuses what it must, and leaves nothing behind.

use crate::fixtures::{UINT8, expected, packs};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Quiet, Result};
use tensilo_pack::plan::{Plan, PlanOptions, plan};
use tensilo_pack::produce::{ProduceOptions, Produced, produce};
use tensilo_pack::source::inspect::{InspectOptions, Inspection, inspect};
use tensilo_pack::verify::{VerifyOptions, verify};
use tensilo_pack::{Profile, Sha256Sum};
use tensilo_testkit::oracle;

/// The source of a fixture folder.
pub fn source(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let is = |p: &PathBuf, end: &str| p.to_str().unwrap().ends_with(end);
    let master = files.iter().find(|p| is(p, "_master.h5"));
    master.or_else(|| files.iter().find(|p| is(p, ".h5") && !is(p, "cache.h5"))).unwrap().clone()
}

pub fn inspect_with(source: &Path, indexes: &Path) -> Result<Inspection> {
    let options = InspectOptions { index_dir: Some(indexes.to_path_buf()), ..InspectOptions::default() };
    inspect(source, &options, &Quiet)
}

pub fn plan_with(
    inspection: &Inspection,
    destination: &Path,
    change: impl FnOnce(&mut PlanOptions),
) -> Result<Plan> {
    let mut options = PlanOptions { memory: 1 << 30, threads: Threads::new(2), ..PlanOptions::default() };
    change(&mut options);
    plan(inspection, destination, &options, &tensilo_core::io::SystemDisk)
}

pub fn run(inspection: &Inspection, plan: &Plan, indexes: &Path) -> Result<Produced> {
    let options = ProduceOptions { index_dir: Some(indexes.to_path_buf()), ..ProduceOptions::default() };
    produce(inspection, plan, &options, &Quiet)
}

/// Inspects, plans and produces.
fn pack(
    source: &Path,
    work: &Path,
    change: impl FnOnce(&mut PlanOptions),
) -> Result<(Inspection, Plan, Produced)> {
    let indexes = work.join("indexes");
    let inspection = inspect_with(source, &indexes)?;
    let plan = plan_with(&inspection, &work.join("out.h5"), change)?;
    let produced = run(&inspection, &plan, &indexes)?;
    Ok((inspection, plan, produced))
}

/// Manifest text of a pack.
fn manifest(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let n = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    bytes[24..24 + n].to_vec()
}

#[test]
fn every_uint8_fixture_is_packed_as_expected() {
    let Some(packs) = packs(1) else { return };
    for folder in UINT8 {
        let expected = expected(folder);
        let work = oracle::temp_dir();
        let (inspection, plan, produced) = pack(&source(&packs.join(folder)), work.path(), |_| {}).unwrap();
        let i = inspection.to_json();
        assert_eq!(i["sourceIdentitySHA256"], expected["sourceIdentitySHA256"], "{folder}");
        assert_eq!(i["sourceShape"], expected["sourceShape"]);
        assert_eq!(i["badPixelIndices"], expected["badPixelIndices"]);
        assert_eq!(i["badPixelIdentitySHA256"], expected["badPixelIdentitySHA256"]);
        assert_eq!(i["detectorMaskIdentitySHA256"], expected["detectorMaskSHA256"]);
        assert_eq!(i["maximumCompressedBlockBytes"], expected["maximumCompressedBlockBytes"]);
        assert_eq!(i["calibration"]["sha256"], expected["calibrationSHA256"]);
        let p = plan.to_json();
        for (key, value) in expected["plan"].as_object().unwrap() {
            let known = match key.as_str() {
                "checkpointWords" => json!(plan.cut.checkpoint_words()),
                "widthWords" => json!(plan.cut.width_words()),
                // These contain the length of paths and the bytes of indexes, which differ here.
                "predictedPeakTransientBytes"
                | "predictedReceiptFileMaximumBytes"
                | "predictedOutputDiskMaximumBytes" => continue,
                "predictedPeakTransientBytes_withoutIndexAndBlock" => json!(
                    plan.predicted_peak_transient_bytes
                        - inspection.prepared_index_bytes
                        - inspection.maximum_compressed_block_bytes
                ),
                _ => p[key].clone(),
            };
            assert_eq!(known, *value, "{folder}: {key}");
        }
        let r: Value = serde_json::from_slice(&std::fs::read(&produced.receipt_path).unwrap()).unwrap();
        for key in [
            "sourceRawLogicalSHA256",
            "workingLogicalSHA256",
            "badPixelRawValues",
            "observedPackedResidentBytes",
        ] {
            assert_eq!(r[key], expected[key], "{folder}: {key}");
        }
        // Of many shards the first and the last are listed, and a hash of all payload hashes.
        for shard in expected["shards"].as_array().unwrap() {
            let ordinal = shard["ordinal"].as_u64().unwrap() as usize;
            assert_eq!(r["shards"][ordinal], *shard, "{folder}");
        }
        let hashes: String = produced.receipt.shards.iter().map(|s| s.payload_sha256.to_string()).collect();
        assert_eq!(
            json!(Sha256Sum::of(hashes.as_bytes())),
            expected["allShardsSHA256OfConcatenatedPayloadHashes"]
        );
        let text = manifest(&plan.destination);
        assert_eq!(json!(Sha256Sum::of(&text)), expected["manifestSHA256"], "{folder}");
        let v = verify(
            &plan.destination,
            &VerifyOptions { source: Some(source(&packs.join(folder))), ..VerifyOptions::default() },
            &Quiet,
        )
        .unwrap();
        assert!(v.is_proven() && v.receipt_checked && v.source_checked, "{folder}: {:?}", v.findings);
        check_indexes(&inspection, &expected);
    }
}

/// The words of the prepared indexes equal the fixture's.
fn check_indexes(inspection: &Inspection, expected: &Value) {
    let listed = expected["qh5"].as_array().unwrap();
    assert_eq!(listed.len(), inspection.index_files.len());
    for (path, expected) in inspection.index_files.iter().zip(listed) {
        let bytes = std::fs::read(path).unwrap();
        let json_bytes = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        let words = &bytes[16 + json_bytes.next_multiple_of(4)..];
        assert_eq!(json!(Sha256Sum::of(words)), expected["wordsSHA256"], "{}", path.display());
        assert_eq!(json!(path.file_name().unwrap().to_str()), expected["file"]);
    }
}

/// Everything of a pack that does not depend on paths and times.
fn comparable(plan: &Plan) -> Vec<u8> {
    std::fs::read(&plan.destination).unwrap()
}

#[test]
fn workers_and_passes_change_no_byte() {
    let Some(packs) = packs(1) else { return };
    for (folder, profile) in [
        ("multishard", Profile::ExactUint8BitPacked),
        ("ext_96x96", Profile::ExactUint8BitPacked),
        ("uint16_lz4", Profile::ExactUint16Lz4),
    ] {
        let mut first: Option<Vec<u8>> = None;
        for threads in [1, 2, 3] {
            for single in [true, false] {
                let work = oracle::temp_dir();
                let indexes = work.path().join("indexes");
                let inspection = inspect_with(&source(&packs.join(folder)), &indexes).unwrap();
                let destination = work.path().join("out.h5");
                let change = |memory| {
                    move |o: &mut PlanOptions| {
                        o.threads = Threads::new(threads);
                        o.profile = profile;
                        o.memory = memory;
                    }
                };
                let roomy = plan_with(&inspection, &destination, change(1 << 30)).unwrap();
                let tight = roomy.planned_peak_transient_bytes - u64::from(!single);
                let plan = plan_with(&inspection, &destination, change(tight)).unwrap();
                assert_eq!(plan.passes, if single { 1 } else { 2 });
                assert_eq!(plan.workers, threads);
                run(&inspection, &plan, &indexes).unwrap();
                let bytes = comparable(&plan);
                assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{folder}: {threads} {single}");
            }
        }
    }
}

#[test]
fn what_is_held_never_exceeds_the_plan() {
    let Some(packs) = packs(1) else { return };
    for folder in ["family", "multishard", "prime"] {
        for (threads, less) in [(1, 0), (2, 0), (2, 1), (3, 0)] {
            let work = oracle::temp_dir();
            let indexes = work.path().join("indexes");
            let inspection = inspect_with(&source(&packs.join(folder)), &indexes).unwrap();
            let destination = work.path().join("out.h5");
            let set = |o: &mut PlanOptions| o.threads = Threads::new(threads);
            let most = plan_with(&inspection, &destination, set).unwrap().planned_peak_transient_bytes;
            let plan = plan_with(&inspection, &destination, |o| {
                set(o);
                o.memory = most - less;
            })
            .unwrap();
            let produced = run(&inspection, &plan, &indexes).unwrap();
            assert!(
                produced.peak_bytes <= plan.planned_peak_transient_bytes,
                "{folder}, {threads} threads: {} of {}",
                produced.peak_bytes,
                plan.planned_peak_transient_bytes
            );
            let size = std::fs::metadata(&plan.destination).unwrap().len();
            assert!(size <= plan.predicted_output_file_maximum_bytes);
        }
    }
}

#[test]
fn every_bad_input_fails_as_described_and_leaves_no_file() {
    let Some(packs) = packs(1) else { return };
    let bad = packs.join("bad_inputs");
    let cases: [(&str, ErrorKind, &[&str]); 15] = [
        ("value_256.h5", ErrorKind::Unsupported, &["pixel 77", "scan 20", "value 256"]),
        ("nonconstant_excluded.h5", ErrorKind::Unsupported, &["pixel 66", "not constant"]),
        ("scans_36.h5", ErrorKind::InvalidArgument, &["36", "multiple of 32"]),
        ("gzip_filter.h5", ErrorKind::Unsupported, &["not bitshuffle/LZ4"]),
        ("no_filter.h5", ErrorKind::Unsupported, &["not bitshuffle/LZ4"]),
        ("chunk_two_frames.h5", ErrorKind::Unsupported, &["one frame per chunk"]),
        ("uint32.h5", ErrorKind::Unsupported, &["uint32", "uint16"]),
        ("uint8.h5", ErrorKind::Unsupported, &["uint8", "uint16"]),
        ("int16.h5", ErrorKind::Unsupported, &["int16", "uint16"]),
        ("corrupt_block.h5", ErrorKind::Corrupt, &["frame 5"]),
        ("truncated_file.h5", ErrorKind::Corrupt, &[]),
        ("all_pixels_excluded.h5", ErrorKind::InvalidArgument, &["complete detector"]),
        ("mask_wrong_shape.h5", ErrorKind::InvalidArgument, &["pixel_mask", "[32, 64]", "64 x 64"]),
        ("missing_member/q_master.h5", ErrorKind::NotFound, &["q_data_000001.h5"]),
        ("frame_count_mismatch/r_master.h5", ErrorKind::InvalidArgument, &["32 frames", "64"]),
    ];
    for (name, kind, words) in cases {
        for threads in [1, 2] {
            let work = oracle::temp_dir();
            let result = pack(&bad.join(name), work.path(), |o| o.threads = Threads::new(threads));
            let e = result.map(|_| ()).unwrap_err();
            assert_eq!(e.kind(), kind, "{name}: {e}");
            for word in words {
                assert!(e.message().contains(word), "{name}: {e}");
            }
            assert!(e.file().is_some() || name == "scans_36.h5", "{name}: {e}");
            left_nothing(work.path(), name);
        }
    }
}

fn left_nothing(folder: &Path, name: &str) {
    let left: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .filter(|n| n != "indexes")
        .collect();
    assert!(left.is_empty(), "{name} left {left:?}");
}

#[test]
fn upstream_files_are_inspected_and_refused_for_the_stated_reason() {
    let Some(packs) = packs(1) else { return };
    let upstream = packs.join("upstream");
    let work = oracle::temp_dir();
    let inspection = inspect_with(&upstream.join("qgpu_fixture_master.h5"), work.path()).unwrap();
    assert_eq!(inspection.geometry.shape(), [1, 1, 64, 64]);
    let e = plan_with(&inspection, &work.path().join("o.h5"), |_| {}).unwrap_err();
    assert!(e.message().contains("multiple of 32"), "{e}");
    let inspection = inspect_with(&upstream.join("qgpu_fixture_u8_data_000001.h5"), work.path()).unwrap();
    let e = plan_with(&inspection, &work.path().join("o.h5"), |_| {}).unwrap_err();
    assert!(e.message().contains("uint8"), "{e}");
}

#[test]
fn an_lz4_pack_keeps_excluded_pixels_that_are_not_constant() {
    let Some(packs) = packs(1) else { return };
    let expected = expected("uint16_lz4");
    let work = oracle::temp_dir();
    let lz4 = |o: &mut PlanOptions| o.profile = Profile::ExactUint16Lz4;
    let (_, plan, produced) = pack(&source(&packs.join("uint16_lz4")), work.path(), lz4).unwrap();
    let r = serde_json::to_value(&produced.receipt).unwrap();
    assert_eq!(r["sourceRawLogicalSHA256"], expected["sourceRawLogicalSHA256"]);
    assert_eq!(r["workingLogicalSHA256"], expected["workingLogicalSHA256"]);
    let v = verify(&plan.destination, &VerifyOptions::default(), &Quiet).unwrap();
    assert!(v.is_proven() && v.receipt_checked, "{:?}", v.findings);
    // The same file in uint8 is refused and names the profile that takes it.
    let other = oracle::temp_dir();
    let e: Error = pack(&source(&packs.join("uint16_lz4")), other.path(), |_| {}).map(|_| ()).unwrap_err();
    assert!(e.hint_text().unwrap().contains("exact-uint16-lz4"), "{e:?}");
}
