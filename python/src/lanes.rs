//! Lane stores for Python: arrays that are windows of the map, and a writer.
//!
//! A view hands NumPy the address of its bytes through `__array_interface__`; the array keeps the view alive, the
//! view the store, and the store its map and lock.

use crate::errors::exception;
use crate::source::Source;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::lanes::{
    FormatVersion, LaneKind, LaneSpec, LaneType, OpenOptions, Store, StoreSchema, StoreWriter, WriterOptions,
};
use tensilo::{Error, Result};

/// An open store.
#[pyclass(frozen, module = "tensilo._native")]
pub struct LaneStore(Store);

/// Bytes of consecutive slabs, shown to NumPy.
#[pyclass(frozen, module = "tensilo._native")]
pub struct LaneView {
    store: Store,
    name: String,
    start: u64,
    end: u64,
}

fn version(format: u8) -> PyResult<FormatVersion> {
    match format {
        1 => Ok(FormatVersion::V1),
        2 => Ok(FormatVersion::V2),
        _ => Err(PyValueError::new_err(format!("format is 1 or 2, not {format}"))),
    }
}

#[pymethods]
impl LaneStore {
    #[new]
    #[pyo3(signature = (path, *, lenient=false, verify=false))]
    fn new(py: Python<'_>, path: PathBuf, lenient: bool, verify: bool) -> PyResult<Self> {
        let store = py.detach(|| Store::open_with(&path, OpenOptions { lenient, verify }));
        store.map(Self).map_err(|e| exception(py, &e))
    }

    #[getter]
    fn nslabs(&self) -> u64 {
        self.0.nslabs()
    }

    #[getter]
    fn format(&self) -> u8 {
        if self.0.version() == FormatVersion::V1 { 1 } else { 2 }
    }

    /// The application's data as JSON text.
    #[getter]
    fn app(&self) -> String {
        self.0.app().to_string()
    }

    fn names(&self) -> Vec<String> {
        self.0.lanes().map(|l| l.name.clone()).collect()
    }

    /// `(dtype, slabs or None for a flat lane, elements of a slab, shape of a slab, chunk inside a slab)`.
    fn describe<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyTuple>> {
        let lane = self.0.lane(name).map_err(|e| exception(py, &e))?;
        let slabs = match lane.kind {
            LaneKind::Flat { .. } => None,
            LaneKind::Slab { .. } => Some(self.0.slab_count(name).map_err(|e| exception(py, &e))?),
        };
        (lane.dtype.numpy(), slabs, lane.elems(), lane.shape.clone(), lane.chunk.clone()).into_pyobject(py)
    }

    fn is_written(&self, py: Python<'_>, name: &str, k: u64) -> PyResult<bool> {
        self.0.is_written(name, k).map_err(|e| exception(py, &e))
    }

    /// A view of slabs `start..end`, whose checksums are compared first unless `raw`.
    fn view(&self, py: Python<'_>, name: &str, start: u64, end: u64, raw: bool) -> PyResult<LaneView> {
        let check = || -> Result<()> {
            self.0.raw_bytes(name, start..end)?;
            if raw { Ok(()) } else { self.0.check_slabs(name, start..end) }
        };
        py.detach(check).map_err(|e| exception(py, &e))?;
        Ok(LaneView { store: self.0.clone(), name: name.into(), start, end })
    }

    /// Copies slabs `start..end`, wherever they lie, into bytes, in C order.
    fn copy(
        &self,
        py: Python<'_>,
        name: &str,
        start: u64,
        end: u64,
        mut out: PyReadwriteArray1<'_, u8>,
    ) -> PyResult<()> {
        let out = out.as_slice_mut()?;
        py.detach(|| self.0.read_bytes(name, start..end, out)).map_err(|e| exception(py, &e))
    }

    /// The slabs as records.
    fn source(&self, py: Python<'_>) -> PyResult<Source> {
        let records = self.0.records().map_err(|e| exception(py, &e))?;
        Ok(Source(Arc::new(records)))
    }

    /// What is damaged, one text for each slab.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let damage = py.detach(|| self.0.verify()).map_err(|e| exception(py, &e))?;
        Ok(damage.iter().map(ToString::to_string).collect())
    }
}

#[pymethods]
impl LaneView {
    #[getter(__array_interface__)]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let of = || -> Result<(usize, LaneSpec)> {
            let bytes = self.store.raw_bytes(&self.name, self.start..self.end)?;
            Ok((bytes.as_ptr().addr(), self.store.lane(&self.name)?.clone()))
        };
        let (address, lane) = of().map_err(|e| exception(py, &e))?;
        let shape = match lane.kind {
            LaneKind::Flat { len } => vec![len],
            LaneKind::Slab { .. } => {
                vec![self.end - self.start, lane.stored_elems().map_err(|e| exception(py, &e))?]
            }
        };
        let d = PyDict::new(py);
        d.set_item("version", 3)?;
        d.set_item("typestr", lane.dtype.numpy())?;
        d.set_item("shape", PyTuple::new(py, shape)?)?;
        d.set_item("data", (address, true))?;
        Ok(d)
    }
}

/// A store being written.
#[pyclass(module = "tensilo._native")]
pub struct LaneWriter(Option<StoreWriter>);

impl LaneWriter {
    fn writer(&self) -> PyResult<&StoreWriter> {
        self.0.as_ref().ok_or_else(|| PyValueError::new_err("the store is finished, or was given up"))
    }
}

/// `(name, NumPy type, kind, elements, slabs or None, shape, chunk, reserve)`.
type LaneTuple = (String, String, String, u64, Option<u64>, Vec<u64>, Vec<u64>, u64);

fn lane((name, dtype, kind, elems, slabs, shape, chunk, reserve): LaneTuple) -> Result<LaneSpec> {
    let dtype = LaneType::from_numpy(&dtype)?;
    let mut spec = match kind.as_str() {
        "flat" => LaneSpec::flat(name, dtype, elems),
        _ => LaneSpec::slab(name, dtype, elems),
    };
    (spec.slabs, spec.shape, spec.chunk, spec.reserve) = (slabs, shape, chunk, reserve);
    Ok(spec)
}

#[pymethods]
impl LaneWriter {
    #[staticmethod]
    #[pyo3(signature = (path, nslabs, lanes, app, *, format, overwrite, write_behind))]
    #[expect(clippy::too_many_arguments, reason = "the Python half passes them on by name")]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        nslabs: u64,
        lanes: Vec<LaneTuple>,
        app: &str,
        format: u8,
        overwrite: bool,
        write_behind: bool,
    ) -> PyResult<Self> {
        let version = version(format)?;
        let make = || -> Result<StoreWriter> {
            let app =
                serde_json::from_str(app).map_err(|e| Error::invalid(format!("app is no JSON: {e}")))?;
            let lanes = lanes.into_iter().map(lane).collect::<Result<_>>()?;
            let options =
                WriterOptions { version, replace: overwrite, write_behind, ..WriterOptions::default() };
            StoreWriter::create_with(&path, StoreSchema::new(nslabs, lanes).with_app(app), options)
        };
        py.detach(make).map(|w| Self(Some(w))).map_err(|e| exception(py, &e))
    }

    #[staticmethod]
    fn append(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let writer = py.detach(|| StoreWriter::append(&path, WriterOptions::default()));
        writer.map(|w| Self(Some(w))).map_err(|e| exception(py, &e))
    }

    #[staticmethod]
    fn overwrite(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let writer = py.detach(|| StoreWriter::overwrite(&path, WriterOptions::default()));
        writer.map(|w| Self(Some(w))).map_err(|e| exception(py, &e))
    }

    fn dtype(&self, py: Python<'_>, name: &str) -> PyResult<&'static str> {
        let schema = self.writer()?.schema();
        let lane = schema.lanes.iter().find(|l| l.name == name);
        let lane = lane.ok_or_else(|| exception(py, &Error::not_found(format!("no lane {name:?}"))))?;
        Ok(lane.dtype.numpy())
    }

    fn write(
        &self,
        py: Python<'_>,
        name: &str,
        k: Option<u64>,
        values: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let (writer, bytes) = (self.writer()?, values.as_slice()?);
        py.detach(|| writer.write_bytes(name, k, bytes)).map_err(|e| exception(py, &e))
    }

    fn append_slabs(&mut self, py: Python<'_>, name: &str, slabs: u64) -> PyResult<()> {
        self.writer()?;
        let Some(writer) = self.0.as_mut() else { return Ok(()) };
        writer.append_slabs(name, slabs).map_err(|e| exception(py, &e))
    }

    fn add_lane(&mut self, py: Python<'_>, spec: LaneTuple) -> PyResult<()> {
        self.writer()?;
        let Some(writer) = self.0.as_mut() else { return Ok(()) };
        lane(spec).and_then(|l| writer.add_lane(l)).map_err(|e| exception(py, &e))
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        self.writer()?;
        match self.0.take() {
            Some(writer) => py.detach(|| writer.finish()).map_err(|e| exception(py, &e)),
            None => Ok(()),
        }
    }

    fn abort(&mut self) {
        self.0 = None;
    }
}
