//! Batches of small records that come one right behind the other are read by two threads, and nobody can tell.

use super::{Draw, Records, append, delete, memory};
use std::sync::Arc;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{FieldBuffer, FieldSchema, Gather, Places, Schema, gather};
use tensilo_core::io::{ByteSource, FileSource, MemorySource};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Quiet};
use tensilo_records::store::{OpenOptions, Store, StoreWriter, WriterOptions};
use tensilo_testkit::allocations::allocations;
use tensilo_testkit::oracle;

const BYTES: usize = 784;
const COUNT: u64 = 3000;

fn two() -> Threads {
    Threads::new(2)
}

fn sample(encoding: &str) -> (tempfile::TempDir, Vec<u8>, Records) {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let schema = Schema::new(vec![FieldSchema::fixed("x", DType::U8, [BYTES as u64])]).unwrap();
    let options = WriterOptions { encoding: Some(encoding.parse().unwrap()), ..WriterOptions::default() };
    let mut writer = StoreWriter::create(&path, schema, options).unwrap();
    let all: Records = (0..COUNT)
        .map(|i| {
            vec![(0..BYTES as u64).map(|j| if j < 8 { i >> (8 * j) } else { i * 7 + j / 50 } as u8).collect()]
        })
        .collect();
    append(&mut writer, &all).unwrap();
    writer.commit().unwrap();
    let file = FileSource::open(&path).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_at(0, &mut bytes).unwrap();
    (dir, bytes, all)
}

fn open(bytes: &[u8]) -> Store {
    Store::from_source(Arc::new(MemorySource::new(bytes.to_vec())), &OpenOptions::default()).unwrap()
}

fn read(
    store: &Store,
    ids: &[u64],
    out: &mut [u8],
    stride: usize,
    threads: Threads,
) -> tensilo_core::Result<()> {
    let mut into = [FieldBuffer { field: 0, bytes: out, places: Places::Stride(stride as u64) }];
    store.gather_into(ids, &mut into, threads, &Quiet)
}

#[test]
fn eight_threads_that_gather_at_once_get_their_records_and_leave_gaps_alone() {
    for encoding in ["raw", "lz4", "deflate", "zstd"] {
        let (_dir, bytes, all) = sample(encoding);
        let store = open(&bytes);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (store, all) = (&store, &all);
                scope.spawn(move || {
                    let mut draw = Draw(thread);
                    let stride = BYTES + 3 * (thread as usize % 3);
                    for n in [256, 1, 17, 300, 255, 64].iter().cycle().take(30) {
                        let ids: Vec<u64> = (0..*n).map(|_| draw.below(COUNT)).collect();
                        let mut out = vec![0x5a; stride * ids.len()];
                        read(store, &ids, &mut out, stride, two()).unwrap();
                        for (id, place) in ids.iter().zip(out.chunks(stride)) {
                            assert!(place[..BYTES] == all[*id as usize][0], "{encoding}: record {id}");
                            assert!(place[BYTES..].iter().all(|b| *b == 0x5a), "{encoding}");
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn of_several_damaged_records_the_first_of_the_list_is_named_by_two_threads_as_by_one() {
    let ids: Vec<u64> = (0..256).map(|i| i * 11 % COUNT).collect();
    let mut out = vec![0; BYTES * ids.len()];
    for encoding in ["raw", "lz4"] {
        let (_dir, bytes, _) = sample(encoding);
        let whole = open(&bytes);
        let mut draw = Draw(5);
        for _ in 0..15 {
            let mut damaged = bytes.clone();
            for _ in 0..3 {
                let id = ids[draw.below(ids.len() as u64) as usize];
                let entry = whole.get(id, 0).unwrap();
                // The cell's own bytes where they are stored as they are, else something in the middle of the file.
                let at = bytes.windows(BYTES).position(|w| w == entry).unwrap_or(bytes.len() / 3);
                damaged[at + 100] ^= 1;
            }
            // Damage of the table is found when the store is opened.
            let Ok(one) =
                Store::from_source(Arc::new(MemorySource::new(damaged.clone())), &OpenOptions::default())
            else {
                continue;
            };
            let alone = read(&one, &ids, &mut out, BYTES, Threads::ONE).map_err(|e| e.to_string());
            // A helper comes when batches follow each other.
            (0..8).for_each(|_| read(&whole, &ids, &mut out, BYTES, two()).unwrap());
            let shared = read(&open(&damaged), &ids, &mut out, BYTES, two()).map_err(|e| e.to_string());
            assert_eq!(alone, shared, "{encoding}");
            assert!(encoding != "raw" || alone.is_err());
        }
    }
}

/// Records whose codecs alternate, of which some were moved by deletions: their leaves are of no one kind.
#[test]
fn mixed_deleted_moved_and_compacted_records_are_read_again_and_again_as_they_are() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let schema = Schema::new(vec![
        FieldSchema::fixed("x", DType::U8, [BYTES as u64]),
        FieldSchema::fixed("label", DType::U32, []),
    ])
    .unwrap();
    let mut model: Records = Vec::new();
    let mut draw = Draw(11);
    drop(StoreWriter::create(&path, schema, WriterOptions::default()).unwrap());
    let mut labels = 0_u32..;
    let mut more = |n: usize| -> Records {
        let mut draw = Draw(n as u64);
        labels
            .by_ref()
            .take(n)
            .map(|label| {
                // Every third record is noise, which stays raw whatever the codec.
                let x = (0..BYTES as u64).map(|j| if label % 3 == 0 { draw.next() } else { j / 40 } as u8);
                vec![x.collect(), label.to_le_bytes().to_vec()]
            })
            .collect()
    };
    for (round, encoding) in ["raw", "lz4", "raw", "deflate", "raw"].iter().enumerate() {
        let options = WriterOptions { encoding: Some(encoding.parse().unwrap()), ..WriterOptions::default() };
        let mut writer = StoreWriter::open(&path, options).unwrap();
        let new = more(300 + 50 * round);
        append(&mut writer, &new).unwrap();
        model.extend(new);
        writer.commit().unwrap();
        let gone: Vec<u64> = (0..20 * round).map(|_| draw.below(model.len() as u64)).collect();
        let gone: std::collections::BTreeSet<u64> = gone.into_iter().collect();
        let gone: Vec<u64> = gone.into_iter().collect();
        writer.delete(&gone).unwrap();
        delete(&mut model, &gone);
        writer.commit().unwrap();
        if round == 3 {
            writer.compact(&Quiet).unwrap();
        }
        drop(writer);
        let store = Store::open(&path).unwrap();
        let memory = memory(store.schema().clone(), &model);
        for k in 0..40 {
            let n = [256, 300, 17, 1][k % 4];
            let start = draw.below(store.len() - n);
            let ids: Vec<u64> = match k % 3 {
                0 => (start..start + n).collect(),
                _ => (0..n).map(|_| draw.below(store.len())).collect(),
            };
            for fields in [&[0][..], &[0, 1]] {
                let read = |from: &dyn Gather, threads| {
                    gather(from, &ids, fields, &Budget::default(), threads, &Quiet).unwrap()
                };
                let wanted = read(&memory, Threads::ONE);
                assert!(read(&store, two()) == wanted, "round {round}, batch {k}, two threads");
                assert!(read(&store, Threads::ONE) == wanted, "round {round}, batch {k}");
            }
        }
    }
}

#[test]
fn a_batch_that_two_threads_read_allocates_nothing_once_codecs_are_there() {
    for encoding in ["raw", "lz4", "deflate"] {
        let (_dir, bytes, _) = sample(encoding);
        let store = open(&bytes);
        let ids: Vec<u64> = (0..256).map(|i| i * 11 % COUNT).collect();
        let mut out = vec![0; BYTES * ids.len()];
        let count = || allocations(|| read(&store, &ids, &mut out, BYTES, two()).unwrap());
        // In some of them a helper is started; and while another test's threads have it, deflated ones start a thread.
        let without = std::iter::repeat_with(count).take(20_000).filter(|n| *n == 0).take(100);
        assert_eq!(without.count(), 100, "{encoding}");
    }
}
