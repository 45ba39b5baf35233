//! The data of datasets: every chunk is decoded, which verifies its Fletcher-32 checksum where it has one.

use super::Check;
use super::values::has_heap;
use crate::format::Address;
use crate::format::message::data_layout::DataLayout;
use crate::format::message::dataspace::Dataspace;
use crate::object::ObjectHeader;
use crate::read::{ChunkEntry, Dataset};
use std::sync::Mutex;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Result};
use tensilo_filters::{Pipeline, Scratch};

/// Chunks that are decoded before what was found is reported.
const BATCH: usize = 1024;

/// What one worker keeps between chunks.
#[derive(Default)]
struct Worker {
    stored: Vec<u8>,
    decoded: Vec<u8>,
    scratch: Scratch,
}

impl Check<'_> {
    pub(super) fn dataset(&mut self, path: &str, header: &ObjectHeader, at: u64) -> Result<()> {
        let file = self.file.clone();
        let opened = file.object_at(header.address, path).and_then(|o| o.into_dataset());
        let Some(dataset) = self.sound(opened, at)? else { return Ok(()) };
        match dataset.layout() {
            DataLayout::Chunked(_) => self.chunks(&dataset, at),
            DataLayout::Compact(data) => {
                if self.metadata_only {
                    Ok(())
                } else {
                    self.values(dataset.datatype(), data, at)
                }
            }
            DataLayout::Contiguous { .. } => self.contiguous(&dataset, header, at),
            // Its sources are datasets of this file, which are checked, or of others.
            DataLayout::Virtual { .. } => Ok(()),
        }
    }

    fn contiguous(&mut self, dataset: &Dataset, header: &ObjectHeader, at: u64) -> Result<()> {
        let Some(offset) = dataset.contiguous_offset() else {
            self.sound(header.external_files(), at)?;
            return Ok(());
        };
        let bytes = dataset.elements().saturating_mul(u64::from(dataset.datatype().size));
        let address = Address(offset.saturating_sub(self.space.base()));
        let range = self.space.check_range(address, bytes, "contiguous data");
        if self.sound(range, offset)?.is_none() {
            return Ok(());
        }
        if self.metadata_only || !has_heap(dataset.datatype()) || *dataset.dataspace() == Dataspace::Null {
            return Ok(());
        }
        let read = dataset.read_bytes(&tensilo_core::array::Selection::All);
        match self.sound(read, offset)? {
            Some(data) => self.values(dataset.datatype(), &data, offset),
            None => Ok(()),
        }
    }

    fn chunks(&mut self, dataset: &Dataset, at: u64) -> Result<()> {
        let Some(entries) = self.sound(dataset.chunks(), at)? else { return Ok(()) };
        self.report.summary.structures += 1;
        for entry in entries.iter() {
            let chunk_at = self.space.base().saturating_add(entry.address.0);
            let range = self.space.check_range(entry.address, entry.size, "stored chunk").map(drop);
            let range = range.map_err(|e| e.context(format_args!("chunk {:?}", entry.coords)));
            self.sound(range, chunk_at)?;
        }
        if self.metadata_only || (dataset.filters().is_empty() && !has_heap(dataset.datatype())) {
            return Ok(());
        }
        let Some(grid) = dataset.chunk_grid().cloned() else { return Ok(()) };
        let size = grid.chunk_elements().saturating_mul(u64::from(dataset.datatype().size));
        let unfiltered_edges = matches!(dataset.layout(), DataLayout::Chunked(c) if c.unfiltered_edges);
        let pipeline = Pipeline::new(dataset.filters(), &self.file.options().filters)?;
        let decode = |worker: &mut Worker, entry: &ChunkEntry| -> Result<()> {
            dataset.read_chunk_stored(entry, &mut worker.stored)?;
            let _charge = dataset.file().space().budget().bytes(size, "a chunk")?;
            let too_large = |_| Error::limit("a chunk does not fit in memory");
            worker.decoded.resize(usize::try_from(size).map_err(too_large)?, 0);
            if unfiltered_edges && grid.is_partial(&entry.coords) {
                if worker.stored.len() != worker.decoded.len() {
                    return Err(Error::corrupt(format!("{} of {size} bytes", worker.stored.len())));
                }
                worker.decoded.copy_from_slice(&worker.stored);
                return Ok(());
            }
            let Worker { stored, decoded, scratch } = worker;
            pipeline.decode(scratch, stored, entry.mask, decoded)
        };
        self.decode(dataset, &entries, size, &decode)
    }

    /// Decodes all chunks, on all threads where their values need not be followed.
    fn decode(
        &mut self,
        dataset: &Dataset,
        entries: &[ChunkEntry],
        size: u64,
        decode: &(dyn Fn(&mut Worker, &ChunkEntry) -> Result<()> + Sync),
    ) -> Result<()> {
        let base = self.space.base();
        let follow = has_heap(dataset.datatype());
        let threads = if follow { Threads::ONE } else { self.file.options().threads };
        let mut worker = Worker::default();
        for batch in entries.chunks(if follow { 1 } else { BATCH }) {
            let wrong = Mutex::new(Vec::new());
            if follow {
                self.poll()?;
                match decode(&mut worker, &batch[0]) {
                    Ok(()) => self.values(dataset.datatype(), &worker.decoded, base + batch[0].address.0)?,
                    Err(e) => wrong.lock().unwrap_or_else(|p| p.into_inner()).push((0, e)),
                }
            } else {
                threads.for_each(
                    batch.len(),
                    self.monitor,
                    "decoding",
                    0,
                    Worker::default,
                    |w, i, done| {
                        done.add(size);
                        if let Err(e) = decode(w, &batch[i]) {
                            wrong.lock().unwrap_or_else(|p| p.into_inner()).push((i, e));
                        }
                        Ok(())
                    },
                )?;
            }
            let mut wrong = wrong.into_inner().unwrap_or_else(|p| p.into_inner());
            wrong.sort_by_key(|(i, _)| *i);
            let sound = (batch.len() - wrong.len()) as u64;
            self.report.summary.chunks += sound;
            self.report.summary.bytes += sound.saturating_mul(size);
            for (i, e) in wrong {
                let entry = &batch[i];
                let chunk_at = base.saturating_add(entry.address.0);
                let e = e.context(format_args!("chunk {:?}", entry.coords)).at(chunk_at);
                self.report.found(&e, chunk_at)?;
            }
        }
        Ok(())
    }
}
