//! What is written is what is read, whatever the codec, the order of operations and the way of reading.

use super::{Draw, Records, append, contents, delete, memory, records, schema};
use std::sync::Arc;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{Concat, FieldBuffer, FieldSchema, Gather, Places, Schema, View};
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Limits, Quiet};
use tensilo_filters::deflate::Deflater;
use tensilo_records::store::{Column, Encoding, OpenOptions, Store, StoreWriter, WriterOptions};
use tensilo_testkit::{conformance, oracle, strategies};

const ENCODINGS: [&str; 9] = [
    "raw",
    "deflate",
    "deflate:9",
    "zstd",
    "lz4",
    "shuffle+deflate:1",
    "bitshuffle+zstd:3",
    "bitshuffle+lz4",
    "shuffle+zstd:-3",
];

fn with(encoding: &str) -> WriterOptions {
    WriterOptions { encoding: Some(encoding.parse().unwrap()), ..WriterOptions::default() }
}

#[test]
fn every_encoding_conforms_mapped_read_by_position_and_from_memory() {
    let dir = oracle::temp_dir();
    let all = records(0..1000);
    for encoding in ENCODINGS {
        let path = dir.path().join(format!("{}.trec", encoding.replace(':', "_")));
        let mut writer = StoreWriter::create(&path, schema(), with(encoding)).unwrap();
        assert_eq!(append(&mut writer, &all[..700].to_vec()).unwrap(), 0..700);
        writer.commit().unwrap();
        assert_eq!(append(&mut writer, &all[700..].to_vec()).unwrap(), 700..1000);
        writer.commit().unwrap();
        let expected = memory(schema(), &all);
        let options = OpenOptions { map: false, ..OpenOptions::default() };
        let bytes = std::fs::read(&path).unwrap();
        for store in [
            Store::open(&path).unwrap(),
            Store::open_with(&path, options.clone()).unwrap(),
            Store::from_source(Arc::new(MemorySource::new(bytes)), &options).unwrap(),
        ] {
            conformance::gather(&store, &expected);
            let verified = store.verify(Threads::new(2), &Quiet).unwrap();
            assert!(verified.is_good() && verified.records == 1000, "{encoding}: {verified:?}");
        }
        // What the file says of its encoding is what the next writer uses.
        drop(writer);
        let again = StoreWriter::open(&path, WriterOptions::default()).unwrap();
        assert_eq!(again.encodings(), [encoding.parse::<Encoding>().unwrap(); 3]);
    }
}

/// Small cells are found in shorter ways the more often they are read: by an entry that is checked, by one that was, by
/// the run that they lie in.
#[test]
fn batches_are_the_same_each_time_they_are_read_whatever_is_known_of_their_cells() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("mixed.trec");
    let mut all = records(0..500);
    StoreWriter::create(&path, schema(), with("raw")).unwrap();
    for (encoding, part) in [("raw", 0..150), ("lz4", 150..300), ("raw", 300..301), ("raw", 301..500)] {
        let mut writer = StoreWriter::open(&path, with(encoding)).unwrap();
        append(&mut writer, &all[part].to_vec()).unwrap();
        writer.commit().unwrap();
    }
    let check = |all: &Records| {
        let (store, mut draw) = (Store::open(&path).unwrap(), Draw(5));
        for turn in 0..40 {
            let ids: Vec<u64> = (0..100).map(|_| draw.next() % all.len() as u64).collect();
            // Alternately dense and with room between records.
            let (mut images, mut labels) = (vec![0; 100 * 32], [0; 100]);
            let stride = if turn % 2 == 0 { 24 } else { 32 };
            let mut into = [
                FieldBuffer { field: 0, bytes: &mut images, places: Places::Stride(stride) },
                FieldBuffer { field: 2, bytes: &mut labels, places: Places::Stride(1) },
            ];
            store.gather_into(&ids, &mut into, Threads::ONE, &Quiet).unwrap();
            for (i, id) in ids.iter().enumerate() {
                let (record, at) = (&all[*id as usize], i * stride as usize);
                assert_eq!(images[at..at + 24], record[0], "turn {turn}, record {id}");
                assert_eq!(labels[i..=i], record[2]);
            }
        }
    };
    check(&all);
    // Deleting puts cells into other runs than they were written in; compaction puts them in order.
    let gone: Vec<u64> = (0..500).step_by(11).collect();
    let mut writer = StoreWriter::open(&path, WriterOptions::default()).unwrap();
    writer.delete(&gone).unwrap();
    writer.commit().unwrap();
    delete(&mut all, &gone);
    check(&all);
    writer.compact(&Quiet).unwrap();
    check(&all);
}

#[test]
fn a_damaged_cell_is_refused_each_time_among_neighbours_that_are_known() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("damaged.trec");
    let all = records(0..300);
    let mut writer = StoreWriter::create(&path, schema(), with("raw")).unwrap();
    append(&mut writer, &all).unwrap();
    writer.commit().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let (wanted, found) = (&all[77][0], |w: &[u8]| w == all[77][0]);
    let at = bytes.windows(wanted.len()).position(found).unwrap();
    bytes[at + 5] ^= 4;
    let store = Store::from_source(Arc::new(MemorySource::new(bytes)), &OpenOptions::default()).unwrap();
    let mut image = [0; 24];
    for _ in 0..4 {
        for id in 0..300 {
            let mut into = [FieldBuffer { field: 0, bytes: &mut image, places: Places::Stride(24) }];
            let done = store.gather_into(&[id], &mut into, Threads::ONE, &Quiet);
            match done {
                Ok(()) => assert_eq!(image[..], all[id as usize][0]),
                Err(e) => assert_eq!((e.kind(), id), (ErrorKind::Corrupt, 77)),
            }
            assert_eq!(image[..] == all[id as usize][0], id != 77);
        }
    }
}

/// Large deflated cells are decoded two at a time, by one thread or by several.
#[test]
fn large_deflated_cells_are_the_same_alone_and_together_and_a_damaged_one_is_named() {
    const BYTES: usize = 6000;
    let dir = oracle::temp_dir();
    let path = dir.path().join("large.trec");
    let mut draw = Draw(8);
    // Rows of values, a few runs and copies, and every fifth cell of noise, which is stored as it is.
    let all: Vec<Vec<u8>> = (0..80)
        .map(|i| {
            let values = if i % 5 == 4 { 256 } else { 20 + i };
            let mut cell: Vec<u8> = (0..BYTES).map(|_| draw.below(values) as u8).collect();
            cell[..10 * i as usize].fill(7);
            cell.copy_within(1000..1000 + 5 * i as usize, 4000);
            cell
        })
        .collect();
    let schema = Schema::new(vec![FieldSchema::fixed("image", DType::U8, [BYTES as u64])]).unwrap();
    let mut writer = StoreWriter::create(&path, schema, with("deflate")).unwrap();
    writer.append(80, &[Column::fixed(&all.concat())]).unwrap();
    writer.commit().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let read = |store: &Store, ids: &[u64], stride: usize, threads: usize| {
        let mut out = vec![0xEE; ids.len() * stride];
        let places = Places::Stride(stride as u64);
        let mut into = [FieldBuffer { field: 0, bytes: &mut out, places }];
        store.gather_into(ids, &mut into, Threads::new(threads), &Quiet).map(|()| out)
    };
    let positions = OpenOptions { map: false, ..OpenOptions::default() };
    for store in [Store::open(&path).unwrap(), Store::open_with(&path, positions).unwrap()] {
        for turn in 0..60 {
            let ids: Vec<u64> = (0..1 + turn * 3).map(|_| draw.below(80)).collect();
            let stride = BYTES + [0, 100][turn as usize % 2];
            let out = read(&store, &ids, stride, 1 + turn as usize % 4).unwrap();
            for (id, place) in ids.iter().zip(out.chunks(stride)) {
                assert!(place[..BYTES] == all[*id as usize] && place[BYTES..].iter().all(|b| *b == 0xEE));
            }
        }
    }
    // A byte in the middle of a stream.
    let mut stream = Vec::new();
    Deflater::default().raw(1, &all[33], &mut stream).unwrap();
    let at = bytes.windows(stream.len()).position(|w| w == stream).unwrap();
    bytes[at + stream.len() / 2] ^= 4;
    let store = Store::from_source(Arc::new(MemorySource::new(bytes)), &OpenOptions::default()).unwrap();
    for ids in [&[32, 33, 35][..], &[33, 32], &[30, 31, 33, 32], &[33], &[1, 2, 3, 33]] {
        for threads in [1, 2] {
            let e = read(&store, ids, BYTES, threads).unwrap_err();
            assert_eq!((e.kind(), e.record()), (ErrorKind::Corrupt, Some(33)), "{e}");
        }
    }
}

#[test]
fn any_schema_and_any_order_of_appends_deletions_and_compactions_equal_the_model() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{Config, TestRunner};
    let dir = oracle::temp_dir();
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let mut draw = Draw(7);
    for case in 0..24 {
        let schema = strategies::schema().new_tree(&mut runner).unwrap().current();
        let encoding = ENCODINGS[case % ENCODINGS.len()];
        let path = dir.path().join(format!("{case}.trec"));
        let mut writer = StoreWriter::create(&path, schema.clone(), with(encoding)).unwrap();
        let mut model: Records = Vec::new();
        let mut snapshots: Vec<(Store, Records)> = Vec::new();
        for _ in 0..12 {
            match draw.below(5) {
                0 if !model.is_empty() => {
                    let ids: Vec<u64> = (0..draw.below(40)).map(|_| draw.below(model.len() as u64)).collect();
                    delete(&mut model, &ids);
                    writer.delete(&ids).unwrap();
                }
                1 => {
                    let compacted = writer.compact(&Quiet).unwrap();
                    assert!(compacted.after <= compacted.before);
                    assert_eq!(Store::open(&path).unwrap().stats().reclaimable, 0);
                }
                _ => {
                    let n = [1, 3, 127, 128, 129, 300][draw.below(6) as usize];
                    let more: Records = (0..n).map(|_| random_record(&schema, &mut draw)).collect();
                    let from = model.len() as u64;
                    assert_eq!(append(&mut writer, &more).unwrap(), from..from + n);
                    model.extend(more);
                    writer.commit().unwrap();
                }
            }
            let store = Store::open(&path).unwrap();
            assert_eq!(store.len(), model.len() as u64);
            snapshots.push((store, model.clone()));
        }
        for (store, model) in &snapshots {
            assert!(contents(store).unwrap() == *model, "an old snapshot shows what it showed");
        }
        let (store, model) = snapshots.last().unwrap();
        conformance::gather(store, &memory(schema.clone(), model));
        assert!(store.verify(Threads::ONE, &Quiet).unwrap().is_good());
    }
}

fn random_record(schema: &Schema, draw: &mut Draw) -> Vec<Vec<u8>> {
    let field = |f: &FieldSchema, draw: &mut Draw| {
        let step = f.step_bytes().unwrap();
        let n = if f.is_ragged() { draw.below(6) * step } else { step };
        let (noise, base) = (draw.below(3) == 0, draw.next());
        (0..n).map(|i| if noise { draw.next() as u8 } else { (base + i / 9) as u8 }).collect()
    };
    schema.fields().iter().map(|f| field(f, draw)).collect()
}

#[test]
fn records_of_no_bytes_and_of_many_are_kept() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let schema = Schema::new(vec![
        FieldSchema::ragged("text", DType::U8, []),
        FieldSchema::fixed("nothing", DType::F64, [0]),
    ])
    .unwrap();
    let big: Vec<u8> = (0..40_000_000_u32).map(|i| (i >> 12) as u8).collect();
    for encoding in ["raw", "zstd", "lz4"] {
        let options = WriterOptions { replace: true, ..with(encoding) };
        let mut writer = StoreWriter::create(&path, schema.clone(), options).unwrap();
        let steps = [0, big.len() as u64, 0, 5];
        let mut bytes = big.clone();
        bytes.extend(*b"hello");
        writer.append(4, &[Column::ragged(&bytes, &steps), Column::fixed(&[])]).unwrap();
        writer.commit().unwrap();
        let store = Store::open(&path).unwrap();
        assert_eq!(store.get(0, 0).unwrap(), b"");
        assert!(store.get(1, 0).unwrap() == big);
        assert_eq!(store.get(3, 0).unwrap(), b"hello");
        assert_eq!(store.get(3, 1).unwrap(), b"");
        let mut lens = [0; 4];
        store.lengths(0, &[3, 1, 0, 1], &mut lens).unwrap();
        assert_eq!(lens, [5, big.len() as u64, 0, big.len() as u64]);
    }
}

#[test]
fn a_trained_dictionary_makes_small_records_smaller_and_is_kept_by_compaction() {
    let dir = oracle::temp_dir();
    let text = |i: usize| {
        format!(
            "{{\"name\":\"sample {i}\",\"kind\":\"measurement\",\"unit\":\"kelvin\",\"value\":{}}}",
            i * 7919 % 1000
        )
        .into_bytes()
    };
    let all: Records = (0..3000).map(|i| vec![text(i)]).collect();
    let samples: Vec<&[u8]> = all.iter().map(|r| r[0].as_slice()).collect();
    let dictionary = tensilo_records::store::train_dictionary(&samples, 4096).unwrap();
    let schema = Schema::new(vec![FieldSchema::ragged("json", DType::U8, [])]).unwrap();
    let mut sizes = Vec::new();
    for dictionary in [None, Some(dictionary)] {
        let path = dir.path().join(format!("{}.trec", sizes.len()));
        let options = WriterOptions { dictionary, ..with("zstd:3") };
        let mut writer = StoreWriter::create(&path, schema.clone(), options).unwrap();
        append(&mut writer, &all).unwrap();
        writer.delete(&[5, 6, 7]).unwrap();
        writer.compact(&Quiet).unwrap();
        let store = Store::open(&path).unwrap();
        let mut expected = all.clone();
        delete(&mut expected, &[5, 6, 7]);
        assert!(contents(&store).unwrap() == expected);
        sizes.push(store.stats().live_bytes);
    }
    assert!(sizes[1] * 2 < sizes[0], "{sizes:?}");
}

#[test]
fn views_and_joined_stores_of_snapshots_conform() {
    let dir = oracle::temp_dir();
    let mut stores: Vec<Arc<dyn Gather>> = Vec::new();
    for (i, range) in [0..300, 300..301, 301..500].into_iter().enumerate() {
        let path = dir.path().join(format!("{i}.trec"));
        let mut writer = StoreWriter::create(&path, schema(), with("lz4")).unwrap();
        append(&mut writer, &records(range)).unwrap();
        writer.commit().unwrap();
        stores.push(Arc::new(Store::open(&path).unwrap()));
    }
    let joined: Arc<dyn Gather> = Arc::new(Concat::new(stores).unwrap());
    conformance::gather(&*joined, &memory(schema(), &records(0..500)));
    let ids: Vec<u64> = (0..500).rev().step_by(3).collect();
    let picked = ids.iter().map(|i| records(0..500)[*i as usize].clone()).collect();
    conformance::gather(&View::new(joined, ids).unwrap(), &memory(schema(), &picked));
}

#[test]
fn equal_records_in_equal_order_have_equal_fingerprints_and_others_have_not() {
    let dir = oracle::temp_dir();
    let make = |name: &str, parts: &[std::ops::Range<usize>]| {
        let path = dir.path().join(name);
        let mut writer = StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap();
        for part in parts {
            append(&mut writer, &records(part.clone())).unwrap();
            writer.commit().unwrap();
        }
        (writer, path)
    };
    let print = |path: &std::path::Path| Store::open(path).unwrap().fingerprint().unwrap();
    let (mut a, a_path) = make("a", &[0..200, 200..300]);
    let (mut b, b_path) = make("b", &[0..10, 10..300]);
    assert_eq!(print(&a_path), print(&b_path), "whatever the commits");
    let same = print(&a_path);
    a.delete(&[250]).unwrap();
    let deleted = print(&a_path);
    assert_ne!(deleted, same);
    b.delete(&[250]).unwrap();
    b.compact(&Quiet).unwrap();
    assert_eq!(print(&b_path), deleted, "wherever the bytes lie");
    append(&mut b, &records(0..1)).unwrap();
    b.commit().unwrap();
    assert_ne!(print(&b_path), deleted);
    let (_c, c_path) = make("c", &[1..300, 0..1]);
    assert_ne!(print(&c_path), same, "another order");
}

#[test]
fn the_same_calls_give_the_same_bytes_whatever_the_threads() {
    let dir = oracle::temp_dir();
    let files: Vec<Vec<u8>> = [1, 2, 7]
        .into_iter()
        .map(|threads| {
            let path = dir.path().join(format!("{threads}"));
            let options = WriterOptions { threads: Threads::new(threads), ..with("bitshuffle+zstd:1") };
            let mut writer = StoreWriter::create(&path, schema(), options).unwrap();
            append(&mut writer, &records(0..30_000)).unwrap();
            writer.commit().unwrap();
            writer.delete(&[3, 999, 29_000]).unwrap();
            std::fs::read(&path).unwrap()
        })
        .collect();
    assert!(files[0] == files[1] && files[1] == files[2]);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let mut writer = StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap();
    append(&mut writer, &records(0..10)).unwrap();
    writer.commit().unwrap();
    let (image, track, label) = ([0_u8; 24], [0_u8; 8], [0_u8]);
    let good = [Column::fixed(&image), Column::ragged(&track, &[1]), Column::fixed(&label)];
    let invalid = ErrorKind::InvalidArgument;
    let cases: [(&str, u64, Vec<Column<'_>>, ErrorKind); 7] = [
        ("too few columns", 1, good[..2].to_vec(), invalid),
        ("too few bytes", 1, vec![Column::fixed(&image[..23]), good[1], good[2]], invalid),
        ("too many records", 2, good.to_vec(), invalid),
        ("no lengths", 1, vec![good[0], Column::fixed(&track), good[2]], invalid),
        ("lengths of a fixed field", 1, vec![Column::ragged(&image, &[1]), good[1], good[2]], invalid),
        ("lengths that do not add up", 1, vec![good[0], Column::ragged(&track, &[2]), good[2]], invalid),
        ("a cell too long", 1, vec![good[0], Column::ragged(&track, &[1 << 60]), good[2]], ErrorKind::Limit),
    ];
    for (what, n, columns, kind) in cases {
        assert_eq!(writer.append(n, &columns).unwrap_err().kind(), kind, "{what}");
    }
    assert_eq!(writer.delete(&[3, 10]).unwrap_err().kind(), invalid);
    assert_eq!(writer.set_metadata("{no json").unwrap_err().kind(), invalid);
    writer.set_metadata(r#"{"made":"by a test"}"#).unwrap();
    writer.commit().unwrap();
    let store = Store::open(&path).unwrap();
    assert!(contents(&store).unwrap() == records(0..10));
    assert_eq!(store.metadata().unwrap().as_deref(), Some(r#"{"made":"by a test"}"#));
    let again = StoreWriter::create(&path, schema(), WriterOptions::default());
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
    for encoding in ["zstd:23", "deflate:10", "shuffle+raw", "brotli", "lz4:3", ""] {
        assert!(encoding.parse::<Encoding>().is_err(), "{encoding}");
    }
    let tight = OpenOptions { limits: Limits::default().with_bytes(1000), map: false };
    let store = Store::open_with(&path, tight).unwrap();
    assert_eq!(store.len(), 10);
    let mut bytes = [0; 24];
    let mut into = [FieldBuffer { field: 0, bytes: &mut bytes, places: Places::Stride(24) }];
    store.gather_into(&[9], &mut into, Threads::ONE, &Quiet).unwrap();
}

#[test]
fn a_store_is_one_file_without_holes() {
    use std::os::unix::fs::MetadataExt;
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let mut writer = StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap();
    append(&mut writer, &records(0..1)).unwrap();
    writer.commit().unwrap();
    let small = std::fs::metadata(&path).unwrap();
    assert!(small.len() < 12 << 10, "{}", small.len());
    append(&mut writer, &records(0..50_000)).unwrap();
    writer.commit().unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    assert!(meta.blocks() * 512 >= meta.len() && meta.len() < meta.blocks() * 512 + (1 << 20));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    writer.delete(&(0..45_000).collect::<Vec<_>>()).unwrap();
    writer.compact(&Quiet).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() * 5 < meta.len());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
