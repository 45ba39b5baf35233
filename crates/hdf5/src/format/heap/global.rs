//! Global heap collection (specification III.E): variable-length data of many elements side by side.

use crate::format::Sizes;
use std::ops::Range;
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Bytes of a collection's header, which are read to learn how long it is. Headers, of collection and objects alike,
/// are filled up to a multiple of 8.
pub fn head_len(sizes: Sizes) -> u64 {
    u64::from(sizes.length).saturating_add(8).next_multiple_of(8)
}

/// The length of a collection in bytes, header included, from its first [`head_len`] bytes.
///
/// # Errors
/// `Corrupt` when it is no collection.
pub fn collection_len(bytes: &[u8], at: u64, sizes: Sizes) -> Result<u64> {
    let mut r = FieldReader::new(bytes, at, "global heap collection");
    r.signature(b"GCOL")?;
    let version = r.u8()?;
    if version != 1 {
        return Err(r.corrupt(format_args!("version {version} is not known")));
    }
    r.skip(3)?;
    let len = sizes.length(&mut r)?;
    if len < 4096 {
        return Err(r.corrupt(format_args!("{len} bytes are too few")));
    }
    Ok(len)
}

/// One object of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapObject {
    /// Its index, 1 and up.
    pub index: u16,
    /// Number of references to it.
    pub references: u16,
    /// Where its data is in the collection.
    pub data: Range<usize>,
}

/// Lists the objects of a whole collection.
///
/// # Errors
/// `Corrupt` when an object passes the end.
pub fn objects(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Vec<HeapObject>> {
    let mut r = FieldReader::new(bytes, at, "global heap collection");
    let head = usize::try_from(head_len(sizes)).unwrap_or(usize::MAX);
    r.skip(head)?;
    let mut found = Vec::new();
    while r.remaining() >= head {
        let (index, references) = (r.u16()?, r.u16()?);
        r.skip(4)?;
        let len = sizes.length(&mut r)?;
        if index == 0 {
            // Free space: the rest of the collection, its length counting this header too.
            break;
        }
        r.skip(head.saturating_sub(usize::from(sizes.length)).saturating_sub(8))?;
        let start = r.position();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        r.bytes(len).map_err(|e| e.context(format_args!("object {index}")))?;
        found.push(HeapObject { index, references, data: start..r.position() });
        r.skip((len.wrapping_neg() & 7).min(r.remaining()))?;
    }
    Ok(found)
}
