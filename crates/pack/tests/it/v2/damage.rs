//! Damage: every flipped bit and every truncation of a small pack is found, and hostile files get typed errors.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::stacks::{Stack, noise, packed, packed_in};
use std::path::PathBuf;
use std::sync::Arc;
use tensilo_core::array::Selection;
use tensilo_core::io::MemorySource;
use tensilo_core::{ErrorKind, Limits, Quiet};
use tensilo_pack::read::Values;
use tensilo_pack::v2::counts::CountType;
use tensilo_pack::v2::format::index::PackIndex;
use tensilo_pack::v2::format::preamble::Preamble;
use tensilo_pack::v2::layout::BlockSize;
use tensilo_pack::v2::read::{Pack, ReadOptions};
use tensilo_pack::v2::verify::{VerifyOptions, verify, verify_source};
use tensilo_pack::{Sha256Sum, receipt_path};
use tensilo_testkit::oracle::{self, TempDir};

/// A small pack with excluded pixels, constant and not, and several tiles.
fn small() -> (TempDir, PathBuf, Stack) {
    let counts = CountType::new(2, false).unwrap();
    let stack = Stack::of(&[3, 2], &[4, 6], counts, |i| match i % 24 {
        5 => 65535,
        7 => (noise(1, i as u64) % 9) as i64,
        _ => (noise(2, i as u64) % 3) as i64,
    });
    let dir = oracle::temp_dir();
    let mask: Vec<u32> = (0..24).map(|p| u32::from(p == 5 || p == 7)).collect();
    let source = stack.family(dir.path(), &[4, 2], 1, Some(&mask));
    let out = dir.path().join("out.h5");
    packed(&source, 2, &out, 1).unwrap();
    (dir, out, stack)
}

fn options(receipt: bool) -> VerifyOptions {
    VerifyOptions { receipt, threads: tensilo_core::threads::Threads::ONE, ..VerifyOptions::default() }
}

/// No byte of a pack is unused, so that a bit cannot hide, with the receipt or without. By default every bit of preamble,
/// payload and index, and every seventh of the rest; all with `TENSILO_FULL=1`.
#[test]
fn every_flipped_bit_is_found_with_the_receipt_and_without() {
    let (dir, out, _) = small();
    let bytes = std::fs::read(&out).unwrap();
    let pack = Pack::open(&out).unwrap();
    let p = *pack.preamble();
    let bad = dir.path().join("bad.h5");
    std::fs::copy(receipt_path(&out), receipt_path(&bad)).unwrap();
    let full = std::env::var_os("TENSILO_FULL").is_some();
    let important = |at: u64| {
        at < 512
            || (p.payload.offset..p.payload.offset + p.payload.bytes).contains(&at)
            || (p.index.offset..p.index.offset + p.index.bytes).contains(&at)
    };
    let mut tried = 0;
    for bit in 0..bytes.len() * 8 {
        if !full && !important(bit as u64 / 8) && !bit.is_multiple_of(7) {
            continue;
        }
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let source: Arc<MemorySource> = Arc::new(MemorySource::new(changed));
        for receipt in [true, false] {
            let v = verify_source(source.clone(), &bad, &options(receipt), &Quiet).unwrap();
            assert!(!v.is_proven(), "bit {bit}, receipt {receipt}");
        }
        tried += 1;
    }
    assert!(tried > 10_000, "{tried} bits");
    std::fs::write(&bad, &bytes).unwrap();
    for receipt in [true, false] {
        assert_eq!(verify(&bad, &options(receipt), &Quiet).unwrap().findings, []);
    }
}

#[test]
fn every_truncation_and_every_added_byte_is_found() {
    let (dir, out, _) = small();
    let bytes = std::fs::read(&out).unwrap();
    let bad = dir.path().join("bad.h5");
    for n in (0..bytes.len()).step_by(3).chain(bytes.len() - 20..bytes.len()) {
        let source = Arc::new(MemorySource::new(&bytes[..n]));
        let v = verify_source(source.clone(), &bad, &options(false), &Quiet).unwrap();
        assert!(!v.is_proven(), "{n} bytes");
        let e = Pack::from_source(source, ReadOptions::default()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{n} bytes");
    }
    std::fs::write(&bad, [&bytes[..], &[0]].concat()).unwrap();
    assert!(!verify(&bad, &options(false), &Quiet).unwrap().is_proven());
}

#[test]
fn one_shard_is_proven_without_reading_the_others() {
    let counts = CountType::new(4, false).unwrap();
    let stack = Stack::of(&[15], &[6, 7], counts, |i| i as i64);
    let dir = oracle::temp_dir();
    let out = dir.path().join("out.h5");
    packed_in(&stack.npy(dir.path()), 2, &out, BlockSize { rows: 2, columns: 3, scans: 4 }, 8).unwrap();
    let pack = Pack::open(&out).unwrap();
    assert_eq!(pack.layout().shards(), 2);
    let (payload, first) = (pack.preamble().payload, pack.index().shards[0]);
    let mut bytes = std::fs::read(&out).unwrap();
    bytes[(payload.offset + first.bytes() / 2) as usize] ^= 1;
    std::fs::write(&out, &bytes).unwrap();
    let shard = |k| verify(&out, &VerifyOptions { shard: Some(k), ..options(true) }, &Quiet);
    assert_eq!(shard(1).unwrap().findings, []);
    let v = shard(0).unwrap();
    assert!(v.findings[0].message.contains("shard 0"), "{:?}", v.findings);
    assert_eq!(shard(2).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!verify(&out, &options(true), &Quiet).unwrap().is_proven());
}

#[test]
fn deep_verification_finds_a_pack_whose_checksums_agree_but_whose_counts_are_not_the_sources() {
    let (dir, out, stack) = small();
    let mut bytes = std::fs::read(&out).unwrap();
    let pack = Pack::open(&out).unwrap();
    let mut index = pack.index().clone();
    index.raw_sha256 = Sha256Sum::of(&stack.bytes[1..]);
    reseal(&mut bytes, &pack, &index.encode());
    let bad = dir.path().join("bad.h5");
    std::fs::write(&bad, &bytes).unwrap();
    assert_eq!(verify(&bad, &options(false), &Quiet).unwrap().findings, []);
    let v = verify(&bad, &VerifyOptions { deep: true, ..options(false) }, &Quiet).unwrap();
    assert!(v.findings[0].message.contains("the index states"), "{:?}", v.findings);
}

/// Puts another index of the same length into a pack and makes all checksums agree.
fn reseal(bytes: &mut [u8], pack: &Pack, index: &[u8]) {
    let p = pack.preamble();
    assert_eq!(index.len() as u64, p.index.bytes);
    bytes[p.index.offset as usize..][..index.len()].copy_from_slice(index);
    let payload = p.payload.offset as usize..(p.payload.offset + p.payload.bytes) as usize;
    let frame = [&bytes[512..payload.start], &bytes[payload.end..]].concat();
    let sealed = Preamble { index_crc: crc32c::crc32c(index), frame_sha256: Sha256Sum::of(&frame), ..*p };
    bytes[..512].copy_from_slice(&sealed.encode());
}

/// Random changes whose checksums are made to agree, so that they reach every parser behind them. More rounds with
/// `TENSILO_FULL=1`.
#[test]
fn hostile_indexes_and_tables_give_typed_errors_within_limits() {
    let (_dir, out, _) = small();
    let bytes = std::fs::read(&out).unwrap();
    let pack = Pack::open(&out).unwrap();
    let original = pack.index().encode();
    let rounds = if std::env::var_os("TENSILO_FULL").is_some() { 200_000 } else { 4_000 };
    let (mut opened, mut refused) = (0, 0);
    for round in 0..rounds {
        let mut changed = bytes.clone();
        let mut index = original.clone();
        for k in 0..1 + round % 3 {
            let at = noise(round, k) as usize % index.len();
            // Small, large and single-bit changes.
            index[at] = match noise(round, 100 + k) % 3 {
                0 => 0xff,
                1 => index[at] ^ (1 << (k % 8)),
                _ => noise(round, 200 + k) as u8,
            };
        }
        // Now and then the payload changes too; checksums of blocks and table are made to agree where there are any.
        let p = *pack.preamble();
        if round % 2 == 0 {
            let record = pack.index().shards[0];
            let table = (p.payload.offset + record.blocks_bytes) as usize;
            let at = table + noise(round, 300) as usize % record.table_bytes as usize;
            changed[at] ^= 1 << (round % 8);
            let crc = crc32c::crc32c(&changed[table..table + record.table_bytes as usize]);
            let place = original.len() - 64 + 24;
            index[..original.len() - 64].copy_from_slice(&original[..original.len() - 64]);
            index[original.len() - 64..].copy_from_slice(&original[original.len() - 64..]);
            index[place..place + 4].copy_from_slice(&crc.to_le_bytes());
        }
        reseal(&mut changed, &pack, &index);
        let options = ReadOptions { limits: Limits::default().with_bytes(1 << 20), ..ReadOptions::default() };
        match Pack::from_source(Arc::new(MemorySource::new(changed)), options) {
            Err(e) => {
                let typed = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::Limit];
                assert!(typed.contains(&e.kind()), "round {round}: {e}");
                refused += 1;
            }
            Ok(pack) => {
                opened += 1;
                let small = pack.layout().logical_bytes() <= 1 << 20;
                if small && pack.layout().counts().bytes() == 2 && !pack.layout().counts().is_signed() {
                    let read: Result<Vec<u16>, _> = pack.read(&Selection::All, Values::Raw);
                    if let Err(e) = read {
                        let typed = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::Limit];
                        assert!(typed.contains(&e.kind()), "round {round}: {e}");
                    }
                }
            }
        }
    }
    assert!(opened > rounds / 50 && refused > rounds / 10, "{opened} opened, {refused} refused");
    let budget = tensilo_core::Budget::default();
    assert!(PackIndex::parse(&original, 0, pack.preamble().payload.bytes, &budget).is_ok());
}
