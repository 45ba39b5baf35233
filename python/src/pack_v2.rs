//! Packs of format 2 for Python: any counts, any shape, indexed as NumPy does.

use crate::errors::{exception, index_exception};
use crate::index::parse;
use crate::pack::shaped;
use crate::signals::{Callbacks, interruptible};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tensilo::core::Monitor;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::pack::plan::default_memory;
use tensilo::pack::products::{Choice, ImageValues};
use tensilo::pack::read::Values;
use tensilo::pack::v2::is_format_2;
use tensilo::pack::v2::plan::{Plan, PlanOptions, plan};
use tensilo::pack::v2::planes::Planes;
use tensilo::pack::v2::produce::{ProduceOptions, produce};
use tensilo::pack::v2::products::VirtualDetector;
use tensilo::pack::v2::read::{Pack, ReadOptions};
use tensilo::pack::v2::source::inspect::{InspectOptions, Inspection, inspect};
use tensilo::pack::v2::verify::{VerifyOptions, verify};

/// What inspection found, for format 2.
#[pyclass(frozen, module = "tensilo._native")]
pub struct Pack2Inspection(Arc<Inspection>);

/// A plan of format 2, with the inspection it was made from.
#[pyclass(frozen, module = "tensilo._native")]
pub struct Pack2Plan {
    inspection: Arc<Inspection>,
    plan: Plan,
}

/// An open pack of format 2.
#[pyclass(frozen, module = "tensilo._native")]
pub struct Pack2File(Pack);

/// A virtual detector that moves.
#[pyclass(frozen, module = "tensilo._native")]
pub struct Pack2Detector(Mutex<Detector>);

/// A virtual detector over unsigned or signed counts.
enum Detector {
    Unsigned(VirtualDetector),
    Signed(VirtualDetector<i64>),
}

/// All counts of a pack in memory.
#[pyclass(frozen, module = "tensilo._native")]
pub struct Pack2Planes {
    planes: Planes,
    signed: bool,
}

#[pymethods]
impl Pack2Inspection {
    fn json(&self) -> String {
        self.0.to_json().to_string()
    }
}

#[pymethods]
impl Pack2Plan {
    fn json(&self) -> String {
        self.plan.to_json().to_string()
    }
}

/// Does a file begin as a pack of format 2?
#[pyfunction]
pub fn pack2_is(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    is_format_2(&path).map_err(|e| exception(py, &e))
}

/// See `tensilo/pack.py`.
#[pyfunction]
#[pyo3(signature = (source, *, dataset, object, scan_shape, detector_axes, threads, progress, should_cancel))]
#[expect(clippy::too_many_arguments, reason = "the Python half passes them on by name")]
pub fn pack2_inspect(
    py: Python<'_>,
    source: PathBuf,
    dataset: Option<String>,
    object: Option<String>,
    scan_shape: Option<Vec<u64>>,
    detector_axes: usize,
    threads: usize,
    progress: Option<Py<PyAny>>,
    should_cancel: Option<Py<PyAny>>,
) -> PyResult<Pack2Inspection> {
    let options = InspectOptions {
        dataset,
        object,
        scan_shape,
        detector_axes,
        threads: Threads::new(threads),
        ..InspectOptions::default()
    };
    let work = |monitor: &dyn Monitor| inspect(&source, &options, monitor);
    let inspection = interruptible(py, Callbacks { progress, should_cancel }, work)?;
    Ok(Pack2Inspection(Arc::new(inspection)))
}

/// See `tensilo/pack.py`.
#[pyfunction]
#[pyo3(signature = (inspection, destination, *, memory, available_disk, threads))]
pub fn pack2_plan(
    py: Python<'_>,
    inspection: &Pack2Inspection,
    destination: PathBuf,
    memory: Option<u64>,
    available_disk: Option<u64>,
    threads: usize,
) -> PyResult<Pack2Plan> {
    let options = PlanOptions {
        memory: memory.unwrap_or_else(default_memory),
        available_disk,
        threads: Threads::new(threads),
    };
    let make = || plan(&inspection.0, &destination, &options, &SystemDisk);
    let plan = py.detach(make).map_err(|e| exception(py, &e))?;
    Ok(Pack2Plan { inspection: inspection.0.clone(), plan })
}

/// The receipt as JSON text, its path, most bytes held, and what was cleared.
#[pyfunction]
#[pyo3(signature = (plan, *, clear_leftovers, progress, should_cancel))]
pub fn pack2_produce(
    py: Python<'_>,
    plan: &Pack2Plan,
    clear_leftovers: bool,
    progress: Option<Py<PyAny>>,
    should_cancel: Option<Py<PyAny>>,
) -> PyResult<(String, PathBuf, u64, Vec<PathBuf>)> {
    let options = ProduceOptions { clear_leftovers, ..ProduceOptions::default() };
    let work = |monitor: &dyn Monitor| produce(&plan.inspection, &plan.plan, &options, monitor);
    let made = interruptible(py, Callbacks { progress, should_cancel }, work)?;
    let receipt = String::from_utf8_lossy(&made.receipt.encode()).into_owned();
    Ok((receipt, made.receipt_path, made.peak_bytes, made.cleared))
}

/// See `tensilo/pack.py`.
#[pyfunction]
#[pyo3(signature = (path, *, receipt, receipt_path, shard, deep, source, dataset, threads, progress, should_cancel))]
#[expect(clippy::too_many_arguments, reason = "the Python half passes them on by name")]
pub fn pack2_verify(
    py: Python<'_>,
    path: PathBuf,
    receipt: bool,
    receipt_path: Option<PathBuf>,
    shard: Option<u64>,
    deep: bool,
    source: Option<PathBuf>,
    dataset: Option<String>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    should_cancel: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = VerifyOptions {
        receipt,
        receipt_path,
        shard,
        deep,
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
impl Pack2File {
    #[new]
    #[pyo3(signature = (path, *, threads))]
    fn new(py: Python<'_>, path: PathBuf, threads: usize) -> PyResult<Self> {
        let options = ReadOptions { threads: Threads::new(threads), ..ReadOptions::default() };
        py.detach(|| Pack::open_with(&path, options)).map(Self).map_err(|e| exception(py, &e))
    }

    #[getter]
    fn scan_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.layout().scan_shape())
    }

    #[getter]
    fn detector_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.layout().detector_shape())
    }

    /// NumPy's name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.layout().counts().name()
    }

    /// Rows, columns and scans of a block.
    #[getter]
    fn block(&self) -> (u32, u32, u32) {
        let block = self.0.layout().block();
        (block.rows, block.columns, block.scans)
    }

    #[getter]
    fn excluded(&self) -> Vec<u32> {
        self.0.excluded().to_vec()
    }

    /// SHA-256 of the counts, and the identity of the source.
    #[getter]
    fn identities(&self) -> (String, String) {
        let index = self.0.index();
        (index.raw_sha256.to_string(), index.source_identity.to_string())
    }

    /// What an index selects, as a new array.
    fn read<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
        raw: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.0.shape();
        let resolved = parse(py, Some(index))?.resolve(&shape).map_err(|e| index_exception(py, &e))?;
        let counts = self.0.layout().counts();
        let n = resolved.shape.iter().try_fold(counts.bytes() as u64, |n, d| n.checked_mul(*d));
        let n = n.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= isize::MAX as usize);
        let n = n.ok_or_else(|| exception(py, &tensilo::Error::limit("a result larger than memory")))?;
        let bytes = PyModule::import(py, "numpy")?.call_method1("empty", (n, "u1"))?;
        let bytes = bytes.cast_into::<PyArray1<u8>>()?;
        let values = if raw { Values::Raw } else { Values::Masked };
        if n > 0 {
            let mut out = bytes.readwrite();
            let out = out.as_slice_mut()?;
            interruptible(py, Callbacks::default(), |monitor| {
                self.0.read_bytes_into(&resolved.selection, values, out, monitor)
            })?;
        }
        let shape = PyTuple::new(py, &resolved.shape)?;
        bytes.call_method1("view", (counts.name(),))?.call_method1("reshape", (shape,))
    }

    /// Images by name, each an array of the scan's or the detector's shape.
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

    /// A detector with this mask of flat pixels.
    #[pyo3(signature = (mask, *, progress, should_cancel))]
    fn detector(
        &self,
        py: Python<'_>,
        mask: PyReadonlyArray1<'_, u8>,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<Pack2Detector> {
        let mask = mask.as_slice()?;
        let work = |monitor: &dyn Monitor| {
            Ok(if self.0.layout().counts().is_signed() {
                Detector::Signed(self.0.signed_virtual_detector(mask, monitor)?)
            } else {
                Detector::Unsigned(self.0.virtual_detector(mask, monitor)?)
            })
        };
        let made = interruptible(py, Callbacks { progress, should_cancel }, work)?;
        Ok(Pack2Detector(Mutex::new(made)))
    }

    /// All counts in memory, for virtual images.
    #[pyo3(signature = (*, progress, should_cancel))]
    fn planes(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<Pack2Planes> {
        let work = |monitor: &dyn Monitor| self.0.planes(monitor);
        let planes = interruptible(py, Callbacks { progress, should_cancel }, work)?;
        Ok(Pack2Planes { planes, signed: self.0.layout().counts().is_signed() })
    }

    /// Binned frames of consecutive scans: scans, then the detector's bins.
    #[pyo3(signature = (start, stop, factor, *, progress, should_cancel))]
    fn binned<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        stop: u64,
        factor: u32,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let work = |monitor: &dyn Monitor| self.0.binned(start..stop, factor, monitor);
        let made = interruptible(py, Callbacks { progress, should_cancel }, work)?;
        shaped(py, made.values, &made.shape)
    }

    /// Writes an HDF5 file of a detector's layout; the SHA-256 of the counts.
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

    /// The same pack with the whole file in memory.
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

#[pymethods]
impl Pack2Detector {
    /// Sums of every scan, flat.
    fn image<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Detector::Unsigned(d) => PyArray1::from_slice(py, d.image()).into_any(),
            Detector::Signed(d) => PyArray1::from_slice(py, d.image()).into_any(),
        }
    }

    /// Moves to another mask of flat pixels.
    #[pyo3(signature = (mask, *, progress, should_cancel))]
    fn move_to(
        &self,
        py: Python<'_>,
        mask: PyReadonlyArray1<'_, u8>,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let mask = mask.as_slice()?;
        interruptible(py, Callbacks { progress, should_cancel }, |monitor| {
            match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
                Detector::Unsigned(d) => d.move_to(mask, monitor),
                Detector::Signed(d) => d.move_to(mask, monitor),
            }
        })
    }
}

#[pymethods]
impl Pack2Planes {
    /// Bytes of memory that hold counts.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.planes.bytes()
    }

    /// Sums of every scan over a mask of flat pixels, flat.
    #[pyo3(signature = (mask, *, progress, should_cancel))]
    fn virtual_image<'py>(
        &self,
        py: Python<'py>,
        mask: PyReadonlyArray1<'_, u8>,
        progress: Option<Py<PyAny>>,
        should_cancel: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mask = mask.as_slice()?;
        let work = |monitor: &dyn Monitor| {
            Ok(if self.signed {
                ImageValues::I64(self.planes.signed_virtual_image(mask, monitor)?)
            } else {
                ImageValues::U64(self.planes.virtual_image(mask, monitor)?)
            })
        };
        let made = interruptible(py, Callbacks { progress, should_cancel }, work)?;
        shaped(py, made, &[-1_i64])
    }
}
