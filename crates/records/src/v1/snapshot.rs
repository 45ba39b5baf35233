//! The records that a store had at one moment, as [`Gather`] wants them.

use super::chunks::Chunks;
use super::codec::{Codec, Pool, Scratch};
use super::fault::Fault;
use super::files::Handle;
use super::format::Extent;
use super::read::Source;
use super::table::Table;
use std::sync::{Arc, OnceLock};
use tensilo_core::gather::{FieldBuffer, Gather, Schema, StoreFingerprint};
use tensilo_core::progress::Monitor;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Result};

/// Records whose bytes go into the fingerprint, spread over the store.
const SAMPLES: u64 = 64;

/// The records that were there when it was taken. While one lives, its handle refuses to delete and to compact.
#[derive(Debug)]
pub struct ZrecordSnapshot {
    pub(super) table: Arc<Table>,
    pub(super) chunks: Arc<Chunks>,
    pub(super) pool: Arc<Pool>,
    pub(super) len: u64,
    pub(super) schema: Schema,
    pub(super) fingerprint: OnceLock<StoreFingerprint>,
    /// Keeps others from moving the records, also when the store's handle is gone.
    pub(super) _presence: Arc<Handle>,
}

impl ZrecordSnapshot {
    fn source(&self) -> Source<'_> {
        let exactly = self.schema.fields().first().filter(|f| !f.is_ragged());
        Source {
            table: &self.table,
            chunks: &self.chunks,
            pool: &self.pool,
            len: self.len,
            exactly: exactly.and_then(|f| f.step_bytes().ok()),
        }
    }

    fn compute_fingerprint(&self) -> Result<StoreFingerprint> {
        let mut print = StoreFingerprint::new("zrecord 1");
        for field in self.schema.fields() {
            print = print.with(format!("{:?}{:?}", field.dtype, field.shape).as_bytes());
        }
        print = print.with_number(self.len);
        for id in 0..self.len {
            print = print.with(&self.table.entry(id).encode());
        }
        let frontier = self.table.frontier();
        let mut scratch = Scratch::default();
        let mut reader = self.chunks.reader(0);
        for sample in 0..SAMPLES.min(self.len) {
            let id = (u128::from(sample) * u128::from(self.len) / u128::from(SAMPLES.min(self.len))) as u64;
            let extent: Extent = self.table.extent(id, frontier)?;
            let mut stored = std::mem::take(&mut scratch.stored);
            let crc = reader.stored(&extent, frontier, &mut stored).map(crc32c::crc32c);
            scratch.stored = stored;
            print = print.with_number(u64::from(crc.map_err(|e| e.in_record(id))?));
        }
        Ok(print)
    }
}

impl Gather for ZrecordSnapshot {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len(&self) -> u64 {
        self.len
    }

    /// Made of the table and of the stored bytes of 64 records: the format has no checksums. Compacting changes it.
    fn fingerprint(&self) -> Result<StoreFingerprint> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(*known);
        }
        let print = self.compute_fingerprint()?;
        Ok(*self.fingerprint.get_or_init(|| print))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        let ragged = self.schema.field(field)?.is_ragged();
        self.table.check_ids(ids, self.len)?;
        if ids.len() != steps.len() {
            return Err(Error::invalid(format!("{} ids and room for {} lengths", ids.len(), steps.len()))
                .with_source(Fault::Buffer));
        }
        let frontier = self.table.frontier();
        for (id, to) in ids.iter().zip(steps) {
            *to = if ragged { u64::from(self.table.extent(*id, frontier)?.len) } else { 1 };
        }
        Ok(())
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.table.check_ids(ids, self.len)?;
        for buffer in into.iter() {
            self.schema.field(buffer.field)?;
        }
        if into.len() > 1 {
            tensilo_core::gather::check_buffers(self, ids, into)?;
        }
        for buffer in into {
            self.source().gather(ids, buffer.bytes, buffer.places, threads, monitor)?;
        }
        Ok(())
    }
}

impl ZrecordSnapshot {
    /// Bytes of each record and how it is stored, for listings.
    ///
    /// # Errors
    /// `InvalidArgument` for an id that does not exist; `Corrupt`.
    pub fn stored(&self, id: u64) -> Result<(u32, Codec)> {
        self.table.check_ids(&[id], self.len)?;
        self.table.extent(id, self.table.frontier()).map(|e| (e.stored, e.codec))
    }
}
