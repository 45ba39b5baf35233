//! What is in a file, as plain data: the views that the program's `--json`, a notebook and a viewer share.
//!
//! Each view serialises to one JSON object whose keys stay as they are; a change of meaning gets a new schema
//! number where the view is shown.

use crate::digest::type_name;
use crate::hdf5::{Attribute, Dataset, File, Group, LinkInfo, Object};
use crate::value::{Heap, Value, decode};
use serde::Serialize;
use std::sync::Arc;
use tensilo_core::io::ByteSource;
use tensilo_core::{Budget, Error, Result};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::format::message::data_layout::DataLayout;
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::format::message::fill_value::FillValue;
use tensilo_hdf5::object::LinkTarget;
use tensilo_hdf5::space::{CacheImageState, FileSpace, SpaceOptions};

/// Attributes of more elements are shown cut.
const SHOWN: usize = 1000;

/// A file as a whole.
#[derive(Debug, Clone, Serialize)]
pub struct FileView {
    /// Its path.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes in front of the HDF5 part.
    pub user_block: u64,
    /// Version of the superblock.
    pub superblock: u8,
    /// The driver that wrote it, where it says so: `family`, `multi`, or the driver's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// How its space is managed, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_space: Option<FileSpaceView>,
    /// Has it a metadata cache image?
    pub cache_image: CacheImageView,
}

/// How the space of a file is managed.
#[derive(Debug, Clone, Serialize)]
pub struct FileSpaceView {
    /// `managers`, `pages`, `aggregation` or `none`.
    pub strategy: &'static str,
    /// Is free space remembered when the file is closed?
    pub persist: bool,
    /// Bytes of a page.
    pub page_size: u64,
}

/// A metadata cache image: metadata that was written as one block when the file was closed.
#[derive(Debug, Clone, Serialize)]
pub struct CacheImageView {
    /// `none`, `loadable` or `refused`.
    pub state: &'static str,
    /// Its length in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Where it begins in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Structures in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One link of a group, and what it leads to.
#[derive(Debug, Clone, Serialize)]
pub struct LinkView {
    /// Path of the link.
    pub path: String,
    /// `group`, `dataset`, `datatype`, `softlink`, `extlink`, `udlink` or `unreadable`.
    pub kind: &'static str,
    /// Datatype of a dataset or committed datatype.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Shape of a dataset; empty for a scalar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Where a soft or external link points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One object with its attributes.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ObjectView {
    /// A group.
    Group {
        /// Its path.
        path: String,
        /// Number of links.
        links: u64,
        /// Its attributes.
        attributes: Vec<AttributeView>,
    },
    /// A dataset.
    Dataset(Box<DatasetView>),
    /// A committed datatype.
    Datatype {
        /// Its path.
        path: String,
        /// The datatype.
        dtype: String,
        /// Its attributes.
        attributes: Vec<AttributeView>,
    },
}

/// A dataset.
#[derive(Debug, Clone, Serialize)]
pub struct DatasetView {
    /// Its path.
    pub path: String,
    /// The type of its elements.
    pub dtype: String,
    /// `null`, `scalar` or `simple`.
    pub space: &'static str,
    /// Current extents, slowest first.
    pub shape: Vec<u64>,
    /// Greatest extents, `null` where unlimited.
    pub max_shape: Vec<Option<u64>>,
    /// `compact`, `contiguous`, `chunked` or `virtual`.
    pub layout: &'static str,
    /// Extents of a chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Vec<u64>>,
    /// Filters in writing order.
    pub filters: Vec<FilterView>,
    /// What unwritten elements read as: `undefined`, `default`, or the value.
    pub fill: Value,
    /// Bytes of all elements as they read.
    pub bytes: u64,
    /// Bytes that they take in the file, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// Its attributes.
    pub attributes: Vec<AttributeView>,
}

/// A filter of a dataset.
#[derive(Debug, Clone, Serialize)]
pub struct FilterView {
    /// Registered number.
    pub id: u16,
    /// Name, as the file or else the registry has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Client values.
    pub values: Vec<u32>,
}

/// An attribute.
#[derive(Debug, Clone, Serialize)]
pub struct AttributeView {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Its extents; empty for a scalar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Its value: one, or a flat list of elements in C order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Were elements left out of the value?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The global heap of an open file, for [`decode`].
#[derive(Debug, Clone, Copy)]
pub struct FileHeap<'a>(pub &'a File);

impl Heap for FileHeap<'_> {
    fn address_size(&self) -> usize {
        usize::from(self.0.space().sizes().offset)
    }

    fn object(&self, address: u64, index: u32) -> Result<Vec<u8>> {
        Ok(self.0.space().global_heap_object(Address(address), index)?.to_vec())
    }
}

/// Bytes as text, what is no UTF-8 replaced.
fn lossy(b: &[u8]) -> String {
    String::from_utf8_lossy(b).into_owned()
}

/// Describes a file.
pub fn file(file: &File) -> FileView {
    let space = file.space();
    FileView {
        file: file.path().map_or_else(String::new, |p| p.display().to_string()),
        bytes: space.source().len(),
        user_block: space.user_block(),
        superblock: space.superblock().version,
        driver: space.extension().driver.as_ref().map(|d| match &d.name {
            b"NCSAfami" => "family".to_owned(),
            b"NCSAmult" => "multi".to_owned(),
            other => lossy(other),
        }),
        file_space: space.extension().file_space.as_ref().map(|f| FileSpaceView {
            strategy: match (f.version, f.strategy) {
                (1, 0) | (0, 1 | 2) => "managers",
                (1, 1) => "pages",
                (1, 2) | (0, 3) => "aggregation",
                _ => "none",
            },
            persist: f.persist,
            page_size: f.page_size,
        }),
        cache_image: cache_image(file.cache_image()),
    }
}

fn cache_image(state: CacheImageState<'_>) -> CacheImageView {
    let mut view = CacheImageView { state: "none", bytes: None, offset: None, entries: None, reason: None };
    match state {
        CacheImageState::None => {}
        CacheImageState::Loadable(image) => {
            view.state = "loadable";
            view.bytes = Some(image.len());
            view.offset = Some(image.offset());
            view.entries = Some(image.entries() as u64);
        }
        CacheImageState::Refused(e) => {
            view.state = "refused";
            view.reason = Some(e.message().to_owned());
        }
    }
    view
}

/// Describes a file that does not open because of its metadata cache image; `None` where that is not why.
pub fn refused_image(source: Arc<dyn ByteSource>) -> Option<CacheImageView> {
    let how = SpaceOptions { ignore_flags: true, salvage: true, ..SpaceOptions::default() };
    let space = FileSpace::open_with(source, Budget::default(), &how).ok()?;
    Some(cache_image(space.cache_image_state())).filter(|v| v.state == "refused")
}

/// Describes a link of a group, without its attributes. What cannot be opened is described as that.
pub fn link(group: &Group, link: &LinkInfo) -> LinkView {
    let mut path = lossy(group.path());
    if !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(&link.text());
    let mut view = LinkView { path, kind: "unreadable", dtype: None, shape: None, target: None, error: None };
    match link.target() {
        LinkTarget::Soft(to) => {
            view.kind = "softlink";
            view.target = Some(lossy(to));
        }
        LinkTarget::External { file, object } => {
            view.kind = "extlink";
            view.target = Some(format!("{}:{}", lossy(file), lossy(object)));
        }
        LinkTarget::UserDefined { class, .. } => {
            view.kind = "udlink";
            view.target = Some(format!("class {class}"));
        }
        LinkTarget::Hard(_) => match group.open_link(link) {
            Ok(Object::Group(_)) => view.kind = "group",
            Ok(Object::Dataset(d)) => {
                view.kind = "dataset";
                view.dtype = Some(type_name(d.datatype()));
                view.shape = Some(d.shape().to_vec());
            }
            Ok(Object::Datatype(t)) => {
                view.kind = "datatype";
                view.dtype = Some(type_name(t.datatype()));
            }
            Ok(_) => {}
            Err(e) => view.error = Some(e.to_string()),
        },
    }
    view
}

/// Describes an object with its attributes.
///
/// # Errors
/// `Corrupt` when links or attributes cannot be listed at all.
pub fn object(object: &Object) -> Result<ObjectView> {
    match object {
        Object::Group(g) => Ok(ObjectView::Group {
            path: lossy(g.path()),
            links: g.links()?.len() as u64,
            attributes: attributes(g.attributes()?),
        }),
        Object::Datatype(t) => Ok(ObjectView::Datatype {
            path: lossy(t.path()),
            dtype: type_name(t.datatype()),
            attributes: attributes(t.attributes()?),
        }),
        Object::Dataset(d) => Ok(ObjectView::Dataset(Box::new(dataset(d)?))),
        other => Err(Error::unsupported(format!("an object of an unknown kind: {other:?}"))),
    }
}

/// Describes a dataset. Of chunked ones the chunk index is read, to add up the stored bytes.
///
/// # Errors
/// `Corrupt` when the attributes cannot be listed at all.
pub fn dataset(d: &Dataset) -> Result<DatasetView> {
    let bytes = d.elements().saturating_mul(u64::from(d.datatype().size));
    let (layout, stored_bytes) = match d.layout() {
        DataLayout::Compact(data) => ("compact", Some(data.len() as u64)),
        DataLayout::Contiguous { .. } => ("contiguous", Some(d.contiguous_offset().map_or(0, |_| bytes))),
        DataLayout::Chunked(_) => {
            let chunks = d.chunks().ok();
            ("chunked", chunks.map(|c| c.iter().fold(0_u64, |n, e| n.saturating_add(e.size))))
        }
        DataLayout::Virtual { .. } => ("virtual", None),
    };
    Ok(DatasetView {
        path: lossy(d.path()),
        dtype: type_name(d.datatype()),
        space: match d.dataspace() {
            Dataspace::Null => "null",
            Dataspace::Scalar => "scalar",
            Dataspace::Simple { .. } => "simple",
        },
        shape: d.shape().to_vec(),
        max_shape: d.max_shape().to_vec(),
        layout,
        chunk: d.chunk_shape().map(<[u64]>::to_vec),
        filters: d
            .filters()
            .iter()
            .map(|f| FilterView { id: f.id, name: filter_name(f), values: f.values.clone() })
            .collect(),
        fill: match &d.fill().value {
            FillValue::Undefined => Value::Name("undefined".into()),
            FillValue::Default => Value::Name("default".into()),
            FillValue::Value(v) => {
                decode(d.datatype(), v, &FileHeap(d.file())).unwrap_or_else(|_| Value::Bytes(v.clone()))
            }
        },
        bytes,
        stored_bytes,
        attributes: attributes(d.attributes()?),
    })
}

fn filter_name(f: &tensilo_filters::FilterSpec) -> Option<String> {
    f.name.clone().or_else(|| tensilo_filters::provider_of(f.id).map(|(name, _)| name.to_owned()))
}

fn attributes(list: Vec<Result<Attribute, crate::hdf5::DamagedAttribute>>) -> Vec<AttributeView> {
    list.into_iter()
        .map(|a| match a {
            Ok(a) => attribute(&a),
            Err(damaged) => AttributeView {
                name: damaged.name.as_deref().map_or_else(|| "?".to_owned(), lossy),
                dtype: None,
                shape: None,
                value: None,
                cut: false,
                error: Some(damaged.error.message().to_owned()),
            },
        })
        .collect()
}

/// Describes an attribute, with its value of at most a thousand elements.
pub fn attribute(a: &Attribute) -> AttributeView {
    let size = (a.datatype().size as usize).max(1);
    let count = a.read_bytes().len() / size;
    let heap = FileHeap(a.file());
    let values: Result<Vec<Value>> =
        a.read_bytes().chunks_exact(size).take(SHOWN).map(|e| decode(a.datatype(), e, &heap)).collect();
    let (value, error) = match values {
        Ok(mut v) if matches!(a.dataspace(), Dataspace::Scalar) && v.len() == 1 => (v.pop(), None),
        Ok(v) => (Some(Value::List(v)), None),
        Err(e) => (None, Some(e.message().to_owned())),
    };
    AttributeView {
        name: a.text().into_owned(),
        dtype: Some(type_name(a.datatype())),
        shape: Some(a.shape().to_vec()),
        value,
        cut: count > SHOWN,
        error,
    }
}
