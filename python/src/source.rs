//! `Source`: what a loader reads from, whichever store is behind it. Python classes of stores hand one out as
//! `_loader_source()`.

use crate::array_source::ArrayRecords;
use crate::errors::exception;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::sync::Arc;
use tensilo::Result;
use tensilo::core::gather::{Concat, FieldSchema, FieldShape, Gather, gather};
use tensilo::core::progress::Quiet;
use tensilo::core::threads::Threads;
use tensilo::core::{Budget, Limits};
use tensilo::loader::Zip;

/// A store whose records are read by their ids.
#[pyclass(frozen, module = "tensilo._native")]
pub struct Source(pub Arc<dyn Gather>);

/// Name, NumPy type, shape of a record, or of a row of a ragged one, and whether it is ragged.
pub type FieldTuple = (String, String, Vec<u64>, bool);

/// A field for Python.
pub fn describe(field: &FieldSchema) -> FieldTuple {
    let (FieldShape::Fixed(shape) | FieldShape::Ragged(shape)) = &field.shape;
    (field.name.clone(), field.dtype.numpy(), shape.clone(), field.is_ragged())
}

/// One field's bytes, and the offsets of a ragged one.
type Values<'py> = (Bound<'py, PyArray1<u8>>, Option<Bound<'py, PyArray1<u64>>>);

#[pymethods]
impl Source {
    /// The rows of a NumPy array, where they lie.
    #[staticmethod]
    fn array(py: Python<'_>, name: &str, array: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Self> {
        let dtype = dtype.parse().map_err(|e| exception(py, &e))?;
        let records = ArrayRecords::new(name, array, dtype)?.map_err(|e| exception(py, &e))?;
        Ok(Self(Arc::new(records)))
    }

    /// Several stores side by side; a name is for the only field of a store.
    #[staticmethod]
    fn zip(py: Python<'_>, stores: Vec<(Option<String>, PyRef<'_, Source>)>) -> PyResult<Self> {
        let named = stores.into_iter().map(|(name, store)| (name, Arc::clone(&store.0))).collect();
        Zip::new(named).map(|z| Self(Arc::new(z))).map_err(|e| exception(py, &e))
    }

    /// Several stores one after the other.
    #[staticmethod]
    fn concat(py: Python<'_>, stores: Vec<PyRef<'_, Source>>) -> PyResult<Self> {
        let all = stores.iter().map(|s| Arc::clone(&s.0)).collect();
        Concat::new(all).map(|c| Self(Arc::new(c))).map_err(|e| exception(py, &e))
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.len()).unwrap_or(usize::MAX)
    }

    fn fields(&self) -> Vec<FieldTuple> {
        self.0.schema().fields().iter().map(describe).collect()
    }

    /// Records that are cheap together.
    #[getter]
    fn block(&self) -> u64 {
        self.0.locality().block
    }

    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        let print = py.detach(|| self.0.fingerprint()).map_err(|e| exception(py, &e))?;
        Ok(print.to_string())
    }

    /// Fields of records, each as bytes and offsets.
    #[pyo3(signature = (ids, fields, limit=None))]
    fn gather<'py>(
        &self,
        py: Python<'py>,
        ids: PyReadonlyArray1<'py, u64>,
        fields: Vec<String>,
        limit: Option<u64>,
    ) -> PyResult<Vec<Values<'py>>> {
        let ids = ids.as_slice()?;
        let limits = limit.map_or_else(Limits::default, |n| Limits::default().with_bytes(n));
        let read = || {
            let schema = self.0.schema();
            let fields = fields.iter().map(|f| schema.position(f)).collect::<Result<Vec<_>>>()?;
            gather(&*self.0, ids, &fields, &Budget::new(limits), Threads::ONE, &Quiet)
        };
        let values = py.detach(read).map_err(|e| exception(py, &e))?;
        let array = |value: tensilo::core::gather::FieldValues| {
            let offsets = (!value.offsets.is_empty()).then(|| value.offsets.into_pyarray(py));
            (value.bytes.into_pyarray(py), offsets)
        };
        Ok(values.into_iter().map(array).collect())
    }
}
