//! Whole record stores: opened, then looked at record by record, gathered and verified.

use std::path::Path;
use std::sync::Arc;
use tensilo_core::gather::Gather;
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Limits, Quiet};
use tensilo_records::store::{OpenOptions, Store};
use tensilo_records::v1::{Geometry, Zrecord, ZrecordOptions};
use tensilo_testkit::disk_log::ModelDisk;

/// Most records of a store that is read as a whole, and most fields that are looked at.
const MOST_RECORDS: u64 = 4096;
const MOST_FIELDS: usize = 8;

fn limits() -> Limits {
    Limits::default().with_bytes(crate::MOST_BYTES / 4)
}

/// First, middle and last record, and none.
fn some_ids(len: u64) -> [u64; 5] {
    [0, len / 2, len.saturating_sub(1), len, u64::MAX]
}

/// Reads some records of every field as a loader does.
fn look_at(store: &dyn Gather) {
    let _ = store.fingerprint();
    let ids: Vec<u64> = (0..store.len().min(64)).rev().collect();
    for field in 0..store.schema().fields().len().min(MOST_FIELDS) {
        let mut steps = vec![0; ids.len()];
        let _ = store.lengths(field, &ids, &mut steps);
        let budget = Budget::new(limits());
        if let Ok(values) = tensilo_core::gather::gather(store, &ids, &[field], &budget, Threads::ONE, &Quiet)
        {
            assert_eq!(values.len(), 1, "one field was asked for");
        }
    }
}

/// Opens a store of our own format. Errors are answers.
pub fn records(data: &[u8]) {
    let options = OpenOptions { limits: limits(), map: false };
    let Ok(store) = Store::from_source(Arc::new(MemorySource::new(data)), &options) else { return };
    let _ = (store.metadata(), store.stats());
    for field in 0..store.schema().fields().len().min(MOST_FIELDS) {
        for id in some_ids(store.len()) {
            let cell = store.get(id, field);
            assert!(cell.is_err() || id < store.len(), "a record that does not exist");
        }
    }
    look_at(&store);
    if store.len() <= MOST_RECORDS
        && let Ok(verified) = store.verify(Threads::ONE, &Quiet)
    {
        assert!(verified.bad_records <= verified.records, "more bad records than there are");
    }
}

/// Opens a Zrecord v1 store: two bytes say how long the table is, then come the table and the first data file.
pub fn zrecord(data: &[u8]) {
    let Some((len, rest)) = data.split_first_chunk::<2>() else { return };
    let (meta, chunk) = rest.split_at(usize::from(u16::from_le_bytes(*len)).min(rest.len()));
    for schema in [None, Some(&br#"{"format": "loaderx-zrecord", "dtype": "|u1", "shape": [28, 28]}"#[..])] {
        let disk = ModelDisk::new();
        let folder = Path::new("/store");
        disk.put(folder.join("meta.zr"), meta);
        disk.put(folder.join("0.zr"), chunk);
        if let Some(schema) = schema {
            disk.put(folder.join("schema.json"), schema);
        }
        let options = ZrecordOptions {
            read_only: true,
            mapped: false,
            budget: Budget::new(limits()),
            geometry: Geometry { chunk_bytes: 1 << 20, chunks: 16, records: 4096 },
            threads: Threads::ONE,
            disk: Arc::new(disk),
            ..ZrecordOptions::default()
        };
        let Ok(store) = Zrecord::open(folder, options) else { continue };
        let _ = store.stats();
        if let Ok(snapshot) = store.snapshot() {
            for id in some_ids(snapshot.len()) {
                let stored = snapshot.stored(id);
                assert!(stored.is_err() || id < snapshot.len(), "a record that does not exist");
            }
            look_at(&snapshot);
        }
    }
}
