//! NumPy arrays, mapped files among them, as records: row `i` of the first axis is record `i`, read where it lies.
//!
//! The rows are copied without the interpreter. Whoever writes into the array meanwhile gets what NumPy's own threads
//! would get: some mix of old and new bytes.

#![expect(
    unsafe_code,
    reason = "rows of a NumPy array are copied by workers that do not hold the interpreter"
)]

use pyo3::prelude::*;
use std::sync::{Mutex, OnceLock, PoisonError};
use tensilo::core::dtype::DType;
use tensilo::core::gather::{
    FieldBuffer, FieldSchema, Gather, Places, Schema, StoreFingerprint, check_buffers, check_ids,
};
use tensilo::core::streaming;
use tensilo::core::threads::Threads;
use tensilo::core::{Monitor, Progress};
use tensilo::{Error, Result};

/// Rows and bytes of each that the fingerprint looks at.
const LOOKED_AT: (u64, usize) = (256, 4096);
/// Records between two questions to the monitor.
const BETWEEN: usize = 256;
/// Bytes from which several threads copy.
const WORTH_THREADS: usize = 4 << 20;

/// An array whose rows are records of one field.
#[derive(Debug)]
pub struct ArrayRecords {
    schema: Schema,
    rows: u64,
    row_bytes: usize,
    stride: usize,
    address: usize,
    /// The array itself: as long as it is referenced, NumPy neither frees nor moves its memory.
    _array: Py<PyAny>,
    fingerprint: OnceLock<StoreFingerprint>,
}

/// What NumPy says of an array in `__array_interface__`, as far as it is needed.
struct Interface {
    shape: Vec<u64>,
    strides: Option<Vec<i64>>,
    address: usize,
}

fn interface(array: &Bound<'_, PyAny>) -> PyResult<Interface> {
    let of = array.getattr("__array_interface__")?;
    let (address, _): (usize, bool) = of.get_item("data")?.extract()?;
    let strides = of.get_item("strides")?.extract()?;
    Ok(Interface { shape: of.get_item("shape")?.extract()?, strides, address })
}

impl ArrayRecords {
    /// Shows an array of `numpy.ndarray`, whose elements are of this type.
    ///
    /// # Errors
    /// `InvalidArgument` for an array without a first axis, or whose rows do not lie in one piece each, in order.
    pub fn new(name: &str, array: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Result<Self>> {
        let it = interface(array)?;
        Ok(Self::describe(name, &it, dtype).map(|(schema, rows, row_bytes, stride)| Self {
            schema,
            rows,
            row_bytes,
            stride,
            address: it.address,
            _array: array.clone().unbind(),
            fingerprint: OnceLock::new(),
        }))
    }

    fn describe(name: &str, it: &Interface, dtype: DType) -> Result<(Schema, u64, usize, usize)> {
        let Some((&rows, inner)) = it.shape.split_first() else {
            return Err(Error::invalid(format!("{name:?} is a single value, not an array of records")));
        };
        let field = FieldSchema::fixed(name, dtype, inner);
        let row_bytes = usize::try_from(field.step_bytes()?)
            .map_err(|_| Error::limit(format!("{name:?}: rows do not fit in memory")))?;
        let mut stride = row_bytes;
        if let Some(strides) = &it.strides {
            let mut expected = dtype.size();
            for (n, s) in it.shape.iter().zip(strides).skip(1).rev() {
                if *n > 1 && u64::try_from(*s) != Ok(expected) {
                    return Err(Error::invalid(format!("the rows of {name:?} do not lie in one piece each"))
                        .hint("numpy.ascontiguousarray makes a copy that does"));
                }
                expected = expected.saturating_mul(*n);
            }
            let first = strides.first().copied().unwrap_or(0);
            stride = match usize::try_from(first) {
                Ok(s) if s >= row_bytes || rows <= 1 => s,
                _ => {
                    return Err(Error::invalid(format!("the rows of {name:?} lie backwards or overlap"))
                        .hint("numpy.ascontiguousarray makes a copy in order"));
                }
            };
        }
        Ok((Schema::new(vec![field])?, rows, row_bytes, stride))
    }

    /// Copies rows to places that are `stride` bytes apart, each thread a run of them: a loader's first batch, whose
    /// memory the system clears while it is filled, so that it lies in the caches.
    fn gather_by_threads(
        &self,
        ids: &[u64],
        bytes: &mut [u8],
        stride: usize,
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let run = ids.len().div_ceil(threads.get() * 4).max(1);
        let rows = bytes.chunks_mut(run.saturating_mul(stride).max(1)).map(Some).map(Mutex::new);
        let runs: Vec<_> = ids.chunks(run).zip(rows).collect();
        let total = ids.len() as u64;
        threads.for_each(
            runs.len(),
            monitor,
            "gathering",
            total,
            || (),
            |(), i, done| {
                let (ids, bytes) = &runs[i];
                let Some(bytes) = bytes.lock().unwrap_or_else(PoisonError::into_inner).take() else {
                    return Ok(());
                };
                for (id, place) in ids.iter().zip(bytes.chunks_mut(stride.max(1))) {
                    self.copy_row(*id, &mut place[..self.row_bytes], 0);
                }
                done.add(ids.len() as u64);
                Ok(())
            },
        )
    }

    /// Copies the beginning of a row to its place in a result of `whole` bytes.
    fn copy_row(&self, row: u64, into: &mut [u8], whole: usize) {
        assert!(row < self.rows && into.len() <= self.row_bytes, "a row of the array, and no more than it");
        let from = self.address + row as usize * self.stride;
        let from = std::ptr::with_exposed_provenance::<u8>(from);
        // SAFETY: the duty is that `from` is readable for `into.len()` bytes and does not overlap `into`. NumPy said
        // that the array has `rows` rows, `stride` bytes apart, each with `row_bytes` bytes in one piece
        // (`describe` checked the strides), and the assertion keeps to them; `_array` keeps the memory alive and
        // unmoved (NumPy refuses to resize an array that is referenced). `into` is memory of our own batches. No
        // reference to the array's bytes is made, so writers elsewhere change what is read and nothing else.
        unsafe { streaming::copy_from(from, into, whole) };
    }
}

impl Gather for ArrayRecords {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len(&self) -> u64 {
        self.rows
    }

    /// Type, shape, and the beginnings of up to 256 rows: an array has no other identity, and may be larger than
    /// memory.
    fn fingerprint(&self) -> Result<StoreFingerprint> {
        let make = || {
            let field = &self.schema.fields()[0];
            let mut print = StoreFingerprint::new("array")
                .with(format!("{:?}{:?}", field.dtype, field.shape).as_bytes())
                .with_number(self.rows);
            let mut bytes = vec![0; self.row_bytes.min(LOOKED_AT.1)];
            let rows = self.rows.min(LOOKED_AT.0);
            for i in 0..rows {
                let row = (u128::from(self.rows) * u128::from(i) / u128::from(rows)) as u64;
                self.copy_row(row, &mut bytes, 0);
                print = print.with(&bytes);
            }
            print
        };
        Ok(*self.fingerprint.get_or_init(make))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        self.schema.field(field)?;
        check_ids(ids, self.rows)?;
        if ids.len() != steps.len() {
            return Err(Error::invalid(format!("{} ids and room for {} lengths", ids.len(), steps.len())));
        }
        steps.fill(1);
        Ok(())
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        check_buffers(self, ids, into)?;
        let total = ids.len() as u64;
        for buffer in into {
            if let (Places::Stride(stride), true) = (buffer.places, buffer.bytes.len() >= WORTH_THREADS) {
                self.gather_by_threads(ids, buffer.bytes, stride as usize, threads, monitor)?;
                continue;
            }
            for (i, id) in ids.iter().enumerate() {
                if i % BETWEEN == 0 {
                    monitor.poll(&Progress { stage: "gathering", done: i as u64, total })?;
                }
                let range = buffer.range(i, self.row_bytes as u64)?;
                let whole = buffer.bytes.len();
                self.copy_row(*id, &mut buffer.bytes[range], whole);
            }
        }
        Ok(())
    }
}
