//! Zrecord v1 stores for Python, the native half of `tensilo.loaderx`.

use crate::signals::{Callbacks, interruptible_as};
use crate::source::Source;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::core::Quiet;
use tensilo::core::dtype::DType;
use tensilo::core::gather::{FieldSchema, Places, Schema};
use tensilo::core::threads::Threads;
use tensilo::records::v1::{Codec, Items, Zrecord, ZrecordOptions, code_of};
use tensilo::{Error, Result};

/// An open store.
#[pyclass(frozen, module = "tensilo._native")]
pub struct ZrecordStore(Zrecord);

/// loaderx's exception for an error.
fn exception(py: Python<'_>, e: &Error) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let module = PyModule::import(py, "tensilo.loaderx._zrecord")?;
        let value = module.getattr("_error")?.call1((code_of(e), e.to_string(), e.hint_text()))?;
        Ok(PyErr::from_value(value))
    };
    made().unwrap_or_else(|failure| failure)
}

/// Does short work without the interpreter.
fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(|e| exception(py, &e))
}

fn codec(number: u8) -> Result<Codec> {
    Codec::from_number(number).ok_or_else(|| Error::invalid(format!("no codec has the number {number}")))
}

#[pymethods]
impl ZrecordStore {
    /// Opens a store; unless for reading only, creates it when there is none and the folder above exists.
    #[new]
    #[pyo3(signature = (path, *, read_only))]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool) -> PyResult<Self> {
        detached(py, || {
            let options = ZrecordOptions { read_only, ..ZrecordOptions::default() };
            Zrecord::open_or_create(&path, options)
        })
        .map(Self)
    }

    /// Number of records, those included that others have appended.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || self.0.refresh())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.sync())
    }

    fn lengths(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray1<'_, u64>,
        mut out: PyReadwriteArray1<'_, u32>,
    ) -> PyResult<()> {
        let (ids, out) = (ids.as_slice()?, out.as_slice_mut()?);
        detached(py, || {
            self.look_again(ids)?;
            self.0.lengths(ids, out)
        })
    }

    /// The records as a loader reads them, all of this type and shape.
    fn source(&self, py: Python<'_>, dtype: &str, shape: Vec<u64>) -> PyResult<Source> {
        let snapshot = detached(py, || {
            let field = FieldSchema::fixed("data", dtype.parse::<DType>()?, shape);
            self.0.refresh()?;
            self.0.snapshot_as(Schema::new(vec![field])?)
        })?;
        Ok(Source(Arc::new(snapshot)))
    }

    /// Decodes records, one every `stride` bytes.
    fn gather(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray1<'_, u64>,
        mut out: PyReadwriteArray1<'_, u8>,
        stride: u64,
    ) -> PyResult<()> {
        self.gather_to(py, ids.as_slice()?, out.as_slice_mut()?, Places::Stride(stride))
    }

    /// Decodes records to the given bytes.
    fn gather_var(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray1<'_, u64>,
        mut out: PyReadwriteArray1<'_, u8>,
        offsets: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<()> {
        self.gather_to(py, ids.as_slice()?, out.as_slice_mut()?, Places::Starts(offsets.as_slice()?))
    }

    fn append(
        &self,
        py: Python<'_>,
        src: PyReadonlyArray1<'_, u8>,
        n: usize,
        item_len: usize,
        tag: u8,
    ) -> PyResult<u64> {
        let bytes = src.as_slice()?;
        let items = Items::Fixed { bytes, stride: item_len, len: item_len, count: n };
        detached(py, || self.0.append(items, Some(codec(tag)?)))
    }

    fn append_var(
        &self,
        py: Python<'_>,
        src: PyReadonlyArray1<'_, u8>,
        offsets: PyReadonlyArray1<'_, u64>,
        lens: PyReadonlyArray1<'_, u32>,
        tag: u8,
    ) -> PyResult<u64> {
        let (bytes, starts, lens) = (src.as_slice()?, offsets.as_slice()?, lens.as_slice()?);
        detached(py, || self.0.append(Items::Ragged { bytes, starts, lens }, Some(codec(tag)?)))
    }

    fn delete(&self, py: Python<'_>, ids: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let ids = ids.as_slice()?;
        detached(py, || {
            self.look_again(ids)?;
            self.0.delete(ids)
        })
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        interruptible_as(py, Callbacks::default(), |monitor| self.0.compact(monitor), exception)
    }

    /// Records, bytes that they take, bytes up to the end of the store.
    fn stats(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let stats = detached(py, || {
            self.0.refresh()?;
            self.0.stats()
        })?;
        Ok((stats.records, stats.live_bytes, stats.chunk_bytes))
    }
}

impl ZrecordStore {
    fn gather_to(&self, py: Python<'_>, ids: &[u64], out: &mut [u8], places: Places<'_>) -> PyResult<()> {
        detached(py, || {
            self.look_again(ids)?;
            self.0.gather(ids, out, places, Threads::default(), &Quiet)
        })
    }

    /// Looks for records of other processes when an id is not known.
    fn look_again(&self, ids: &[u64]) -> Result<()> {
        let len = self.0.len();
        if ids.iter().any(|id| *id >= len) {
            self.0.refresh()?;
        }
        Ok(())
    }
}
