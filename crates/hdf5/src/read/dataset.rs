//! Datasets: shape, type, storage, and reading.

use super::convert::Conversion;
use super::element::Element;
use super::external_raw::ExternalRaw;
use super::plan::ReadPlan;
use super::virtual_dataset::{self, Virtual};
use super::{Attribute, DamagedAttribute, File, attribute, execute, strings, vlen};
use crate::format::Address;
use crate::format::datatype::Datatype;
use crate::format::message::MessageKind;
use crate::format::message::data_layout::DataLayout;
use crate::format::message::dataspace::Dataspace;
use crate::format::message::fill_value::{FillMessage, FillValue};
use crate::index::{ChunkEntry, ChunkIndex, ChunkTable};
use crate::object::ObjectHeader;
use crate::space::FileSpace;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tensilo_core::array::{ChunkGrid, Selection};
use tensilo_core::io::ByteSource;
use tensilo_core::limits::Charge;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Progress, Quiet, Result};
use tensilo_filters::{FilterSpec, Pipeline};

/// A dataset. Cheap to clone; clones share the chunk index, which is read once.
///
/// Nothing of a dataset's data is read before one of the `read` functions is called.
#[derive(Debug, Clone)]
pub struct Dataset(pub(super) Arc<DatasetInner>);

#[derive(Debug)]
pub(super) struct DatasetInner {
    pub(super) file: File,
    header: Arc<ObjectHeader>,
    path: Arc<[u8]>,
    dataspace: Dataspace,
    pub(super) shape: Vec<u64>,
    max_shape: Vec<Option<u64>>,
    pub(super) datatype: Datatype,
    /// Bytes of an element as stored.
    pub(super) width: usize,
    pub(super) layout: DataLayout,
    fill: FillMessage,
    filters: Vec<FilterSpec>,
    pub(super) storage: Storage,
}

/// Where the data is, ready to be read.
#[derive(Debug)]
pub(super) enum Storage {
    /// Nowhere: only the fill value.
    Fill,
    /// In the object header.
    Header,
    /// From this byte of the file on.
    Contiguous(u64),
    /// In chunks.
    Chunked(Box<Chunks>),
    /// In other files.
    External(Box<External>),
    /// In other datasets.
    Virtual(Box<Virtual>),
}

/// Raw data in other files, which are opened when it is first read.
#[derive(Debug)]
pub(super) struct External {
    bytes: u64,
    opened: OnceLock<ExternalRaw>,
}

/// Chunks of a dataset.
#[derive(Debug)]
pub(super) struct Chunks {
    pub(super) index: ChunkIndex,
    pub(super) pipeline: Pipeline,
    pub(super) unfiltered_edges: bool,
    table: OnceLock<ChunkTable>,
    /// Chunks that were looked up one by one.
    lookups: AtomicU64,
    pub(super) entries: OnceLock<Arc<[ChunkEntry]>>,
}

/// A read of no more chunks than this looks them up one by one, ...
const FEW: usize = 4;
/// ... until so many were looked up that the whole index would have been cheaper.
const MANY: u64 = 32;

/// Contiguous data of no more bytes than this is read without a plan.
const SMALL: u64 = 64 << 10;

impl Chunks {
    /// Should the chunks of a read of this many be looked up one by one, and the index not be read whole?
    pub(super) fn looks_up(&self, parts: usize) -> bool {
        let few = parts <= FEW && self.table.get().is_none();
        few && self.lookups.fetch_add(parts as u64, Ordering::Relaxed) < MANY
    }

    /// The chunk table; read on first use.
    pub(super) fn table(&self, space: &FileSpace) -> Result<&ChunkTable> {
        match self.table.get() {
            Some(table) => Ok(table),
            None => {
                let table = self.index.table(space)?;
                Ok(self.table.get_or_init(|| table))
            }
        }
    }
}

impl DatasetInner {
    fn new(file: File, header: Arc<ObjectHeader>, path: Arc<[u8]>) -> Result<Self> {
        let missing = |what| Error::corrupt(format!("a dataset without a {what}"));
        let dataspace = header.dataspace()?.ok_or_else(|| missing("dataspace"))?;
        let datatype = header.datatype()?.ok_or_else(|| missing("datatype"))?;
        let layout = header.layout()?.ok_or_else(|| missing("data layout"))?;
        let fill = header.fill()?;
        let filters = header.filters()?;
        let width = usize::try_from(datatype.size).unwrap_or(0);
        if width == 0 {
            return Err(Error::corrupt("elements of no bytes"));
        }
        let mut new = Self {
            shape: dataspace.dims().to_vec(),
            max_shape: match &dataspace {
                Dataspace::Simple { max, .. } => max.clone(),
                _ => Vec::new(),
            },
            storage: Storage::Fill,
            file,
            header,
            path,
            dataspace,
            datatype,
            width,
            layout,
            fill,
            filters,
        };
        new.storage = new.find_storage()?;
        if let Storage::Virtual(parts) = &new.storage {
            let extents = parts.extents(&new.file, &new.shape, &new.max_shape)?;
            if extents != new.shape {
                // As far as the sources reach now, which the stored extents need not know.
                new.dataspace = Dataspace::Simple { dims: extents.clone(), max: new.max_shape.clone() };
                new.shape = extents;
                new.bytes()?;
            }
        }
        Ok(new)
    }

    /// Bytes of all elements.
    pub(super) fn bytes(&self) -> Result<u64> {
        let too_many =
            || Error::corrupt(format!("shape {:?} has more elements than fit in 64 bits", self.shape));
        self.dataspace
            .elements()
            .and_then(|n| n.checked_mul(self.width as u64))
            .filter(|n| *n <= i64::MAX as u64)
            .ok_or_else(too_many)
    }

    /// Where stored offsets point into.
    pub(super) fn source(&self) -> Result<&dyn ByteSource> {
        match &self.storage {
            Storage::External(external) => match external.opened.get() {
                Some(raw) => Ok(raw),
                None => {
                    let raw = ExternalRaw::open(&self.file, &self.header.external_files()?, external.bytes)?;
                    Ok(external.opened.get_or_init(|| raw))
                }
            },
            _ => Ok(self.file.0.space.source().as_ref()),
        }
    }

    /// The end of what [`source`](Self::source) holds.
    pub(super) fn source_end(&self) -> Result<u64> {
        match &self.storage {
            Storage::External(external) => Ok(external.bytes),
            _ => Ok(self.file.0.space.end()),
        }
    }

    fn find_storage(&self) -> Result<Storage> {
        let space = &self.file.0.space;
        let bytes = self.bytes()?;
        Ok(match &self.layout {
            _ if self.header.find(MessageKind::ExternalFiles).is_some() => {
                Storage::External(Box::new(External { bytes, opened: OnceLock::new() }))
            }
            DataLayout::Compact(data) if (data.len() as u64) < bytes => {
                return Err(Error::corrupt(format!(
                    "{} bytes of data in the object header, {bytes} are needed",
                    data.len()
                )));
            }
            DataLayout::Compact(_) => Storage::Header,
            DataLayout::Contiguous { address: None, .. } => Storage::Fill,
            DataLayout::Contiguous { size, .. } if *size > 0 && *size < bytes => {
                return Err(Error::corrupt(format!("{size} bytes of contiguous data, {bytes} are needed")));
            }
            DataLayout::Contiguous { address: Some(address), .. } => {
                Storage::Contiguous(space.absolute(*address)?)
            }
            DataLayout::Virtual { heap, index } => {
                Storage::Virtual(Box::new(Virtual::load(&self.file, *heap, *index)?))
            }
            DataLayout::Chunked(chunked) => {
                if chunked.element_size != self.width as u64 {
                    return Err(Error::corrupt(format!(
                        "chunks of elements of {} bytes in a dataset of elements of {}",
                        chunked.element_size, self.width
                    )));
                }
                let filtered = !self.filters.is_empty();
                let index = ChunkIndex::new(chunked, &self.dataspace, self.width as u64, filtered)?;
                Storage::Chunked(Box::new(Chunks {
                    index,
                    pipeline: Pipeline::new(&self.filters, &self.file.options().filters)?,
                    unfiltered_edges: chunked.unfiltered_edges,
                    table: OnceLock::new(),
                    lookups: AtomicU64::new(0),
                    entries: OnceLock::new(),
                }))
            }
        })
    }

    /// The address of its object header, which is its identity in the file.
    pub(super) fn address(&self) -> u64 {
        self.header.address.0
    }

    /// One element of the fill value, as stored.
    pub(super) fn fill_element(&self) -> Vec<u8> {
        match &self.fill.value {
            FillValue::Value(bytes) if bytes.len() == self.width => bytes.clone(),
            _ => vec![0; self.width],
        }
    }
}

impl Dataset {
    pub(super) fn new(file: File, header: Arc<ObjectHeader>, path: &[u8]) -> Result<Self> {
        DatasetInner::new(file, header, path.into()).map(|inner| Self(Arc::new(inner)))
    }

    /// The path it was opened by.
    pub fn path(&self) -> &[u8] {
        &self.0.path
    }

    /// The file it is in.
    pub fn file(&self) -> &File {
        &self.0.file
    }

    /// The address of its object header.
    pub fn address(&self) -> Address {
        self.0.header.address
    }

    /// Its object header.
    pub fn header(&self) -> &ObjectHeader {
        &self.0.header
    }

    /// Current extents, slowest first; empty for scalar and null dataspaces.
    pub fn shape(&self) -> &[u64] {
        &self.0.shape
    }

    /// Maximum extents, `None` where unlimited.
    pub fn max_shape(&self) -> &[Option<u64>] {
        &self.0.max_shape
    }

    /// Its dataspace.
    pub fn dataspace(&self) -> &Dataspace {
        &self.0.dataspace
    }

    /// The type of its elements.
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// Where its data is.
    pub fn layout(&self) -> &DataLayout {
        &self.0.layout
    }

    /// Its filters in writing order.
    pub fn filters(&self) -> &[FilterSpec] {
        &self.0.filters
    }

    /// Extents of a chunk, slowest first; `None` when it is not chunked.
    pub fn chunk_shape(&self) -> Option<&[u64]> {
        match &self.0.layout {
            DataLayout::Chunked(chunked) => Some(&chunked.dims),
            _ => None,
        }
    }

    /// The grid of its chunks; `None` when it is not chunked.
    pub fn chunk_grid(&self) -> Option<&ChunkGrid> {
        match &self.0.storage {
            Storage::Chunked(chunks) => Some(chunks.index.grid()),
            _ => None,
        }
    }

    /// What unwritten elements read as.
    pub fn fill(&self) -> &FillMessage {
        &self.0.fill
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        // Checked when the dataset was opened.
        self.0.dataspace.elements().unwrap_or(0)
    }

    /// All attributes; a damaged one is an error in its place.
    ///
    /// # Errors
    /// `Corrupt` when the list itself is damaged.
    pub fn attributes(&self) -> Result<Vec<Result<Attribute, DamagedAttribute>>> {
        attribute::all(&self.0.file, &self.0.header, &self.0.path)
    }

    /// One attribute by its name.
    ///
    /// # Errors
    /// `NotFound` when there is none; `Corrupt` when it is damaged.
    pub fn attribute(&self, name: impl AsRef<[u8]>) -> Result<Attribute> {
        attribute::one(&self.0.file, &self.0.header, &self.0.path, name.as_ref())
    }

    /// All elements, converted to `T`, in row-major order. Elements of array types count as many.
    ///
    /// # Errors
    /// `InvalidArgument` when the type does not convert or a value does not fit; `Corrupt`, `Unsupported`, `Limit`,
    /// `Missing` or `Io` from the way to the data.
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        self.read_selection(&Selection::All)
    }

    /// Selected elements, converted to `T`, in the selection's order.
    ///
    /// # Errors
    /// As [`read`](Self::read), and `InvalidArgument` when the selection does not fit.
    pub fn read_selection<T: Element>(&self, selection: &Selection) -> Result<Vec<T>> {
        self.located(|| {
            let conversion = Conversion::new(&self.0.datatype, T::KIND)?;
            let n = self.count(selection)?.checked_mul(conversion.items as u64);
            let (mut values, _charge) = self.zeroed::<T>(n)?;
            self.run(selection, Some(&conversion), bytemuck::cast_slice_mut(&mut values), true, &Quiet)?;
            Ok(values)
        })
    }

    /// Selected elements, converted to `T`, into the caller's buffer, which must have exactly the right length.
    ///
    /// # Errors
    /// As [`read_selection`](Self::read_selection).
    pub fn read_into<T: Element>(&self, selection: &Selection, values: &mut [T]) -> Result<()> {
        self.read_into_with(selection, values, &Quiet)
    }

    /// As [`read_into`](Self::read_into); the monitor hears of progress in bytes and may stop the read.
    ///
    /// # Errors
    /// As [`read_into`](Self::read_into), and the monitor's.
    pub fn read_into_with<T: Element>(
        &self,
        selection: &Selection,
        values: &mut [T],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.located(|| {
            let conversion = Conversion::new(&self.0.datatype, T::KIND)?;
            self.run(selection, Some(&conversion), bytemuck::cast_slice_mut(values), false, monitor)
        })
    }

    /// Selected elements as stored: in the file's byte order, references and variable-length elements as the file
    /// holds them.
    ///
    /// # Errors
    /// As [`read_selection`](Self::read_selection), but nothing is converted.
    pub fn read_bytes(&self, selection: &Selection) -> Result<Vec<u8>> {
        self.located(|| {
            let n = self.count(selection)?.checked_mul(self.0.width as u64);
            let (mut bytes, _charge) = self.zeroed::<u8>(n)?;
            self.run(selection, None, &mut bytes, true, &Quiet)?;
            Ok(bytes)
        })
    }

    /// As [`read_bytes`](Self::read_bytes), into the caller's buffer, which must have exactly the right length.
    ///
    /// # Errors
    /// As [`read_bytes`](Self::read_bytes).
    pub fn read_bytes_into(&self, selection: &Selection, bytes: &mut [u8]) -> Result<()> {
        self.read_bytes_into_with(selection, bytes, &Quiet)
    }

    /// As [`read_bytes_into`](Self::read_bytes_into); the monitor hears of progress and may stop the read.
    ///
    /// # Errors
    /// As [`read_bytes_into`](Self::read_bytes_into), and the monitor's.
    pub fn read_bytes_into_with(
        &self,
        selection: &Selection,
        bytes: &mut [u8],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.located(|| self.run(selection, None, bytes, false, monitor))
    }

    /// What reading a selection would do. Only the chunk index is read.
    ///
    /// # Errors
    /// As [`read_selection`](Self::read_selection), and `InvalidArgument` for a null dataspace, whose read takes
    /// no steps.
    pub fn plan(&self, selection: &Selection) -> Result<ReadPlan> {
        self.located(|| {
            if self.0.dataspace == Dataspace::Null {
                return Err(Error::invalid("a null dataspace has nothing to plan"));
            }
            ReadPlan::new(&self.0, selection)
        })
    }

    /// Strings of a string dataset, fixed or variable, without their padding; one that is no UTF-8 has its wrong
    /// bytes replaced.
    ///
    /// # Errors
    /// `InvalidArgument` when it holds no strings; else as [`read_bytes`](Self::read_bytes).
    pub fn read_strings(&self) -> Result<Vec<String>> {
        let strings = self.read_string_bytes(&Selection::All)?;
        Ok(strings.into_iter().map(strings::to_text).collect())
    }

    /// Selected strings as bytes, without their padding.
    ///
    /// # Errors
    /// As [`read_strings`](Self::read_strings).
    pub fn read_string_bytes(&self, selection: &Selection) -> Result<Vec<Vec<u8>>> {
        self.located(|| strings::check(&self.0.datatype))?;
        let bytes = self.read_bytes(selection)?;
        self.located(|| strings::decode(&self.0.file, &self.0.datatype, &bytes))
    }

    /// The bytes of one variable-length element, from its stored form.
    ///
    /// # Errors
    /// `InvalidArgument` when the datatype is not of variable length; `Corrupt` when its heap is damaged.
    pub fn resolve_vlen(&self, id: &[u8]) -> Result<Vec<u8>> {
        self.located(|| vlen::resolve(&self.0.file, id, &self.0.datatype))
    }

    /// Number of selected elements.
    fn count(&self, selection: &Selection) -> Result<u64> {
        match (&self.0.dataspace, selection) {
            (Dataspace::Null, Selection::All) => Ok(0),
            (Dataspace::Null, _) => Err(Error::invalid("a null dataspace has nothing to select")),
            _ => selection.elements(&self.0.shape),
        }
    }

    fn zeroed<T: Element>(&self, n: Option<u64>) -> Result<(Vec<T>, Charge)> {
        let bytes = n.and_then(|n| n.checked_mul(size_of::<T>() as u64));
        let bytes = bytes.ok_or_else(|| Error::limit("the result does not fit in 64 bits"))?;
        let charge = self.0.file.0.space.budget().bytes(bytes, "the result")?;
        let n = usize::try_from(bytes).map_err(|_| Error::limit("the result does not fit in memory"))?
            / size_of::<T>();
        Ok((tensilo_core::buffer::zeroed_vec(n)?, charge))
    }

    fn run(
        &self,
        selection: &Selection,
        conversion: Option<&Conversion>,
        destination: &mut [u8],
        zeroed: bool,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.run_at(selection, conversion, destination, zeroed, 0, monitor)
    }

    /// Reads stored elements on a number of threads other than the file's.
    pub(super) fn read_on(
        &self,
        selection: &Selection,
        bytes: &mut [u8],
        threads: Option<Threads>,
    ) -> Result<()> {
        let plain = !matches!(self.0.storage, Storage::Virtual(_)) && self.0.dataspace != Dataspace::Null;
        match threads.filter(|_| plain) {
            None => self.read_bytes_into(selection, bytes),
            Some(threads) => self.located(|| {
                let plan = ReadPlan::new(&self.0, selection)?;
                execute::run(&self.0, &plan, None, bytes, false, threads, &Quiet)
            }),
        }
    }

    /// Reads; `level` counts the virtual datasets around this one.
    pub(super) fn run_at(
        &self,
        selection: &Selection,
        conversion: Option<&Conversion>,
        destination: &mut [u8],
        zeroed: bool,
        level: u64,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        if self.0.dataspace == Dataspace::Null {
            self.count(selection)?;
            return match destination.is_empty() {
                true => Ok(()),
                false => Err(Error::invalid("a null dataspace has no elements to fill a buffer with")),
            };
        }
        if let Storage::Virtual(parts) = &self.0.storage {
            return virtual_dataset::run(&self.0, parts, selection, conversion, destination, level, monitor);
        }
        if *selection == Selection::All
            && conversion.is_none_or(Conversion::is_copy)
            && self.read_small(destination, monitor)?
        {
            return Ok(());
        }
        let plan = ReadPlan::new(&self.0, selection)?;
        let threads = self.0.file.options().threads;
        execute::run(&self.0, &plan, conversion, destination, zeroed, threads, monitor)
    }

    /// Reads little contiguous data in one piece, without a plan; false where there is more to do or to say.
    fn read_small(&self, destination: &mut [u8], monitor: &dyn Monitor) -> Result<bool> {
        let Storage::Contiguous(start) = &self.0.storage else { return Ok(false) };
        let bytes = destination.len() as u64;
        let end = start.checked_add(bytes).filter(|end| *end <= self.0.file.0.space.end());
        if bytes > SMALL || end.is_none() || self.0.bytes()? != bytes {
            return Ok(false);
        }
        let progress = |done| monitor.poll(&Progress { stage: execute::STAGE, done, total: bytes });
        progress(0)?;
        if self.0.source()?.read_at(*start, destination).is_err() {
            return Ok(false);
        }
        progress(bytes)?;
        Ok(true)
    }

    /// Adds object and file to an error.
    pub(super) fn located<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let result = work().map_err(|e| e.in_object(String::from_utf8_lossy(&self.0.path)));
        self.0.file.whole(result)
    }
}
