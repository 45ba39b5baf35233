//! Nodes of version 1 B-trees over chunks (specification III.A.1, node type 1).
//!
//! | field | bytes |
//! |---|---|
//! | signature `TREE` | 4 |
//! | node type, 1 | 1 |
//! | level, 0 for nodes that point to chunks | 1 |
//! | entries used | 2 |
//! | left and right sibling | size of offsets each |
//! | entries: key, then child address | |
//! | one key more than children | |
//!
//! A key is the stored size (4), the filter mask (4), the offsets of the chunk's first element along each
//! dimension (8 each), and one more offset along the bytes of an element, always 0 (8).

use super::record::Stored;
use crate::format::Sizes;
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

/// Deepest level that is believed: 2 children a node would already make more chunks than bytes.
pub const MAX_LEVEL: u8 = 64;

/// Header of a node: what must be known to read the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// 0 where the children are chunks.
    pub level: u8,
    /// Children.
    pub entries: u16,
}

/// Bytes of a node's header.
pub fn head_len(sizes: Sizes) -> u64 {
    u64::from(sizes.offset).saturating_mul(2).saturating_add(8)
}

/// Bytes of a node with this many entries, without unused ones.
pub fn len(sizes: Sizes, rank: usize, entries: u16) -> u64 {
    let key = key_len(rank);
    key.saturating_add(u64::from(sizes.offset))
        .saturating_mul(u64::from(entries))
        .saturating_add(key)
        .saturating_add(head_len(sizes))
}

fn key_len(rank: usize) -> u64 {
    (rank as u64).saturating_add(1).saturating_mul(8).saturating_add(8)
}

impl Head {
    /// Parses the header of a node.
    ///
    /// # Errors
    /// `Corrupt` when it is none of a chunk tree.
    pub fn parse(bytes: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "chunk B-tree node");
        r.signature(b"TREE")?;
        match r.u8()? {
            1 => {}
            kind => return Err(r.corrupt(format_args!("node type {kind} where 1 is expected"))),
        }
        let level = r.u8()?;
        if level > MAX_LEVEL {
            return Err(r.corrupt(format_args!("level {level} is deeper than any tree can be")));
        }
        Ok(Self { level, entries: r.u16()? })
    }
}

/// Calls `entry` with every child's first offsets and where the child is stored; size and mask mean something at
/// level 0 only. `key` is used for the offsets.
///
/// # Errors
/// `Corrupt` when the node ends early or a child has no address, or `entry`'s error.
pub fn entries(
    bytes: &[u8],
    at: u64,
    sizes: Sizes,
    head: Head,
    key: &mut [u64],
    entry: &mut dyn FnMut(&[u64], Stored) -> Result<()>,
) -> Result<()> {
    let mut r = FieldReader::new(bytes, at, "chunk B-tree node");
    r.skip(usize::try_from(head_len(sizes)).unwrap_or(usize::MAX))?;
    for _ in 0..head.entries {
        let key_at = r.offset();
        let (size, mask) = (u64::from(r.u32()?), r.u32()?);
        for k in key.iter_mut() {
            *k = r.u64()?;
        }
        r.skip(8)?;
        let address = sizes.address(&mut r)?;
        let address = address
            .ok_or_else(|| Error::corrupt("chunk B-tree node: a child without an address").at(key_at))?;
        entry(key, Stored { address, size, mask })?;
    }
    Ok(())
}
