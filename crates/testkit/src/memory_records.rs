//! The slow, plain store of records: what every other [`Gather`] must equal.

use tensilo_core::Result;
use tensilo_core::gather::{FieldBuffer, Gather, Schema, StoreFingerprint, check_buffers, check_lengths};
use tensilo_core::progress::{Monitor, Progress};
use tensilo_core::threads::Threads;

/// Records in memory.
#[derive(Debug, Clone)]
pub struct MemoryRecords {
    schema: Schema,
    /// Per record, per field, its bytes.
    records: Vec<Vec<Vec<u8>>>,
}

impl MemoryRecords {
    /// Takes records: for each the bytes of every field.
    ///
    /// # Panics
    /// When a field's bytes do not fit its schema.
    pub fn new(schema: Schema, records: Vec<Vec<Vec<u8>>>) -> Self {
        for record in &records {
            assert_eq!(record.len(), schema.fields().len(), "a record has all fields");
            for (field, bytes) in schema.fields().iter().zip(record) {
                let step = field.step_bytes().expect("a small field") as usize;
                let fits =
                    if field.is_ragged() { step > 0 && bytes.len() % step == 0 } else { bytes.len() == step };
                assert!(fits, "{} bytes for {field:?}", bytes.len());
            }
        }
        Self { schema, records }
    }

    /// The records.
    pub fn records(&self) -> &[Vec<Vec<u8>>] {
        &self.records
    }
}

impl Gather for MemoryRecords {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len(&self) -> u64 {
        self.records.len() as u64
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        let all = self.records.iter().flatten();
        Ok(all.fold(StoreFingerprint::new("memory"), |f, bytes| f.with(bytes)))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        check_lengths(self, field, ids, steps)?;
        let schema = self.schema.field(field)?;
        for (id, n) in ids.iter().zip(steps) {
            *n = match schema.fixed_steps() {
                Some(one) => one,
                None => self.records[*id as usize][field].len() as u64 / schema.step_bytes()?,
            };
        }
        Ok(())
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        _threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        check_buffers(self, ids, into)?;
        monitor.poll(&Progress { stage: "gathering", done: 0, total: ids.len() as u64 })?;
        for buffer in into {
            for (i, id) in ids.iter().enumerate() {
                let bytes = &self.records[*id as usize][buffer.field];
                let range = buffer.range(i, bytes.len() as u64)?;
                buffer.bytes[range].copy_from_slice(bytes);
            }
        }
        Ok(())
    }
}
