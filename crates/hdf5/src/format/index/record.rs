//! What every index says about one chunk (specification VII.C, VII.D and III.A.2, record types 10 and 11).
//!
//! | field | bytes | present |
//! |---|---|---|
//! | address | size of offsets | always |
//! | stored size | what is left of the element | filtered only |
//! | filter mask | 4 | filtered only |
//! | chunk coordinates | 8 each | B-tree records only |

use crate::format::{Address, Sizes};
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

/// Where a chunk is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Address of the first byte.
    pub address: Address,
    /// Stored bytes.
    pub size: u64,
    /// Filters that were skipped.
    pub mask: u32,
}

/// How the elements of an index are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Address width.
    pub sizes: Sizes,
    /// Bytes of an unfiltered chunk, which is the stored size where the element does not say.
    pub chunk_bytes: u64,
    /// Width of the stored size; `None` for unfiltered elements.
    pub size_width: Option<usize>,
}

impl Form {
    /// The form of elements of `element` bytes, `coords` of them taken by coordinates.
    ///
    /// # Errors
    /// `Corrupt` when the fields do not fit in the element.
    pub fn new(sizes: Sizes, chunk_bytes: u64, filtered: bool, element: u64, coords: u64) -> Result<Self> {
        let wrong =
            || Error::corrupt(format!("chunk index elements of {element} bytes do not fit this dataset"));
        let rest = coords
            .checked_mul(8)
            .and_then(|c| element.checked_sub(c))
            .and_then(|e| e.checked_sub(u64::from(sizes.offset)))
            .ok_or_else(wrong)?;
        let size_width = match (filtered, rest) {
            (false, 0) => None,
            (true, 5..=12) => Some(rest.saturating_sub(4) as usize),
            _ => return Err(wrong()),
        };
        Ok(Self { sizes, chunk_bytes, size_width })
    }

    /// Parses the part of an element that all indexes share; `None` for a chunk that was never written.
    ///
    /// # Errors
    /// `Corrupt` when too few bytes are left.
    pub fn parse(&self, r: &mut FieldReader<'_>) -> Result<Option<Stored>> {
        let address = self.sizes.address(r)?;
        let (size, mask) = match self.size_width {
            None => (self.chunk_bytes, 0),
            Some(width) => (r.uint(width)?, r.u32()?),
        };
        Ok(address.map(|address| Stored { address, size, mask }))
    }

    /// Parses a B-tree record: the shared part, then `coords.len()` chunk coordinates.
    ///
    /// # Errors
    /// `Corrupt` when the record is too short or its chunk has no address.
    pub fn parse_record(&self, record: &[u8], at: u64, coords: &mut [u64]) -> Result<Stored> {
        let mut r = FieldReader::new(record, at, "chunk record");
        let stored = self.parse(&mut r)?.ok_or_else(|| r.corrupt("a chunk without an address"))?;
        for c in coords {
            *c = r.u64()?;
        }
        Ok(stored)
    }
}
