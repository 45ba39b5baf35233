//! Symbol table entry (specification III.C): one link of an old-style group.

use super::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// One entry of a symbol table node, or the root group's entry in the superblock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolEntry {
    /// Where the name begins in the group's local heap.
    pub name: u64,
    /// Address of the object header; `None` for soft links.
    pub header: Option<Address>,
    /// What the scratch pad caches.
    pub cached: Cached,
}

/// What a symbol table entry's scratch pad says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cached {
    /// Nothing.
    Nothing,
    /// The entry is a group: its B-tree and local heap.
    Group {
        /// Address of the B-tree.
        btree: Option<Address>,
        /// Address of the local heap.
        heap: Option<Address>,
    },
    /// The entry is a soft link: where its target begins in the local heap.
    SoftLink(u32),
}

impl SymbolEntry {
    /// Bytes of one entry.
    pub fn len(sizes: Sizes) -> u64 {
        u64::from(sizes.length).saturating_add(u64::from(sizes.offset)).saturating_add(24)
    }

    /// Parses one entry.
    ///
    /// # Errors
    /// `Corrupt` when bytes are missing or the cache type is not known.
    pub fn parse(r: &mut FieldReader<'_>, sizes: Sizes) -> Result<Self> {
        let name = sizes.length(r)?;
        let header = sizes.address(r)?;
        let kind = r.u32()?;
        r.skip(4)?;
        let at = r.offset();
        let scratch = r.bytes(16)?;
        let mut s = FieldReader::new(scratch, at, "symbol table entry");
        let cached = match kind {
            // Two addresses of 16 bytes do not fit in the scratch pad; nothing can be cached then.
            1 if sizes.offset <= 8 => {
                Cached::Group { btree: sizes.address(&mut s)?, heap: sizes.address(&mut s)? }
            }
            0 | 1 => Cached::Nothing,
            2 => Cached::SoftLink(s.u32()?),
            k => return Err(s.corrupt(format_args!("cache type {k} is not known"))),
        };
        Ok(Self { name, header, cached })
    }
}
