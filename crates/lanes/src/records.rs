//! Slabs as records: slab `k` of every lane with the store's slab count is record `k`, each lane a field.

use crate::lane_type::LaneType;
use crate::schema::{FormatVersion, LaneKind};
use crate::store::Store;
use std::sync::OnceLock;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{
    FieldBuffer, FieldSchema, Gather, Schema, StoreFingerprint, check_buffers, check_lengths,
};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Progress, Result};

/// The slabs of a store, to be gathered by their numbers; flat lanes and lanes with other slab counts are left out.
#[derive(Debug)]
pub struct LaneRecords {
    store: Store,
    schema: Schema,
    fingerprint: OnceLock<StoreFingerprint>,
}

impl Store {
    /// The store's slabs as records.
    ///
    /// # Errors
    /// `InvalidArgument` when no lane has a slab for every step.
    pub fn records(&self) -> Result<LaneRecords> {
        let mut fields = Vec::new();
        for lane in self.lanes() {
            if matches!(lane.kind, LaneKind::Slab { .. }) && self.slab_count(&lane.name)? == self.nslabs() {
                let shape = if lane.shape.is_empty() { vec![lane.elems()] } else { lane.shape.clone() };
                fields.push(FieldSchema::fixed(&lane.name, dtype(lane.dtype), shape));
            }
        }
        if fields.is_empty() {
            return Err(Error::invalid(format!("no lane has {} slabs", self.nslabs())));
        }
        Ok(LaneRecords { store: self.clone(), schema: Schema::new(fields)?, fingerprint: OnceLock::new() })
    }
}

fn dtype(t: LaneType) -> DType {
    match t {
        LaneType::F16 => DType::F16,
        LaneType::F32 => DType::F32,
        LaneType::F64 => DType::F64,
        LaneType::I8 => DType::I8,
        LaneType::I16 => DType::I16,
        LaneType::I32 => DType::I32,
        LaneType::I64 => DType::I64,
        LaneType::U8 => DType::U8,
        LaneType::U16 => DType::U16,
        LaneType::U32 => DType::U32,
        LaneType::U64 => DType::U64,
        LaneType::Bool => DType::Bool,
    }
}

impl Gather for LaneRecords {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len(&self) -> u64 {
        self.store.nslabs()
    }

    /// Format 2 has a checksum for every slab; a store of format 1 is read once from end to end.
    fn fingerprint(&self) -> Result<StoreFingerprint> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(*known);
        }
        let mut print = StoreFingerprint::new("lanes");
        for field in self.schema.fields() {
            print = print
                .with(field.name.as_bytes())
                .with(format!("{:?}{:?}", field.dtype, field.shape).as_bytes());
            let lane = self.store.0.placement.lane(&field.name)?;
            for k in 0..lane.slabs {
                let crc = match lane.table.get(k as usize) {
                    Some(state) if self.store.version() == FormatVersion::V2 && state.written => state.crc,
                    _ => crc32c::crc32c(self.store.raw_bytes(&field.name, k..k + 1)?),
                };
                print = print.with_number(u64::from(crc));
            }
        }
        Ok(*self.fingerprint.get_or_init(|| print))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        check_lengths(self, field, ids, steps)?;
        steps.fill(1);
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
        let total = ids.len() as u64;
        for (done, id) in ids.iter().enumerate() {
            monitor.poll(&Progress { stage: "gathering", done: done as u64, total })?;
            for buffer in into.iter_mut() {
                let field = self.schema.field(buffer.field)?;
                let range = buffer.range(done, field.step_bytes()?)?;
                let bytes =
                    buffer.bytes.get_mut(range).ok_or_else(|| Error::invalid("no place for the record"))?;
                self.store.read_bytes(&field.name, *id..*id + 1, bytes).map_err(|e| e.in_record(*id))?;
            }
        }
        Ok(())
    }
}
