//! Packs for Python: inspecting, planning, producing, verifying, and reading straight into NumPy's memory.
//!
//! Facts (an inspection, a plan, a receipt, a verification) cross as JSON text with the contract's names.

use crate::errors::exception;
use crate::signals::{Callbacks, interruptible};
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1, PyReadwriteArray2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::Result;
use tensilo::core::Monitor;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::pack::plan::{Plan, PlanOptions, default_memory, plan};
use tensilo::pack::produce::{ProduceOptions, produce};
use tensilo::pack::products::{Bands, Choice, ImageValues, Request};
use tensilo::pack::read::{Pack, ReadOptions, Values};
use tensilo::pack::source::inspect::{InspectOptions, Inspection, inspect};
use tensilo::pack::v2;
use tensilo::pack::verify::{VerifyOptions, verify};
use tensilo::pack::{Backend, Profile};

/// What inspection found.
#[pyclass(frozen, module = "tensilo._native")]
pub struct PackInspection {
    inspection: Arc<Inspection>,
    origin: Origin,
}

/// What was inspected: refusals of format 1 say whether format 2 takes it.
#[derive(Clone)]
struct Origin {
    source: PathBuf,
    dataset: Option<String>,
    index_dir: Option<PathBuf>,
}

impl Origin {
    fn hinted(&self, e: tensilo::Error) -> tensilo::Error {
        let options =
            v2::source::inspect::InspectOptions { dataset: self.dataset.clone(), ..Default::default() };
        let e = v2::hint_format_2(e, &self.source, &options);
        if e.hint_text() == Some("--format 2") { e.hint("format=2") } else { e }
    }
}

/// A plan, with the inspection it was made from.
#[pyclass(frozen, module = "tensilo._native")]
pub struct PackPlan {
    inspection: Arc<Inspection>,
    origin: Origin,
    plan: Plan,
}

/// An open pack.
#[pyclass(frozen, module = "tensilo._native")]
pub struct PackFile(Pack);

#[pymethods]
impl PackInspection {
    fn json(&self) -> String {
        self.inspection.to_json().to_string()
    }
}

#[pymethods]
impl PackPlan {
    fn json(&self) -> String {
        self.plan.to_json().to_string()
    }
}

/// See `tensilo/pack.py`.
#[pyfunction]
#[pyo3(signature = (source, *, dataset, index_dir, threads, progress, should_cancel))]
pub fn pack_inspect(
    py: Python<'_>,
    source: PathBuf,
    dataset: Option<String>,
    index_dir: Option<PathBuf>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    should_cancel: Option<Py<PyAny>>,
) -> PyResult<PackInspection> {
    let options = InspectOptions {
        dataset: dataset.clone(),
        index_dir: index_dir.clone(),
        threads: Threads::new(threads),
        ..InspectOptions::default()
    };
    let origin = Origin { source, dataset, index_dir };
    let work =
        |monitor: &dyn Monitor| inspect(&origin.source, &options, monitor).map_err(|e| origin.hinted(e));
    let inspection = Arc::new(interruptible(py, Callbacks { progress, should_cancel }, work)?);
    Ok(PackInspection { inspection, origin })
}

/// See `tensilo/pack.py`.
#[pyfunction]
#[pyo3(signature = (inspection, destination, *, memory, available_disk, profile, backend, threads))]
#[expect(clippy::too_many_arguments, reason = "the Python half passes them on by name")]
pub fn pack_plan(
    py: Python<'_>,
    inspection: &PackInspection,
    destination: PathBuf,
    memory: Option<u64>,
    available_disk: Option<u64>,
    profile: &str,
    backend: &str,
    threads: usize,
) -> PyResult<PackPlan> {
    let make = || -> Result<Plan> {
        let options = PlanOptions {
            profile: Profile::parse(profile)?,
            backend: Backend::parse(backend)?,
            memory: memory.unwrap_or_else(default_memory),
            available_disk,
            threads: Threads::new(threads),
        };
        plan(&inspection.inspection, &destination, &options, &SystemDisk)
    };
    let origin = inspection.origin.clone();
    let plan = py.detach(|| make().map_err(|e| origin.hinted(e))).map_err(|e| exception(py, &e))?;
    Ok(PackPlan { inspection: inspection.inspection.clone(), origin, plan })
}

/// The receipt as JSON text, its path, most bytes held, and what was cleared.
#[pyfunction]
#[pyo3(signature = (plan, *, clear_leftovers, progress, should_cancel))]
pub fn pack_produce(
    py: Python<'_>,
    plan: &PackPlan,
    clear_leftovers: bool,
    progress: Option<Py<PyAny>>,
    should_cancel: Option<Py<PyAny>>,
) -> PyResult<(String, PathBuf, u64, Vec<PathBuf>)> {
    let options = ProduceOptions {
        index_dir: plan.origin.index_dir.clone(),
        clear_leftovers,
        ..ProduceOptions::default()
    };
    let work = |monitor: &dyn Monitor| {
        produce(&plan.inspection, &plan.plan, &options, monitor).map_err(|e| plan.origin.hinted(e))
    };
    let made = interruptible(py, Callbacks { progress, should_cancel }, work)?;
    let receipt = String::from_utf8_lossy(&made.receipt.encode()).into_owned();
    Ok((receipt, made.receipt_path, made.peak_bytes, made.cleared))
}

/// See `tensilo/pack.py`.
#[pyfunction]
#[pyo3(signature = (path, *, receipt, receipt_path, source, dataset, threads, progress, should_cancel))]
#[expect(clippy::too_many_arguments, reason = "the Python half passes them on by name")]
pub fn pack_verify(
    py: Python<'_>,
    path: PathBuf,
    receipt: bool,
    receipt_path: Option<PathBuf>,
    source: Option<PathBuf>,
    dataset: Option<String>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    should_cancel: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = VerifyOptions {
        receipt,
        receipt_path,
        source,
        dataset,
        threads: Threads::new(threads),
        ..VerifyOptions::default()
    };
    let work = |monitor: &dyn Monitor| verify(&path, &options, monitor);
    let found = interruptible(py, Callbacks { progress, should_cancel }, work)?;
    Ok(found.to_json().to_string())
}

/// An image as an array of this shape.
pub fn shaped<'py, N: Copy + IntoPyObject<'py>>(
    py: Python<'py>,
    values: ImageValues,
    shape: &[N],
) -> PyResult<Bound<'py, PyAny>> {
    let flat = match values {
        ImageValues::U32(v) => PyArray1::from_vec(py, v).into_any(),
        ImageValues::U64(v) => PyArray1::from_vec(py, v).into_any(),
        ImageValues::I64(v) => PyArray1::from_vec(py, v).into_any(),
        ImageValues::F64(v) => PyArray1::from_vec(py, v).into_any(),
    };
    flat.call_method1("reshape", (PyTuple::new(py, shape.iter().copied())?,))
}

/// Inner and outer radius of a ring.
type Radii = Option<(f64, f64)>;

#[pymethods]
impl PackFile {
    #[new]
    #[pyo3(signature = (path, *, threads, cached_bytes))]
    fn new(py: Python<'_>, path: PathBuf, threads: usize, cached_bytes: u64) -> PyResult<Self> {
        let options = ReadOptions { threads: Threads::new(threads), cached_bytes, ..ReadOptions::default() };
        py.detach(|| Pack::open_with(&path, options)).map(Self).map_err(|e| exception(py, &e))
    }

    #[getter]
    fn shape(&self) -> (u32, u32, u32, u32) {
        let [a, b, c, d] = self.0.shape();
        (a, b, c, d)
    }

    #[getter]
    fn excluded(&self) -> Vec<u32> {
        self.0.excluded().to_vec()
    }

    #[getter]
    fn has_raw(&self) -> bool {
        self.0.has_raw()
    }

    #[getter]
    fn is_resident(&self) -> bool {
        self.0.is_resident()
    }

    /// The manifest as JSON text.
    #[getter]
    fn manifest(&self) -> String {
        serde_json::Value::Object(self.0.manifest().json.clone()).to_string()
    }

    /// Puts the values of some pixels in some scans into `out`.
    fn gather(
        &self,
        py: Python<'_>,
        scans: PyReadonlyArray1<'_, u64>,
        pixels: PyReadonlyArray1<'_, u32>,
        raw: bool,
        mut out: PyReadwriteArray1<'_, u16>,
    ) -> PyResult<()> {
        let (scans, pixels, out) = (scans.as_slice()?, pixels.as_slice()?, out.as_slice_mut()?);
        let values = if raw { Values::Raw } else { Values::Masked };
        interruptible(py, Callbacks::default(), |monitor| {
            self.0.gather_into(scans, pixels, values, out, monitor)
        })
    }

    /// Puts binned frames of consecutive scans into `out`.
    fn binned(
        &self,
        py: Python<'_>,
        start: u64,
        stop: u64,
        factor: u32,
        mut out: PyReadwriteArray2<'_, u32>,
    ) -> PyResult<()> {
        let out = out.as_slice_mut()?;
        let made = interruptible(py, Callbacks::default(), |m| self.0.binned(start..stop, factor, m))?;
        if out.len() != made.values.len() {
            let e = tensilo::Error::invalid(format!("{} values for {} bins", out.len(), made.values.len()));
            return Err(exception(py, &e));
        }
        out.copy_from_slice(&made.values);
        Ok(())
    }

    /// Sums of every scan over a mask of flat pixels, flat.
    #[pyo3(signature = (mask, *, progress, should_cancel))]
    fn virtual_image<'py>(
        &self,
        py: Python<'py>,
        mask: PyReadonlyArray1<'_, u8>,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let mask = mask.as_slice()?;
        let work = |monitor: &dyn Monitor| {
            let membership = mask.iter().map(|m| u8::from(*m != 0)).collect();
            let bands = Some(Bands::new(self.0.geometry(), membership)?);
            Ok(self.0.products(&Request { bands, ..Request::default() }, monitor)?.bands)
        };
        let sums = interruptible(py, Callbacks { progress, should_cancel }, work)?;
        Ok(PyArray1::from_vec(py, sums.map(|[sums, ..]| sums.to_u64()).unwrap_or_default()))
    }

    /// Writes an HDF5 file of the source's layout; the SHA-256 of the counts.
    #[pyo3(signature = (path, *, raw, overwrite, progress, should_cancel))]
    fn to_hdf5(
        &self,
        py: Python<'_>,
        path: PathBuf,
        raw: bool,
        overwrite: bool,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let values = if raw { Values::Raw } else { Values::Masked };
        let work = |monitor: &dyn Monitor| {
            self.0.export_hdf5(Arc::new(SystemDisk), &path, values, overwrite, monitor)
        };
        let exported = interruptible(py, Callbacks { progress, should_cancel }, work)?;
        Ok(exported.sha256.to_string())
    }

    /// Images by name, each a flat array.
    #[pyo3(signature = (only, rings, center, *, progress, should_cancel))]
    fn images<'py>(
        &self,
        py: Python<'py>,
        only: Vec<String>,
        rings: (Radii, Radii, Radii),
        center: Option<(f64, f64)>,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (bf, abf, adf) = rings;
        let choice =
            Choice { only, rings: [bf, abf, adf], center: center.map(|(row, column)| [row, column]) };
        let work = |monitor: &dyn Monitor| self.0.images(&choice, monitor);
        let made = interruptible(py, Callbacks { progress, should_cancel }, work)?;
        let images = PyDict::new(py);
        for image in made.images {
            images.set_item(image.name, shaped(py, image.values, &image.shape)?)?;
        }
        Ok(images)
    }

    /// The same pack with all shards in memory.
    #[pyo3(signature = (*, progress, should_cancel))]
    fn resident(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        interruptible(py, Callbacks { progress, should_cancel }, |monitor| self.0.resident(monitor)).map(Self)
    }
}
