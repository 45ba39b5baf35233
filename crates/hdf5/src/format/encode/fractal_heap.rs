//! Fractal heaps (specification III.G), encoded: the storage behind dense links and attributes.
//!
//! The heap's own address space is a table of rows, each of `width` blocks: rows 0 and 1 have blocks of the
//! starting size, each row behind them blocks of twice the size. Blocks up to the largest direct size hold
//! objects; larger ones are indirect blocks, which cut the same space into rows again. Offsets of objects count
//! every byte of this space, block headers included.

use super::{put_address, put_checksum};
use crate::format::Address;
use tensilo_core::wire::{FieldWriter, lookup3};

/// Largest object kept in a block; larger ones are huge and stand alone.
pub const MOST_MANAGED: usize = 4096;
/// Bytes of the header.
pub const HEADER_SIZE: u64 = 146;

/// The parameters of a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks of a row.
    pub width: u64,
    /// Bytes of the smallest block.
    pub start: u64,
    /// Bytes of the largest direct block.
    pub most_direct: u64,
    /// Bits of an offset in the heap.
    pub bits: u16,
    /// Bytes of a heap id.
    pub id_len: usize,
}

/// A heap id: its kind (1), then what tells where the object is. Only the first [`Shape::id_len`] bytes are stored.
pub type Id = [u8; 8];

impl Shape {
    /// The heap that libhdf5 makes for links.
    pub const LINKS: Self = Self { width: 4, start: 512, most_direct: 65_536, bits: 32, id_len: 7 };
    /// The heap that libhdf5 makes for attributes.
    pub const ATTRIBUTES: Self = Self { width: 4, start: 1024, most_direct: 65_536, bits: 40, id_len: 8 };

    fn offset_size(&self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    /// Bytes in front of the objects of a direct block.
    pub fn overhead(&self) -> u64 {
        (4 + 1 + 8 + self.offset_size() + 4) as u64
    }

    /// Bytes of a block in a row.
    pub fn block_size(&self, row: u32) -> u64 {
        self.start << row.saturating_sub(1)
    }

    /// Rows whose blocks hold objects.
    pub fn direct_rows(&self) -> u32 {
        self.most_direct.trailing_zeros() - self.start.trailing_zeros() + 2
    }

    /// Rows of an indirect block that stands for `size` bytes of the heap.
    pub fn rows_of(&self, size: u64) -> u32 {
        size.trailing_zeros() - (self.start * self.width).trailing_zeros() + 1
    }

    /// Bytes of the heap that `rows` rows cover.
    pub fn span(&self, rows: u32) -> u64 {
        match rows {
            0 => self.start,
            _ => (self.start * self.width) << (rows - 1),
        }
    }

    /// Bytes in `rows` rows that objects could take.
    pub fn room(&self, rows: u32) -> u64 {
        let of_block = |row: u32| match self.block_size(row) {
            size if row < self.direct_rows() => size - self.overhead(),
            size => self.room(self.rows_of(size)),
        };
        (0..rows).map(|row| self.width * of_block(row)).sum()
    }

    /// Bytes of an indirect block of this many rows.
    pub fn indirect_size(&self, rows: u32) -> u64 {
        5 + 8 + self.offset_size() as u64 + 8 * self.width * u64::from(rows) + 4
    }

    /// The id of an object in a block.
    pub fn managed_id(&self, offset: u64, len: usize) -> Id {
        // Kind 0, the offset, the length: little-endian, one behind the other.
        (offset << 8 | (len as u64) << (8 + 8 * self.offset_size())).to_le_bytes()
    }

    /// The id of a huge object, by its number.
    pub fn huge_id(&self, number: u64) -> Id {
        (0x10 | number << 8).to_le_bytes()
    }

    /// The direct block at `offset`, of `size` bytes, from its objects.
    pub fn direct_block(&self, heap: Address, offset: u64, size: u64, objects: &[u8]) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(b"FHDB").u8(0);
        put_address(&mut w, Some(heap));
        w.uint(offset, self.offset_size());
        // The checksum covers the whole block, itself as zero.
        let sum_at = w.len();
        w.u32(0).bytes(objects);
        w.zeros(size as usize - w.len());
        let sum = lookup3(w.as_slice());
        w.patch_u32(sum_at, sum);
        w.finish()
    }

    /// An indirect block from the addresses of all its places.
    pub fn indirect_block(&self, heap: Address, offset: u64, children: &[Option<Address>]) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(b"FHIB").u8(0);
        put_address(&mut w, Some(heap));
        w.uint(offset, self.offset_size());
        for child in children {
            put_address(&mut w, *child);
        }
        put_checksum(&mut w);
        w.finish()
    }
}

/// What the header says of the heap's content.
#[derive(Debug, Clone, Copy, Default)]
pub struct Content {
    /// The number given to the last huge object.
    pub last_huge: u64,
    /// B-tree of the huge objects.
    pub huge_tree: Option<Address>,
    /// Bytes of huge objects.
    pub huge_bytes: u64,
    /// Bytes of objects in blocks.
    pub managed_bytes: u64,
    /// Number of objects in blocks.
    pub managed: u64,
    /// Bytes of all direct blocks.
    pub allocated: u64,
    /// Offset behind the last block, 0 while the root is a direct block.
    pub next_block: u64,
    /// Root block.
    pub root: Option<Address>,
    /// Rows of the root, 0 when it is a direct block.
    pub rows: u32,
}

impl Shape {
    /// The header.
    pub fn header(&self, content: &Content) -> Vec<u8> {
        let (span, room) = match (content.root, content.rows) {
            (None, _) => (0, 0),
            (_, 0) => (self.start, self.start - self.overhead()),
            (_, rows) => (self.span(rows), self.room(rows)),
        };
        let mut w = FieldWriter::new();
        // Direct blocks have checksums (flag bit 1).
        w.bytes(b"FRHP").u8(0).u16(self.id_len as u16).u16(0).u8(2).u32(MOST_MANAGED as u32);
        w.u64(content.last_huge);
        put_address(&mut w, content.huge_tree);
        w.u64(room - content.managed_bytes);
        put_address(&mut w, None);
        w.u64(span).u64(content.allocated).u64(content.next_block).u64(content.managed);
        w.u64(content.huge_bytes).u64(content.last_huge).u64(0).u64(0);
        w.u16(self.width as u16).u64(self.start).u64(self.most_direct).u16(self.bits).u16(1);
        put_address(&mut w, content.root);
        w.u16(content.rows as u16);
        put_checksum(&mut w);
        w.finish()
    }
}
