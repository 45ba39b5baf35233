//! One dataset, copied in the layout it has or in another one.

use super::Run;
use super::change::Plan;
use super::pieces::{fill_in, next, runs};
use super::translate::{Translator, has_addresses};
use crate::format::Address;
use crate::format::message::data_layout::{ChunkedLayout, DataLayout};
use crate::format::message::fill_value::{AllocationTime, FillValue};
use crate::object::heap::global_heap_object;
use crate::read::{Dataset, File};
use crate::write::{Bound, ChunkWriter, DatasetBuilder, ExternalData, Filters};
use std::collections::BTreeMap;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::{Error, Result};

/// Bytes that are moved at one time.
const PIECE: u64 = 4 << 20;

/// Where things come from, and the paths of all objects there.
type From<'a> = (&'a File, &'a BTreeMap<Address, Vec<u8>>);

/// What became of chunks.
#[derive(Default)]
struct Moved {
    chunks: u64,
    dangling: u64,
}

impl<'f> Run<'_, 'f> {
    pub(super) fn dataset(&mut self, path: &[u8], d: &Dataset) -> Result<()> {
        match self.options.plan(path, d)? {
            Plan::Keep => self.kept(path, d),
            Plan::Chunks { dims, filters } => self.chunked(path, d, &dims, Some(filters)),
            Plan::Contiguous => match d.layout() {
                DataLayout::Contiguous { .. } if d.header().external_files()?.is_empty() => {
                    self.kept(path, d)
                }
                _ => self.in_one_piece(path, d),
            },
            Plan::Compact => {
                let data = d.read_bytes(&Selection::All)?;
                self.compact(path, d, data)
            }
        }
    }

    /// Copies in the layout it has.
    fn kept(&mut self, path: &[u8], d: &Dataset) -> Result<()> {
        let from = (self.source, self.paths);
        match d.layout() {
            DataLayout::Chunked(layout) => self.chunked(path, d, &layout.dims, None),
            DataLayout::Virtual { heap: Some(heap), index } => {
                let list = global_heap_object(self.source.space(), *heap, *index)?.to_vec();
                self.begin(path, d, None)?.create_virtual_stored(&list)
            }
            DataLayout::Virtual { heap: None, .. } => {
                Err(Error::unsupported("a virtual dataset without a list of sources"))
            }
            DataLayout::Compact(data) => self.compact(path, d, data.clone()),
            DataLayout::Contiguous { .. } => {
                let external = d.header().external_files()?;
                let builder = self.begin(path, d, None)?;
                if !external.is_empty() {
                    return external_data(builder, external);
                }
                let Some(offset) = d.contiguous_offset() else { return builder.create() };
                self.done.dangling += contiguous(from, builder, d, offset)?;
                Ok(())
            }
        }
    }

    /// Begins the copy of a dataset: datatype, dataspace and fill value.
    fn begin(
        &mut self,
        path: &[u8],
        d: &Dataset,
        allocation: Option<AllocationTime>,
    ) -> Result<DatasetBuilder<'_, 'f>> {
        let mut fill = d.fill().clone();
        if let FillValue::Value(value) = &mut fill.value {
            let mut translator = Translator::new(self.source, self.paths);
            translator.all(d.datatype(), value, self.writer)?;
        }
        fill.allocation = allocation.unwrap_or(fill.allocation);
        let committed = d.header().committed_datatype()?.and_then(|a| self.paths.get(&a)).cloned();
        let builder = self.writer.dataset(path).dataspace(d.dataspace().clone()).fill_message(fill);
        Ok(match committed {
            Some(path) => builder.committed_type(path),
            None => builder.datatype(d.datatype().clone()),
        })
    }

    fn compact(&mut self, path: &[u8], d: &Dataset, mut data: Vec<u8>) -> Result<()> {
        let mut translator = Translator::new(self.source, self.paths);
        translator.all(d.datatype(), &mut data, self.writer)?;
        self.done.dangling += translator.dangling;
        let early = Some(AllocationTime::Early);
        self.begin(path, d, early)?.compact().write_bytes(&data).map(|_| ())
    }

    /// Writes in one piece what lies otherwise.
    fn in_one_piece(&mut self, path: &[u8], d: &Dataset) -> Result<()> {
        let from = (self.source, self.paths);
        let mut out = self.begin(path, d, Some(AllocationTime::Late))?.contiguous_writer()?;
        let mut translator = Translator::new(from.0, from.1);
        for run in runs(d.shape(), u64::from(d.datatype().size), PIECE) {
            let mut bytes = d.read_bytes(&Selection::from(run))?;
            translator.all(d.datatype(), &mut bytes, out.writer())?;
            out.write(&bytes)?;
        }
        out.finish()?;
        self.done.dangling += translator.dangling;
        Ok(())
    }

    /// Writes in chunks: those of the source, or other ones.
    fn chunked(&mut self, path: &[u8], d: &Dataset, dims: &[u64], filters: Option<Filters>) -> Result<()> {
        let from = (self.source, self.paths);
        let of_source = match d.layout() {
            DataLayout::Chunked(layout) if layout.dims == dims => Some(layout),
            _ => None,
        };
        let was_plain = of_source.is_some_and(|l| l.unfiltered_edges);
        let plain_edges = was_plain && self.writer.bound() >= Bound::V110;
        let as_stored = filters.is_none() && plain_edges == was_plain && !has_addresses(d.datatype());
        let filters = filters.unwrap_or_else(|| Filters::from(d.filters()));
        let allocation = match d.layout() {
            DataLayout::Chunked(_) => None,
            _ => Some(AllocationTime::Incremental),
        };
        let builder = self.begin(path, d, allocation)?.chunk(dims).filters(filters);
        let builder = if plain_edges { builder.unfiltered_edges() } else { builder };
        let mut chunks = builder.chunk_writer()?;
        let moved = match of_source {
            Some(_) if as_stored => copied(d, &mut chunks)?,
            Some(layout) => encoded(from, d, layout, &mut chunks)?,
            None => cut_anew(from, d, dims, &mut chunks)?,
        };
        chunks.finish()?;
        match as_stored && of_source.is_some() {
            true => self.done.chunks_copied += moved.chunks,
            false => self.done.chunks_encoded += moved.chunks,
        }
        self.done.dangling += moved.dangling;
        Ok(())
    }
}

/// Is the chunk inside the array? Chunks that a shrunken dataset left behind are garbage.
fn inside(coords: &[u64], grid: &[u64]) -> bool {
    coords.iter().zip(grid).all(|(c, g)| c < g)
}

/// Copies chunks as they are stored.
fn copied(d: &Dataset, chunks: &mut ChunkWriter<'_, '_>) -> Result<Moved> {
    let grid = chunks.grid().to_vec();
    let (mut moved, mut stored) = (Moved::default(), Vec::new());
    for chunk in d.chunks()?.iter().filter(|c| inside(&c.coords, &grid)) {
        chunks.writer().poll("copying chunks", moved.chunks, 0)?;
        d.read_chunk_stored(chunk, &mut stored)?;
        chunks.write_encoded(&chunk.coords, &stored, chunk.mask)?;
        moved.chunks += 1;
    }
    Ok(moved)
}

/// Decodes the chunks that are there and writes them with other filters, or with addresses of the new file.
fn encoded(
    from: From<'_>,
    d: &Dataset,
    layout: &ChunkedLayout,
    chunks: &mut ChunkWriter<'_, '_>,
) -> Result<Moved> {
    let grid = chunks.grid().to_vec();
    let mut moved = Moved::default();
    for chunk in d.chunks()?.iter().filter(|c| inside(&c.coords, &grid)) {
        moved.dangling += one_chunk(from, d, &layout.dims, &chunk.coords, chunks)?;
        moved.chunks += 1;
    }
    Ok(moved)
}

/// Reads an array in chunks that it did not have.
fn cut_anew(from: From<'_>, d: &Dataset, dims: &[u64], chunks: &mut ChunkWriter<'_, '_>) -> Result<Moved> {
    let mut moved = Moved::default();
    let unwritten = matches!(d.layout(), DataLayout::Contiguous { .. })
        && d.contiguous_offset().is_none()
        && d.header().external_files()?.is_empty();
    let grid = chunks.grid().to_vec();
    if unwritten || grid.contains(&0) {
        return Ok(moved);
    }
    let mut coords = vec![0; grid.len()];
    loop {
        moved.dangling += one_chunk(from, d, dims, &coords, chunks)?;
        moved.chunks += 1;
        if !next(&mut coords, &grid) {
            return Ok(moved);
        }
    }
}

/// Reads one chunk's part of the array and writes it; returns the number of dangling references.
fn one_chunk(
    from: From<'_>,
    d: &Dataset,
    dims: &[u64],
    coords: &[u64],
    chunks: &mut ChunkWriter<'_, '_>,
) -> Result<u64> {
    let start: Vec<u64> = coords.iter().zip(dims).map(|(c, n)| c * n).collect();
    let ends = start.iter().zip(dims).zip(d.shape());
    let extent: Vec<u64> = ends.map(|((s, n), end)| (*n).min(end - s)).collect();
    let part = d.read_bytes(&Selection::from(Hyperslab::new(start, extent.clone())))?;
    let mut raw = if extent == dims { part } else { fill_in(&part, &extent, dims, chunks.padding()) };
    let mut translator = Translator::new(from.0, from.1);
    translator.all(d.datatype(), &mut raw, chunks.writer())?;
    chunks.write_chunk(coords, raw)?;
    Ok(translator.dangling)
}

fn external_data(builder: DatasetBuilder<'_, '_>, files: Vec<crate::object::ExternalFile>) -> Result<()> {
    let pieces: Vec<ExternalData> = files
        .into_iter()
        .map(|e| {
            let file = String::from_utf8(e.name)
                .map_err(|_| Error::unsupported("an external file name that is not UTF-8"))?;
            Ok(ExternalData { file, offset: e.offset, bytes: e.size })
        })
        .collect::<Result<_>>()?;
    builder.create_external(&pieces)
}

/// Copies raw data in one run, from the absolute position `offset`; returns the number of dangling references.
fn contiguous(from: From<'_>, builder: DatasetBuilder<'_, '_>, d: &Dataset, offset: u64) -> Result<u64> {
    let element = u64::from(d.datatype().size).max(1);
    let size = d.elements() * element;
    let mut writer = builder.contiguous_writer()?;
    let mut translator = Translator::new(from.0, from.1);
    let step = (PIECE / element).max(1) * element;
    let source = from.0.space().source();
    if offset.checked_add(size).is_none_or(|end| end > source.len()) {
        return Err(
            Error::corrupt(format!("{size} bytes of raw data reach past the end of the file")).at(offset)
        );
    }
    let mut at = 0;
    while at < size {
        let here = step.min(size - at);
        let (mut piece, _charge) = from.0.space().budget().buffer(here, "raw data")?;
        source.read_at(offset + at, &mut piece)?;
        translator.all(d.datatype(), &mut piece, writer.writer())?;
        writer.write(&piece)?;
        at += here;
    }
    writer.finish()?;
    Ok(translator.dangling)
}
