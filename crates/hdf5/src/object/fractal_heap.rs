//! A fractal heap: from heap ids to objects.

use super::btree_v2;
use crate::format::Address;
use crate::format::heap::fractal::{Child, FractalHeapHeader, HeapId, HugePlace};
use crate::space::{Block, Bytes, FileSpace, Visits};
use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::Arc;
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};
use tensilo_filters::{Pipeline, Registry, Scratch};

/// An open fractal heap; blocks are read once and kept while it lives.
#[derive(Debug)]
pub struct FractalHeap<'s> {
    space: &'s FileSpace,
    header: FractalHeapHeader,
    at: u64,
    direct: HashMap<Address, Arc<Block>>,
    tables: HashMap<Address, Vec<Child>>,
    visits: Visits,
    scratch: Scratch,
}

/// A direct block: its address, its place in the heap, its size, and how it is stored when filtered.
#[derive(Clone, Copy)]
struct Place {
    address: Address,
    offset: u64,
    size: u64,
    filtered: Option<(u64, u32)>,
}

/// The bytes of an object.
#[derive(Debug)]
pub(super) enum HeapObject {
    /// Part of a block that is kept.
    InBlock(Arc<Block>, Range<usize>),
    /// Bytes of its own.
    Own(Vec<u8>),
}

impl Deref for HeapObject {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // The range was found to be inside.
            Self::InBlock(block, range) => block.get(range.clone()).unwrap_or(&[]),
            Self::Own(bytes) => bytes,
        }
    }
}

impl<'s> FractalHeap<'s> {
    /// Opens the heap whose header is at `address`.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn open(space: &'s FileSpace, address: Address) -> Result<Self> {
        const WHAT: &str = "fractal heap";
        let sizes = space.sizes();
        let head = space.read(address, 9, WHAT)?;
        let len = FractalHeapHeader::total_len(&head, head.offset(), sizes).map_err(|e| space.locate(e))?;
        let bytes = space.read(address, len, WHAT)?;
        let at = bytes.offset();
        let header = FractalHeapHeader::parse(&bytes, at, address, sizes).map_err(|e| space.locate(e))?;
        Ok(Self {
            space,
            header,
            at,
            direct: HashMap::new(),
            tables: HashMap::new(),
            visits: space.visits(),
            scratch: Scratch::default(),
        })
    }

    /// The header.
    pub fn header(&self) -> &FractalHeapHeader {
        &self.header
    }

    /// Reads the root block, only to see whether it is there.
    pub(super) fn probe(&self) -> Result<()> {
        let Some(root) = self.header.root else { return Ok(()) };
        let len = match (self.header.root_rows, self.header.root_filtered) {
            (0, Some((stored, _))) => stored,
            (0, None) => self.header.start_size,
            (rows, _) => self.header.indirect_len(rows),
        };
        self.space.read(root, len, "fractal heap root block").map(drop)
    }

    /// Reads the object that a heap id names, and says where it is. `id` may be longer than this heap's ids; `at` is
    /// its absolute offset.
    ///
    /// # Errors
    /// `Corrupt` when the id or the heap is damaged; `Unsupported` for a filter that is not there.
    pub fn object(&mut self, id: &[u8], at: u64) -> Result<(Vec<u8>, u64)> {
        self.shown(id, at).map(|(bytes, at)| (bytes.to_vec(), at))
    }

    /// As [`object`](Self::object), without a copy where the object lies in a block.
    pub(super) fn shown(&mut self, id: &[u8], at: u64) -> Result<(HeapObject, u64)> {
        self.read(id, at).map_err(|e| self.space.locate(e))
    }

    fn read(&mut self, id: &[u8], at: u64) -> Result<(HeapObject, u64)> {
        let id = id.get(..usize::from(self.header.id_len)).unwrap_or(id);
        match self.header.id(id, at)? {
            HeapId::Tiny(bytes) => Ok((HeapObject::Own(bytes.to_vec()), at.saturating_add(1))),
            HeapId::HugeDirect(place) => self.huge(place),
            HeapId::HugeIndexed(number) => {
                let place = self.huge_place(number)?;
                self.huge(place)
            }
            HeapId::Managed { offset, len } => self.managed(offset, len),
        }
    }

    fn managed(&mut self, offset: u64, len: u64) -> Result<(HeapObject, u64)> {
        if len == 0 || len > u64::from(self.header.max_managed) {
            return Err(self.corrupt(format!("an object of {len} bytes is no managed object")));
        }
        let place = self.locate(offset)?;
        let head = self.header.direct_head() as u64;
        let start = offset.saturating_sub(place.offset);
        let end = start.saturating_add(len);
        if start < head || end > place.size {
            return Err(self.corrupt(format!("object at {offset} of {len} bytes is in no block")));
        }
        let filtered = place.filtered.is_some();
        let block = self.block(place)?;
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok()).map(|(s, e)| s..e);
        let at = if filtered { block.offset() } else { block.offset().saturating_add(start) };
        match range.filter(|r| block.get(r.clone()).is_some()) {
            Some(range) => Ok((HeapObject::InBlock(block, range), at)),
            None => Err(self.corrupt(format!("object at {offset} of {len} bytes is in no block"))),
        }
    }

    fn corrupt(&self, message: String) -> Error {
        Error::corrupt(format!("fractal heap: {message}")).at(self.at)
    }

    /// Finds the direct block that holds a position of the heap.
    fn locate(&mut self, offset: u64) -> Result<Place> {
        let nowhere = || format!("nothing is at {offset}");
        let root = self.header.root.ok_or_else(|| self.corrupt(nowhere()))?;
        let mut rows = self.header.root_rows;
        if rows == 0 {
            let size = self.header.start_size;
            return Ok(Place { address: root, offset: 0, size, filtered: self.header.root_filtered });
        }
        let (mut table, mut base) = (root, 0_u64);
        // Every table stands for a block smaller than the one before, so this ends.
        loop {
            let found = offset.checked_sub(base).and_then(|o| self.header.locate(o));
            let (row, column) =
                found.filter(|(row, _)| *row < rows).ok_or_else(|| self.corrupt(nowhere()))?;
            let start = self
                .header
                .row_size(row)
                .and_then(|size| size.checked_mul(u64::from(column)))
                .and_then(|o| o.checked_add(self.header.row_offset(row)?))
                .and_then(|o| o.checked_add(base));
            let (Some(size), Some(start)) = (self.header.row_size(row), start) else {
                return Err(self.corrupt(nowhere()));
            };
            let child = usize::from(row) * usize::from(self.header.width) + usize::from(column);
            let child = self.children(table, rows, base)?.get(child).copied();
            let address = child.and_then(|c| c.address).ok_or_else(|| self.corrupt(nowhere()))?;
            if row < self.header.direct_rows() {
                let filtered = child.and_then(|c| c.filtered);
                return Ok(Place { address, offset: start, size, filtered });
            }
            (table, base) = (address, start);
            let below = self.header.rows_of(size);
            if below >= rows {
                return Err(self.corrupt(format!("a table of {below} rows inside one of {rows}")));
            }
            rows = below;
        }
    }

    fn children(&mut self, address: Address, rows: u16, base: u64) -> Result<&[Child]> {
        const WHAT: &str = "fractal heap indirect block";
        if !self.tables.contains_key(&address) {
            let bytes = self.space.read(address, self.header.indirect_len(rows), WHAT)?;
            self.visits.enter(bytes.offset(), bytes.len() as u64, WHAT)?;
            let children = self.header.indirect(&bytes, bytes.offset(), rows, base)?;
            self.tables.insert(address, children);
        }
        Ok(self.tables.get(&address).map_or(&[], Vec::as_slice))
    }

    fn block(&mut self, place: Place) -> Result<Arc<Block>> {
        const WHAT: &str = "fractal heap direct block";
        if let Some(block) = self.direct.get(&place.address) {
            return Ok(block.clone());
        }
        let stored = place.filtered.map_or(place.size, |f| f.0);
        self.visits.enter(self.space.absolute(place.address)?, stored, WHAT)?;
        // What makes the block this block: its address, its heap, and its place and size there.
        let key = [place.address.0, self.header.address.0, place.offset, place.size];
        let (space, header, scratch) = (self.space, &self.header, &mut self.scratch);
        let block = space.block(key, || {
            let mut bytes = space.read(place.address, stored, WHAT)?;
            if let Some((_, mask)) = place.filtered {
                bytes = unfilter(space, header, scratch, &bytes, mask, place.size, WHAT)?;
            }
            header.check_direct(&bytes, bytes.offset(), place.offset)?;
            bytes.into_block(space.budget(), WHAT)
        })?;
        self.direct.insert(place.address, block.clone());
        Ok(block)
    }

    fn huge(&mut self, place: HugePlace) -> Result<(HeapObject, u64)> {
        const WHAT: &str = "fractal heap huge object";
        let mut bytes = self.space.read(place.address, place.len, WHAT)?;
        if let Some((mask, len)) = place.filtered {
            bytes = unfilter(self.space, &self.header, &mut self.scratch, &bytes, mask, len, WHAT)?;
        }
        Ok((HeapObject::Own(bytes.to_vec()), bytes.offset()))
    }

    /// Looks a huge object up in the heap's B-tree.
    fn huge_place(&self, number: u64) -> Result<HugePlace> {
        let tree =
            self.header.huge_btree.ok_or_else(|| self.corrupt("no B-tree of huge objects".to_owned()))?;
        let kind = if self.header.filters.is_empty() { 1 } else { 2 };
        let mut found = None;
        let header = &self.header;
        btree_v2::find(
            self.space,
            tree,
            kind,
            &mut |record| {
                let mut r = FieldReader::new(record, 0, "record of a huge object");
                r.skip(record.len().saturating_sub(usize::from(header.sizes.length)))?;
                Ok(header.sizes.length(&mut r)?.cmp(&number))
            },
            &mut |record, at| {
                found = Some(header.huge_record(record, at)?.0);
                Ok(())
            },
        )?;
        found.ok_or_else(|| self.corrupt(format!("no huge object {number}")))
    }
}

/// Runs the heap's filters backwards; the result has `size` bytes.
fn unfilter<'s>(
    space: &'s FileSpace,
    header: &FractalHeapHeader,
    scratch: &mut Scratch,
    stored: &Bytes<'_>,
    mask: u32,
    size: u64,
    what: &'static str,
) -> Result<Bytes<'s>> {
    let at = stored.offset();
    let pipeline = Pipeline::new(&header.filters, &Registry::default()).map_err(|e| e.at(at))?;
    let (mut out, charge) = space.budget().buffer(size, what)?;
    pipeline.decode(scratch, stored, mask, &mut out).map_err(|e| e.context(what).at(at))?;
    Ok(Bytes::owned(out, charge, at))
}
