//! Our own format: contents, crashes, damage, several processes.

mod allocations;
mod contents;
mod crash;
mod damage;
mod naming;
mod shared;
mod sharing;

use tensilo_core::Result;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{FieldSchema, Gather, Schema};
use tensilo_records::store::{Column, Store, StoreWriter};
use tensilo_testkit::MemoryRecords;

/// Per record, per field, its bytes.
pub(crate) type Records = Vec<Vec<Vec<u8>>>;

/// Three fields: one that goes to the data, a ragged one that may be empty, and one that stays in the table.
pub(crate) fn schema() -> Schema {
    Schema::new(vec![
        FieldSchema::fixed("image", DType::U16, [3, 4]),
        FieldSchema::ragged("track", DType::F32, [2]),
        FieldSchema::fixed("label", DType::U8, []),
    ])
    .unwrap()
}

/// Records of [`schema`] that differ from each other.
pub(crate) fn records(ids: std::ops::Range<usize>) -> Records {
    let bytes = |i: usize, k: usize, n: usize| {
        (0..n).map(|j| (i.wrapping_mul(31) + j / 5 + k + i / 7) as u8).collect::<Vec<u8>>()
    };
    ids.map(|i| vec![bytes(i, 1, 24), bytes(i, 2, 8 * (i * 5 % 7)), bytes(i, 3, 1)]).collect()
}

/// Appends records of any schema.
pub(crate) fn append(writer: &mut StoreWriter, records: &Records) -> Result<std::ops::Range<u64>> {
    let fields = writer.schema().fields().to_vec();
    let mut bytes = Vec::new();
    let mut steps = Vec::new();
    for (i, field) in fields.iter().enumerate() {
        let step = field.step_bytes()?.max(1);
        bytes.push(records.iter().flat_map(|r| r[i].iter().copied()).collect::<Vec<u8>>());
        steps.push(records.iter().map(|r| r[i].len() as u64 / step).collect::<Vec<u64>>());
    }
    let columns: Vec<Column<'_>> = fields
        .iter()
        .zip(bytes.iter().zip(&steps))
        .map(|(f, (b, s))| if f.is_ragged() { Column::ragged(b, s) } else { Column::fixed(b) })
        .collect();
    writer.append(records.len() as u64, &columns)
}

/// Everything a store shows, cell by cell.
pub(crate) fn contents(store: &Store) -> Result<Records> {
    (0..store.len())
        .map(|id| (0..store.schema().fields().len()).map(|field| store.get(id, field)).collect())
        .collect()
}

/// The records as the slow store shows them.
pub(crate) fn memory(schema: Schema, records: &Records) -> MemoryRecords {
    MemoryRecords::new(schema, records.clone())
}

/// Deletes as the format says: from the largest id, the last record takes the place.
pub(crate) fn delete(records: &mut Records, ids: &[u64]) {
    let mut ids = ids.to_vec();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.dedup();
    for id in ids {
        records.swap_remove(id as usize);
    }
}

/// A small generator, the same on every machine.
pub(crate) struct Draw(pub u64);

impl Draw {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}
