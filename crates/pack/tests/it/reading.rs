//! Packs of every flavour are read as their sources are; what is wrong is refused.

use crate::fixtures::{UINT8, expected, packs};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::MemorySource;
use tensilo_core::{CancelFlag, ErrorKind, Limits, Quiet};
use tensilo_pack::Sha256Sum;
use tensilo_pack::read::{Pack, ReadOptions, Region, Values};
use tensilo_testkit::slow_pack::{self, SlowPack};

const ALL: [&str; 8] =
    ["mini", "family", "multishard", "prime", "allzero", "ext_96x96", "uint16_enc2", "uint16_lz4"];

fn bytes_of(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn slow(path: &Path) -> SlowPack {
    slow_pack::decode(&std::fs::read(path).unwrap()).unwrap()
}

fn open_bytes(bytes: Vec<u8>) -> tensilo_core::Result<Pack> {
    Pack::from_source(Arc::new(MemorySource::new(bytes)), ReadOptions::default())
}

/// Reads everything in both ways, and returns raw and working values.
fn everything(pack: &Pack) -> [Vec<u16>; 2] {
    let n = (pack.geometry().scans() * pack.geometry().pixels()) as usize;
    [Values::Raw, Values::Masked].map(|values| {
        let mut all = vec![7; n];
        pack.frames_into(0..pack.geometry().scans(), values, &mut all, &Quiet).unwrap();
        all
    })
}

#[test]
fn raw_and_working_values_of_every_flavour_hash_as_expected() {
    let Some(folder) = packs(1) else { return };
    for name in ALL {
        let pack = Pack::open(folder.join(name).join("cache.h5")).unwrap();
        let e = expected(name);
        assert_eq!(json!(pack.shape()), e["sourceShape"], "{name}");
        let [raw, working] = everything(&pack);
        let sum = |bytes: &[u8]| json!(Sha256Sum::of(bytes).to_string());
        assert_eq!(sum(&bytes_of(&raw)), e["sourceRawLogicalSHA256"], "{name}: raw");
        let working = if UINT8.contains(&name) {
            working.iter().map(|v| u8::try_from(*v).unwrap()).collect()
        } else {
            bytes_of(&working)
        };
        assert_eq!(sum(&working), e["workingLogicalSHA256"], "{name}: working");
    }
}

#[test]
fn every_value_is_what_the_bit_by_bit_decoder_reads() {
    let Some(folder) = packs(1) else { return };
    for name in ["mini", "uint16_enc2", "uint16_lz4", "allzero"] {
        let path = folder.join(name).join("cache.h5");
        let (pack, slow) = (Pack::open(&path).unwrap(), slow(&path));
        let [raw, working] = everything(&pack);
        assert_eq!(raw, *slow.raw.as_ref().unwrap(), "{name}");
        assert_eq!(working, slow.working, "{name}");
        let p = pack.geometry().pixels();
        let mut at = 0;
        // A stride prime to the shape visits scans, tiles and excluded pixels.
        while at < raw.len() as u64 {
            let (scan, pixel) = (at / p, at % p);
            assert_eq!(pack.value(scan, pixel).unwrap(), slow.working[at as usize], "{name} {scan} {pixel}");
            assert_eq!(pack.raw_value(scan, pixel).unwrap(), raw[at as usize], "{name} {scan} {pixel}");
            at += 1009;
        }
        for pixel in pack.excluded() {
            let scan = pack.geometry().scans() - 1;
            let at = (scan * p + u64::from(*pixel)) as usize;
            assert_eq!(pack.value(scan, (*pixel).into()).unwrap(), 0);
            assert_eq!(pack.raw_value(scan, (*pixel).into()).unwrap(), raw[at]);
        }
        for scan in [0, 1, pack.geometry().scans() / 2, pack.geometry().scans() - 1] {
            let at = (scan * p) as usize..((scan + 1) * p) as usize;
            assert_eq!(pack.frame(scan).unwrap(), working[at.clone()], "{name}: frame {scan}");
            assert_eq!(pack.raw_frame(scan).unwrap(), raw[at], "{name}: raw frame {scan}");
        }
    }
}

#[test]
fn regions_are_cut_out_of_the_four_axes() {
    let Some(folder) = packs(1) else { return };
    for name in ["mini", "multishard", "uint16_lz4"] {
        let pack = Pack::open(folder.join(name).join("cache.h5")).unwrap();
        let [raw, working] = everything(&pack);
        let [rows, columns, dr, dc] = pack.shape();
        let regions = [
            Region::all(pack.shape()).scans(1..3, 2..5),
            Region::all(pack.shape()).detector(3..9, 0..dc).scans(0..rows, columns - 1..columns),
            Region::all(pack.shape()).detector(dr - 1..dr, 5..7),
            Region::all(pack.shape()).detector(4..4, 5..7),
        ];
        for region in regions {
            let mut expected = [Vec::new(), Vec::new()];
            for sr in region.scan_rows.clone() {
                for sc in region.scan_columns.clone() {
                    for r in region.detector_rows.clone() {
                        for c in region.detector_columns.clone() {
                            let at = (((sr * columns + sc) * dr + r) * dc + c) as usize;
                            expected[0].push(raw[at]);
                            expected[1].push(working[at]);
                        }
                    }
                }
            }
            assert_eq!(pack.raw_region(&region).unwrap(), expected[0], "{name} {region:?}");
            assert_eq!(pack.region(&region).unwrap(), expected[1], "{name} {region:?}");
        }
        for wrong in [
            Region::all(pack.shape()).scans(0..rows + 1, 0..1),
            Region::all(pack.shape()).detector(0..1, dc..dc + 1),
        ] {
            assert_eq!(pack.region(&wrong).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        assert_eq!(pack.frame(pack.geometry().scans()).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(pack.value(0, pack.geometry().pixels()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn tampered_packs_are_refused() {
    let Some(folder) = packs(1) else { return };
    let mut refused = 0;
    for entry in std::fs::read_dir(folder.join("tampered_caches")).unwrap() {
        let path = entry.unwrap().path();
        let e = Pack::open(&path).and_then(|p| p.resident(&Quiet)).expect_err(&format!("{path:?}"));
        assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{path:?}: {e}");
        assert_eq!(e.file(), Some(path.as_path()), "{e}");
        refused += 1;
    }
    assert_eq!(refused, 11);
}

#[test]
fn a_resident_pack_reads_the_same_and_a_stopped_load_leaves_nothing() {
    let Some(folder) = packs(1) else { return };
    let path = folder.join("prime/cache.h5");
    let pack = Pack::open(&path).unwrap();
    let before = pack.budget().used();
    let flag = CancelFlag::new();
    let stop = |p: &tensilo_core::Progress| {
        if p.done > 0 {
            flag.cancel();
        }
        tensilo_core::Monitor::poll(&flag, p)
    };
    let e = pack.resident(&stop).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Cancelled);
    assert_eq!(pack.budget().used(), before, "a stopped load gives everything back");
    assert!(!pack.is_resident());
    let resident = pack.resident(&Quiet).unwrap();
    assert!(resident.is_resident() && pack.budget().used() > before);
    assert_eq!(resident.frame(4000).unwrap(), pack.frame(4000).unwrap());
    // One damaged shard: nothing is published.
    let mut bytes = std::fs::read(&path).unwrap();
    let record = &pack.index().shards[130];
    bytes[record.payload.offset as usize + 5] ^= 1;
    let damaged = open_bytes(bytes).unwrap();
    let before = damaged.budget().used();
    let e = damaged.resident(&Quiet).unwrap_err();
    assert_eq!((e.kind(), e.object()), (ErrorKind::Corrupt, Some("/quantem_gpu/shards/130")));
    assert_eq!(damaged.budget().used(), before);
    assert!(damaged.frame(0).is_ok(), "the other shards can still be read");
}

#[test]
fn memory_that_is_not_allowed_is_not_taken() {
    let Some(folder) = packs(1) else { return };
    for name in ["mini", "uint16_lz4"] {
        let options = ReadOptions { limits: Limits::default().with_bytes(100_000), ..ReadOptions::default() };
        let pack = Pack::open_with(folder.join(name).join("cache.h5"), options).unwrap();
        assert_eq!(pack.frame(0).unwrap_err().kind(), ErrorKind::Limit, "{name}");
        assert_eq!(pack.budget().used(), 0);
    }
}

/// The pack with its manifest changed; `more` is put at the end of the file.
fn with_manifest(path: &Path, more: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    use tensilo_pack::format::prelude::Prelude;
    let mut bytes = std::fs::read(path).unwrap();
    let prelude = Prelude::parse(&bytes, bytes.len() as u64).unwrap();
    let text = &bytes[24..24 + prelude.manifest_bytes as usize];
    let mut json: Value = serde_json::from_slice(text).unwrap();
    change(&mut json);
    let text = json.to_string().into_bytes();
    let index = bytes[prelude.index_offset as usize..prelude.end() as usize].to_vec();
    let prelude = Prelude::for_parts(&text, index.len()).unwrap();
    assert!(prelude.end() <= 65_536);
    bytes[..65_536].fill(0);
    bytes[..24].copy_from_slice(&prelude.encode());
    bytes[24..24 + text.len()].copy_from_slice(&text);
    bytes[prelude.index_offset as usize..][..index.len()].copy_from_slice(&index);
    bytes.extend_from_slice(more);
    bytes
}

#[test]
fn keys_of_other_writers_are_tolerated() {
    let Some(folder) = packs(1) else { return };
    let path = folder.join("prime/cache.h5");
    let bytes = with_manifest(&path, &[], |m| {
        m["bad_pixel_policy"] = json!("preserve_all_source_counts");
        m["source_bad_pixel_indices"] = json!([1, 2]);
        m["scans_per_shard"] = json!(32);
        m["original_packing"] = json!({"kind": "x", "nested": [1, {"deep": true}]});
        m.as_object_mut().unwrap().remove("source_raw_logical_sha256");
    });
    let pack = open_bytes(bytes).unwrap();
    assert_eq!(pack.frame(99).unwrap(), Pack::open(&path).unwrap().frame(99).unwrap());
    assert!(pack.manifest().get("original_packing").is_some());
    let wrong = with_manifest(&path, &[], |m| m["scans_per_shard"] = json!(64));
    assert_eq!(open_bytes(wrong).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn raw_values_need_the_constants_of_excluded_pixels() {
    let Some(folder) = packs(1) else { return };
    let path = folder.join("mini/cache.h5");
    for key in ["masked_detector_raw_values", "masked_detector_pixels_sha256"] {
        let bytes = with_manifest(&path, &[], |m| _ = m.as_object_mut().unwrap().remove(key));
        let pack = open_bytes(bytes).unwrap();
        assert!(!pack.has_raw());
        assert_eq!(pack.raw_frame(0).unwrap_err().kind(), ErrorKind::Unsupported, "{key}");
        assert!(pack.frame(0).is_ok());
    }
}

/// The extension for `mini`, from the bit-by-bit decoder's values: words and manifest object.
fn moments_of_mini(path: &Path, offset: u64) -> (Vec<u8>, Value) {
    let slow = slow(path);
    let (pixels, columns) = (64 * 64, 64);
    let mut words = Vec::new();
    for frame in slow.working.chunks(pixels) {
        let mut sums = [0_u64; 4];
        for (p, v) in frame.iter().enumerate() {
            sums[0] += u64::from(*v);
            sums[1] += u64::from(*v) * (p / columns) as u64;
            sums[2] += u64::from(*v) * (p % columns) as u64;
        }
        words.extend(sums.iter().flat_map(|s| s.to_le_bytes()));
    }
    let pack = Pack::open(path).unwrap();
    // Pixel 196 (row 3, column 4) is excluded.
    let (rows, cols) = (2016 * 64 - 3, 2016 * 64 - 4);
    let object = json!({
        "schema": "quantem.gpu.prepared-dpc-moments/v1",
        "working_uint8_sha256": pack.manifest().working_sha256,
        "source_identity_sha256": pack.index().source_identity,
        "detector_mask_sha256": pack.manifest().mask_sha256,
        "detector_selection": "all-nonexcluded-v1",
        "scan_count": 32, "selected_detector_pixels": 4095, "detector_columns": 64,
        "dtype": "little-endian-u32", "word_order": "little-endian-u32-pairs", "words_per_scan": 8,
        "layout": ["a", "b", "c", "d", "e", "f", "g", "h"],
        "file_offset": offset, "file_bytes": words.len(), "sha256": Sha256Sum::of(&words),
        "total_bound": (255 * 4095).to_string(),
        "row_moment_bound": (255 * rows).to_string(),
        "column_moment_bound": (255 * cols).to_string(),
        "narrow_integer": true, "narrow_products": true,
    });
    (words, object)
}

#[test]
fn prepared_moments_are_read_and_checked() {
    let Some(folder) = packs(1) else { return };
    let path = folder.join("mini/cache.h5");
    let end = std::fs::metadata(&path).unwrap().len();
    let (words, object) = moments_of_mini(&path, end);
    let bytes = with_manifest(&path, &words, |m| m["prepared_dpc_moments"] = object.clone());
    let pack = open_bytes(bytes.clone()).unwrap();
    let [total, row, column] = pack.prepared_moments().unwrap().unwrap();
    let first = |v: &[u64], key: &str| assert_eq!(json!(v[..4]), expected("mini")["products"][key]["first"]);
    first(&total, "total_per_scan");
    first(&row, "detector_row_moment_per_scan");
    first(&column, "detector_column_moment_per_scan");
    let mut damaged = bytes;
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(open_bytes(damaged).unwrap().prepared_moments().unwrap_err().kind(), ErrorKind::Corrupt);
    let wrong = [
        ("schema", json!("quantem.gpu.prepared-dpc-moments/v2")),
        ("scan_count", json!(33)),
        ("total_bound", json!("1044226")),
        ("row_moment_bound", json!(32_900_000)),
        ("narrow_integer", json!(false)),
        ("file_offset", json!(end + 4)),
        ("file_offset", json!(65_536 + 8192)),
        ("file_bytes", json!(1020)),
        ("source_identity_sha256", json!(Sha256Sum::of(b""))),
        ("detector_mask_sha256", json!(Sha256Sum::of(b""))),
        ("working_uint8_sha256", json!(Sha256Sum::of(b""))),
        ("layout", json!(["a"])),
    ];
    for (key, value) in wrong {
        let mut object = object.clone();
        object[key] = value.clone();
        let bytes = with_manifest(&path, &words, |m| m["prepared_dpc_moments"] = object);
        let e = open_bytes(bytes).expect_err(&format!("{key} {value}"));
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{key} {value}: {e}");
    }
}

#[test]
fn detector_calibration_and_prepared_products_are_read_and_checked() {
    let Some(folder) = packs(1) else { return };
    let path = folder.join("mini/cache.h5");
    let end = std::fs::metadata(&path).unwrap().len();
    let identity = json!(Pack::open(&path).unwrap().index().source_identity);
    let calibration = json!({
        "schema": "quantem.gpu.detector-calibration/v1", "source_identity_sha256": identity,
        "detector_center_px": [31.5, 30.25], "bright_field_radius_px": 12.5,
        "dpc_rotation_degrees": -15.0, "dpc_component_order_exchanged": true, "method": "by hand",
    });
    let map = [1_u8, 2, 3, 4];
    let products = json!({"bf": {"map": {
        "file_offset": end, "file_bytes": 4, "sha256": Sha256Sum::of(&map)
    }}});
    let bytes = with_manifest(&path, &map, |m| {
        m["detector_calibration"] = calibration.clone();
        m["prepared_detector_products"] = products.clone();
    });
    let pack = open_bytes(bytes).unwrap();
    let c = pack.manifest().detector_calibration.as_ref().unwrap();
    assert_eq!((c.center_px, c.dpc), ([31.5, 30.25], Some((-15.0, true))));
    let [extension] = pack.products_extension() else { panic!("one range is named") };
    assert_eq!(extension.name, "prepared_detector_products.bf.map");
    assert_eq!(pack.extension_bytes(extension).unwrap(), map);
    for (key, value) in [("detector_center_px", json!([64.0, 0.0])), ("method", json!(""))] {
        let mut wrong = calibration.clone();
        wrong[key] = value;
        let bytes = with_manifest(&path, &[], |m| m["detector_calibration"] = wrong);
        assert_eq!(open_bytes(bytes).unwrap_err().kind(), ErrorKind::Corrupt, "{key}");
    }
    let bytes = with_manifest(&path, &[], |m| m["prepared_detector_products"] = products);
    assert_eq!(open_bytes(bytes).unwrap_err().kind(), ErrorKind::Corrupt, "past the end of the file");
}

#[test]
fn gathered_values_are_those_of_single_reads_in_any_order() {
    let Some(folder) = packs(1) else { return };
    for name in ["multishard", "uint16_enc2", "uint16_lz4", "mini"] {
        let pack = Pack::open(folder.join(name).join("cache.h5")).unwrap();
        let (n, p) = (pack.geometry().scans(), pack.geometry().pixels());
        let scans: Vec<u64> = [0, 5, 6, 40, n - 1, 3, 3].into_iter().map(|s| s % n).collect();
        let pixels: Vec<u32> = [7, 0, p - 1, 196, 3, 7].into_iter().map(|k| (k % p) as u32).collect();
        for values in [Values::Masked, Values::Raw] {
            let mut out = vec![9; scans.len() * pixels.len()];
            pack.gather_into(&scans, &pixels, values, &mut out, &Quiet).unwrap();
            let mut at = out.iter();
            for scan in &scans {
                for pixel in &pixels {
                    let read = if values == Values::Raw { Pack::raw_value } else { Pack::value };
                    let one = read(&pack, *scan, u64::from(*pixel)).unwrap();
                    assert_eq!(*at.next().unwrap(), one, "{name}: scan {scan}, pixel {pixel}");
                }
            }
        }
        for (scans, pixels, len) in
            [(vec![n], vec![0], 1), (vec![0], vec![p as u32], 1), (vec![0], vec![0], 2)]
        {
            let mut out = vec![0; len];
            assert!(pack.gather_into(&scans, &pixels, Values::Masked, &mut out, &Quiet).is_err(), "{name}");
        }
    }
}
