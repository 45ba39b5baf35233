//! Chunked datasets: a whole array at once, or chunk by chunk.

use super::addresses::Of;
use super::dataset::{Described, Start, Written, start};
use super::encode::{Encoder, Source};
use super::index::{Chunks, Record};
use super::out::Out;
use super::split::{Grid, fill_with};
use super::tree::Storage;
use super::writer::FileWriter;
use crate::format::Address;
use tensilo_core::{Error, Result};
use tensilo_filters::{ChunkInfo, Pipeline};

/// Takes the chunks of a dataset in any order; [`finish`](Self::finish) enters it into the file. Chunks never
/// written read as the fill value.
///
/// Chunks are held back until the window of [`WriteOptions`](super::WriteOptions) is full, then encoded on all
/// threads. Dropped unfinished, it makes the whole file unfinishable.
#[derive(Debug)]
#[must_use = "the dataset is part of the file once it is finished"]
pub struct ChunkWriter<'w, 'f> {
    writer: &'w mut FileWriter<'f>,
    described: Option<Described>,
    grid: Grid,
    chunks: Chunks,
    pipeline: Pipeline,
    info: ChunkInfo,
    padding: Vec<u8>,
    /// Chunks that wait to be encoded.
    waiting: Vec<(u64, Vec<u8>)>,
    stored: u64,
}

impl<'w, 'f> ChunkWriter<'w, 'f> {
    pub(crate) fn new(writer: &'w mut FileWriter<'f>, described: Described) -> Result<Self> {
        let shown = described.shown();
        let Start { grid, chunks, pipeline, info } =
            start(writer, &described).map_err(|e| e.in_object(shown))?;
        Ok(Self {
            writer,
            padding: described.padding(),
            described: Some(described),
            grid,
            chunks,
            pipeline,
            info,
            waiting: Vec::new(),
            stored: 0,
        })
    }

    /// Bytes of a chunk before filtering.
    pub fn chunk_bytes(&self) -> usize {
        self.info.chunk_dims.iter().product::<u64>() as usize * self.info.element_size
    }

    /// One element as it pads chunks that reach over the end.
    pub(crate) fn padding(&self) -> &[u8] {
        &self.padding
    }

    /// The file being written, for objects in its heap.
    pub(crate) fn writer(&mut self) -> &mut FileWriter<'f> {
        self.writer
    }

    /// Number of chunks along each dimension.
    pub fn grid(&self) -> &[u64] {
        &self.chunks.grid
    }

    /// Chunks that fit in the window.
    fn ahead(&self) -> usize {
        let fit = self.writer.options.window / (self.chunk_bytes().max(1) as u64);
        usize::try_from(fit).unwrap_or(usize::MAX).max(self.writer.options.threads.get())
    }

    fn number(&self, coords: &[u64]) -> Result<u64> {
        let number = self.chunks.number(coords).ok_or_else(|| {
            Error::invalid(format!("chunk {coords:?} is outside the grid {:?}", self.chunks.grid))
        })?;
        let taken = self.chunks.records.contains_key(&number)
            || self.waiting.iter().any(|(waiting, _)| *waiting == number);
        if taken {
            return Err(Error::already_exists(format!("chunk {coords:?} was written already")));
        }
        Ok(number)
    }

    /// Writes one chunk from its bytes, whole also where it reaches over the end of the array.
    ///
    /// # Errors
    /// `InvalidArgument` for coordinates outside the grid or a wrong number of bytes, `AlreadyExists` for a chunk
    /// written before, errors of filters, disk and monitor.
    pub fn write_chunk(&mut self, coords: &[u64], raw: impl Into<Vec<u8>>) -> Result<()> {
        let number = self.number(coords)?;
        let raw = raw.into();
        if raw.len() != self.chunk_bytes() {
            return Err(Error::invalid(format!("{} bytes for a chunk of {}", raw.len(), self.chunk_bytes())));
        }
        self.waiting.push((number, raw));
        if self.waiting.len() >= self.ahead() { self.flush() } else { Ok(()) }
    }

    /// Writes one chunk that is encoded already, with the mask of filters that were skipped.
    ///
    /// # Errors
    /// As [`write_chunk`](Self::write_chunk).
    pub fn write_encoded(&mut self, coords: &[u64], stored: &[u8], mask: u32) -> Result<()> {
        let number = self.number(coords)?;
        self.flush()?;
        if self.chunks.filtered {
            if stored.is_empty() {
                return Err(Error::invalid("an encoded chunk of no bytes"));
            }
        } else if stored.len() != self.chunk_bytes() || mask != 0 {
            return Err(Error::invalid(format!("{} bytes for an unfiltered chunk", stored.len())));
        }
        self.records().put(number, stored, mask)
    }

    /// Encodes and writes the chunks that wait.
    fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let chunks = std::mem::take(&mut self.waiting);
        let edge =
            |number: &u64| self.chunks.unfiltered_edges && self.grid.is_edge(&self.grid.coords(*number));
        let plain = chunks.iter().map(|(number, _)| edge(number)).collect();
        let batch = Batch { chunks, plain };
        self.run(batch.chunks.len(), &batch, &|i| batch.chunks[i].0)
    }

    /// Writes all chunks of an array given row by row.
    pub(crate) fn write_array(&mut self, array: &[u8]) -> Result<()> {
        let count = usize::try_from(self.grid.chunks()?)
            .map_err(|_| Error::invalid("more chunks than this machine can count"))?;
        let grid = self.grid.clone();
        let fill_element = self.padding.clone();
        let whole =
            Whole { array, grid: &grid, fill: &fill_element, plain_edges: self.chunks.unfiltered_edges };
        self.run(count, &whole, &|i| i as u64)
    }

    fn run(
        &mut self,
        count: usize,
        source: &dyn Source,
        number: &(dyn Fn(usize) -> u64 + Sync),
    ) -> Result<()> {
        let ahead = self.ahead();
        let options = &self.writer.options;
        let encoder = Encoder { pipeline: &self.pipeline, info: &self.info, ahead };
        let mut records =
            Records { out: &mut self.writer.out, chunks: &mut self.chunks, stored: &mut self.stored };
        let sink = &mut |i, stored: &[u8], mask| records.put(number(i), stored, mask);
        encoder.run(options.threads, &*options.monitor, count, source, sink)
    }

    /// Writes padding where all chunks are there from the beginning and some were not given.
    fn fill_unwritten(&mut self) -> Result<()> {
        let mut padding = Vec::new();
        fill_with(&mut padding, &self.padding, self.chunk_bytes());
        for number in 0..self.grid.chunks()? {
            if !self.chunks.records.contains_key(&number) {
                self.writer.poll("filling", number, 0)?;
                self.records().put(number, &padding, 0)?;
            }
        }
        Ok(())
    }

    fn records(&mut self) -> Records<'_, 'f> {
        Records { out: &mut self.writer.out, chunks: &mut self.chunks, stored: &mut self.stored }
    }

    /// Enters the dataset into the file.
    ///
    /// # Errors
    /// Errors of filters, disk and monitor for the last chunks.
    pub fn finish(mut self) -> Result<Written> {
        self.flush()?;
        if self.chunks.run.is_some() {
            self.fill_unwritten()?;
        }
        let Some(described) = self.described.take() else {
            return Err(Error::invalid("the dataset was finished already"));
        };
        let chunks = Chunks { records: std::mem::take(&mut self.chunks.records), ..self.chunks.clone() };
        self.writer.add_dataset(described, Storage::Chunked(chunks), self.stored)
    }
}

impl Drop for ChunkWriter<'_, '_> {
    fn drop(&mut self) {
        if self.described.is_some() {
            self.writer.out.give_up();
        }
    }
}

/// Where encoded chunks go.
struct Records<'a, 'f> {
    out: &'a mut Out<'f>,
    chunks: &'a mut Chunks,
    stored: &'a mut u64,
}

impl Records<'_, '_> {
    fn put(&mut self, number: u64, stored: &[u8], mask: u32) -> Result<()> {
        let size = stored.len() as u64;
        let address = match self.chunks.run {
            Some(first) => Address(first.0 + number * size),
            None => self.out.allocate(size, Of::Raw)?,
        };
        self.out.write(address, stored)?;
        self.chunks.records.insert(number, Record { address, size, mask });
        *self.stored += size;
        Ok(())
    }
}

/// Chunks cut out of one array.
struct Whole<'a> {
    array: &'a [u8],
    grid: &'a Grid,
    fill: &'a [u8],
    plain_edges: bool,
}

impl Source for Whole<'_> {
    fn raw<'a>(&'a self, i: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.grid.cut(self.array, &self.grid.coords(i as u64), self.fill, scratch)
    }

    fn is_plain(&self, i: usize) -> bool {
        self.plain_edges && self.grid.is_edge(&self.grid.coords(i as u64))
    }
}

/// Chunks that were given one by one.
struct Batch {
    chunks: Vec<(u64, Vec<u8>)>,
    /// For each chunk: is it stored without filters?
    plain: Vec<bool>,
}

impl Source for Batch {
    fn raw<'a>(&'a self, i: usize, _scratch: &'a mut Vec<u8>) -> &'a [u8] {
        &self.chunks[i].1
    }

    fn is_plain(&self, i: usize) -> bool {
        self.plain[i]
    }
}
