//! Record stores for Python: batches gathered into NumPy's memory, and a writer.

use crate::errors::exception;
use crate::filling::Wanted;
use crate::signals::{Callbacks, interruptible};
use crate::source::{FieldTuple, Source, describe};
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tensilo::core::dtype::DType;
use tensilo::core::gather::{FieldBuffer, FieldSchema, Gather, Places, Schema};
use tensilo::core::threads::Threads;
use tensilo::core::{Limits, Monitor};
use tensilo::records::store::{Column, Encoding, OpenOptions, WriterOptions, salvage};
use tensilo::records::{Records, RecordsWriter};
use tensilo::{Error, Result};

/// A snapshot of a store.
#[pyclass(frozen, module = "tensilo._native")]
pub struct RecordStore(Records);

fn field((name, dtype, shape, ragged): FieldTuple) -> Result<FieldSchema> {
    let dtype: DType = dtype.parse()?;
    Ok(if ragged { FieldSchema::ragged(name, dtype, shape) } else { FieldSchema::fixed(name, dtype, shape) })
}

fn fields_of(schema: &Schema) -> Vec<FieldTuple> {
    schema.fields().iter().map(describe).collect()
}

#[pymethods]
impl RecordStore {
    #[new]
    #[pyo3(signature = (path, *, map=true, limit=None))]
    fn new(py: Python<'_>, path: PathBuf, map: bool, limit: Option<u64>) -> PyResult<Self> {
        let mut options = OpenOptions { map, ..OpenOptions::default() };
        if let Some(limit) = limit {
            options.limits = Limits::default().with_bytes(limit);
        }
        let store = py.detach(|| Records::open_with(&path, options));
        store.map(Self).map_err(|e| exception(py, &e))
    }

    fn __len__(&self) -> PyResult<usize> {
        usize::try_from(self.0.len()).map_err(|_| PyValueError::new_err("more records than Python can count"))
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.0.format().name()
    }

    #[getter]
    fn generation(&self) -> u64 {
        self.0.generation()
    }

    fn fields(&self) -> Vec<FieldTuple> {
        fields_of(self.0.schema())
    }

    fn encodings(&self) -> Vec<String> {
        self.0.encodings().to_vec()
    }

    /// JSON text.
    fn metadata(&self, py: Python<'_>) -> PyResult<Option<String>> {
        py.detach(|| self.0.metadata()).map_err(|e| exception(py, &e))
    }

    /// `(live bytes, file bytes, reclaimable bytes)`.
    fn stats(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let stats = py.detach(|| self.0.stats()).map_err(|e| exception(py, &e))?;
        Ok((stats.live_bytes, stats.file_bytes, stats.reclaimable))
    }

    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        let print = py.detach(|| self.0.fingerprint()).map_err(|e| exception(py, &e))?;
        Ok(print.to_string())
    }

    /// The most recent snapshot, when this is not.
    fn refreshed(&self, py: Python<'_>) -> PyResult<Option<Self>> {
        let newer = py.detach(|| {
            let mut fresh = self.0.clone();
            Ok::<_, Error>(fresh.refresh()?.then_some(fresh))
        });
        Ok(newer.map_err(|e| exception(py, &e))?.map(Self))
    }

    /// The records as loaders want them; some of them, in this order, when ids are given.
    fn source(&self, py: Python<'_>, ids: Option<PyReadonlyArray1<'_, u64>>) -> PyResult<Source> {
        match ids {
            None => Ok(Source(Arc::new(self.0.clone()))),
            Some(ids) => {
                let view = self.0.view(ids.as_slice()?).map_err(|e| exception(py, &e))?;
                Ok(Source(Arc::new(view)))
            }
        }
    }

    /// Rows of each record in a field.
    fn lengths<'py>(
        &self,
        py: Python<'py>,
        field: usize,
        ids: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let ids = ids.as_slice()?;
        let mut steps = vec![0; ids.len()];
        py.detach(|| self.0.lengths(field, ids, &mut steps)).map_err(|e| exception(py, &e))?;
        Ok(PyArray1::from_vec(py, steps))
    }

    /// Fills bytes with a field of records: one every `stride` bytes, or each where `starts` says.
    #[pyo3(signature = (field, ids, out, stride, starts, threads))]
    #[expect(clippy::too_many_arguments, reason = "the Python half passes them on by position")]
    fn gather(
        &self,
        py: Python<'_>,
        field: usize,
        ids: PyReadonlyArray1<'_, u64>,
        mut out: PyReadwriteArray1<'_, u8>,
        stride: u64,
        starts: Option<PyReadonlyArray1<'_, u64>>,
        threads: usize,
    ) -> PyResult<()> {
        let (ids, bytes) = (ids.as_slice()?, out.as_slice_mut()?);
        let places = match &starts {
            Some(starts) => Places::Starts(starts.as_slice()?),
            None => Places::Stride(stride),
        };
        let mut into = [FieldBuffer { field, bytes, places }];
        interruptible(py, Callbacks::default(), |signals| {
            self.0.gather_into(ids, &mut into, Threads::new(threads), signals)
        })
    }

    /// Fills an array with a field of records; false, and nothing is written, unless both are as loaders have them.
    fn fill(
        &self,
        field: usize,
        ids: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<bool> {
        Wanted { store: &self.0, field, threads }.fill(ids, out)
    }

    /// `(records, bad records, problems, the first of them as text)`.
    fn verify(&self, py: Python<'_>, threads: usize) -> PyResult<(u64, u64, u64, Vec<String>)> {
        let v =
            interruptible(py, Callbacks::default(), |signals| self.0.verify(Threads::new(threads), signals))?;
        Ok((v.records, v.bad_records, v.problems, v.described.iter().map(ToString::to_string).collect()))
    }
}

/// A store being written.
#[pyclass(module = "tensilo._native")]
pub struct RecordWriter(Option<RecordsWriter>);

fn encoding(text: Option<&str>) -> Result<Option<Encoding>> {
    Ok(text.map(str::parse).transpose()?)
}

fn seconds(wait: f64) -> PyResult<Duration> {
    if wait.is_infinite() && wait > 0.0 {
        return Ok(Duration::from_secs(u32::MAX.into()));
    }
    Duration::try_from_secs_f64(wait).map_err(|_| PyValueError::new_err(format!("wait of {wait} seconds")))
}

impl RecordWriter {
    /// Does something with the open writer.
    fn with<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut RecordsWriter, &dyn Monitor) -> Result<T> + Send,
    ) -> PyResult<T> {
        let Some(writer) = self.0.as_mut() else {
            return Err(PyValueError::new_err("the writer is closed"));
        };
        interruptible(py, Callbacks::default(), |signals| work(writer, signals))
    }
}

#[pymethods]
impl RecordWriter {
    #[staticmethod]
    #[pyo3(signature = (path, fields, *, codec, field_codecs, metadata, dictionary, replace, whole, wait, threads))]
    #[expect(clippy::too_many_arguments, reason = "the Python half passes them on by name")]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        fields: Vec<FieldTuple>,
        codec: Option<&str>,
        field_codecs: Vec<(String, String)>,
        metadata: Option<String>,
        dictionary: Option<Vec<u8>>,
        replace: bool,
        whole: bool,
        wait: f64,
        threads: usize,
    ) -> PyResult<Self> {
        let wait = seconds(wait)?;
        let make = || -> Result<RecordsWriter> {
            let codecs = field_codecs.iter().map(|(name, text)| Ok((name.clone(), text.parse()?)));
            let options = WriterOptions {
                encoding: encoding(codec)?,
                field_encodings: codecs.collect::<Result<_>>()?,
                metadata,
                dictionary,
                replace,
                whole,
                wait,
                threads: Threads::new(threads),
                ..WriterOptions::default()
            };
            let fields = fields.into_iter().map(field).collect::<Result<_>>()?;
            RecordsWriter::create(&path, Schema::new(fields)?, options)
        };
        py.detach(make).map(|w| Self(Some(w))).map_err(|e| exception(py, &e))
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, codec, wait, threads))]
    fn open(py: Python<'_>, path: PathBuf, codec: Option<&str>, wait: f64, threads: usize) -> PyResult<Self> {
        let wait = seconds(wait)?;
        let open = || -> Result<RecordsWriter> {
            let (encoding, threads) = (encoding(codec)?, Threads::new(threads));
            RecordsWriter::open(&path, WriterOptions { encoding, wait, threads, ..WriterOptions::default() })
        };
        py.detach(open).map(|w| Self(Some(w))).map_err(|e| exception(py, &e))
    }

    fn __len__(&self) -> PyResult<usize> {
        let writer = self.0.as_ref().ok_or_else(|| PyValueError::new_err("the writer is closed"))?;
        usize::try_from(writer.len()).map_err(|_| PyValueError::new_err("more records than Python can count"))
    }

    fn fields(&mut self, py: Python<'_>) -> PyResult<Vec<FieldTuple>> {
        self.with(py, |writer, _| Ok(fields_of(&writer.schema()?)))
    }

    /// Appends records: for each field its bytes, and of a ragged one the rows of each record.
    fn append(
        &mut self,
        py: Python<'_>,
        records: u64,
        columns: Vec<(PyReadonlyArray1<'_, u8>, Option<PyReadonlyArray1<'_, u64>>)>,
    ) -> PyResult<u64> {
        let mut list = Vec::with_capacity(columns.len());
        for (bytes, steps) in &columns {
            let steps = match steps {
                Some(steps) => Some(steps.as_slice()?),
                None => None,
            };
            list.push(Column { bytes: bytes.as_slice()?, steps });
        }
        self.with(py, |writer, _| writer.append(records, &list).map(|ids| ids.start))
    }

    fn commit(&mut self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer, _| writer.commit())
    }

    fn delete(&mut self, py: Python<'_>, ids: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let ids = ids.as_slice()?;
        self.with(py, |writer, _| writer.delete(ids))
    }

    fn compact(&mut self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer, signals| writer.compact(signals))
    }

    fn set_metadata(&mut self, py: Python<'_>, text: &str) -> PyResult<()> {
        self.with(py, |writer, _| writer.set_metadata(text))
    }

    fn close(&mut self) {
        self.0 = None;
    }
}

/// See `tensilo.records.salvage`.
#[pyfunction]
pub fn records_salvage(py: Python<'_>, path: PathBuf, to: PathBuf) -> PyResult<(u64, u64, Vec<String>)> {
    let answer = interruptible(py, Callbacks::default(), |signals| {
        salvage(&path, &to, WriterOptions::default(), signals)
    })?;
    let text = |l: &tensilo::records::store::Lost| {
        format!("records {} to {}: {}", l.first, l.first + l.records - 1, l.why)
    };
    Ok((answer.saved, answer.lost, answer.described.iter().map(text).collect()))
}

/// See `tensilo.records.train_dictionary`.
#[pyfunction]
pub fn records_dictionary(py: Python<'_>, samples: Vec<Vec<u8>>, most: usize) -> PyResult<Vec<u8>> {
    let made = py.detach(|| tensilo::records::store::train_dictionary(&samples, most));
    made.map_err(|e| exception(py, &e))
}
