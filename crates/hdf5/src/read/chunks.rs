//! Chunk by chunk: where each is stored, its stored bytes, decoding them oneself, and walking over a dataset in boxes
//! that touch one chunk each.

use super::Dataset;
use super::dataset::Storage;
use super::plan::bands;
use crate::index::ChunkEntry;
use std::sync::Arc;
use tensilo_core::array::{ChunkGrid, Hyperslab};
use tensilo_core::{Error, Result};
use tensilo_filters::Scratch;

/// One line of a chunk manifest: all that is needed to fetch and decode a chunk without the file's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Coordinates in the chunk grid (chunks, not elements).
    pub coords: Vec<u64>,
    /// Absolute byte offset in the file.
    pub offset: u64,
    /// Stored bytes.
    pub size: u64,
    /// Bit `i` set means that filter `i` was skipped.
    pub mask: u32,
}

impl Dataset {
    /// All stored chunks, by their coordinates; read once, then kept. Empty where the dataset is not chunked.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged; `Limit`, `Missing` or `Io`.
    pub fn chunks(&self) -> Result<Arc<[ChunkEntry]>> {
        let Storage::Chunked(chunks) = &self.0.storage else { return Ok(Arc::new([])) };
        self.located(|| {
            let table = chunks.table(&self.0.file.0.space)?;
            Ok(chunks.entries.get_or_init(|| table.entries(chunks.index.grid()).into()).clone())
        })
    }

    /// One chunk by its coordinates in the chunk grid; `None` when it was never written. The index is not read
    /// whole for it.
    ///
    /// # Errors
    /// `InvalidArgument` when the dataset is not chunked or has no such chunk; else as [`chunks`](Self::chunks).
    pub fn chunk(&self, coords: &[u64]) -> Result<Option<ChunkEntry>> {
        self.located(|| match &self.0.storage {
            Storage::Chunked(chunks) => chunks.index.lookup(&self.0.file.0.space, coords),
            _ => Err(Error::invalid("the dataset is not chunked")),
        })
    }

    /// The absolute offset of a chunk's first stored byte in the file.
    ///
    /// # Errors
    /// `Corrupt` when it passes 64 bits.
    pub fn file_offset(&self, chunk: &ChunkEntry) -> Result<u64> {
        self.0.file.0.space.absolute(chunk.address)
    }

    /// The stored bytes of a chunk, filters not undone; they replace what `bytes` held.
    ///
    /// # Errors
    /// `Corrupt` when the chunk passes the end of the file; `Limit`, `Missing` or `Io`.
    pub fn read_chunk_stored(&self, chunk: &ChunkEntry, bytes: &mut Vec<u8>) -> Result<()> {
        self.located(|| {
            let space = &self.0.file.0.space;
            let offset = space.absolute(chunk.address)?;
            space.check_range(chunk.address, chunk.size, "stored chunk")?;
            let _charge = space.budget().bytes(chunk.size, "a stored chunk")?;
            bytes.resize(chunk.size as usize, 0);
            space.source().read_at(offset, bytes)
        })
    }

    /// Where every stored chunk is, in the order of their coordinates. Empty where the dataset is not chunked.
    ///
    /// # Errors
    /// As [`chunks`](Self::chunks); `Limit` when the list does not fit the budget.
    pub fn manifest(&self) -> Result<Vec<ManifestEntry>> {
        let chunks = self.chunks()?;
        let entry = |c: &ChunkEntry| {
            let offset = self.file_offset(c)?;
            Ok(ManifestEntry { coords: c.coords.clone(), offset, size: c.size, mask: c.mask })
        };
        self.located(|| chunks.iter().map(entry).collect())
    }

    /// Undoes the filters of a chunk's stored bytes, into a buffer of exactly one whole chunk; what of it lies outside
    /// the dataset is as stored.
    ///
    /// ```no_run
    /// # let file = tensilo_hdf5::read::File::open("scan.h5")?;
    /// let data = file.dataset("/entry/data")?;
    /// let (mut stored, mut pixels) = (Vec::new(), vec![0; data.chunk_bytes().unwrap_or(0)]);
    /// for chunk in data.chunks()?.iter() {
    ///     data.read_chunk_stored(chunk, &mut stored)?;
    ///     data.decode_chunk(chunk, &stored, &mut pixels)?;
    /// }
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` when the dataset is not chunked or the buffer has another length; `Corrupt` or `Unsupported`
    /// from the filters.
    pub fn decode_chunk(&self, chunk: &ChunkEntry, stored: &[u8], decoded: &mut [u8]) -> Result<()> {
        self.located(|| {
            let Storage::Chunked(chunks) = &self.0.storage else {
                return Err(Error::invalid("the dataset is not chunked"));
            };
            if decoded.len() as u64 != chunks.index.chunk_bytes() {
                let (have, need) = (decoded.len(), chunks.index.chunk_bytes());
                return Err(Error::invalid(format!("a buffer of {have} bytes for a chunk of {need}")));
            }
            let plain = chunks.unfiltered_edges && chunks.index.grid().is_partial(&chunk.coords);
            if !plain && !chunks.pipeline.is_empty() {
                return chunks.pipeline.decode(&mut Scratch::default(), stored, chunk.mask, decoded);
            }
            if stored.len() != decoded.len() {
                let (have, need) = (stored.len(), decoded.len());
                return Err(Error::corrupt(format!("{have} stored bytes of a plain chunk of {need}")));
            }
            decoded.copy_from_slice(stored);
            Ok(())
        })
    }

    /// Bytes of a decoded chunk; `None` when the dataset is not chunked, or they do not fit in memory.
    pub fn chunk_bytes(&self) -> Option<usize> {
        match &self.0.storage {
            Storage::Chunked(chunks) => usize::try_from(chunks.index.chunk_bytes()).ok(),
            _ => None,
        }
    }

    /// The dataset cut into boxes that touch one chunk each, in row-major order; data without chunks is cut into
    /// boxes of about 1 MiB. Reading box by box decodes every chunk once and needs memory for one.
    ///
    /// ```no_run
    /// # let file = tensilo_hdf5::read::File::open("scan.h5")?;
    /// let data = file.dataset("/entry/data")?;
    /// let mut sum = 0.0;
    /// for part in data.boxes() {
    ///     sum += data.read_selection::<f64>(&part.into())?.iter().sum::<f64>();
    /// }
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    pub fn boxes(&self) -> impl Iterator<Item = Hyperslab> + use<> {
        let grid = match self.chunk_grid() {
            Some(grid) => Some(grid.clone()),
            // The shape was checked when the dataset was opened.
            None => ChunkGrid::new(self.shape(), &bands(self.shape(), self.0.width as u64)).ok(),
        };
        let grid = grid.filter(|_| self.elements() > 0);
        let n = grid.as_ref().map_or(0, ChunkGrid::len);
        (0..n).filter_map(move |number| grid.as_ref().map(|grid| grid.selection(&grid.coords(number))))
    }
}
