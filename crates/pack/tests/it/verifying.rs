//! Verification proves good packs and rejects altered ones.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::fixtures::{UINT8, expected, packs};
use serde_json::{Value, json};
use std::path::Path;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Quiet};
use tensilo_pack::verify::{Verification, VerifyOptions, verify};
use tensilo_testkit::oracle;

fn without_receipt() -> VerifyOptions {
    VerifyOptions { receipt: false, ..VerifyOptions::default() }
}

fn run(pack: &Path, options: &VerifyOptions) -> Verification {
    verify(pack, options, &Quiet).unwrap()
}

#[test]
fn the_fixtures_own_caches_are_proven_without_and_with_their_receipts() {
    let Some(packs) = packs(1) else { return };
    for folder in UINT8.iter().chain(&["uint16_enc2", "uint16_lz4"]) {
        let pack = packs.join(folder).join("cache.h5");
        let expected = expected(folder);
        for threads in [1, 2, 3] {
            let mut options = without_receipt();
            options.threads = Threads::new(threads);
            let v = run(&pack, &options);
            assert!(v.is_proven(), "{folder}: {:?}", v.findings);
            assert_eq!(json!(v.raw_sha256), expected["sourceRawLogicalSHA256"]);
            assert_eq!(json!(v.working_sha256), expected["workingLogicalSHA256"]);
        }
        if *folder != "uint16_lz4" {
            let dir = oracle::temp_dir();
            let path = dir.path().join("r.json");
            std::fs::write(&path, receipt_of(&packs.join(folder)).to_string()).unwrap();
            let v = run(&pack, &VerifyOptions { receipt_path: Some(path), ..VerifyOptions::default() });
            assert!(v.is_proven() && v.receipt_checked, "{folder}: {:?}", v.findings);
        }
    }
}

/// The receipt of a fixture. Its members' paths were shortened after it was made, so that the numbers which contain
/// their length do not fit; here they do (contract, 5.2).
fn receipt_of(folder: &Path) -> Value {
    let bytes = std::fs::read(folder.join("cache.h5.receipt.json")).unwrap();
    let mut receipt: Value = serde_json::from_slice(&bytes).unwrap();
    let members = receipt["sourceMembers"].as_array().unwrap();
    let paths: usize = members.iter().map(|m| m["path"].as_str().unwrap().len()).sum();
    let shards = receipt["shardCount"].as_u64().unwrap();
    let maximum = (1 << 20) + 1024 * shards + 1024 * members.len() as u64 + paths as u64;
    receipt["predictedReceiptFileMaximumBytes"] = json!(maximum);
    let file = receipt["predictedOutputFileMaximumBytes"].as_u64().unwrap();
    receipt["predictedOutputDiskMaximumBytes"] = json!(maximum + file);
    receipt
}

#[test]
fn every_tampered_cache_is_rejected() {
    let Some(packs) = packs(1) else { return };
    let mut rejected = Vec::new();
    for entry in std::fs::read_dir(packs.join("tampered_caches")).unwrap() {
        let path = entry.unwrap().path();
        let v = run(&path, &without_receipt());
        assert!(!v.is_proven(), "{} is believed", path.display());
        rejected.push(format!("{}: {}", path.file_name().unwrap().display(), v.findings[0].message));
    }
    rejected.sort();
    assert_eq!(rejected.len(), 11, "{rejected:#?}");
}

#[test]
fn a_pack_without_a_receipt_does_not_count_as_published() {
    let Some(packs) = packs(1) else { return };
    let dir = oracle::temp_dir();
    let pack = dir.path().join("cache.h5");
    std::fs::copy(packs.join("mini/cache.h5"), &pack).unwrap();
    let v = run(&pack, &VerifyOptions::default());
    assert_eq!(v.findings.len(), 1);
    assert!(v.findings[0].message.contains("there is no receipt"), "{:?}", v.findings);
    let e = verify(&dir.path().join("none.h5"), &VerifyOptions::default(), &Quiet).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
}

#[test]
fn the_source_is_hashed_again_on_demand() {
    let Some(packs) = packs(1) else { return };
    for (folder, source) in [("mini", "native_lossless_pack_v1_source.h5"), ("family", "scan_master.h5")] {
        let mut options =
            VerifyOptions { source: Some(packs.join(folder).join(source)), ..without_receipt() };
        let v = run(&packs.join(folder).join("cache.h5"), &options);
        assert!(v.is_proven() && v.source_checked, "{folder}: {:?}", v.findings);
        options.source = Some(packs.join("allzero/z.h5"));
        let v = run(&packs.join(folder).join("cache.h5"), &options);
        assert!(v.findings.iter().any(|f| f.subject == "source"), "another source is noticed");
    }
}

/// Every leaf of a JSON value, by its path.
fn leaves(value: &Value, path: String, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| leaves(v, format!("{path}/{k}"), all)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, v)| leaves(v, format!("{path}/{i}"), all))
        }
        _ => all.push(path),
    }
}

fn altered(value: &Value) -> Value {
    match value {
        Value::Bool(b) => json!(!b),
        Value::Number(n) if n.is_u64() => json!(n.as_u64().unwrap() ^ 1),
        Value::Number(n) => json!(n.as_f64().unwrap() * 1.5),
        Value::String(s) => {
            // One character changes; hexadecimal digits stay such.
            let mut bytes = s.clone().into_bytes();
            let at = bytes.len() - 4;
            bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
            json!(String::from_utf8(bytes).unwrap())
        }
        _ => json!(1),
    }
}

#[test]
fn every_altered_receipt_field_is_noticed_but_timing_time_and_destination() {
    let Some(packs) = packs(1) else { return };
    let dir = oracle::temp_dir();
    for (folder, source) in [("mini", "native_lossless_pack_v1_source.h5"), ("ext_96x96", "s_master.h5")] {
        let pack = packs.join(folder).join("cache.h5");
        let receipt = receipt_of(&packs.join(folder));
        let path = dir.path().join("receipt.json");
        let proven = |receipt: &Value| {
            std::fs::write(&path, receipt.to_string()).unwrap();
            let options = VerifyOptions {
                receipt_path: Some(path.clone()),
                source: Some(packs.join(folder).join(source)),
                ..VerifyOptions::default()
            };
            run(&pack, &options).is_proven()
        };
        assert!(proven(&receipt));
        let (mut all, mut noticed) = (Vec::new(), 0);
        leaves(&receipt, String::new(), &mut all);
        for leaf in &all {
            let mut changed = receipt.clone();
            let value = changed.pointer_mut(leaf).unwrap();
            *value = altered(value);
            let free = leaf.starts_with("/timing/") || leaf == "/completedUTC" || leaf == "/destination";
            assert_eq!(proven(&changed), free, "{folder}: {leaf}");
            noticed += usize::from(!free);
        }
        for key in receipt.as_object().unwrap().keys() {
            let mut changed = receipt.clone();
            changed.as_object_mut().unwrap().remove(key);
            assert!(!proven(&changed), "{folder}: {key} is missing");
        }
        assert!(noticed > 45, "{noticed} fields");
    }
}
