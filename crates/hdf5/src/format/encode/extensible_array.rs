//! Extensible arrays (specification appendix C.D), encoded: header, index block, secondary blocks, data blocks.
//!
//! Element numbers are spread like this, with libhdf5's parameters for chunks: the first 4 stand in the index
//! block; then come super blocks 0, 1, 2, …, where super block `u` has `2^(u/2)` data blocks of
//! `16 * 2^((u+1)/2)` elements. The index block points to the data blocks of super blocks 0 to 3 itself, and to
//! a secondary block for each one behind them.

use super::{put_address, put_checksum};
use crate::format::Address;
use tensilo_core::wire::{FieldWriter, lookup3};

/// Bits of the largest number of elements.
pub const MAX_BITS: u8 = 32;
/// Elements in the index block.
pub const INDEX_ELEMENTS: u8 = 4;
/// Elements in the smallest data block.
pub const MIN_ELEMENTS: u8 = 16;
/// Least number of data block pointers of a secondary block.
pub const MIN_POINTERS: u8 = 4;
/// log2 of the elements of a data block page.
pub const PAGE_BITS: u8 = 10;
/// Super blocks there can be.
pub const SUPER_BLOCKS: usize = 1 + MAX_BITS as usize - MIN_ELEMENTS.trailing_zeros() as usize;
/// Super blocks whose data blocks the index block points to.
pub const DIRECT_SUPER_BLOCKS: usize = 2 * MIN_POINTERS.trailing_zeros() as usize;
/// Data blocks that the index block points to.
pub const DIRECT_DATA_BLOCKS: usize = 2 * (MIN_POINTERS as usize - 1);
/// Bytes of the header.
pub const HEADER_SIZE: u64 = 72;
/// Bytes of a block's element offset.
const OFFSET_SIZE: usize = (MAX_BITS as usize).div_ceil(8);

/// The shape of a super block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuperBlock {
    /// Data blocks.
    pub data_blocks: u64,
    /// Elements of each.
    pub elements: u64,
    /// First element, not counting those in the index block.
    pub start: u64,
}

/// The shapes of all super blocks.
pub fn super_blocks() -> [SuperBlock; SUPER_BLOCKS] {
    let mut start = 0;
    std::array::from_fn(|u| {
        let data_blocks = 1_u64 << (u / 2);
        let elements = u64::from(MIN_ELEMENTS) << u.div_ceil(2);
        let here = SuperBlock { data_blocks, elements, start };
        start += data_blocks * elements;
        here
    })
}

/// Pages of a data block; 0 when it is not paged.
pub fn pages(elements: u64) -> u64 {
    if elements > 1 << PAGE_BITS { elements >> PAGE_BITS } else { 0 }
}

/// Bytes of a data block.
pub fn data_block_size(elements: u64, element_size: usize) -> u64 {
    6 + 8 + OFFSET_SIZE as u64 + 4 + elements * element_size as u64 + 4 * pages(elements)
}

/// Bytes of a secondary block.
pub fn secondary_size(block: SuperBlock) -> u64 {
    let bitmaps = block.data_blocks * pages(block.elements).div_ceil(8);
    6 + 8 + OFFSET_SIZE as u64 + bitmaps + 8 * block.data_blocks + 4
}

/// Bytes of the index block.
pub fn index_block_size(element_size: usize) -> u64 {
    let pointers = DIRECT_DATA_BLOCKS + SUPER_BLOCKS - DIRECT_SUPER_BLOCKS;
    (6 + 8 + usize::from(INDEX_ELEMENTS) * element_size + 8 * pointers + 4) as u64
}

/// What the header counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Secondary blocks.
    pub secondary_blocks: u64,
    /// Bytes of them.
    pub secondary_bytes: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Bytes of them.
    pub data_bytes: u64,
    /// One more than the highest element that was set.
    pub max_set: u64,
    /// Elements that there is room for.
    pub realized: u64,
}

/// The header.
pub fn header(filtered: bool, element_size: usize, counts: &Counts, index: Address) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.bytes(b"EAHD").u8(0).u8(u8::from(filtered)).u8(element_size as u8);
    w.u8(MAX_BITS).u8(INDEX_ELEMENTS).u8(MIN_ELEMENTS).u8(MIN_POINTERS).u8(PAGE_BITS);
    w.u64(counts.secondary_blocks).u64(counts.secondary_bytes);
    w.u64(counts.data_blocks).u64(counts.data_bytes);
    w.u64(counts.max_set).u64(counts.realized);
    put_address(&mut w, Some(index));
    put_checksum(&mut w);
    w.finish()
}

fn block(signature: &[u8; 4], filtered: bool, header: Address) -> FieldWriter {
    let mut w = FieldWriter::new();
    w.bytes(signature).u8(0).u8(u8::from(filtered));
    put_address(&mut w, Some(header));
    w
}

/// The index block: its elements, and the addresses of data and secondary blocks.
pub fn index_block(
    filtered: bool,
    header: Address,
    elements: &[u8],
    data: &[Option<Address>],
    secondary: &[Option<Address>],
) -> Vec<u8> {
    let mut w = block(b"EAIB", filtered, header);
    w.bytes(elements);
    for a in data.iter().chain(secondary) {
        put_address(&mut w, *a);
    }
    put_checksum(&mut w);
    w.finish()
}

/// A secondary block; `set` tells which of its data blocks exist, all pages of which are initialised.
pub fn secondary_block(
    filtered: bool,
    header: Address,
    shape: SuperBlock,
    data: &[Option<Address>],
) -> Vec<u8> {
    let mut w = block(b"EASB", filtered, header);
    w.uint(shape.start, OFFSET_SIZE);
    let pages = pages(shape.elements) as usize;
    if pages > 0 {
        let mut map = vec![0_u8; data.len() * pages.div_ceil(8)];
        for bit in (0..data.len() * pages).filter(|bit| data.get(bit / pages).is_some_and(Option::is_some)) {
            if let Some(byte) = map.get_mut(bit / 8) {
                *byte |= 0x80 >> (bit % 8);
            }
        }
        w.bytes(&map);
    }
    for a in data {
        put_address(&mut w, *a);
    }
    put_checksum(&mut w);
    w.finish()
}

/// A data block from all its elements.
pub fn data_block(
    filtered: bool,
    header: Address,
    start: u64,
    element_size: usize,
    elements: &[u8],
) -> Vec<u8> {
    let mut w = block(b"EADB", filtered, header);
    w.uint(start, OFFSET_SIZE);
    let page = element_size << PAGE_BITS;
    if elements.len() <= page {
        w.bytes(elements);
        put_checksum(&mut w);
        return w.finish();
    }
    put_checksum(&mut w);
    for page in elements.chunks(page) {
        w.bytes(page).u32(lookup3(page));
    }
    w.finish()
}

const _: () = assert!(SUPER_BLOCKS == 29 && DIRECT_SUPER_BLOCKS == 4 && DIRECT_DATA_BLOCKS == 6);

#[cfg(test)]
mod tests {
    use super::super::fixed_array::all_set;
    use super::*;

    #[test]
    fn super_blocks_double_in_turn() {
        let all = super_blocks();
        assert_eq!(all[0], SuperBlock { data_blocks: 1, elements: 16, start: 0 });
        assert_eq!(all[1], SuperBlock { data_blocks: 1, elements: 32, start: 16 });
        assert_eq!(all[2], SuperBlock { data_blocks: 2, elements: 32, start: 48 });
        assert_eq!(all[3], SuperBlock { data_blocks: 2, elements: 64, start: 112 });
        assert_eq!(all[4], SuperBlock { data_blocks: 4, elements: 64, start: 240 });
    }

    #[test]
    fn bitmaps_begin_at_the_highest_bit() {
        assert_eq!(all_set(1), [0x80]);
        assert_eq!(all_set(8), [0xff]);
        assert_eq!(all_set(11), [0xff, 0xe0]);
    }
}
