//! The messages that say how a group's links, or an object's attributes, are kept: symbol table (IV.A.2.r), link
//! info (IV.A.2.c), group info (IV.A.2.k) and attribute info (IV.A.2.v).

use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// An old-style group's B-tree and local heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolTable {
    /// Address of the version 1 B-tree.
    pub btree: Address,
    /// Address of the local heap that holds the names.
    pub heap: Address,
}

impl SymbolTable {
    /// Parses the message.
    ///
    /// # Errors
    /// `Corrupt` when an address is missing.
    pub fn parse(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "symbol table message");
        let btree = sizes.address(&mut r)?.ok_or_else(|| r.corrupt("no B-tree address"))?;
        let heap = sizes.address(&mut r)?.ok_or_else(|| r.corrupt("no heap address"))?;
        Ok(Self { btree, heap })
    }
}

/// Where the links of a new-style group, or the attributes of an object, are once they are dense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenseInfo {
    /// Is creation order tracked?
    pub tracked: bool,
    /// Is creation order indexed?
    pub indexed: bool,
    /// The next creation order number, if tracked.
    pub next_order: Option<u64>,
    /// Fractal heap that holds the messages; `None` while they are in the object header.
    pub heap: Option<Address>,
    /// Version 2 B-tree that indexes the names.
    pub names: Option<Address>,
    /// Version 2 B-tree that indexes the creation order.
    pub order: Option<Address>,
}

impl DenseInfo {
    /// Parses a link info message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse_links(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        Self::parse(FieldReader::new(body, at, "link info message"), sizes, 8)
    }

    /// Parses an attribute info message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse_attributes(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        Self::parse(FieldReader::new(body, at, "attribute info message"), sizes, 2)
    }

    fn parse(mut r: FieldReader<'_>, sizes: Sizes, order_width: usize) -> Result<Self> {
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let flags = r.u8()?;
        if flags & !3 != 0 {
            return Err(r.corrupt(format_args!("unknown flags {flags:#x}")));
        }
        let (tracked, indexed) = (flags & 1 != 0, flags & 2 != 0);
        let next_order = if tracked { Some(r.uint(order_width)?) } else { None };
        if order_width == 8 && next_order.is_some_and(|n| n > i64::MAX as u64) {
            return Err(r.corrupt("a negative creation order"));
        }
        let heap = sizes.address(&mut r)?;
        let names = sizes.address(&mut r)?;
        let order = if indexed { sizes.address(&mut r)? } else { None };
        Ok(Self { tracked, indexed, next_order, heap, names, order })
    }
}

/// Constants of a new-style group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupInfo {
    /// Most links kept in the header, and least kept dense; `None` for the default of 8 and 6.
    pub phase: Option<(u16, u16)>,
    /// Estimated number of entries and length of their names; `None` for the default of 4 and 8.
    pub estimate: Option<(u16, u16)>,
}

impl GroupInfo {
    /// Parses the message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "group info message");
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let flags = r.u8()?;
        if flags & !3 != 0 {
            return Err(r.corrupt(format_args!("unknown flags {flags:#x}")));
        }
        let phase = if flags & 1 != 0 { Some((r.u16()?, r.u16()?)) } else { None };
        let estimate = if flags & 2 != 0 { Some((r.u16()?, r.u16()?)) } else { None };
        Ok(Self { phase, estimate })
    }
}
