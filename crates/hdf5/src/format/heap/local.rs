//! Local heap (specification III.D): the names of an old-style group, or of external files.

use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Header of a local heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalHeapHeader {
    /// Bytes of the data segment.
    pub size: u64,
    /// Address of the data segment.
    pub data: Address,
    /// Where the first free block begins; 1 when nothing is free.
    pub free_list: u64,
}

/// What stands for the end of the free list.
const FREE_END: u64 = 1;

impl LocalHeapHeader {
    /// Bytes of the header.
    pub fn len(sizes: Sizes) -> u64 {
        u64::from(sizes.length).saturating_mul(2).saturating_add(u64::from(sizes.offset)).saturating_add(8)
    }

    /// Parses the header.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "local heap");
        r.signature(b"HEAP")?;
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        r.skip(3)?;
        let size = sizes.length(&mut r)?;
        let free_list = sizes.length(&mut r)?;
        if free_list != FREE_END && free_list >= size {
            return Err(r.corrupt(format_args!("the free list begins at {free_list} of {size}")));
        }
        let data = sizes.address(&mut r)?.ok_or_else(|| r.corrupt("no data segment"))?;
        Ok(Self { size, data, free_list })
    }

    /// Checks the list of free blocks within the data segment.
    ///
    /// # Errors
    /// `Corrupt` when a block is outside, or the list does not end.
    pub fn check_free_list(&self, data: &[u8], at: u64, sizes: Sizes) -> Result<()> {
        let mut next = self.free_list;
        // A block needs two lengths, so more blocks than that cannot be without a cycle.
        let mut left = self.size.checked_div(u64::from(sizes.length).saturating_mul(2)).unwrap_or(0);
        while next != FREE_END {
            let mut r = FieldReader::new(data, at, "local heap free list");
            r.skip(usize::try_from(next).unwrap_or(usize::MAX))?;
            let start = next;
            next = sizes.length(&mut r)?;
            let len = sizes.length(&mut r)?;
            left = left.checked_sub(1).ok_or_else(|| r.corrupt("does not end"))?;
            if next == 0 || start.checked_add(len).is_none_or(|end| end > self.size) {
                return Err(r.corrupt(format_args!("a block of {len} bytes at {start} of {}", self.size)));
            }
        }
        Ok(())
    }
}
