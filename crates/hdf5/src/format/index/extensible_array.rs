//! Extensible array (specification VII.D): the index of datasets with one unlimited dimension.
//!
//! Header: signature `EAHD` (4), version (1), client (1: 0 plain, 1 filtered), element size (1), bits of the
//! largest element number (1), elements in the index block (1), least elements of a data block (1), least data
//! block pointers of a super block (1), log2 of elements in a page (1), six counts (size of lengths each), address of
//! the index block (size of offsets), checksum (4).
//!
//! Elements are numbered through the index block's own elements, then through the data blocks of super block 0, 1,
//! 2, … Super block `u` has 2^(u/2) data blocks of 2^((u+1)/2) times the least number of elements. The first super
//! blocks do not exist on their own: the index block holds their data block addresses.

use super::fixed_array::{client, same_client};
use super::{CHECKSUM, begin, checked};
use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Header of an extensible array, with the geometry that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensibleArray {
    /// Filtered elements?
    pub filtered: bool,
    /// Bytes of an element.
    pub element: u64,
    /// Elements in the index block.
    pub index_elements: u64,
    /// Elements in a page.
    pub page: u64,
    /// Number of the largest element that was ever set, plus one.
    pub set: u64,
    /// The index block.
    pub index_block: Option<Address>,
    least_elements: u64,
    least_pointers: u64,
    max_bits: u8,
    sizes: Sizes,
}

/// Geometry of a super block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuperBlock {
    /// Its number.
    pub number: u64,
    /// Number of its first element, not counting those of the index block.
    pub first: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Elements in each data block.
    pub elements: u64,
}

/// A parsed index block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexBlock<'a> {
    /// Its elements.
    pub elements: &'a [u8],
    /// Absolute offset of the elements.
    pub at: u64,
    /// Data blocks of the first super blocks.
    pub data_blocks: Vec<Option<Address>>,
    /// The other super blocks.
    pub super_blocks: Vec<Option<Address>>,
}

impl ExtensibleArray {
    /// Bytes of a header.
    pub fn header_len(sizes: Sizes) -> u64 {
        u64::from(sizes.length).saturating_mul(6).saturating_add(u64::from(sizes.offset)).saturating_add(16)
    }

    /// Parses a header and verifies its checksum.
    ///
    /// # Errors
    /// `Corrupt`, naming what is wrong.
    pub fn parse(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        const WHAT: &str = "extensible array header";
        let mut r = FieldReader::new(checked(bytes, at, WHAT)?, at, WHAT);
        begin(&mut r, b"EAHD")?;
        let filtered = client(&mut r)?;
        let element = u64::from(r.u8()?);
        let max_bits = r.u8()?;
        let index_elements = u64::from(r.u8()?);
        let least_elements = u64::from(r.u8()?);
        let least_pointers = u64::from(r.u8()?);
        let page_bits = r.u8()?;
        let legal = element > 0
            && (1..=64).contains(&max_bits)
            && least_elements.is_power_of_two()
            && least_pointers.is_power_of_two()
            && least_elements.ilog2() <= u32::from(max_bits)
            && page_bits <= 40;
        if !legal {
            return Err(r.corrupt(format_args!(
                "elements of {element} bytes, {max_bits} bits, blocks of {least_elements}, {least_pointers} \
                 pointers, pages of 2^{page_bits} do not fit together"
            )));
        }
        for _ in 0..4 {
            sizes.length(&mut r)?;
        }
        let set = sizes.length(&mut r)?;
        sizes.length(&mut r)?;
        let index_block = sizes.address(&mut r)?;
        let page = 1 << page_bits;
        let new = Self {
            filtered,
            element,
            index_elements,
            page,
            set,
            index_block,
            least_elements,
            least_pointers,
            max_bits,
            sizes,
        };
        if new.direct_super_blocks() > new.super_blocks() {
            return Err(r.corrupt("the index block would hold more super blocks than there are"));
        }
        Ok(new)
    }

    /// Number of super blocks, those in the index block included.
    fn super_blocks(&self) -> u64 {
        u64::from(self.max_bits).saturating_sub(u64::from(self.least_elements.ilog2())).saturating_add(1)
    }

    /// Super blocks whose data block addresses are in the index block.
    pub fn direct_super_blocks(&self) -> u64 {
        u64::from(self.least_pointers.ilog2()).saturating_mul(2)
    }

    /// Data block addresses in the index block.
    fn direct_data_blocks(&self) -> u64 {
        self.least_pointers.saturating_sub(1).saturating_mul(2)
    }

    /// Geometry of a super block; `None` past the last one.
    pub fn super_block(&self, number: u64) -> Option<SuperBlock> {
        if number >= self.super_blocks() {
            return None;
        }
        let power = |n: u64| 1_u64.checked_shl(u32::try_from(n).ok()?);
        let blocks = power(number / 2)?;
        let elements = power(number.checked_add(1)? / 2)?.checked_mul(self.least_elements)?;
        // Super block u begins at (2^u - 1) times the least number of elements.
        let first = power(number)?.checked_sub(1)?.checked_mul(self.least_elements)?;
        Some(SuperBlock { number, first, blocks, elements })
    }

    /// The super block that holds an element, which is counted without those of the index block.
    pub fn super_block_of(&self, element: u64) -> Option<SuperBlock> {
        let nth = element.checked_div(self.least_elements)?.checked_add(1)?;
        self.super_block(u64::from(nth.ilog2()))
    }

    /// Place in the index block's list of the first data block of one of the first super blocks.
    pub fn direct_place(&self, block: SuperBlock) -> u64 {
        // Blocks of super blocks 0, 1, 2, 3, …: 1, 1, 2, 2, 4, 4, …
        let half = 1_u64.checked_shl(u32::try_from(block.number / 2).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
        let pairs = half.saturating_sub(1).saturating_mul(2);
        if block.number.is_multiple_of(2) { pairs } else { pairs.saturating_add(half) }
    }

    fn prefix_len(&self) -> u64 {
        u64::from(self.sizes.offset).saturating_add(6)
    }

    fn offset_width(&self) -> u64 {
        u64::from(self.max_bits).div_ceil(8)
    }

    fn bytes(&self, elements: u64) -> u64 {
        elements.saturating_mul(self.element)
    }

    /// Bytes of the index block.
    pub fn index_block_len(&self) -> u64 {
        let pointers = self
            .direct_data_blocks()
            .saturating_add(self.super_blocks().saturating_sub(self.direct_super_blocks()));
        self.prefix_len()
            .saturating_add(self.bytes(self.index_elements))
            .saturating_add(pointers.saturating_mul(u64::from(self.sizes.offset)))
            .saturating_add(CHECKSUM)
    }

    /// Parses the index block and verifies its checksum.
    ///
    /// # Errors
    /// `Corrupt`, naming what is wrong.
    pub fn parse_index_block<'a>(&self, bytes: &'a [u8], at: u64) -> Result<IndexBlock<'a>> {
        const WHAT: &str = "extensible array index block";
        let mut r = FieldReader::new(checked(bytes, at, WHAT)?, at, WHAT);
        begin(&mut r, b"EAIB")?;
        same_client(&mut r, self.filtered)?;
        r.skip(usize::from(self.sizes.offset))?;
        let elements_at = r.offset();
        let elements = r.bytes(usize::try_from(self.bytes(self.index_elements)).unwrap_or(usize::MAX))?;
        let mut addresses = |n: u64| (0..n).map(|_| self.sizes.address(&mut r)).collect::<Result<Vec<_>>>();
        let data_blocks = addresses(self.direct_data_blocks())?;
        let super_blocks = addresses(self.super_blocks().saturating_sub(self.direct_super_blocks()))?;
        Ok(IndexBlock { elements, at: elements_at, data_blocks, super_blocks })
    }

    /// Pages of each data block of a super block; 0 where they are not paged.
    pub fn pages(&self, block: SuperBlock) -> u64 {
        if block.elements > self.page { block.elements.div_ceil(self.page.max(1)) } else { 0 }
    }

    fn bitmap_len(&self, block: SuperBlock) -> u64 {
        self.pages(block).div_ceil(8).saturating_mul(block.blocks)
    }

    /// Bytes of a super block.
    pub fn super_block_len(&self, block: SuperBlock) -> u64 {
        self.prefix_len()
            .saturating_add(self.offset_width())
            .saturating_add(self.bitmap_len(block))
            .saturating_add(block.blocks.saturating_mul(u64::from(self.sizes.offset)))
            .saturating_add(CHECKSUM)
    }

    /// Verifies a super block; returns the bitmap of pages that were written, and the bytes of its data block
    /// addresses with their absolute offset.
    ///
    /// # Errors
    /// `Corrupt`, naming what is wrong.
    pub fn super_block_body<'a>(
        &self,
        block: SuperBlock,
        bytes: &'a [u8],
        at: u64,
    ) -> Result<(&'a [u8], &'a [u8], u64)> {
        const WHAT: &str = "extensible array super block";
        let mut r = FieldReader::new(checked(bytes, at, WHAT)?, at, WHAT);
        begin(&mut r, b"EASB")?;
        self.block_head(&mut r, &[block.first])?;
        let bitmap = r.bytes(usize::try_from(self.bitmap_len(block)).unwrap_or(usize::MAX))?;
        let at = r.offset();
        Ok((bitmap, r.bytes(r.remaining())?, at))
    }

    /// Reads client, header address and the block's first element, which must be one of `first`.
    fn block_head(&self, r: &mut FieldReader<'_>, first: &[u64]) -> Result<()> {
        same_client(r, self.filtered)?;
        r.skip(usize::from(self.sizes.offset))?;
        let found = r.uint(self.offset_width() as usize)?;
        if !first.contains(&found) {
            return Err(r.corrupt(format_args!("begins at element {found} where {first:?} is expected")));
        }
        Ok(())
    }

    /// Bytes of a data block of this super block, checksum included, its pages not.
    pub fn data_block_len(&self, block: SuperBlock) -> u64 {
        let elements = if self.pages(block) > 0 { 0 } else { block.elements };
        self.prefix_len()
            .saturating_add(self.offset_width())
            .saturating_add(self.bytes(elements))
            .saturating_add(CHECKSUM)
    }

    /// Verifies data block `i` of a super block; returns its elements (none where it is paged) and their absolute
    /// offset.
    ///
    /// libhdf5 counts the first element of blocks that the index block points to as if all blocks before, of earlier
    /// super blocks too, had this one's size; both ways of counting are taken.
    ///
    /// # Errors
    /// `Corrupt`, naming what is wrong.
    pub fn data_block_body<'a>(
        &self,
        block: SuperBlock,
        i: u64,
        bytes: &'a [u8],
        at: u64,
    ) -> Result<(&'a [u8], u64)> {
        const WHAT: &str = "extensible array data block";
        let begin_at = |i: u64| block.first.saturating_add(i.saturating_mul(block.elements));
        let odd = self.direct_place(block).saturating_add(i);
        let odd = if block.number < self.direct_super_blocks() { odd } else { i };
        let mut r = FieldReader::new(checked(bytes, at, WHAT)?, at, WHAT);
        begin(&mut r, b"EADB")?;
        self.block_head(&mut r, &[begin_at(i), begin_at(odd)])?;
        let at = r.offset();
        Ok((r.bytes(r.remaining())?, at))
    }

    /// Bytes from the start of a data block to a page, and the page's bytes with its checksum.
    pub fn page_place(&self, block: SuperBlock, page: u64) -> (u64, u64) {
        let len = self.bytes(self.page).saturating_add(CHECKSUM);
        (self.data_block_len(block).saturating_add(page.saturating_mul(len)), len)
    }

    /// Verifies a page and returns its elements.
    ///
    /// # Errors
    /// `Corrupt` when the checksum does not match.
    pub fn page_body<'a>(&self, bytes: &'a [u8], at: u64) -> Result<&'a [u8]> {
        checked(bytes, at, "extensible array page")
    }
}
