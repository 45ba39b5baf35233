//! Superblock (specification II.A), encoded: versions 0, 2 and 3.
//!
//! | version 0 | bytes | versions 2 and 3 | bytes |
//! |---|---|---|---|
//! | signature | 8 | signature | 8 |
//! | versions, sizes | 8 | version, sizes, flags | 4 |
//! | leaf K, internal K, flags | 8 | base | 8 |
//! | base, free space, end, driver | 32 | extension, end, root header | 24 |
//! | root symbol table entry | 40 | checksum | 4 |

use super::symbol_table::{Entry, GROUP_INTERNAL_K, GROUP_LEAF_K};
use super::{put_address, put_checksum};
use crate::format::Address;
use tensilo_core::wire::FieldWriter;

/// The eight bytes that every HDF5 superblock begins with.
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// What a new file's superblock says.
#[derive(Debug, Clone)]
pub struct NewSuperblock {
    /// The version: 0, 2 or 3.
    pub version: u8,
    /// Absolute position of the superblock: the length of the user block.
    pub base: u64,
    /// End of the file, relative to the base.
    pub end: u64,
    /// The root group.
    pub root: Entry,
    /// Header of the superblock extension, if there is one (versions 2 and 3).
    pub extension: Option<Address>,
}

impl NewSuperblock {
    /// Length in bytes of a version.
    pub fn len(version: u8) -> u64 {
        if version == 0 { 96 } else { 48 }
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(SIGNATURE).u8(self.version);
        if self.version == 0 {
            // Versions of free space, root entry and shared messages are 0, between reserved zeros.
            w.zeros(4).u8(8).u8(8).u8(0);
            w.u16(GROUP_LEAF_K as u16).u16(GROUP_INTERNAL_K as u16).u32(0);
            w.u64(self.base);
            put_address(&mut w, None);
            w.u64(self.base + self.end);
            put_address(&mut w, None);
            self.root.encode(&mut w);
        } else {
            w.u8(8).u8(8).u8(0).u64(self.base);
            put_address(&mut w, self.extension);
            w.u64(self.base + self.end);
            put_address(&mut w, Some(self.root.header));
            put_checksum(&mut w);
        }
        w.finish()
    }
}
