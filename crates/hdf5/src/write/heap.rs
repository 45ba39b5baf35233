//! The global heap of a file being written: collections filled in call order.

use super::addresses::Of;
use super::out::Out;
use crate::format::Address;
use crate::format::encode::global_heap::{Collection, HEADER_SIZE, LEAST_SIZE, object_size};
use tensilo_core::Result;

/// Collections grow from 4 KiB to this size.
const MOST_SIZE: u64 = 64 << 10;

/// Place of an object in a global heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapId {
    /// The collection.
    pub collection: Address,
    /// Index in the collection.
    pub index: u32,
}

impl HeapId {
    /// What stands for "no object".
    pub const NONE: Self = Self { collection: Address(0), index: 0 };

    /// The element of a variable-length type that holds `items` items in this object: 16 bytes.
    pub fn element(self, items: u32) -> [u8; 16] {
        let mut e = [0; 16];
        e[..4].copy_from_slice(&items.to_le_bytes());
        e[4..12].copy_from_slice(&self.collection.0.to_le_bytes());
        e[12..].copy_from_slice(&self.index.to_le_bytes());
        e
    }
}

#[derive(Debug, Default)]
pub(crate) struct GlobalHeap {
    open: Option<(Address, Collection)>,
    next_size: u64,
}

impl GlobalHeap {
    /// Puts an object into the heap; an empty one takes no place.
    pub(crate) fn add(&mut self, data: &[u8], out: &mut Out<'_>) -> Result<HeapId> {
        if data.is_empty() {
            return Ok(HeapId::NONE);
        }
        if let Some((collection, open)) = &mut self.open {
            if let Some(index) = open.add(data) {
                return Ok(HeapId { collection: *collection, index: u32::from(index) });
            }
            self.flush(out)?;
        }
        self.next_size = (self.next_size * 2).clamp(LEAST_SIZE, MOST_SIZE);
        let size = self.next_size.max(HEADER_SIZE + object_size(data.len() as u64));
        let collection = out.allocate(size, Of::Raw)?;
        let mut open = Collection::new(size);
        let index = open.add(data).map_or(0, u32::from);
        self.open = Some((collection, open));
        Ok(HeapId { collection, index })
    }

    /// Writes the open collection.
    pub(crate) fn flush(&mut self, out: &mut Out<'_>) -> Result<()> {
        match self.open.take() {
            Some((address, collection)) => out.write(address, &collection.encode()),
            None => Ok(()),
        }
    }
}
