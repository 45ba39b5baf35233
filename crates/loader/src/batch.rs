//! A batch: the records of one step, field by field.

use crate::memory::{Memory, Pool};
use crate::sampler::Step;
use std::sync::Arc;
use tensilo_core::gather::{FieldBuffer, FieldSchema, Gather, Places};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Result};

/// One field of a batch.
#[derive(Debug)]
pub struct FieldBatch {
    /// The field: name, type, shape.
    pub schema: FieldSchema,
    /// The records one after the other, C order, little-endian.
    pub memory: Memory,
    /// For a ragged field: where each record starts, in steps, and at the end the sum. Empty for a fixed one.
    pub offsets: Vec<u64>,
}

impl FieldBatch {
    /// The values as a slice of a type of the element's size.
    ///
    /// # Errors
    /// `InvalidArgument` when the type has another size.
    pub fn values<T: bytemuck::Pod>(&self) -> Result<&[T]> {
        self.check::<T>()?;
        bytemuck::try_cast_slice(self.memory.bytes())
            .map_err(|e| Error::invalid(format!("field {:?}: {e}", self.schema.name)))
    }

    /// The values, to be changed.
    ///
    /// # Errors
    /// `InvalidArgument` when the type has another size.
    pub fn values_mut<T: bytemuck::Pod>(&mut self) -> Result<&mut [T]> {
        self.check::<T>()?;
        bytemuck::try_cast_slice_mut(self.memory.bytes_mut())
            .map_err(|e| Error::invalid(format!("a field of this type: {e}")))
    }

    fn check<T>(&self) -> Result<()> {
        if size_of::<T>() as u64 == self.schema.dtype.size() {
            return Ok(());
        }
        let (name, dtype) = (&self.schema.name, self.schema.dtype);
        Err(Error::invalid(format!("field {name:?} is {dtype}, not a type of {} bytes", size_of::<T>())))
    }
}

/// The records of one step of one rank. Dropping it gives its memory to a later batch.
#[derive(Debug)]
pub struct Batch {
    /// The step's number.
    pub step: u64,
    /// The step's epoch.
    pub epoch: u64,
    /// The records, in their order.
    pub ids: Vec<u64>,
    /// Their fields, in the order that was asked for.
    pub fields: Vec<FieldBatch>,
}

impl Batch {
    /// The field of a name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn field(&self, name: &str) -> Result<&FieldBatch> {
        let found = self.fields.iter().find(|f| f.schema.name == name);
        found.ok_or_else(|| Error::not_found(format!("no field {name:?} in the batch")))
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Has it no records? Only a short last batch on many ranks.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Reads the fields of the step's records.
    pub(crate) fn gather(
        store: &dyn Gather,
        fields: &[usize],
        step: &Step,
        ids: &[u64],
        pool: &Arc<Pool>,
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let mut batches = Vec::with_capacity(fields.len());
        let mut starts = Vec::with_capacity(fields.len());
        for &field in fields {
            let schema = store.schema().field(field)?.clone();
            let bytes = schema.step_bytes()?;
            let offsets = if schema.is_ragged() { offsets(store, field, ids)? } else { Vec::new() };
            let steps = offsets.last().copied().unwrap_or(ids.len() as u64);
            let total = steps.checked_mul(bytes).and_then(|n| usize::try_from(n).ok());
            let total = total.ok_or_else(|| Error::limit(format!("{steps} steps of {bytes} bytes")))?;
            starts.push(offsets.iter().map(|o| o * bytes).collect::<Vec<u64>>());
            batches.push(FieldBatch { schema, memory: pool.take(total)?, offsets });
        }
        let mut into = Vec::with_capacity(fields.len());
        for ((batch, starts), &field) in batches.iter_mut().zip(&starts).zip(fields) {
            let places = if batch.schema.is_ragged() {
                Places::Starts(&starts[..ids.len()])
            } else {
                Places::Stride(batch.schema.step_bytes()?)
            };
            into.push(FieldBuffer { field, bytes: batch.memory.bytes_mut(), places });
        }
        store.gather_into(ids, &mut into, threads, monitor)?;
        drop(into);
        batches.iter_mut().for_each(|batch| batch.memory.filled());
        Ok(Self { step: step.number, epoch: step.epoch, ids: ids.to_vec(), fields: batches })
    }
}

/// Where the records of a ragged field start, and the sum.
fn offsets(store: &dyn Gather, field: usize, ids: &[u64]) -> Result<Vec<u64>> {
    let mut offsets = vec![0; ids.len() + 1];
    store.lengths(field, ids, &mut offsets[1..])?;
    let mut sum = 0_u64;
    for o in &mut offsets[1..] {
        sum = sum.saturating_add(*o);
        *o = sum;
    }
    Ok(offsets)
}
