//! Packs for Python: inspecting, planning, producing, verifying, and reading straight into NumPy's memory.
//!
//! Facts (an inspection, a plan, a receipt, a verification) cross as JSON text with the contract's names.

use crate::errors::exception;
use crate::signals::{Callbacks, interruptible};
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1, PyReadwriteArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::Result;
use tensilo::core::Monitor;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::pack::plan::{Plan, PlanOptions, default_memory, plan};
use tensilo::pack::produce::{ProduceOptions, produce};
use tensilo::pack::products::{Choice, ImageValues};
use tensilo::pack::read::{Pack, ReadOptions, Values};
use tensilo::pack::source::inspect::{InspectOptions, Inspection, inspect};
use tensilo::pack::verify::{VerifyOptions, verify};
use tensilo::pack::{Backend, Profile};

/// What inspection found.
#[pyclass(frozen, module = "tensilo._native")]
pub struct PackInspection(Arc<Inspection>, Option<PathBuf>);

/// A plan, with the inspection it was made from.
#[pyclass(frozen, module = "tensilo._native")]
pub struct PackPlan {
    inspection: Arc<Inspection>,
    index_dir: Option<PathBuf>,
    plan: Plan,
}

/// An open pack.
#[pyclass(frozen, module = "tensilo._native")]
pub struct PackFile(Pack);

#[pymethods]
impl PackInspection {
    fn json(&self) -> String {
        self.0.to_json().to_string()
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
        dataset,
        index_dir: index_dir.clone(),
        threads: Threads::new(threads),
        ..InspectOptions::default()
    };
    let work = |monitor: &dyn Monitor| inspect(&source, &options, monitor);
    let inspection = interruptible(py, Callbacks { progress, should_cancel }, work)?;
    Ok(PackInspection(Arc::new(inspection), index_dir))
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
        plan(&inspection.0, &destination, &options, &SystemDisk)
    };
    let plan = py.detach(make).map_err(|e| exception(py, &e))?;
    Ok(PackPlan { inspection: inspection.0.clone(), index_dir: inspection.1.clone(), plan })
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
    let options =
        ProduceOptions { index_dir: plan.index_dir.clone(), clear_leftovers, ..ProduceOptions::default() };
    let work = |monitor: &dyn Monitor| produce(&plan.inspection, &plan.plan, &options, monitor);
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
            let flat = match image.values {
                ImageValues::U32(v) => PyArray1::from_vec(py, v).into_any(),
                ImageValues::U64(v) => PyArray1::from_vec(py, v).into_any(),
                ImageValues::F64(v) => PyArray1::from_vec(py, v).into_any(),
            };
            let [rows, columns] = image.shape;
            images.set_item(image.name, flat.call_method1("reshape", ((rows, columns),))?)?;
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
