//! Where a chunk is: six kinds of chunk index behind one lookup.
//!
//! A [`ChunkIndex`] is made from a dataset's layout message and reads nothing by itself. [`ChunkIndex::table`]
//! walks the whole index once; [`ChunkIndex::lookup`] finds one chunk without that.
//!
//! No file can make a walk long: every node must take bytes of its own, so that the nodes of one index cannot be
//! larger than the file ([`Visits`]); that also ends cycles.

mod btree_v1;
mod btree_v2;
mod extensible_array;
mod fixed_array;
mod geometry;
mod table;

pub use crate::format::index::record::Stored;
pub use table::{ChunkTable, Slot};

use crate::format::Address;
use crate::format::index::record::Form;
use crate::format::message::data_layout::{ChunkIndexLayout, ChunkedLayout};
use crate::format::message::dataspace::Dataspace;
use crate::space::{Bytes, FileSpace, Visits};
use geometry::Geometry;
use std::ops::Range;
use tensilo_core::array::ChunkGrid;
use tensilo_core::{Error, ErrorKind, Result};

/// One chunk that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkEntry {
    /// Coordinates in the chunk grid (chunks, not elements).
    pub coords: Vec<u64>,
    /// Address of the first stored byte, relative to the file's base address.
    pub address: Address,
    /// Stored bytes.
    pub size: u64,
    /// Bit `i` set means that filter `i` was skipped.
    pub mask: u32,
}

/// The chunk index of one dataset.
#[derive(Debug, Clone)]
pub struct ChunkIndex {
    layout: ChunkedLayout,
    geometry: Geometry,
    filtered: bool,
    chunk_bytes: u64,
}

/// Called with the coordinates and the place of a chunk.
type Visit<'v> = dyn FnMut(&[u64], Stored) -> Result<()> + 'v;

impl ChunkIndex {
    /// Describes the index of a chunked dataset of elements of `element_size` bytes.
    ///
    /// # Errors
    /// `Corrupt` when layout and dataspace do not fit together.
    pub fn new(
        layout: &ChunkedLayout,
        dataspace: &Dataspace,
        element_size: u64,
        filtered: bool,
    ) -> Result<Self> {
        let Dataspace::Simple { dims, max } = dataspace else {
            return Err(Error::corrupt("a chunked dataset without dimensions"));
        };
        let grid = ChunkGrid::new(dims, &layout.dims).map_err(|e| Error::corrupt(e.message()))?;
        let chunk_bytes = grid
            .chunk_elements()
            .checked_mul(element_size)
            .filter(|n| *n > 0 && *n <= i64::MAX as u64)
            .ok_or_else(|| {
                Error::corrupt(format!("a chunk of {:?} times {element_size} bytes", layout.dims))
            })?;
        let geometry = Geometry::new(grid, max);
        Ok(Self { layout: layout.clone(), geometry, filtered, chunk_bytes })
    }

    /// The chunk grid of the current extents.
    pub fn grid(&self) -> &ChunkGrid {
        &self.geometry.grid
    }

    /// Bytes of a decoded chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Reads the whole index. Chunks outside the current extents are left out.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged or lists a chunk twice; `Limit`, `Missing` or `Io`.
    pub fn table(&self, space: &FileSpace) -> Result<ChunkTable> {
        let mut table = ChunkTable::builder(space.budget().clone());
        let grid = self.grid();
        self.walk(space, &mut |coords, stored| {
            if grid.contains(coords) { table.push(grid.linear(coords), stored) } else { Ok(()) }
        })?;
        table.finish(grid)
    }

    /// Finds one chunk, reading no more than the way to it; `None` when it was never written.
    ///
    /// # Errors
    /// `InvalidArgument` when the coordinates lie outside the grid; else as [`table`](Self::table).
    pub fn lookup(&self, space: &FileSpace, coords: &[u64]) -> Result<Option<ChunkEntry>> {
        if !self.grid().contains(coords) {
            return Err(Error::invalid(format!(
                "chunk {coords:?} lies outside the grid of {:?}",
                self.grid().counts()
            )));
        }
        let stored = self.find(space, coords)?;
        Ok(stored.map(|s| ChunkEntry {
            coords: coords.to_vec(),
            address: s.address,
            size: s.size,
            mask: s.mask,
        }))
    }

    /// Can [`lookup`](Self::lookup) find a chunk in constant time and reads?
    pub fn is_direct(&self) -> bool {
        matches!(self.layout.index, ChunkIndexLayout::Single { .. } | ChunkIndexLayout::Implicit)
    }

    fn walk(&self, space: &FileSpace, visit: &mut Visit<'_>) -> Result<()> {
        let Some(address) = self.layout.address else { return Ok(()) };
        let mut visits = space.visits();
        match &self.layout.index {
            ChunkIndexLayout::Single { filtered } => visit(&self.origin(), self.single(address, *filtered)),
            ChunkIndexLayout::Implicit => {
                let grid = self.grid();
                for number in 0..grid.len() {
                    let coords = grid.coords(number);
                    visit(&coords, self.implicit(address, &coords)?)?;
                }
                Ok(())
            }
            ChunkIndexLayout::BtreeV1 => btree_v1::walk(self, space, address, &mut visits, visit),
            ChunkIndexLayout::BtreeV2 { .. } => btree_v2::walk(self, space, address, &mut visits, visit),
            ChunkIndexLayout::FixedArray { .. } => {
                fixed_array::walk(self, space, address, &mut visits, visit)
            }
            ChunkIndexLayout::ExtensibleArray { .. } => {
                extensible_array::walk(self, space, address, &mut visits, visit)
            }
        }
    }

    fn find(&self, space: &FileSpace, coords: &[u64]) -> Result<Option<Stored>> {
        let Some(address) = self.layout.address else { return Ok(None) };
        match &self.layout.index {
            ChunkIndexLayout::Single { filtered } => Ok(Some(self.single(address, *filtered))),
            ChunkIndexLayout::Implicit => self.implicit(address, coords).map(Some),
            ChunkIndexLayout::BtreeV1 => btree_v1::find(self, space, address, coords),
            ChunkIndexLayout::BtreeV2 { .. } => btree_v2::find(self, space, address, coords),
            ChunkIndexLayout::FixedArray { .. } => fixed_array::find(self, space, address, coords),
            ChunkIndexLayout::ExtensibleArray { .. } => extensible_array::find(self, space, address, coords),
        }
    }

    fn origin(&self) -> Vec<u64> {
        vec![0; self.layout.dims.len()]
    }

    fn single(&self, address: Address, filtered: Option<(u64, u32)>) -> Stored {
        let (size, mask) = filtered.unwrap_or((self.chunk_bytes, 0));
        Stored { address, size, mask }
    }

    fn implicit(&self, address: Address, coords: &[u64]) -> Result<Stored> {
        let at = self.geometry.number(coords).and_then(|n| n.checked_mul(self.chunk_bytes));
        let at = at.and_then(|a| a.checked_add(address.0));
        let at = at.ok_or_else(|| Error::corrupt("an implicit chunk's address passes 64 bits"))?;
        Ok(Stored { address: Address(at), size: self.chunk_bytes, mask: 0 })
    }

    /// The form of this index's elements.
    fn form(&self, space: &FileSpace, filtered: bool, element: u64, coords: u64) -> Result<Form> {
        if filtered != self.filtered {
            return Err(Error::corrupt(format!(
                "the chunk index is for {} chunks, the dataset has {} filters",
                if filtered { "filtered" } else { "plain" },
                if self.filtered { "some" } else { "no" }
            )));
        }
        Form::new(space.sizes(), self.chunk_bytes, filtered, element, coords)
    }
}

/// Reads a node that no other part of the index may be.
fn node<'s>(
    space: &'s FileSpace,
    visits: &mut Visits,
    at: Address,
    len: u64,
    what: &'static str,
) -> Result<Bytes<'s>> {
    let bytes = space.read(at, len, what)?;
    visits.enter(bytes.offset(), len, what)?;
    Ok(bytes)
}

/// Collects what is missing, so that a walk asks for all nodes of a level at once.
#[derive(Default)]
struct Gather {
    ranges: Vec<Range<u64>>,
}

impl Gather {
    /// The value, or `None` where bytes are missing, which are noted.
    fn tolerate<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(e) if e.kind() == ErrorKind::Missing => {
                self.ranges.extend_from_slice(e.missing_ranges());
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// # Errors
    /// `Missing`, naming all that was noted.
    fn finish(self) -> Result<()> {
        if self.ranges.is_empty() { Ok(()) } else { Err(Error::missing(self.ranges)) }
    }
}

/// `at + bytes`, or `Corrupt`.
fn offset(at: Address, bytes: u64) -> Result<Address> {
    at.0.checked_add(bytes)
        .map(Address)
        .ok_or_else(|| Error::corrupt("an address in the chunk index passes 64 bits").at(at.0))
}
