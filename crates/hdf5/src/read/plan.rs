//! What a read will do, as a value: which chunks it touches, where their bytes are, and how they are fetched.

use super::dataset::{Chunks, DatasetInner, Storage};
use super::virtual_dataset;
use crate::format::message::data_layout::DataLayout;
use crate::index::{ChunkTable, Stored};
use crate::space::FileSpace;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use tensilo_core::array::{ChunkGrid, Selection, Split};
use tensilo_core::limits::Charge;
use tensilo_core::{Error, Result};

/// Bytes that are read and thrown away rather than asked for in two requests.
const GAP: u64 = 4096;
/// Neighbouring chunks are fetched together up to about this many bytes.
const BATCH: u64 = 128 << 10;
/// Uncompressed bytes at least this many are fetched on their own, straight to where they belong.
const ALONE: u64 = 64 << 10;
/// Contiguous data is treated as chunks of about this many bytes.
const BAND: u64 = 1 << 20;

/// What one read will do. Printing it shows every chunk.
#[derive(Debug)]
pub struct ReadPlan {
    pub(super) split: Split,
    pub(super) width: usize,
    /// In the order of their place in the file; those without a place last.
    pub(super) steps: Vec<Step>,
    pub(super) batches: Vec<Batch>,
    pub(super) chunk_bytes: usize,
    /// Of a virtual dataset, whose own file gives nothing.
    sources: Vec<SourcePlan>,
    _charge: Charge,
}

/// What reading a virtual dataset will do to one of its sources.
#[derive(Debug)]
pub struct SourcePlan {
    /// The source's file, where that has a path.
    pub file: Option<PathBuf>,
    /// The source's path in it.
    pub path: Vec<u8>,
    /// What is read of it; chunks, ranges and bytes are of the source's file.
    pub plan: ReadPlan,
}

/// The part of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub(super) part: usize,
    /// Where its elements come from.
    pub source: Source,
}

/// Where the elements of a part come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Nothing is stored; they are the fill value.
    Fill,
    /// Stored without filters, from this byte of the file on.
    Plain {
        /// Absolute byte offset of the chunk.
        offset: u64,
    },
    /// A filtered chunk.
    Filtered {
        /// Absolute byte offset.
        offset: u64,
        /// Stored bytes.
        size: u64,
        /// Filters that were skipped.
        mask: u32,
    },
    /// In the object header, from its first byte on.
    Header,
}

/// Steps that are fetched together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) steps: Range<usize>,
    /// What is fetched in one piece; `None` where each range of the only step is fetched on its own, or nothing is.
    pub(super) span: Option<Range<u64>>,
}

/// Contiguous data as a grid whose chunks are runs of bytes.
pub(super) fn bands(shape: &[u64], width: u64) -> Vec<u64> {
    let mut chunk = vec![1; shape.len()];
    let mut bytes = width.max(1);
    for (c, extent) in chunk.iter_mut().zip(shape).rev() {
        *c = (BAND / bytes).clamp(1, (*extent).max(1));
        if *c < *extent {
            break;
        }
        bytes = bytes.saturating_mul(*c);
    }
    chunk
}

impl ReadPlan {
    /// Plans a read; loads the chunk index if that has not been done.
    pub(super) fn new(data: &DatasetInner, selection: &Selection) -> Result<Self> {
        Self::at_level(data, selection, 0)
    }

    /// As [`new`](Self::new); `level` counts the virtual datasets around this one.
    pub(super) fn at_level(data: &DatasetInner, selection: &Selection, level: u64) -> Result<Self> {
        let budget = data.file.0.space.budget();
        let bands;
        let grid = match &data.storage {
            Storage::Chunked(chunks) => chunks.index.grid(),
            _ => {
                bands =
                    ChunkGrid::new(&data.shape, &bands_of(data)).map_err(|e| Error::corrupt(e.message()))?;
                &bands
            }
        };
        let split = Split::new(selection, grid, budget)?;
        let size = split.parts().saturating_mul(size_of::<Step>() + size_of::<Batch>());
        let charge = budget.bytes(size as u64, "the read plan")?;
        let chunk_bytes = grid.chunk_elements().saturating_mul(data.width as u64);
        let chunk_bytes = usize::try_from(chunk_bytes)
            .map_err(|_| Error::limit(format!("a chunk of {chunk_bytes} bytes does not fit in memory")))?;
        let mut plan = Self {
            split,
            width: data.width,
            steps: Vec::new(),
            batches: Vec::new(),
            chunk_bytes,
            sources: Vec::new(),
            _charge: charge,
        };
        if let Storage::Virtual(parts) = &data.storage {
            plan.sources = virtual_dataset::plan(data, parts, selection, level)?;
            return Ok(plan);
        }
        plan.steps.reserve_exact(plan.split.parts());
        let table = match &data.storage {
            Storage::Chunked(chunks) if !chunks.looks_up(plan.split.parts()) => {
                Some(chunks.table(&data.file.0.space)?)
            }
            _ => None,
        };
        for part in 0..plan.split.parts() {
            let source = plan.source_of(data, table, part)?;
            plan.steps.push(Step { part, source });
        }
        if !plan.steps.is_sorted_by_key(|s| s.source.order()) {
            plan.steps.sort_by_key(|s| s.source.order());
        }
        plan.make_batches(data.file.options().threads.get() as u64);
        Ok(plan)
    }

    fn source_of(&self, data: &DatasetInner, table: Option<&ChunkTable>, part: usize) -> Result<Source> {
        let space = &data.file.0.space;
        Ok(match &data.storage {
            Storage::Fill => Source::Fill,
            Storage::Virtual(_) => {
                return Err(Error::unsupported("a virtual dataset has no chunks of its own"));
            }
            Storage::Header => Source::Header,
            Storage::Contiguous(_) | Storage::External(_) => {
                let start = if let Storage::Contiguous(start) = &data.storage { *start } else { 0 };
                // A band is a run of bytes, so the number of elements before it says where it is.
                let grid = self.split.grid();
                let mut before = 0_u64;
                for ((c, chunk), extent) in self.split.chunk(part).iter().zip(grid.chunk()).zip(grid.shape())
                {
                    before = before * extent + c * chunk;
                }
                Source::Plain { offset: start + before * data.width as u64 }
            }
            Storage::Chunked(chunks) => match self.stored(chunks, space, table, part)? {
                None => Source::Fill,
                Some(stored) => {
                    let offset = space.absolute(stored.address)?;
                    let edge =
                        chunks.unfiltered_edges && self.split.grid().is_partial(&self.split.chunk(part));
                    if edge || chunks.pipeline.is_empty() {
                        Source::Plain { offset }
                    } else {
                        Source::Filtered { offset, size: stored.size, mask: stored.mask }
                    }
                }
            },
        })
    }

    /// Where the chunk of a part is stored, from the table or else by a look-up.
    fn stored(
        &self,
        chunks: &Chunks,
        space: &FileSpace,
        table: Option<&ChunkTable>,
        part: usize,
    ) -> Result<Option<Stored>> {
        if let Some(table) = table {
            return Ok(table.get(self.split.chunk_number(part)));
        }
        let entry = chunks.index.lookup(space, &self.split.chunk(part))?;
        Ok(entry.map(|e| Stored { address: e.address, size: e.size, mask: e.mask }))
    }

    /// What a step must fetch from the file.
    fn ranges_of(&self, step: &Step) -> Vec<Range<u64>> {
        match step.source {
            Source::Fill | Source::Header => Vec::new(),
            Source::Filtered { offset, size, .. } => {
                std::iter::once(offset..offset.saturating_add(size)).collect()
            }
            Source::Plain { offset } => self
                .split
                .ranges_in_chunk(step.part, self.width, GAP as usize)
                .iter()
                .map(|r| offset.saturating_add(r.start as u64)..offset.saturating_add(r.end as u64))
                .collect(),
        }
    }

    /// Groups neighbours, so that few and large requests are made, but leaves enough batches for all threads.
    fn make_batches(&mut self, threads: u64) {
        let needs: Vec<Option<Range<u64>>> = self
            .steps
            .iter()
            .map(|s| match self.ranges_of(s).as_slice() {
                [one] => Some(one.clone()),
                _ => None,
            })
            .collect();
        // Stored sizes are the file's words; their sum may be too large for a number.
        let total = needs.iter().flatten().fold(0_u64, |sum, r| sum.saturating_add(r.end - r.start));
        let most = (total / (4 * threads.max(1))).clamp(ALONE, BATCH);
        for (i, need) in needs.into_iter().enumerate() {
            let plain = matches!(self.steps[i].source, Source::Plain { .. });
            let idle = matches!(self.steps[i].source, Source::Fill | Source::Header);
            let last = self.batches.last_mut();
            match (need, last) {
                (Some(need), Some(Batch { steps, span: Some(span) }))
                    if need.start >= span.start
                        && need.start <= span.end.saturating_add(GAP)
                        && need.end.max(span.end) - span.start <= most
                        && !(plain && need.end - need.start >= ALONE) =>
                {
                    steps.end = i + 1;
                    span.end = span.end.max(need.end);
                }
                (None, Some(Batch { steps, span: None })) if idle && steps.len() < 64 => {
                    let first = self.steps[steps.start].source;
                    if matches!(first, Source::Fill | Source::Header) {
                        steps.end = i + 1;
                    } else {
                        self.batches.push(Batch { steps: i..i + 1, span: None });
                    }
                }
                (need, _) => self.batches.push(Batch { steps: i..i + 1, span: need }),
            }
        }
    }

    /// Shape of the result.
    pub fn shape(&self) -> &[u64] {
        self.split.shape()
    }

    /// Bytes of the result, as stored elements.
    pub fn result_bytes(&self) -> u64 {
        self.split.elements().saturating_mul(self.width as u64)
    }

    /// What is done for each touched chunk, with the chunk's coordinates, in the order of the file.
    pub fn steps(&self) -> impl Iterator<Item = (Vec<u64>, Source)> {
        self.steps.iter().map(|s| (self.split.chunk(s.part), s.source))
    }

    /// Of a virtual dataset, what is done to each source that is touched, in the order of its mappings; a source that
    /// does not exist is left out. Empty for any other dataset.
    pub fn sources(&self) -> &[SourcePlan] {
        &self.sources
    }

    /// The byte ranges of the file that will be asked for, in that order, merged as they will be; not those of sources.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.batches
            .iter()
            .flat_map(|batch| match &batch.span {
                Some(span) => vec![span.clone()],
                None => self.steps[batch.steps.clone()].iter().flat_map(|s| self.ranges_of(s)).collect(),
            })
            .collect()
    }

    /// Bytes that will be asked for, sources' included.
    pub fn fetched_bytes(&self) -> u64 {
        let own = self.ranges().into_iter().map(|r| r.end - r.start);
        own.chain(self.sources.iter().map(|s| s.plan.fetched_bytes())).fold(0, u64::saturating_add)
    }

    /// Most bytes that one batch fetches into a buffer.
    pub(super) fn largest_fetch(&self) -> u64 {
        let longest = |b: &Batch| match &b.span {
            Some(span) => span.end - span.start,
            None => {
                let ranges = self.steps[b.steps.clone()].iter().flat_map(|s| self.ranges_of(s));
                ranges
                    .map(|r| (r.start, r.end))
                    .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
                    .map_or(0, |r| r.1 - r.0)
            }
        };
        self.batches.iter().map(longest).max().unwrap_or(0)
    }
}

fn bands_of(data: &DatasetInner) -> Vec<u64> {
    match (&data.layout, &data.storage) {
        // The object header's bytes are at hand whole, and a virtual dataset has none.
        (DataLayout::Compact(_), Storage::Header) | (_, Storage::Virtual(_)) => {
            data.shape.iter().map(|n| (*n).max(1)).collect()
        }
        _ => bands(&data.shape, data.width as u64),
    }
}

impl Source {
    fn order(&self) -> (u8, u64) {
        match self {
            Self::Plain { offset } | Self::Filtered { offset, .. } => (0, *offset),
            Self::Header => (1, 0),
            Self::Fill => (2, 0),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fill => write!(f, "fill value"),
            Self::Header => write!(f, "object header"),
            Self::Plain { offset } => write!(f, "plain at {offset}"),
            Self::Filtered { offset, size, mask: 0 } => write!(f, "{size} filtered bytes at {offset}"),
            Self::Filtered { offset, size, mask } => {
                write!(f, "{size} filtered bytes at {offset}, filter mask {mask:#x}")
            }
        }
    }
}

impl fmt::Display for ReadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "result {:?}, {} bytes; {} chunks in {} requests of {} bytes",
            self.shape(),
            self.result_bytes(),
            self.steps.len(),
            self.ranges().len(),
            self.fetched_bytes()
        )?;
        for (chunk, source) in self.steps() {
            writeln!(f, "chunk {chunk:?}: {source}")?;
        }
        for source in &self.sources {
            let file = source.file.as_deref().map_or_else(|| "(a file)".into(), |f| f.to_string_lossy());
            write!(f, "source {} in {file}: {}", String::from_utf8_lossy(&source.path), source.plan)?;
        }
        Ok(())
    }
}
