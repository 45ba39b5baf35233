//! Selections as Python writes them: integers, slices, `...`, lists of integers, and tuples of these.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyList, PySlice, PyString, PyTuple};
use tensilo::hdf5::NumpyIndex;

/// The index that a Python object stands for; `None` wants everything.
///
/// # Errors
/// `TypeError` for what is no basic index.
pub fn parse(py: Python<'_>, selection: Option<&Bound<'_, PyAny>>) -> PyResult<NumpyIndex> {
    let mut parts = Vec::new();
    match selection {
        None => {}
        Some(s) => match s.cast::<PyTuple>() {
            Ok(tuple) => {
                for item in tuple {
                    parts.push(part(&item)?);
                }
            }
            Err(_) => parts.push(part(s)?),
        },
    }
    parts.join(",").parse().map_err(|e| crate::errors::index_exception(py, &e))
}

fn part(item: &Bound<'_, PyAny>) -> PyResult<String> {
    if item.is_instance_of::<PyEllipsis>() {
        return Ok("...".to_owned());
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        let bound = |name: &str| -> PyResult<String> {
            let value = slice.getattr(name)?;
            if value.is_none() { Ok(String::new()) } else { integer(&value).map(|n| n.to_string()) }
        };
        return Ok(format!("{}:{}:{}", bound("start")?, bound("stop")?, bound("step")?));
    }
    if let Ok(list) = item.cast::<PyList>() {
        let items: PyResult<Vec<String>> = list.iter().map(|i| integer(&i).map(|n| n.to_string())).collect();
        return Ok(format!("[{}]", items?.join(",")));
    }
    integer(item).map(|n| n.to_string())
}

fn integer(item: &Bound<'_, PyAny>) -> PyResult<i64> {
    let refused = || {
        let kind = item.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "an index is an integer, a slice, ... or a list of integers, not {kind}"
        ))
    };
    if item.is_instance_of::<PyBool>() || item.is_instance_of::<PyString>() {
        return Err(refused());
    }
    item.extract::<i64>().map_err(|_| refused())
}
