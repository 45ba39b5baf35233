//! Gathering allocates nothing per record: every allocation of a thread is counted.

use tensilo_core::Quiet;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{FieldBuffer, FieldSchema, Gather, Places, Schema};
use tensilo_core::threads::Threads;
use tensilo_records::store::{Column, Store, StoreWriter, WriterOptions};
use tensilo_testkit::allocations::allocations;
use tensilo_testkit::oracle;

#[test]
fn a_gather_allocates_the_same_for_ten_records_and_for_ten_thousand() {
    let dir = oracle::temp_dir();
    let schema = Schema::new(vec![
        FieldSchema::fixed("image", DType::U8, [784]),
        FieldSchema::fixed("label", DType::U8, []),
    ])
    .unwrap();
    let images: Vec<u8> = (0..20_000_u32 * 784).map(|i| (i / 50) as u8).collect();
    let labels: Vec<u8> = (0..20_000_u32).map(|i| i as u8).collect();
    for encoding in ["raw", "deflate", "zstd", "lz4", "shuffle+lz4"] {
        let path = dir.path().join(encoding);
        let options = WriterOptions { encoding: Some(encoding.parse().unwrap()), ..WriterOptions::default() };
        let mut writer = StoreWriter::create(&path, schema.clone(), options).unwrap();
        writer.append(20_000, &[Column::fixed(&images), Column::fixed(&labels)]).unwrap();
        writer.commit().unwrap();
        let store = Store::open(&path).unwrap();
        let all: Vec<u64> = (0..20_000).map(|i| i * 7919 % 20_000).collect();
        let mut out = vec![0; 784 * all.len()];
        let mut out_labels = vec![0; all.len()];
        let mut gather = |n: usize| {
            let mut into = [
                FieldBuffer { field: 0, bytes: &mut out, places: Places::Stride(784) },
                FieldBuffer { field: 1, bytes: &mut out_labels, places: Places::Stride(1) },
            ];
            allocations(|| store.gather_into(&all[..n], &mut into, Threads::ONE, &Quiet).unwrap())
        };
        // The first one reads the table and makes the codec's state, the second one notes where raw cells lie.
        gather(20_000);
        gather(20_000);
        let (few, many) = (gather(10), gather(10_000));
        assert_eq!(few, many, "{encoding}");
        assert!(few <= 2, "{encoding}: {few}");
        assert!(out[..784] == images[..784] && out_labels[1] == (7919 % 256) as u8);
    }
}
