//! The messages of HDF5 object headers, one target per file of `hdf5/format/message`.

use crate::structures::widths;
use tensilo_core::wire::FieldReader;
use tensilo_hdf5::format::Sizes;
use tensilo_hdf5::format::message::attribute::AttributeParts;
use tensilo_hdf5::format::message::data_layout::DataLayout;
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::format::message::external_files::ExternalFiles;
use tensilo_hdf5::format::message::fill_value::FillMessage;
use tensilo_hdf5::format::message::group::{DenseInfo, GroupInfo, SymbolTable};
use tensilo_hdf5::format::message::link::Link;
use tensilo_hdf5::format::message::shared::{SharedReference, SharedTableMessage};
use tensilo_hdf5::format::message::{file, filter_pipeline};

/// Widths, a number that says which of a file's messages it is, and the body.
fn numbered(data: &[u8]) -> Option<(Sizes, u8, &[u8])> {
    let (sizes, rest) = widths(data)?;
    let (number, body) = rest.split_first()?;
    Some((sizes, *number, body))
}

/// A dataspace.
pub fn message_dataspace(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    if let Ok(space) = Dataspace::parse(b, 0, sizes) {
        assert!(space.dims().len() <= 32);
        let _ = space.elements();
    }
}

/// A data layout.
pub fn message_data_layout(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let _ = DataLayout::parse(b, 0, sizes);
}

/// A filter pipeline.
pub fn message_filter_pipeline(data: &[u8]) {
    assert!(filter_pipeline::parse(data, 0).unwrap_or_default().len() <= 32);
}

/// Fill values, old and new.
pub fn message_fill_value(data: &[u8]) {
    let _ = FillMessage::parse(data, 0);
    let _ = FillMessage::parse_old(data, 0);
}

/// A link.
pub fn message_link(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    if let Ok(link) = Link::parse(b, 0, sizes) {
        assert!(link.name.len() <= b.len());
    }
}

/// An attribute's parts.
pub fn message_attribute(data: &[u8]) {
    let _ = AttributeParts::parse(data, 0);
}

/// The list of external raw files.
pub fn message_external_files(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    if let Ok(found) = ExternalFiles::parse(b, 0, sizes) {
        assert!(found.slots.len() <= b.len());
    }
}

/// Messages of groups: dense links and attributes, group info, symbol table.
pub fn message_group(data: &[u8]) {
    let Some((sizes, number, b)) = numbered(data) else { return };
    match number % 4 {
        0 => drop(DenseInfo::parse_links(b, 0, sizes)),
        1 => drop(DenseInfo::parse_attributes(b, 0, sizes)),
        2 => drop(GroupInfo::parse(b, 0)),
        _ => drop(SymbolTable::parse(b, 0, sizes)),
    }
}

/// References to shared messages, and the shared message table message.
pub fn message_shared(data: &[u8]) {
    let Some((sizes, number, b)) = numbered(data) else { return };
    match number % 2 {
        0 => drop(SharedReference::parse(&mut FieldReader::new(b, 0, "shared message"), sizes)),
        _ => drop(SharedTableMessage::parse(b, 0, sizes)),
    }
}

/// Messages about the file, and the small ones.
pub fn message_file(data: &[u8]) {
    let Some((sizes, number, b)) = numbered(data) else { return };
    match number % 10 {
        0 => drop(file::FileSpaceInfo::parse(b, 0, sizes)),
        1 => drop(file::DriverInfo::parse(b, 0)),
        2 => drop(file::DriverInfo::parse_block(b, 0)),
        3 => drop(file::CacheImageMessage::parse(b, 0, sizes)),
        4 => drop(file::BtreeK::parse(b, 0)),
        5 => drop(file::modification_time(b, 0)),
        6 => drop(file::modification_time_old(b, 0)),
        7 => drop(file::comment(b, 0)),
        8 => drop(file::reference_count(b, 0)),
        _ => drop(file::continuation(b, 0, sizes)),
    }
}
