//! Chunk indexes built in one go, from the records of all chunks that were written.

mod arrays;
pub(crate) mod btree_v1;
pub(crate) mod btree_v2;
mod entry;

use super::layout::Blocks;
use crate::format::Address;
use crate::format::encode::btree_v2::{MERGE, SPLIT, Shape};
use crate::format::encode::{Bound, extensible_array, fixed_array};
use crate::format::message::data_layout::{ChunkIndexLayout, ChunkedLayout};
use crate::format::message::dataspace::Dataspace;
use entry::EntryForm;
use std::collections::BTreeMap;
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// Bytes of a node of a version 2 B-tree over chunks: libhdf5's default.
const CHUNK_NODE: u32 = 2048;
/// Beyond this many places a fixed array, which stores them all, costs more than a tree.
const MOST_FIXED: u64 = 1 << 26;

/// Where one chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) address: Address,
    pub(crate) size: u64,
    pub(crate) mask: u32,
}

/// The chunks of a dataset.
#[derive(Debug, Clone)]
pub(crate) struct Chunks {
    /// Chunk extents, slowest first.
    pub(crate) dims: Vec<u64>,
    pub(crate) element_size: u64,
    pub(crate) unfiltered_edges: bool,
    pub(crate) filtered: bool,
    /// Address of the first chunk, where all lie one behind the other.
    pub(crate) run: Option<Address>,
    /// Number of chunks along each dimension of the current extents.
    pub(crate) grid: Vec<u64>,
    /// By row-major number in the grid, which is also the order of the coordinates.
    pub(crate) records: BTreeMap<u64, Record>,
}

impl Chunks {
    /// Coordinates of a chunk in the grid.
    pub(crate) fn coords(&self, mut number: u64) -> Vec<u64> {
        let mut coords = vec![0; self.grid.len()];
        for (c, n) in coords.iter_mut().zip(&self.grid).rev() {
            *c = number % n;
            number /= n;
        }
        coords
    }

    /// Row-major number of a chunk in the grid, if it is inside.
    pub(crate) fn number(&self, coords: &[u64]) -> Option<u64> {
        if coords.len() != self.grid.len() {
            return None;
        }
        coords.iter().zip(&self.grid).try_fold(0_u64, |n, (c, g)| (c < g).then(|| n * g + c))
    }
}

/// The kind of index, chosen from what is known before any address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    version: u8,
    index: ChunkIndexLayout,
}

/// Chooses the index that libhdf5 would choose.
pub(crate) fn choose(chunks: &Chunks, space: &Dataspace, bound: Bound) -> Choice {
    if bound.layout_version() < 4 {
        return Choice { version: 3, index: ChunkIndexLayout::BtreeV1 };
    }
    let version = if needs_wide_sizes(chunks) { bound.layout_version() } else { 4 };
    let tree = ChunkIndexLayout::BtreeV2 { node_size: CHUNK_NODE, split: SPLIT, merge: MERGE };
    let Dataspace::Simple { dims, max } = space else { return Choice { version, index: tree } };
    let unlimited = max.iter().filter(|m| m.is_none()).count();
    let fixed = dims.iter().zip(max).all(|(d, m)| *m == Some(*d));
    let places = max_grid(chunks, max);
    let index = match unlimited {
        0 if fixed && chunks.dims == *dims => {
            let one = chunks.records.values().next();
            let filtered = chunks.filtered.then(|| one.map_or((0, 0), |r| (r.size, r.mask)));
            ChunkIndexLayout::Single { filtered }
        }
        0 if chunks.run.is_some() => ChunkIndexLayout::Implicit,
        0 if super::split::product(&places).is_ok_and(|n| n <= MOST_FIXED) => {
            ChunkIndexLayout::FixedArray { page_bits: fixed_array::PAGE_BITS }
        }
        1 => ChunkIndexLayout::ExtensibleArray {
            max_bits: extensible_array::MAX_BITS,
            index_elements: extensible_array::INDEX_ELEMENTS,
            min_pointers: extensible_array::MIN_POINTERS,
            min_elements: extensible_array::MIN_ELEMENTS,
            page_bits: extensible_array::PAGE_BITS,
        },
        _ => tree,
    };
    Choice { version, index }
}

/// Can a chunk have, or grow to, a size that version 4 does not hold? libhdf5 takes version 5 for no other chunks.
fn needs_wide_sizes(chunks: &Chunks) -> bool {
    let bytes = chunks.dims.iter().try_fold(chunks.element_size, |n, d| n.checked_mul(*d));
    chunks.filtered || bytes.is_none_or(|n| n > u64::from(u32::MAX))
}

/// May all chunks lie one behind the other, with no index at all? They must then all be written.
pub(crate) fn can_be_implicit(chunks: &Chunks, space: &Dataspace, early: bool, bound: Bound) -> bool {
    let Dataspace::Simple { dims, max } = space else { return false };
    let fixed = dims.iter().zip(max).all(|(d, m)| *m == Some(*d));
    early && fixed && !chunks.filtered && chunks.dims != *dims && bound.layout_version() >= 4
}

/// Number of chunks along each maximum extent; 1 for unlimited ones.
fn max_grid(chunks: &Chunks, max: &[Option<u64>]) -> Vec<u64> {
    max.iter().zip(&chunks.dims).map(|(m, c)| m.map_or(1, |m| m.div_ceil(*c))).collect()
}

/// The layout message's value, with the address of the index filled in.
pub(crate) fn layout_of(chunks: &Chunks, choice: &Choice, address: Option<Address>) -> ChunkedLayout {
    ChunkedLayout {
        version: choice.version,
        dims: chunks.dims.clone(),
        element_size: chunks.element_size,
        unfiltered_edges: chunks.unfiltered_edges,
        index: choice.index.clone(),
        address,
    }
}

/// Builds the index and returns its address; `None` when there is no chunk at all.
pub(crate) fn build(
    chunks: &Chunks,
    space: &Dataspace,
    choice: &Choice,
    blocks: &mut Blocks,
    object: &str,
) -> Result<Option<Address>> {
    let Some(first) = chunks.records.values().next() else { return Ok(None) };
    let max = match space {
        Dataspace::Simple { max, .. } => max.as_slice(),
        _ => &[],
    };
    let form = EntryForm::of(chunks, choice.version);
    let grid = max_grid(chunks, max);
    match &choice.index {
        ChunkIndexLayout::BtreeV1 => btree_v1::build(chunks, blocks, object),
        ChunkIndexLayout::Single { .. } => Ok(first.address),
        ChunkIndexLayout::Implicit => {
            chunks.run.ok_or_else(|| Error::invalid("the chunks do not lie one behind the other"))
        }
        ChunkIndexLayout::FixedArray { .. } => arrays::fixed(chunks, form, &grid, blocks, object),
        ChunkIndexLayout::ExtensibleArray { .. } => {
            let unlimited = max.iter().position(Option::is_none).unwrap_or(0);
            arrays::extensible(chunks, form, &grid, unlimited, blocks, object)
        }
        ChunkIndexLayout::BtreeV2 { node_size, .. } => {
            let record_size = form.size() + 8 * chunks.dims.len();
            let kind = if form.is_filtered() { 11 } else { 10 };
            let mut w = FieldWriter::new();
            for (number, record) in &chunks.records {
                form.put(&mut w, Some(record));
                for c in chunks.coords(*number) {
                    w.u64(c);
                }
            }
            let shape = Shape { kind, node_size: *node_size, record_size };
            btree_v2::build(shape, w.as_slice(), blocks, object)
        }
    }
    .map(Some)
}
