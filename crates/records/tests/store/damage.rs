//! Damage: flipped bits, cut files and hostile numbers are found, named, and survived by salvage.
#![expect(clippy::disallowed_methods, reason = "test set-up")]
#![expect(clippy::print_stdout, reason = "the count is the answer of the test of flipped bits")]

use super::{Draw, Records, append, contents, memory, records, schema};
use std::sync::Arc;
use tensilo_core::gather::{FieldBuffer, Gather, Places};
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Quiet};
use tensilo_records::store::{OpenOptions, Store, StoreWriter, WriterOptions, salvage};
use tensilo_testkit::{conformance, oracle};

/// A store with pages of two levels, deletions and several commits; and its records.
fn sample(encoding: &str) -> (tempfile::TempDir, std::path::PathBuf, Records) {
    sample_of(encoding, [150, 400])
}

fn sample_of(encoding: &str, ends: [usize; 2]) -> (tempfile::TempDir, std::path::PathBuf, Records) {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let options = WriterOptions {
        encoding: Some(encoding.parse().unwrap()),
        metadata: Some("{}".into()),
        ..WriterOptions::default()
    };
    let mut writer = StoreWriter::create(&path, schema(), options).unwrap();
    let mut all = records(0..ends[0]);
    append(&mut writer, &all).unwrap();
    writer.commit().unwrap();
    append(&mut writer, &records(ends[0]..ends[1])).unwrap();
    all.extend(records(ends[0]..ends[1]));
    writer.commit().unwrap();
    let gone = [0, 77, ends[1] as u64 - 20];
    super::delete(&mut all, &gone);
    writer.delete(&gone).unwrap();
    (dir, path, all)
}

fn open(bytes: Vec<u8>) -> tensilo_core::Result<Store> {
    Store::from_source(Arc::new(MemorySource::new(bytes)), &OpenOptions::default())
}

/// Reads all records by one gather per field.
fn read_all(store: &Store, wanted: &Records) -> tensilo_core::Result<bool> {
    let ids: Vec<u64> = (0..store.len()).collect();
    if store.len() != wanted.len() as u64 {
        return Ok(false);
    }
    for field in 0..store.schema().fields().len() {
        let mut starts = Vec::new();
        let mut end = 0;
        let step = store.schema().field(field)?.step_bytes()?;
        let mut steps = vec![0; ids.len()];
        store.lengths(field, &ids, &mut steps)?;
        for n in steps {
            starts.push(end);
            end += n * step;
        }
        let all: Vec<u8> = wanted.iter().flat_map(|r| r[field].iter().copied()).collect();
        let mut bytes = vec![0; end as usize];
        let mut into = [FieldBuffer { field, bytes: &mut bytes, places: Places::Starts(&starts) }];
        store.gather_into(&ids, &mut into, Threads::ONE, &Quiet)?;
        if bytes != all {
            return Ok(false);
        }
    }
    Ok(true)
}

#[test]
fn of_20_000_flipped_bits_none_is_silent() {
    let (mut detected, mut harmless) = (0, 0);
    for encoding in ["raw", "deflate", "bitshuffle+lz4", "zstd"] {
        let (_dir, path, all) = sample_of(encoding, [100, 170]);
        let whole = std::fs::read(&path).unwrap();
        let mut draw = Draw(20_000);
        for _ in 0..5000 {
            let mut bytes = whole.clone();
            let bit = draw.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            // The answer is an error, or every record as it was written: never anything else.
            match open(bytes).and_then(|store| read_all(&store, &all)) {
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => detected += 1,
                Ok(true) => harmless += 1,
                other => panic!("{encoding}: bit {bit}: {other:?}"),
            }
        }
    }
    println!(
        "{detected} of 20000 flipped bits detected, {harmless} in bytes that nothing refers to, 0 silent"
    );
    assert!(detected > 6000, "{detected}");
}

#[test]
fn a_flipped_bit_in_anything_that_is_needed_is_reported_by_verify() {
    let (_dir, path, _) = sample("lz4");
    let mut writer = StoreWriter::open(&path, WriterOptions::default()).unwrap();
    writer.compact(&Quiet).unwrap();
    // Nothing is left over after a compaction: every bit counts, but for the room between the commit records.
    let whole = std::fs::read(&path).unwrap();
    let mut draw = Draw(3);
    for k in 0..3000 {
        let byte = match k % 10 {
            0 => [0, 4096][draw.below(2) as usize] + draw.below(64) as usize,
            _ => 8192 + draw.below(whole.len() as u64 - 8192) as usize,
        };
        let mut bytes = whole.clone();
        bytes[byte] ^= 1 << draw.below(8);
        let found = match open(bytes) {
            Ok(store) => !store.verify(Threads::ONE, &Quiet).unwrap().is_good(),
            Err(e) => matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
        };
        assert!(found, "byte {byte}");
    }
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    let (_dir, path, _) = sample("raw");
    let whole = std::fs::read(&path).unwrap();
    let cuts = (0..whole.len()).filter(|n| n % 7 == 0 || *n < 200 || *n + 5000 > whole.len());
    for cut in cuts {
        let error = open(whole[..cut].to_vec()).expect_err("a cut store");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{cut}: {error}");
    }
    // The same with a file that is mapped.
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(Store::open(&path).unwrap_err().kind(), ErrorKind::Corrupt);
    std::fs::write(&path, b"").unwrap();
    assert_eq!(Store::open(&path).unwrap_err().kind(), ErrorKind::Corrupt);
    let error = StoreWriter::open(&path, WriterOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "a refused file stays as it is");
}

#[test]
fn verify_names_the_bad_records_and_salvage_keeps_the_others() {
    let (dir, path, all) = sample("raw");
    let mut bytes = std::fs::read(&path).unwrap();
    for (id, field) in [(42, 0), (201, 1)] {
        // The cell is found between those of its neighbours.
        let near: Vec<u8> = (id - 1..id + 2).flat_map(|i: usize| all[i][field].clone()).collect();
        let at = bytes.windows(near.len()).position(|w| w == near).unwrap() + all[id - 1][field].len();
        bytes[at] ^= 1;
    }
    std::fs::write(&path, &bytes).unwrap();
    let store = Store::open(&path).unwrap();
    let verified = store.verify(Threads::new(2), &Quiet).unwrap();
    let named: Vec<String> =
        verified.described.iter().map(|p| p.to_string().split(':').next().unwrap().to_owned()).collect();
    assert_eq!(named, [r#"record 42, field "image""#, r#"record 201, field "track""#]);
    assert_eq!((verified.bad_records, verified.problems), (2, 2));
    assert_eq!(store.get(42, 0).unwrap_err().record(), Some(42));
    assert_eq!(store.get(42, 2).unwrap(), all[42][2]);
    let mut writer = StoreWriter::open(&path, WriterOptions::default()).unwrap();
    let refused = writer.compact(&Quiet).unwrap_err();
    assert_eq!((refused.kind(), refused.record()), (ErrorKind::Corrupt, Some(42)));

    let saved = dir.path().join("b.trec");
    let answer = salvage(&path, &saved, WriterOptions::default(), &Quiet).unwrap();
    assert_eq!((answer.saved, answer.lost, answer.searched), (all.len() as u64 - 2, 2, false));
    assert_eq!(answer.described.iter().map(|l| l.first).collect::<Vec<_>>(), [42, 201]);
    let mut kept = all.clone();
    kept.remove(201);
    kept.remove(42);
    conformance::gather(&Store::open(&saved).unwrap(), &memory(schema(), &kept));
    assert!(Store::open(&saved).unwrap().verify(Threads::ONE, &Quiet).unwrap().is_good());
}

#[test]
fn salvage_finds_a_store_without_commit_records_and_with_a_lost_page() {
    let (dir, path, all) = sample("zstd");
    let whole = std::fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    bytes[..8192].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(Store::open(&path).unwrap_err().kind(), ErrorKind::Corrupt);
    let saved = dir.path().join("b.trec");
    let answer = salvage(&path, &saved, WriterOptions::default(), &Quiet).unwrap();
    assert_eq!((answer.saved, answer.lost, answer.searched), (all.len() as u64, 0, true));
    assert!(contents(&Store::open(&saved).unwrap()).unwrap() == all);

    // The end is lost: an older commit is found.
    std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let older = dir.path().join("c.trec");
    let answer = salvage(&path, &older, WriterOptions::default(), &Quiet).unwrap();
    assert!(answer.searched && answer.saved == 400, "{answer:?}");
    assert!(contents(&Store::open(&older).unwrap()).unwrap() == records(0..400));

    // A leaf is lost: its 128 records are named.
    let leaf = (0..256)
        .map(|bit| 8192 + (whole.len() - 8192) * bit / 256)
        .find_map(|at| {
            let mut bytes = whole.clone();
            bytes[at..at + 8].fill(0xff);
            let store = open(bytes.clone()).ok()?;
            let verified = store.verify(Threads::ONE, &Quiet).unwrap();
            (verified.bad_records == 128).then_some(bytes)
        })
        .expect("a leaf somewhere");
    std::fs::write(&path, leaf).unwrap();
    let third = dir.path().join("d.trec");
    let answer = salvage(&path, &third, WriterOptions::default(), &Quiet).unwrap();
    assert_eq!((answer.saved, answer.lost), (all.len() as u64 - 128, 128));
    assert_eq!(answer.described.len(), 1);
    assert_eq!((answer.described[0].first % 128, answer.described[0].records), (0, 128));

    std::fs::write(&path, vec![0; 20_000]).unwrap();
    let nothing = salvage(&path, dir.path().join("e"), WriterOptions::default(), &Quiet);
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn random_bytes_and_random_overwrites_never_panic_nor_take_memory() {
    let (_dir, path, all) = sample("bitshuffle+lz4");
    let whole = std::fs::read(&path).unwrap();
    let mut draw = Draw(99);
    for _ in 0..1500 {
        let mut bytes = whole.clone();
        for _ in 0..1 + draw.below(4) {
            let at = draw.below(bytes.len() as u64) as usize;
            let n = (1 + draw.below(40) as usize).min(bytes.len() - at);
            for b in &mut bytes[at..at + n] {
                *b = [0, 0xff, draw.next() as u8][draw.below(3) as usize];
            }
        }
        match open(bytes).and_then(|store| read_all(&store, &all)) {
            Ok(true) => {}
            Ok(false) => panic!("wrong records without an error"),
            Err(e) => assert_ne!(e.kind(), ErrorKind::Io, "{e}"),
        }
    }
}
