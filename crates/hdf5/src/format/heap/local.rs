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
}

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
        let free = r.offset();
        let free_list = sizes.length(&mut r)?;
        // 1 means that nothing is free.
        if free_list != 1 && free_list >= size && !all_ones(free_list, sizes.length) {
            return Err(r.corrupt(format_args!("the free list begins at {free_list} of {size}")).at(free));
        }
        let data = sizes.address(&mut r)?.ok_or_else(|| r.corrupt("no data segment"))?;
        Ok(Self { size, data })
    }
}

fn all_ones(n: u64, width: u8) -> bool {
    match width {
        2 => n == u64::from(u16::MAX),
        4 => n == u64::from(u32::MAX),
        _ => n == u64::MAX,
    }
}
