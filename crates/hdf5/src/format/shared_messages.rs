//! Shared object header message tables (specification III.I): which heap holds which kinds of messages.

use super::message::MessageKind;
use super::{Address, Sizes};
use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, Result};

/// One index of the master table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedIndex {
    /// Is the index a list (or a version 2 B-tree)?
    pub is_list: bool,
    /// Bit `n` is set when messages of type `n` are shared here.
    pub kinds: u16,
    /// Smallest message that is shared.
    pub min_size: u32,
    /// Most messages of a list.
    pub list_max: u16,
    /// Fewest messages of a B-tree.
    pub btree_min: u16,
    /// Messages in the index.
    pub messages: u16,
    /// Address of the list or B-tree.
    pub index: Option<Address>,
    /// Address of the fractal heap.
    pub heap: Option<Address>,
}

impl SharedIndex {
    /// Does this index hold messages of this kind?
    pub fn holds(&self, kind: MessageKind) -> bool {
        let kind = match kind {
            // Both forms of the fill value are shared in the place of the new one.
            MessageKind::FillValueOld => MessageKind::FillValue,
            kind => kind,
        };
        1_u16.checked_shl(u32::from(kind.id())).is_some_and(|bit| self.kinds & bit != 0)
    }
}

/// Bytes of a master table of `count` indexes.
pub fn table_len(sizes: Sizes, count: u8) -> u64 {
    let entry = u64::from(sizes.offset).saturating_mul(2).saturating_add(14);
    entry.saturating_mul(u64::from(count)).saturating_add(8)
}

/// Parses a master table and verifies its checksum.
///
/// # Errors
/// `Corrupt` when it is none.
pub fn table(bytes: &[u8], at: u64, sizes: Sizes, count: u8) -> Result<Vec<SharedIndex>> {
    let mut r = FieldReader::new(bytes, at, "shared message table");
    r.signature(b"SMTB")?;
    let mut indexes = Vec::new();
    for _ in 0..count {
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let kind = r.u8()?;
        if kind > 1 {
            return Err(r.corrupt(format_args!("index type {kind} is not known")));
        }
        indexes.push(SharedIndex {
            is_list: kind == 0,
            kinds: r.u16()?,
            min_size: r.u32()?,
            list_max: r.u16()?,
            btree_min: r.u16()?,
            messages: r.u16()?,
            index: sizes.address(&mut r)?,
            heap: sizes.address(&mut r)?,
        });
    }
    let covered = bytes.get(..r.position()).unwrap_or(bytes);
    if lookup3(covered) != r.u32()? {
        return Err(Error::corrupt("shared message table: checksum does not match").at(at));
    }
    Ok(indexes)
}

/// A shared message, as its index lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedRecord {
    /// In the heap, under this id; with the number of references to it.
    Heap {
        /// Heap id.
        id: [u8; 8],
        /// References to it.
        references: u32,
    },
    /// In the object header at this address.
    Object(Option<Address>),
}

/// Bytes of a record, in a list or in a B-tree (type 7).
pub fn record_len(sizes: Sizes) -> u64 {
    u64::from(sizes.offset).saturating_add(4).max(12).saturating_add(5)
}

/// Bytes of a list of `messages` records.
pub fn list_len(sizes: Sizes, messages: u16) -> u64 {
    record_len(sizes).saturating_mul(messages.into()).saturating_add(8)
}

/// Parses one record.
///
/// # Errors
/// `Corrupt` when its place is not known.
pub fn record(bytes: &[u8], at: u64, sizes: Sizes) -> Result<SharedRecord> {
    let mut r = FieldReader::new(bytes, at, "shared message record");
    let place = r.u8()?;
    r.skip(4)?;
    match place {
        0 => {
            let references = r.u32()?;
            Ok(SharedRecord::Heap { id: r.array()?, references })
        }
        1 => {
            r.skip(4)?;
            Ok(SharedRecord::Object(sizes.address(&mut r)?))
        }
        p => Err(r.corrupt(format_args!("place {p} is not known"))),
    }
}

/// Parses a list of `messages` records and verifies its checksum.
///
/// # Errors
/// `Corrupt` when it is none.
pub fn list(bytes: &[u8], at: u64, sizes: Sizes, messages: u16) -> Result<Vec<SharedRecord>> {
    let mut r = FieldReader::new(bytes, at, "shared message list");
    r.signature(b"SMLI")?;
    let len = usize::try_from(record_len(sizes)).unwrap_or(usize::MAX);
    let places: Result<Vec<_>> = (0..messages).map(|_| Ok((r.offset(), r.bytes(len)?))).collect();
    let places = places?;
    let covered = bytes.get(..r.position()).unwrap_or(bytes);
    if lookup3(covered) != r.u32()? {
        return Err(Error::corrupt("shared message list: checksum does not match").at(at));
    }
    places.into_iter().map(|(at, bytes)| record(bytes, at, sizes)).collect()
}
