//! `tensilo.read`: a dataset, or a selection of it, as a NumPy array.

use crate::errors::{exception, index_exception};
use crate::index;
use crate::signals::{Callbacks, interruptible};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::path::PathBuf;
use tensilo::core::Limits;
use tensilo::core::threads::Threads;
use tensilo::hdf5::{Class, Dataset, ExternalLinks, File, OpenOptions, Resolved};
use tensilo::numpy::NumpyType;
use tensilo::{Error, Result};

/// See the docstring in `tensilo/__init__.py`.
#[pyfunction]
#[pyo3(signature = (path, dataset, selection=None, *, threads=0, follow_anywhere=false, limit=None))]
pub fn read<'py>(
    py: Python<'py>,
    path: PathBuf,
    dataset: &str,
    selection: Option<&Bound<'py, PyAny>>,
    threads: usize,
    follow_anywhere: bool,
    limit: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let index = index::parse(py, selection)?;
    let mut options = OpenOptions {
        threads: Threads::new(threads),
        links: if follow_anywhere { ExternalLinks::Anywhere } else { ExternalLinks::SameFolderTree },
        ..OpenOptions::default()
    };
    if let Some(limit) = limit {
        options.limits = Limits::default().with_bytes(limit);
    }
    let located = |e: Error| e.in_object(dataset).in_file(&path);
    let opened = py.detach(|| File::open_with(&path, options)?.dataset(dataset));
    let opened = opened.map_err(|e| exception(py, &located(e)))?;
    let wanted = index.resolve(opened.shape()).map_err(|e| index_exception(py, &located(e)))?;
    if matches!(opened.datatype().class, Class::VarString { .. }) {
        return strings(py, &opened, &wanted);
    }
    let (dtype, inner) = NumpyType::of(opened.datatype()).map_err(|e| exception(py, &located(e)))?;
    let shape: Vec<u64> = wanted.shape.iter().copied().chain(inner).collect();
    let bytes = size(&opened, &wanted).map_err(|e| exception(py, &located(e)))?;
    let memory = PyArray1::<u8>::zeros(py, 0, false);
    let memory = if bytes == 0 { memory } else { empty(py, bytes)? };
    {
        let mut memory = memory.readwrite();
        let target = memory.as_slice_mut()?;
        interruptible(py, Callbacks::default(), |signals| {
            opened.read_bytes_into_with(&wanted.selection, target, signals)
        })?;
    }
    let dtype = numpy_dtype(py, &dtype)?;
    memory.call_method1("view", (dtype,))?.call_method1("reshape", (PyTuple::new(py, shape)?,))
}

/// Bytes of what is wanted, after the limit has agreed.
fn size(dataset: &Dataset, wanted: &Resolved) -> Result<usize> {
    if dataset.elements() == 0 && wanted.shape.is_empty() {
        return Err(Error::unsupported("a null dataspace has no values to put into an array"));
    }
    let elements = wanted.selection.elements(dataset.shape())?;
    let bytes = elements.checked_mul(u64::from(dataset.datatype().size));
    let bytes = bytes.ok_or_else(|| Error::limit("the array does not fit in 64 bits"))?;
    dataset.file().space().budget().bytes(bytes, "the array").map(drop)?;
    usize::try_from(bytes).map_err(|_| Error::limit("the array does not fit in memory"))
}

/// Memory that NumPy owns, not yet written.
fn empty(py: Python<'_>, bytes: usize) -> PyResult<Bound<'_, PyArray1<u8>>> {
    let array = PyModule::import(py, "numpy")?.call_method1("empty", (bytes, "u1"))?;
    Ok(array.cast_into::<PyArray1<u8>>()?)
}

/// The `numpy.dtype` of a dtype.
fn numpy_dtype<'py>(py: Python<'py>, dtype: &NumpyType) -> PyResult<Bound<'py, PyAny>> {
    let make = PyModule::import(py, "numpy")?.getattr("dtype")?;
    match dtype {
        NumpyType::Plain(name) => make.call1((name,)),
        NumpyType::Record { fields, size } => {
            let (names, formats, offsets) = (PyList::empty(py), PyList::empty(py), PyList::empty(py));
            for field in fields {
                names.append(&field.name)?;
                offsets.append(field.offset)?;
                let format = numpy_dtype(py, &field.dtype)?;
                formats.append((format, PyTuple::new(py, &field.shape)?))?;
            }
            let spec = PyDict::new(py);
            spec.set_item("names", names)?;
            spec.set_item("formats", formats)?;
            spec.set_item("offsets", offsets)?;
            spec.set_item("itemsize", *size)?;
            make.call1((spec,))
        }
    }
}

/// Strings of variable length, as an array of `str` objects.
fn strings<'py>(py: Python<'py>, dataset: &Dataset, wanted: &Resolved) -> PyResult<Bound<'py, PyAny>> {
    let strings = interruptible(py, Callbacks::default(), |_| dataset.read_string_bytes(&wanted.selection))?;
    let array = PyModule::import(py, "numpy")?.call_method1("empty", (strings.len(), "O"))?;
    for (i, s) in strings.iter().enumerate() {
        let s = match std::str::from_utf8(s) {
            Ok(s) => PyString::new(py, s).into_any(),
            Err(_) => PyBytes::new(py, s).call_method1("decode", ("utf-8", "surrogateescape"))?,
        };
        array.set_item(i, s)?;
    }
    array.call_method1("reshape", (PyTuple::new(py, &wanted.shape)?,))
}
