//! The shortest way of a batch into an array: ids and array as loaders have them, checked without a call of Python's.

use crate::errors::exception;
use crate::signals::{Callbacks, interruptible};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use tensilo::core::dtype::DType;
use tensilo::core::gather::{FieldBuffer, FieldShape, Gather, Places};
use tensilo::core::threads::Threads;
use tensilo::records::Records;
use tensilo::{ErrorKind, Result};

/// Where a batch comes from and which field of it.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub store: &'a Records,
    pub field: usize,
    pub threads: usize,
}

impl Wanted<'_> {
    /// Fills `out` with the records of `ids`. False, and nothing is written, unless the ids are a contiguous array of
    /// 64-bit integers, none of them negative or too large, and `out` is a contiguous array of the field's dtype and
    /// of as many records: whoever calls then knows what is wrong, or converts.
    ///
    /// # Errors
    /// What gathering raises.
    pub fn fill(self, ids: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = ids.py();
        let field = self.store.schema().field(self.field).map_err(|e| exception(py, &e))?;
        let FieldShape::Fixed(shape) = &field.shape else { return Ok(false) };
        match field.dtype {
            DType::U8 => self.fill_as::<u8>(shape, ids, out),
            DType::F32 => self.fill_as::<f32>(shape, ids, out),
            DType::F64 => self.fill_as::<f64>(shape, ids, out),
            DType::I8 => self.fill_as::<i8>(shape, ids, out),
            DType::I16 => self.fill_as::<i16>(shape, ids, out),
            DType::I32 => self.fill_as::<i32>(shape, ids, out),
            DType::I64 => self.fill_as::<i64>(shape, ids, out),
            DType::U16 => self.fill_as::<u16>(shape, ids, out),
            DType::U32 => self.fill_as::<u32>(shape, ids, out),
            DType::U64 => self.fill_as::<u64>(shape, ids, out),
            _ => Ok(false),
        }
    }

    fn fill_as<T: Element + bytemuck::Pod>(
        self,
        shape: &[u64],
        ids: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let Ok(out) = out.cast::<PyArrayDyn<T>>() else { return Ok(false) };
        let (signed, unsigned) = (ids.cast::<PyArray1<i64>>(), ids.cast::<PyArray1<u64>>());
        // Seen as unsigned, negative ids are too large.
        let (signed, unsigned) = match (signed, unsigned) {
            (Ok(ids), _) => (ids.try_readonly().ok(), None),
            (_, Ok(ids)) => (None, ids.try_readonly().ok()),
            _ => return Ok(false),
        };
        let ids: &[u64] = match (&signed, &unsigned) {
            (Some(ids), _) => ids.as_slice().map(bytemuck::cast_slice).unwrap_or_default(),
            (_, Some(ids)) => ids.as_slice().unwrap_or_default(),
            _ => return Ok(false),
        };
        let fits = out.shape().split_first().is_some_and(|(n, rest)| {
            *n == ids.len() && rest.iter().map(|n| *n as u64).eq(shape.iter().copied())
        });
        let Ok(mut written) = out.try_readwrite() else { return Ok(false) };
        let Ok(values) = written.as_slice_mut() else { return Ok(false) };
        if !fits || values.is_empty() {
            return Ok(false);
        }
        let stride = (values.len() / ids.len() * size_of::<T>()) as u64;
        let bytes = bytemuck::cast_slice_mut(values);
        let mut into = [FieldBuffer { field: self.field, bytes, places: Places::Stride(stride) }];
        interruptible(out.py(), Callbacks::default(), |signals| -> Result<bool> {
            match self.store.gather_into(ids, &mut into, Threads::new(self.threads), signals) {
                Ok(()) => Ok(true),
                Err(e) if e.kind() == ErrorKind::InvalidArgument => Ok(false),
                Err(e) => Err(e),
            }
        })
    }
}
