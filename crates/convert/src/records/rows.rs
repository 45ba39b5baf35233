//! Stores of one field and one shape as records: datasets, packs and `.npy` files, row by row.

use crate::BLOCK;
use crate::lanes::{lane_type, with_type};
use crate::npy::NpyFile;
use half::f16;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::dtype::DType;
use tensilo_core::gather::{
    FieldBuffer, FieldSchema, Gather, Locality, Schema, StoreFingerprint, check_buffers, check_lengths,
};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, Monitor, Progress, Result};
use tensilo_hdf5::read::Dataset;
use tensilo_lanes::LaneType;
use tensilo_pack::read::{Pack, Values};

/// Records of one field and one shape, read by their number.
pub(super) trait Rows: Send + Sync + std::fmt::Debug {
    /// Reads consecutive rows.
    fn read(&self, first: u64, rows: u64, out: &mut [u8], monitor: &dyn Monitor) -> Result<()>;
}

/// Reads runs of consecutive ids at once, and puts each row in its place.
fn gather_rows(
    store: &dyn Gather,
    rows: &dyn Rows,
    ids: &[u64],
    into: &mut [FieldBuffer<'_>],
    monitor: &dyn Monitor,
) -> Result<()> {
    check_buffers(store, ids, into)?;
    let bytes = store.schema().field(0)?.step_bytes()?;
    let most = (BLOCK / bytes.max(1)).max(1);
    let mut block = Vec::new();
    let mut at = 0;
    while at < ids.len() {
        monitor.poll(&Progress { stage: "gathering", done: at as u64, total: ids.len() as u64 })?;
        let run = ids[at..].iter().zip(ids[at]..).take_while(|(id, want)| **id == *want).count();
        let run = run.min(most as usize).max(1);
        block.resize(run * bytes as usize, 0);
        rows.read(ids[at], run as u64, &mut block, monitor).map_err(|e| e.in_record(ids[at]))?;
        for buffer in into.iter_mut() {
            for i in 0..run {
                let range = buffer.range(at + i, bytes)?;
                buffer.bytes[range].copy_from_slice(&block[i * bytes as usize..(i + 1) * bytes as usize]);
            }
        }
        at += run;
    }
    Ok(())
}

/// The rows of an HDF5 dataset along its first axis.
#[derive(Debug)]
pub struct DatasetRows {
    dataset: Dataset,
    dtype: LaneType,
    schema: Schema,
}

impl DatasetRows {
    /// Shows a dataset of numbers; either byte order, as the values are converted.
    ///
    /// # Errors
    /// `Unsupported` for elements that are no plain numbers; `InvalidArgument` for a scalar.
    pub fn new(name: &str, dataset: Dataset) -> Result<Self> {
        let dtype = lane_type(dataset.datatype()).map_err(|e| e.in_object(name))?;
        let [_, inner @ ..] = dataset.shape() else {
            return Err(Error::invalid("a single value has no rows").in_object(name));
        };
        let element: DType = dtype.numpy().parse()?;
        let schema = Schema::new(vec![FieldSchema::fixed(name, element, inner)])?;
        Ok(Self { dataset, dtype, schema })
    }
}

impl Rows for DatasetRows {
    fn read(&self, first: u64, rows: u64, out: &mut [u8], _monitor: &dyn Monitor) -> Result<()> {
        let mut start = vec![0; self.dataset.shape().len()];
        let mut count = self.dataset.shape().to_vec();
        (start[0], count[0]) = (first, rows);
        let selection = Selection::Hyperslab(Hyperslab::new(start, count));
        with_type!(self.dtype, T => {
            // The caller's bytes need not be aligned.
            let mut values = vec![T::default(); out.len() / size_of::<T>()];
            self.dataset.read_into::<T>(&selection, &mut values)?;
            out.copy_from_slice(bytemuck::cast_slice(&values));
        });
        Ok(())
    }
}

/// The frames of a pack, one record for each scan.
#[derive(Debug)]
pub struct PackFrames {
    pack: Pack,
    values: Values,
    schema: Schema,
}

impl PackFrames {
    /// Shows the working values of a pack.
    ///
    /// # Errors
    /// `Limit` for frames that are too large.
    pub fn new(name: &str, pack: Pack, values: Values) -> Result<Self> {
        let [_, _, rows, columns] = pack.shape().map(u64::from);
        let schema = Schema::new(vec![FieldSchema::fixed(name, DType::U16, [rows, columns])])?;
        Ok(Self { pack, values, schema })
    }
}

impl Rows for PackFrames {
    fn read(&self, first: u64, rows: u64, out: &mut [u8], monitor: &dyn Monitor) -> Result<()> {
        let mut values = vec![0_u16; out.len() / 2];
        self.pack.frames_into(first..first + rows, self.values, &mut values, monitor)?;
        for (to, value) in out.chunks_exact_mut(2).zip(values) {
            to.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }
}

/// The rows of an `.npy` file.
#[derive(Debug)]
pub struct NpyRows {
    npy: NpyFile,
    schema: Schema,
    row: u64,
    /// Bytes of a number that is stored with its high byte first; 0 where nothing is to be turned round.
    turned: usize,
}

impl NpyRows {
    /// Shows the rows along the first axis; either byte order, as records hold the low byte first.
    ///
    /// # Errors
    /// `Unsupported` for element types that records have not; `InvalidArgument` for a single value.
    pub fn new(name: &str, npy: NpyFile) -> Result<Self> {
        let [_, inner @ ..] = npy.shape() else {
            return Err(Error::invalid("a single value has no rows").in_object(name));
        };
        let (descr, turned) = match npy.descr().strip_prefix('>') {
            None => (npy.descr().to_owned(), 0),
            Some(kind) => {
                let parts = if kind.starts_with('c') { 2 } else { 1 };
                (format!("<{kind}"), npy.item_size() as usize / parts)
            }
        };
        let schema = Schema::new(vec![FieldSchema::fixed(name, descr.parse()?, inner)])?;
        let row = inner.iter().product();
        Ok(Self { npy, schema, row, turned })
    }
}

impl Rows for NpyRows {
    fn read(&self, first: u64, _rows: u64, out: &mut [u8], _monitor: &dyn Monitor) -> Result<()> {
        let element =
            first.checked_mul(self.row).ok_or_else(|| Error::invalid("a row past 2^64 elements"))?;
        if !out.is_empty() {
            self.npy.read_at(element, out)?;
        }
        if self.turned > 1 {
            out.chunks_exact_mut(self.turned).for_each(<[u8]>::reverse);
        }
        Ok(())
    }
}

macro_rules! gather_by_rows {
    ($type:ty, $kind:literal, $len:expr, $locality:expr) => {
        impl Gather for $type {
            fn schema(&self) -> &Schema {
                &self.schema
            }

            fn len(&self) -> u64 {
                $len(self)
            }

            fn fingerprint(&self) -> Result<StoreFingerprint> {
                let field = &self.schema.fields()[0];
                let print = StoreFingerprint::new($kind)
                    .with(format!("{}{:?}{:?}", field.name, field.dtype, field.shape).as_bytes())
                    .with_number(self.len());
                print_rows(self, self, print)
            }

            fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
                check_lengths(self, field, ids, steps)?;
                steps.fill(1);
                Ok(())
            }

            fn gather_into(
                &self,
                ids: &[u64],
                into: &mut [FieldBuffer<'_>],
                _threads: Threads,
                monitor: &dyn Monitor,
            ) -> Result<()> {
                gather_rows(self, self, ids, into, monitor)
            }

            fn locality(&self) -> Locality {
                Locality { block: $locality(self) }
            }
        }
    };
}

/// The contents, from end to end: these stores have no checksums of their own that could be relied on.
fn print_rows(store: &dyn Gather, rows: &dyn Rows, mut print: StoreFingerprint) -> Result<StoreFingerprint> {
    let bytes = store.schema().field(0)?.step_bytes()?;
    let most = (BLOCK / bytes.max(1)).max(1);
    // A single row may be as long as the file says.
    let (mut block, _charge) = Budget::default().buffer(most.min(store.len()) * bytes, "a block of rows")?;
    let mut first = 0;
    while first < store.len() {
        let n = most.min(store.len() - first);
        let part = &mut block[..(n * bytes) as usize];
        rows.read(first, n, part, &tensilo_core::Quiet)?;
        print = print.with_number(u64::from(crc32c::crc32c(part)));
        first += n;
    }
    Ok(print)
}

gather_by_rows!(
    DatasetRows,
    "hdf5 rows",
    |s: &DatasetRows| s.dataset.shape().first().copied().unwrap_or(0),
    |s: &DatasetRows| s.dataset.chunk_shape().and_then(|c| c.first().copied()).unwrap_or(1).max(1)
);
gather_by_rows!(
    PackFrames,
    "pack frames",
    |s: &PackFrames| u64::from(s.pack.shape()[0]) * u64::from(s.pack.shape()[1]),
    |_: &PackFrames| 32
);
gather_by_rows!(
    NpyRows,
    "npy rows",
    |s: &NpyRows| s.npy.shape().first().copied().unwrap_or(0),
    |_: &NpyRows| 1
);
