//! Opening files: where the superblock may be, and which files are refused before anything is read.

use super::generated;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::MemorySource;
use tensilo_core::wire::lookup3;
use tensilo_core::{Budget, ErrorKind, Limits, Result};
use tensilo_hdf5::space::{FileSpace, SpaceOptions};
use tensilo_testkit::oracle;

fn open(bytes: Vec<u8>, options: &SpaceOptions) -> Result<FileSpace> {
    FileSpace::open_with(Arc::new(MemorySource::new(bytes)), Budget::default(), options)
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).expect("a generated file")
}

#[test]
fn files_cut_short_are_truncated_and_longer_ones_open() {
    let Some(folder) = generated::folder() else {
        return oracle::skip("Python with h5py and h5digest.py", 1);
    };
    for name in ["everything_earliest.h5", "everything_latest.h5", "userblock_512.h5", "moved_new.h5"] {
        let whole = read(folder, name);
        let mut longer = whole.clone();
        longer.extend([7; 100]);
        assert!(open(longer, &SpaceOptions::default()).is_ok(), "{name} with bytes behind it");
        let e = open(whole[..whole.len() - 1].to_vec(), &SpaceOptions::default()).expect_err(name);
        assert_eq!(e.kind(), ErrorKind::Corrupt);
        assert!(e.message().contains("truncated"), "{e}");
    }
}

#[test]
fn a_file_that_a_writer_has_open_is_locked_unless_flags_are_ignored() {
    let Some(folder) = generated::folder() else {
        return oracle::skip("Python with h5py and h5digest.py", 1);
    };
    let whole = read(folder, "everything_latest.h5");
    assert_eq!(whole[8], 3, "the superblock's version");
    // libhdf5 2.0.0 refuses flags 1, 4 and 5, and opens 2.
    for (flags, locked) in [(0, false), (1, true), (2, false), (4, true), (5, true)] {
        let mut bytes = whole.clone();
        bytes[11] = flags;
        let sum = lookup3(&bytes[..44]).to_le_bytes();
        bytes[44..48].copy_from_slice(&sum);
        let opened = open(bytes.clone(), &SpaceOptions::default());
        assert_eq!(opened.err().map(|e| e.kind()), locked.then_some(ErrorKind::Locked), "flags {flags}");
        let ignoring = SpaceOptions { ignore_flags: true, ..SpaceOptions::default() };
        assert!(open(bytes, &ignoring).is_ok());
    }
}

#[test]
fn every_flipped_bit_of_a_checksummed_superblock_is_noticed() {
    let Some(folder) = generated::folder() else {
        return oracle::skip("Python with h5py and h5digest.py", 1);
    };
    let whole = read(folder, "everything_latest.h5");
    for bit in 0..48 * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(open(bytes, &SpaceOptions::default()).is_err(), "bit {bit}");
    }
}

#[test]
fn addresses_count_from_the_signature_wherever_it_is() {
    let Some(folder) = generated::folder() else {
        return oracle::skip("Python with h5py and h5digest.py", 1);
    };
    for (name, position, stored) in [
        ("userblock_512.h5", 512, 512),
        ("moved.h5", 2048, 0),
        ("moved_new.h5", 512, 0),
        ("moved_block.h5", 2048, 1024),
    ] {
        let space = open(read(folder, name), &SpaceOptions::default()).expect(name);
        assert_eq!((space.base(), space.superblock().stored_base), (position, stored), "{name}");
        assert_eq!(space.user_block(), position);
    }
}

#[test]
fn a_read_past_the_end_is_refused_before_anything_is_allocated() {
    let Some(folder) = generated::folder() else {
        return oracle::skip("Python with h5py and h5digest.py", 1);
    };
    let budget = Budget::new(Limits::default().with_bytes(1 << 20));
    let source = Arc::new(MemorySource::new(read(folder, "everything_latest.h5")));
    let space = FileSpace::open(source, budget.clone()).expect("an open file");
    let before = budget.peak();
    let e = space.read(space.root(), u64::MAX - 5000, "a test").expect_err("past the end");
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    assert_eq!(budget.peak(), before);
}
