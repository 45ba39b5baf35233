//! The attributes of an object: messages in its header, or in a fractal heap once they are many or large.

use super::btree_v2::{self, hash_of};
use super::fractal_heap::HeapObject;
use super::shared::resolve;
use super::together::together;
use super::{FractalHeap, ObjectHeader};
use crate::format::Address;
use crate::format::datatype::{CharacterSet, Datatype};
use crate::format::message::MessageKind;
use crate::format::message::attribute::{AttributeParts, Part};
use crate::format::message::dataspace::Dataspace;
use crate::format::message::group::DenseInfo;
use crate::format::object_header::MESSAGE_SHARED;
use crate::space::FileSpace;
use std::cmp::Ordering;
use std::ops::Range;
use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, ErrorKind, Result};

/// Record type of the name index.
const NAME_INDEX: u8 = 8;

/// An attribute with its data as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeData {
    /// Name, raw bytes.
    pub name: Vec<u8>,
    /// Character set of the name.
    pub charset: CharacterSet,
    /// Type of an element.
    pub datatype: Datatype,
    /// Address of the committed datatype that it is, if it is one.
    pub committed: Option<Address>,
    /// Its shape.
    pub dataspace: Dataspace,
    /// All elements in C order, as stored.
    pub data: Vec<u8>,
    /// Creation order, if tracked.
    pub creation_order: Option<u32>,
    /// Absolute offset of the data, or of what it was decoded from.
    pub offset: u64,
}

/// An attribute that cannot be read.
#[derive(Debug)]
pub struct DamagedAttribute {
    /// Its name, raw bytes, if that much is known.
    pub name: Option<Vec<u8>>,
    /// What is wrong with it.
    pub error: Error,
}

/// All attributes of an object, in stored order. A damaged one is an entry of its own and harms no other.
///
/// # Errors
/// `Corrupt` when the attributes cannot be listed, `Limit` when they are too many or too long.
pub fn attributes(
    space: &FileSpace,
    header: &ObjectHeader,
) -> Result<Vec<Result<AttributeData, DamagedAttribute>>> {
    let mut out = Vec::new();
    let mut bytes = 0_u64;
    let mut missing = Vec::new();
    let mut add = |found: Result<AttributeData, DamagedAttribute>| -> Result<()> {
        // What was not fetched yet is not damaged; all of it is asked for at once.
        if let Err(e) = &found
            && e.error.kind() == ErrorKind::Missing
        {
            missing.extend_from_slice(e.error.missing_ranges());
            return Ok(());
        }
        bytes = bytes.saturating_add(found.as_ref().map_or(0, |a| a.data.len() as u64));
        space.budget().bytes(bytes, "the attributes of an object").map(drop)?;
        out.push(found);
        Ok(())
    };
    if let Some((heap, names)) = dense(header)? {
        let mut heap = together(FractalHeap::open(space, heap), || btree_v2::probe(space, names))?;
        btree_v2::find(space, names, NAME_INDEX, &mut |_| Ok(Ordering::Equal), &mut |record, at| {
            add(dense_attribute(space, &mut heap, record, at))
        })?;
        return whole(out, missing);
    }
    for message in header.messages.iter().filter(|m| m.kind == MessageKind::Attribute) {
        let order = message.creation_index.map(u32::from);
        add(match header.resolve(message) {
            Ok(found) => parse(space, &found.bytes, found.at, order),
            Err(error) => Err(DamagedAttribute { name: None, error }),
        })?;
    }
    whole(out, missing)
}

/// The list, unless parts of it are yet to be fetched.
fn whole<T>(list: Vec<T>, missing: Vec<Range<u64>>) -> Result<Vec<T>> {
    if missing.is_empty() { Ok(list) } else { Err(Error::missing(missing)) }
}

/// The attribute of this name, without reading the others where they are dense.
///
/// # Errors
/// `Corrupt` when it, or the way to it, is damaged.
pub fn attribute(space: &FileSpace, header: &ObjectHeader, name: &[u8]) -> Result<Option<AttributeData>> {
    if let Some((heap, names)) = dense(header)? {
        let mut heap = together(FractalHeap::open(space, heap), || btree_v2::probe(space, names))?;
        let hash = lookup3(name);
        let mut found = None;
        btree_v2::find(space, names, NAME_INDEX, &mut |r| Ok(hash_of(r, 13)?.cmp(&hash)), &mut |r, at| {
            if found.is_none() {
                match dense_attribute(space, &mut heap, r, at) {
                    Ok(a) => found = Some(a).filter(|a| a.name == name),
                    Err(damaged) if damaged.name.as_deref().is_some_and(|n| n != name) => {}
                    Err(damaged) => return Err(damaged.error),
                }
            }
            Ok(())
        })?;
        return Ok(found);
    }
    for message in header.messages.iter().filter(|m| m.kind == MessageKind::Attribute) {
        let found = header.resolve(message)?;
        let parts = AttributeParts::parse(&found.bytes, found.at).map_err(|e| space.locate(e))?;
        if parts.name == name {
            return interpret(space, &parts, message.creation_index.map(u32::from)).map(Some);
        }
    }
    Ok(None)
}

/// Heap and name index of dense attributes.
fn dense(header: &ObjectHeader) -> Result<Option<(Address, Address)>> {
    let Some(DenseInfo { heap: Some(heap), names, .. }) = header.attribute_info()? else { return Ok(None) };
    let names = names.ok_or_else(|| header.corrupt("attribute info message: a heap but no name index"))?;
    Ok(Some((heap, names)))
}

/// A record of the name index: heap id (8 bytes), message flags, creation order, hash of the name.
fn dense_attribute(
    space: &FileSpace,
    heap: &mut FractalHeap<'_>,
    record: &[u8],
    at: u64,
) -> Result<AttributeData, DamagedAttribute> {
    let body = || -> Result<(HeapObject, u64, u32)> {
        let mut r = FieldReader::new(record, at, "attribute name index record");
        let id = r.bytes(8)?;
        let flags = r.u8()?;
        let order = r.u32()?;
        if flags & MESSAGE_SHARED == 0 {
            let (body, body_at) = heap.shown(id, at)?;
            return Ok((body, body_at, order));
        }
        let index = space.shared_indexes()?.iter().find(|i| i.holds(MessageKind::Attribute));
        let shared =
            index.and_then(|i| i.heap).ok_or_else(|| r.corrupt("shared, but the file shares none"))?;
        let (body, body_at) = FractalHeap::open(space, shared)?.shown(id, at)?;
        Ok((body, body_at, order))
    };
    let mut body = body;
    match body() {
        Ok((body, body_at, order)) => parse(space, &body, body_at, Some(order)),
        Err(error) => Err(DamagedAttribute { name: None, error: space.locate(error) }),
    }
}

fn parse(
    space: &FileSpace,
    body: &[u8],
    at: u64,
    creation_order: Option<u32>,
) -> Result<AttributeData, DamagedAttribute> {
    let parts = AttributeParts::parse(body, at)
        .map_err(|e| DamagedAttribute { name: None, error: space.locate(e) })?;
    interpret(space, &parts, creation_order)
        .map_err(|error| DamagedAttribute { name: Some(parts.name.to_vec()), error: space.locate(error) })
}

fn interpret(
    space: &FileSpace,
    parts: &AttributeParts<'_>,
    creation_order: Option<u32>,
) -> Result<AttributeData> {
    let Part { shared, bytes, at } = parts.datatype;
    let found = resolve(space, MessageKind::Datatype, shared, bytes, at)?;
    let (datatype, committed) = (Datatype::parse(&found.bytes, found.at)?, found.committed);
    let Part { shared, bytes, at } = parts.dataspace;
    let found = resolve(space, MessageKind::Dataspace, shared, bytes, at)?;
    let dataspace = Dataspace::parse(&found.bytes, found.at, space.sizes())?;
    let len = dataspace.elements().and_then(|n| n.checked_mul(u64::from(datatype.size)));
    let data = len.and_then(|n| usize::try_from(n).ok()).and_then(|n| parts.data.get(..n));
    let data = data.ok_or_else(|| {
        Error::corrupt(format!("attribute message: {} bytes hold {len:?} bytes of data", parts.data.len()))
            .at(parts.data_at)
    })?;
    Ok(AttributeData {
        name: parts.name.to_vec(),
        charset: parts.charset,
        datatype,
        committed,
        dataspace,
        data: data.to_vec(),
        creation_order,
        offset: parts.data_at,
    })
}
