//! Stores that loaderx 0.5.0 wrote read to what it read from them.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::*;
use std::path::PathBuf;
use tensilo_core::ErrorKind;
use tensilo_core::gather::Gather;
use tensilo_records::v1::{SCHEMA_FILE, is_store};
use tensilo_testkit::oracle;
use tensilo_testkit::{MemoryRecords, conformance};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/zrecord")
}

/// Rebuilds a packed store: the table has its full length, data files end where they end, or are sparse giants.
pub fn unpack(from: &Path, to: &Path, sparse: bool) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = name.strip_suffix(".head").or(Some(name).filter(|n| *n == SCHEMA_FILE)) else {
            continue;
        };
        std::fs::write(to.join(name), std::fs::read(&path).unwrap()).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(to.join(name)).unwrap();
        if name == "meta.zr" {
            file.set_len(16 + (16 << 24)).unwrap();
        } else if name != SCHEMA_FILE {
            // Bytes behind the last that is not zero were left out; the store ends where its header says.
            let meta = std::fs::read(from.join("meta.zr.head")).unwrap();
            let end = u64::from(u32::from_le_bytes(*meta[8..].first_chunk().unwrap()));
            file.set_len(if sparse { 1 << 32 } else { end.max(file.metadata().unwrap().len()) }).unwrap();
        }
    }
}

/// The elements of a one-dimensional `.npy` file of version 1.
fn npy(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + header..].to_vec()
}

/// The records that loaderx read.
fn expected(from: &Path) -> Vec<Vec<u8>> {
    let lens = npy(&from.join("expected_lengths.npy"));
    let flat = npy(&from.join("expected_flat_u8.npy"));
    let mut rest = &flat[..];
    let lens = lens.as_chunks::<4>().0.iter().map(|l| u32::from_le_bytes(*l) as usize);
    let records: Vec<_> = lens.map(|len| rest.split_off(..len).unwrap().to_vec()).collect();
    assert!(rest.is_empty());
    records
}

fn check(from: &Path, sparse: bool) {
    let temp = oracle::temp_dir();
    let to = temp.path().join("store");
    unpack(from, &to, sparse);
    assert!(is_store(&to) && !is_store(temp.path()));
    let expected = expected(from);
    for read_only in [true, false] {
        for mapped in [true, false] {
            let store = Zrecord::open(&to, ZrecordOptions { read_only, mapped, ..options() }).unwrap();
            assert!(all(&store).unwrap() == expected, "{from:?}");
            let snapshot = store.snapshot().unwrap();
            if expected.iter().any(|r| r.len() > 1 << 15) {
                continue; // more than the suite has room for
            }
            let records = expected.iter().map(|r| vec![r.clone()]).collect();
            conformance::gather(&snapshot, &MemoryRecords::new(snapshot.schema().clone(), records));
        }
    }
    // What is appended is found behind what was there.
    let store = Zrecord::open(&to, options()).unwrap();
    let more = [record(2, 1000), record(3, 1000)];
    assert_eq!(append(&store, &more, None).unwrap(), expected.len() as u64);
    assert!(all(&store).unwrap() == [&expected[..], &more].concat());
}

#[test]
fn every_store_of_loaderx_reads_to_what_loaderx_read() {
    let mut stores = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        check(&path, stores % 2 == 0);
        stores += 1;
    }
    assert_eq!(stores, 13);
}

#[test]
fn records_of_the_longest_length_read_to_what_loaderx_read() {
    let Some(shared) = oracle::fixtures() else { return oracle::skip("the shared fixtures", 1) };
    check(&shared.join("zrecord/max_record_1MiB"), true);
}

#[test]
fn a_store_with_a_schema_is_typed_and_one_without_is_bytes() {
    use tensilo_core::dtype::DType;
    let temp = oracle::temp_dir();
    for (name, dtype, bytes) in
        [("flate_f32_3x8x8", DType::F32, 768), ("labels_i32", DType::I32, 4), ("ragged_flate", DType::U8, 1)]
    {
        let to = temp.path().join(name);
        unpack(&folder().join(name), &to, false);
        let snapshot = Zrecord::open(&to, options()).unwrap().snapshot().unwrap();
        let field = &snapshot.schema().fields()[0];
        assert_eq!((field.dtype, field.step_bytes().unwrap()), (dtype, bytes), "{name}");
        assert_eq!(field.is_ragged(), name == "ragged_flate");
    }
}

#[test]
fn a_deleted_store_of_loaderx_compacts_to_the_same_records() {
    let temp = oracle::temp_dir();
    for name in ["flate_deleted", "raw_deleted"] {
        let (from, to) = (folder().join(name), temp.path().join(name));
        unpack(&from, &to, true);
        let store = Zrecord::open(&to, options()).unwrap();
        store.compact(&Quiet).unwrap();
        assert!(all(&store).unwrap() == expected(&from));
        let stats = store.stats().unwrap();
        assert_eq!(
            (stats.reclaimable(), std::fs::metadata(to.join("0.zr")).unwrap().len()),
            (0, stats.chunk_bytes)
        );
    }
}

#[test]
fn a_fingerprint_follows_the_records() {
    let temp = oracle::temp_dir();
    let print = |to: &Path| Zrecord::open(to, options()).unwrap().snapshot().unwrap().fingerprint().unwrap();
    let (a, b) = (temp.path().join("a"), temp.path().join("b"));
    unpack(&folder().join("mixed_codecs"), &a, false);
    unpack(&folder().join("mixed_codecs"), &b, true);
    let before = print(&a);
    assert_eq!(before, print(&b), "a copy has the same");
    append(&Zrecord::open(&b, options()).unwrap(), &[record(1, 5)], None).unwrap();
    assert_ne!(before, print(&b));
    Zrecord::open(&a, options()).unwrap().delete(&[3]).unwrap();
    assert_ne!(before, print(&a));
}

#[test]
fn a_folder_that_is_no_store_is_not_found() {
    let temp = oracle::temp_dir();
    let e = Zrecord::open(temp.path(), options()).unwrap_err();
    assert_eq!((e.kind(), tensilo_records::v1::code_of(&e)), (ErrorKind::NotFound, -8));
}
