//! `Sampler` and `Loader` for Python: ids and batches, made without the interpreter.
//!
//! A batch's arrays show NumPy the memory of the batch through `__array_interface__`; when the last array that views
//! it is gone, the memory goes back to the loader, which fills it again.

use crate::errors::exception;
use crate::signals::{Callbacks, Signals};
use crate::source::{FieldTuple, Source, describe};
use numpy::{IntoPyArray, PyArray1};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tensilo::core::{Limits, Monitor, Progress};
use tensilo::loader::{
    Batch, Failure, Loader as NativeLoader, LoaderOptions, Memory, Mixture, Order, Position,
    Sampler as NativeSampler, SamplerOptions, SamplerState, Shuffle, fork,
};
use tensilo::{Error, Result};

/// A position as `(step, epoch, offset, generator state)`.
type PositionTuple = (u64, u64, u64, [u64; 4]);

fn tuple(at: Position) -> PositionTuple {
    (at.step, at.epoch, at.offset, at.words)
}

/// Batches of record ids.
#[pyclass(module = "tensilo._native")]
pub struct Sampler(NativeSampler);

/// The order that Python names: `sequential`, `iid`, `epoch` with a block and a window, or parts of a mixture.
fn order(mode: &str, blocks: Option<(u64, u64)>, shuffle: bool, parts: Vec<(u64, u32)>) -> Result<Order> {
    Ok(match mode {
        "sequential" => Order::Sequential,
        "iid" => Order::Iid,
        "mixture" => Order::Mixture(Mixture::new(parts)?),
        _ => Order::Epoch(match (shuffle, blocks) {
            (false, _) => Shuffle::None,
            (true, None) => Shuffle::Full,
            (true, Some((block, window))) => Shuffle::Blocks { block, window },
        }),
    })
}

#[pymethods]
impl Sampler {
    #[new]
    #[pyo3(signature = (length, batch_size, mode, seed, *, rank=0, world=1, epochs=None, drop_last=false,
                        shuffle=true, blocks=None, parts=vec![], worker=(0, 1)))]
    #[expect(clippy::too_many_arguments, reason = "the Python half passes them on by name")]
    fn new(
        py: Python<'_>,
        length: u64,
        batch_size: usize,
        mode: &str,
        seed: u64,
        rank: u64,
        world: u64,
        epochs: Option<u64>,
        drop_last: bool,
        shuffle: bool,
        blocks: Option<(u64, u64)>,
        parts: Vec<(u64, u32)>,
        worker: (u64, u64),
    ) -> PyResult<Self> {
        let make = || {
            let order = order(mode, blocks, shuffle, parts)?;
            let options = SamplerOptions { batch_size, order, seed, rank, world, epochs, drop_last, worker };
            NativeSampler::new(length, options)
        };
        make().map(Self).map_err(|e| exception(py, &e))
    }

    /// The ids of the next batch, or `None` at the end.
    fn next<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u64>>> {
        let (_, ids) = self.0.next_batch()?;
        Some(ids.into_pyarray(py))
    }

    /// The next batch with its step and epoch and the position behind it.
    fn step<'py>(&mut self, py: Python<'py>) -> Option<(u64, u64, Bound<'py, PyArray1<u64>>, PositionTuple)> {
        let (step, ids) = self.0.next_batch()?;
        Some((step.number, step.epoch, ids.into_pyarray(py), tuple(step.after)))
    }

    #[getter]
    fn steps_per_epoch(&self) -> Option<u64> {
        self.0.steps_per_epoch()
    }

    #[getter]
    fn total_steps(&self) -> Option<u64> {
        self.0.total_steps()
    }

    #[getter]
    fn position(&self) -> PositionTuple {
        tuple(self.0.position())
    }

    /// The state at a position, as plain values.
    fn state<'py>(&self, py: Python<'py>, at: PositionTuple) -> PyResult<Bound<'py, PyDict>> {
        let (step, epoch, offset, words) = at;
        let state = self.0.state_at(Position { step, epoch, offset, words });
        let d = PyDict::new(py);
        d.set_item("version", 1)?;
        d.set_item("order", state.order)?;
        d.set_item("len", state.len)?;
        d.set_item("seed", state.seed)?;
        d.set_item("step", state.step)?;
        d.set_item("epoch", state.epoch)?;
        d.set_item("offset", state.offset)?;
        d.set_item("words", state.words.to_vec())?;
        d.set_item("turns", vec![state.turns.0, state.turns.1])?;
        Ok(d)
    }

    /// Goes on from a state.
    fn resume(&mut self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let item = |name: &str| -> PyResult<Bound<'_, PyAny>> {
            let missing = || exception(py, &Error::invalid(format!("the state has no {name:?}")));
            state.get_item(name)?.ok_or_else(missing)
        };
        let version: u64 = item("version")?.extract()?;
        if version != 1 {
            let e = Error::unsupported(format!("a state of version {version}; this is version 1"));
            return Err(exception(py, &e));
        }
        let state = SamplerState {
            order: item("order")?.extract()?,
            len: item("len")?.extract()?,
            seed: item("seed")?.extract()?,
            step: item("step")?.extract()?,
            epoch: item("epoch")?.extract()?,
            offset: item("offset")?.extract()?,
            words: item("words")?.extract()?,
            turns: item("turns")?.extract::<[u64; 2]>()?.into(),
        };
        self.0.resume(&state).map_err(|e| exception(py, &e))
    }

    /// Goes to the beginning of an epoch.
    fn start_epoch(&mut self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.0.start_epoch(epoch).map_err(|e| exception(py, &e))
    }

    /// A copy that goes its own way.
    fn copy(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The memory of one field of a batch, shown to NumPy.
#[pyclass(module = "tensilo._native")]
pub struct BatchMemory(Memory);

#[pymethods]
impl BatchMemory {
    #[getter(__array_interface__)]
    fn interface<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let bytes = self.0.bytes_mut();
        let d = PyDict::new(py);
        d.set_item("version", 3)?;
        d.set_item("typestr", "|u1")?;
        d.set_item("shape", (bytes.len(),))?;
        d.set_item("data", (bytes.as_mut_ptr().expose_provenance(), false))?;
        Ok(d)
    }
}

/// Threads that have the next batches ready.
#[pyclass(frozen, module = "tensilo._native")]
pub struct Loader {
    loader: Mutex<NativeLoader>,
    closing: AtomicBool,
}

/// Asks for signals, and whether another thread closes the loader.
struct Waiting<'a>(&'a Signals, &'a AtomicBool);

impl Monitor for Waiting<'_> {
    fn poll(&self, progress: &Progress) -> Result<()> {
        if self.1.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { self.0.poll(progress) }
    }
}

/// A field of a batch: its description, its memory, its offsets.
type FieldValues<'py> = (FieldTuple, BatchMemory, Option<Bound<'py, PyArray1<u64>>>);

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (source, sampler, *, workers, prefetch, fields, limit=None))]
    fn new(
        py: Python<'_>,
        source: &Source,
        sampler: &Sampler,
        workers: usize,
        prefetch: usize,
        fields: Vec<String>,
        limit: Option<u64>,
    ) -> PyResult<Self> {
        let limits = limit.map_or_else(Limits::default, |n| Limits::default().with_bytes(n));
        let options = LoaderOptions { workers, prefetch, fields, limits };
        let (store, sampler) = (Arc::clone(&source.0), sampler.0.clone());
        let loader = py.detach(|| NativeLoader::new(store, sampler, &options));
        let loader = loader.map_err(|e| exception(py, &e))?;
        Ok(Self { loader: Mutex::new(loader), closing: AtomicBool::new(false) })
    }

    /// `(step, epoch, ids, fields, position behind it)` of the next batch, or `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let wait = || {
            let signals = Signals::new(Callbacks::default());
            let mut loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = match self.closing.load(Ordering::Relaxed) {
                true => None,
                false => loader.next_with(&Waiting(&signals, &self.closing)),
            };
            let after = loader.position();
            drop(loader);
            (outcome, after, signals.into_raised())
        };
        match py.detach(wait) {
            (_, _, Some(raised)) => Err(raised),
            (None, ..) => Ok(None),
            (Some(Err(_)), ..) if self.closing.load(Ordering::Relaxed) => Ok(None),
            (Some(Err(failure)), after, None) => Err(failed(py, failure, after)),
            (Some(Ok(batch)), after, None) => Ok(Some(batch_tuple(py, batch, after)?)),
        }
    }

    /// Batches that are ready or being made.
    #[getter]
    fn ahead(&self, py: Python<'_>) -> usize {
        py.detach(|| self.loader.lock().unwrap_or_else(PoisonError::into_inner).ahead())
    }

    /// Ends the threads; a thread that waits in `next` gets `None`.
    fn close(&self, py: Python<'_>) {
        self.closing.store(true, Ordering::Relaxed);
        py.detach(|| self.loader.lock().unwrap_or_else(PoisonError::into_inner).close());
    }
}

/// The exception of a failed step, which knows its records.
fn failed(py: Python<'_>, failure: Failure, after: Position) -> PyErr {
    let (step, ids, record) = (failure.step, failure.ids.clone(), failure.error.record());
    let raised = exception(py, &Error::from(failure));
    let value = raised.value(py);
    let set = || -> PyResult<()> {
        value.setattr(intern!(py, "step"), step)?;
        value.setattr(intern!(py, "record"), record)?;
        value.setattr(intern!(py, "record_ids"), ids.into_pyarray(py))?;
        value.setattr(intern!(py, "_position"), tuple(after))
    };
    set().map_or_else(|e| e, |()| raised)
}

fn batch_tuple(py: Python<'_>, batch: Batch, after: Position) -> PyResult<Bound<'_, PyTuple>> {
    let fields: Vec<FieldValues<'_>> = batch
        .fields
        .into_iter()
        .map(|field| {
            let offsets = (!field.offsets.is_empty()).then(|| field.offsets.into_pyarray(py));
            (describe(&field.schema), BatchMemory(field.memory), offsets)
        })
        .collect();
    (batch.step, batch.epoch, batch.ids.into_pyarray(py), fields, tuple(after)).into_pyobject(py)
}

/// Keeps loaders from reading while the process forks.
#[pyfunction]
pub fn pause_reading(py: Python<'_>) {
    py.detach(fork::pause);
}

/// Lets loaders read again.
#[pyfunction]
pub fn resume_reading() {
    fork::resume();
}

/// Puts the names of this file, and what a loader reads from, into the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Source>()?;
    m.add_class::<Sampler>()?;
    m.add_class::<Loader>()?;
    m.add_class::<BatchMemory>()?;
    m.add_function(wrap_pyfunction!(pause_reading, m)?)?;
    m.add_function(wrap_pyfunction!(resume_reading, m)?)
}
