//! The builder of a dataset: what it is, then how its elements come.

use super::addresses::Of;
use super::chunks::ChunkWriter;
use super::client_values::Elements;
use super::contiguous::ContiguousWriter;
use super::element::Element;
use super::filters::Filters;
use super::index::{self, Chunks};
use super::split::{Grid, product};
use super::tree::{Dataset, Kind, Storage, TypeUse};
use super::value::{Data, Value, check_ends, item_size};
use super::writer::FileWriter;
use crate::format::datatype::Datatype;
use crate::format::encode::Bound;
use crate::format::message::dataspace::Dataspace;
use crate::format::message::fill_value::{AllocationTime, FillMessage, FillTime, FillValue};
use std::collections::BTreeMap;
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};
use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline};

/// Where the raw data of a finished dataset is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Absolute position in the file of contiguous raw data (user block included); `None` for other layouts and
    /// for empty data.
    pub offset: Option<u64>,
    /// Stored bytes of raw data.
    pub stored: u64,
}

/// A dataset about to be written; one of the last six methods takes its elements.
///
/// ```no_run
/// use tensilo_hdf5::write::{FileWriter, Filters, WriteOptions};
/// use tensilo_core::io::SystemDisk;
/// let mut w = FileWriter::create(SystemDisk::shared(), "scan.h5", WriteOptions::default())?;
/// let frames = vec![0_u16; 4 * 256 * 256];
/// w.dataset("/entry/data/data")
///     .shape(&[4, 256, 256])
///     .chunk(&[1, 256, 256])
///     .filters(Filters::bitshuffle_lz4())
///     .attribute("units", "counts")
///     .write(&frames)?;
/// w.finish()?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a dataset is made when its elements are given"]
pub struct DatasetBuilder<'w, 'f> {
    pub(crate) writer: &'w mut FileWriter<'f>,
    pub(crate) path: Vec<u8>,
    datatype: Option<Datatype>,
    committed: Option<Vec<u8>>,
    dataspace: Option<Dataspace>,
    max: Option<Vec<Option<u64>>>,
    chunk: Option<Vec<u64>>,
    filters: Filters,
    fill: FillValue,
    fill_time: FillTime,
    allocation: Option<AllocationTime>,
    compact: bool,
    unfiltered_edges: bool,
    attributes: Vec<(Vec<u8>, Value)>,
}

/// A dataset whose description was checked.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) path: Vec<u8>,
    pub(crate) datatype: TypeUse,
    pub(crate) dataspace: Dataspace,
    pub(crate) fill: FillMessage,
    pub(crate) filters: Vec<FilterSpec>,
    pub(crate) chunk: Option<Vec<u64>>,
    pub(crate) compact: bool,
    pub(crate) unfiltered_edges: bool,
    pub(crate) attributes: Vec<(Vec<u8>, Value)>,
    /// Elements of the dataspace.
    pub(crate) elements: u64,
}

impl Described {
    pub(crate) fn element_size(&self) -> u64 {
        u64::from(self.datatype.datatype.size)
    }

    /// Checks that the extents are the maximum: raw data in one piece cannot grow.
    pub(crate) fn check_fixed(&self) -> Result<()> {
        match &self.dataspace {
            Dataspace::Simple { dims, max } if dims.iter().zip(max).any(|(d, m)| *m != Some(*d)) => {
                Err(Error::invalid("only chunked datasets can grow").in_object(self.shown()))
            }
            _ => Ok(()),
        }
    }

    /// One element of padding.
    pub(crate) fn padding(&self) -> Vec<u8> {
        match &self.fill.value {
            FillValue::Value(v) => v.clone(),
            _ => vec![0; self.datatype.datatype.size as usize],
        }
    }

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

impl<'w, 'f> DatasetBuilder<'w, 'f> {
    pub(crate) fn new(writer: &'w mut FileWriter<'f>, path: &[u8]) -> Self {
        Self {
            writer,
            path: path.to_vec(),
            datatype: None,
            committed: None,
            dataspace: None,
            max: None,
            chunk: None,
            filters: Filters::new(),
            fill: FillValue::Default,
            fill_time: FillTime::IfSet,
            allocation: None,
            compact: false,
            unfiltered_edges: false,
            attributes: Vec::new(),
        }
    }

    /// The type of an element.
    pub fn datatype(mut self, datatype: Datatype) -> Self {
        self.datatype = Some(datatype);
        self
    }

    /// The type of an element, from Rust's.
    pub fn element<T: Element>(self) -> Self {
        self.datatype(T::datatype())
    }

    /// The type of an element: one that was committed under this path.
    pub fn committed_type(mut self, path: impl AsRef<[u8]>) -> Self {
        self.committed = Some(path.as_ref().to_vec());
        self
    }

    /// Current extents, slowest first; none for a scalar.
    pub fn shape(mut self, shape: &[u64]) -> Self {
        self.dataspace = Some(if shape.is_empty() { Dataspace::Scalar } else { super::value::simple(shape) });
        self
    }

    /// Any dataspace.
    pub fn dataspace(mut self, dataspace: Dataspace) -> Self {
        self.dataspace = Some(dataspace);
        self
    }

    /// Maximum extents, `None` for unlimited; needs chunks where they exceed the shape.
    pub fn max_shape(mut self, max: &[Option<u64>]) -> Self {
        self.max = Some(max.to_vec());
        self
    }

    /// Extents of a chunk, slowest first; the layout is contiguous without.
    pub fn chunk(mut self, chunk: &[u64]) -> Self {
        self.chunk = Some(chunk.to_vec());
        self
    }

    /// The filters that chunks go through.
    pub fn filters(mut self, filters: impl Into<Filters>) -> Self {
        self.filters = filters.into();
        self
    }

    /// What unwritten elements read as: the bytes of one element.
    pub fn fill(mut self, element: &[u8]) -> Self {
        self.fill = FillValue::Value(element.to_vec());
        self
    }

    /// What unwritten elements read as.
    pub fn fill_value<T: Element>(self, value: T) -> Self {
        self.fill(bytemuck::bytes_of(&value))
    }

    /// The whole of a fill value message.
    pub fn fill_message(mut self, message: FillMessage) -> Self {
        self.fill = message.value;
        self.fill_time = message.time;
        self.allocation = Some(message.allocation);
        self
    }

    /// When unwritten elements get the fill value; if it was set, without this.
    pub fn fill_time(mut self, time: FillTime) -> Self {
        self.fill_time = time;
        self
    }

    /// Keeps the elements in the object header (up to 64 KiB).
    pub fn compact(mut self) -> Self {
        self.compact = true;
        self
    }

    /// Stores chunks that reach over the end without filters (bound v110 and newer).
    pub fn unfiltered_edges(mut self) -> Self {
        self.unfiltered_edges = true;
        self
    }

    /// Adds an attribute.
    pub fn attribute(mut self, name: impl AsRef<[u8]>, value: impl Into<Value>) -> Self {
        self.attributes.push((name.as_ref().to_vec(), value.into()));
        self
    }

    pub(crate) fn describe(mut self) -> Result<(&'w mut FileWriter<'f>, Described)> {
        let path = std::mem::take(&mut self.path);
        match self.described(&path) {
            Ok((writer, described)) => Ok((writer, Described { path, ..described })),
            Err(e) => Err(e.in_object(String::from_utf8_lossy(&path))),
        }
    }

    /// All but the path.
    fn described(self, path: &[u8]) -> Result<(&'w mut FileWriter<'f>, Described)> {
        self.writer.tree.check_free(path)?;
        let datatype = match (&self.committed, self.datatype) {
            (Some(path), None) => self.writer.committed(path)?,
            (None, Some(datatype)) => TypeUse { datatype, committed: None },
            (Some(_), Some(_)) => return Err(Error::invalid("two datatypes were given")),
            (None, None) => return Err(Error::invalid("no datatype was given")),
        };
        if datatype.datatype.size == 0 {
            return Err(Error::invalid("elements of 0 bytes"));
        }
        let mut dataspace = self.dataspace.ok_or_else(|| Error::invalid("no shape was given"))?;
        if let (Dataspace::Simple { max, .. }, Some(wanted)) = (&mut dataspace, &self.max) {
            *max = wanted.clone();
        }
        let elements = match &dataspace {
            Dataspace::Null => 0,
            Dataspace::Scalar => 1,
            Dataspace::Simple { dims, .. } => product(dims)?,
        };
        let element_size = u64::from(datatype.datatype.size);
        if elements.checked_mul(element_size).is_none_or(|n| n > i64::MAX as u64) {
            return Err(Error::invalid(format!("{elements} elements of {element_size} bytes")));
        }
        if let FillValue::Value(v) = &self.fill
            && v.len() as u64 != element_size
        {
            return Err(Error::invalid(format!(
                "a fill value of {} bytes for elements of {element_size}",
                v.len()
            )));
        }
        let chunk = self.chunk.as_deref().unwrap_or_default();
        let elements_of = Elements { datatype: &datatype.datatype, chunk, fill: &self.fill };
        let filters = self.filters.specs_of(elements_of)?;
        let bound = self.writer.options.bound;
        datatype.datatype.encode(&mut FieldWriter::new(), bound)?;
        match &self.chunk {
            Some(chunk) => check_chunks(chunk, &dataspace, element_size, bound)?,
            None if filters.is_empty() => {}
            None => return Err(Error::invalid("only chunked datasets have filters")),
        }
        if self.compact && self.chunk.is_some() {
            return Err(Error::invalid("a compact dataset has no chunks"));
        }
        let allocation = self.allocation.unwrap_or(match (self.compact, &self.chunk) {
            (true, _) => AllocationTime::Early,
            (false, Some(_)) => AllocationTime::Incremental,
            (false, None) => AllocationTime::Late,
        });
        // Unwritten elements of variable length are never left to chance; libhdf5 does the same.
        let time = match self.fill_time {
            FillTime::IfSet if datatype.datatype.has_variable_length() => FillTime::OnAllocation,
            time => time,
        };
        let described = Described {
            path: Vec::new(),
            datatype,
            dataspace,
            fill: FillMessage { allocation, time, value: self.fill },
            filters,
            chunk: self.chunk,
            compact: self.compact,
            unfiltered_edges: self.unfiltered_edges,
            attributes: self.attributes,
            elements,
        };
        Ok((self.writer, described))
    }

    /// Writes all elements, row by row. The datatype is that of `T` unless another of the same size was given.
    ///
    /// # Errors
    /// `InvalidArgument` when the description or the number of elements is wrong, `AlreadyExists`,
    /// `Unsupported` for what the bound cannot express, and errors of the disk; so for all methods below.
    pub fn write<T: Element>(mut self, values: &[T]) -> Result<Written> {
        if self.committed.is_none() {
            let datatype = self.datatype.get_or_insert_with(T::datatype);
            if datatype.size as usize != size_of::<T>() {
                let message = format!("values of {} bytes for elements of {}", size_of::<T>(), datatype.size);
                return Err(Error::invalid(message).in_object(String::from_utf8_lossy(&self.path)));
            }
        }
        if self.dataspace.is_none() {
            self = self.shape(&[values.len() as u64]);
        }
        self.write_bytes(bytemuck::cast_slice(values))
    }

    /// Writes all elements, row by row, from their bytes. Chunks are encoded in parallel, each once.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_bytes(self, data: &[u8]) -> Result<Written> {
        let (writer, d) = self.describe()?;
        let expected = d.elements * d.element_size();
        if data.len() as u64 != expected {
            return Err(Error::invalid(format!("{} bytes for elements of {expected} bytes", data.len()))
                .in_object(d.shown()));
        }
        if d.compact {
            d.check_fixed()?;
            return writer.add_dataset(d, Storage::Compact(data.to_vec()), data.len() as u64);
        }
        if d.chunk.is_some() {
            let mut chunks = ChunkWriter::new(writer, d)?;
            chunks.write_array(data)?;
            return chunks.finish();
        }
        let mut all = ContiguousWriter::new(writer, d)?;
        all.write(data)?;
        all.finish()
    }

    /// Writes strings of variable length, row by row; the datatype is UTF-8 unless another was given.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_texts<S: AsRef<str>>(mut self, texts: &[S]) -> Result<Written> {
        if self.committed.is_none() {
            self.datatype.get_or_insert_with(Datatype::text);
        }
        if self.dataspace.is_none() {
            self = self.shape(&[texts.len() as u64]);
        }
        self.write_heap(texts.iter().map(|t| t.as_ref().as_bytes()))
    }

    /// Writes elements of a variable-length type, row by row: for each, the bytes of its items.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_heap<'a>(self, elements: impl IntoIterator<Item = &'a [u8]>) -> Result<Written> {
        let datatype = match (&self.committed, &self.datatype) {
            (Some(path), _) => self.writer.committed(path)?.datatype,
            (None, Some(datatype)) => datatype.clone(),
            (None, None) => return Err(Error::invalid("no datatype was given")),
        };
        let item = item_size(&datatype)?;
        let mut stored = Vec::new();
        for e in elements {
            if !e.len().is_multiple_of(item) {
                return Err(Error::invalid(format!(
                    "{} bytes are no whole number of items of {item} bytes",
                    e.len()
                )));
            }
            check_ends(&datatype, e)?;
            stored.extend_from_slice(&self.writer.heap_element(e, item)?);
        }
        self.write_bytes(&stored)
    }

    /// Writes an attribute-like value as a dataset.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_value(mut self, value: Value) -> Result<Written> {
        self.datatype = Some(value.datatype);
        self.dataspace = Some(value.dataspace);
        match value.data {
            Data::Stored(bytes) => self.write_bytes(&bytes),
            Data::Heap(elements) => self.write_heap(elements.iter().map(Vec::as_slice)),
        }
    }

    /// Makes the dataset without writing any element: all read as the fill value.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn create(self) -> Result<()> {
        let (writer, d) = self.describe()?;
        if d.chunk.is_some() {
            return ChunkWriter::new(writer, d)?.finish().map(|_| ());
        }
        d.check_fixed()?;
        if d.compact {
            let mut data = Vec::new();
            super::split::fill_with(&mut data, &d.padding(), (d.elements * d.element_size()) as usize);
            return writer.add_dataset(d, Storage::Compact(data), 0).map(|_| ());
        }
        let size = d.elements * d.element_size();
        writer.add_dataset(d, Storage::Contiguous { address: None, size }, 0).map(|_| ())
    }

    /// Takes the elements of a contiguous dataset piece by piece, in order.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn contiguous_writer(self) -> Result<ContiguousWriter<'w, 'f>> {
        let (writer, d) = self.describe()?;
        if d.chunk.is_some() || d.compact {
            return Err(Error::invalid("the dataset is not contiguous").in_object(d.shown()));
        }
        ContiguousWriter::new(writer, d)
    }

    /// As [`contiguous_writer`](Self::contiguous_writer) for a dataset of shape `[0]`, which becomes as long as what
    /// is written.
    ///
    /// # Errors
    /// As [`write`](Self::write), and `InvalidArgument` for another shape.
    pub fn growing_writer(self) -> Result<ContiguousWriter<'w, 'f>> {
        let (writer, d) = self.describe()?;
        if d.chunk.is_some() || d.compact {
            return Err(Error::invalid("the dataset is not contiguous").in_object(d.shown()));
        }
        ContiguousWriter::growing(writer, d)
    }

    /// Takes the elements of a chunked dataset chunk by chunk, in any order.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn chunk_writer(self) -> Result<ChunkWriter<'w, 'f>> {
        let (writer, d) = self.describe()?;
        if d.chunk.is_none() {
            return Err(Error::invalid("the dataset has no chunks").in_object(d.shown()));
        }
        ChunkWriter::new(writer, d)
    }
}

fn check_chunks(chunk: &[u64], space: &Dataspace, element_size: u64, bound: Bound) -> Result<()> {
    let Dataspace::Simple { dims, max } = space else {
        return Err(Error::invalid("scalar and null dataspaces have no chunks"));
    };
    if chunk.len() != dims.len() || chunk.contains(&0) || dims.len() != max.len() {
        return Err(Error::invalid(format!("chunks {chunk:?} for shape {dims:?} and maximum {max:?}")));
    }
    for ((c, d), m) in chunk.iter().zip(dims).zip(max) {
        // libhdf5 refuses these when a dataset is made.
        if m.is_some_and(|m| *c > m && *d > 0) {
            return Err(Error::invalid(format!(
                "chunks {chunk:?} are larger than the maximum extents {max:?}"
            )));
        }
    }
    let bytes = product(chunk)?.checked_mul(element_size).filter(|n| *n <= isize::MAX as u64);
    match bytes {
        Some(n) if n <= u64::from(u32::MAX) || bound >= Bound::V200 => Ok(()),
        _ => Err(Error::unsupported(format!(
            "chunks {chunk:?} of elements of {element_size} bytes reach 4 GiB, which the bound {bound} cannot hold"
        ))),
    }
}

impl FileWriter<'_> {
    /// Enters a dataset, whose raw data is written, into the tree.
    pub(crate) fn add_dataset(&mut self, mut d: Described, storage: Storage, stored: u64) -> Result<Written> {
        let path = std::mem::take(&mut d.path);
        self.entered(&path, d, storage, stored).map_err(|e| e.in_object(String::from_utf8_lossy(&path)))
    }

    fn entered(&mut self, path: &[u8], d: Described, storage: Storage, stored: u64) -> Result<Written> {
        let offset = match &storage {
            Storage::Contiguous { address: Some(a), .. } => Some(self.out.absolute(*a)),
            _ => None,
        };
        check_layout_fits(&storage, &d)?;
        let (attributes, committed) = (d.attributes, d.datatype.committed);
        let dataset = Dataset {
            datatype: d.datatype,
            dataspace: d.dataspace,
            fill: d.fill,
            filters: d.filters,
            storage,
        };
        let id = self.tree.create(path, Kind::Dataset(Box::new(dataset)))?;
        self.tree.uses(committed);
        for (name, value) in attributes {
            self.add_attribute(id, &name, value)?;
        }
        Ok(Written { offset, stored })
    }
}

fn check_layout_fits(storage: &Storage, d: &Described) -> Result<()> {
    if let Storage::Compact(data) = storage
        && data.len() > 65_000
    {
        return Err(Error::invalid(format!("{} bytes in a compact layout; 65000 are possible", data.len())));
    }
    if matches!(storage, Storage::Contiguous { .. }) && d.unfiltered_edges {
        return Err(Error::invalid("only chunked datasets have edge chunks"));
    }
    Ok(())
}

/// What a chunked dataset is made of before its first chunk.
pub(crate) struct Start {
    pub(crate) grid: Grid,
    pub(crate) chunks: Chunks,
    pub(crate) pipeline: Pipeline,
    pub(crate) info: ChunkInfo,
}

/// Prepares the grid and pipeline of a chunked dataset.
pub(crate) fn start(writer: &mut FileWriter<'_>, d: &Described) -> Result<Start> {
    let chunk = d.chunk.clone().unwrap_or_default();
    let element_size = d.datatype.datatype.size;
    let grid = Grid::new(d.dataspace.dims(), &chunk, element_size as usize);
    let count = grid.chunks()?;
    if d.unfiltered_edges && writer.options.bound < Bound::V110 {
        return Err(Error::unsupported("unfiltered edge chunks need the bound v110 or a newer one"));
    }
    let mut chunks = Chunks {
        dims: chunk.clone(),
        element_size: u64::from(element_size),
        unfiltered_edges: d.unfiltered_edges,
        filtered: !d.filters.is_empty(),
        run: None,
        grid: grid.counts.clone(),
        records: BTreeMap::new(),
    };
    let early = d.fill.allocation == AllocationTime::Early;
    if count > 0 && index::can_be_implicit(&chunks, &d.dataspace, early, writer.options.bound) {
        let bytes = product(&chunk)?.checked_mul(u64::from(element_size)).and_then(|n| n.checked_mul(count));
        let bytes = bytes.ok_or_else(|| Error::invalid("the chunks do not fit in a file"))?;
        chunks.run = Some(writer.out.allocate(bytes, Of::Raw)?);
    }
    let pipeline = Pipeline::new(&d.filters, &writer.options.registry)?;
    let info = ChunkInfo { element_size: element_size as usize, chunk_dims: chunk };
    Ok(Start { grid, chunks, pipeline, info })
}
