//! What the bytes of an HDF5 file mean: every structure as a checked value, with parse and encode side by side.
//!
//! Nothing here does I/O and nothing here can panic on what a file says. Source of all facts: the HDF5 File
//! Format Specification, versions 3.0 and 4.0; each file names its section.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used)]

pub mod btree_v1;
pub mod btree_v2;
pub mod datatype;
pub mod encode;
pub mod free_space;
pub mod heap;
pub mod index;
pub mod message;
pub mod object_header;
pub mod selection;
pub mod shared_messages;
pub mod superblock;
pub mod symbol_entry;
pub mod virtual_block;

/// A position in the file as stored: relative to the base address, which [`space`](crate::space) adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// Widths of addresses and lengths in this file, from the superblock (2, 4, 8 or more bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of an address ("size of offsets").
    pub offset: u8,
    /// Bytes of a length ("size of lengths").
    pub length: u8,
}

impl Sizes {
    /// Eight bytes each: what every common writer uses.
    pub const EIGHT: Self = Self { offset: 8, length: 8 };

    /// Reads an address; the undefined address (all bits set) is `None`.
    ///
    /// # Errors
    /// `Corrupt` when too few bytes are left; `Unsupported` when it does not fit in 64 bits.
    pub fn address(
        self,
        r: &mut tensilo_core::wire::FieldReader<'_>,
    ) -> tensilo_core::Result<Option<Address>> {
        let width = usize::from(self.offset);
        let mut probe = r.clone();
        if probe.bytes(width)?.iter().all(|b| *b == 0xff) {
            *r = probe;
            return Ok(None);
        }
        Ok(Some(Address(r.uint(width)?)))
    }

    /// Reads a length.
    ///
    /// # Errors
    /// As [`address`](Self::address).
    pub fn length(self, r: &mut tensilo_core::wire::FieldReader<'_>) -> tensilo_core::Result<u64> {
        r.uint(usize::from(self.length))
    }

    /// Appends an address; `None` is written as all bits set.
    pub fn put_address(self, w: &mut tensilo_core::wire::FieldWriter, address: Option<Address>) {
        match address {
            Some(Address(a)) => {
                w.uint(a, usize::from(self.offset));
            }
            None => {
                for _ in 0..self.offset {
                    w.u8(0xff);
                }
            }
        }
    }

    /// Appends a length.
    pub fn put_length(self, w: &mut tensilo_core::wire::FieldWriter, length: u64) {
        w.uint(length, usize::from(self.length));
    }
}
