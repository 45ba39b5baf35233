//! Packs become plain counts again: the source's, exactly, or nothing.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::fixtures::{expected, packs};
use std::sync::Arc;
use tensilo_core::io::SystemDisk;
use tensilo_core::{CancelFlag, ErrorKind, Quiet};
use tensilo_pack::digest::Sha256Sum;
use tensilo_pack::read::{Pack, Values};
use tensilo_pack::source::inspect::{InspectOptions, inspect};
use tensilo_testkit::oracle;

const ALL: [&str; 8] =
    ["mini", "family", "multishard", "prime", "allzero", "ext_96x96", "uint16_enc2", "uint16_lz4"];

#[test]
fn exported_counts_hash_as_expected_in_every_flavour() {
    let Some(folder) = packs(1) else { return };
    for name in ALL {
        let e = expected(name);
        let pack = Pack::open(folder.join(name).join("cache.h5")).unwrap();
        let mut bytes = Vec::new();
        let exported = pack
            .export(Values::Raw, &Quiet, &mut |frames| {
                assert!(frames.len().is_multiple_of(pack.geometry().pixels() as usize));
                bytes.extend(frames.iter().flat_map(|v| v.to_le_bytes()));
                Ok(())
            })
            .unwrap();
        assert_eq!(exported.sha256.to_string(), e["sourceRawLogicalSHA256"], "{name}");
        assert_eq!(Sha256Sum::of(&bytes), exported.sha256, "{name}");
        assert_eq!(bytes.len() as u128, pack.geometry().logical_bytes(), "{name}");
        assert!(exported.proven, "{name}");
        let working = pack.export(Values::Masked, &Quiet, &mut |_| Ok(())).unwrap();
        assert_eq!(working.sha256.to_string(), e["workingLogicalSHA256"], "{name}");
    }
}

#[test]
fn a_file_of_the_sources_layout_is_inspected_as_the_same_acquisition() {
    let Some(folder) = packs(1) else { return };
    for name in ["mini", "family", "uint16_lz4"] {
        let temp = oracle::temp_dir();
        let path = temp.path().join("again.h5");
        let pack = Pack::open(folder.join(name).join("cache.h5")).unwrap();
        pack.export_hdf5(Arc::new(SystemDisk), &path, Values::Raw, false, &Quiet).unwrap();
        let options =
            InspectOptions { index_dir: Some(temp.path().join("index")), ..InspectOptions::default() };
        let i = inspect(&path, &options, &Quiet).unwrap();
        assert_eq!(i.geometry.shape(), pack.shape(), "{name}");
        assert_eq!(i.excluded, pack.excluded(), "{name}");
        let e = pack.export_hdf5(Arc::new(SystemDisk), &path, Values::Raw, false, &Quiet).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{name}");
    }
}

#[test]
fn a_cancelled_export_leaves_no_file() {
    let Some(folder) = packs(1) else { return };
    let temp = oracle::temp_dir();
    let pack = Pack::open(folder.join("multishard/cache.h5")).unwrap();
    let cancel = CancelFlag::new();
    cancel.cancel();
    let path = temp.path().join("again.h5");
    let e = pack.export_hdf5(Arc::new(SystemDisk), &path, Values::Raw, false, &cancel).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Cancelled);
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn counts_that_are_not_what_the_manifest_states_end_in_an_error() {
    let Some(folder) = packs(1) else { return };
    // The stated hash is changed, and the manifest's checksum with it.
    let mut bytes = std::fs::read(folder.join("mini/cache.h5")).unwrap();
    let stated = expected("mini")["sourceRawLogicalSHA256"].as_str().unwrap().to_owned();
    let at = bytes.windows(64).position(|w| w == stated.as_bytes()).unwrap();
    bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
    let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    let crc = tensilo_testkit::slow_pack::crc32(&bytes[24..24 + length]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    let temp = oracle::temp_dir();
    let path = temp.path().join("changed.h5");
    std::fs::write(&path, bytes).unwrap();
    let pack = Pack::open(&path).unwrap();
    let to = temp.path().join("again.h5");
    let e = pack.export_hdf5(Arc::new(SystemDisk), &to, Values::Raw, false, &Quiet).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
}
