//! A flat lane written front to back, a piece at a time, so that it need not fit in memory.

use crate::writer::StoreWriter;
use tensilo_core::{Error, Result};

/// Takes the bytes of a flat lane in order; made by [`StoreWriter::flat_writer`].
///
/// Dropped unfinished, the lane counts as not written.
#[derive(Debug)]
#[must_use = "the lane counts as written once this is finished"]
pub struct FlatWriter<'a> {
    writer: &'a StoreWriter,
    index: usize,
    /// Bytes written, and of the whole lane.
    at: u64,
    end: u64,
    crc: u32,
}

impl FlatWriter<'_> {
    /// Writes the next little-endian bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when they are more than the lane has; `InsufficientDisk`, `Io`.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        if len > self.end - self.at {
            let name = &self.writer.spec(self.index).name;
            return Err(
                Error::invalid(format!("{len} bytes after {} of {}", self.at, self.end)).in_object(name)
            );
        }
        self.writer.send(self.index, 0, self.at, bytes)?;
        if self.writer.has_checksums() {
            self.crc = crc32c::crc32c_append(self.crc, bytes);
        }
        self.at += len;
        Ok(())
    }

    /// Says that the lane is complete.
    ///
    /// # Errors
    /// `InvalidArgument` when bytes are missing.
    pub fn finish(self) -> Result<()> {
        if self.at != self.end {
            let name = &self.writer.spec(self.index).name;
            return Err(
                Error::invalid(format!("{} of {} bytes were written", self.at, self.end)).in_object(name)
            );
        }
        self.writer.mark(self.index, 0, self.crc);
        Ok(())
    }
}

impl StoreWriter {
    /// Begins to write a flat lane from bytes that come a piece at a time.
    ///
    /// ```
    /// use tensilo_lanes::{LaneSpec, LaneType, Store, StoreSchema, StoreWriter, WriterOptions};
    /// # use tensilo_core::io::{Disk, SystemDisk};
    /// # let path = std::env::temp_dir().join(format!("tensilo-flat-doc-{}.pts", std::process::id()));
    /// let schema = StoreSchema::new(1, vec![LaneSpec::flat("x", LaneType::U8, 5)]);
    /// let writer = StoreWriter::create_with(&path, schema, WriterOptions::default())?;
    /// let mut flat = writer.flat_writer("x")?;
    /// flat.write(&[1, 2])?;
    /// flat.write(&[3, 4, 5])?;
    /// flat.finish()?;
    /// writer.finish()?;
    /// assert_eq!(Store::open(&path)?.typed::<u8>("x")?.flat()?, [1, 2, 3, 4, 5]);
    /// # SystemDisk.unlink(&path)?;
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` for a lane that is divided into slabs, stored in chunks, or committed.
    pub fn flat_writer(&self, name: &str) -> Result<FlatWriter<'_>> {
        let (index, lane, _) = self.find_any(name, None)?;
        if !lane.spec.chunk.is_empty() {
            return Err(Error::invalid("a lane in chunks is written whole").in_object(name));
        }
        Ok(FlatWriter { writer: self, index, at: 0, end: lane.slab_bytes, crc: 0 })
    }
}
