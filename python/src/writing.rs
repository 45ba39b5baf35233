//! HDF5 files written from NumPy's memory, which is lent and never copied.

use crate::errors::exception;
use crate::signals::EVERY;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::core::{Monitor, Progress};
use tensilo::hdf5::write::{
    DatasetBuilder, ExternalData, FileSpaceOptions, FileWriter, Filters, SharedIndexOptions, SharedKind,
    SharedMonitor, SpaceStrategy, Tracking, Value, WriteOptions,
};
use tensilo::hdf5::{Class, Dataspace, Datatype, FillTime, Member};
use tensilo::numpy::NumpyType;
use tensilo::{Error, Result};

/// Bytes of an element of variable length.
const HEAP: u32 = 16;

/// A file being written.
#[pyclass(module = "tensilo._native")]
pub struct Hdf5Writer {
    writer: Option<FileWriter<'static>>,
    overwrite: bool,
    asking: Arc<Asking>,
}

/// Asks now and then whether a signal came, on the thread that called the writer.
#[derive(Debug)]
struct Asking {
    asked: Mutex<Instant>,
    raised: Mutex<Option<PyErr>>,
}

impl Monitor for Asking {
    fn poll(&self, _: &Progress) -> Result<()> {
        let (Ok(mut asked), Ok(mut raised)) = (self.asked.lock(), self.raised.lock()) else { return Ok(()) };
        if asked.elapsed() < EVERY {
            return Ok(());
        }
        *asked = Instant::now();
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => Ok(()),
            Err(e) => {
                *raised = Some(e);
                Err(Error::cancelled())
            }
        }
    }
}

/// A dtype from Python: a NumPy type string; the string of an enumeration's base and its members, each with the bytes of its
/// value; or the fields `(name, dtype, shape, offset)` and the size.
struct Dtype(Datatype);

impl<'py> FromPyObject<'_, 'py> for Dtype {
    type Error = PyErr;

    fn extract(of: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = of.extract::<String>() {
            return plain(of.py(), name).map(Self);
        }
        if let Ok((base, members)) = of.extract::<(String, Vec<(String, Vec<u8>)>)>() {
            let base = plain(of.py(), base)?;
            let members = members.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
            return Ok(Self(Datatype {
                size: base.size,
                class: Class::Enum { base: Box::new(base), members },
            }));
        }
        let (fields, size): (Bound<'py, PyList>, u32) = of.extract()?;
        let mut members = Vec::with_capacity(fields.len());
        for field in fields.iter() {
            let (name, Self(base), shape, offset): (String, _, Vec<u64>, _) = field.extract()?;
            let datatype = Datatype::array(base, &shape).map_err(|e| exception(of.py(), &e))?;
            members.push(Member { name: name.into_bytes(), offset, datatype });
        }
        Ok(Self(Datatype { size, class: Class::Compound { members } }))
    }
}

fn plain(py: Python<'_>, name: String) -> PyResult<Datatype> {
    NumpyType::Plain(name).datatype().map_err(|e| exception(py, &e))
}

/// How a dataset is laid out: `(shape, maximum, chunk, filters, fill, fill time, any filter)`; the fill time by its number in
/// files, and filters that nothing can be encoded with are taken or refused.
#[derive(FromPyObject)]
struct Storage(
    Vec<u64>,
    Option<Vec<Option<u64>>>,
    Option<Vec<u64>>,
    Vec<(String, Vec<i64>)>,
    Option<Vec<u8>>,
    Option<u8>,
    bool,
);

impl Storage {
    fn filters(&self) -> Result<Filters> {
        let mut all = Filters::new();
        for (name, values) in &self.3 {
            let value = |i: usize| values.get(i).copied().unwrap_or(0);
            let small = |i: usize| u32::try_from(value(i)).unwrap_or(u32::MAX);
            all = match name.as_str() {
                "shuffle" => all.shuffle(),
                "fletcher32" => all.fletcher32(),
                "gzip" => all.deflate(small(0)),
                "zstd" => all.zstd(small(0)),
                "lz4" => all.lz4(),
                "lzf" => all.lzf(),
                "bitshuffle" => all.bitshuffle(small(0)),
                "szip" => all.szip(small(0), value(1) == 1),
                "nbit" => all.nbit(),
                "scaleoffset" => all.scale_offset(i32::try_from(value(0)).unwrap_or(i32::MAX)),
                "filter" => {
                    let id = u16::try_from(value(0))
                        .map_err(|_| Error::invalid(format!("the filter {} does not exist", value(0))))?;
                    let values = values.iter().skip(1).map(|v| u32::try_from(*v));
                    let values = values
                        .collect::<std::result::Result<Vec<_>, _>>()
                        .map_err(|_| Error::invalid("a filter's values are unsigned 32-bit numbers"))?;
                    all.filter(id, &values, true)
                }
                _ => return Err(Error::unsupported(format!("the filter {name:?}"))),
            };
        }
        Ok(all)
    }

    fn apply<'w>(&self, b: DatasetBuilder<'w, 'static>, size: u32) -> Result<DatasetBuilder<'w, 'static>> {
        let filters = self.filters()?;
        if !self.6 {
            filters.check_encodes(size, self.2.as_deref().unwrap_or_default())?;
        }
        let mut b = b.shape(&self.0).filters(filters);
        b = match self.5 {
            None => b,
            Some(0) => b.fill_time(FillTime::OnAllocation),
            Some(1) => b.fill_time(FillTime::Never),
            Some(_) => b.fill_time(FillTime::IfSet),
        };
        if let Some(max) = &self.1 {
            b = b.max_shape(max);
        }
        if let Some(chunk) = &self.2 {
            b = b.chunk(chunk);
        }
        if let Some(fill) = &self.4 {
            b = b.fill(fill);
        }
        Ok(b)
    }
}

impl Hdf5Writer {
    /// Does something with the writer, without the interpreter; Ctrl-C stops it.
    fn with<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut FileWriter<'static>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let Some(writer) = self.writer.as_mut() else {
            return Err(PyValueError::new_err("the file is closed, or was given up"));
        };
        let result = py.detach(|| work(writer));
        self.result(py, result)
    }

    fn result<T>(&self, py: Python<'_>, result: Result<T>) -> PyResult<T> {
        let raised = self.asking.raised.lock().ok().and_then(|mut r| r.take());
        match (result, raised) {
            (_, Some(raised)) => Err(raised),
            (Ok(value), None) => Ok(value),
            (Err(e), None) => Err(exception(py, &e)),
        }
    }
}

fn dataspace(shape: &[u64]) -> Dataspace {
    if shape.is_empty() {
        return Dataspace::Scalar;
    }
    Dataspace::Simple { dims: shape.to_vec(), max: shape.iter().map(|d| Some(*d)).collect() }
}

/// Strategy, persistence, threshold and page size, the strategy by its number in files.
fn file_space((strategy, persist, threshold, page_size): (u8, bool, u64, u64)) -> Result<FileSpaceOptions> {
    let strategy = SpaceStrategy::from_number(strategy)
        .ok_or_else(|| Error::invalid(format!("the file space strategy {strategy} does not exist")))?;
    Ok(FileSpaceOptions { strategy, persist, threshold, page_size })
}

fn shared_index((kinds, min_size): &(Vec<String>, u32)) -> Result<SharedIndexOptions> {
    let kind = |name: &String| match name.as_str() {
        "dataspace" => Ok(SharedKind::Dataspace),
        "datatype" => Ok(SharedKind::Datatype),
        "fillvalue" => Ok(SharedKind::FillValue),
        "filters" => Ok(SharedKind::Filters),
        "attribute" => Ok(SharedKind::Attribute),
        _ => Err(Error::invalid(format!(
            "{name:?} is none of 'dataspace', 'datatype', 'fillvalue', 'filters', 'attribute'"
        ))),
    };
    Ok(SharedIndexOptions { kinds: kinds.iter().map(kind).collect::<Result<_>>()?, min_size: *min_size })
}

#[pymethods]
impl Hdf5Writer {
    #[new]
    #[pyo3(signature = (path, *, bound, user_block, threads, track_order, overwrite, space, shared))]
    #[expect(clippy::too_many_arguments, reason = "keywords, called from one place")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        bound: &str,
        user_block: u64,
        threads: usize,
        track_order: bool,
        overwrite: bool,
        space: (u8, bool, u64, u64),
        shared: Vec<(Vec<String>, u32)>,
    ) -> PyResult<Self> {
        let asking = Arc::new(Asking { asked: Mutex::new(Instant::now()), raised: Mutex::new(None) });
        let monitor: SharedMonitor = Arc::clone(&asking) as SharedMonitor;
        let make = || {
            let options = WriteOptions {
                bound: bound.parse()?,
                user_block,
                threads: Threads::new(threads),
                track_order,
                file_space: file_space(space)?,
                shared: shared.iter().map(shared_index).collect::<Result<_>>()?,
                monitor,
                ..WriteOptions::default()
            };
            if !overwrite && path.symlink_metadata().is_ok() {
                return Err(Error::already_exists("the file exists").in_file(&path));
            }
            FileWriter::create(SystemDisk::shared(), &path, options)
        };
        let writer = py.detach(make).map_err(|e| exception(py, &e))?;
        Ok(Self { writer: Some(writer), overwrite, asking })
    }

    fn group(&mut self, py: Python<'_>, path: &str) -> PyResult<()> {
        self.with(py, |w| w.create_group(path).map(drop))
    }

    fn hard_link(&mut self, py: Python<'_>, path: &str, object: &str) -> PyResult<()> {
        self.with(py, |w| w.hard_link(path, object))
    }

    fn soft_link(&mut self, py: Python<'_>, path: &str, target: &str) -> PyResult<()> {
        self.with(py, |w| w.soft_link(path, target))
    }

    fn external_link(&mut self, py: Python<'_>, path: &str, file: &str, object: &str) -> PyResult<()> {
        self.with(py, |w| w.external_link(path, file, object))
    }

    /// Numbers the attributes of an object that was just made, and the links if it is a group, in the order of their making,
    /// or does not.
    fn track(&mut self, py: Python<'_>, path: &str, is_group: bool, order: bool) -> PyResult<()> {
        let attributes = order.then_some(true);
        self.with(py, |w| w.track(path, Tracking { links: attributes.filter(|_| is_group), attributes }))
    }

    /// A dataset of the bytes of an array, or of the fill value, or with its elements in external files: their names, where
    /// the elements begin and how many bytes there are.
    fn dataset(
        &mut self,
        py: Python<'_>,
        path: &str,
        dtype: Dtype,
        storage: Storage,
        bytes: Option<PyReadonlyArray1<'_, u8>>,
        external: Option<Vec<(String, u64, Option<u64>)>>,
    ) -> PyResult<()> {
        let bytes = bytes.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        self.with(py, |w| {
            let size = dtype.0.size;
            let b = storage.apply(w.dataset(path).datatype(dtype.0), size)?;
            match (bytes, external) {
                (Some(bytes), None) => b.write_bytes(bytes).map(drop),
                (None, None) => b.create(),
                (None, Some(pieces)) => {
                    let piece = |(file, offset, bytes)| ExternalData { file, offset, bytes };
                    b.create_external(&pieces.into_iter().map(piece).collect::<Vec<_>>())
                }
                (Some(_), Some(_)) => Err(Error::unsupported("writing the elements into external files")),
            }
        })
    }

    /// A dataset of strings of variable length.
    fn texts(&mut self, py: Python<'_>, path: &str, storage: Storage, texts: Vec<String>) -> PyResult<()> {
        self.with(py, |w| storage.apply(w.dataset(path), HEAP)?.write_texts(&texts).map(drop))
    }

    /// A dataset of sequences of variable length, each as the bytes of its items.
    fn sequences(
        &mut self,
        py: Python<'_>,
        path: &str,
        dtype: Dtype,
        storage: Storage,
        items: Vec<PyReadonlyArray1<'_, u8>>,
    ) -> PyResult<()> {
        let items =
            items.iter().map(PyReadonlyArray1::as_slice).collect::<std::result::Result<Vec<_>, _>>()?;
        self.with(py, |w| {
            let datatype = Datatype::sequence(dtype.0);
            storage.apply(w.dataset(path).datatype(datatype), HEAP)?.write_heap(items).map(drop)
        })
    }

    /// A dataset or an attribute of no elements.
    fn null(&mut self, py: Python<'_>, path: &str, name: Option<&str>, dtype: Dtype) -> PyResult<()> {
        self.with(py, |w| {
            let value = Value::null(dtype.0);
            match name {
                Some(name) => w.attribute(path, name, value),
                None => w.dataset(path).write_value(value).map(drop),
            }
        })
    }

    fn attribute(
        &mut self,
        py: Python<'_>,
        path: &str,
        name: &str,
        dtype: Dtype,
        shape: Vec<u64>,
        bytes: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let bytes = bytes.as_slice()?;
        self.with(py, |w| {
            let value = Value::stored(dtype.0, dataspace(&shape), bytes.to_vec())?;
            w.attribute(path, name, value)
        })
    }

    fn text_attribute(
        &mut self,
        py: Python<'_>,
        path: &str,
        name: &str,
        shape: Vec<u64>,
        texts: Vec<String>,
    ) -> PyResult<()> {
        self.with(py, |w| {
            let value = match (shape.is_empty(), texts.as_slice()) {
                (true, [one]) => Value::from(one.as_str()),
                _ => Value::texts(&texts, &shape)?,
            };
            w.attribute(path, name, value)
        })
    }

    /// Gives the file its name; returns its length.
    fn finish(&mut self, py: Python<'_>) -> PyResult<u64> {
        let Some(writer) = self.writer.take() else { return Ok(0) };
        let overwrite = self.overwrite;
        let work = || if overwrite { writer.finish_replacing() } else { writer.finish() };
        let result = py.detach(work).map(|f| f.bytes);
        self.result(py, result)
    }

    fn abort(&mut self) {
        self.writer = None;
    }
}
