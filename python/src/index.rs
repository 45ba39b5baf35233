//! Selections as NumPy takes them: integers, slices, `...`, `None`, arrays and lists of integers, masks, and tuples of
//! these.

use crate::errors::index_exception;
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyEllipsis, PyFloat, PySet, PySlice, PyString, PyTuple};
use tensilo::hdf5::{IndexItem, NumpyIndex};

/// The index that a Python object stands for; `None` that is not inside a tuple wants everything.
///
/// # Errors
/// `TypeError` for what is no index, `IndexError` for one that cannot be.
pub fn parse(py: Python<'_>, selection: Option<&Bound<'_, PyAny>>) -> PyResult<NumpyIndex> {
    let items = match selection {
        None => Vec::new(),
        Some(s) => match s.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().map(|i| part(py, &i)).collect::<PyResult<_>>()?,
            Err(_) => vec![part(py, s)?],
        },
    };
    NumpyIndex::new(items).map_err(|e| index_exception(py, &e))
}

fn part(py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<IndexItem> {
    if item.is_none() {
        return Ok(IndexItem::NewAxis);
    }
    if item.is_instance_of::<PyEllipsis>() {
        return Ok(IndexItem::Ellipsis);
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        let bound = |name: &str| -> PyResult<Option<i64>> {
            let value = slice.getattr(name)?;
            if value.is_none() { Ok(None) } else { clipped(&value).map(Some) }
        };
        return Ok(IndexItem::Slice {
            start: bound("start")?,
            stop: bound("stop")?,
            step: bound("step")?.unwrap_or(1),
        });
    }
    let number = !item.is_instance_of::<PyBool>() && item.hasattr("__index__")?;
    if number && !item.hasattr("dtype")? {
        return integer(item).map(IndexItem::Integer);
    }
    array(py, item)
}

/// An array, or what NumPy makes one of.
fn array(py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<IndexItem> {
    let text = item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>();
    if text
        || item.is_instance_of::<PyFloat>()
        || item.is_instance_of::<PyDict>()
        || item.is_instance_of::<PySet>()
    {
        return Err(refused(item));
    }
    let numpy = PyModule::import(py, "numpy")?;
    let made = numpy.call_method1("asarray", (item,))?;
    let found = made.cast::<PyUntypedArray>()?;
    let shape: Vec<u64> = found.shape().iter().map(|n| *n as u64).collect();
    let kind: String = found.dtype().getattr("kind")?.extract()?;
    // An empty list is an array of floats to NumPy, but selects nothing.
    let nothing = found.len() == 0 && !item.hasattr("dtype")?;
    match kind.as_str() {
        "b" => {
            let values = numpy.call_method1("ascontiguousarray", (found,))?;
            let values = values.cast_into::<PyArrayDyn<bool>>()?;
            Ok(IndexItem::Mask { shape, values: values.readonly().as_slice()?.to_vec() })
        }
        "i" | "u" => {
            // Whatever is too large for 64 bits with a sign is out of bounds, and stays so.
            let most = (kind == "u").then(|| numpy.call_method1("minimum", (found, i64::MAX))).transpose()?;
            let found = most.as_ref().unwrap_or(found.as_any());
            let values = numpy.call_method1("ascontiguousarray", (found, "i8"))?;
            let values = values.cast_into::<PyArrayDyn<i64>>()?.readonly().as_slice()?.to_vec();
            Ok(match values.as_slice() {
                [one] if shape.is_empty() => IndexItem::Integer(*one),
                _ => IndexItem::Array { shape, values },
            })
        }
        _ if nothing => Ok(IndexItem::Array { shape, values: Vec::new() }),
        _ => Err(refused(item)),
    }
}

fn refused(item: &Bound<'_, PyAny>) -> PyErr {
    let kind = item.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    PyTypeError::new_err(format!(
        "an index is an integer, a slice, ..., None, an array of integers or of truth values, or a tuple of these, \
         not {kind}"
    ))
}

/// `operator.index`.
fn index<'py>(item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match item.call_method0("__index__") {
        Ok(value) => Ok(value),
        Err(_) => Err(refused(item)),
    }
}

fn integer(item: &Bound<'_, PyAny>) -> PyResult<i64> {
    let value = index(item)?;
    value.extract::<i64>().map_err(|_| {
        let e = tensilo::Error::invalid(format!("index {value} is out of bounds for any dimension"));
        index_exception(item.py(), &e)
    })
}

/// A bound of a slice; as in Python, one that passes 64 bits is as good as the end.
fn clipped(item: &Bound<'_, PyAny>) -> PyResult<i64> {
    let value = index(item)?;
    match value.extract::<i64>() {
        Err(e) if e.is_instance_of::<PyOverflowError>(item.py()) => {
            Ok(if value.lt(0)? { i64::MIN } else { i64::MAX })
        }
        other => other,
    }
}
