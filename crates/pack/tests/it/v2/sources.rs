//! Every source of the fixtures that is a stack of counts packs, verifies, and unpacks to the same bytes as h5py reads.

use super::stacks::{Stack, inspected, packed};
use crate::fixtures::packs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::SystemDisk;
use tensilo_core::{ErrorKind, Quiet};
use tensilo_pack::Sha256Sum;
use tensilo_pack::read::Values;
use tensilo_pack::v2::counts::CountType;
use tensilo_pack::v2::read::Pack;
use tensilo_pack::v2::verify::{VerifyOptions, verify};
use tensilo_testkit::oracle;

/// Sources, and the data files that h5py reads for each.
const SOURCES: [(&str, &[&str]); 18] = [
    ("mini/native_lossless_pack_v1_source.h5", &["mini/native_lossless_pack_v1_source.h5"]),
    (
        "family/scan_master.h5",
        &["family/scan_data_000001.h5", "family/scan_data_000002.h5", "family/scan_data_000003.h5"],
    ),
    (
        "multishard/wide_master.h5",
        &[
            "multishard/wide_data_000001.h5",
            "multishard/wide_data_000002.h5",
            "multishard/wide_data_000003.h5",
            "multishard/wide_data_000004.h5",
            "multishard/wide_data_000005.h5",
        ],
    ),
    ("prime/prime_master.h5", &["prime/prime_data_000001.h5"]),
    ("allzero/z.h5", &["allzero/z.h5"]),
    ("ext_96x96/s_master.h5", &["ext_96x96/s_data_000001.h5"]),
    ("uint16_enc2/u16.h5", &["uint16_enc2/u16.h5"]),
    ("uint16_lz4/u16b.h5", &["uint16_lz4/u16b.h5"]),
    ("bad_inputs/value_256.h5", &["bad_inputs/value_256.h5"]),
    ("bad_inputs/nonconstant_excluded.h5", &["bad_inputs/nonconstant_excluded.h5"]),
    ("bad_inputs/all_pixels_excluded.h5", &["bad_inputs/all_pixels_excluded.h5"]),
    ("bad_inputs/scans_36.h5", &["bad_inputs/scans_36.h5"]),
    ("bad_inputs/gzip_filter.h5", &["bad_inputs/gzip_filter.h5"]),
    ("bad_inputs/no_filter.h5", &["bad_inputs/no_filter.h5"]),
    ("bad_inputs/chunk_two_frames.h5", &["bad_inputs/chunk_two_frames.h5"]),
    ("bad_inputs/uint32.h5", &["bad_inputs/uint32.h5"]),
    ("bad_inputs/uint8.h5", &["bad_inputs/uint8.h5"]),
    ("bad_inputs/int16.h5", &["bad_inputs/int16.h5"]),
];

const UPSTREAM: [(&str, &[&str]); 2] = [
    ("upstream/qgpu_fixture_master.h5", &["upstream/qgpu_fixture_data_000001.h5"]),
    ("upstream/qgpu_fixture_u8_data_000001.h5", &["upstream/qgpu_fixture_u8_data_000001.h5"]),
];

/// What h5py reads of each file: type, and SHA-256 of the counts in C order, little-endian.
const READ: &str = r#"
import sys, json, hashlib, h5py, hdf5plugin
out = {}
for arg in sys.argv[1:]:
    h, dtype = hashlib.sha256(), None
    for path in arg.split("|"):
        with h5py.File(path, "r") as f:
            a = f["entry/data/data"][...]
            dtype = a.dtype.name
            h.update(a.astype(a.dtype.newbyteorder("<")).tobytes())
    out[arg] = [dtype, h.hexdigest()]
print(json.dumps(out))
"#;

fn h5py_reads(folder: &Path) -> Vec<(PathBuf, String, String)> {
    let all = || SOURCES.iter().chain(&UPSTREAM);
    let joined = |members: &[&str]| {
        members.iter().map(|m| folder.join(m).display().to_string()).collect::<Vec<_>>().join("|")
    };
    let args: Vec<String> = all().map(|(_, members)| joined(members)).collect();
    let text = oracle::python_stdout(READ, &args, b"");
    let found: BTreeMap<String, (String, String)> = serde_json::from_slice(&text).unwrap();
    all()
        .map(|(source, members)| {
            let (dtype, sum) = found[&joined(members)].clone();
            (folder.join(source), dtype, sum)
        })
        .collect()
}

#[test]
fn every_valid_source_packs_verifies_and_unpacks_to_what_h5py_reads() {
    let Some(folder) = packs(1) else { return };
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    for (source, dtype, sum) in h5py_reads(&folder) {
        let name = source.display();
        let dir = oracle::temp_dir();
        let out = dir.path().join("out.h5");
        let made = packed(&source, 2, &out, 2).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(made.receipt.source_raw_logical_sha256.to_string(), sum, "{name}");
        let options = VerifyOptions { deep: true, source: Some(source.clone()), ..VerifyOptions::default() };
        let v = verify(&out, &options, &Quiet).unwrap();
        assert_eq!(v.findings, [], "{name}");
        assert!(v.deep && v.receipt_checked && v.source_checked);
        let pack = Pack::open(&out).unwrap();
        assert_eq!(pack.layout().counts().name(), dtype, "{name}");
        let mut bytes = Vec::new();
        let exported = pack
            .export(Values::Raw, &Quiet, &mut |frames| {
                bytes.extend_from_slice(frames);
                Ok(())
            })
            .unwrap();
        assert_eq!(exported.sha256.to_string(), sum, "{name}");
        assert_eq!(Sha256Sum::of(&bytes).to_string(), sum, "{name}");
        // As HDF5 of the source's layout, it is the same acquisition again, mask codes and all.
        let again = dir.path().join("again.h5");
        pack.export_hdf5(Arc::new(SystemDisk), &again, Values::Raw, false, &Quiet).unwrap();
        let (was, is) = (inspected(&source, 2).unwrap(), inspected(&again, 2).unwrap());
        assert_eq!((was.shape(), was.counts, was.mask), (is.shape(), is.counts, is.mask), "{name}");
    }
}

#[test]
fn what_is_no_stack_of_counts_is_refused() {
    let Some(folder) = packs(1) else { return };
    let folder = folder.join("bad_inputs");
    for (file, kind) in [
        ("truncated_file.h5", ErrorKind::Corrupt),
        ("mask_wrong_shape.h5", ErrorKind::InvalidArgument),
        ("missing_member/q_master.h5", ErrorKind::NotFound),
        ("frame_count_mismatch/r_master.h5", ErrorKind::InvalidArgument),
    ] {
        assert_eq!(inspected(&folder.join(file), 2).unwrap_err().kind(), kind, "{file}");
    }
    let dir = oracle::temp_dir();
    let out = dir.path().join("out.h5");
    let e = packed(&folder.join("corrupt_block.h5"), 2, &out, 2).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    assert!(!out.exists());
    let frames = Stack::of(&[2], &[2], CountType::new(1, false).unwrap(), |i| i as i64).npy(dir.path());
    packed(&frames, 1, &out, 1).unwrap();
    let e = inspected(&out, 2).unwrap_err();
    assert!(e.message().contains("a pack of format 2 already"), "{e}");
}

/// What a person finds in a pack with h5py.
const BROWSE: &str = r#"
import sys, json, h5py
MASK = "entry/instrument/detector/detectorSpecific/pixel_mask"
with h5py.File(sys.argv[1], "r") as f, h5py.File(sys.argv[2], "r") as m:
    g = f["tensilo_pack"]
    p = f["provenance"]
    print(json.dumps({
        "userblock": f.userblock_size,
        "format": g.attrs["format"].decode(),
        "version": int(g.attrs["format_version"]),
        "scan": g.attrs["scan_shape"].tolist(),
        "detector": g.attrs["detector_shape"].tolist(),
        "dtype": g.attrs["dtype"].decode(),
        "sha": g.attrs["logical_sha256"].decode(),
        "payload": [g["payload"].id.get_offset(), len(g["payload"]), g["payload"].dtype.str],
        "index": [g["index"].id.get_offset(), len(g["index"])],
        "excluded": f["mask/excluded"][...].tolist(),
        "codes": bool((f["mask/codes"][...] == m[MASK][...]).all()),
        "rows": float(f["calibration"].attrs["scan_row_sampling_nm"]),
        "unit": f["calibration"].attrs["detector_sampling_unit"].decode(),
        "members": [n.decode() for n in p["member_names"][...]],
        "frames": p["member_frames"][...].tolist(),
    }))
"#;

#[test]
fn h5py_opens_a_pack_and_finds_shape_mask_calibration_and_provenance() {
    let Some(folder) = packs(1) else { return };
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let dir = oracle::temp_dir();
    let out = dir.path().join("out.h5");
    let made = packed(&folder.join("family/scan_master.h5"), 2, &out, 2).unwrap();
    let pack = Pack::open(&out).unwrap();
    let text = oracle::python_stdout(BROWSE, [&out, &folder.join("family/scan_master.h5")], b"");
    let found: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let p = pack.preamble();
    let expected = serde_json::json!({
        "userblock": 512,
        "format": "tensilo pack",
        "version": 2,
        "scan": [12, 16],
        "detector": [192, 192],
        "dtype": "uint16",
        "sha": made.receipt.source_raw_logical_sha256.to_string(),
        "payload": [p.payload.offset, p.payload.bytes, "|u1"],
        "index": [p.index.offset, p.index.bytes],
        "excluded": pack.excluded(),
        "codes": true,
        "rows": 0.25,
        "unit": "mrad",
        "members": ["scan_master.h5", "scan_data_000001.h5", "scan_data_000002.h5", "scan_data_000003.h5"],
        "frames": [70, 70, 52],
    });
    assert_eq!(found, expected);
}
