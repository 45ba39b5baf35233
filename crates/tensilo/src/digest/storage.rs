//! The keys that describe how a dataset is stored: layout, chunk, filters, external files, mappings, fill value.

use super::element::Element;
use super::paths::Pointers;
use super::text::{Line, json_string, list, text};
use crate::hdf5::Dataset;
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::format::message::data_layout::DataLayout;
use tensilo_hdf5::format::message::fill_value::FillValue;

/// Fill values of types this large are only said to be the user's.
const MAX_FILL: u64 = 1 << 16;

/// Appends the keys.
pub(super) fn describe(
    dataset: &Dataset,
    element: &Element,
    pointers: &Pointers<'_>,
    line: &mut Line,
) -> Result<()> {
    let header = dataset.header();
    let layout = dataset.layout();
    line.string(
        "layout",
        match layout {
            DataLayout::Compact(_) => "compact",
            DataLayout::Contiguous { .. } => "contiguous",
            DataLayout::Chunked(_) => "chunked",
            DataLayout::Virtual { .. } => "virtual",
        },
    );
    if let Some(chunk) = dataset.chunk_shape() {
        line.numbers("chunk", chunk.iter().copied().map(Some));
    }
    let filters: Vec<String> = dataset
        .filters()
        .iter()
        .map(|f| format!("[{},{},{}]", f.id, f.flags, list(f.values.iter().map(|v| Some(u64::from(*v))))))
        .collect();
    if !filters.is_empty() {
        line.json("filters", &format!("[{}]", filters.join(",")));
    }
    let external: Vec<String> = header
        .external_files()?
        .iter()
        .map(|f| {
            let size = f.size.map_or_else(|| "null".to_owned(), |s| s.to_string());
            format!("[{},{},{size}]", json_string(&text(&f.name)), f.offset)
        })
        .collect();
    if !external.is_empty() {
        line.json("external", &format!("[{}]", external.join(",")));
    }
    if let DataLayout::Virtual { heap, index } = layout {
        line.number("virtual", mappings(dataset, *heap, *index)?);
    }
    let fill = match &dataset.fill().value {
        FillValue::Undefined => "undefined".to_owned(),
        FillValue::Default => "default".to_owned(),
        FillValue::Value(v)
            if element.leaves.is_some()
                && !element.has_references
                && element.memory < MAX_FILL
                && v.len() == element.stored =>
        {
            let mut canonical = Vec::new();
            match element.feed(v, pointers, &mut canonical) {
                Ok(()) => canonical.iter().map(|b| format!("{b:02x}")).collect(),
                Err(_) => "user".to_owned(),
            }
        }
        FillValue::Value(_) => "user".to_owned(),
    };
    line.string("fill", &fill);
    Ok(())
}

/// The number of mappings of a virtual dataset: version and count head its heap object.
fn mappings(dataset: &Dataset, heap: Option<Address>, index: u32) -> Result<u64> {
    let Some(heap) = heap else { return Ok(0) };
    let space = dataset.file().space();
    let object = space.global_heap_object(heap, index)?;
    let mut r = FieldReader::new(&object, object.offset(), "virtual dataset mappings");
    let version = r.u8()?;
    if version > 1 {
        return Err(Error::unsupported(format!("virtual dataset mappings of version {version}")));
    }
    space.sizes().length(&mut r)
}
