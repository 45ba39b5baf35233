//! Object header messages (specification IV.A.2), encoded: dataspace, fill value, layout, filters, attribute,
//! links and their infos.

#![expect(clippy::arithmetic_side_effects, reason = "sizes of messages that we lay out ourselves")]

use super::data_layout::{ChunkIndexLayout, ChunkedLayout, DataLayout};
use super::dataspace::Dataspace;
use super::fill_value::{AllocationTime, FillMessage, FillTime, FillValue};
use crate::format::Address;
use crate::format::datatype::CharacterSet;
use crate::format::datatype::encode::charset_number;
use crate::format::encode::{Bound, UNDEFINED, put_address, width_of};
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};
use tensilo_filters::FilterSpec;

/// Most dimensions of a dataspace.
const MOST_DIMENSIONS: usize = 32;

/// A dataspace message: version 1 under `earliest` (2 for null spaces), else 2.
///
/// # Errors
/// `InvalidArgument` for more than 32 dimensions or maxima below the extents.
pub fn dataspace(space: &Dataspace, bound: Bound) -> Result<Vec<u8>> {
    let mut w = FieldWriter::new();
    let (kind, dims, max): (u8, &[u64], &[Option<u64>]) = match space {
        Dataspace::Null => (2, &[], &[]),
        Dataspace::Scalar => (0, &[], &[]),
        Dataspace::Simple { dims, max } => (1, dims, max),
    };
    if dims.len() > MOST_DIMENSIONS || dims.len() != max.len() {
        return Err(Error::invalid(format!(
            "a dataspace of {} dimensions and {} maxima; 1 to 32 of each are possible",
            dims.len(),
            max.len()
        )));
    }
    if let Some((d, m)) = dims.iter().zip(max).find(|(d, m)| m.is_some_and(|m| m < **d)) {
        return Err(Error::invalid(format!("the extent {d} is larger than its maximum {}", m.unwrap_or(0))));
    }
    let has_max = dims.iter().zip(max).any(|(d, m)| *m != Some(*d));
    if bound.has_v2_headers() || kind == 2 {
        w.u8(2).u8(dims.len() as u8).u8(u8::from(has_max)).u8(kind);
    } else {
        w.u8(1).u8(dims.len() as u8).u8(u8::from(has_max)).zeros(5);
    }
    for d in dims {
        w.u64(*d);
    }
    if has_max {
        for m in max {
            w.u64(m.unwrap_or(UNDEFINED));
        }
    }
    Ok(w.finish())
}

/// A fill value message: version 2 under `earliest`, else 3.
///
/// # Errors
/// `InvalidArgument` for a value of 4 GiB or more.
pub fn fill(message: &FillMessage, bound: Bound) -> Result<Vec<u8>> {
    let mut w = FieldWriter::new();
    let allocation = match message.allocation {
        AllocationTime::Early => 1,
        AllocationTime::Late => 2,
        AllocationTime::Incremental => 3,
    };
    let time = match message.time {
        FillTime::OnAllocation => 0,
        FillTime::Never => 1,
        FillTime::IfSet => 2,
    };
    let put_value = |w: &mut FieldWriter, value: &[u8]| -> Result<()> {
        let len = u32::try_from(value.len()).map_err(|_| Error::invalid("a fill value of 4 GiB or more"))?;
        w.u32(len).bytes(value);
        Ok(())
    };
    if bound.has_v2_headers() {
        let state = match message.value {
            FillValue::Undefined => 0x10,
            FillValue::Default => 0,
            FillValue::Value(_) => 0x20,
        };
        w.u8(3).u8(allocation | time << 2 | state);
        if let FillValue::Value(value) = &message.value {
            put_value(&mut w, value)?;
        }
        return Ok(w.finish());
    }
    w.u8(2).u8(allocation).u8(time);
    match &message.value {
        FillValue::Undefined => {
            w.u8(0);
        }
        FillValue::Default => {
            w.u8(1).u32(0);
        }
        FillValue::Value(value) => {
            w.u8(1);
            put_value(&mut w, value)?;
        }
    }
    Ok(w.finish())
}

/// A layout message; a chunked one in the version that it names, other ones in version 3.
///
/// # Errors
/// `Unsupported` for what the version cannot express.
pub fn layout(layout: &DataLayout) -> Result<Vec<u8>> {
    let mut w = FieldWriter::new();
    match layout {
        DataLayout::Compact(data) => {
            let len = u16::try_from(data.len()).map_err(|_| {
                Error::unsupported(format!("{} bytes in a compact layout; 65535 are possible", data.len()))
            })?;
            w.u8(3).u8(0).u16(len).bytes(data);
        }
        DataLayout::Contiguous { address, size } => {
            w.u8(3).u8(1);
            put_address(&mut w, *address);
            w.u64(*size);
        }
        DataLayout::Chunked(chunked) if chunked.version <= 3 => chunked_v3(&mut w, chunked)?,
        DataLayout::Chunked(chunked) => chunked_v4(&mut w, chunked),
        DataLayout::Virtual { heap, index } => {
            w.u8(4).u8(3);
            put_address(&mut w, *heap);
            w.u32(*index);
        }
    }
    Ok(w.finish())
}

/// The chunk extents followed by the element size, as all chunked layouts state them.
fn chunk_extents(chunked: &ChunkedLayout) -> impl Iterator<Item = u64> {
    chunked.dims.iter().copied().chain([chunked.element_size])
}

fn chunked_v3(w: &mut FieldWriter, chunked: &ChunkedLayout) -> Result<()> {
    if chunked.unfiltered_edges {
        return Err(Error::unsupported("unfiltered edge chunks need the bound v110 or a newer one"));
    }
    w.u8(3).u8(2).u8(chunked.dims.len() as u8 + 1);
    put_address(w, chunked.address);
    for extent in chunk_extents(chunked) {
        let extent = u32::try_from(extent)
            .map_err(|_| Error::unsupported(format!("the chunk extent {extent} needs over 32 bits")))?;
        w.u32(extent);
    }
    Ok(())
}

fn chunked_v4(w: &mut FieldWriter, chunked: &ChunkedLayout) {
    let filtered_single = matches!(chunked.index, ChunkIndexLayout::Single { filtered: Some(_) });
    let flags = u8::from(chunked.unfiltered_edges) | u8::from(filtered_single) << 1;
    // HDF5 2.0 refuses any width but the least.
    let width = width_of(chunk_extents(chunked).max().unwrap_or(1));
    w.u8(chunked.version).u8(2).u8(flags).u8(chunked.dims.len() as u8 + 1).u8(width as u8);
    for extent in chunk_extents(chunked) {
        w.uint(extent, width);
    }
    match &chunked.index {
        ChunkIndexLayout::Single { filtered } => {
            w.u8(1);
            if let Some((size, mask)) = filtered {
                w.u64(*size).u32(*mask);
            }
        }
        ChunkIndexLayout::Implicit => {
            w.u8(2);
        }
        ChunkIndexLayout::FixedArray { page_bits } => {
            w.u8(3).u8(*page_bits);
        }
        ChunkIndexLayout::ExtensibleArray {
            max_bits,
            index_elements,
            min_pointers,
            min_elements,
            page_bits,
        } => {
            w.u8(4).u8(*max_bits).u8(*index_elements).u8(*min_pointers).u8(*min_elements).u8(*page_bits);
        }
        ChunkIndexLayout::BtreeV2 { node_size, split, merge } => {
            w.u8(5).u32(*node_size).u8(*split).u8(*merge);
        }
        // Versions 4 and 5 have no number for it; the writer never asks.
        ChunkIndexLayout::BtreeV1 => {
            w.u8(0);
        }
    }
    put_address(w, chunked.address);
}

/// A filter pipeline message: version 1 under `earliest`, else 2.
///
/// # Errors
/// `InvalidArgument` for more than 32 filters, or names or values that do not fit.
pub fn filters(specs: &[FilterSpec], bound: Bound) -> Result<Vec<u8>> {
    if specs.len() > 32 {
        return Err(Error::invalid(format!("{} filters; 32 are possible", specs.len())));
    }
    let v2 = bound.has_v2_headers();
    let mut w = FieldWriter::new();
    if v2 {
        w.u8(2).u8(specs.len() as u8);
    } else {
        w.u8(1).u8(specs.len() as u8).zeros(6);
    }
    for spec in specs {
        // Names of the library's own filters are not stored in version 2.
        let named = !v2 || spec.id >= 256;
        let name = spec.name.as_deref().or_else(|| own_name(spec.id));
        let name = name.filter(|_| named).map(str::as_bytes).unwrap_or_default();
        let name_len = match (name.len(), v2) {
            (0, _) => 0,
            (n, true) => n + 1,
            (n, false) => (n + 1).next_multiple_of(8),
        };
        let (Ok(name_field), Ok(values)) = (u16::try_from(name_len), u16::try_from(spec.values.len())) else {
            return Err(Error::invalid(format!("the name or values of filter {} are too long", spec.id)));
        };
        w.u16(spec.id);
        if named {
            w.u16(name_field);
        }
        w.u16(spec.flags).u16(values).bytes(name).zeros(name_len - name.len());
        for v in &spec.values {
            w.u32(*v);
        }
        if !v2 && spec.values.len() % 2 == 1 {
            w.u32(0);
        }
    }
    Ok(w.finish())
}

/// The names of the library's own filters.
fn own_name(id: u16) -> Option<&'static str> {
    match id {
        1 => Some("deflate"),
        2 => Some("shuffle"),
        3 => Some("fletcher32"),
        4 => Some("szip"),
        5 => Some("nbit"),
        6 => Some("scaleoffset"),
        _ => None,
    }
}

/// The parts of an attribute message.
#[derive(Debug, Clone, Copy)]
pub struct NewAttribute<'a> {
    /// Name.
    pub name: &'a [u8],
    /// Character set of the name.
    pub charset: CharacterSet,
    /// Body of its datatype message, or of a reference to a committed one.
    pub datatype: &'a [u8],
    /// Is the datatype a reference, to a committed one or into the heap of shared messages?
    pub datatype_shared: bool,
    /// Body of its dataspace message, or of a reference into the heap of shared messages.
    pub dataspace: &'a [u8],
    /// Is the dataspace a reference?
    pub dataspace_shared: bool,
    /// Its elements.
    pub data: &'a [u8],
}

/// An attribute message: version 1, 2 (references to committed types and the like) or 3 (other character sets) under `earliest`, else 3.
///
/// # Errors
/// `InvalidArgument` for names that are empty, contain NUL or are longer than 65,534 bytes.
pub fn attribute(a: &NewAttribute<'_>, bound: Bound) -> Result<Vec<u8>> {
    let version = match a {
        _ if bound.has_v2_headers() || a.charset != CharacterSet::Ascii => 3,
        _ if a.datatype_shared || a.dataspace_shared => 2,
        _ => 1,
    };
    check_name(a.name, "attribute")?;
    let sizes = [a.name.len() + 1, a.datatype.len(), a.dataspace.len()];
    let mut w = FieldWriter::new();
    w.u8(version).u8(u8::from(a.datatype_shared) | u8::from(a.dataspace_shared) << 1);
    for size in sizes {
        let size = u16::try_from(size)
            .map_err(|_| Error::invalid(format!("a part of the attribute has {size} bytes; 65535 fit")))?;
        w.u16(size);
    }
    if version == 3 {
        w.u8(charset_number(a.charset));
    }
    let pad = |w: &mut FieldWriter, len: usize| {
        if version == 1 {
            w.zeros(len.next_multiple_of(8) - len);
        }
    };
    w.bytes(a.name).u8(0);
    pad(&mut w, a.name.len() + 1);
    w.bytes(a.datatype);
    pad(&mut w, a.datatype.len());
    w.bytes(a.dataspace);
    pad(&mut w, a.dataspace.len());
    w.bytes(a.data);
    Ok(w.finish())
}

/// A reference to a message kept in the header of a committed datatype (version 2 of shared messages).
pub fn committed(header: Address) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.u8(2).u8(2).u64(header.0);
    w.finish()
}

/// A reference to a message in the heap of shared messages (version 3 of shared messages).
pub fn in_heap(id: [u8; 8]) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.u8(3).u8(1).bytes(&id);
    w.finish()
}

/// A shared message table message.
pub fn shared_table(table: Address, indexes: u8) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.u8(0).u64(table.0).u8(indexes);
    w.finish()
}

/// A file space info message (version 1) of a file without free-space managers.
pub fn file_space(strategy: u8, persist: bool, threshold: u64, page_size: u64) -> Vec<u8> {
    /// Free-space managers: for small and for large pieces of six kinds each.
    const MANAGERS: usize = 12;
    let mut w = FieldWriter::new();
    w.u8(1).u8(strategy).u8(u8::from(persist)).u64(threshold).u64(page_size).u16(0);
    put_address(&mut w, None);
    if persist {
        for _ in 0..MANAGERS {
            put_address(&mut w, None);
        }
    }
    w.finish()
}

/// Where a link leads.
#[derive(Debug, Clone, Copy)]
pub enum NewTarget<'a> {
    /// An object of this file.
    Hard(Address),
    /// A path in this file.
    Soft(&'a [u8]),
    /// An object of another file.
    External {
        /// Name of the file.
        file: &'a [u8],
        /// Path of the object in it.
        object: &'a [u8],
    },
    /// A link class of the user's own (65 to 255).
    User {
        /// Class.
        class: u8,
        /// Data of the class.
        data: &'a [u8],
    },
}

/// A link message.
///
/// # Errors
/// `InvalidArgument` for names or values that are empty, contain NUL or are too long. The message may be too long
/// for an object header; a fractal heap holds it.
pub fn link(
    name: &[u8],
    charset: CharacterSet,
    order: Option<i64>,
    target: NewTarget<'_>,
) -> Result<Vec<u8>> {
    if name.is_empty() || name.contains(&0) || u32::try_from(name.len()).is_err() {
        return Err(Error::invalid("a link's name is empty, contains a NUL or is longer than 4 GiB"));
    }
    let width = match name.len() as u64 {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    let kind = match target {
        NewTarget::Hard(_) => 0,
        NewTarget::Soft(_) => 1,
        NewTarget::External { .. } => 64,
        NewTarget::User { class, .. } => class,
    };
    let other_charset = charset != CharacterSet::Ascii;
    let flags = (width as u8).trailing_zeros() as u8
        | u8::from(order.is_some()) << 2
        | u8::from(kind != 0) << 3
        | u8::from(other_charset) << 4;
    let mut w = FieldWriter::new();
    w.u8(1).u8(flags);
    if kind != 0 {
        w.u8(kind);
    }
    if let Some(order) = order {
        w.bytes(&order.to_le_bytes());
    }
    if other_charset {
        w.u8(charset_number(charset));
    }
    w.uint(name.len() as u64, width).bytes(name);
    match target {
        NewTarget::Hard(address) => {
            w.u64(address.0);
        }
        NewTarget::Soft(path) => {
            check_name(path, "soft link's path")?;
            put_value(&mut w, path)?;
        }
        NewTarget::External { file, object } => {
            check_name(file, "external link's file")?;
            check_name(object, "external link's path")?;
            let mut value = vec![0];
            value.extend_from_slice(file);
            value.push(0);
            value.extend_from_slice(object);
            value.push(0);
            put_value(&mut w, &value)?;
        }
        NewTarget::User { data, .. } => put_value(&mut w, data)?,
    }
    Ok(w.finish())
}

fn put_value(w: &mut FieldWriter, value: &[u8]) -> Result<()> {
    let len = u16::try_from(value.len())
        .map_err(|_| Error::invalid(format!("a link's value of {} bytes; 65535 fit", value.len())))?;
    w.u16(len).bytes(value);
    Ok(())
}

fn check_name(name: &[u8], what: &str) -> Result<()> {
    if name.is_empty() || name.contains(&0) || name.len() > 65_534 {
        return Err(Error::invalid(format!(
            "the {what} name {:?} is empty, contains a NUL or is longer than 65534 bytes",
            String::from_utf8_lossy(name.get(..64).unwrap_or(name))
        )));
    }
    Ok(())
}

/// Where links or attributes are kept outside the header, if they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dense {
    /// The fractal heap.
    pub heap: Option<Address>,
    /// The B-tree by name.
    pub names: Option<Address>,
    /// The B-tree by creation order, where that is indexed.
    pub order: Option<Address>,
}

/// A link info message. `order`: does the group number its links, and is that order indexed?
pub fn link_info(dense: Dense, order: Option<bool>, next_order: u64) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.u8(0).u8(order_flags(order));
    if order.is_some() {
        w.u64(next_order);
    }
    put_dense(&mut w, dense, order);
    w.finish()
}

/// An attribute info message.
pub fn attribute_info(dense: Dense, order: Option<bool>, next_order: u16) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.u8(0).u8(order_flags(order));
    if order.is_some() {
        w.u16(next_order);
    }
    put_dense(&mut w, dense, order);
    w.finish()
}

fn order_flags(order: Option<bool>) -> u8 {
    u8::from(order.is_some()) | u8::from(order == Some(true)) << 1
}

fn put_dense(w: &mut FieldWriter, dense: Dense, order: Option<bool>) {
    put_address(w, dense.heap);
    put_address(w, dense.names);
    if order == Some(true) {
        put_address(w, dense.order);
    }
}

/// An external data files message from the address of the heap of names and, for each piece, the heap offset
/// of its file's name, its offset in that file and its size (all bits set: as many bytes as there are).
pub fn external_files(heap: Address, pieces: &[(u64, u64, u64)]) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.u8(1).zeros(3).u16(pieces.len() as u16).u16(pieces.len() as u16).u64(heap.0);
    for (name, offset, size) in pieces {
        w.u64(*name).u64(*offset).u64(*size);
    }
    w.finish()
}

/// A group info message with the default thresholds.
pub fn group_info() -> Vec<u8> {
    vec![0, 0]
}

/// A symbol table message.
pub fn symbol_table(btree: Address, heap: Address) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.u64(btree.0).u64(heap.0);
    w.finish()
}
