//! Rows of an `.npy` file cut into records of different lengths.

use super::rows::{NpyRows, Rows};
use crate::npy::NpyFile;
use tensilo_core::gather::{
    FieldBuffer, FieldSchema, FieldShape, Gather, Schema, StoreFingerprint, check_buffers, check_lengths,
};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, Monitor, Progress, Result};

/// Runs of rows of an `.npy` file, one for each record, as another file of 64-bit numbers says: a ragged field.
#[derive(Debug)]
pub struct NpyRagged {
    rows: NpyRows,
    /// Where each record begins, in rows; one more than records.
    starts: Vec<u64>,
    schema: Schema,
}

impl NpyRagged {
    /// Shows the rows of `values` cut into runs of the lengths that `lengths` holds.
    ///
    /// # Errors
    /// `InvalidArgument` when the lengths are no 64-bit numbers or do not add up; as [`NpyRows::new`].
    pub fn new(name: &str, values: NpyFile, lengths: &NpyFile) -> Result<Self> {
        let [records] = lengths.shape() else {
            return Err(Error::invalid("the lengths are no list").in_object(name));
        };
        if !matches!(lengths.descr(), "<u8" | "<i8" | ">u8" | ">i8") {
            let message = format!("the lengths are {}, 64-bit integers are wanted", lengths.descr());
            return Err(Error::invalid(message).in_object(name));
        }
        let all = values.shape().first().copied().unwrap_or(0);
        let (mut bytes, _charge) = Budget::default().buffer(records.saturating_mul(8), "the lengths")?;
        lengths.read_at(0, &mut bytes)?;
        let mut starts = vec![0_u64];
        for n in bytes.as_chunks().0 {
            let last = starts.last().copied().unwrap_or(0);
            let n = if lengths.descr().starts_with('>') {
                u64::from_be_bytes(*n)
            } else {
                u64::from_le_bytes(*n)
            };
            let next = last.checked_add(n).filter(|end| *end <= all);
            starts.push(next.ok_or_else(|| Error::invalid(format!("the lengths pass the {all} rows")))?);
        }
        if starts.last() != Some(&all) {
            return Err(
                Error::invalid(format!("the lengths do not add up to the {all} rows")).in_object(name)
            );
        }
        let rows = NpyRows::new(name, values)?;
        let field = rows.schema().field(0)?;
        let (FieldShape::Fixed(inner) | FieldShape::Ragged(inner)) = &field.shape;
        let schema = Schema::new(vec![FieldSchema::ragged(name, field.dtype, inner.clone())])?;
        Ok(Self { rows, starts, schema })
    }
}

impl Gather for NpyRagged {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        let print = self.starts.iter().fold(StoreFingerprint::new("npy runs"), |p, n| p.with_number(*n));
        Ok(print.with_store(self.rows.fingerprint()?))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        check_lengths(self, field, ids, steps)?;
        for (id, n) in ids.iter().zip(steps) {
            *n = self.starts[*id as usize + 1] - self.starts[*id as usize];
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
        let bytes = self.schema.field(0)?.step_bytes()?;
        for (i, id) in ids.iter().enumerate() {
            monitor.poll(&Progress { stage: "gathering", done: i as u64, total: ids.len() as u64 })?;
            let (start, end) = (self.starts[*id as usize], self.starts[*id as usize + 1]);
            for buffer in into.iter_mut() {
                let range = buffer.range(i, (end - start) * bytes)?;
                self.rows.read(start, end - start, &mut buffer.bytes[range], monitor)?;
            }
        }
        Ok(())
    }
}
