//! Reading a pack of format 2: frames, pixel series, regions, decoding only the blocks that are touched.
//!
//! Reads are by position and free of side effects; each block's CRC32C is checked once per read. A shard's table is read
//! when the shard is first touched, and kept.

mod blocks;
mod export;
mod select;

pub(crate) use blocks::BlockScratch;
pub use export::Exported;
pub use select::SourceCount;

use super::format::index::PackIndex;
use super::format::preamble::{PREAMBLE, Preamble};
use super::format::shard_table::ShardTable;
use super::layout::Layout;
use super::produce::in_rects;
use crate::read::Values;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tensilo_core::array::ChunkGrid;
use tensilo_core::io::{ByteSource, FileSource, MemorySource};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, Limits, Monitor, Progress, Result};

/// How a pack is opened.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// What the file's numbers may make us allocate.
    pub limits: Limits,
    /// Threads that one read may use.
    pub threads: Threads,
}

/// An open pack of format 2; clones share what was read.
///
/// ```no_run
/// use tensilo_core::array::{Axis, Selection};
/// use tensilo_pack::read::Values;
/// let pack = tensilo_pack::v2::read::Pack::open("scan.h5")?;
/// // One pixel in every scan of a two-dimensional scan.
/// let one = |at| Axis::Regular { start: at, stride: 1, count: 1, block: 1 };
/// let shape = pack.shape();
/// let series = Selection::Axes(vec![Axis::all(shape[0]), Axis::all(shape[1]), one(3), one(5)]);
/// let counts: Vec<u16> = pack.read(&series, Values::Raw)?;
/// assert_eq!(counts.len() as u64, shape[0] * shape[1]);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pack(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Arc<dyn ByteSource>,
    preamble: Preamble,
    index: PackIndex,
    tables: Vec<OnceLock<ShardTable>>,
    /// Excluded pixels of each rectangle that has any.
    in_rects: Vec<(u64, Vec<u32>)>,
    /// Scans, rows and columns in blocks.
    grid: ChunkGrid,
    budget: Budget,
    threads: Threads,
    limits: Limits,
}

impl Pack {
    /// Opens a pack.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Unsupported` for what a newer program wrote, `Limit`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, ReadOptions::default())
    }

    /// Opens a pack with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: ReadOptions) -> Result<Self> {
        Self::from_source(Arc::new(FileSource::open(path)?), options)
    }

    /// Opens a pack held by a source.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self> {
        let path = source.path().map(Path::to_path_buf);
        Self::parse(source, options).map_err(|e| match path {
            Some(path) => e.in_file(path),
            None => e,
        })
    }

    fn parse(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self> {
        let mut head = [0; PREAMBLE as usize];
        if source.len() < PREAMBLE {
            return Err(Error::corrupt(format!("{} bytes are no pack of format 2", source.len())));
        }
        source.read_at(0, &mut head)?;
        let preamble = Preamble::parse(&head, source.len())?;
        let budget = Budget::new(options.limits.clone());
        let at = preamble.index;
        let (mut bytes, _charge) = budget.buffer(at.bytes, "the index of a pack")?;
        source.read_at(at.offset, &mut bytes)?;
        if crc32c::crc32c(&bytes) != preamble.index_crc {
            return Err(Error::corrupt("the index does not match its CRC32C").at(at.offset));
        }
        let index = PackIndex::parse(&bytes, at.offset, preamble.payload.bytes, &budget)?;
        let (l, block) = (&index.layout, index.layout.block());
        let grid = ChunkGrid::new(
            &[l.scans(), l.rows(), l.columns()],
            &[block.scans.into(), block.rows.into(), block.columns.into()],
        )?;
        let in_rects = in_rects(l, &index.excluded);
        let tables = (0..index.shards.len()).map(|_| OnceLock::new()).collect();
        let (threads, limits) = (options.threads, options.limits);
        Ok(Self(Arc::new(Inner { source, preamble, index, tables, in_rects, grid, budget, threads, limits })))
    }

    /// The same pack with the whole file in memory, packed; it reads the file no more.
    ///
    /// # Errors
    /// `Limit` when memory is not allowed, `Io`, the monitor's.
    pub fn resident(&self, monitor: &dyn Monitor) -> Result<Self> {
        let total = self.0.source.len();
        let (mut bytes, _charge) = self.0.budget.buffer(total, "a resident pack")?;
        for (part, at) in bytes.chunks_mut(8 << 20).zip((0..).step_by(8 << 20)) {
            monitor.poll(&Progress { stage: "loading", done: at, total })?;
            self.0.source.read_at(at, part)?;
        }
        let options = ReadOptions { limits: self.0.limits.clone(), threads: self.0.threads };
        Self::from_source(Arc::new(MemorySource::new(bytes)), options)
    }

    /// What the pack says about itself.
    pub fn index(&self) -> &PackIndex {
        &self.0.index
    }

    /// The preamble.
    pub fn preamble(&self) -> &Preamble {
        &self.0.preamble
    }

    /// Shape and cut.
    pub fn layout(&self) -> &Layout {
        &self.0.index.layout
    }

    /// Shape: scan axes, then detector axes.
    pub fn shape(&self) -> Vec<u64> {
        self.layout().shape()
    }

    /// Excluded flat pixels, ascending.
    pub fn excluded(&self) -> &[u32] {
        &self.0.index.excluded
    }

    /// Threads that one read may use.
    pub fn threads(&self) -> Threads {
        self.0.threads
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.0.source.len()
    }

    /// The account that reads are charged to.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Where the bytes come from.
    pub(crate) fn source(&self) -> &Arc<dyn ByteSource> {
        &self.0.source
    }

    /// The file of the pack in an error.
    pub(crate) fn in_file(&self, e: Error) -> Error {
        match self.0.source.path() {
            Some(path) => e.in_file(path),
            None => e,
        }
    }

    /// The mask's codes, where the source had them.
    ///
    /// # Errors
    /// Of reading the HDF5 file around the pack.
    pub fn mask_codes(&self) -> Result<Option<Vec<u32>>> {
        let options = tensilo_hdf5::read::OpenOptions {
            limits: self.0.limits.clone(),
            ..tensilo_hdf5::read::OpenOptions::default()
        };
        let file = tensilo_hdf5::read::File::from_source(self.0.source.clone(), options)?;
        match crate::source::member::find(&file, super::produce::CODES)? {
            Some(dataset) if dataset.shape() == self.layout().detector_shape() => dataset.read().map(Some),
            Some(_) => Err(self.in_file(Error::corrupt("the mask's codes have another shape"))),
            None => Ok(None),
        }
    }

    /// Does this choice of values need excluded pixels restored?
    fn restores(&self, values: Values) -> bool {
        values == Values::Raw && !self.excluded().is_empty()
    }
}
