//! Fractal heap (specification III.G): links and attributes of objects that have many, and shared messages.
//!
//! The heap is one address space, cut into blocks by a "doubling table": rows of `width` blocks, the first two rows
//! of `start` bytes a block, every further row of twice the size before. Blocks up to `max_direct` hold objects,
//! larger ones are themselves tables.

use crate::format::message::filter_pipeline;
use crate::format::{Address, Sizes};
use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, Result};
use tensilo_filters::FilterSpec;

/// What a heap id begins with: which kind of object it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeapId<'a> {
    /// In a direct block.
    Managed {
        /// Position in the heap's address space.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
    /// By itself in the file, its place being in a B-tree under this number.
    HugeIndexed(u64),
    /// By itself in the file, its place being in the id.
    HugeDirect(HugePlace),
    /// In the id itself.
    Tiny(&'a [u8]),
}

/// Where a huge object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HugePlace {
    /// Its address.
    pub address: Address,
    /// Stored bytes.
    pub len: u64,
    /// Filter mask and length after decoding, in heaps with filters.
    pub filtered: Option<(u32, u64)>,
}

/// Header of a fractal heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FractalHeapHeader {
    /// Address of the header.
    pub address: Address,
    /// Widths of addresses and lengths.
    pub sizes: Sizes,
    /// Bytes of a heap id.
    pub id_len: u16,
    /// Do direct blocks have checksums?
    pub checksums: bool,
    /// Largest managed object.
    pub max_managed: u32,
    /// B-tree of huge objects.
    pub huge_btree: Option<Address>,
    /// Manager of the free space between the objects.
    pub free_space: Option<Address>,
    /// Managed space in bytes.
    pub managed_space: u64,
    /// Number of managed objects.
    pub managed_objects: u64,
    /// Number of huge objects.
    pub huge_objects: u64,
    /// Number of tiny objects.
    pub tiny_objects: u64,
    /// Blocks in a row of the doubling table.
    pub width: u16,
    /// Bytes of a block in the first row (a power of two).
    pub start_size: u64,
    /// Bytes of the largest direct block (a power of two).
    pub max_direct: u64,
    /// log2 of the size of the address space.
    pub max_bits: u16,
    /// Address of the root block.
    pub root: Option<Address>,
    /// Rows of the root indirect block; 0 when the root is a direct block.
    pub root_rows: u16,
    /// Filters of direct blocks and huge objects.
    pub filters: Vec<FilterSpec>,
    /// Stored size and filter mask of a filtered direct root block.
    pub root_filtered: Option<(u64, u32)>,
}

/// Bytes of the part that every header has, up to and with the checksum when there are no filters.
pub fn head_len(sizes: Sizes) -> u64 {
    let (o, l) = (u64::from(sizes.offset), u64::from(sizes.length));
    o.saturating_mul(3).saturating_add(l.saturating_mul(12)).saturating_add(26)
}

impl FractalHeapHeader {
    /// Length of the whole header, from its first 9 bytes.
    ///
    /// # Errors
    /// `Corrupt` when it is no fractal heap.
    pub fn total_len(bytes: &[u8], at: u64, sizes: Sizes) -> Result<u64> {
        let mut r = FieldReader::new(bytes, at, "fractal heap");
        r.signature(b"FRHP")?;
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        r.skip(2)?;
        let filter_len = r.u16()?;
        let head = head_len(sizes);
        Ok(if filter_len > 0 {
            head.saturating_add(u64::from(sizes.length)).saturating_add(4).saturating_add(filter_len.into())
        } else {
            head
        })
    }

    /// Verifies the checksum of a header of exactly [`total_len`](Self::total_len) bytes, and parses it.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(bytes: &[u8], at: u64, address: Address, sizes: Sizes) -> Result<Self> {
        let (body, sum) = bytes.split_at_checked(bytes.len().saturating_sub(4)).unwrap_or((bytes, &[]));
        if lookup3(body).to_le_bytes() != sum {
            return Err(Error::corrupt("fractal heap: checksum of the header does not match").at(at));
        }
        let mut r = FieldReader::new(bytes, at, "fractal heap");
        r.signature(b"FRHP")?;
        r.skip(1)?;
        let id_len = r.u16()?;
        let filter_len = r.u16()?;
        let flags = r.u8()?;
        let max_managed = r.u32()?;
        sizes.length(&mut r)?; // next huge id
        let huge_btree = sizes.address(&mut r)?;
        sizes.length(&mut r)?; // free space
        let free_space = sizes.address(&mut r)?;
        let managed_space = sizes.length(&mut r)?;
        sizes.length(&mut r)?; // allocated
        sizes.length(&mut r)?; // allocation iterator
        let managed_objects = sizes.length(&mut r)?;
        sizes.length(&mut r)?; // bytes of huge objects
        let huge_objects = sizes.length(&mut r)?;
        sizes.length(&mut r)?; // bytes of tiny objects
        let tiny_objects = sizes.length(&mut r)?;
        let width = r.u16()?;
        let start_size = sizes.length(&mut r)?;
        let max_direct = sizes.length(&mut r)?;
        let max_bits = r.u16()?;
        r.skip(2)?; // rows the root starts with
        let root = sizes.address(&mut r)?;
        let root_rows = r.u16()?;
        let (filters, root_filtered) = if filter_len > 0 {
            let place = (sizes.length(&mut r)?, r.u32()?);
            let at = r.offset();
            (filter_pipeline::parse(r.bytes(filter_len.into())?, at)?, Some(place))
        } else {
            (Vec::new(), None)
        };
        let header = Self {
            address,
            sizes,
            id_len,
            checksums: flags & 2 != 0,
            max_managed,
            huge_btree,
            free_space,
            managed_space,
            managed_objects,
            huge_objects,
            tiny_objects,
            width,
            start_size,
            max_direct,
            max_bits,
            root,
            root_rows,
            filters,
            root_filtered,
        };
        header.check().map_err(|m| Error::corrupt(format!("fractal heap: {m}")).at(at))?;
        Ok(header)
    }

    fn check(&self) -> std::result::Result<(), String> {
        if !self.width.is_power_of_two() {
            return Err(format!("table width {} is no power of two", self.width));
        }
        if !self.start_size.is_power_of_two() || !self.max_direct.is_power_of_two() {
            return Err(format!(
                "block sizes {} and {} are no powers of two",
                self.start_size, self.max_direct
            ));
        }
        if self.max_direct < self.start_size || self.max_direct > 1 << 31 {
            return Err(format!("direct blocks from {} to {} bytes", self.start_size, self.max_direct));
        }
        if self.max_bits == 0 || self.max_bits > 64 {
            return Err(format!("an address space of 2^{} bytes", self.max_bits));
        }
        if self.max_managed == 0 || u64::from(self.max_managed) > self.max_direct {
            return Err(format!("managed objects of up to {} bytes", self.max_managed));
        }
        if self.id_len == 0 {
            return Err("heap ids of 0 bytes".to_owned());
        }
        if self.root_rows > self.max_rows() {
            return Err(format!("{} rows where {} are the most", self.root_rows, self.max_rows()));
        }
        Ok(())
    }

    /// log2 of the bytes of one first row.
    fn first_row_bits(&self) -> u32 {
        self.start_size.trailing_zeros().saturating_add(u32::from(self.width).trailing_zeros())
    }

    /// Most rows a table can have.
    pub fn max_rows(&self) -> u16 {
        let rows = u32::from(self.max_bits).saturating_sub(self.first_row_bits()).saturating_add(1);
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    /// Rows whose blocks are direct.
    pub fn direct_rows(&self) -> u16 {
        let rows = self
            .max_direct
            .trailing_zeros()
            .saturating_sub(self.start_size.trailing_zeros())
            .saturating_add(2);
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    /// Bytes of a block in this row.
    pub fn row_size(&self, row: u16) -> Option<u64> {
        let shift = u32::from(row.saturating_sub(1));
        self.start_size.checked_shl(shift).filter(|s| s.checked_shr(shift) == Some(self.start_size))
    }

    /// Where a row begins in the table's address space.
    pub fn row_offset(&self, row: u16) -> Option<u64> {
        if row == 0 {
            return Some(0);
        }
        self.row_size(row)?.checked_mul(u64::from(self.width))
    }

    /// Rows of the indirect block that stands in for a block of `size` bytes.
    pub fn rows_of(&self, size: u64) -> u16 {
        let rows = size.trailing_zeros().saturating_sub(self.first_row_bits()).saturating_add(1);
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    /// Row and column of the block that holds `offset` (relative to the table).
    pub fn locate(&self, offset: u64) -> Option<(u16, u16)> {
        let first_row = self.start_size.checked_mul(u64::from(self.width))?;
        if offset < first_row {
            return Some((0, u16::try_from(offset.checked_div(self.start_size)?).ok()?));
        }
        let high = offset.checked_ilog2()?;
        let row = u16::try_from(high.checked_sub(self.first_row_bits())?.checked_add(1)?).ok()?;
        let rest = offset.checked_sub(1_u64.checked_shl(high)?)?;
        Some((row, u16::try_from(rest.checked_div(self.row_size(row)?)?).ok()?))
    }

    /// Bytes of a position in the heap.
    pub fn offset_width(&self) -> usize {
        usize::from(self.max_bits).saturating_add(7).checked_div(8).unwrap_or(8)
    }

    /// Bytes of the length of a managed object in an id.
    fn length_width(&self) -> usize {
        let bits = usize::try_from(self.max_direct.trailing_zeros()).unwrap_or(64);
        let by_block = bits.saturating_add(7).checked_div(8).unwrap_or(8);
        by_block.min(bytes_of(u64::from(self.max_managed)))
    }

    /// Bytes before the objects of a direct block.
    pub fn direct_head(&self) -> usize {
        let head = usize::from(self.sizes.offset).saturating_add(self.offset_width()).saturating_add(5);
        if self.checksums { head.saturating_add(4) } else { head }
    }

    /// Bytes of an indirect block of `rows` rows.
    pub fn indirect_len(&self, rows: u16) -> u64 {
        let width = u64::from(self.width);
        let direct = u64::from(rows.min(self.direct_rows())).saturating_mul(width);
        let indirect = u64::from(rows.saturating_sub(self.direct_rows())).saturating_mul(width);
        let mut entry = u64::from(self.sizes.offset);
        if !self.filters.is_empty() {
            entry = entry.saturating_add(u64::from(self.sizes.length)).saturating_add(4);
        }
        direct
            .saturating_mul(entry)
            .saturating_add(indirect.saturating_mul(u64::from(self.sizes.offset)))
            .saturating_add(u64::from(self.sizes.offset))
            .saturating_add(self.offset_width() as u64)
            .saturating_add(9)
    }

    /// Can ids of huge objects name their place, without the B-tree?
    pub fn huge_is_direct(&self) -> bool {
        let (o, l) = (usize::from(self.sizes.offset), usize::from(self.sizes.length));
        let mut needed = o.saturating_add(l);
        if !self.filters.is_empty() {
            needed = needed.saturating_add(l).saturating_add(4);
        }
        needed <= usize::from(self.id_len).saturating_sub(1)
    }

    /// Takes a heap id apart.
    ///
    /// # Errors
    /// `Corrupt` when it is no heap id of this heap.
    pub fn id<'a>(&self, id: &'a [u8], at: u64) -> Result<HeapId<'a>> {
        let mut r = FieldReader::new(id, at, "fractal heap id");
        let first = r.u8()?;
        if first & 0xc0 != 0 {
            return Err(r.corrupt(format_args!("version {} is not known", first >> 6)));
        }
        match (first >> 4) & 3 {
            0 => {
                let offset = r.uint(self.offset_width())?;
                let len = r.uint(self.length_width())?;
                Ok(HeapId::Managed { offset, len })
            }
            1 if self.huge_is_direct() => {
                Ok(HeapId::HugeDirect(self.huge_place(&mut r, !self.filters.is_empty())?))
            }
            1 => {
                let width =
                    usize::from(self.id_len).saturating_sub(1).min(usize::from(self.sizes.length)).min(8);
                Ok(HeapId::HugeIndexed(r.uint(width)?))
            }
            2 => {
                let short = usize::from(first & 15);
                let len = if usize::from(self.id_len).saturating_sub(1) <= 17 {
                    short.saturating_add(1)
                } else {
                    short.saturating_mul(256).saturating_add(usize::from(r.u8()?)).saturating_add(1)
                };
                r.bytes(len).map(HeapId::Tiny)
            }
            k => Err(r.corrupt(format_args!("object type {k} is not known"))),
        }
    }

    /// Reads the place of a huge object from an id or a B-tree record.
    ///
    /// # Errors
    /// `Corrupt` when a field is missing.
    pub fn huge_place(&self, r: &mut FieldReader<'_>, filtered: bool) -> Result<HugePlace> {
        let address = self.sizes.address(r)?.ok_or_else(|| r.corrupt("a huge object without an address"))?;
        let len = self.sizes.length(r)?;
        let filtered = if filtered { Some((r.u32()?, self.sizes.length(r)?)) } else { None };
        Ok(HugePlace { address, len, filtered })
    }

    /// Reads the place of a huge object from a record of the heap's B-tree (types 1 to 4), with the id it has in
    /// types 1 and 2.
    ///
    /// # Errors
    /// `Corrupt` when a field is missing.
    pub fn huge_record(&self, record: &[u8], at: u64) -> Result<(HugePlace, u64)> {
        let mut r = FieldReader::new(record, at, "record of a huge object");
        let place = self.huge_place(&mut r, !self.filters.is_empty())?;
        let id = if self.huge_is_direct() { 0 } else { self.sizes.length(&mut r)? };
        Ok((place, id))
    }

    /// Checks the head of a direct block, whose checksum field counts as zero while it is computed.
    ///
    /// # Errors
    /// `Corrupt` when it is not the block at `block_offset` of this heap.
    pub fn check_direct(&self, block: &[u8], at: u64, block_offset: u64) -> Result<()> {
        let mut r = FieldReader::new(block, at, "fractal heap direct block");
        self.check_head(&mut r, b"FHDB", block_offset)?;
        if self.checksums {
            let (before, after) = block.split_at_checked(r.position()).unwrap_or((block, &[]));
            let stored = r.u32()?;
            let mut copy = Vec::with_capacity(block.len());
            copy.extend_from_slice(before);
            copy.extend_from_slice(&[0; 4]);
            copy.extend_from_slice(after.get(4..).unwrap_or(&[]));
            if lookup3(&copy) != stored {
                return Err(Error::corrupt("fractal heap direct block: checksum does not match").at(at));
            }
        }
        Ok(())
    }

    fn check_head(&self, r: &mut FieldReader<'_>, signature: &[u8; 4], block_offset: u64) -> Result<()> {
        r.signature(signature)?;
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let owner = self.sizes.address(r)?;
        if owner != Some(self.address) {
            return Err(r.corrupt(format_args!("belongs to another heap, {owner:?}")));
        }
        let offset = r.uint(self.offset_width())?;
        if offset != block_offset {
            return Err(r.corrupt(format_args!("begins at {offset} of the heap, not {block_offset}")));
        }
        Ok(())
    }

    /// Parses an indirect block of `rows` rows, verifies its checksum, and lists its children in order.
    ///
    /// # Errors
    /// `Corrupt` when it is not the block at `block_offset` of this heap.
    pub fn indirect(&self, block: &[u8], at: u64, rows: u16, block_offset: u64) -> Result<Vec<Child>> {
        let mut r = FieldReader::new(block, at, "fractal heap indirect block");
        self.check_head(&mut r, b"FHIB", block_offset)?;
        let mut children = Vec::new();
        for row in 0..rows {
            for _ in 0..self.width {
                let address = self.sizes.address(&mut r)?;
                let filtered = if row < self.direct_rows() && !self.filters.is_empty() {
                    Some((self.sizes.length(&mut r)?, r.u32()?))
                } else {
                    None
                };
                children.push(Child { address, filtered });
            }
        }
        let covered = block.get(..r.position()).unwrap_or(block);
        if lookup3(covered) != r.u32()? {
            return Err(Error::corrupt("fractal heap indirect block: checksum does not match").at(at));
        }
        Ok(children)
    }
}

/// A child of an indirect block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// Its address; `None` when it was never made.
    pub address: Option<Address>,
    /// Stored size and filter mask of a filtered direct block.
    pub filtered: Option<(u64, u32)>,
}

/// Bytes needed to write `n`.
fn bytes_of(n: u64) -> usize {
    let bits = n.checked_ilog2().unwrap_or(0);
    usize::try_from(bits.checked_div(8).unwrap_or(0)).unwrap_or(8).saturating_add(1)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a panic fails the test")]
mod tests {
    use super::*;

    /// The numbers libhdf5 gives the heap of a group's links: width 4, blocks of 512 bytes to 64 KiB, 2^32 bytes.
    fn heap() -> FractalHeapHeader {
        FractalHeapHeader {
            address: Address(64),
            sizes: Sizes::EIGHT,
            id_len: 7,
            checksums: true,
            max_managed: 4096,
            huge_btree: None,
            free_space: None,
            managed_space: 0,
            managed_objects: 0,
            huge_objects: 0,
            tiny_objects: 0,
            width: 4,
            start_size: 512,
            max_direct: 65536,
            max_bits: 32,
            root: None,
            root_rows: 0,
            filters: Vec::new(),
            root_filtered: None,
        }
    }

    #[test]
    fn the_doubling_table_is_that_of_the_specification() {
        let h = heap();
        assert!(h.check().is_ok());
        let sizes: Vec<_> = (0..5).map(|r| h.row_size(r).unwrap()).collect();
        assert_eq!(sizes, [512, 512, 1024, 2048, 4096]);
        assert_eq!(h.direct_rows(), 9);
        assert_eq!(h.max_rows(), 22);
        // Walk the table block by block: every position belongs to the block that the walk is in.
        let mut start = 0;
        for row in 0..12 {
            assert_eq!(h.row_offset(row), Some(start));
            for column in 0..4 {
                let size = h.row_size(row).unwrap();
                assert_eq!(h.locate(start), Some((row, column)));
                assert_eq!(h.locate(start + size - 1), Some((row, column)));
                start += size;
            }
        }
        // A block of 128 KiB in row 9 is a table of as many rows as fill 128 KiB: 2 KiB, 2, 4, … 64 KiB.
        assert_eq!(h.rows_of(128 << 10), 7);
        assert_eq!(h.row_offset(7), Some(128 << 10));
    }

    #[test]
    fn heap_ids_are_taken_apart_by_kind() {
        let mut h = heap();
        let managed = h.id(&[0, 0x34, 0x12, 0, 0, 25, 0], 0).unwrap();
        assert_eq!(managed, HeapId::Managed { offset: 0x1234, len: 25 });
        assert_eq!(h.id(&[0x22, b'a', b'b', b'c', 9, 9, 9], 0).unwrap(), HeapId::Tiny(b"abc"));
        assert_eq!(h.id(&[0x10, 5, 0, 0, 0, 0, 0], 0).unwrap(), HeapId::HugeIndexed(5));
        assert!(h.id(&[0x30, 0, 0, 0, 0, 0, 0], 0).is_err());
        assert!(h.id(&[0x40, 0, 0, 0, 0, 0, 0], 0).is_err());
        h.id_len = 17;
        let mut id = [0_u8; 17];
        (id[0], id[1], id[9]) = (0x10, 7, 3);
        let place = HugePlace { address: Address(7), len: 3, filtered: None };
        assert_eq!(h.id(&id, 0).unwrap(), HeapId::HugeDirect(place));
    }

    #[test]
    fn impossible_headers_are_refused() {
        let changes: [fn(&mut FractalHeapHeader); 8] = [
            |h| h.width = 0,
            |h| h.width = 3,
            |h| h.start_size = 0,
            |h| h.start_size = 131_072,
            |h| h.max_bits = 65,
            |h| h.max_managed = 65537,
            |h| h.id_len = 0,
            |h| h.root_rows = 23,
        ];
        for change in changes {
            let mut h = heap();
            change(&mut h);
            assert!(h.check().is_err(), "{h:?}");
        }
    }
}
