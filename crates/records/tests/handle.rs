//! One handle opens both formats.

use crate::store::{append, contents, memory, records, schema};
use tensilo_core::dtype::DType;
use tensilo_core::gather::{Concat, FieldSchema, Gather, Schema};
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Quiet};
use tensilo_records::store::{Column, StoreWriter, WriterOptions};
use tensilo_records::v1::{Items, Zrecord, ZrecordOptions};
use tensilo_records::{Format, Records, RecordsWriter};
use tensilo_testkit::{MemoryRecords, conformance, oracle};

#[test]
fn a_store_of_our_own_format_conforms_through_the_common_handle() {
    let dir = oracle::temp_dir();
    let path = dir.path().join("a.trec");
    let mut writer = StoreWriter::create(&path, schema(), WriterOptions::default()).unwrap();
    append(&mut writer, &records(0..200)).unwrap();
    writer.commit().unwrap();
    let mut store = Records::open(&path).unwrap();
    assert_eq!((store.format(), store.generation()), (Format::Tensilo, 2));
    conformance::gather(&store, &memory(schema(), &records(0..200)));
    conformance::gather(&store.view((0..200).rev().collect::<Vec<_>>()).unwrap(), &{
        let mut all = records(0..200);
        all.reverse();
        memory(schema(), &all)
    });
    append(&mut writer, &records(200..201)).unwrap();
    assert!(!store.refresh().unwrap());
    writer.commit().unwrap();
    let old = store.clone();
    assert!(store.refresh().unwrap() && !store.refresh().unwrap());
    assert_eq!((old.len(), store.len()), (200, 201));
    assert!(contents(store.as_store().unwrap()).unwrap() == records(0..201));
}

#[test]
fn a_zrecord_store_is_read_appended_to_deleted_from_and_joined_through_it() {
    let dir = oracle::temp_dir();
    let folder = dir.path().join("z");
    let made = Zrecord::create(&folder, ZrecordOptions::default()).unwrap();
    let one = |i: u8| vec![i; 3 + usize::from(i) % 30];
    let (bytes, lens): (Vec<u8>, Vec<u32>) = {
        let all: Vec<Vec<u8>> = (0..50).map(one).collect();
        (all.concat(), all.iter().map(|r| r.len() as u32).collect())
    };
    let starts: Vec<u64> =
        lens.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + u64::from(*n)))).collect();
    made.append(Items::Ragged { bytes: &bytes, starts: &starts, lens: &lens }, None).unwrap();
    drop(made);
    let schema = Schema::new(vec![FieldSchema::ragged("data", DType::U8, [])]).unwrap();
    let expected =
        |ids: &[u8]| MemoryRecords::new(schema.clone(), ids.iter().map(|i| vec![one(*i)]).collect());

    let mut store = Records::open(&folder).unwrap();
    assert_eq!(store.format(), Format::Zrecord);
    conformance::gather(&store, &expected(&(0..50).collect::<Vec<_>>()));
    assert!(store.verify(Threads::ONE, &Quiet).unwrap().is_good());
    {
        let mut writer = RecordsWriter::open(&folder, WriterOptions::default()).unwrap();
        let steps = [one(60).len() as u64];
        assert_eq!(writer.append(1, &[Column::ragged(&one(60), &steps)]).unwrap(), 50..51);
        assert_eq!(writer.append(1, &[Column::fixed(&[1])]).unwrap_err().kind(), ErrorKind::InvalidArgument);
        writer.commit().unwrap();
    }
    assert!(store.refresh().unwrap());
    assert_eq!(store.get(50, 0).unwrap(), one(60));
    drop(store);
    let mut writer = RecordsWriter::open(&folder, WriterOptions::default()).unwrap();
    writer.delete(&[0]).unwrap();
    writer.compact(&Quiet).unwrap();
    drop(writer);
    let mut ids: Vec<u8> = (0..50).collect();
    ids[0] = 60;
    conformance::gather(&Records::open(&folder).unwrap(), &expected(&ids));

    // Both formats in one list of records.
    let path = dir.path().join("own.trec");
    let mut writer = RecordsWriter::create(&path, schema.clone(), WriterOptions::default()).unwrap();
    writer.append(1, &[Column::ragged(&one(99), &[one(99).len() as u64])]).unwrap();
    writer.commit().unwrap();
    ids.push(99);
    let both: Vec<std::sync::Arc<dyn Gather>> =
        [&folder, &path].map(|p| std::sync::Arc::new(Records::open(p).unwrap()) as _).to_vec();
    conformance::gather(&Concat::new(both).unwrap(), &expected(&ids));
}

#[test]
fn what_is_no_store_is_refused_by_name() {
    let dir = oracle::temp_dir();
    assert_eq!(Records::open(dir.path().join("nothing")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(Records::open(dir.path()).unwrap_err().kind(), ErrorKind::Corrupt);
    let path = oracle::workspace_root().join("Cargo.toml");
    assert_eq!(Records::open(path).unwrap_err().kind(), ErrorKind::Corrupt);
}
