//! Version 1 B-tree nodes of groups (III.A.1, type 0) and the symbol table nodes beneath them (III.B).
//!
//! The chunk trees of the same form are in [`index`](crate::index).

use super::symbol_entry::SymbolEntry;
use super::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// One node of a group's B-tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupNode {
    /// Level; 0 has symbol table nodes as children.
    pub level: u8,
    /// Addresses of the children.
    pub children: Vec<Address>,
    /// Heap offsets of the names between the children: child `i` holds the names above key `i` up to key `i + 1`.
    pub keys: Vec<u64>,
}

impl GroupNode {
    /// Bytes of a node's header.
    pub fn head_len(sizes: Sizes) -> u64 {
        u64::from(sizes.offset).saturating_mul(2).saturating_add(8)
    }

    /// Bytes of a node of rank `k`.
    pub fn len(sizes: Sizes, k: u16) -> u64 {
        let (o, l, children) =
            (u64::from(sizes.offset), u64::from(sizes.length), u64::from(k).saturating_mul(2));
        Self::head_len(sizes).saturating_add(children.saturating_mul(o.saturating_add(l))).saturating_add(l)
    }

    /// Parses a whole node of rank `k`.
    ///
    /// # Errors
    /// `Corrupt` when it is no node of a group's B-tree.
    pub fn parse(bytes: &[u8], at: u64, sizes: Sizes, k: u16) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "group B-tree node");
        r.signature(b"TREE")?;
        let kind = r.u8()?;
        if kind != 0 {
            return Err(r.corrupt(format_args!("node type {kind} where 0 is expected")));
        }
        let level = r.u8()?;
        let count = r.u16()?;
        if u32::from(count) > u32::from(k).saturating_mul(2) {
            return Err(r.corrupt(format_args!("{count} children where {k} times 2 are the most")));
        }
        sizes.address(&mut r)?;
        sizes.address(&mut r)?;
        let (mut keys, mut children) = (Vec::new(), Vec::new());
        for _ in 0..count {
            keys.push(sizes.length(&mut r)?);
            children.push(sizes.address(&mut r)?.ok_or_else(|| r.corrupt("a child without an address"))?);
        }
        keys.push(sizes.length(&mut r)?);
        Ok(Self { level, children, keys })
    }
}

/// Bytes of a symbol table node of rank `k`.
pub fn symbol_node_len(sizes: Sizes, k: u16) -> u64 {
    SymbolEntry::len(sizes).saturating_mul(u64::from(k).saturating_mul(2)).saturating_add(8)
}

/// Parses a symbol table node of rank `k`.
///
/// # Errors
/// `Corrupt` when it is none.
pub fn symbol_node(bytes: &[u8], at: u64, sizes: Sizes, k: u16) -> Result<Vec<SymbolEntry>> {
    let mut r = FieldReader::new(bytes, at, "symbol table node");
    r.signature(b"SNOD")?;
    let version = r.u8()?;
    if version != 1 {
        return Err(r.corrupt(format_args!("version {version} is not known")));
    }
    r.skip(1)?;
    let count = r.u16()?;
    if u32::from(count) > u32::from(k).saturating_mul(2) {
        return Err(r.corrupt(format_args!("{count} symbols where {k} times 2 are the most")));
    }
    (0..count).map(|_| SymbolEntry::parse(&mut r, sizes)).collect()
}
